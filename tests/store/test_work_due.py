"""Which work is begun next: fair to installations, and cheap however long the queue of one of them is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from graft.database import Connection, Pool
from graft.store import work
from graft.store.work import NEEDS_AT_ONCE, Ask

NOW = datetime.now(UTC)


async def put(connection: Connection, *places: tuple[int, str, str], **fields: Any) -> None:
    """Rows of (installation, address, need), all due."""
    asks = [
        Ask(address=address, need=need, partition=0, asked_at=NOW, installation_id=one, **fields)
        for one, address, need in places
    ]
    await work.ask(connection, asks)


async def due(connection: Connection, *, share: int = 4, limit: int = 16) -> list[tuple[int, str]]:
    found = await work.due(connection, [0], running=[], per_installation=share, limit=limit)
    return [(one.installation_id, one.address) for one in found]


async def test_the_longest_waiting_come_first_however_many_installations_there_are(pool: Pool) -> None:
    async with pool.acquire() as connection:
        for one in range(100):
            await put(connection, (one, f"pull.{one}.1", "intent"))
        await connection.execute(
            "UPDATE work SET due_at = now() - (installation_id + 1) * interval '1 minute'"
        )
        found = await due(connection)
    assert found == [(one, f"pull.{one}.1") for one in range(99, 83, -1)]


async def test_an_address_with_very_many_needs_is_offered_and_does_not_hide_other_installations(
    pool: Pool,
) -> None:
    async with pool.acquire() as connection:
        await put(
            connection, *((7, "repository.1", f"rerun:all:{n:040x}") for n in range(20 * NEEDS_AT_ONCE))
        )
        await put(connection, (7, "pull.1.1", "intent"), (8, "pull.2.1", "intent"))
        found = await due(connection)
        assert (7, "repository.1") in found
        assert (8, "pull.2.1") in found
        [first] = await work.due(
            connection, [0], running=["repository.1", "pull.2.1"], per_installation=4, limit=16
        )
    assert first.address == "pull.1.1", "once it runs, the next one is offered"


async def test_long_queues_of_suspended_installations_keep_nobody_from_the_places(pool: Pool) -> None:
    async with pool.acquire() as connection:
        for one in range(1, 41):
            await connection.execute("INSERT INTO installations (id, suspended_at) VALUES ($1, now())", one)
            await put(connection, *((one, f"pull.{one}.{n}", "intent") for n in range(5)))
        await put(connection, (50, "pull.50.1", "intent"))
        assert await due(connection) == [(50, "pull.50.1")]
        await put(connection, (3, "installation.3", "sync"))
        assert set(await due(connection)) == {(50, "pull.50.1"), (3, "installation.3")}


async def test_the_newest_head_asked_for_is_the_one_that_is_named(pool: Pool) -> None:
    async with pool.acquire() as connection:
        await put(connection, (7, "pull.1.1", "policy"), head_sha="a" * 40)
        await put(connection, (7, "pull.1.1", "state"))
        [found] = await work.due(connection, [0], running=[], per_installation=4, limit=16)
    assert found.head_sha == "a" * 40


async def test_a_long_queue_is_not_read_to_its_end(pool: Pool) -> None:
    """By the server's own count of rows that the inner step returns; the queue itself is only counted."""
    async with pool.acquire() as connection:
        await put(
            connection, *((7, f"pull.1.{n}", need) for n in range(400) for need in ("intent", "policy"))
        )
        await put(connection, (8, "pull.2.1", "intent"))
        await connection.execute("ANALYZE work")
        before = await scanned(connection)
        for _ in range(10):
            assert (8, "pull.2.1") in await due(connection)
        per_call = (await scanned(connection) - before) / 10
    assert 0 < per_call < 2 * NEEDS_AT_ONCE * 4 + 10


async def scanned(connection: Connection) -> int:
    """Rows fetched by way of the index on an installation's queue."""
    await connection.execute("SELECT pg_stat_force_next_flush()")
    found: int = await connection.fetchval(
        "SELECT coalesce(idx_tup_fetch, 0) FROM pg_stat_user_indexes WHERE indexrelname = 'work_installation'"
    )
    return found
