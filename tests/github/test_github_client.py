"""The client against a scripted server: authorization, failures, limits, redirects, pages, ETags."""

from __future__ import annotations

import asyncio
from typing import Any

import jwt
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft.errors import ConfigError, PermanentError, TransientError
from graft.github import (
    AmbiguousWrite,
    AppRefused,
    Forbidden,
    GitHub,
    GitHubRefused,
    GitHubUnavailable,
    InstallationUnavailable,
    NotFound,
    Pace,
    RateLimited,
    ResponseTooLarge,
    Unprocessable,
    WritePaceExceeded,
)
from graft.github.api import repository
from graft.github.errors import Call, read_error_body
from graft.github.tokens import AppToken
from graft.github.transport import Transport


class Thing(msgspec.Struct):
    id: int


ONE = "repos/{owner}/{repo}/things/{number}"
PATH = "/repos/octo/repo/things/7"
VALUES: Any = {**repository("octo/repo"), "number": 7}
CANARY = "CANARY-secret-text"


async def read(github: GitHub, **options: Any) -> Thing:
    return await github.installation(9).get(ONE, Thing, **{**VALUES, **options})


async def write(github: GitHub) -> Thing:
    return await github.installation(9).post(ONE, {"body": CANARY}, Thing, **VALUES)


# --- authorization ---------------------------------------------------------------------------------------


async def test_an_app_call_carries_a_jwt_that_github_accepts(
    stub: Any, github: GitHub, app_private_key: str
) -> None:
    stub.on("GET /app", {"json": {"id": 1}})
    assert (await github.app.get("app", Thing)).id == 1
    scheme, token = stub.seen[0].headers["authorization"].split(" ")
    claims = jwt.decode(token, options={"verify_signature": False})
    assert scheme == "bearer"
    assert jwt.get_unverified_header(token)["alg"] == "RS256"
    assert claims["iss"] == "4711"
    assert claims["exp"] - claims["iat"] <= 660


def test_a_jwt_is_reused_for_five_minutes_and_then_signed_anew(app_private_key: str, clock: Any) -> None:
    token = AppToken(4711, app_private_key, now=clock)
    first = token.value()
    clock.time = 299
    assert token.value() is first
    clock.time = 301
    second = token.value()
    assert second is not first
    assert token.value(fresh=True) is not second


async def test_an_installation_call_uses_a_token_of_any_length_once_fetched(
    stub: Any, github: GitHub
) -> None:
    stub.on(f"GET {PATH}", {"json": {"id": 1}})
    await read(github)
    await read(github)
    assert stub.tokens == 1
    assert all(seen.headers["authorization"] == "token ghs_1_" + "x" * 300 for seen in stub.calls())
    assert all(seen.headers["x-github-api-version"] for seen in stub.calls())


async def test_many_calls_at_once_ask_for_one_token(stub: Any, github: GitHub) -> None:
    stub.on(f"GET {PATH}", {"json": {"id": 1}})
    await asyncio.gather(*(read(github) for _ in range(20)))
    assert stub.tokens == 1


async def test_a_cancelled_caller_takes_the_token_from_nobody(stub: Any, github: GitHub) -> None:
    gate, asked = asyncio.Event(), asyncio.Event()
    stub.on(f"GET {PATH}", {"json": {"id": 1}})

    def late(seen: Any) -> Any:
        answer = stub.token_answer(seen)
        asked.set()
        answer.gate = gate
        return answer

    stub.on("POST /app/installations/9/access_tokens", late)
    first = asyncio.create_task(read(github))
    await asked.wait()
    second = asyncio.create_task(read(github))
    await asyncio.sleep(0)
    first.cancel()
    gate.set()
    assert (await second).id == 1
    assert stub.tokens == 1


