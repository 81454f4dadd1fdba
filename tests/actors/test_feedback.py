"""Reviewers rate cards with reactions and buttons; re-runs are bounded; everything is confirmed through the API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from graft.simulator import CheckRun, Pull
from graft.testing import FakeModel, agreeable_model
from graft.triggers import pull_address

from .conftest import MakeWorld
from .world import World

CHANGE = {"src/app.py": "def main():\n    return 2\n"}


@pytest.fixture
def model() -> FakeModel:
    return agreeable_model()


@pytest.fixture
async def rated(make_world: MakeWorld, model: FakeModel) -> AsyncIterator[tuple[World, Pull]]:
    """A pull request by `ann` with a card."""
    async with make_world(model=model) as graft:
        graft.commit("feature", CHANGE)
        pull = await graft.open(author="ann")
        await graft.settled()
        yield graft, pull


async def poll(graft: World, pull: Pull) -> None:
    """What the feedback sweep asks for."""
    services = graft.daemon.services
    address = pull_address(graft.repository.id, pull.number)
    assert graft.repository.installation is not None
    await services.ask_now(
        services.ask(address, "reactions", installation_id=graft.repository.installation.id)
    )
    await graft.settled()


async def votes(graft: World) -> list[tuple[str, str, str, bool]]:
    rows = await graft.pool.fetch(
        """
        SELECT user_login, verdict, source, is_pr_author FROM intent_feedback WHERE withdrawn_at IS NULL
         ORDER BY user_login, source
        """
    )
    return [tuple(row) for row in rows]


def intent_run(graft: World, pull: Pull) -> CheckRun:
    [run] = [run for run in graft.repository.runs_at(pull.head_sha) if run.name == "graft/intent"]
    return run


async def test_reactions_count_for_the_card_on_display(rated: tuple[World, Pull]) -> None:
    graft, pull = rated
    [comment] = graft.comments(pull)
    graft.simulator.react(comment, "+1", user="rev")
    graft.simulator.react(comment, "-1", user="ann")
    graft.simulator.react(comment, "heart", user="fan")
    graft.simulator.react(comment, "+1", user="robot[bot]")
    await poll(graft, pull)
    assert await votes(graft) == [("ann", "wrong", "reaction", True), ("rev", "accurate", "reaction", False)]
    graft.simulator.unreact(comment, "+1", user="rev")
    await poll(graft, pull)
    assert await votes(graft) == [("ann", "wrong", "reaction", True)]


async def test_the_sweep_asks_every_commented_change(rated: tuple[World, Pull]) -> None:
    graft, pull = rated
    [comment] = graft.comments(pull)
    graft.simulator.react(comment, "+1", user="rev")
    await graft.pool.execute("UPDATE work SET due_at = now() WHERE need = 'feedback'")
    async with asyncio.timeout(20):
        while not await votes(graft):
            await asyncio.sleep(0.05)
    assert await votes(graft) == [("rev", "accurate", "reaction", False)]


async def test_a_button_votes_for_the_card_that_its_check_carries(rated: tuple[World, Pull]) -> None:
    graft, pull = rated
    run = intent_run(graft, pull)
    assert {action["identifier"] for action in run.actions} == {"card-accurate", "card-wrong"}
    graft.simulator.press_button(run.id, "card-wrong", user="rev")
    await graft.settled()
    graft.simulator.press_button(run.id, "card-accurate", user="rev")
    graft.simulator.press_button(run.id, "card-accurate", user="helper[bot]")
    await graft.settled()
    assert await votes(graft) == [("rev", "accurate", "button", False)]
    assert await graft.pool.fetchval("SELECT count(*) FROM pending_votes") == 0
    card = await graft.pool.fetchval("SELECT card_id FROM intent_feedback")
    assert str(card) == run.external_id


async def test_a_button_on_a_forks_check_works_without_pull_requests_in_the_event(
    make_world: MakeWorld,
) -> None:
    async with make_world(model=agreeable_model()) as graft:
        graft.commit("feature", CHANGE)
        pull = await graft.open(fork="ann", author="ann")
        await graft.settled()
        graft.simulator.press_button(intent_run(graft, pull).id, "card-accurate", user="rev")
        await graft.settled()
        assert await votes(graft) == [("rev", "accurate", "button", False)]


@pytest.mark.parametrize("forged", ["another card", "no card", "not ours"])
async def test_a_press_that_the_api_does_not_confirm_is_dropped(
    rated: tuple[World, Pull], forged: str
) -> None:
    graft, pull = rated
    run = intent_run(graft, pull)
    if forged == "another card":
        run.external_id = "00000000-0000-4000-8000-000000000000"
    elif forged == "no card":
        run.external_id = "hello"
    graft.simulator.press_button(run.id, "card-accurate", user="rev")
    if forged == "not ours":
        del graft.repository.runs[run.id]
    await graft.settled()
    assert await votes(graft) == []
    assert await graft.pool.fetchval("SELECT count(*) FROM pending_votes") == 0


async def test_a_rerun_asks_the_model_again_once_a_minute_at_most(
    rated: tuple[World, Pull], model: FakeModel
) -> None:
    graft, pull = rated
    calls = len(model.asked("verifier"))
    run = intent_run(graft, pull)
    for _ in range(3):
        graft.simulator.rerequest_run(run.id)
        await graft.settled()
    assert len(model.asked("verifier")) == calls + 1
    assert intent_run(graft, pull).status == "completed"
    assert len(graft.comments(pull)) == 1


async def test_rerun_all_checks_writes_every_check_again(rated: tuple[World, Pull], model: FakeModel) -> None:
    graft, pull = rated
    calls = len(model.asked("verifier"))
    await graft.simulator.rerequest_suite(graft.repository.suites[pull.head_sha])
    await graft.settled()
    assert len(model.asked("verifier")) == calls + 1
    assert {run.status for run in graft.repository.runs_at(pull.head_sha)} == {"completed"}
    assert set(graft.checks(pull)) == {"graft/intent", "graft/policy", "graft/provenance"}


async def test_reviewers_are_read_when_a_vote_is_recorded(rated: tuple[World, Pull]) -> None:
    graft, pull = rated
    graft.simulator.set_permission(graft.repository, "rev", "write")
    await graft.simulator.review(pull, user="rev")
    await graft.settled()
    rows = await graft.pool.fetch("SELECT user_login, reason, verified FROM pr_reviewers")
    assert [tuple(row) for row in rows] == [("rev", "review", True)]
