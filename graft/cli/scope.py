"""What the pilot's commands share: which repositories, which days, and one connection to the database."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar

import asyncpg
import click
import uvloop

from graft import database
from graft.config import DatabaseSettings
from graft.database import Connection
from graft.errors import ConfigError
from graft.store import ratings
from graft.store.ratings import Scope

T = TypeVar("T")

DEFAULT_DAYS = 90


class Day(click.ParamType[date]):
    """A day as `2026-12-01`."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> date:
        if isinstance(value, date):
            return value
        try:
            return date.fromisoformat(value)
        except ValueError:
            self.fail("not a day; write it as 2026-12-01", param, ctx)


def scope_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--repo` (any number of times), `--from` and `--to`; days are UTC, both included."""
    for option in (
        click.option("--to", "last", type=Day(), help="Last day (UTC); today unless given."),
        click.option(
            "--from", "first", type=Day(), help=f"First day (UTC); {DEFAULT_DAYS} days before the last."
        ),
        click.option("--repo", "repos", multiple=True, metavar="OWNER/NAME", help="Only this repository."),
    ):
        command = option(command)
    return command


async def find_scope(
    connection: Connection, repos: tuple[str, ...], first: date | None, last: date | None
) -> Scope:
    """The scope that the options mean. Raises ConfigError for an unknown repository or an empty range."""
    last = last or datetime.now(UTC).date()
    first = first or last - timedelta(days=DEFAULT_DAYS - 1)
    if first > last:
        raise ConfigError(["--from: later than --to"])
    ids = [(await find_repository(connection, name))[0] for name in repos]
    return Scope(
        since=datetime(first.year, first.month, first.day, tzinfo=UTC),
        until=datetime(last.year, last.month, last.day, tzinfo=UTC) + timedelta(days=1),
        repositories=tuple(ids) if ids else None,
    )


async def find_repository(connection: Connection, full_name: str) -> tuple[int, int]:
    """(repository, installation) by name. Raises ConfigError for one that Graft does not know."""
    found = await ratings.named(connection, full_name)
    if found is None:
        raise ConfigError([f"{full_name}: no repository of this name is known; is the App installed on it?"])
    return found


def on_database(work: Callable[[Connection], Awaitable[T]], *, url: str | None = None) -> T:
    """Run on one connection to DATABASE_URL whose schema fits. Raises ConfigError for whatever stands against it."""
    chosen = url or DatabaseSettings.from_env(os.environ).database_url.value

    async def run() -> T:
        pool = await database.open_pool(chosen, size=1)
        try:
            async with pool.acquire() as connection:
                await database.check_schema(connection)
                return await work(connection)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            raise ConfigError([f"DATABASE_URL: the database failed ({type(error).__name__})"]) from None
        finally:
            await pool.close()

    return uvloop.run(run())