@pytest.mark.parametrize(
    ("lifetime", "good_for"),
    [(3600, 3300), (100, 75), (10**9, 3300)],
    ids=["hour", "short", "absurd"],
)
async def test_a_token_is_renewed_before_it_expires(
    stub: Any, github: GitHub, clock: Any, lifetime: float, good_for: float
) -> None:
    stub.token_lifetime = lifetime
    stub.on(f"GET {PATH}", {"json": {"id": 1}})
    await read(github)
    clock.time = good_for - 1
    await read(github)
    assert stub.tokens == 1
    clock.time = good_for + 1
    await read(github)
    assert stub.tokens == 2


async def test_a_token_that_is_over_already_is_used_once(stub: Any, github: GitHub) -> None:
    stub.token_lifetime = -5
    stub.on(f"GET {PATH}", {"json": {"id": 1}})
    await read(github)
    await read(github)
    assert stub.tokens == 2


async def test_a_refused_token_is_replaced_once(stub: Any, github: GitHub) -> None:
    stub.on(f"GET {PATH}", {"status": 401, "json": {"message": "Bad credentials"}}, {"json": {"id": 1}})
    assert (await read(github)).id == 1
    assert stub.tokens == 2


async def test_a_write_refused_for_its_token_is_sent_again(stub: Any, github: GitHub) -> None:
    stub.on(f"POST {PATH}", {"status": 401, "json": {}}, {"status": 201, "json": {"id": 1}})
    assert (await write(github)).id == 1
    assert [seen.json() for seen in stub.calls()] == [{"body": CANARY}] * 2


async def test_a_fresh_token_refused_is_permanent(stub: Any, github: GitHub) -> None:
    stub.on(f"GET {PATH}", {"status": 401, "json": {"message": "Bad credentials"}})
    with pytest.raises(GitHubRefused) as caught:
        await read(github)
    assert caught.value.reason == "unauthorized"
    assert stub.tokens == 2


async def test_a_refused_jwt_is_signed_anew_once_and_then_stops_the_app(stub: Any, github: GitHub) -> None:
    stub.on("GET /app", {"status": 401, "json": {"message": "A JSON web token could not be decoded"}})
    with pytest.raises(AppRefused) as caught:
        await github.app.get("app", Thing)
    assert isinstance(caught.value, ConfigError)
    assert "GITHUB_APP_PRIVATE_KEY" in str(caught.value)
    assert len(stub.seen) == 2


async def test_an_app_refused_while_a_token_is_fetched_reaches_the_caller(stub: Any, github: GitHub) -> None:
    stub.on("POST /app/installations/9/access_tokens", {"status": 401, "json": {}})
    with pytest.raises(AppRefused):
        await read(github)


async def test_an_unknown_app_id_is_a_refused_app(stub: Any, github: GitHub) -> None:
    stub.on(
        "POST /app/installations/9/access_tokens",
        {"status": 404, "json": {"message": "Integration not found"}},
    )
    with pytest.raises(AppRefused):
        await read(github)


async def test_a_refusal_names_the_clock_that_is_off(stub: Any, make: Any, clock: Any) -> None:
    stub.on("GET /app", {"status": 401, "json": {}})
    github = make(wall=lambda: clock.wall() + 240)
    with pytest.raises(AppRefused, match="240 s ahead of GitHub's") as caught:
        await github.app.get("app", Thing)
    assert caught.value.clock_skew == pytest.approx(240)


@pytest.mark.parametrize(
    ("status", "reason"), [(403, "installation_suspended"), (404, "installation_not_found")]
)
async def test_an_installation_without_a_token_says_why(
    stub: Any, github: GitHub, status: int, reason: str
) -> None:
    stub.on("POST /app/installations/9/access_tokens", {"status": status, "json": {"message": "no"}})
    with pytest.raises(InstallationUnavailable) as caught:
        await read(github)
    assert caught.value.reason == reason
    assert isinstance(caught.value, PermanentError)


async def test_a_suspension_noticed_in_the_middle_is_the_installations(stub: Any, github: GitHub) -> None:
    stub.on(f"GET {PATH}", {"status": 403, "json": {"message": "This installation has been suspended"}})
    with pytest.raises(InstallationUnavailable):
        await read(github)


