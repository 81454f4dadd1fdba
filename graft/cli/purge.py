"""`graft purge`: everything of one installation, out of every table and out of the broker."""

from __future__ import annotations

import asyncio
import os

import asyncpg
import click
import msgspec
import uvloop

from graft import database, triggers
from graft.bus import Bus, BusUnavailable
from graft.cli.daemon import fail
from graft.config import PurgeSettings
from graft.database import Pool
from graft.errors import ConfigError
from graft.store import purge as rows
from graft.store.purge import Purged, RowsLeft

# Somebody may be writing for the installation while it goes: look again, and again.
_LOOKS = 5
_PAUSE_SECONDS = 0.5


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed by table, what is left (nothing, or the purge failed), and how many triggers were dropped."""

    installation_id: int
    rows_deleted: dict[str, int]
    rows_left: dict[str, int]
    triggers_dropped: int


@click.command()
@click.option("--installation", "installation_id", type=click.IntRange(1), required=True, help="Its id.")
@click.option(
    "--reason", default="operator", show_default=True, help="Why; kept with the record of the purge."
)
@click.option("--dry-run", is_flag=True, help="Only count what would be removed.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def purge(installation_id: int, reason: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Remove every row of an installation, prove it by counting, and drop its triggers from the broker.

    What remains is the record that it was purged, which drops whatever still arrives. Uninstall the App on GitHub
    first: an installation that is purged stays purged.
    """
    try:
        settings = PurgeSettings.from_env(os.environ)
        if not (yes or dry_run):
            counted = uvloop.run(_count(settings, installation_id))
            click.echo(f"{sum(counted.values()):,} rows in {len(counted)} tables", err=True)
            click.confirm(f"Remove everything of installation {installation_id}?", abort=True, err=True)
        outcome = uvloop.run(_run(settings, installation_id, reason, dry_run=dry_run))
    except ConfigError as error:
        fail(error)
    except (RowsLeft, BusUnavailable) as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(outcome), indent=2))
    else:
        for table, count in sorted(outcome.rows_deleted.items()):
            click.echo(f"{table}: {count:,}")
        said = "would be removed" if dry_run else f"removed, {outcome.triggers_dropped} triggers dropped"
        click.echo(
            f"{sum(outcome.rows_deleted.values()):,} rows {said}; {sum(outcome.rows_left.values()):,} left"
        )
    if outcome.rows_left and not dry_run:
        raise click.ClickException(
            "rows came back while they were removed; stop the daemons and run it again"
        )


async def _count(settings: PurgeSettings, installation_id: int) -> dict[str, int]:
    pool = await _open(settings)
    try:
        async with pool.acquire() as connection:
            return await rows.count(connection, installation_id)
    finally:
        await pool.close()


async def _open(settings: PurgeSettings) -> Pool:
    pool = await database.open_pool(settings.database_url.value, size=1)
    try:
        async with pool.acquire() as connection:
            await database.check_schema(connection)
    except BaseException:
        await pool.close()
        raise
    return pool


async def _run(settings: PurgeSettings, installation_id: int, reason: str, *, dry_run: bool) -> Outcome:
    if dry_run:
        counted = await _count(settings, installation_id)
        return Outcome(
            installation_id=installation_id, rows_deleted=counted, rows_left=counted, triggers_dropped=0
        )
    pool = await _open(settings)
    try:
        bus = await Bus.connect(
            settings.nats_url.value, creds=settings.nats_creds, prefix=settings.nats_prefix, role="daemon"
        )
        try:
            return await purge_everywhere(pool, bus, installation_id, reason=reason)
        finally:
            await bus.close()
    except asyncpg.PostgresError as error:
        raise ConfigError([f"DATABASE_URL: the database failed ({type(error).__name__})"]) from None
    finally:
        await pool.close()


async def purge_everywhere(pool: Pool, bus: Bus, installation_id: int, *, reason: str) -> Outcome:
    """Purge rows, then triggers, then look again until nothing came back. Raises RowsLeft, BusUnavailable."""
    deleted: dict[str, int] = {}
    repositories: set[int] = set()
    dropped = 0
    for look in range(_LOOKS):
        async with pool.acquire() as connection, connection.transaction():
            done: Purged = await rows.purge(connection, installation_id, reason=reason)
        for table, count in done.rows.items():
            deleted[table] = deleted.get(table, 0) + count
        repositories.update(done.repositories)
        dropped += await bus.discard(triggers.subjects_of(installation_id, sorted(repositories)))
        if look and not done.rows:
            break
        await asyncio.sleep(_PAUSE_SECONDS)
    async with pool.acquire() as connection:
        left = await rows.count(connection, installation_id)
    return Outcome(
        installation_id=installation_id, rows_deleted=deleted, rows_left=left, triggers_dropped=dropped
    )
