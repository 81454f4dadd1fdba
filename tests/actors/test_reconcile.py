"""The sweep that finds what nobody asked for any more: open pull requests whose head has no finished card."""

from __future__ import annotations

import asyncio

from graft.testing import agreeable_model

from .conftest import MakeWorld
from .world import World

CHANGE = {"src/app.py": "def main():\n    return 2\n"}


async def sweep(graft: World) -> None:
    services = graft.daemon.services
    before = await graft.pool.fetchval("SELECT ask_seq FROM work WHERE need = 'reconcile'")
    await services.ask_now(services.ask("lead", "reconcile", installation_id=0))
    async with asyncio.timeout(30):
        while await graft.pool.fetchval(
            "SELECT ask_seq = $1 OR due_at <= now() FROM work WHERE need = 'reconcile'", before
        ):
            await asyncio.sleep(0.02)


async def test_a_head_without_a_finished_card_and_without_work_gets_both_in_the_same_comment(
    make_world: MakeWorld,
) -> None:
    async with make_world(model=agreeable_model()) as graft:
        graft.commit("feature", CHANGE)
        pull = await graft.open()
        await graft.settled()
        [comment] = graft.comments(pull)
        finished = comment.body
        # As rows restored from the middle of a publication: the change is known, its comment and card are not.
        await graft.pool.execute("DELETE FROM intent_cards")
        await graft.pool.execute("DELETE FROM check_runs")
        await graft.pool.execute("UPDATE changes SET graft_comment_id = NULL")
        comment.body = comment.body.replace("Refuses coupons", "Says something old: refuses coupons")
        await sweep(graft)
        await graft.settled()
        assert [one.id for one in graft.comments(pull)] == [comment.id]
        assert graft.comment(pull) == finished
        assert set(graft.checks(pull)) == {"graft/intent", "graft/policy", "graft/provenance"}


async def test_what_is_finished_or_closed_is_left_alone(make_world: MakeWorld) -> None:
    async with make_world(model=agreeable_model()) as graft:
        for branch in ("done", "closed"):
            graft.commit(branch, CHANGE)
        done, closed = await graft.open("done"), await graft.open("closed")
        await graft.settled()
        await graft.simulator.close(closed)
        await graft.settled()
        await graft.pool.execute(
            "DELETE FROM intent_cards WHERE change_id IN (SELECT id FROM changes WHERE state = 'closed')"
        )
        reads = len(graft.simulator.requests)
        await sweep(graft)
        await graft.settled()
        routes = {record.route for record in list(graft.simulator.requests)[reads:]}
        assert not any("/pulls/" in route for route in routes)
        assert len(graft.comments(done)) == len(graft.comments(closed)) == 1