async def test_a_token_that_does_not_come_is_no_ambiguous_write(stub: Any, github: GitHub) -> None:
    stub.on("POST /app/installations/9/access_tokens", {"status": 502, "json": {}})
    with pytest.raises(GitHubUnavailable) as caught:
        await read(github)
    assert not isinstance(caught.value, AmbiguousWrite)


@pytest.mark.parametrize("document", [{}, {"token": "x"}, {"token": "x", "expires_at": "soon"}, [], None])
async def test_a_token_answer_of_an_odd_form_is_transient(stub: Any, github: GitHub, document: Any) -> None:
    stub.on("POST /app/installations/9/access_tokens", {"status": 201, "json": document})
    with pytest.raises(GitHubUnavailable, match="access_tokens"):
        await read(github)


async def test_many_refusals_at_once_cost_one_new_token(stub: Any, github: GitHub) -> None:
    def answer(seen: Any) -> Any:
        fresh = "ghs_2_" in seen.headers["authorization"]
        return {"json": {"id": 1}} if fresh else {"status": 401, "json": {}}

    stub.on(f"GET {PATH}", answer)
    await asyncio.gather(*(read(github) for _ in range(20)))
    assert stub.tokens == 2


async def test_token_and_request_together_stay_within_the_time(stub: Any, make: Any) -> None:
    gate = asyncio.Event()

    def late(seen: Any) -> Any:
        asyncio.get_running_loop().call_later(1.0, gate.set)
        answer = stub.token_answer(seen)
        answer.gate = gate
        return answer

    stub.on("POST /app/installations/9/access_tokens", late)
    stub.on(f"POST {PATH}", {"hang": True})
    time = asyncio.get_running_loop().time
    started = time()
    with pytest.raises(AmbiguousWrite):
        await write(make(timeout=2.0))
    assert time() - started < 2.8


async def test_a_token_that_takes_too_long_is_no_doubt_about_a_write(stub: Any, make: Any) -> None:
    stub.on("POST /app/installations/9/access_tokens", {"hang": True})
    with pytest.raises(GitHubUnavailable) as caught:
        await write(make(timeout=0.1))
    assert caught.value.reason == "timeout"
    assert not isinstance(caught.value, AmbiguousWrite)


# --- what a status means ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "reason"),
    [
        (400, GitHubRefused, "refused"),
        (403, Forbidden, "forbidden"),
        (404, NotFound, "not_found"),
        (406, Unprocessable, "unprocessable"),
        (409, GitHubRefused, "refused"),
        (410, GitHubRefused, "gone"),
        (422, Unprocessable, "unprocessable"),
        (451, GitHubRefused, "gone"),
    ],
)
async def test_refusals_are_permanent_and_tell_no_content(
    stub: Any, github: GitHub, status: int, kind: type[GitHubRefused], reason: str
) -> None:
    stub.on(
        f"POST {PATH}",
        {
            "status": status,
            "json": {"message": CANARY, "errors": [{"code": "too_large", "message": CANARY}, CANARY]},
            "headers": {"X-GitHub-Request-Id": "ABCD:1234"},
        },
    )
    with pytest.raises(kind) as caught:
        await write(github)
    error = caught.value
    assert isinstance(error, PermanentError)
    assert error.reason == reason
    assert error.call == Call(
        method="POST", route=ONE, installation=9, status=status, request_id="ABCD:1234", codes=("too_large",)
    )
    assert CANARY not in f"{error!r} {error.__dict__} {error.__cause__!r}"
    assert str(status) in str(error)
    assert "octo" not in str(error)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 408])
async def test_a_failing_server_is_transient_for_a_read(stub: Any, github: GitHub, status: int) -> None:
    stub.on(f"GET {PATH}", {"status": status, "body": b"<html>", "headers": {"Retry-After": "7"}})
    with pytest.raises(GitHubUnavailable) as caught:
        await read(github)
    assert not isinstance(caught.value, AmbiguousWrite)
    assert (caught.value.reason, caught.value.retry_after) == ("server_error", 7)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_a_failing_server_leaves_a_write_in_doubt(stub: Any, github: GitHub, status: int) -> None:
    stub.on(f"POST {PATH}", {"status": status, "json": {}})
    with pytest.raises(AmbiguousWrite) as caught:
        await write(github)
    assert isinstance(caught.value, TransientError)
    assert len(stub.calls()) == 1


