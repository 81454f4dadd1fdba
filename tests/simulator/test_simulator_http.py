"""What surrounds every answer: who is let in, ETags, pages, limits, redirects, headers and refusals."""

from __future__ import annotations

from typing import Any

import pytest
from yarl import URL

from graft.simulator import Pull, Repository, Simulator, generate_private_key
from graft.simulator.demo_repository import DemoRepository

from .conftest import Api, Clock

SHOP = "/repos/octo/shop"


async def test_an_etag_belongs_to_the_token(api: Api, repo: Repository, token: str) -> None:
    assert repo.installation is not None
    first = await api.call("GET", SHOP, token=token)
    etag = first.headers["ETag"]
    same = await api.call("GET", SHOP, token=token, headers={"If-None-Match": etag})
    assert (same.status, same.content) == (304, b"")
    assert same.headers["ETag"] == etag
    other = await api.token(repo.installation.id)
    missed = await api.call("GET", SHOP, token=other, headers={"If-None-Match": etag})
    assert missed.status == 200
    assert missed.headers["ETag"] != etag
    assert missed.json == first.json


async def test_an_etag_changes_with_the_content(api: Api, sim: Simulator, pull: Pull, token: str) -> None:
    path = f"{SHOP}/issues/{pull.number}/comments"
    empty = await api.call("GET", path, token=token)
    sim.comment(pull, "Hello")
    again = await api.call(
        "GET", path, token=token, headers={"If-None-Match": f'"x", {empty.headers["ETag"]}'}
    )
    assert again.status == 200
    assert len(again.json) == 1


async def test_a_304_is_free_and_everything_else_counts(api: Api, token: str) -> None:
    first = await api.call("GET", SHOP, token=token)
    etag = first.headers["ETag"]
    same = await api.call("GET", SHOP, token=token, headers={"If-None-Match": etag})
    assert first.headers["X-RateLimit-Used"] == same.headers["X-RateLimit-Used"] == "1"
    refused = await api.call("GET", f"{SHOP}/pulls/77", token=token)
    assert (refused.status, refused.headers["X-RateLimit-Used"]) == (404, "2")
    asked = await api.call("GET", "/rate_limit", token=token)
    assert asked.json["resources"]["core"] == {
        "limit": 5000,
        "used": 2,
        "remaining": 4998,
        "reset": int(first.headers["X-RateLimit-Reset"]),
    }


async def test_headers_of_github(api: Api, clock: Clock, token: str) -> None:
    answer = await api.call("GET", SHOP, token=token)
    assert answer.headers["Date"] == "Mon, 21 Sep 2026 14:13:20 GMT"
    assert answer.headers["X-GitHub-Media-Type"] == "github.v3; format=json"
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert answer.headers["X-RateLimit-Resource"] == "core"
    other = await api.call("GET", SHOP, token=token)
    assert answer.headers["X-GitHub-Request-Id"] != other.headers["X-GitHub-Request-Id"]


@pytest.mark.parametrize(
    ("query", "expected", "relations"),
    [
        ("", range(30), {"next": "2", "last": "3"}),
        ("?page=2", range(30, 60), {"prev": "1", "next": "3", "last": "3", "first": "1"}),
        ("?page=3", range(60, 65), {"prev": "2", "first": "1"}),
        ("?page=9", range(0), {"prev": "8", "first": "1"}),
        ("?per_page=100", range(65), {}),
        ("?per_page=1000", range(65), {}),
        ("?per_page=40&page=0", range(40), {"next": "2", "last": "2"}),
        ("?page=abc&per_page=-1", range(30), {"next": "2", "last": "3"}),
    ],
)
async def test_pages(
    api: Api,
    sim: Simulator,
    pull: Pull,
    token: str,
    query: str,
    expected: range,
    relations: dict[str, str],
) -> None:
    for number in range(65):
        sim.comment(pull, f"comment {number}")
    answer = await api.call("GET", f"{SHOP}/issues/{pull.number}/comments{query}", token=token)
    assert [each["body"] for each in answer.json] == [f"comment {number}" for number in expected]
    assert {rel: url.query["page"] for rel, url in links(answer.headers).items()} == relations


async def test_a_link_leads_on_by_repository_id(
    api: Api, sim: Simulator, repo: Repository, pull: Pull, token: str
) -> None:
    for number in range(3):
        sim.comment(pull, f"comment {number}")
    first = await api.call("GET", f"{SHOP}/issues/{pull.number}/comments?per_page=2", token=token)
    following = links(first.headers)["next"]
    assert following.path == f"/repositories/{repo.id}/issues/{pull.number}/comments"
    second = await api.call("GET", str(following), token=token)
    assert [each["body"] for each in second.json] == ["comment 2"]
    assert links(second.headers)["first"].path == following.path


def links(headers: Any) -> dict[str, URL]:
    found = {}
    for part in filter(None, headers.get("Link", "").split(", ")):
        url, _, rel = part.partition(">; rel=")
        found[rel.strip('"')] = URL(url.removeprefix("<"))
    return found


