"""Whose comment it is, and how it is found, written and tidied, against the simulated GitHub."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from graft.github import AmbiguousWrite, GitHub, Installation, Pace, checks, comment
from graft.github.comment import Author, Comment, choose, is_ours
from graft.github.comment_body import MARKER, compose, parse
from graft.github.people import Account
from graft.simulator import Pull, Simulator
from graft.simulator.demo_repository import build_demo_repository

NOW = datetime.datetime(2026, 12, 1, tzinfo=datetime.UTC)
BODY = f"{MARKER}\n## Graft"
US = Author(app_id=5, slug="Graft")
SECTIONS = {"intent": "### Intent\n\nadds"}


def made(
    id: int = 1, *, app: int | None = None, login: str = "octocat", type: str = "User", body: str = BODY
) -> Comment:
    return Comment(
        id=id,
        created_at=NOW,
        updated_at=NOW,
        body=body,
        user=Account(login=login, id=1, type=type),
        performed_via_github_app=None if app is None else comment._App(id=app),
    )


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        (made(app=5), True),
        (made(app=5, body="> " + BODY), False),
        (made(app=5, body=BODY.replace("\n", "\r\n")), True),
        (made(app=6), False),
        (made(app=6, login="graft[bot]", type="Bot"), False),
        (made(), False),
        (made(login="graft[bot]", type="Bot"), True),
        (made(login="GRAFT[bot]", type="Bot"), True),
        (made(login="graft[bot]", type="User"), False),
        (made(login="graft", type="Bot"), False),
        (made(login="other[bot]", type="Bot"), False),
    ],
)
def test_whose_comment_it_is(given: Comment, ours: bool) -> None:
    assert is_ours(given, US) is ours


def test_without_a_slug_only_github_says_whose_it_is() -> None:
    assert not is_ours(made(login="graft[bot]", type="Bot"), Author(app_id=5))
    assert is_ours(made(app=5), Author(app_id=5))


def test_the_lowest_id_stays_and_the_others_are_named() -> None:
    found = choose([made(9, app=5), made(2), made(7, app=5), made(8, app=5)], US)
    assert found.comment is not None
    assert (found.comment.id, found.duplicates) == (7, (8, 9))
    assert choose([made(2)], US) == comment.Found(comment=None)


# --- against the simulator -------------------------------------------------------------------------------


@pytest.fixture
async def sim(tmp_path: Path) -> AsyncIterator[Simulator]:
    demo = build_demo_repository(tmp_path / "demo.git")
    async with Simulator() as sim:
        sim.add_repository("octo/shop", demo.path)
        yield sim


@pytest.fixture
async def pull(sim: Simulator) -> Pull:
    repository = next(iter(sim.world.repositories.values()))
    return await sim.open_pull(repository, head="feature", base="main")


@pytest.fixture
async def github(sim: Simulator) -> AsyncIterator[GitHub]:
    async with GitHub(
        app_id=sim.app.id, private_key=sim.private_key, api_url=sim.base_url, timeout=5, pace=Pace(interval=0)
    ) as github:
        yield github


@pytest.fixture
def client(github: GitHub, sim: Simulator) -> Installation:
    return github.installation(next(iter(sim.world.installations)))


@pytest.fixture
def us(sim: Simulator) -> Author:
    return Author(app_id=sim.app.id, slug=sim.app.slug)


async def put(client: Installation, pull: Pull, us: Author, sections: Any = SECTIONS, **options: Any) -> Any:
    return await comment.upsert(
        client, "octo/shop", pull.issue.number, us, sections=sections, footer="f", **options
    )


def bodies(pull: Pull) -> list[str]:
    return [c.body for c in pull.issue.comments]


async def test_one_comment_is_made_and_then_updated_in_place(
    client: Installation, pull: Pull, us: Author
) -> None:
    first = await put(client, pull, us)
    again = await put(client, pull, us, stored_id=first.id)
    changed = await put(client, pull, us, {"policy": "### Policy\n\nnone"}, stored_id=first.id)
    assert (first.written, again.written, changed.written) == (True, False, True)
    assert first.id == again.id == changed.id
    assert list(parse(bodies(pull)[0])) == ["intent", "policy"]
    assert len(bodies(pull)) == 1
    assert changed.updated_at >= first.comment.created_at


async def test_a_list_that_lags_does_not_hide_the_stored_comment(
    sim: Simulator, client: Installation, pull: Pull, us: Author
) -> None:
    """Interleavings found this: looking thoroughly made a second comment, and one more each time."""
    sim.faults.lag_comments(pull.issue, reads=3)
    first = await put(client, pull, us)
    again = await put(client, pull, us, {"policy": "p"}, stored_id=first.id, thorough=True)
    assert again.id == first.id
    assert len(bodies(pull)) == 1


async def test_what_was_left_a_moment_ago_is_not_read_again(
    sim: Simulator, client: Installation, pull: Pull, us: Author
) -> None:
    first = await put(client, pull, us)
    asked = len(sim.requests)
    again = await put(client, pull, us, {"policy": "p"}, last=first.comment)
    assert [request.method for request in list(sim.requests)[asked:]] == ["PATCH"]
    assert list(parse(bodies(pull)[0])) == ["intent", "policy"]
    assert again.id == first.id


async def test_nothing_to_say_makes_no_comment(client: Installation, pull: Pull, us: Author) -> None:
    assert await put(client, pull, us, {"intent": None, "policy": ""}) is None
    assert bodies(pull) == []


async def test_a_lost_id_finds_the_comment_again(client: Installation, pull: Pull, us: Author) -> None:
    first = await put(client, pull, us)
    again = await put(client, pull, us, {"policy": "p"})
    assert again.id == first.id


async def test_a_pasted_marker_is_never_adopted(
    sim: Simulator, client: Installation, pull: Pull, us: Author
) -> None:
    pasted = sim.comment(pull, compose(None, {"intent": "fake"}, footer="f"), user="mallory")
    made = await put(client, pull, us, stored_id=pasted.id)
    assert made.id != pasted.id
    assert "fake" in bodies(pull)[0]
    assert "fake" not in bodies(pull)[1]


async def test_a_stored_id_of_another_pull_request_is_not_used(
    sim: Simulator, client: Installation, pull: Pull, us: Author
) -> None:
    other = await sim.open_pull(pull.repository, head="feature", base="main")
    elsewhere = await put(client, other, us)
    here = await put(client, pull, us, {"policy": "p"}, stored_id=elsewhere.id)
    assert here.id != elsewhere.id
    assert "intent" not in bodies(pull)[0]


async def test_a_deleted_comment_is_made_anew(
    sim: Simulator, client: Installation, pull: Pull, us: Author
) -> None:
    first = await put(client, pull, us)
    sim.delete_comment(sim.world.comments[first.id])
    second = await put(client, pull, us, stored_id=first.id)
    assert second.id != first.id
    assert len(bodies(pull)) == 1


async def test_a_comment_deleted_while_it_is_updated_is_made_anew_with_all_it_had(
    sim: Simulator, client: Installation, pull: Pull, us: Author
) -> None:
    first = await put(client, pull, us)
    sim.faults.fail(
        "PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}", status=404, message="Not Found"
    )
    second = await put(client, pull, us, {"policy": "p"}, stored_id=first.id)
    assert second.written
    assert list(parse(bodies(pull)[1])) == ["intent", "policy"]


async def test_line_ends_that_an_editor_changed_are_no_reason_to_write(
    sim: Simulator, client: Installation, pull: Pull, us: Author
) -> None:
    first = await put(client, pull, us)
    stored = sim.world.comments[first.id]
    stored.body = stored.body.replace("\n", "\r\n")
    assert not (await put(client, pull, us, stored_id=first.id)).written


async def test_a_create_that_answers_504_after_storing_leaves_one_comment(
    sim: Simulator, client: Installation, pull: Pull, us: Author
) -> None:
    sim.faults.fail_after("POST /repos/{owner}/{repo}/issues/{number}/comments")
    with pytest.raises(AmbiguousWrite):
        await put(client, pull, us)
    again = await put(client, pull, us, thorough=True)
    assert not again.written
    assert len(bodies(pull)) == 1


async def test_two_comments_from_a_lagging_list_are_tidied_to_the_first(
    sim: Simulator, client: Installation, pull: Pull, us: Author
) -> None:
    sim.faults.lag_comments(pull.issue, reads=1)
    sim.faults.fail_after("POST /repos/{owner}/{repo}/issues/{number}/comments")
    with pytest.raises(AmbiguousWrite):
        await put(client, pull, us)
    second = await put(client, pull, us)
    assert len(bodies(pull)) == 2
    final = await put(client, pull, us, stored_id=second.id, thorough=True)
    while not final.duplicates:  # the list shows both a read or two later
        final = await put(client, pull, us, stored_id=second.id, thorough=True)
    await comment.delete_duplicates(client, "octo/shop", final.duplicates)
    assert [c.id for c in pull.issue.comments] == [final.id]
    assert final.id < second.id
    await comment.delete_duplicates(client, "octo/shop", final.duplicates)


async def test_the_guard_is_asked_before_every_request(
    sim: Simulator, client: Installation, pull: Pull, us: Author
) -> None:
    for allowed in range(3):
        asked = 0

        def guard(allowed: int = allowed) -> None:
            nonlocal asked
            asked += 1
            if asked > allowed:
                raise TimeoutError

        with pytest.raises(TimeoutError):
            await put(client, pull, us, stored_id=1, guard=guard)
        assert bodies(pull) == []


# --- check runs ------------------------------------------------------------------------------------------


def document(pull: Pull, name: str, external_id: str, summary: str = "s") -> dict[str, Any]:
    return checks.payload(
        name=name,
        head_sha=pull.head_sha,
        external_id=external_id,
        output=checks.Output(title="t", summary=summary),
        actions=[checks.Action(label="Card is wrong", description="d", identifier="wrong")],
    )


async def publish(
    client: Installation, us: Author, pull: Pull, mine: str, summary: str = "s"
) -> checks.Published:
    ours = await checks.list_ours(client, "octo/shop", pull.head_sha, app_id=us.app_id)
    place = checks.place(
        ours, name=checks.INTENT, number=pull.issue.number, belongs=lambda run: run.external_id == mine
    )
    return await checks.upsert(client, "octo/shop", document(pull, place.name, mine, summary), run=place.run)


async def test_a_check_is_made_complete_found_again_and_updated(
    client: Installation, pull: Pull, us: Author
) -> None:
    first = await publish(client, us, pull, "card-1")
    same = await publish(client, us, pull, "card-1")
    new = await publish(client, us, pull, "card-1", summary="other")
    assert (first.written, same.written, new.written) == (True, False, True)
    assert first.run.id == same.run.id == new.run.id
    run = await checks.read_run(client, "octo/shop", first.run.id)
    assert (run.status, run.conclusion, run.external_id) == ("completed", "neutral", "card-1")
    assert run.output.summary == "other"
    assert run.is_of(us.app_id)
    assert len(pull.repository.runs) == 1


async def test_two_pull_requests_on_one_head_have_a_check_each(
    sim: Simulator, client: Installation, pull: Pull, us: Author
) -> None:
    other = await sim.open_pull(pull.repository, head="feature", base="main")
    for _ in range(2):
        first = await publish(client, us, pull, "card-1")
        second = await publish(client, us, other, "card-2")
    assert first.run.name == "graft/intent"
    assert second.run.name == f"graft/intent (#{other.issue.number})"
    assert len(pull.repository.runs) == 2


async def test_a_check_that_vanished_is_made_anew(
    sim: Simulator, client: Installation, pull: Pull, us: Author
) -> None:
    first = await publish(client, us, pull, "card-1")
    sim.faults.fail("PATCH /repos/{owner}/{repo}/check-runs/{check_run_id}", status=404, message="Not Found")
    again = await checks.upsert(client, "octo/shop", document(pull, checks.INTENT, "card-2"), run=first.run)
    assert again.run.id != first.run.id


async def test_a_create_of_unknown_outcome_is_found_by_its_external_id(
    sim: Simulator, client: Installation, pull: Pull, us: Author
) -> None:
    sim.faults.fail_after("POST /repos/{owner}/{repo}/check-runs")
    with pytest.raises(AmbiguousWrite):
        await publish(client, us, pull, "card-1")
    assert not (await publish(client, us, pull, "card-1")).written
    assert len(pull.repository.runs) == 1
