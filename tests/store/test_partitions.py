"""Partitions: shared evenly, taken over when a lease runs out, and fenced by epochs."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from graft.database import Pool
from graft.store import partitions, work
from graft.store.partitions import Lease, LostPartition
from graft.triggers import partition_of

NOW = datetime(2026, 12, 1, tzinfo=UTC)


async def running(pool: Pool, *holders: str) -> None:
    async with pool.acquire() as connection:
        await partitions.ensure(connection, 8)
        for holder in holders:
            await partitions.announce(connection, holder, version="1", draining=False)


async def take(pool: Pool, holder: str) -> dict[int, int]:
    async with pool.acquire() as connection:
        return await partitions.take(connection, holder)


async def expire(pool: Pool, holder: str) -> None:
    """What three seconds of a frozen process do, without the three seconds."""
    async with pool.acquire() as connection:
        await connection.execute(
            "UPDATE partitions SET lease_until = now() - interval '1 second' WHERE holder = $1", holder
        )
        await connection.execute("DELETE FROM replicas WHERE holder = $1", holder)


async def test_the_database_decides_how_many_there_are(pool: Pool) -> None:
    async with pool.acquire() as connection:
        assert await partitions.ensure(connection, 8) == 8
        assert await partitions.ensure(connection, 64) == 8


async def test_replicas_share_evenly(pool: Pool) -> None:
    await running(pool, "a", "b", "c")
    shares = [await take(pool, holder) for holder in "abc"]
    assert sorted(len(share) for share in shares) == [2, 3, 3]
    assert sorted(p for share in shares for p in share) == list(range(8))


async def test_an_unannounced_replica_takes_nothing(pool: Pool) -> None:
    await running(pool, "a")
    assert await take(pool, "stranger") == {}


async def test_a_newcomer_gets_what_the_old_one_gives_back(pool: Pool) -> None:
    await running(pool, "a")
    assert len(await take(pool, "a")) == 8
    await running(pool, "a", "b")
    assert await take(pool, "b") == {}
    async with pool.acquire() as connection:
        surplus = await partitions.surplus(connection, "a")
        assert surplus == 4
        await partitions.give_back(connection, "a", [0, 1, 2, 3])
    assert sorted(await take(pool, "b")) == [0, 1, 2, 3]


async def test_an_expired_lease_is_taken_with_a_higher_epoch(pool: Pool) -> None:
    await running(pool, "a", "b")
    before = await take(pool, "a")
    await expire(pool, "a")
    after = await take(pool, "b")
    assert all(after[p] > epoch for p, epoch in before.items())


async def test_a_frozen_holder_is_refused_at_its_next_write(pool: Pool) -> None:
    await running(pool, "a", "b")
    [(partition, epoch), *_] = (await take(pool, "a")).items()
    lease = Lease(partition=partition, holder="a", epoch=epoch)
    async with pool.acquire() as connection, connection.transaction():
        await partitions.guard(connection, lease)
    await expire(pool, "a")
    await take(pool, "b")
    async with pool.acquire() as connection, connection.transaction():
        with pytest.raises(LostPartition):
            await partitions.guard(connection, lease)


async def test_a_draining_replica_counts_for_nothing(pool: Pool) -> None:
    await running(pool, "a", "b")
    async with pool.acquire() as connection:
        await partitions.announce(connection, "a", version="1", draining=True)
    assert len(await take(pool, "b")) == 8
    assert await take(pool, "a") == {}


async def test_more_partitions_get_their_share_of_the_work_and_every_lease_is_lost(pool: Pool) -> None:
    await running(pool, "a")
    held = await take(pool, "a")
    await ask(pool, *(f"pull.1.{n}" for n in range(50)))
    async with pool.acquire() as connection:
        before, moved = await partitions.resize(connection, 20, partition_of)
    assert before == 8
    where = await filed(pool)
    assert where == {address: partition_of(address, 20) for address in where}
    assert moved == sum(partition_of(address, 8) != partition for address, partition in where.items())
    for partition, epoch in held.items():
        async with pool.acquire() as connection, connection.transaction():
            with pytest.raises(LostPartition):
                await partitions.guard(connection, Lease(partition=partition, holder="a", epoch=epoch))
    assert sorted(await take(pool, "a")) == list(range(20))


async def test_a_partition_that_comes_back_repeats_no_epoch(pool: Pool) -> None:
    await running(pool, "a")
    first = await take(pool, "a")
    async with pool.acquire() as connection:
        await partitions.resize(connection, 2, partition_of)
        assert await partitions.count(connection) == 2
        await partitions.resize(connection, 8, partition_of)
    again = await take(pool, "a")
    assert all(again[partition] > epoch for partition, epoch in first.items())


async def test_resizing_waits_for_whoever_has_proved_a_lease(pool: Pool) -> None:
    await running(pool, "a")
    [(partition, epoch), *_] = (await take(pool, "a")).items()
    async with pool.acquire() as resizing:
        async with pool.acquire() as connection, connection.transaction():
            await partitions.guard(connection, Lease(partition=partition, holder="a", epoch=epoch))
            task = asyncio.create_task(partitions.resize(resizing, 16, partition_of))
            while not await pool.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
                await asyncio.sleep(0.01)
            assert not task.done()
            await partitions.guard(connection, Lease(partition=partition, holder="a", epoch=epoch))
        assert await task == (8, 0)


async def test_work_filed_beyond_the_last_partition_is_found(pool: Pool) -> None:
    await running(pool, "a")
    await ask(pool, "pull.1.1", count=1000)
    async with pool.acquire() as connection:
        assert await work.beyond(connection, 8) == ["pull.1.1"]
        assert await work.rehome(connection, {"pull.1.1": 3}) == 1
        assert await work.beyond(connection, 8) == []
    assert await filed(pool) == {"pull.1.1": 3}


async def ask(pool: Pool, *addresses: str, count: int = 8) -> None:
    """Work filed by somebody who believes in so many partitions."""
    async with pool.acquire() as connection:
        await work.ask(
            connection,
            [
                work.Ask(
                    address=one,
                    need=need,
                    partition=partition_of(one, count) | (count > 8) * 512,
                    asked_at=NOW,
                )
                for one in addresses
                for need in ("intent", "policy")
            ],
        )


async def filed(pool: Pool) -> dict[str, int]:
    rows = await pool.fetch("SELECT DISTINCT address, partition FROM work")
    found = {row["address"]: row["partition"] for row in rows}
    assert len(found) == len(rows), "all of an address's work is in one partition"
    return found
