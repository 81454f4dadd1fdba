"""`graft baseline` and `graft shadow`: review time before Graft and with it, over a range of days."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from graft import __version__
from graft.cli.atomic import write_atomically
from graft.cli.daemon import fail
from graft.cli.measuring import Measuring, Told
from graft.cli.scope import Day, find_repository, on_database
from graft.config import AppSettings
from graft.database import Connection
from graft.errors import ConfigError, PermanentError, TransientError
from graft.github import GitHub
from graft.pilot import outcomes
from graft.pilot.figures import as_text
from graft.pilot.review_time import Calendar, Measured
from graft.store import review_times

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--restart", is_flag=True, help="Forget what an earlier run of this range measured."),
        click.option(
            "--out",
            type=click.Path(dir_okay=False, path_type=Path),
            help="JSON file to write; named after the run.",
        ),
        click.option(
            "--weekdays", metavar="DAYS", default="mon-fri", show_default=True, help="Working days."
        ),
        click.option("--hours", metavar="FROM-TO", help="Count only these hours, as 9-17."),
        click.option(
            "--time-zone", "zone", default="UTC", show_default=True, help="Where days and hours are."
        ),
        click.option("--to", "last", type=Day(), required=True, help="Last day on which one was opened."),
        click.option("--from", "first", type=Day(), required=True, help="First day on which one was opened."),
        click.argument("repo", metavar="OWNER/NAME"),
    ):
        command = option(command)
    return command


@click.command()
@_options
def baseline(**options: Any) -> None:
    """Measure pull requests opened before Graft was there.

    For each: time to first review and to merge, from opening or from being declared ready. Interrupted, it goes on
    where it stopped; run it again.
    """
    _command("baseline", **options)


@click.command()
@_options
def shadow(**options: Any) -> None:
    """Measure pull requests opened while Graft comments, in the same way as `graft baseline`."""
    _command("shadow", **options)


def _command(
    period: str,
    *,
    repo: str,
    first: date,
    last: date,
    zone: str,
    hours: str | None,
    weekdays: str,
    out: Path | None,
    restart: bool,
) -> None:
    if first > last:
        raise click.UsageError("--from: later than --to")
    calendar = read_calendar(zone, hours, weekdays)
    path = out or Path(f"graft-{period}-{repo.replace('/', '-')}-{first}-{last}.json")
    try:
        settings = AppSettings.from_env(os.environ)
        with _progress() as tell:

            async def work(connection: Connection) -> list[Measured]:
                return await run(
                    connection, settings, period, repo, first, last, calendar, restart=restart, tell=tell
                )

            rows = on_database(work, url=settings.database_url.value)
        write_atomically(path, _document(period, repo, first, last, calendar, rows))
    except ConfigError as error:
        fail(error)
    except (TransientError, PermanentError) as error:
        raise click.ClickException(f"{error}; what was measured is kept, run it again to go on") from None
    _print(period, rows, path)


async def run(
    connection: Connection,
    settings: AppSettings,
    period: str,
    repo: str,
    first: date,
    last: date,
    calendar: Calendar,
    *,
    restart: bool = False,
    tell: Callable[[Told], None] = lambda told: None,
) -> list[Measured]:
    """Begin or go on with a run and return all it measured.

    Raises ConfigError where an earlier run of the range was measured with another calendar.
    """
    repository_id, installation_id = await find_repository(connection, repo)
    chosen = msgspec.json.decode(msgspec.json.encode(calendar))  # as the database gives it back
    row = await review_times.begin(connection, repository_id, period, first, last, chosen)
    if restart or (row.finished and row.settings == chosen):
        # A finished run is measured afresh: reviews and merges have gone on since.
        await review_times.discard(connection, row.id)
        row = await review_times.begin(connection, repository_id, period, first, last, chosen)
    if row.settings != chosen:
        raise ConfigError(
            ["this range was begun with another time zone or other hours; use those, or --restart"]
        )
    async with GitHub(
        app_id=settings.github_app_id,
        private_key=settings.github_app_private_key.value,
        api_url=settings.github_api_url,
        user_agent=f"graft/{__version__}",
    ) as github:
        measuring = Measuring(
            client=github.installation(installation_id),
            full_name=repo,
            repository_id=repository_id,
            connection=connection,
            calendar=calendar,
            tell=tell,
        )
        return await measuring.run(
            row, since=calendar.day_begins(first), until=calendar.day_begins(last + timedelta(days=1))
        )


def read_calendar(zone: str, hours: str | None, weekdays: str) -> Calendar:
    """The calendar that the options mean. Raises click.UsageError naming the option."""
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise click.UsageError("--time-zone: not a known zone; write it as Europe/Zurich") from None
    days = _read_weekdays(weekdays)
    if hours is None:
        return Calendar(zone=zone, weekdays=days)
    found = re.fullmatch(r"(\d{1,2})-(\d{1,2})", hours)
    if not found or not 0 <= int(found[1]) < int(found[2]) <= 24:
        raise click.UsageError("--hours: write them as 9-17, from 0 to 24")
    return Calendar(zone=zone, first_hour=int(found[1]), last_hour=int(found[2]), weekdays=days)


def _read_weekdays(text: str) -> tuple[int, ...]:
    chosen: set[int] = set()
    for part in text.lower().split(","):
        begin, _, end = part.strip().partition("-")
        if begin not in _DAYS or (end and end not in _DAYS):
            raise click.UsageError("--weekdays: write them as mon-fri or mon,tue,sat")
        low, high = _DAYS.index(begin), _DAYS.index(end or begin)
        chosen.update(range(low, high + 1) if low <= high else {*range(low, 7), *range(high + 1)})
    return tuple(sorted(chosen))


@contextmanager
def _progress() -> Iterator[Callable[[Told], None]]:
    """A progress bar on the terminal's error stream."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )
    task = bar.add_task("listing pull requests", total=None)

    def tell(told: Told) -> None:
        bar.update(
            task, total=told.total, completed=told.done, description=told.waiting or "measuring pull requests"
        )

    with bar:
        yield tell


def _document(
    period: str, repo: str, first: date, last: date, calendar: Calendar, rows: list[Measured]
) -> bytes:
    document = {
        "period": period,
        "repository": repo,
        "from": first,
        "to": last,
        "calendar": calendar,
        "rules": outcomes.RULES,
        "pull_requests": rows,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _print(period: str, rows: list[Measured], path: Path) -> None:
    before, after = (rows, []) if period == "baseline" else ([], rows)
    for table in outcomes.review_times(before, after).tables:
        click.echo(f"\n{table.title}")
        for point in table.rows:
            if point.figure.sample:
                click.echo(f"  {point.name}: {as_text(point.figure)}")
        definition = table.rows[0].figure.definition
        click.echo(f"  {definition}")
    click.echo(f"\n{len(rows):,} pull requests measured; {path}")