async def test_a_write_without_an_answer_is_in_doubt_and_sent_once(stub: Any, make: Any) -> None:
    stub.on(f"POST {PATH}", {"hang": True})
    with pytest.raises(AmbiguousWrite) as caught:
        await write(make(timeout=0.1))
    assert caught.value.reason == "timeout"
    assert len(stub.calls()) == 1


@pytest.mark.parametrize("method", ["post", "patch"])
async def test_a_write_whose_connection_breaks_is_in_doubt(stub: Any, github: GitHub, method: str) -> None:
    stub.on(f"{method.upper()} {PATH}", {"drop": True})
    with pytest.raises(AmbiguousWrite) as caught:
        await getattr(github.installation(9), method)(ONE, {}, Thing, **VALUES)
    assert caught.value.reason == "connection_lost"
    assert len(stub.calls()) == 1


async def test_a_read_that_times_out_is_transient(stub: Any, github: GitHub) -> None:
    stub.on(f"GET {PATH}", {"hang": True})
    with pytest.raises(GitHubUnavailable) as caught:
        await read(github, seconds=0.1)
    assert caught.value.reason == "timeout"


async def test_no_connection_is_no_doubt_even_for_a_write(stub: Any, make: Any, unused_tcp_port: int) -> None:
    github = make(api_url=f"http://127.0.0.1:{unused_tcp_port}")
    with pytest.raises(GitHubUnavailable) as caught:
        await github.app.write("POST", "app/hook/deliveries/1/attempts", None)
    assert caught.value.reason == "unreachable"
    assert not isinstance(caught.value, AmbiguousWrite)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"number": "%s"}' % CANARY.encode(), "missing required field `id`"),
        (b'{"id": "%s"}' % CANARY.encode(), r"\$\.id"),
        (b"<html>" + CANARY.encode(), "not JSON"),
        (b"", "not JSON"),
        (b'{"id": 1, "x": ' + b"[" * 100_000, "not JSON"),
        (b"\xff\xfe", "not JSON"),
    ],
)
async def test_an_unexpected_answer_names_the_place_and_not_the_value(
    stub: Any, github: GitHub, body: bytes, says: str
) -> None:
    stub.on(f"GET {PATH}", {"body": body})
    with pytest.raises(GitHubUnavailable, match=says) as caught:
        await read(github)
    assert caught.value.reason == "unexpected_answer"
    assert CANARY not in repr(caught.value)


async def test_unknown_fields_are_ignored(stub: Any, github: GitHub) -> None:
    stub.on(f"GET {PATH}", {"json": {"id": 1, "new_in_2030": {"a": [1]}}})
    assert (await read(github)).id == 1


async def test_an_answer_beyond_the_bound_is_not_kept(stub: Any, github: GitHub) -> None:
    stub.on(f"GET {PATH}", {"body": b"x" * 200_000})
    with pytest.raises(ResponseTooLarge) as caught:
        await read(github, max_bytes=100_000)
    assert (caught.value.limit, caught.value.reason) == (100_000, "response_too_large")


@given(st.binary(max_size=200))
def test_any_error_body_is_read(body: bytes) -> None:
    message, codes = read_error_body(body)
    assert isinstance(message, str)
    assert codes == ()


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        (b'{"errors":[{"code":"too_large"},{"code":"a b"},{"code":5},"x",{}]}', ("too_large",)),
        (b'{"errors":"Validation Failed"}', ()),
        (b'{"errors":{"code":"x"},"message":5}', ()),
        (b'{"message":"API Rate Limit"}', ()),
    ],
)
def test_error_codes_are_kept_only_in_a_plain_form(body: bytes, codes: tuple[str, ...]) -> None:
    assert read_error_body(body)[1] == codes


