"""A replica that ends in order keeps nobody waiting: not its partitions, and not the work that only waits in it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from actors.daemon import running
from actors.run import Run
from graft import embedded
from graft.cli.demo import settings_for
from graft.config import Settings
from graft.database import Pool
from graft.simulator import Simulator

from .test_system import Scripted, ask
from .test_system import running as system_running
from .world import World


async def test_a_run_that_waits_for_its_turn_is_given_up_and_its_rows_are_as_they_were(pool: Pool) -> None:
    waiting = asyncio.Event()

    async def wait(run: Run) -> None:
        run.say("waiting for a write permit", waits=True)
        waiting.set()
        await asyncio.Event().wait()

    async with system_running(pool, Scripted(wait)) as system:
        await ask(pool)
        await asyncio.wait_for(waiting.wait(), 20)
        async with asyncio.timeout(20):
            await system.drain(seconds=60)
    row = await pool.fetchrow("SELECT * FROM work")
    assert (row["attempts"], row["dead_at"]) == (0, None)
    assert await pool.fetchval("SELECT count(*) FROM partitions WHERE holder IS NOT NULL") == 0


async def test_a_run_in_the_middle_of_something_is_let_finish(pool: Pool) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def publish(run: Run) -> None:
        run.say("waiting for a write permit", waits=True)
        run.say("publishing")
        begun.set()
        await go_on.wait()
        await run.finish(*run.needs)

    async with system_running(pool, Scripted(publish)) as system:
        await ask(pool)
        await asyncio.wait_for(begun.wait(), 20)
        draining = asyncio.create_task(system.drain(seconds=20))
        await asyncio.sleep(0)
        go_on.set()
        await draining
    assert await pool.fetchval("SELECT count(*) FROM work") == 0


async def test_the_others_are_told_when_partitions_are_free(graft: World) -> None:
    settings = graft.daemon.services.settings
    assert isinstance(settings, Settings)
    offered = asyncio.Event()
    await graft.daemon.services.bus.subscribe_offers(offered.set)
    async with running(settings) as other:
        async with asyncio.timeout(20):
            while not other.system.held:
                await asyncio.sleep(0.02)
        offered.clear()
    await asyncio.wait_for(offered.wait(), 20)
    async with asyncio.timeout(20):
        while len(graft.daemon.system.held) < graft.daemon.services.settings.partitions:
            await asyncio.sleep(0.02)


async def test_a_replica_whose_database_has_gone_ends_in_order(
    tmp_path: Path, nats_url: str, bus_prefix: str
) -> None:
    async with Simulator() as simulator, embedded.postgres_server(tmp_path) as postgres:
        settings = settings_for(simulator, nats_url, postgres.url(), GRAFT_NATS_PREFIX=bus_prefix)
        async with asyncio.timeout(60):
            async with running(settings):
                postgres.kill()
