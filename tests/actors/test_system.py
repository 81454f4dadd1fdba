"""The actor system on a real Postgres: who runs what, and what becomes of failures, freezes and crowds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from actors.partitioning import Partitioning
from actors.run import Actor, Busy, Run
from actors.system import ActorSystem
from graft.database import Pool
from graft.errors import PermanentError, TransientError
from graft.github import AppRefused, Call
from graft.store import partitions, work
from graft.store.partitions import LostPartition
from graft.store.work import Ask
from graft.triggers import partition_of

PARTITIONS = 8


class Wakes:
    """A bus for wake-ups within one process."""

    def __init__(self) -> None:
        self.handlers: list[Callable[[int], object]] = []

    async def subscribe_wakes(self, handler: Callable[[int], object]) -> None:
        self.handlers.append(handler)

    def wake(self, address: str) -> None:
        for handler in self.handlers:
            handler(partition_of(address, PARTITIONS))


class Scripted:
    """An actor that does what the test says, and remembers its runs."""

    def __init__(self, do: Callable[[Run], Awaitable[None]]) -> None:
        self.do = do
        self.runs: list[tuple[str, frozenset[str]]] = []

    async def run(self, run: Run) -> None:
        self.runs.append((run.address, run.needs))
        await self.do(run)


async def finish(run: Run) -> None:
    await run.finish(*run.needs)


@asynccontextmanager
async def running(
    pool: Pool,
    actor: Actor,
    *,
    holder: str = "me",
    wakes: Wakes | None = None,
    concurrency: int = 8,
    poll_seconds: float = 1.0,
) -> AsyncIterator[ActorSystem]:
    async with pool.acquire() as connection:
        await partitions.ensure(connection, PARTITIONS)
    system = ActorSystem(
        pool=pool,
        bus=wakes or Wakes(),
        actors={"pull": actor, "installation": actor},
        holder=holder,
        version="1",
        partitioning=Partitioning(PARTITIONS),
        concurrency=concurrency,
        poll_seconds=poll_seconds,
    )
    await system.start()
    try:
        yield system
    finally:
        await system.drain(seconds=2)


async def ask(pool: Pool, address: str = "pull.1.1", need: str = "intent", **fields: Any) -> None:
    facts = {"installation_id": 7, **fields}
    async with pool.acquire() as connection:
        await work.ask(
            connection,
            [
                Ask(
                    address=address,
                    need=need,
                    partition=partition_of(address, PARTITIONS),
                    asked_at=datetime.now(UTC),
                    **facts,
                )
            ],
        )


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait for a row to become what it should; the test's own time limit ends a wait in vain."""
    async with asyncio.timeout(20):
        while not await condition():
            await asyncio.sleep(0.02)


async def none_left(pool: Pool) -> bool:
    return bool(await pool.fetchval("SELECT count(*) = 0 FROM work WHERE dead_at IS NULL"))


async def test_due_work_is_done_once_and_gone(pool: Pool) -> None:
    actor = Scripted(finish)
    await ask(pool)
    await ask(pool, need="policy")
    async with running(pool, actor):
        await until(lambda: none_left(pool))
    assert actor.runs == [("pull.1.1", frozenset({"intent", "policy"}))]


async def test_a_wake_up_starts_work_without_waiting_for_the_next_look(pool: Pool) -> None:
    wakes, actor = Wakes(), Scripted(finish)
    async with running(pool, actor, wakes=wakes, poll_seconds=3600):
        await ask(pool)
        wakes.wake("pull.1.1")
        await until(lambda: none_left(pool))


async def test_an_address_never_runs_twice_at_once(pool: Pool) -> None:
    at_once, most = 0, 0

    async def slow(run: Run) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await ask(pool)  # asked for again while it is being done
        await asyncio.sleep(0.05)
        at_once -= 1
        await run.finish(*run.needs)
        if len(actor.runs) == 1:
            return
        await pool.execute("DELETE FROM work")

    wakes, actor = Wakes(), Scripted(slow)
    await ask(pool)
    async with running(pool, actor, wakes=wakes):
        await until(lambda: none_left(pool))
    assert most == 1
    assert len(actor.runs) == 2


@pytest.mark.parametrize(
    ("error", "attempts", "dead"),
    [
        (TransientError("no", reason="server_error"), 1, False),
        (RuntimeError("a bug"), 1, False),
        (Busy("later", reason="publishing", retry_after=60), 0, False),
        (PermanentError("never", reason="not_found"), 1, True),
    ],
)
async def test_what_becomes_of_a_failure(pool: Pool, error: Exception, attempts: int, dead: bool) -> None:
    async def fail(run: Run) -> None:
        raise error

    async def moved_on() -> bool:
        return bool(
            await pool.fetchval("SELECT count(*) FROM work WHERE due_at > now() OR dead_at IS NOT NULL")
        )

    await ask(pool)
    async with running(pool, Scripted(fail)):
        await until(moved_on)
    row = await pool.fetchrow("SELECT * FROM work")
    assert (row["attempts"], row["dead_at"] is not None) == (attempts, dead)
    if attempts:
        assert row["last_failure"] == {
            "error": type(error).__name__,
            "reason": getattr(error, "reason", None),
        }