async def test_an_odd_request_id_is_left_out(stub: Any, github: GitHub) -> None:
    stub.on(f"GET {PATH}", {"status": 404, "json": {}, "headers": {"X-GitHub-Request-Id": "<b>" * 50}})
    with pytest.raises(NotFound) as caught:
        await read(github)
    assert caught.value.call.request_id is None


# --- rate limits -----------------------------------------------------------------------------------------


async def test_the_primary_limit_waits_for_the_reset_by_githubs_own_clock(
    stub: Any, make: Any, clock: Any
) -> None:
    github = make(wall=lambda: 0.0)  # our wall clock is decades off: it must not matter
    reset = int(clock.wall()) + 600
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(reset)}
    stub.on(
        f"GET {PATH}", {"status": 403, "json": {"message": "API rate limit exceeded"}, "headers": headers}
    )
    with pytest.raises(RateLimited) as caught:
        await read(github)
    assert (caught.value.reason, caught.value.retry_after) == ("primary_rate_limit", 601)
    assert github.installation(9).limits.limited_for == 601


async def test_nothing_is_sent_while_limited_and_others_are_not(
    stub: Any, github: GitHub, clock: Any
) -> None:
    stub.on(f"GET {PATH}", {"status": 429, "json": {}, "headers": {"Retry-After": "30"}}, {"json": {"id": 1}})
    with pytest.raises(RateLimited):
        await read(github)
    clock.time = 29
    with pytest.raises(RateLimited) as caught:
        await read(github)
    assert caught.value.retry_after == 1
    assert len(stub.calls()) == 1
    assert (await github.installation(10).get(ONE, Thing, **VALUES)).id == 1
    clock.time = 31
    assert (await read(github)).id == 1


async def test_repeated_secondary_limits_double_the_wait(stub: Any, github: GitHub, clock: Any) -> None:
    stub.on(f"GET {PATH}", {"status": 403, "json": {"message": "You have exceeded a secondary rate limit."}})
    waits = []
    for _ in range(6):
        with pytest.raises(RateLimited) as caught:
            await read(github)
        waits.append(caught.value.retry_after)
        clock.time += caught.value.retry_after or 0
    assert waits == [60, 120, 240, 480, 960, 960]


async def test_a_good_answer_forgets_the_strikes(stub: Any, github: GitHub, clock: Any) -> None:
    limited = {"status": 429, "json": {}}
    stub.on(f"GET {PATH}", limited, {"json": {"id": 1}}, limited)
    for expected in (60, None, 60):
        if expected is None:
            await read(github)
            continue
        with pytest.raises(RateLimited) as caught:
            await read(github)
        assert caught.value.retry_after == expected
        clock.time += 61


async def test_a_limited_app_gives_no_tokens_for_a_while(stub: Any, github: GitHub) -> None:
    stub.on(
        "POST /app/installations/9/access_tokens",
        {"status": 403, "json": {"message": "secondary rate limit"}},
    )
    for _ in range(2):
        with pytest.raises(RateLimited):
            await read(github)
    assert len(stub.seen) == 1
    assert github.app.limits.limited_for == 60


async def test_the_last_request_of_the_hour_closes_the_gate(stub: Any, github: GitHub, clock: Any) -> None:
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(clock.wall()) + 100)}
    stub.on(f"GET {PATH}", {"json": {"id": 1}, "headers": headers})
    assert (await read(github)).id == 1
    with pytest.raises(RateLimited):
        await read(github)
    state = github.installation(9).limits
    assert (state.remaining, state.reset_in, state.limited_for) == (0, 100, 101)


# --- writes at a pace ------------------------------------------------------------------------------------


async def test_a_permit_is_refused_while_limited(stub: Any, github: GitHub) -> None:
    stub.on(f"GET {PATH}", {"status": 429, "json": {}})
    with pytest.raises(RateLimited):
        await read(github)
    with pytest.raises(RateLimited):
        await github.installation(9).write_permit(1)


async def test_installations_have_a_pace_each(make: Any) -> None:
    github = make(pace=Pace(burst=2))
    await github.installation(9).write_permit(2)
    with pytest.raises(WritePaceExceeded):
        await github.installation(9).write_permit(1, max_wait=0.5)
    await github.installation(10).write_permit(2)


