"""Partitions: shared evenly, taken over when a lease runs out, and fenced by epochs."""

from __future__ import annotations

import pytest

from graft.database import Pool
from graft.store import partitions
from graft.store.partitions import Lease, LostPartition


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
