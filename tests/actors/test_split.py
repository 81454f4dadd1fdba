"""Ingress and actors as processes of their own, stopped and replaced while deliveries come in."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from graft.database import Pool
from graft.simulator import Comment, Pull, Repository, Simulator
from graft.simulator.demo_repository import RepositoryBuilder
from proof.processes import Process, serving, start

from .world import MAIN, environment

CREATE = "/repos/{owner}/{repo}/issues/{number}/comments"
PULLS = 6
INGRESS_ONLY = (
    "NATS_URL",
    "GRAFT_NATS_PREFIX",
    "GITHUB_APP_ID",
    "GITHUB_WEBHOOK_SECRET",
)


class Stage:
    """A simulated GitHub with some branches, and what each kind of process is told."""

    def __init__(
        self, simulator: Simulator, repository: Repository, variables: Mapping[str, str], pool: Pool
    ) -> None:
        self.simulator = simulator
        self.repository = repository
        self.pool = pool
        self.ingress = {name: variables[name] for name in INGRESS_ONLY}
        self.actors = {name: text for name, text in variables.items() if name != "GITHUB_WEBHOOK_SECRET"}

    def send_to(self, process: Process) -> None:
        self.simulator.app.webhook_url = f"{process.url}/webhooks/github"

    async def settled(self, *, seconds: float = 45) -> None:
        """Until every accepted delivery is known and nothing is left to do."""
        await self.simulator.drain()
        async with asyncio.timeout(seconds):
            while True:
                known = {
                    row["delivery_id"] for row in await self.pool.fetch("SELECT * FROM webhook_deliveries")
                }
                left = await self.pool.fetchval(
                    "SELECT count(*) FROM work WHERE dead_at IS NULL AND address <> 'lead'"
                )
                if not left and self.published() <= known:
                    return
                await asyncio.sleep(0.05)

    def published(self) -> set[str]:
        """The deliveries of pull requests, all of which somebody has to act on."""
        return {each.guid for each in self.simulator.deliveries if each.event == "pull_request"}


def ours(pull: Pull) -> list[Comment]:
    return [c for c in pull.issue.comments if c.body.startswith("<!-- graft:managed-comment")]


@pytest.fixture
async def stage(
    tmp_path: Path, database_url: str, nats_url: str, bus_prefix: str, pool: Pool
) -> AsyncIterator[Stage]:
    async with Simulator() as simulator:
        builder = RepositoryBuilder(path=tmp_path / "demo.git")
        base = builder.commit("main", MAIN, message="Start")
        for number in range(PULLS):
            builder.commit(f"feature-{number}", {"src/app.py": f"VALUE = {number}\n"}, parent=base)
        repository = simulator.add_repository("octo/demo", builder.path)
        yield Stage(simulator, repository, environment(simulator, database_url, nats_url, bus_prefix), pool)


async def ask(url: str, path: str) -> tuple[int, dict[str, object]]:
    async with aiohttp.ClientSession() as session, session.get(url + path) as response:
        return response.status, await response.json(content_type=None)


async def test_an_ingress_without_a_database_and_actors_without_the_webhook_secret(stage: Stage) -> None:
    async with serving(stage.ingress, command="ingress") as ingress:
        stage.send_to(ingress)
        # Nobody has made the stream yet: nothing is promised that cannot be kept.
        status, report = await ask(ingress.url, "/readyz")
        assert (status, report["ready"]) == (503, False)
        await stage.simulator.open_pull(stage.repository, head="feature-0")
        await stage.simulator.drain()
        assert {d.status_code for d in stage.simulator.deliveries} == {503}
        async with serving(stage.actors, command="actors") as actors:
            assert (await ask(ingress.url, "/readyz"))[0] == 200
            status, report = await ask(actors.url, "/readyz")
            assert (status, report["checks"]) == (
                200,
                {"database": "ok", "partitions": "ok", "github": "ok", "broker": "ok"},
            )
            async with (
                aiohttp.ClientSession() as session,
                session.post(f"{actors.url}/webhooks/github", json={}) as response,
            ):
                assert response.status == 404
            for delivery in list(stage.simulator.deliveries):
                stage.simulator.redeliver(delivery.guid)
            await stage.settled()
            [pull] = stage.repository.pulls
            assert len(ours(pull)) == 1


async def test_a_rolling_restart_of_everything_loses_and_repeats_nothing(stage: Stage) -> None:
    async with AsyncExitStack() as running:

        async def begin(variables: Mapping[str, str], command: str) -> Process:
            process = await start(variables, command=command)
            running.push_async_callback(process.kill)
            return process

        actors = [await begin(stage.actors, "actors") for _ in range(2)]
        door = await begin(stage.ingress, "ingress")
        stage.send_to(door)
        opening = asyncio.create_task(open_all(stage))
        for old in actors:
            await begin(stage.actors, "actors")
            assert await old.terminate() == 0
        # As a load balancer does: new deliveries to the new one, then the old one ends.
        stage.send_to(await begin(stage.ingress, "ingress"))
        assert await door.terminate() == 0
        pulls = await opening
        await stage.settled()
        assert {d.status_code for d in stage.simulator.deliveries if d.event == "pull_request"} == {202}
        assert [len(ours(pull)) for pull in pulls] == [1] * PULLS
        assert stage.simulator.requests.count(method="POST", route=CREATE) == PULLS
        assert await stage.pool.fetchval("SELECT count(*) FROM work WHERE dead_at IS NOT NULL") == 0
        assert await stage.pool.fetchval("SELECT count(DISTINCT holder) FROM partitions") == 2


async def open_all(stage: Stage) -> list[Pull]:
    """A pull request every now and then, for as long as the restart takes."""
    opened = []
    for number in range(PULLS):
        opened.append(await stage.simulator.open_pull(stage.repository, head=f"feature-{number}"))
        await asyncio.sleep(1.0)
    return opened


async def test_a_delivery_on_its_way_is_answered_before_the_ingress_ends(stage: Stage) -> None:
    async with serving(stage.actors, command="actors"):
        process = await start(stage.ingress, command="ingress")
        address = urlsplit(process.url)
        body = b'{"zen": "Keep it logically awesome."}'
        digest = hmac.new(stage.simulator.app.webhook_secret.encode(), body, hashlib.sha256).hexdigest()
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        head = (
            "POST /webhooks/github HTTP/1.1",
            f"Host: {address.netloc}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            f"X-Hub-Signature-256: sha256={digest}",
            "X-GitHub-Event: ping",
            "X-GitHub-Delivery: 00000000-0000-0000-0000-000000000001",
            "Expect: 100-continue",
        )
        writer.write("\r\n".join((*head, "", "")).encode())
        # The server has begun with it, for it asks for the body.
        assert b"100" in await reader.readline()
        await reader.readline()
        ending = asyncio.create_task(process.terminate())
        writer.write(body)
        assert b"202" in await asyncio.wait_for(reader.readline(), 10)
        writer.close()
        assert await ending == 0
