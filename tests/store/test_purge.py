"""A purge covers every table there is, and leaves nothing of one installation and everything of another."""

from __future__ import annotations

import asyncpg
import pytest

from graft.database import Connection, Pool
from graft.store import installations, purge
from graft.store.purge import COVERED, KEPT, RowsLeft


async def tables(connection: Connection) -> set[str]:
    rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
    return {row["tablename"] for row in rows}


async def test_every_table_is_covered_or_kept_for_a_reason(pool: Pool) -> None:
    async with pool.acquire() as connection:
        found = await tables(connection)
    assert found == COVERED.keys() | KEPT.keys(), "a new table belongs into graft/store/purge.py"
    assert not COVERED.keys() & KEPT.keys()
    assert all(KEPT.values())


async def test_a_table_without_a_direct_deletion_goes_with_the_installation(pool: Pool) -> None:
    """Follow the foreign keys in the catalogue: each must cascade from `installations`, table by table."""
    async with pool.acquire() as connection:
        edges = await connection.fetch(
            """
            SELECT conrelid::regclass::text AS child, confrelid::regclass::text AS parent
              FROM pg_constraint WHERE contype = 'f' AND confdeltype = 'c'
            """
        )
    reached = {"installations"}
    for _ in edges:
        reached |= {edge["child"] for edge in edges if edge["parent"] in reached}
    assert COVERED.keys() - reached == set(purge.WITHOUT_KEY)


async def test_a_table_with_an_installation_column_is_never_kept(pool: Pool) -> None:
    async with pool.acquire() as connection:
        rows = await connection.fetch(
            """
            SELECT table_name FROM information_schema.columns
             WHERE table_schema = current_schema() AND column_name IN ('installation_id', 'repository_id')
            """
        )
    assert {row["table_name"] for row in rows} & KEPT.keys() == {"pilot_purges"}


async def fill(connection: Connection, installation_id: int, repository_id: int) -> None:
    await installations.ensure(connection, installation_id, repository_id, f"octo/r{repository_id}")
    await connection.execute(
        """
        INSERT INTO work (address, need, partition, installation_id, repository_id, asked_at)
        VALUES ($1, 'intent', 3, $2, $3, now()), ($4, 'sync', 4, 0, NULL, now())
        """,
        f"pull.{repository_id}.1",
        installation_id,
        repository_id,
        f"installation.{installation_id}",
    )
    await connection.execute(
        """
        INSERT INTO webhook_deliveries (delivery_id, event, installation_id, status, received_at)
        VALUES ($1, 'push', $2, 'accepted', now())
        """,
        f"delivery {installation_id}",
        installation_id,
    )


async def test_another_installation_keeps_everything(pool: Pool) -> None:
    async with pool.acquire() as connection:
        await fill(connection, 7, 70)
        await fill(connection, 8, 80)
        before = await purge.count(connection, 8)
        async with connection.transaction():
            done = await purge.purge(connection, 7, reason="test")
        assert await purge.count(connection, 7) == {}
        assert await purge.count(connection, 8) == before
    assert done.repositories == (70,)
    assert done.rows == {"installations": 1, "repositories": 1, "work": 2, "webhook_deliveries": 1}


async def test_purging_again_finds_nothing_and_records_nothing(pool: Pool) -> None:
    async with pool.acquire() as connection:
        await fill(connection, 7, 70)
        for _ in range(3):
            async with connection.transaction():
                await purge.purge(connection, 7, reason="test")
        records = await connection.fetch("SELECT installation_id, reason, rows_deleted FROM pilot_purges")
    assert [(r["installation_id"], r["reason"], r["rows_deleted"]["work"]) for r in records] == [
        (7, "test", 2)
    ]


async def test_an_unknown_installation_is_recorded_so_that_late_triggers_are_dropped(pool: Pool) -> None:
    async with pool.acquire() as connection:
        async with connection.transaction():
            await purge.purge(connection, 99, reason="test")
        assert await purge.is_purged(connection, 99)


async def test_whoever_works_for_it_loses_the_partition(pool: Pool) -> None:
    async with pool.acquire() as connection:
        await connection.execute(
            "INSERT INTO partitions (partition, epoch) SELECT p, 5 FROM generate_series(1, 6) p"
        )
        await fill(connection, 7, 70)
        async with connection.transaction():
            await purge.purge(connection, 7, reason="test")
        bumped = await connection.fetch("SELECT partition FROM partitions WHERE epoch = 6 ORDER BY 1")
    assert [row["partition"] for row in bumped] == [3, 4]


async def test_rows_that_stay_undo_the_purge(pool: Pool) -> None:
    """A table whose rows are not deleted with the others (here: a rule refuses it) must not pass unnoticed."""
    async with pool.acquire() as connection:
        await fill(connection, 7, 70)
        await connection.execute("CREATE RULE stay AS ON DELETE TO webhook_deliveries DO INSTEAD NOTHING")
        with pytest.raises(RowsLeft) as caught:
            async with connection.transaction():
                await purge.purge(connection, 7, reason="test")
        assert caught.value.tables == ["webhook_deliveries"]
        assert (await purge.count(connection, 7))["work"] == 2
        assert not await purge.is_purged(connection, 7)


async def test_what_is_due_for_a_purge(pool: Pool) -> None:
    async with pool.acquire() as connection:
        for number in (1, 2, 3, 4):
            await installations.ensure(connection, number, number * 10, f"octo/r{number}")
        await connection.execute(
            "UPDATE installations SET deleted_at = now() - interval '31 days' WHERE id = 1"
        )
        await connection.execute(
            "UPDATE installations SET deleted_at = now() - interval '29 days' WHERE id = 2"
        )
        async with connection.transaction():
            await purge.purge(connection, 4, reason="test")
        assert await purge.due(connection, after_days=30) == [1]
        assert await purge.due(connection, after_days=0) == [1, 2]
        await fill(connection, 4, 40)
        assert await purge.due(connection, after_days=30) == [1, 4], "rows came late for a purged one"


async def test_counting_names_no_table_that_is_not_there(pool: Pool) -> None:
    async with pool.acquire() as connection:
        try:
            assert await purge.count(connection, 1) == {}
        except asyncpg.UndefinedTableError as error:
            pytest.fail(f"{error}")
