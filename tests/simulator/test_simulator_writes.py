"""What the App may write: comments, reactions and check runs, with GitHub's limits and side effects."""

from __future__ import annotations

from typing import Any

import pytest

from graft.simulator import Pull, Repository, Simulator
from graft.simulator.demo_repository import DemoRepository

from .conftest import Answer, Api, Clock

SHOP = "/repos/octo/shop"


async def comment(api: Api, token: str, body: str) -> Answer:
    return await api.call("POST", f"{SHOP}/issues/1/comments", token=token, json={"body": body})


async def check(api: Api, token: str, **members: Any) -> Answer:
    return await api.call("POST", f"{SHOP}/check-runs", token=token, json=members)


# ------------------------------------------------------------------------------------------------- comments


async def test_a_comment_moves_the_time_of_its_pull_request(
    api: Api, clock: Clock, sim: Simulator, pull: Pull, token: str
) -> None:
    async def updated() -> str:
        shown = await api.call("GET", f"{SHOP}/pulls/{pull.number}", token=token)
        return str(shown.json["updated_at"])

    times = [await updated()]
    clock.seconds += 1
    made = await comment(api, token, "one")
    times.append(await updated())
    clock.seconds += 1
    path = f"{SHOP}/issues/comments/{made.json['id']}"
    changed = await api.call("PATCH", path, token=token, json={"body": "two"})
    times.append(await updated())
    clock.seconds += 1
    sim.react(made.json["id"], "+1")
    assert await updated() == times[-1]
    assert (await api.call("DELETE", path, token=token)).status == 204
    times.append(await updated())
    assert times == sorted(set(times))
    assert made.headers["Location"] == made.json["url"]
    assert changed.json["created_at"] == made.json["created_at"] < changed.json["updated_at"]


async def test_a_comment_is_kept_as_it_was_sent(api: Api, pull: Pull, token: str) -> None:
    body = "<!-- graft:managed-comment v1 -->\r\n## Graft\r\n\u2028 é 🙂"
    made = await comment(api, token, body)
    assert made.json["body"] == body


async def test_a_comment_has_65536_characters_at_most(api: Api, pull: Pull, token: str) -> None:
    assert (await comment(api, token, "🙂" * 65_536)).status == 201
    refused = await comment(api, token, "x" * 65_537)
    assert refused.status == 422
    assert refused.json["errors"][0]["message"] == "Body is too long (maximum is 65536 characters)"
    assert len(pull.issue.comments) == 1


async def test_comments_since_a_time(api: Api, clock: Clock, sim: Simulator, pull: Pull, token: str) -> None:
    sim.comment(pull, "old")
    clock.seconds += 10
    sim.comment(pull, "new")
    path = f"{SHOP}/issues/1/comments?since=2026-09-21T14:13:25Z"
    assert [each["body"] for each in (await api.call("GET", path, token=token)).json] == ["new"]
    assert (await api.call("GET", f"{SHOP}/issues/1/comments?since=x", token=token)).status == 422


async def test_a_plain_issue_needs_another_permission(
    api: Api, sim: Simulator, repo: Repository, token: str
) -> None:
    issue = sim.open_issue(repo)
    refused = await api.call(
        "POST", f"{SHOP}/issues/{issue.number}/comments", token=token, json={"body": "x"}
    )
    assert refused.status == 403
    assert refused.headers["X-Accepted-GitHub-Permissions"] == "issues=write"
    assert (await api.call("GET", f"{SHOP}/pulls/{issue.number}", token=token)).status == 404
    shown = await api.call("GET", f"{SHOP}/issues/{issue.number}", token=token)
    assert "pull_request" not in shown.json


async def test_a_locked_conversation_takes_no_comment(api: Api, pull: Pull, token: str) -> None:
    pull.issue.locked = True
    assert (await comment(api, token, "x")).status == 403


async def test_a_comment_of_another_repository_is_not_there(
    api: Api, sim: Simulator, pull: Pull, token: str, demo: DemoRepository
) -> None:
    sim.add_repository("octo/other", demo.path)
    made = await comment(api, token, "x")
    path = f"/repos/octo/other/issues/comments/{made.json['id']}"
    assert (await api.call("GET", path, token=token)).status == 404
    assert (await api.call("DELETE", path, token=token)).status == 404


async def test_one_reaction_of_a_kind_for_everybody(api: Api, sim: Simulator, pull: Pull, token: str) -> None:
    made = await comment(api, token, "x")
    path = f"{SHOP}/issues/comments/{made.json['id']}/reactions"
    first = await api.call("POST", path, token=token, json={"content": "+1"})
    second = await api.call("POST", path, token=token, json={"content": "+1"})
    assert (first.status, second.status, first.json["id"]) == (201, 200, second.json["id"])
    assert (await api.call("POST", path, token=token, json={"content": "wow"})).status == 422
    sim.react(made.json["id"], "+1", user="mona")
    sim.react(made.json["id"], "-1", user="mona")
    sim.unreact(made.json["id"], "+1", user="mona")
    liked = await api.call("GET", f"{path}?content=%2B1", token=token)
    assert [each["user"]["login"] for each in liked.json] == ["graft[bot]"]
    rollup = (await api.call("GET", f"{SHOP}/issues/comments/{made.json['id']}", token=token)).json
    assert (rollup["reactions"]["total_count"], rollup["reactions"]["-1"]) == (2, 1)
    with pytest.raises(ValueError, match="no reaction"):
        sim.react(made.json["id"], "wow")


