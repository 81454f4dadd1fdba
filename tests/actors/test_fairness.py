"""One installation in trouble, and what others notice of it: nothing. Judged by what happens first, never by time."""

from __future__ import annotations

import asyncio
import time

import pytest

from graft.simulator import Comment, Installation, Pull, Repository
from graft.testing import agreeable_model

from .conftest import MakeWorld
from .world import World


def commits(graft: World, count: int) -> list[str]:
    """As many heads, each of its own."""
    return [
        graft.builder.commit(f"work-{n}", {"src/app.py": f"def main():\n    return {n}\n"}, parent=start)
        for start in [graft.builder.tip("main")]
        for n in range(count)
    ]


async def crowd(graft: World, heads: list[str], *, of: Installation) -> list[Pull]:
    """Pull requests of one installation, all at once."""
    repository = graft.simulator.add_repository(
        f"{of.account.login}/crowded", graft.repository.git.path, installation=of
    )
    pulls = [await graft.simulator.open_pull(repository, head=head) for head in heads]
    await graft.simulator.drain()
    return pulls


async def published(graft: World, repository: Repository, head: str) -> Comment:
    """Open a pull request and wait for its finished comment."""
    final = asyncio.Event()

    def hear(name: str, payload: dict[str, object]) -> None:
        if name == "published" and payload["final"] and payload["repository_id"] == repository.id:
            final.set()

    await graft.daemon.services.bus.subscribe_signals(hear)
    await graft.daemon.services.bus.client.flush()
    pull = await graft.simulator.open_pull(repository, head=head)
    async with asyncio.timeout(45):
        await final.wait()
    [comment] = graft.comments(pull)
    return comment


async def most_running(graft: World, installation: Installation) -> int:
    """How many runs of an installation there were at a time, until cancelled."""
    most = 0
    try:
        while True:
            now = [
                e for e in graft.daemon.system.running.values() if e.due.installation_id == installation.id
            ]
            most = max(most, len(now))
            await asyncio.sleep(0.005)
    except asyncio.CancelledError:
        return most


@pytest.mark.parametrize("trouble", ["slow", "limited"])
async def test_an_installation_in_trouble_holds_up_nobody_else(make_world: MakeWorld, trouble: str) -> None:
    async with make_world(model=agreeable_model(), GRAFT_CONCURRENCY="8") as graft:
        heads = commits(graft, 20)
        loud = graft.simulator.add_installation("loud")
        if trouble == "slow":
            graft.simulator.faults.installation_latency[loud.id] = 30.0
        else:
            graft.simulator.faults.primary_limit(loud, reset_at=time.time() + 3_600)
        pulls = await crowd(graft, heads, of=loud)
        most = asyncio.create_task(most_running(graft, loud))
        await published(graft, graft.repository, heads[0])
        most.cancel()
        assert await most <= 2, "a quarter of the places, however many wait"
        assert [graft.comments(pull) for pull in pulls] == [[] for _ in pulls], (
            "none of the others came first"
        )
        graft.simulator.faults.clear()


async def test_a_long_queue_reads_no_more_than_it_may_write(make_world: MakeWorld) -> None:
    """Else an hour's requests would go into reading what cannot be written before the next."""
    async with make_world(GRAFT_CONCURRENCY="64") as graft:
        loud = graft.simulator.add_installation("loud")
        count = 60
        await crowd(graft, commits(graft, count), of=loud)
        async with asyncio.timeout(45):
            while await ready(graft, loud):
                await asyncio.sleep(0.05)
        reads = [r for r in graft.simulator.requests if r.installation_id == loud.id and r.method == "GET"]
        looked_at = {record.path for record in reads if record.path.rpartition("/")[2].isdecimal()}
        assert len(looked_at) < count / 2
        # Those who have to wait do not come again all at once.
        due = await graft.pool.fetch(
            "SELECT DISTINCT due_at FROM work WHERE installation_id = $1 AND need = 'intent'", loud.id
        )
        assert len(due) > count / 3


async def ready(graft: World, installation: Installation) -> bool:
    """Whether something of an installation can be begun at once."""
    found: bool = await graft.pool.fetchval(
        """
        SELECT EXISTS (SELECT FROM work WHERE installation_id = $1 AND due_at <= now() AND dead_at IS NULL
                          AND NOT address = ANY($2::text[]))
        """,
        installation.id,
        list(graft.daemon.system.running),
    )
    return found
