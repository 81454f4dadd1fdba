"""What a sender without the secret, or with an old delivery in hand, can do to the ingress and to what is behind it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from graft import ingress
from graft.bus import Bus
from graft.config import Address, Settings
from graft.ingress import Readiness
from graft.metrics import Metrics
from graft.streams import StreamSettings, stream_name
from proof import flood
from tests.actors.conftest import MakeWorld, make_world  # noqa: F401 - a fixture
from tests.actors.world import World

SECRET = "a webhook secret"
MakeSettings = Callable[..., Settings]


class Door:
    """A served ingress as the internet sees it."""

    def __init__(self, url: str, bus: Bus) -> None:
        self.host, self.port = str(urlsplit(url).hostname), int(urlsplit(url).port or 0)
        self.bus = bus

    async def send(self, *pieces: bytes, seconds: float = 20.0) -> bytes:
        """Status line (`b""` when the connection was closed without one) after sending these bytes."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            async with asyncio.timeout(seconds):
                try:
                    for piece in pieces:
                        writer.write(piece)
                        await writer.drain()
                    return (await reader.readline()).strip()
                except ConnectionError:
                    return b""
        finally:
            await abort(writer)


async def abort(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


@asynccontextmanager
async def opened(settings: Settings, nats_url: str, prefix: str) -> AsyncIterator[Door]:
    async with AsyncExitStack() as stack:
        bus = await Bus.connect(nats_url, prefix=prefix)
        stack.push_async_callback(bus.close)
        await bus.ensure_stream(StreamSettings(max_bytes=1_000_000))
        stack.push_async_callback(bus.client.jetstream().delete_stream, stream_name(prefix))
        app = ingress.create_app(settings, bus, Readiness(), Metrics())
        yield Door(await ingress.listen(stack, app, Address(host="127.0.0.1", port=0)), bus)


@pytest.fixture
async def door(settings: MakeSettings, nats_url: str, bus_prefix: str) -> AsyncIterator[Door]:
    async with opened(settings(), nats_url, bus_prefix) as made:
        yield made


def sign(body: bytes, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def request(body: bytes, *, size: str | None = None, signature: str | None = None, **headers: str) -> bytes:
    lines = {
        "Host": "x",
        "Content-Type": "application/json",
        "X-GitHub-Event": "ping",
        "X-GitHub-Delivery": "d-1",
        "X-Hub-Signature-256": signature or sign(body),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return (
        f"POST /webhooks/github HTTP/1.1\r\n{head}{size or f'Content-Length: {len(body)}'}\r\n\r\n".encode()
        + body
    )


def is_refused(line: bytes) -> bool:
    """A client error, or a connection that was closed without a word."""
    return line == b"" or re.match(rb"HTTP/1\.[01] 4\d\d ", line) is not None


async def test_a_genuine_delivery_is_taken(door: Door) -> None:
    assert await door.send(request(b"{}")) == b"HTTP/1.1 202 Accepted"


async def test_a_slow_body_ends_before_github_would_have_given_up(door: Door) -> None:
    line = await door.send(request(b"", size="Content-Length: 1000", signature=sign(b"x")), b"{")
    assert line == b"HTTP/1.1 408 Request Timeout"


@pytest.mark.parametrize(
    "headers",
    [
        "X-A: " + "v" * 100_000,
        "".join(f"X-{n}: v\r\n" for n in range(5_000)),
        "X-" + "n" * 100_000 + ": v",
        "X-A: v\r\n" + " folded\r\n" * 20_000,
    ],
    ids=["long", "many", "long name", "folded"],
)
async def test_endless_headers_are_cut_off(headers: str, door: Door) -> None:
    line = await door.send(f"POST /webhooks/github HTTP/1.1\r\nHost: x\r\n{headers}".encode(), b"\r\n" * 4)
    assert is_refused(line), line


async def test_a_long_address_is_cut_off(door: Door) -> None:
    assert is_refused(await door.send(b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n"))


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "identity, gzip"])
async def test_compressed_bodies_are_refused_unread(coding: str, door: Door) -> None:
    assert (await door.send(request(b"{}", Content_Encoding=coding))).startswith(b"HTTP/1.1 415")


@pytest.mark.parametrize(
    "kind", ["text/plain", "multipart/form-data", "application/json+x", "text/json", "*/*"]
)
async def test_other_content_types_are_refused(kind: str, door: Door) -> None:
    assert (await door.send(request(b"{}", Content_Type=kind))).startswith(b"HTTP/1.1 415")


async def test_chunks_without_a_length_are_read_up_to_the_limit(door: Door) -> None:
    whole = request(b"", size="Transfer-Encoding: chunked", signature=sign(b"{}"))
    assert await door.send(whole + b"2\r\n{}\r\n0\r\n\r\n") == b"HTTP/1.1 202 Accepted"
    piece = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    assert await door.send(whole, *[piece] * 26) in (b"HTTP/1.1 413 Request Entity Too Large", b"")


@pytest.mark.parametrize(
    "size",
    ["Content-Length: 2\r\nContent-Length: 3", "Content-Length: 2\r\nTransfer-Encoding: chunked", "Content-Length: -1",
     "Content-Length: 2x", "Transfer-Encoding: chunked, identity", "Transfer-Encoding: xchunked"],
)  # fmt: skip
async def test_a_request_that_can_be_read_in_two_ways_is_not_taken(size: str, door: Door) -> None:
    line = await door.send(request(b"{}", size=size))
    assert is_refused(line), line


async def test_who_is_refused_has_to_come_again(door: Door) -> None:
    """A second request behind a forged one on the same connection is not answered."""
    reader, writer = await asyncio.open_connection(door.host, door.port)
    writer.write(request(b"{}", signature="sha256=" + "0" * 64) + request(b"{}"))
    async with asyncio.timeout(15):
        answer = await reader.read()
    await abort(writer)
    assert re.findall(rb"HTTP/1.1 \d+", answer) == [b"HTTP/1.1 401"]


async def test_the_previous_secret_ends_with_its_rotation(
    settings: MakeSettings, nats_url: str, bus_prefix: str
) -> None:
    old = request(b"{}", signature=sign(b"{}", "the one before"))
    during = settings(GITHUB_WEBHOOK_SECRET_PREVIOUS="the one before")
    async with opened(during, nats_url, bus_prefix) as door:
        assert await door.send(old) == b"HTTP/1.1 202 Accepted"
    async with opened(settings(), nats_url, bus_prefix) as door:
        assert await door.send(old) == b"HTTP/1.1 401 Unauthorized"
        assert await door.send(request(b"{}")) == b"HTTP/1.1 202 Accepted"


async def test_memory_is_bounded_and_good_deliveries_are_taken_under_attack() -> None:
    """`python -m proof flood` does the same with a thousand connections for each attack."""
    chosen = tuple(
        attack for attack in flood.ATTACKS if "all but the end" in attack.name or "byte" in attack.name
    )
    for outcome in await flood.run(chosen, connections=80, seconds=1.5):
        assert outcome.peak <= flood.AIM_BYTES
        assert outcome.taken == outcome.sent > 0


# ------------------------------------------------------------------------- deliveries that were genuine once


async def post(world: World, body: bytes, *, event: str, delivery: str) -> tuple[int, str]:
    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": delivery,
        "X-Hub-Signature-256": sign(body, world.simulator.app.webhook_secret),
    }
    url = f"{world.daemon.url}/webhooks/github"
    async with aiohttp.ClientSession() as http, http.post(url, data=body, headers=headers) as answer:
        return answer.status, (await answer.json())["status"]


def genuine(world: World) -> bytes:
    """The body of the last delivery about a pull request, as it was signed."""
    return next(
        json.dumps(delivery.payload).encode()
        for delivery in reversed(list(world.simulator.deliveries))
        if delivery.event == "pull_request"
    )


async def test_a_replayed_delivery_under_a_fresh_id_changes_nothing(make_world: MakeWorld) -> None:  # noqa: F811
    async with make_world() as graft:
        graft.commit("feature", {"src/app.py": "x = 1\n"})
        pull = await graft.open()
        await graft.settled()
        before = graft.comment(pull), graft.checks(pull)
        updated = graft.comments(pull)[0].updated_at
        for number in range(3):
            assert await post(graft, genuine(graft), event="pull_request", delivery=f"again-{number}") == (
                202,
                "accepted",
            )
        await graft.settled()
        assert (graft.comment(pull), graft.checks(pull)) == before
        assert graft.comments(pull)[0].updated_at == updated


@pytest.mark.parametrize(
    "event", ["push", "check_run", "issues", "installation", "repository", "pull_request_review"]
)
async def test_a_delivery_under_another_event_name_does_nothing(event: str, make_world: MakeWorld) -> None:  # noqa: F811
    async with make_world() as graft:
        graft.commit("feature", {"src/app.py": "x = 1\n"})
        pull = await graft.open()
        await graft.settled()
        before = graft.comment(pull), graft.checks(pull)
        status, outcome = await post(graft, genuine(graft), event=event, delivery="relabelled")
        assert (status, outcome) == (202, "ignored")
        await graft.settled()
        assert (graft.comment(pull), graft.checks(pull)) == before


@pytest.mark.parametrize("field", ["installation", "repository"])
async def test_a_payload_of_another_installation_or_repository_shows_nothing_there(
    field: str,
    make_world: MakeWorld,  # noqa: F811
) -> None:
    """Signed payloads that mix ids: what is written is what the API says about those ids, with their own token."""
    async with make_world() as graft:
        graft.commit("feature", {"src/app.py": "x = 1\n"})
        pull = await graft.open()
        await graft.settled()
        before = graft.comment(pull), graft.checks(pull)
        payload: dict[str, Any] = json.loads(genuine(graft))
        payload[field]["id"] += 999
        await post(graft, json.dumps(payload).encode(), event="pull_request", delivery=f"mixed-{field}")
        async with asyncio.timeout(20):
            while (await graft.daemon.services.bus.backlog()).messages:
                await asyncio.sleep(0.05)
        assert (graft.comment(pull), graft.checks(pull)) == before
        assert len(graft.comments(pull)) == 1
