"""The real Anthropic SDK against a local server that answers whatever a service or a gateway may answer."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from graft.llm import AnthropicClient, LlmRequest, LlmResult, NoModel, Outcome, Turn, Usage, connect

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

REQUEST = LlmRequest(
    purpose="writer",
    model="claude-haiku-5-5",
    system="You write cards.",
    turns=(Turn("user", "What changed?"),),
    schema={"type": "object", "properties": {"goal": {"type": "string"}}, "required": ["goal"]},
    max_tokens=500,
    timeout=5.0,
)


def message(text: str | None = '{"goal": "x"}', **fields: Any) -> dict[str, Any]:
    content = [] if text is None else [{"type": "text", "text": text}]
    usage = {
        "input_tokens": 11,
        "output_tokens": 7,
        "cache_read_input_tokens": 5,
        "cache_creation_input_tokens": 3,
    }
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-5-5",
        "content": content,
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": usage,
    } | fields


def error(kind: str, text: str = "private words") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": text}}


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[AnthropicClient]:
    app = web.Application()
    app.router.add_post("/v1/messages", handler)
    app.router.add_post("/v1/messages/count_tokens", handler)
    async with TestServer(app) as server:
        client = connect(api_key="sk-test", base_url=str(server.make_url("/")))
        assert isinstance(client, AnthropicClient)
        try:
            yield client
        finally:
            await client.close()


def answering(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Handler:
    async def handler(_: web.Request) -> web.Response:
        if isinstance(body, (str, bytes)):
            raw = body.encode() if isinstance(body, str) else body
            return web.Response(body=raw, status=status, headers=headers)
        return web.json_response(body, status=status, headers=headers)

    return handler


async def result_of(handler: Handler, request: LlmRequest = REQUEST) -> LlmResult:
    async with serving(handler) as client:
        return await client.complete(request)


async def test_a_plain_answer() -> None:
    result = await result_of(answering(message()))
    assert (result.outcome, result.data, result.model) == (Outcome.OK, {"goal": "x"}, "claude-haiku-5-5")
    assert result.usage == Usage(input_tokens=11, output_tokens=7, cache_read_tokens=5, cache_write_tokens=3)
    assert result.seconds > 0


async def test_what_is_sent() -> None:
    seen: list[tuple[dict[str, Any], str | None]] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append((await request.json(), request.headers.get("authorization")))
        return web.json_response(message())

    await result_of(handler)
    ((body, key),) = seen
    assert key == "Bearer sk-test"
    assert body["model"] == "claude-haiku-5-5"
    assert body["max_tokens"] == 500
    assert body["system"] == [
        {"type": "text", "text": "You write cards.", "cache_control": {"type": "ephemeral"}}
    ]
    assert body["messages"] == [{"role": "user", "content": "What changed?"}]
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": REQUEST.schema}}


@pytest.mark.parametrize(
    ("status", "kind", "outcome"),
    [
        (400, "invalid_request_error", Outcome.INVALID_REQUEST),
        (401, "authentication_error", Outcome.UNAUTHORIZED),
        (402, "billing_error", Outcome.BILLING),
        (403, "permission_error", Outcome.UNAUTHORIZED),
        (404, "not_found_error", Outcome.UNKNOWN_MODEL),
        (408, "timeout_error", Outcome.TIMEOUT),
        (413, "request_too_large", Outcome.TOO_LONG),
        (418, "api_error", Outcome.INVALID_REQUEST),
        (429, "rate_limit_error", Outcome.RATE_LIMITED),
        (500, "api_error", Outcome.SERVER_ERROR),
        (502, "api_error", Outcome.SERVER_ERROR),
        (503, "overloaded_error", Outcome.OVERLOADED),
        (504, "timeout_error", Outcome.TIMEOUT),
        (529, "overloaded_error", Outcome.OVERLOADED),
    ],
)
async def test_error_statuses(status: int, kind: str, outcome: Outcome) -> None:
    calls = 0
    inner = answering(error(kind), status)

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal calls
        calls += 1
        return await inner(request)

    result = await result_of(handler)
    assert (result.outcome, result.status, result.data) == (outcome, status, None)
    assert calls == 1  # the SDK's own retries are off
    assert "private words" not in repr(result)
    assert "private words" not in str(result.log_context())


async def test_a_prompt_that_is_too_long() -> None:
    body = error("invalid_request_error", "prompt is too long: 1200000 tokens > 1000000 maximum")
    assert (await result_of(answering(body, 400))).outcome is Outcome.TOO_LONG


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "17"}, 17.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-4"}, 0.0),
        ({"retry-after": "999999"}, 3600.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30.0),
    ],
)
async def test_when_to_call_again(headers: dict[str, str], wait: float | None) -> None:
    result = await result_of(answering(error("rate_limit_error"), 429, headers))
    assert (result.outcome, result.retry_after) == (Outcome.RATE_LIMITED, wait)


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (message(stop_reason="refusal"), Outcome.REFUSED),
        (message(text=None, stop_reason="refusal"), Outcome.REFUSED),
        (message('{"goal": "cut o', stop_reason="max_tokens"), Outcome.MAX_TOKENS),
        (message(stop_reason="model_context_window_exceeded"), Outcome.MAX_TOKENS),
        (message(text=None), Outcome.EMPTY),
        (message(text="  \n "), Outcome.EMPTY),
        (message(text="I would rather not."), Outcome.BAD_JSON),
        (message(text="[1, 2]"), Outcome.BAD_JSON),
        (message(text='{"goal": NaN}'), Outcome.BAD_JSON),
        (message(text='```json\n{"goal": "x"}\n```'), Outcome.OK),
        (message(text='Here it is: {"goal": "x"} I hope it helps.'), Outcome.OK),
        (message(content=[{"type": "thinking", "thinking": "hm", "signature": "s"}]), Outcome.EMPTY),
        (message(content=[{"type": "novelty"}, {"type": "text", "text": '{"goal":"x"}'}]), Outcome.OK),
        (message(usage=None), Outcome.OK),
        (message(usage={"input_tokens": "many", "output_tokens": -4}), Outcome.OK),
        (message(content=None), Outcome.BAD_RESPONSE),
        (message(content="text"), Outcome.BAD_RESPONSE),
        (message(content=[None, 3, "x"]), Outcome.EMPTY),
        ({}, Outcome.BAD_RESPONSE),
        ([], Outcome.BAD_RESPONSE),
        ("<html>gateway</html>", Outcome.BAD_RESPONSE),
        ("", Outcome.BAD_RESPONSE),
    ],
)
async def test_answers(body: Any, outcome: Outcome) -> None:
    result = await result_of(answering(body))
    assert result.outcome is outcome
    if outcome is Outcome.OK:
        assert result.data == {"goal": "x"}
    assert result.usage.total >= 0


async def test_broken_json_with_the_right_content_type() -> None:
    handler = answering('{"id": ', headers={"content-type": "application/json"})
    assert (await result_of(handler)).outcome is Outcome.BAD_RESPONSE


async def test_unfit_characters_do_not_survive() -> None:
    result = await result_of(answering(message('{"goal": "a\\u0000b\\ud800c"}')))
    assert result.data == {"goal": "abc"}


async def test_a_prompt_with_lone_surrogates_can_be_sent() -> None:
    seen: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append((await request.json())["messages"][0]["content"])
        return web.json_response(message())

    request = msgspec.structs.replace(REQUEST, turns=(Turn("user", "a\ud800b\0"),))
    assert (await result_of(handler, request)).outcome is Outcome.OK
    assert seen == ["a?b\0"]


async def test_a_slow_answer_times_out() -> None:
    release = asyncio.Event()

    async def handler(_: web.Request) -> web.Response:
        await release.wait()
        return web.json_response(message())

    async with serving(handler) as client:
        result = await client.complete(msgspec.structs.replace(REQUEST, timeout=0.1))
        release.set()
    assert result.outcome is Outcome.TIMEOUT
    assert result.outcome.is_temporary


async def test_a_trickle_times_out() -> None:
    release = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "application/json"})
        await response.prepare(request)
        for _ in range(100):
            if release.is_set():
                break
            await response.write(b" ")
            await asyncio.sleep(0.02)
        return response

    async with serving(handler) as client:
        result = await client.complete(msgspec.structs.replace(REQUEST, timeout=0.2))
        release.set()
    assert result.outcome is Outcome.TIMEOUT


async def test_a_connection_that_breaks() -> None:
    async def handler(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    assert (await result_of(handler)).outcome is Outcome.CONNECTION


async def test_nobody_listening() -> None:
    client = connect(api_key="k", base_url="http://127.0.0.1:9")
    assert isinstance(client, AnthropicClient)
    assert (await client.complete(REQUEST)).outcome is Outcome.CONNECTION
    await client.close()


async def test_cancelling_abandons_the_call() -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def handler(_: web.Request) -> web.Response:
        started.set()
        await release.wait()
        return web.Response()

    async with serving(handler) as client:
        task = asyncio.create_task(client.complete(REQUEST))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()


async def test_counting_tokens() -> None:
    async with serving(answering({"input_tokens": 42})) as client:
        assert await client.count_tokens("m", "text") == 42
    for body, status in [({}, 200), ({"input_tokens": "x"}, 200), (error("api_error"), 500), ("<html>", 200)]:
        async with serving(answering(body, status)) as client:
            assert await client.count_tokens("m", "text") is None


async def test_a_token_instead_of_a_key() -> None:
    seen: list[str | None] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.headers.get("authorization"))
        return web.json_response(message())

    app = web.Application()
    app.router.add_post("/v1/messages", handler)
    async with TestServer(app) as server:
        client = connect(auth_token="tok", base_url=str(server.make_url("/")))
        assert isinstance(client, AnthropicClient)
        await client.complete(REQUEST)
        await client.close()
    assert seen == ["Bearer tok"]


async def test_no_key_no_call() -> None:
    client = connect()
    assert isinstance(client, NoModel)
    assert (await client.complete(REQUEST)).outcome is Outcome.NO_KEY
    assert await client.count_tokens("m", "x") is None


async def test_nothing_of_a_call_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    request = msgspec.structs.replace(REQUEST, system="canary-1", turns=(Turn("user", "canary-2"),))
    for handler in (answering(message('{"goal":"canary-3"}')), answering(error("x", "canary-4"), 500)):
        result = await result_of(handler, request)
        assert "canary" not in repr(result)
    assert "canary" not in repr(request)
    assert "canary" not in json.dumps([r.getMessage() for r in caplog.records if r.name != "asyncio"])


def test_importing_loads_no_sdk() -> None:
    slow = "('anthropic', 'aiohttp', 'structlog')"
    code = f"import sys, graft.llm, graft.intent; print([m for m in {slow} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
