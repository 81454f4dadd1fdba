"""Each switch does what it says, as often as it says, and nothing to anybody else."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

from graft.simulator import Pull, Repository, Simulator
from graft.simulator.demo_repository import DemoRepository

from .conftest import Api, Clock

SHOP = "/repos/octo/shop"
COMMENT = "POST /repos/{owner}/{repo}/issues/{number}/comments"
PULL = "GET /repos/{owner}/{repo}/pulls/{number}"


async def comment(api: Api, token: str, number: int = 1, **rest: Any) -> int:
    path = f"{SHOP}/issues/{number}/comments"
    return (await api.call("POST", path, token=token, json={"body": "x"}, **rest)).status


async def test_errors_strike_as_often_as_told_and_change_nothing(
    api: Api, sim: Simulator, pull: Pull, token: str
) -> None:
    sim.faults.fail(COMMENT, status=503, times=2)
    assert [await comment(api, token) for _ in range(3)] == [503, 503, 201]
    assert len(pull.issue.comments) == 1
    assert (await api.call("GET", SHOP, token=token)).status == 200


async def test_a_write_can_be_stored_and_then_answer_504(
    api: Api, sim: Simulator, pull: Pull, token: str
) -> None:
    sim.faults.fail_after(COMMENT)
    assert await comment(api, token) == 504
    assert len(pull.issue.comments) == 1
    assert await comment(api, token) == 201


@pytest.mark.parametrize("after", [True, False])
async def test_a_request_can_hang(api: Api, sim: Simulator, pull: Pull, token: str, after: bool) -> None:
    sim.faults.hang(COMMENT, after=after)
    given_up = asyncio.ensure_future(comment(api, token))
    while sim.faults.waiting < 1:
        await asyncio.sleep(0)
    given_up.cancel()
    assert len(pull.issue.comments) == int(after)
    sim.faults.hang(COMMENT, after=after)
    waiting = asyncio.ensure_future(comment(api, token))
    while sim.faults.waiting < 2:
        await asyncio.sleep(0)
    sim.faults.release()
    assert await waiting == 504
    assert given_up.cancelled()
    assert len(pull.issue.comments) == 2 * int(after)


@pytest.mark.parametrize("after", [True, False])
async def test_a_connection_can_break(api: Api, sim: Simulator, pull: Pull, token: str, after: bool) -> None:
    sim.faults.drop(COMMENT, after=after)
    with pytest.raises(aiohttp.ClientError):
        await comment(api, token)
    assert len(pull.issue.comments) == int(after)
    assert sim.requests.count(status=0) == 1


async def test_stopping_ends_what_hangs(demo: DemoRepository, clock: Clock, api: Api) -> None:
    simulator = Simulator(now=clock)
    await simulator.start()
    simulator.faults.hang("GET /app", times=None)
    other = Api(sim=simulator, session=api.session, clock=clock)
    waiting = asyncio.ensure_future(other.call("GET", "/app", token=other.app_token()))
    while not simulator.faults.waiting:
        await asyncio.sleep(0)
    await asyncio.wait_for(simulator.stop(), 5)
    assert (await waiting).status == 504


async def test_a_rule_for_one_installation_spares_the_others(
    api: Api, sim: Simulator, repo: Repository, demo: DemoRepository, token: str
) -> None:
    other = sim.add_repository("acme/shop", demo.path)
    assert repo.installation is not None
    assert other.installation is not None
    other_token = await api.token(other.installation.id)
    sim.faults.secondary_limit(repo.installation, times=None)
    assert (await api.call("GET", SHOP, token=token)).status == 403
    assert (await api.call("GET", "/repos/acme/shop", token=other_token)).status == 200
    sim.faults.clear()
    assert (await api.call("GET", SHOP, token=token)).status == 200


@pytest.mark.parametrize("retry_after", ["7", "Mon, 21 Sep 2026 14:20:00 GMT", "-5", "99999999999", None])
@pytest.mark.parametrize("status", [403, 429])
async def test_a_secondary_limit_says_what_it_is_told(
    api: Api, sim: Simulator, repo: Repository, token: str, retry_after: str | None, status: int
) -> None:
    assert repo.installation is not None
    sim.faults.secondary_limit(repo.installation, retry_after=retry_after, status=status)
    answer = await api.call("GET", SHOP, token=token)
    assert answer.status == status
    assert answer.headers.get("Retry-After") == retry_after
    assert "secondary rate limit" in answer.json["message"]
    assert answer.headers["X-RateLimit-Remaining"] != "0"
    assert (await api.call("GET", SHOP, token=token)).status == 200


async def test_a_primary_limit_lasts_until_its_reset(
    api: Api, sim: Simulator, clock: Clock, repo: Repository, token: str
) -> None:
    assert repo.installation is not None
    sim.faults.primary_limit(repo.installation, reset_at=clock() + 60)
    answer = await api.call("GET", SHOP, token=token)
    assert answer.status == 403
    assert answer.json["message"] == f"API rate limit exceeded for installation ID {repo.installation.id}."
    assert answer.headers["X-RateLimit-Remaining"] == "0"
    assert answer.headers["X-RateLimit-Reset"] == str(int(clock() + 60))
    clock.seconds += 60
    assert (await api.call("GET", SHOP, token=token)).status == 200


async def test_the_hourly_limit_holds_without_any_fault(
    api: Api, clock: Clock, repo: Repository, token: str
) -> None:
    assert repo.installation is not None
    repo.installation.hourly_limit = 3
    statuses = [(await api.call("GET", SHOP, token=token)).status for _ in range(4)]
    assert statuses == [200, 200, 200, 403]


async def test_an_old_head_is_shown_for_some_reads(
    api: Api, sim: Simulator, pull: Pull, token: str, demo: DemoRepository
) -> None:
    old = demo.head
    await sim.synchronize(pull, f"{old}~1")
    sim.faults.serve_old_head(pull, times=2)
    path = f"{SHOP}/pulls/{pull.number}"

    async def heads() -> set[str]:
        files = await api.call("GET", f"{path}/files", token=token)
        commits = await api.call("GET", f"{path}/commits", token=token)
        listed = await api.call("GET", f"{SHOP}/pulls", token=token)
        one = await api.call("GET", path, token=token)
        of_files = {each["contents_url"].rpartition("=")[2] for each in files.json}
        return of_files | {commits.json[-1]["sha"], listed.json[0]["head"]["sha"], one.json["head"]["sha"]}

    assert [await heads() for _ in range(3)] == [{old}, {old}, {pull.head_sha}]


async def test_an_old_head_needs_one(sim: Simulator, pull: Pull, demo: DemoRepository) -> None:
    with pytest.raises(ValueError, match="one head only"):
        sim.faults.serve_old_head(pull)
    sim.faults.serve_old_head(pull, sha=demo.base)


async def test_a_list_of_comments_can_lag(api: Api, sim: Simulator, pull: Pull, token: str) -> None:
    path = f"{SHOP}/issues/{pull.number}/comments"
    sim.comment(pull, "old")
    sim.faults.lag_comments(pull.issue, reads=2)
    made = await api.call("POST", path, token=token, json={"body": "new"})
    seen = [len((await api.call("GET", path, token=token)).json) for _ in range(3)]
    assert seen == [1, 1, 2]
    one = await api.call("GET", f"{SHOP}/issues/comments/{made.json['id']}", token=token)
    assert one.json["body"] == "new"


async def test_latency_is_added(api: Api, sim: Simulator, pull: Pull, token: str) -> None:
    sim.faults.route_latency[PULL] = 0.05
    await api.call("GET", f"{SHOP}/pulls/{pull.number}", token=token)
    await api.call("GET", SHOP, token=token)
    slow, quick = list(sim.requests)[-2:]
    assert slow.seconds > 0.049
    assert quick.seconds < slow.seconds


async def test_an_operation_that_does_not_exist_is_refused(sim: Simulator) -> None:
    with pytest.raises(ValueError, match="no operation"):
        sim.faults.fail("POST /repos/{owner}/{repo}/issues/{issue_number}/comments")