@pytest.mark.parametrize(
    ("claims", "status", "said"),
    [
        ({"iss": "1"}, 404, "Integration not found"),
        ({"iat": 1_790_000_030}, 401, "'Issued at' claim ('iat')"),
        ({"iat": "now"}, 401, "'Issued at' claim ('iat')"),
        ({"exp": 1_790_000_000}, 401, "'Expiration time' claim ('exp') must be"),
        ({"exp": 1_790_000_601}, 401, "is too far in the future"),
    ],
)
async def test_an_app_token_that_is_refused(api: Api, claims: dict[str, Any], status: int, said: str) -> None:
    answer = await api.call("GET", "/app", token=api.app_token(**claims))
    assert answer.status == status
    assert said in answer.json["message"]
    assert answer.json["status"] == str(status)


async def test_the_client_id_is_an_issuer_and_the_limit_of_ten_minutes_is_in(
    api: Api, sim: Simulator
) -> None:
    token = api.app_token(iss=sim.app.client_id, exp=1_790_000_600)
    assert (await api.call("GET", "/app", token=token)).status == 200


async def test_another_key_is_refused(api: Api, sim: Simulator) -> None:
    answer = await api.call("GET", "/app", token=api.app_token(key=generate_private_key()))
    assert (answer.status, answer.json["message"]) == (401, "A JSON web token could not be decoded")
    sim.faults.refuse_app_key = True
    assert (await api.call("GET", "/app", token=api.app_token())).status == 401


async def test_each_kind_of_caller_stays_in_its_place(api: Api, repo: Repository, token: str) -> None:
    assert (await api.call("GET", "/app", token=token)).status == 401
    assert (await api.call("GET", SHOP, token=api.app_token())).status == 401
    nobody = await api.call("GET", SHOP)
    assert (nobody.status, nobody.json["message"]) == (401, "Requires authentication")
    made_up = await api.call("GET", SHOP, token="ghs_made_up")
    assert (made_up.status, made_up.json["message"]) == (401, "Bad credentials")
    assert (await api.call("GET", "/nowhere", token=token)).status == 404
    no_agent = await api.call("GET", SHOP, token=token, headers={"User-Agent": ""})
    assert no_agent.status == 403


async def test_a_token_ends_after_an_hour_and_when_it_is_revoked(
    api: Api, sim: Simulator, clock: Clock, repo: Repository, token: str
) -> None:
    clock.seconds += 3599
    assert (await api.call("GET", SHOP, token=token)).status == 200
    clock.seconds += 1
    expired = await api.call("GET", SHOP, token=token)
    assert (expired.status, expired.json["message"]) == (401, "Bad credentials")
    assert repo.installation is not None
    fresh = await api.token(repo.installation.id)
    assert (await api.call("GET", SHOP, token=fresh)).status == 200
    sim.expire_tokens(repo.installation)
    assert (await api.call("GET", SHOP, token=fresh)).status == 401


async def test_a_token_can_be_narrowed(
    api: Api, sim: Simulator, repo: Repository, demo: DemoRepository
) -> None:
    other = sim.add_repository("octo/other", demo.path)
    assert repo.installation is not None
    token = await api.token(
        repo.installation.id, {"repository_ids": [other.id], "permissions": {"contents": "read"}}
    )
    assert (await api.call("GET", "/repos/octo/other", token=token)).status == 200
    assert (await api.call("GET", SHOP, token=token)).status == 404
    listed = await api.call("GET", "/installation/repositories", token=token)
    assert [each["full_name"] for each in listed.json["repositories"]] == ["octo/other"]
    pulls = await api.call("GET", "/repos/octo/other/pulls", token=token)
    assert (pulls.status, pulls.json["message"]) == (403, "Resource not accessible by integration")
    assert pulls.headers["X-Accepted-GitHub-Permissions"] == "pull_requests=read"


@pytest.mark.parametrize(
    "body",
    [{"permissions": {"contents": "write"}}, {"permissions": {"members": "read"}}, {"repository_ids": [5]}],
)
async def test_a_token_cannot_be_widened(api: Api, repo: Repository, body: dict[str, Any]) -> None:
    assert repo.installation is not None
    path = f"/app/installations/{repo.installation.id}/access_tokens"
    answer = await api.call("POST", path, token=api.app_token(), json=body)
    assert answer.status == 422


async def test_a_suspended_and_an_uninstalled_app(
    api: Api, sim: Simulator, repo: Repository, token: str
) -> None:
    installation = repo.installation
    assert installation is not None
    path = f"/app/installations/{installation.id}/access_tokens"
    sim.suspend(installation)
    assert (await api.call("POST", path, token=api.app_token())).status == 403
    suspended = await api.call("GET", SHOP, token=token)
    assert (suspended.status, suspended.json["message"]) == (403, "This installation has been suspended")
    sim.unsuspend(installation)
    assert (await api.call("GET", SHOP, token=token)).status == 200
    sim.uninstall(installation)
    assert (await api.call("GET", SHOP, token=token)).status == 401
    assert (await api.call("POST", path, token=api.app_token())).status == 404
    assert (await api.call("GET", "/app/installations", token=api.app_token())).json == []


