"""Processes die and sleep anywhere; the pull request ends with one comment and one set of checks all the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from graft.bus import Bus
from graft.database import Pool
from graft.simulator import Comment, Pull, Repository, Simulator
from graft.simulator.demo_repository import RepositoryBuilder
from graft.streams import StreamSettings
from proof.processes import Process, serving, start

from .conftest import MakeWorld
from .world import MAIN, World, environment

CREATE = "POST /repos/{owner}/{repo}/issues/{number}/comments"
CREATE_RUN = "POST /repos/{owner}/{repo}/check-runs"
READ_PULL = "GET /repos/{owner}/{repo}/pulls/{number}"
THREE = {"graft/intent", "graft/policy", "graft/provenance"}
CHANGE = {"src/app.py": "def main():\n    return 2\n"}


class Stage:
    """A simulated GitHub and the environment of daemons that are started and killed by the test."""

    def __init__(
        self,
        simulator: Simulator,
        repository: Repository,
        variables: dict[str, str],
        pool: Pool,
        bus: Bus,
    ) -> None:
        self.bus = bus
        self.simulator = simulator
        self.repository = repository
        self.variables = variables
        self.pool = pool

    def send_to(self, process: Process) -> None:
        self.simulator.app.webhook_url = f"{process.url}/webhooks/github"

    async def open(self) -> Pull:
        return await self.simulator.open_pull(self.repository, head="feature")

    async def until(self, condition: Callable[[], bool | Awaitable[bool]], seconds: float = 45) -> None:
        async with asyncio.timeout(seconds):
            while True:
                found = condition()
                if found if isinstance(found, bool) else await found:
                    return
                await asyncio.sleep(0.05)

    async def settled(self) -> bool:
        """Whether everything that was sent is taken, and nothing is left to do."""
        if (await self.bus.backlog()).messages:
            return False
        left = await self.pool.fetchval(
            "SELECT count(*) FROM work WHERE dead_at IS NULL AND address <> 'lead'"
        )
        known = await self.pool.fetchval("SELECT count(*) FROM webhook_deliveries")
        return bool(known and not left)

    def shows_once(self, pull: Pull) -> None:
        """One comment with the last head, and each check once."""
        [comment] = ours(pull)
        assert pull.head_sha[:7] in comment.body
        runs = self.repository.runs_at(pull.head_sha)
        assert sorted(run.name for run in runs) == sorted(THREE)


def ours(pull: Pull) -> list[Comment]:
    return [c for c in pull.issue.comments if c.body.startswith("<!-- graft:managed-comment")]


@pytest.fixture
async def stage(
    tmp_path: Path, database_url: str, nats_url: str, bus_prefix: str, pool: Pool
) -> AsyncIterator[Stage]:
    async with Simulator() as simulator:
        builder = RepositoryBuilder(path=tmp_path / "demo.git")
        base = builder.commit("main", MAIN, message="Start")
        builder.commit("feature", CHANGE, parent=base)
        repository = simulator.add_repository("octo/demo", builder.path)
        variables = environment(simulator, database_url, nats_url, bus_prefix)
        bus = await Bus.connect(nats_url, prefix=bus_prefix, role="test")
        await bus.ensure_stream(StreamSettings(max_bytes=int(variables["GRAFT_STREAM_MAX_BYTES"])))
        yield Stage(simulator, repository, variables, pool, bus)
        await bus.close()


async def test_a_kill_between_the_202_and_the_publication(stage: Stage) -> None:
    stage.simulator.faults.hang(READ_PULL)
    process = await start(stage.variables)
    stage.send_to(process)
    pull = await stage.open()
    await stage.simulator.drain()
    assert [d.status_code for d in stage.simulator.deliveries if d.event == "pull_request"] == [202]
    await stage.until(lambda: stage.simulator.requests.count(method="GET") > 0 or has_work(stage.pool))
    await process.kill()
    stage.simulator.faults.clear()
    assert ours(pull) == []
    async with serving(stage.variables):
        await stage.until(stage.settled)
        stage.shows_once(pull)


async def has_work(pool: Pool) -> bool:
    return bool(await pool.fetchval("SELECT count(*) FROM work WHERE address <> 'lead'"))


@pytest.mark.parametrize("step", [CREATE, CREATE_RUN])
async def test_a_kill_between_a_create_and_its_commit(stage: Stage, step: str) -> None:
    stage.simulator.faults.hang(step, after=True)
    process = await start(stage.variables)
    stage.send_to(process)
    pull = await stage.open()

    def stored() -> bool:
        return bool(ours(pull)) if step == CREATE else bool(stage.repository.runs_at(pull.head_sha))

    await stage.until(stored)
    await process.kill()
    stage.simulator.faults.clear()
    async with serving(stage.variables):
        await stage.until(stage.settled)
        stage.shows_once(pull)


async def test_a_frozen_replica_is_taken_over_and_does_no_lasting_harm(stage: Stage) -> None:
    stage.simulator.faults.hang(CREATE, after=True)
    frozen = await start(stage.variables)
    stage.send_to(frozen)
    pull = await stage.open()
    await stage.until(lambda: bool(ours(pull)))
    frozen.freeze()
    stage.simulator.faults.clear()
    async with serving(stage.variables) as other:
        stage.send_to(other)
        await stage.until(stage.settled)
        stage.shows_once(pull)
        frozen.thaw()
        # Whatever the woken one still believes, it finds its lease gone and leaves or repairs.
        await stage.until(lambda: holders(stage.pool))
        await stage.until(stage.settled)
        stage.shows_once(pull)
        await frozen.kill()


async def holders(pool: Pool) -> bool:
    """Whether the woken replica is back among the running ones."""
    return bool(await pool.fetchval("SELECT count(*) >= 2 FROM replicas WHERE seen_until > now()"))


async def test_a_drained_daemon_exits_cleanly_and_gives_its_partitions_back(stage: Stage) -> None:
    process = await start(stage.variables)
    stage.send_to(process)
    pull = await stage.open()
    await stage.until(stage.settled)
    assert await process.terminate() == 0
    stage.shows_once(pull)
    assert await stage.pool.fetchval("SELECT count(*) FROM partitions WHERE holder IS NOT NULL") == 0
    assert await stage.pool.fetchval("SELECT count(*) FROM replicas") == 0


async def test_a_create_that_answers_504_after_storing_leaves_one_comment(graft: World) -> None:
    graft.simulator.faults.fail_after(CREATE)
    graft.commit("feature", CHANGE)
    pull = await graft.open()
    await graft.hurried()
    assert len(graft.comments(pull)) == 1
    assert set(graft.checks(pull)) == THREE


async def test_of_two_comments_that_a_lagging_list_caused_the_first_stays(graft: World) -> None:
    graft.simulator.faults.fail_after(CREATE)
    graft.commit("feature", CHANGE)
    tip = graft.builder.tip("feature")
    assert tip is not None
    pull = await graft.open()
    graft.simulator.faults.lag_comments(pull.issue, reads=1)
    await graft.hurried()
    [left] = graft.comments(pull)
    assert left.id == min(c.id for c in pull.issue.comments)


async def test_two_daemons_and_a_crowd_of_triggers_make_one_comment(
    stage: Stage, make_world: MakeWorld
) -> None:
    async with serving(stage.variables) as one, serving(stage.variables):
        stage.send_to(one)
        pull = await stage.open()
        for number in range(6):
            await stage.simulator.edit(pull, title=f"Title {number}")
            await stage.simulator.label(pull, f"label-{number}")
        await stage.simulator.drain()
        await stage.until(stage.settled)
        stage.shows_once(pull)


async def test_a_run_that_is_ended_while_it_publishes_leaves_a_repair(graft: World) -> None:
    """Its replica was stopped until it had lost its partition: what it sent may stand, and nobody else knows."""
    graft.simulator.faults.hang(CREATE, after=True)
    graft.commit("feature", CHANGE)
    pull = await graft.open()
    async with asyncio.timeout(20):
        while not graft.comments(pull):
            await asyncio.sleep(0.01)
    token = await graft.pool.fetchval("SELECT publish_token FROM changes")
    await graft.pool.execute("UPDATE partitions SET epoch = epoch + 1")
    async with asyncio.timeout(20):
        while not await graft.pool.fetchval("SELECT count(*) FROM work WHERE need = 'repair'"):
            await asyncio.sleep(0.01)
    assert token is not None
    assert await graft.pool.fetchval("SELECT publish_token FROM changes") == token, (
        "nobody else has published"
    )
    graft.simulator.faults.release()
    await graft.hurried()
    assert len(graft.comments(pull)) == 1
    assert set(graft.checks(pull)) == THREE


async def test_a_later_repair_waits_although_one_was_due(graft: World) -> None:
    """A look that made a comment itself looks again when the list has caught up, and not at once."""
    graft.commit("feature", CHANGE)
    pull = await graft.open()
    await graft.settled()
    graft.simulator.world.comments.clear()
    pull.issue.comments.clear()
    services, installation = graft.daemon.services, graft.repository.installation
    assert installation is not None
    ask = services.ask(
        f"pull.{graft.repository.id}.{pull.number}",
        "repair",
        installation_id=installation.id,
        repository_id=graft.repository.id,
    )
    await services.ask_now(ask)
    async with asyncio.timeout(20):
        while not graft.comments(pull) or graft.daemon.system.running:
            await asyncio.sleep(0.01)
    waits = await graft.pool.fetchval(
        "SELECT extract(epoch FROM due_at - now())::float8 FROM work WHERE need = 'repair'"
    )
    assert waits is not None
    assert waits > 10