# --- redirects, pages, ETags -----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("absolute", [True, False])
async def test_a_redirect_on_the_same_host_is_followed_with_method_and_body(
    stub: Any, github: GitHub, status: int, absolute: bool
) -> None:
    location = "/repositories/5/things/7"
    stub.on(
        f"POST {PATH}", {"status": status, "headers": {"Location": (stub.url if absolute else "") + location}}
    )
    stub.on(f"POST {location}", {"status": 201, "json": {"id": 3}})
    assert (await write(github)).id == 3
    assert [seen.json() for seen in stub.calls()] == [{"body": CANARY}] * 2


@pytest.mark.parametrize(
    "location",
    [
        "https://evil.example/x",
        "//evil.example/x",
        "http://127.0.0.1:1/x",
        "http://user:secret@127.0.0.1/x",
        "http://[::1",
        "http://127.0.0.1:99999999/",
        "",
        "\\\\evil.example",
        "ftp://127.0.0.1/",
    ],
)
async def test_a_redirect_to_another_host_is_refused_and_the_token_stays(
    stub: Any, github: GitHub, location: str
) -> None:
    stub.on(f"GET {PATH}", {"status": 302, "headers": {"Location": location} if location else {}})
    with pytest.raises(GitHubRefused):
        await read(github)


@pytest.mark.parametrize("location", ["/a b", "/%zz", "/\u00e9", "?x=1", "/a%2Fb"])
async def test_a_redirect_of_an_odd_form_is_followed_quoted(stub: Any, github: GitHub, location: str) -> None:
    stub.on(f"GET {PATH}", {"status": 302, "headers": {"Location": location}}, {"status": 404, "json": {}})
    with pytest.raises(NotFound):
        await read(github)
    assert len(stub.calls()) == 2


async def test_a_redirect_in_circles_ends(stub: Any, github: GitHub) -> None:
    stub.on(f"GET {PATH}", {"status": 302, "headers": {"Location": PATH}})
    with pytest.raises(GitHubRefused) as caught:
        await read(github)
    assert caught.value.reason == "bad_redirect"
    assert len(stub.calls()) == 6


def _page(stub: Any, number: int, ids: list[int], *, last: bool = False) -> None:
    link = f'<{stub.url}/repos/octo/repo/things?page={number + 1}>; rel="next", <{stub.url}/x>; rel="last"'
    stub.on(
        "GET /repos/octo/repo/things",
        {"json": [{"id": i} for i in ids], "headers": {} if last else {"Link": link}},
    )


async def test_all_pages_are_read_by_their_links(stub: Any, github: GitHub) -> None:
    _page(stub, 1, [1, 2])
    _page(stub, 2, [3])
    _page(stub, 3, [4], last=True)
    things = await github.installation(9).get_all(
        "repos/{owner}/{repo}/things", Thing, **repository("octo/repo"), state="open"
    )
    assert [t.id for t in things] == [1, 2, 3, 4]
    assert things.complete
    assert [seen.path for seen in stub.calls()] == [
        "/repos/octo/repo/things?per_page=100&state=open",
        "/repos/octo/repo/things?page=2",
        "/repos/octo/repo/things?page=3",
    ]


async def test_a_list_beyond_the_limit_is_cut_and_says_so(stub: Any, github: GitHub) -> None:
    _page(stub, 1, [1, 2])
    _page(stub, 2, [3, 4])
    things = await github.installation(9).get_all(
        "repos/{owner}/{repo}/things", Thing, limit=3, **repository("octo/repo")
    )
    assert [t.id for t in things] == [1, 2, 3]
    assert not things.complete


