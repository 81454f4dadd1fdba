"""More and fewer partitions while everything runs: nothing is lost, nothing is done by two at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from actors.partitioning import Partitioning
from actors.run import Run
from actors.system import ActorSystem
from graft import control
from graft.cli.asking import Unanswered, asking
from graft.database import Pool
from graft.store import partitions, work
from graft.triggers import partition_of

from .conftest import MakeWorld
from .test_operator import CHANGE, broker_of, second
from .world import World

BEFORE = 8


class Wakes:
    async def subscribe_wakes(self, handler: object) -> None:
        """Nobody wakes anybody here: everything is found by looking."""


class Watched:
    """An actor that takes a moment, and counts who is at which address."""

    def __init__(self) -> None:
        self.at: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.together: set[str] = set()

    async def run(self, run: Run) -> None:
        self.at[run.address] += 1
        if self.at[run.address] > 1:
            self.together.add(run.address)
        try:
            await asyncio.sleep(0.005)
            await run.finish(*run.needs)
            self.done[run.address] += 1
        finally:
            self.at[run.address] -= 1


@asynccontextmanager
async def replica(pool: Pool, actor: Watched, name: str) -> AsyncIterator[ActorSystem]:
    async with pool.acquire() as connection:
        count = await partitions.ensure(connection, BEFORE)
    system = ActorSystem(
        pool=pool,
        bus=Wakes(),
        actors={"pull": actor},
        holder=name,
        version="1",
        partitioning=Partitioning(count),
        poll_seconds=0.02,
    )
    await system.start()
    try:
        yield system
    finally:
        await system.drain(seconds=5)


async def ask(pool: Pool, addresses: list[str], *, count: int) -> None:
    """Ask as somebody does who believes in so many partitions."""
    rows = [
        work.Ask(
            address=one,
            need="intent",
            partition=partition_of(one, count),
            asked_at=datetime.now(UTC),
            installation_id=index,
        )
        for index, one in enumerate(addresses)
    ]
    async with pool.acquire() as connection:
        await work.ask(connection, rows)


async def done(pool: Pool) -> None:
    async with asyncio.timeout(30):
        while await pool.fetchval("SELECT count(*) FROM work"):
            await asyncio.sleep(0.02)


async def test_two_replicas_go_on_while_partitions_come_and_go(pool: Pool) -> None:
    actor = Watched()
    addresses = [f"pull.1.{number}" for number in range(120)]
    async with replica(pool, actor, "a") as one, replica(pool, actor, "b") as two:
        for start, count in ((0, 20), (40, 3), (80, BEFORE)):
            await ask(pool, addresses[start : start + 40], count=one.partitioning.count)
            async with pool.acquire() as connection:
                await partitions.resize(connection, count, partition_of)
        await done(pool)
        async with asyncio.timeout(20):
            while sorted([*one.held, *two.held]) != list(range(BEFORE)) or not (one.held and two.held):
                await asyncio.sleep(0.05)
        assert (one.partitioning.count, two.partitioning.count) == (BEFORE, BEFORE)
    assert set(actor.done) == set(addresses)
    assert not actor.together


@pytest.mark.parametrize(("now", "believed"), [(4, 64), (64, 4)])
async def test_work_asked_for_under_another_count_is_moved_and_done(
    pool: Pool, now: int, believed: int
) -> None:
    actor = Watched()
    addresses = [f"pull.1.{number}" for number in range(60)]
    async with replica(pool, actor, "a"):
        async with pool.acquire() as connection:
            await partitions.resize(connection, now, partition_of)
        await ask(pool, addresses, count=believed)
        await done(pool)
    assert actor.done == Counter(dict.fromkeys(addresses, 1))


async def test_whoever_was_behind_moves_nothing(pool: Pool) -> None:
    """A replica that has not renewed since knows the wrong count; its lease is gone, and with it its say."""
    actor = Watched()
    async with replica(pool, actor, "a"):
        async with pool.acquire() as connection:
            await partitions.resize(connection, 64, partition_of)
        addresses = [f"pull.1.{number}" for number in range(60)]
        await ask(pool, addresses, count=64)
        async with asyncio.timeout(30):
            # It looks for work every 20 ms, for up to a second before it learns of the new count.
            while rows := await pool.fetch("SELECT address, partition FROM work"):
                assert all(row["partition"] == partition_of(row["address"], 64) for row in rows)
    assert set(actor.done) == set(addresses)
    assert not actor.together


async def test_an_operator_changes_the_number_under_load(make_world: MakeWorld) -> None:
    async with make_world() as graft, second(graft) as other, asking(broker_of(graft)) as asker:
        graft.commit("feature", CHANGE)
        path = graft.repository.git.path
        repositories = [graft.simulator.add_repository(f"octo{n}/demo", path) for n in range(12)]
        pulls = []
        for index, repository in enumerate(repositories):
            pulls.append(await graft.simulator.open_pull(repository, head="feature"))
            if index == 5:
                answer = await asker.ask(control.RESIZE, control.Resize(partitions=48))
                assert (answer.before, answer.partitions) == (32, 48)
        await settled(graft, other.system)
        assert [len(graft.comments(pull)) for pull in pulls] == [1] * 12
        async with asyncio.timeout(20):
            while {len(graft.daemon.system.held), len(other.system.held)} != {24}:
                await asyncio.sleep(0.05)
        assert (await asker.ask(control.STATUS, control.Nothing())).partitions == 48
        with pytest.raises(Unanswered, match="2 replicas work"):
            await asker.ask(control.RESIZE, control.Resize(partitions=1))


async def settled(graft: World, *others: ActorSystem) -> None:
    """What was being published when its partition went waits for its publish lease, is written again, and is looked
    at once more when GitHub's lists have caught up: half a minute."""
    async with asyncio.timeout(90):
        while True:
            await graft.settled(seconds=90)
            if not any(other.running for other in others):
                return
            await asyncio.sleep(0.05)