async def test_the_retry_waits_as_long_as_github_asked_for(pool: Pool) -> None:
    async def fail(run: Run) -> None:
        raise TransientError("no", reason="server_error", retry_after=100)

    async def moved_on() -> bool:
        return bool(await pool.fetchval("SELECT count(*) FROM work WHERE due_at > now() + interval '90 s'"))

    await ask(pool)
    async with running(pool, Scripted(fail)):
        await until(moved_on)


async def test_when_the_app_is_refused_work_stops_and_counts_nothing(pool: Pool) -> None:
    async def refuse(run: Run) -> None:
        raise AppRefused(Call(method="GET", route="app", status=401))

    actor = Scripted(refuse)
    await ask(pool, "pull.1.1")
    async with running(pool, actor) as system:

        async def refused() -> bool:
            return system.refused is not None

        await until(refused)
        await ask(pool, "pull.1.2")
        await system._dispatch()
        assert "GITHUB_APP_PRIVATE_KEY" in (system.refused or "")
    assert [address for address, _ in actor.runs] == ["pull.1.1"]
    rows = await pool.fetch("SELECT attempts, due_at <= now() AS due FROM work")
    assert [(row["attempts"], row["due"]) for row in rows] == [(0, True)] * 2


async def test_work_that_an_actor_forgets_is_not_run_in_a_circle(pool: Pool) -> None:
    async def forget(run: Run) -> None:
        return

    async def counted() -> bool:
        return bool(await pool.fetchval("SELECT attempts = 1 FROM work"))

    actor = Scripted(forget)
    await ask(pool)
    async with running(pool, actor):
        await until(counted)
    assert len(actor.runs) == 1


async def test_two_replicas_share_and_a_drained_one_leaves_no_gap(pool: Pool) -> None:
    first, second = Scripted(finish), Scripted(finish)
    async with running(pool, first, holder="a") as a:
        assert len(a.held) == PARTITIONS
        async with running(pool, second, holder="b") as b:

            async def shared() -> bool:
                await a._keep_once()
                await b._keep_once()
                return len(a.held) == len(b.held) == PARTITIONS // 2

            await until(shared)
            for number in range(20):
                await ask(pool, f"pull.1.{number}")
            await until(lambda: none_left(pool))
            assert first.runs
            assert second.runs
        await a._keep_once()
        assert len(a.held) == PARTITIONS


async def test_a_holder_that_overslept_its_lease_writes_nothing(pool: Pool) -> None:
    outcome: list[str] = []

    async def oversleep(run: Run) -> None:
        # What another replica does once the lease has run out.
        await pool.execute("UPDATE partitions SET holder = 'other', epoch = epoch + 1")
        try:
            await run.finish(*run.needs)
        except LostPartition:
            outcome.append("lost")
            raise

    async def lost() -> bool:
        return outcome == ["lost"]

    await ask(pool)
    async with running(pool, Scripted(oversleep)):
        await until(lost)
    assert await pool.fetchval("SELECT attempts FROM work") == 0


async def test_whatever_runs_in_a_lost_partition_is_cancelled(pool: Pool) -> None:
    asleep = asyncio.Event()
    outcome: list[str] = []

    async def sleep(run: Run) -> None:
        asleep.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            outcome.append("cancelled")
            raise

    async def cancelled() -> bool:
        return outcome == ["cancelled"]

    await ask(pool)
    async with running(pool, Scripted(sleep)):
        await asleep.wait()
        await pool.execute("UPDATE partitions SET holder = 'other', epoch = epoch + 1")
        await until(cancelled)
    assert await pool.fetchval("SELECT attempts FROM work") == 0


async def test_a_newer_head_reaches_the_run_in_flight(pool: Pool) -> None:
    heard = asyncio.Event()

    async def wait_for_news(run: Run) -> None:
        run.head_sha = "old"
        if len(actor.runs) == 1:
            await asyncio.wait_for(run.superseded.wait(), 10)
            heard.set()
        await run.finish(*run.needs)

    wakes, actor = Wakes(), Scripted(wait_for_news)
    await ask(pool, head_sha="old")
    async with running(pool, actor, wakes=wakes) as system:

        async def started() -> bool:
            return bool(system.running)

        await until(started)
        await ask(pool, head_sha="new")
        wakes.wake("pull.1.1")
        await asyncio.wait_for(heard.wait(), 10)
        await until(lambda: none_left(pool))
    assert len(actor.runs) == 2


async def test_a_slow_installation_leaves_slots_to_others(pool: Pool) -> None:
    release = asyncio.Event()

    async def slow_for_seven(run: Run) -> None:
        if run.installation_id == 7:
            await release.wait()
        await run.finish(*run.needs)

    actor = Scripted(slow_for_seven)
    for number in range(50):
        await ask(pool, f"pull.1.{number}")
    async with running(pool, actor, concurrency=8) as system:

        async def crowded() -> bool:
            return len(system.running) == system.per_installation

        await until(crowded)
        await ask(pool, "pull.2.1", installation_id=8)

        async def other_done() -> bool:
            return bool(await pool.fetchval("SELECT count(*) = 0 FROM work WHERE installation_id = 8"))

        await until(other_done)
        release.set()
        await until(lambda: none_left(pool))
    assert sum(address.startswith("pull.1.") for address, _ in actor.runs) == 50