@pytest.mark.parametrize(
    "link",
    [
        '<https://evil.example/x>; rel="next"',
        "<http://[::1>; rel=next",
        "<>; rel=next",
        "garbage",
        "<x" * 2_000,
        '<http://127.0.0.1:1/x>; rel="next"',
    ],
)
async def test_a_link_that_leads_elsewhere_is_no_next_page(stub: Any, github: GitHub, link: str) -> None:
    stub.on("GET /repos/octo/repo/things", {"json": [{"id": 1}], "headers": {"Link": link}})
    things = await github.installation(9).get_all(
        "repos/{owner}/{repo}/things", Thing, **repository("octo/repo")
    )
    assert [t.id for t in things] == [1]


async def test_a_known_answer_is_asked_for_conditionally(stub: Any, github: GitHub) -> None:
    stub.on(f"GET {PATH}", {"json": {"id": 1}, "headers": {"ETag": 'W/"a"'}}, {"status": 304})
    assert [(await read(github)).id for _ in range(3)] == [1, 1, 1]
    assert [seen.headers.get("if-none-match") for seen in stub.calls()] == [None, 'W/"a"', 'W/"a"']


async def test_pages_are_kept_with_their_links(stub: Any, github: GitHub) -> None:
    link = {"Link": f'<{stub.url}/next>; rel="next"', "ETag": '"p1"'}
    stub.on("GET /repos/octo/repo/things", {"json": [{"id": 1}], "headers": link}, {"status": 304})
    stub.on("GET /next", {"json": [{"id": 2}]})
    for _ in range(2):
        things = await github.installation(9).get_all(
            "repos/{owner}/{repo}/things", Thing, **repository("octo/repo")
        )
        assert [t.id for t in things] == [1, 2]


async def test_etags_die_with_their_token(stub: Any, github: GitHub, clock: Any) -> None:
    stub.on(f"GET {PATH}", {"json": {"id": 1}, "headers": {"ETag": '"a"'}})
    await read(github)
    clock.time = 3_400
    await read(github)
    assert stub.tokens == 2
    assert [seen.headers.get("if-none-match") for seen in stub.calls()] == [None, None]
    assert len(github._wire.etags) == 1


async def test_an_answer_to_a_replaced_token_is_not_kept(stub: Any, github: GitHub, clock: Any) -> None:
    gate, asked = asyncio.Event(), asyncio.Event()

    def slow(seen: Any) -> Any:
        asked.set()
        return {"json": {"id": 1}, "headers": {"ETag": '"a"'}, "gate": gate}

    stub.on(f"GET {PATH}", slow, {"json": {"id": 2}})
    first = asyncio.create_task(read(github))
    await asked.wait()
    clock.time = 3_400
    assert (await read(github)).id == 2
    gate.set()
    assert (await first).id == 1
    assert stub.tokens == 2
    assert len(github._wire.etags) == 0


async def test_one_installation_never_sees_the_others_answer(stub: Any, github: GitHub) -> None:
    stub.on(f"GET {PATH}", {"json": {"id": 1}, "headers": {"ETag": '"a"'}})
    await read(github)
    await github.installation(10).get(ONE, Thing, **VALUES)
    assert [seen.headers.get("if-none-match") for seen in stub.calls()] == [None, None]


async def test_an_uncached_read_is_never_conditional(stub: Any, github: GitHub) -> None:
    stub.on(f"GET {PATH}", {"json": {"id": 1}, "headers": {"ETag": '"a"'}})
    await read(github, cached=False)
    await read(github, cached=False)
    assert all("if-none-match" not in seen.headers for seen in stub.calls())


async def test_what_lasts_is_asked_for_once_as_long_as_the_token_lives(
    stub: Any, github: GitHub, clock: Any
) -> None:
    stub.on(f"GET {PATH}", {"json": {"id": 1}, "headers": {"ETag": '"a"'}}, {"json": {"id": 2}})
    assert [(await read(github, lasting=True)).id for _ in range(3)] == [1, 1, 1]
    assert len(stub.calls()) == 1
    clock.time = 3_400
    assert (await read(github, lasting=True)).id == 2


async def test_a_304_that_was_not_asked_for_is_transient(stub: Any, github: GitHub) -> None:
    stub.on(f"GET {PATH}", {"status": 304})
    with pytest.raises(GitHubUnavailable):
        await read(github)