# --------------------------------------------------------------------------------------------------- checks


async def test_a_run_goes_through_its_states(
    api: Api, sim: Simulator, clock: Clock, pull: Pull, token: str
) -> None:
    made = await check(api, token, name="graft/intent", head_sha=pull.head_sha, status="in_progress")
    assert made.status == 201
    assert (made.json["status"], made.json["conclusion"], made.json["completed_at"]) == (
        "in_progress",
        None,
        None,
    )
    path = f"{SHOP}/check-runs/{made.json['id']}"
    clock.seconds += 5
    done = await api.call("PATCH", path, token=token, json={"conclusion": "neutral"})
    assert (done.json["status"], done.json["conclusion"]) == ("completed", "neutral")
    assert done.json["completed_at"] == "2026-09-21T14:13:25Z"
    assert done.json["started_at"] == "2026-09-21T14:13:20Z"
    told = [each.action for each in sim.deliveries if each.event == "check_run"]
    assert told == ["created", "completed"]


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"name": None}, '"name" wasn\'t supplied'),
        ({"head_sha": None}, '"head_sha" wasn\'t supplied'),
        ({"head_sha": "0" * 40}, "No commit found for SHA"),
        ({"head_sha": "main"}, "No commit found for SHA"),
        ({"status": "done"}, "not a member of"),
        ({"conclusion": "fine"}, "not a member of"),
        ({"status": "completed"}, '"conclusion" wasn\'t supplied'),
        ({"output": {"title": "t"}}, '"summary" wasn\'t supplied'),
        ({"output": "text"}, "not an object"),
        ({"output": {"title": "t", "summary": "é" * 32_768}}, "Only 65535 characters are allowed; 65536"),
        ({"output": {"title": "t", "summary": "s", "text": "x" * 65_536}}, "Only 65535 characters"),
        ({"output": {"title": "t", "summary": "s", "annotations": [{}] * 51}}, "No more than 50 items"),
        ({"actions": [{"label": "l", "description": "d", "identifier": "i"}] * 4}, "No more than 3 items"),
        ({"actions": [{"label": "l" * 21, "description": "d", "identifier": "i"}]}, "Only 20 characters"),
        ({"actions": [{"label": "l", "description": "d" * 41, "identifier": "i"}]}, "Only 40 characters"),
        ({"actions": [{"label": "l", "description": "d"}]}, '"identifier" wasn\'t supplied'),
        ({"external_id": 5}, "is not a string"),
        ({"completed_at": "yesterday", "conclusion": "neutral"}, "Validation Failed"),
    ],
)
async def test_a_run_that_does_not_fit_is_refused_whole(
    api: Api, repo: Repository, pull: Pull, token: str, members: dict[str, Any], said: str
) -> None:
    refused = await check(api, token, **{"name": "graft/intent", "head_sha": pull.head_sha, **members})
    assert refused.status == 422
    assert said in refused.json["message"]
    assert repo.runs == {}


async def test_limits_are_in_bytes_and_hold_on_update(api: Api, pull: Pull, token: str) -> None:
    fits = {"title": "t", "summary": "é" * 32_767 + "x"}
    made = await check(api, token, name="a", head_sha=pull.head_sha, output=fits)
    assert made.status == 201
    path = f"{SHOP}/check-runs/{made.json['id']}"
    refused = await api.call(
        "PATCH", path, token=token, json={"output": {"title": "t", "summary": "é" * 32_768}}
    )
    assert refused.status == 422
    assert (await api.call("GET", path, token=token)).json["output"]["summary"] == fits["summary"]


async def test_lists_of_runs(api: Api, sim: Simulator, pull: Pull, token: str) -> None:
    ids = []
    for name in ("graft/intent", "graft/policy", "graft/intent"):
        made = await check(api, token, name=name, head_sha=pull.head_sha, conclusion="neutral")
        ids.append(made.json["id"])

    async def listed(query: str) -> list[int]:
        found = await api.call("GET", f"{SHOP}/commits/{pull.head_sha}/check-runs{query}", token=token)
        assert found.json["total_count"] == len(found.json["check_runs"])
        return [run["id"] for run in found.json["check_runs"]]

    assert await listed("") == [ids[2], ids[1]]
    assert await listed("?filter=all") == [ids[2], ids[1], ids[0]]
    assert await listed("?check_name=graft/policy") == [ids[1]]
    assert await listed(f"?app_id={sim.app.id}&status=completed") == [ids[2], ids[1]]
    assert await listed("?app_id=1") == []
    nowhere = await api.call("GET", f"{SHOP}/commits/{'0' * 40}/check-runs", token=token)
    assert nowhere.status == 422
    assert (await api.call("GET", f"{SHOP}/check-runs/5", token=token)).status == 404


