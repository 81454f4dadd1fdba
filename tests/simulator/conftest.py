"""A simulated GitHub over the demo's repository, and independent clients to look at it."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from githubkit import AppAuthStrategy, GitHub, TokenAuthStrategy

from graft.simulator import Pull, Repository, Simulator
from graft.simulator.demo_repository import DemoRepository, build_demo_repository


@functools.cache
def signing_key(pem: str) -> RSAPrivateKey:
    key = load_pem_private_key(pem.encode(), password=None)
    assert isinstance(key, RSAPrivateKey)
    return key


@dataclass
class Clock:
    """Wall time that only the test moves."""

    seconds: float = 1_790_000_000.0

    def __call__(self) -> float:
        return self.seconds


@dataclass(kw_only=True)
class Answer:
    status: int
    headers: Any
    content: bytes
    json: Any = None


@dataclass(kw_only=True)
class Api:
    """Plain HTTP against the simulator, with a token or the App's JWT."""

    sim: Simulator
    session: aiohttp.ClientSession
    clock: Clock

    def app_token(self, *, key: str | None = None, **claims: Any) -> str:
        now = int(self.clock())
        content = {"iat": now - 60, "exp": now + 540, "iss": str(self.sim.app.id), **claims}
        return jwt.encode(content, signing_key(key or self.sim.private_key), algorithm="RS256")

    async def token(self, installation_id: int, body: dict[str, Any] | None = None) -> str:
        path = f"/app/installations/{installation_id}/access_tokens"
        answer = await self.call("POST", path, token=self.app_token(), json=body)
        assert answer.status == 201, answer.json
        return str(answer.json["token"])

    async def call(
        self,
        method: str,
        path: str,
        *,
        token: str | None = None,
        json: Any = None,
        headers: dict[str, str] | None = None,
        timeout: float = 10,
    ) -> Answer:
        sent = {} if token is None else {"Authorization": f"Bearer {token}"}
        url = path if path.startswith("http") else self.sim.base_url + path
        async with self.session.request(
            method,
            url,
            json=json,
            headers={**sent, **(headers or {})},
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=timeout),
        ) as answer:
            content = await answer.read()
            is_json = answer.content_type == "application/json" and content
            value = await answer.json() if is_json else None
            return Answer(status=answer.status, headers=answer.headers, content=content, json=value)


@dataclass
class Received:
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> str:
        return self.headers["X-GitHub-Event"]


@dataclass
class Receiver:
    """A place for webhooks. `answers` are statuses to give first, then 202; `gate` holds answers back."""

    got: list[Received] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    gate: asyncio.Event | None = None
    waiting: int = 0
    most_waiting: int = 0
    url: str = ""

    async def take(self, request: web.Request) -> web.Response:
        self.got.append(Received(dict(request.headers), await request.read()))
        self.waiting += 1
        self.most_waiting = max(self.most_waiting, self.waiting)
        if self.gate is not None:
            await self.gate.wait()
        self.waiting -= 1
        return web.json_response({"taken": True}, status=self.answers.pop(0) if self.answers else 202)

    def of(self, event: str) -> list[Received]:
        return [each for each in self.got if each.event == event]


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> DemoRepository:
    return build_demo_repository(tmp_path_factory.mktemp("demo") / "shop.git")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def sim(clock: Clock) -> AsyncIterator[Simulator]:
    async with Simulator(now=clock) as simulator:
        yield simulator


@pytest.fixture
async def receiver(sim: Simulator) -> AsyncIterator[Receiver]:
    """The App's webhook URL, listening."""
    taken = Receiver()
    application = web.Application()
    application.router.add_post("/hook", taken.take)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    taken.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    sim.app.webhook_url = taken.url
    yield taken
    await runner.cleanup()


@pytest.fixture
def repo(sim: Simulator, demo: DemoRepository) -> Repository:
    return sim.add_repository("octo/shop", demo.path, id=4_200_000_001)


@pytest.fixture
async def pull(sim: Simulator, repo: Repository, demo: DemoRepository) -> Pull:
    return await sim.open_pull(repo, head="feature", title=demo.title, body=demo.body, author="mona")


@pytest.fixture
async def api(sim: Simulator, clock: Clock) -> AsyncIterator[Api]:
    async with aiohttp.ClientSession() as session:
        yield Api(sim=sim, session=session, clock=clock)


@pytest.fixture
async def token(api: Api, repo: Repository) -> str:
    assert repo.installation is not None
    return await api.token(repo.installation.id)


@pytest.fixture
async def real_time() -> AsyncIterator[Simulator]:
    """A simulator on the real clock, for clients that sign with it."""
    async with Simulator() as simulator:
        yield simulator


@pytest.fixture
async def kit(sim: Simulator, token: str) -> AsyncIterator[GitHub[TokenAuthStrategy]]:
    """GitHub's typed client, with an installation token."""
    async with GitHub(
        TokenAuthStrategy(token), base_url=sim.base_url, http_cache=False, auto_retry=False, trust_env=False
    ) as github:
        yield github


@pytest.fixture
async def app_kit(real_time: Simulator) -> AsyncIterator[GitHub[AppAuthStrategy]]:
    """GitHub's typed client, as the App of `real_time`."""
    async with GitHub(
        AppAuthStrategy(real_time.app.id, real_time.private_key),
        base_url=real_time.base_url,
        http_cache=False,
        auto_retry=False,
        trust_env=False,
    ) as github:
        yield github