# --- URLs ------------------------------------------------------------------------------------------------


async def test_an_enterprise_path_prefix_is_kept(stub: Any, make: Any) -> None:
    github = make(api_url=stub.url + "/api/v3/")
    stub.on("GET /api/v3/app", {"json": {"id": 1}})
    assert (await github.app.get("app", Thing)).id == 1


@pytest.fixture
def transport() -> Transport:
    return Transport("https://ghe.example/api/v3", http=None, timeout=1, max_bytes=1)


@pytest.mark.parametrize("value", ["", ".", "..", None])
def test_a_path_value_that_climbs_or_vanishes_is_refused(transport: Transport, value: Any) -> None:
    with pytest.raises(GitHubRefused) as caught:
        transport.url("repos/{owner}/x", {"owner": value})
    assert caught.value.reason == "bad_path"


@pytest.mark.parametrize("path", [["a", ".."], ["", "a"], ["a", "."]])
def test_a_path_of_several_parts_is_checked_part_by_part(transport: Transport, path: list[str]) -> None:
    with pytest.raises(GitHubRefused):
        transport.url("x{/path*}", {"path": path})


@given(owner=st.text(min_size=1).filter(lambda t: t not in (".", "..") and t.isprintable()), query=st.text())
def test_values_never_leave_their_place(owner: str, query: str) -> None:
    transport = Transport("https://ghe.example/api/v3", http=None, timeout=1, max_bytes=1)
    clean = owner.encode("utf-8", "ignore").decode() or "x"
    url = transport.url("repos/{owner}/end", {"owner": clean, "q": query.encode("utf-8", "ignore").decode()})
    path, _, rest = url.partition("?")
    assert path.startswith("https://ghe.example/api/v3/repos/")
    assert path.endswith("/end")
    assert path.count("/") == 7
    assert "#" not in url
    assert rest.startswith("q=")
    assert url.isascii()


def test_values_are_written_as_github_reads_them(transport: Transport) -> None:
    url = transport.url("x{/ref*}", {"ref": ["feat", "a#b c"], "draft": True, "page": 2, "base": None})
    assert url == "https://ghe.example/api/v3/x/feat/a%23b%20c?draft=true&page=2"


@pytest.mark.parametrize("name", ["", "octo", "octo/", "/repo", "a/b/c"])
def test_a_full_name_has_two_parts(name: str) -> None:
    with pytest.raises(ValueError, match="owner/name"):
        repository(name)


# --- what is told about calls ----------------------------------------------------------------------------


async def test_every_call_is_reported_by_its_route(stub: Any, make: Any) -> None:
    calls: list[tuple[Any, ...]] = []
    github = make(on_call=lambda *call: calls.append((*call[:3], call[4])), timeout=0.2)
    stub.on(f"GET {PATH}", {"status": 404, "json": {}}, {"hang": True})
    with pytest.raises(NotFound):
        await read(github)
    with pytest.raises(GitHubUnavailable):
        await read(github)
    assert calls == [
        ("app/installations/{installation_id}/access_tokens", "POST", 201, 9),
        (ONE, "GET", 404, 9),
        (ONE, "GET", None, 9),
    ]


async def test_no_token_shows_in_a_repr(stub: Any, github: GitHub) -> None:
    stub.on(f"GET {PATH}", {"json": {"id": 1}})
    await read(github)
    installation = github.installation(9)
    token = await installation._token.get()
    assert "ghs_" not in repr(token)


async def test_the_same_installation_is_one_client_until_it_is_forgotten(github: GitHub) -> None:
    first = github.installation(9)
    assert github.installation(9) is first
    await github.forget(9)
    assert github.installation(9) is not first


async def test_a_given_session_is_left_open(stub: Any, app_private_key: str) -> None:
    import aiohttp

    stub.on("GET /app", {"json": {"id": 1}})
    async with aiohttp.ClientSession() as session:
        async with GitHub(app_id=1, private_key=app_private_key, api_url=stub.url, http=session) as github:
            await github.app.get("app", Thing)
        assert not session.closed
