"""The connection pool, and the schema: created whole, upgraded in steps, checked at every start.

A fresh database gets `schema.sql`. An older one gets the numbered files in `graft/migrations` one after the
other, each in its own transaction, all under one advisory lock, so that two replicas starting together
migrate once. Code runs on its own schema version or on a newer one that still declares it compatible.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TypeAlias

import asyncpg
import msgspec

from graft.errors import ConfigError
from graft.logs import get_logger

log = get_logger("database")

SCHEMA_VERSION = 1

Connection: TypeAlias = (
    "asyncpg.Connection[asyncpg.Record] | asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"
)
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"

# The database is not there or not in the mood: the same statement may succeed later.
UNAVAILABLE = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    # What asyncpg says of a connection that broke in the middle of its protocol.
    asyncpg.InternalClientError,
    asyncpg.PostgresSystemError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.TransactionRollbackError,
    asyncpg.ReadOnlySQLTransactionError,
)

_HERE = Path(__file__).parent
_MIGRATIONS = _HERE / "migrations"
_CLOSE_SECONDS = 5.0
_LOCK = 0x67726166_74  # "graft"


async def open_pool(url: str, *, size: int = 10) -> Pool:
    """A pool whose connections read and write `jsonb` as Python values.

    Raises ConfigError naming DATABASE_URL when the server cannot be reached or refuses the credentials.
    """
    try:
        return await asyncpg.create_pool(
            url,
            min_size=1,
            max_size=size,
            init=_prepare,
            connection_class=_Connection,
            command_timeout=30,
            timeout=10,
        )
    except (OSError, asyncpg.PostgresError, TimeoutError, ValueError) as error:
        raise ConfigError([f"DATABASE_URL: cannot connect to Postgres ({type(error).__name__})"]) from None


async def close_pool(pool: Pool) -> None:
    """Close what is open, in a few seconds; a database that has gone needs no farewell."""
    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await pool.close()
    except UNAVAILABLE as error:
        pool.terminate()
        log.warning("database connections dropped", error=type(error).__name__)


class _Connection(asyncpg.Connection):  # type: ignore[misc]  # untyped
    """A connection that needs no clearing up between two borrowers.

    Nothing here sets a session variable, listens, or holds a cursor or a session's lock beyond its own block, and
    asyncpg's usual statement that resets all of them was a quarter of all statements for a new head.
    """

    def get_reset_query(self) -> str:
        return ""


async def _prepare(connection: Connection) -> None:
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        format="binary",
        encoder=lambda value: b"\x01" + msgspec.json.encode(value),
        decoder=lambda data: msgspec.json.decode(bytes(data)[1:]),
    )


async def migrate(connection: Connection, *, migrations: Path = _MIGRATIONS) -> int:
    """Bring the database to the newest version and return it; doing so again changes nothing.

    Raises asyncpg.PostgresError when a statement fails (that step is rolled back whole).
    """
    await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
    try:
        if await installed_version(connection) is None:
            async with connection.transaction():
                await connection.execute((_HERE / "schema.sql").read_text(encoding="utf-8"))
        current = await installed_version(connection)
        assert current is not None
        for version, path in _steps(migrations):
            if version > current:
                async with connection.transaction():
                    await connection.execute(path.read_text(encoding="utf-8"))
                current = version
        return current
    finally:
        await connection.execute("SELECT pg_advisory_unlock($1)", _LOCK)


def _steps(migrations: Path) -> list[tuple[int, Path]]:
    steps = []
    for path in sorted(migrations.glob("*.sql")):
        number = re.match(r"(\d{4})_", path.name)
        if number is None:
            raise ValueError(f"{path.name}: a migration is called NNNN_what.sql")
        steps.append((int(number[1]), path))
    return steps


async def installed_version(connection: Connection) -> int | None:
    """The schema's version, or `None` in a database without Graft's tables."""
    if await connection.fetchval("SELECT to_regclass('schema_version')") is None:
        return None
    version: int | None = await connection.fetchval("SELECT max(version) FROM schema_version")
    return version


async def prepare_schema(pool: Pool) -> None:
    """Migrate where the role may; otherwise check.

    Raises ConfigError with the command to run when the schema is missing, too old, or too new for this code.
    """
    async with pool.acquire() as connection:
        if await connection.fetchval("SELECT has_schema_privilege(current_schema(), 'CREATE')"):
            await migrate(connection)
        await check_schema(connection)


async def check_schema(connection: Connection) -> None:
    """Raise ConfigError unless this code may run on the schema as it stands."""
    version = await installed_version(connection)
    if version is None or version < SCHEMA_VERSION:
        found = "no schema" if version is None else f"schema version {version}"
        raise ConfigError(
            [
                f"DATABASE_URL: found {found}, need {SCHEMA_VERSION}; run `graft migrate` with a role that "
                "may create tables"
            ]
        )
    compatible_from = await connection.fetchval(
        "SELECT compatible_from FROM schema_version ORDER BY version DESC LIMIT 1"
    )
    if compatible_from > SCHEMA_VERSION:
        raise ConfigError(
            [
                f"DATABASE_URL: schema version {version} needs code for schema {compatible_from} or newer, "
                f"this is {SCHEMA_VERSION}; upgrade this replica"
            ]
        )
