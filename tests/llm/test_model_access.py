"""May the account use the model? Asked of the list of models, on the real SDK and a local server."""

from __future__ import annotations

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from graft.llm import Outcome, model_access


async def asked(status: int, body: object, *, kind: str = "application/json") -> tuple[Outcome, list[str]]:
    paths: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        paths.append(request.path)
        if isinstance(body, str):
            return web.Response(text=body, status=status, content_type=kind)
        return web.json_response(body, status=status)

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", handler)
    async with TestServer(app) as server:
        outcome = await model_access(
            "claude-opus-5-5", api_key="sk-ant-test", auth_token=None, base_url=str(server.make_url("/"))
        )
    return outcome, paths


MODEL = {"id": "claude-opus-5-5", "type": "model", "display_name": "x", "created_at": "2026-01-01T00:00:00Z"}


async def test_a_model_that_is_listed_may_be_used() -> None:
    outcome, paths = await asked(200, MODEL)
    assert outcome is Outcome.OK
    assert paths == ["/v1/models/claude-opus-5-5"], "one question, no tokens"


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (401, Outcome.UNAUTHORIZED),
        (403, Outcome.UNAUTHORIZED),
        (404, Outcome.UNKNOWN_MODEL),
        (429, Outcome.RATE_LIMITED),
        (500, Outcome.SERVER_ERROR),
        (529, Outcome.OVERLOADED),
    ],
)
async def test_a_refusal_says_why(status: int, outcome: Outcome) -> None:
    body = {"type": "error", "error": {"type": "some_error", "message": "private words"}}
    found, paths = await asked(status, body)
    assert found is outcome
    assert len(paths) == 1, "the caller decides when to try again"


async def test_nobody_there() -> None:
    outcome = await model_access("m", api_key="k", auth_token=None, base_url="http://127.0.0.1:1")
    assert outcome is Outcome.CONNECTION