async def test_a_suite_says_how_its_runs_stand(
    api: Api, sim: Simulator, repo: Repository, pull: Pull, token: str
) -> None:
    made = await check(api, token, name="a", head_sha=pull.head_sha, status="in_progress")
    path = f"{SHOP}/check-suites/{made.json['check_suite']['id']}"

    async def state() -> tuple[str, str | None]:
        shown = (await api.call("GET", path, token=token)).json
        return shown["status"], shown["conclusion"]

    assert await state() == ("in_progress", None)
    await api.call(
        "PATCH", f"{SHOP}/check-runs/{made.json['id']}", token=token, json={"conclusion": "neutral"}
    )
    assert await state() == ("completed", "neutral")
    await sim.rerequest_suite(repo.suites[pull.head_sha])
    assert await state() == ("queued", None)
    await check(api, token, name="a", head_sha=pull.head_sha, conclusion="neutral")
    assert await state() == ("completed", "neutral")


async def test_two_pull_requests_of_one_head_share_the_suite(
    api: Api, sim: Simulator, repo: Repository, pull: Pull, token: str, demo: DemoRepository
) -> None:
    await sim.push(repo, "release", demo.base)
    other = await sim.open_pull(repo, head="feature", base="release")
    made = await check(api, token, name="a", head_sha=pull.head_sha, conclusion="neutral")
    assert [each["number"] for each in made.json["pull_requests"]] == [pull.number, other.number]
    await sim.close(other)
    shown = await api.call("GET", f"{SHOP}/check-runs/{made.json['id']}", token=token)
    assert [each["number"] for each in shown.json["pull_requests"]] == [pull.number]


# -------------------------------------------------------------------------------------------- pull requests


async def test_a_range_becomes_a_pull_request(sim: Simulator, repo: Repository, demo: DemoRepository) -> None:
    pull = await sim.open_pull(repo, head=f"{demo.head}~2..{demo.head}", labels=["a"], draft=True)
    assert pull.head_sha == demo.head
    assert repo.branches["main"] == pull.base_sha != demo.base
    opened = sim.deliveries[-1].payload["pull_request"]
    assert (opened["commits"], opened["draft"], opened["labels"][0]["name"]) == (2, True, "a")
    with pytest.raises(ValueError, match="names no commit"):
        await sim.open_pull(repo, head="nowhere")
    with pytest.raises(ValueError, match="no branch named"):
        await sim.open_pull(repo, head="feature", base="nowhere")
    assert len(repo.issues) == 1


async def test_the_base_shown_is_the_one_of_the_last_push(
    api: Api, sim: Simulator, repo: Repository, pull: Pull, token: str, demo: DemoRepository
) -> None:
    await sim.push(repo, "main", f"{demo.base}~1")
    path = f"{SHOP}/pulls/{pull.number}"
    shown = (await api.call("GET", path, token=token)).json
    assert (shown["base"]["sha"], shown["commits"]) == (demo.base, 4)
    await sim.synchronize(pull, f"{demo.head}~1")
    shown = (await api.call("GET", path, token=token)).json
    assert shown["base"]["sha"] == repo.branches["main"]


async def test_a_merged_and_a_forked_pull_request(
    api: Api, sim: Simulator, repo: Repository, pull: Pull, token: str
) -> None:
    fork = await sim.open_pull(repo, head="feature", fork="stranger")
    path = f"{SHOP}/pulls/{fork.number}"
    shown = (await api.call("GET", path, token=token)).json
    assert (shown["head"]["label"], shown["head"]["repo"]["fork"]) == ("stranger:feature", True)
    assert (await api.call("GET", "/repos/stranger/shop", token=token)).status == 404
    compared = await api.call("GET", f"{SHOP}/compare/main...stranger:feature", token=token)
    assert compared.json["total_commits"] == 3
    sim.delete_fork(fork)
    shown = (await api.call("GET", path, token=token)).json
    assert (shown["head"]["repo"], shown["head"]["sha"]) == (None, fork.head_sha)
    await sim.close(pull, merged=True, sender="mona")
    merged = (await api.call("GET", f"{SHOP}/pulls/{pull.number}", token=token)).json
    assert (merged["state"], merged["merged"], merged["commits"]) == ("closed", True, 3)
    assert merged["merged_by"]["login"] == "mona"
    listed = await api.call("GET", f"{SHOP}/pulls?state=closed", token=token)
    assert [each["number"] for each in listed.json] == [pull.number]
    everything = await api.call("GET", f"{SHOP}/pulls?state=all&direction=asc", token=token)
    assert [each["number"] for each in everything.json] == [pull.number, fork.number]
    by_head = await api.call("GET", f"{SHOP}/pulls?state=all&head=octo:feature", token=token)
    assert [each["number"] for each in by_head.json] == [pull.number]
