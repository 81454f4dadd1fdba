"""`graft report`: the pilot on one page, or the same numbers as JSON and CSV."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import click

from graft.cli.atomic import write_atomically
from graft.cli.daemon import fail
from graft.cli.scope import find_scope, on_database, scope_options
from graft.database import Connection
from graft.errors import ConfigError
from graft.pilot import export, feedback, page
from graft.pilot import gate as gates
from graft.pilot.document import Material
from graft.pilot.report import build
from graft.pilot.rollup import Day, together
from graft.store import incidents, pilot, ratings, review_times, rollups
from graft.store.ratings import Scope


@click.command()
@scope_options
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the page to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print the same numbers as JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the same numbers as CSV.")
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=gates.THRESHOLD,
    show_default=True,
    help="The gate.",
)
@click.option("--minimum", type=click.IntRange(1), default=gates.MINIMUM, show_default=True)
def report(
    repos: tuple[str, ...],
    first: date | None,
    last: date | None,
    out: Path | None,
    as_json: bool,
    as_csv: bool,
    threshold: float,
    minimum: int,
) -> None:
    """Write the pilot report: one self-contained page that asks nothing of the network."""
    if not (out or as_json or as_csv) or (as_json and as_csv):
        raise click.UsageError("give --out FILE, or one of --json and --csv, or both kinds")

    async def read(connection: Connection) -> Material:
        scope = await find_scope(connection, repos, first, last)
        async with connection.transaction():
            await rollups.refresh(connection, scope)
        return await gather(connection, scope, threshold=threshold, minimum=minimum)

    try:
        built = build(on_database(read))
        if out is not None:
            write_atomically(out, page.render(built).encode())
    except ConfigError as error:
        fail(error)
    if as_json:
        click.echo(export.as_json(built), nl=False)
    elif as_csv:
        click.echo(export.as_csv(built), nl=False)
    else:
        click.echo(f"{out}: {built.gate.outcome.value.replace('_', ' ')}, {built.gate.reason}")


async def gather(connection: Connection, scope: Scope, *, threshold: float, minimum: int) -> Material:
    """What the database holds about the scope, with its daily numbers as they are stored."""
    rated = feedback.rate(await ratings.cards(connection, scope), await ratings.votes(connection, scope))
    by_day: dict[date, list[Day]] = defaultdict(list)
    for stored in await rollups.find(connection, scope):
        by_day[stored.day].append(stored.counts)
    return Material(
        generated_at=datetime.now(UTC),
        since=scope.since,
        until=scope.until,
        repositories=tuple(await pilot.repositories(connection, scope)),
        gate=gates.decide(rated, threshold=threshold, minimum=minimum),
        ratings=rated,
        participation=await ratings.participation(connection, scope),
        days=_without_gaps({day: together(counts) for day, counts in by_day.items()}),
        change_costs=[each.cost_usd for each in await pilot.costs(connection, scope)],
        merged=await incidents.merged(connection, scope),
        incidents=await incidents.find(connection, scope.until_now()),
        before=await review_times.newest(connection, "baseline", scope.ids),
        after=await review_times.newest(connection, "shadow", scope.ids),
    )


def _without_gaps(days: dict[date, Day]) -> dict[date, Day]:
    """From the first to the last day that has anything, with the empty days between them."""
    if not days:
        return {}
    first, last = min(days), max(days)
    every = (first + timedelta(days=number) for number in range((last - first).days + 1))
    return {day: days.get(day, Day()) for day in every}
