"""Two replicas under load, one of them killed: nothing lost, nothing twice, and the other carries on at once."""

from __future__ import annotations

import asyncio

from proof.processes import serving, start

from .test_crashes import THREE, Stage, ours, stage

__all__ = ["stage"]

PULLS = 12


async def test_a_killed_replica_costs_neither_a_trigger_nor_a_second_comment(stage: Stage) -> None:
    # Each in an installation of its own: GitHub's write pace is not what is tested here.
    path = stage.repository.git.path
    repositories = [stage.simulator.add_repository(f"octo{n}/demo", path) for n in range(PULLS)]
    victim = await start(stage.variables)
    async with serving(stage.variables) as survivor:
        stage.send_to(survivor)
        await stage.until(lambda: shared(stage))
        pulls = []
        for index, repository in enumerate(repositories):
            pulls.append(await stage.simulator.open_pull(repository, head="feature"))
            if index == PULLS // 2:
                await victim.kill()
        killed_at = asyncio.get_running_loop().time()
        await stage.until(lambda: taken_over(stage))
        seconds = asyncio.get_running_loop().time() - killed_at
        print(f"all partitions taken over {seconds:.1f} s after the kill")
        await stage.simulator.drain()
        await stage.until(stage.settled)
        for repository, pull in zip(repositories, pulls, strict=True):
            assert len(ours(pull)) == 1
            assert sorted(run.name for run in repository.runs_at(pull.head_sha)) == sorted(THREE)
        known = await stage.pool.fetchval(
            "SELECT count(*) FROM webhook_deliveries WHERE event = 'pull_request'"
        )
        assert known == PULLS


async def shared(stage: Stage) -> bool:
    """Whether both replicas hold partitions."""
    return bool(
        await stage.pool.fetchval(
            "SELECT count(DISTINCT holder) = 2 FROM partitions WHERE lease_until > now()"
        )
    )


async def taken_over(stage: Stage) -> bool:
    """Whether one replica holds all of them, and its leases stand."""
    return bool(
        await stage.pool.fetchval(
            "SELECT count(DISTINCT holder) = 1 AND bool_and(lease_until > now()) FROM partitions"
        )
    )