async def test_a_repository_taken_away_is_not_there(
    api: Api, sim: Simulator, repo: Repository, token: str
) -> None:
    assert repo.installation is not None
    sim.withdraw_repositories(repo.installation, [repo])
    assert (await api.call("GET", SHOP, token=token)).status == 404
    assert (await api.call("GET", f"/repositories/{repo.id}", token=token)).status == 404


async def test_a_former_name_leads_on(
    api: Api, sim: Simulator, repo: Repository, pull: Pull, token: str
) -> None:
    sim.rename(repo, "store")
    moved = await api.call("GET", f"{SHOP}/pulls/1?x=1", token=token)
    assert moved.status == 301
    assert moved.headers["Location"] == f"{sim.base_url}/repositories/{repo.id}/pulls/1?x=1"
    followed = await api.call("GET", moved.headers["Location"], token=token)
    assert followed.json["base"]["repo"]["full_name"] == "octo/store"
    posted = await api.call("POST", f"{SHOP}/issues/1/comments", token=token, json={"body": "x"})
    assert posted.status == 307
    assert (await api.call("GET", f"/repositories/{repo.id}", token=token)).json["name"] == "store"
    assert (await api.call("GET", "/repos/OCTO/Store", token=token)).status == 200


async def test_an_archived_repository_is_read_only(
    api: Api, sim: Simulator, repo: Repository, pull: Pull, token: str
) -> None:
    sim.archive(repo)
    path = f"{SHOP}/issues/{pull.number}/comments"
    refused = await api.call("POST", path, token=token, json={"body": "x"})
    assert (refused.status, refused.json["message"]) == (403, "Repository was archived so is read-only.")
    assert (await api.call("GET", path, token=token)).status == 200


async def test_an_installation_without_write_permission_cannot_write(
    api: Api, repo: Repository, pull: Pull
) -> None:
    assert repo.installation is not None
    repo.installation.permissions["pull_requests"] = "read"
    del repo.installation.permissions["checks"]
    token = await api.token(repo.installation.id)
    comments = f"{SHOP}/issues/{pull.number}/comments"
    assert (await api.call("GET", comments, token=token)).status == 200
    comment = await api.call("POST", comments, token=token, json={"body": "x"})
    assert comment.status == 403
    check = await api.call("POST", f"{SHOP}/check-runs", token=token, json={"name": "a"})
    assert (check.status, check.headers["X-Accepted-GitHub-Permissions"]) == (403, "checks=write")


async def test_an_api_below_a_path(demo: DemoRepository, clock: Clock, api: Api) -> None:
    async with Simulator(prefix="/api/v3", now=clock) as enterprise:
        assert enterprise.base_url.endswith("/api/v3")
        repo = enterprise.add_repository("octo/shop", demo.path)
        assert repo.installation is not None
        away = Api(sim=enterprise, session=api.session, clock=clock)
        token = await away.token(repo.installation.id)
        answer = await away.call("GET", SHOP, token=token)
        assert answer.json["url"] == f"{enterprise.base_url}/repos/octo/shop"
        assert answer.json["html_url"] == f"{enterprise.base_url.removesuffix('/api/v3')}/octo/shop"
        root = f"{enterprise.base_url.removesuffix('/api/v3')}/repos/octo/shop"
        assert (await away.call("GET", root, token=token)).status == 404


async def test_requests_are_logged_by_route(api: Api, sim: Simulator, pull: Pull, token: str) -> None:
    sim.requests.clear()
    await api.call("GET", f"{SHOP}/pulls/{pull.number}", token=token)
    await api.call("GET", f"{SHOP}/pulls/77", token=token)
    await api.call("GET", f"{SHOP}/commits/heads/main/check-runs", token=token)
    assert [(each.route, each.status) for each in sim.requests] == [
        ("/repos/{owner}/{repo}/pulls/{number}", 200),
        ("/repos/{owner}/{repo}/pulls/{number}", 404),
        ("/repos/{owner}/{repo}/commits/{ref}/check-runs", 200),
    ]
    assert sim.requests.count(route="/repos/{owner}/{repo}/pulls/{number}", status=200) == 1
    assert sim.requests.count(method="POST") == 0


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), (b"[]", 400), (b'{"body": 5}', 422), (b'{"body": "  "}', 422), (b"", 422)],
)
async def test_a_body_that_does_not_fit(
    api: Api, sim: Simulator, pull: Pull, token: str, body: bytes, status: int
) -> None:
    url = f"{sim.base_url}{SHOP}/issues/{pull.number}/comments"
    headers = {"Authorization": f"Bearer {token}"}
    async with api.session.post(url, data=body, headers=headers) as answer:
        assert answer.status == status
    assert pull.issue.comments == []


async def test_a_simple_answer_takes_well_under_a_millisecond(api: Api, sim: Simulator, token: str) -> None:
    sim.requests.clear()
    for _ in range(50):
        await api.call("GET", f"{SHOP}/git/ref/heads/main", token=token)
    times = sorted(each.seconds for each in sim.requests)
    assert times[0] < 0.001  # the quickest, so that a busy machine fails nothing
