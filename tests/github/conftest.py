"""A scripted HTTP server in GitHub's place, and clients that talk to it on a clock the test turns."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from graft.github import GitHub, Pace

EPOCH = 1_800_000_000.0  # what the stub's Date header says when the clock shows 0


class Clock:
    """A monotonic clock that only the test moves."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time

    def wall(self) -> float:
        return EPOCH + self.time


@dataclass(kw_only=True)
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(kw_only=True)
class Answer:
    """One scripted answer. `hang` never answers, `drop` closes the connection after reading the request."""

    status: int = 200
    json: Any = None
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    drop: bool = False
    gate: asyncio.Event | None = None


Handler = Callable[[Seen], "Answer | dict[str, Any]"]


class Stub:
    """Answers per `METHOD /path` (without query) in the order given; the last one stays. Anything else: 404."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.seen: list[Seen] = []
        self.url = ""
        self.tokens = 0
        self.token_lifetime = 3600.0
        self._answers: dict[str, deque[Answer | Handler]] = defaultdict(deque)
        self._stopping = asyncio.Event()

    def on(self, target: str, *answers: dict[str, Any] | Handler) -> None:
        for answer in answers:
            self._answers[target].append(Answer(**answer) if isinstance(answer, dict) else answer)

    def paths(self, prefix: str = "") -> list[str]:
        return [f"{s.method} {s.path}" for s in self.seen if s.path.startswith(prefix)]

    def calls(self) -> list[Seen]:
        """Requests other than those for tokens."""
        return [s for s in self.seen if not s.path.endswith("/access_tokens")]

    def date(self) -> str:
        return formatdate(EPOCH + self.clock.time, usegmt=True)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        seen = Seen(
            method=request.method,
            path=request.raw_path,
            headers={k.lower(): v for k, v in request.headers.items()},
            body=await request.read(),
        )
        self.seen.append(seen)
        target = f"{request.method} {request.raw_path.partition('?')[0]}"
        queue = self._answers.get(target)
        if queue:
            answer = queue[0] if len(queue) == 1 else queue.popleft()
        elif request.path.endswith("/access_tokens"):
            answer = self.token_answer(seen)
        else:
            answer = Answer(status=404, json={"message": "Not Found"})
        if not isinstance(answer, Answer):
            made = answer(seen)
            answer = Answer(**made) if isinstance(made, dict) else made
        if answer.gate is not None:
            await answer.gate.wait()
        if answer.hang:
            await self._stopping.wait()
        if answer.drop or answer.hang:
            assert request.transport is not None
            request.transport.close()
        headers = {"Date": self.date(), **answer.headers}
        body = answer.body if answer.body is not None else json.dumps(answer.json).encode()
        if answer.status in (204, 304):
            return web.Response(status=answer.status, headers=headers)
        headers.setdefault("Content-Type", "application/json; charset=utf-8")
        return web.Response(status=answer.status, body=body, headers=headers)

    def token_answer(self, _: Seen) -> Answer:
        self.tokens += 1
        expires_at = datetime.fromtimestamp(EPOCH + self.clock.time + self.token_lifetime, UTC)
        token = f"ghs_{self.tokens}_" + "x" * 300
        return Answer(
            status=201, json={"token": token, "expires_at": expires_at.strftime("%Y-%m-%dT%H:%M:%SZ")}
        )

    def release(self) -> None:
        self._stopping.set()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def stub(clock: Clock) -> AsyncIterator[Stub]:
    stub = Stub(clock)
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", stub.handle)
    server = TestServer(app)
    await server.start_server()
    stub.url = str(server.make_url("/")).rstrip("/")
    yield stub
    stub.release()
    await server.close()


Make = Callable[..., GitHub]


@pytest.fixture
async def make(stub: Stub, clock: Clock, app_private_key: str) -> AsyncIterator[Make]:
    made: list[GitHub] = []

    def build(**options: Any) -> GitHub:
        options = {"api_url": stub.url, "timeout": 2.0, "now": clock, "wall": clock.wall, **options}
        github = GitHub(app_id=4711, private_key=app_private_key, **options)
        made.append(github)
        return github

    yield build
    for github in made:
        await github.close()


@pytest.fixture
def github(make: Make) -> GitHub:
    return make(pace=Pace(interval=0.0))
