"""`graft metrics`: the days in numbers, as the daily rollup holds them."""

from __future__ import annotations

from datetime import date

import click
import msgspec
from rich.console import Console
from rich.table import Table

from graft.cli.daemon import fail
from graft.cli.scope import find_scope, on_database, scope_options
from graft.database import Connection
from graft.errors import ConfigError
from graft.pilot import rollup
from graft.pilot.figures import as_duration, quantile
from graft.pilot.rollup import Day
from graft.store import rollups
from graft.store.rollups import StoredDay


@click.command()
@scope_options
@click.option("--recompute", is_flag=True, help="Compute the days anew from the rows they are about.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def metrics(
    repos: tuple[str, ...], first: date | None, last: date | None, recompute: bool, as_json: bool
) -> None:
    """Print the daily numbers of each repository (days are UTC).

    They are complete counts, computed by the daemon once a day; `--recompute` does it now.
    """

    async def read(connection: Connection) -> list[StoredDay]:
        scope = await find_scope(connection, repos, first, last)
        if recompute:
            async with connection.transaction():
                await rollups.refresh(connection, scope)
        return await rollups.find(connection, scope)

    try:
        days = on_database(read)
    except ConfigError as error:
        fail(error)
    if as_json:
        document = {"rollup_version": rollup.VERSION, "days": days}
        click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2))
        return
    if not days:
        click.echo("no days yet; --recompute computes them now")
        return
    console = Console()
    console.print(_table(days), soft_wrap=True)
    console.print(
        f"[dim]rollup version {rollup.VERSION}; complete counts per UTC day; docs/pilot.md defines each[/]"
    )


def _table(days: list[StoredDay]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("day", "repository"):
        table.add_column(name, no_wrap=True)
    for name in (
        "cards",
        "trivial/logic/sensitive",
        "disagreed/checked",
        "injections",
        "no card",
        "verdicts",
        "votes +/−",
        "cost",
        "tokens",
        "first card",
        "calls/heads",
        "dead",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    for each in days:
        table.add_row(each.day.isoformat(), each.repository, *_cells(each.counts))
    return table


def _cells(day: Day) -> list[str]:
    risks = "/".join(str(day.by_risk.get(name, 0)) for name in ("trivial", "logic", "sensitive"))
    latency = "–"
    if day.latencies:
        latency = f"{as_duration(quantile(sorted(day.latencies), 0.5))} (n={len(day.latencies)})"
    return [
        str(day.cards),
        risks,
        f"{day.disagreed}/{day.checked}",
        str(day.injections),
        str(day.by_status.get("unavailable", 0)),
        " ".join(f"{name} {count}" for name, count in day.verdicts.items()) or "–",
        f"{day.votes.get('accurate', 0)}/{day.votes.get('wrong', 0)}",
        f"${day.cost_usd:.4f}",
        f"{day.tokens:,}",
        latency,
        f"{day.api_calls}/{day.heads}",
        str(sum(day.dead_work.values())),
    ]
