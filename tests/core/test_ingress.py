from __future__ import annotations

import asyncio
import gzip
import hashlib
import hmac
import io
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graft import embedded, ingress
from graft.bus import Bus
from graft.config import Settings
from graft.ingress import LARGEST_BODY, Limits, Readiness
from graft.metrics import Metrics
from graft.streams import StreamSettings, stream_name

Payloads = Callable[..., dict[str, Any]]
SECRET = "a webhook secret"


class Ingress:
    """A served application, and the ways to post to it."""

    def __init__(self, host: str, port: int, bus: Bus, metrics: Metrics, readiness: Readiness) -> None:
        self.host, self.port = host, port
        self.url = f"http://{host}:{port}"
        self.bus = bus
        self.metrics = metrics
        self.readiness = readiness
        self.http = aiohttp.ClientSession()

    async def post(
        self,
        body: bytes,
        *,
        event: str = "pull_request",
        delivery: str = "d-1",
        secret: str = SECRET,
        headers: Mapping[str, str | None] | None = None,
    ) -> tuple[int, str]:
        """Status and outcome of a signed delivery; a header given as `None` is left out."""
        given: dict[str, str | None] = {
            "Content-Type": "application/json",
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": delivery,
            "X-Hub-Signature-256": sign(body, secret),
            **(headers or {}),
        }
        sent = {name: value for name, value in given.items() if value is not None}
        skip = ("Content-Type",) if "Content-Type" not in sent else ()
        async with self.http.post(
            f"{self.url}/webhooks/github", data=io.BytesIO(body), headers=sent, skip_auto_headers=skip
        ) as answer:
            return answer.status, (await answer.json())["status"]

    async def raw(self, request: bytes, *, end: bool = False) -> bytes:
        """The first line of the answer to these bytes; `end` stops sending after them."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            writer.write(request)
            if end:
                writer.write_eof()
            async with asyncio.timeout(15):
                return await reader.readline()
        finally:
            writer.close()
            await writer.wait_closed()

    async def get(self, path: str) -> tuple[int, str]:
        async with self.http.get(f"{self.url}{path}") as answer:
            return answer.status, await answer.text()

    def counted(self, outcome: str, event: str = "other") -> float:
        labels = {"event": event, "outcome": outcome}
        return self.metrics.registry.get_sample_value("graft_deliveries_total", labels) or 0.0


def sign(body: bytes, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


@asynccontextmanager
async def serving(settings: Settings, bus: Bus, limits: Limits | None = None) -> AsyncIterator[Ingress]:
    metrics, readiness = Metrics(), Readiness()
    runner = ingress.runner(ingress.create_app(settings, bus, readiness, metrics, limits=limits))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    served = Ingress(host, port, bus, metrics, readiness)
    try:
        yield served
    finally:
        await served.http.close()
        await runner.cleanup()


@pytest.fixture(name="ingress")
async def served_ingress(
    nats_url: str, bus_prefix: str, settings: Callable[..., Settings]
) -> AsyncIterator[Ingress]:
    bus = await Bus.connect(nats_url, prefix=bus_prefix)
    try:
        await bus.ensure_stream(StreamSettings(max_bytes=1_000_000))
        made = settings(GITHUB_WEBHOOK_SECRET_PREVIOUS="the one before", GRAFT_INCIDENT_LABEL="incident")
        async with serving(made, bus) as served:
            yield served
        await bus.client.jetstream().delete_stream(stream_name(bus_prefix))
    finally:
        await bus.close()


def encoded(payload: object) -> bytes:
    return json.dumps(payload).encode()


async def stored(ingress: Ingress) -> int:
    return (await ingress.bus.backlog()).messages


# ------------------------------------------------------------------------------------------------ what is taken


async def test_a_delivery_is_accepted_once_it_is_in_the_stream(ingress: Ingress, payload: Payloads) -> None:
    body = encoded(payload("pull_request"))
    assert await ingress.post(body) == (202, "accepted")
    (pulled,) = await ingress.bus.pull(batch=10, within=2)
    assert pulled.trigger is not None
    assert (pulled.trigger.delivery_id, pulled.trigger.number) == ("d-1", 12)
    assert ingress.counted("accepted", "pull_request") == 1


async def test_nothing_of_the_text_is_in_the_stream(ingress: Ingress, payload: Payloads) -> None:
    await ingress.post(encoded(payload("pull_request")))
    message = await ingress.bus.client.jetstream().get_msg(stream_name(ingress.bus.prefix), 1)
    assert b"SECRET" not in (message.data or b"")


async def test_the_same_delivery_again_is_a_duplicate(ingress: Ingress, payload: Payloads) -> None:
    body = encoded(payload("pull_request"))
    await ingress.post(body)
    assert await ingress.post(body) == (202, "duplicate")
    assert await ingress.post(body, delivery="d-2") == (202, "accepted")
    assert await stored(ingress) == 2


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ("ping", {}),
        ("pull_request", {"action": "assigned"}),
        ("pull_request", {"number": "twelve"}),
        ("check_run", {"check_run": {"id": 1}}),
    ],
)
async def test_what_nobody_has_to_act_on_is_ignored(
    event: str, fields: dict[str, Any], ingress: Ingress, payload: Payloads
) -> None:
    body = encoded(payload(event if event != "ping" else "push", **fields))
    assert await ingress.post(body, event=event) == (202, "ignored")
    assert await stored(ingress) == 0


async def test_the_previous_secret_is_good_as_well(ingress: Ingress, payload: Payloads) -> None:
    body = encoded(payload("pull_request"))
    assert await ingress.post(body, secret="the one before") == (202, "accepted")
    assert await ingress.post(body, delivery="d-2", secret="a third one") == (401, "bad_signature")


async def test_only_a_secret_that_is_set_counts(
    nats_url: str, bus_prefix: str, settings: Callable[..., Settings]
) -> None:
    bus = await Bus.connect(nats_url, prefix=bus_prefix)
    try:
        async with serving(settings(GITHUB_WEBHOOK_SECRET_PREVIOUS="  "), bus) as served:
            assert await served.post(b"{}", secret="  ") == (401, "bad_signature")
            assert await served.post(b"{}", secret="") == (401, "bad_signature")
            assert await served.post(b"{}", event="ping") == (202, "ignored")
    finally:
        await bus.close()


async def test_content_types_with_parameters_are_json(ingress: Ingress) -> None:
    for value in ("application/json; charset=utf-8", "Application/JSON"):
        assert await ingress.post(b"{}", event="ping", headers={"Content-Type": value}) == (202, "ignored")


# ---------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("headers", "answer"),
    [
        ({"X-Hub-Signature-256": None}, (401, "no_signature")),
        ({"X-Hub-Signature-256": "sha1=" + "0" * 40}, (401, "no_signature")),
        ({"X-Hub-Signature-256": "sha256=" + "0" * 63}, (401, "no_signature")),
        ({"X-Hub-Signature-256": "sha256=" + "0" * 64}, (401, "bad_signature")),
        ({"X-Hub-Signature-256": sign(b"{}").upper()}, (401, "no_signature")),
        ({"X-Hub-Signature-256": "sha256=" + "٠" * 64}, (401, "no_signature")),
        ({"Content-Type": None}, (415, "not_json")),
        ({"Content-Type": "application/x-www-form-urlencoded"}, (415, "not_json")),
        ({"Content-Type": "application/json-seq"}, (415, "not_json")),
        ({"X-GitHub-Event": None}, (400, "bad_event")),
        ({"X-GitHub-Event": ""}, (400, "bad_event")),
        ({"X-GitHub-Event": "pull_request.>"}, (400, "bad_event")),
        ({"X-GitHub-Event": "Pull_Request"}, (400, "bad_event")),
        ({"X-GitHub-Event": "e" * 51}, (400, "bad_event")),
        ({"X-GitHub-Event": "é"}, (400, "bad_event")),
        ({"X-GitHub-Delivery": None}, (400, "bad_delivery")),
        ({"X-GitHub-Delivery": "-"}, (400, "bad_delivery")),
        ({"X-GitHub-Delivery": "a b"}, (400, "bad_delivery")),
        ({"X-GitHub-Delivery": "d" * 65}, (400, "bad_delivery")),
        ({"X-GitHub-Delivery": "d\N{LATIN SMALL LETTER E WITH ACUTE}"}, (400, "bad_delivery")),
    ],
)
async def test_headers_that_do_not_fit_are_refused(
    headers: dict[str, str | None], answer: tuple[int, str], ingress: Ingress
) -> None:
    assert await ingress.post(b"{}", headers=headers) == answer
    assert await stored(ingress) == 0


async def test_a_header_that_comes_twice_is_none(ingress: Ingress) -> None:
    request = (
        b"POST /webhooks/github HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"X-GitHub-Event: ping\r\nX-GitHub-Delivery: d-1\r\nContent-Length: 2\r\n"
        b"X-Hub-Signature-256: %b\r\nX-Hub-Signature-256: %b\r\n\r\n{}"
    )
    good = sign(b"{}").encode()
    assert await ingress.raw(request % (good, good)) == b"HTTP/1.1 401 Unauthorized\r\n"


async def test_a_compressed_body_is_refused(ingress: Ingress) -> None:
    body = gzip.compress(b"{}")
    for coding in ("gzip", "br", "identity, gzip", "nonsense"):
        headers = {"Content-Encoding": coding, "X-Hub-Signature-256": sign(b"{}")}
        assert await ingress.post(body, event="ping", headers=headers) == (415, "encoded")


async def test_a_signed_body_that_is_not_json_is_refused(ingress: Ingress) -> None:
    for body in (b"", b"{", b"payload=%7B%7D"):
        assert await ingress.post(body) == (400, "malformed_json")


async def test_the_signature_is_of_the_raw_bytes(ingress: Ingress, payload: Payloads) -> None:
    body = encoded(payload("pull_request"))
    changed = {"X-Hub-Signature-256": sign(body)}
    assert await ingress.post(body + b" ", headers=changed) == (401, "bad_signature")


async def test_an_announced_body_that_is_too_long_is_not_read(ingress: Ingress) -> None:
    request = (
        b"POST /webhooks/github HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"X-GitHub-Event: ping\r\nX-GitHub-Delivery: d-1\r\nContent-Length: %d\r\n"
        b"X-Hub-Signature-256: %b\r\n\r\n"
    ) % (LARGEST_BODY + 1, sign(b"").encode())
    assert b" 413 " in await ingress.raw(request)


async def test_a_body_of_unknown_length_is_cut_off_at_the_limit(ingress: Ingress) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(26):
            yield b" " * (1024 * 1024)

    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Event": "ping",
        "X-GitHub-Delivery": "d-1",
        "X-Hub-Signature-256": sign(b""),
    }
    async with ingress.http.post(f"{ingress.url}/webhooks/github", data=pieces(), headers=headers) as answer:
        assert answer.status == 413


async def test_the_largest_payload_of_github_is_taken(ingress: Ingress, payload: Payloads) -> None:
    body = encoded(payload("pull_request"))
    body += b" " * (LARGEST_BODY - len(body))
    assert await ingress.post(body) == (202, "accepted")


async def test_a_body_that_ends_too_early_is_refused_and_harms_nobody(ingress: Ingress) -> None:
    request = (
        b"POST /webhooks/github HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"X-GitHub-Event: ping\r\nX-GitHub-Delivery: d-1\r\nContent-Length: 100\r\n"
        b"X-Hub-Signature-256: %b\r\n\r\n{}"
    ) % sign(b"{}").encode()
    assert b" 202 " not in await ingress.raw(request, end=True)
    assert await ingress.post(b"{}", event="ping") == (202, "ignored")


async def test_slow_and_too_many_bodies_are_given_up(
    nats_url: str, bus_prefix: str, settings: Callable[..., Settings]
) -> None:
    head = (
        b"POST /webhooks/github HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"X-GitHub-Event: ping\r\nX-GitHub-Delivery: d-1\r\nContent-Length: 1000\r\n"
        b"X-Hub-Signature-256: %b\r\n\r\n"
    ) % sign(b"").encode()
    bus = await Bus.connect(nats_url, prefix=bus_prefix)
    try:
        async with serving(settings(), bus, Limits(body=2_000, buffer=1_500, small=0, seconds=1.0)) as served:
            answers = [asyncio.create_task(served.raw(head + b"x" * 900)) for _ in range(3)]
            lines = sorted([await answer for answer in answers])
            assert [line.split()[1] for line in lines] == [b"408", b"503", b"503"]
            # What they held is free again.
            big = b"{%b}" % (b" " * 1_400)
            assert await served.post(big, event="ping") == (202, "ignored")
            assert await served.post(b" " * 2_001, event="ping") == (413, "too_large")
    finally:
        await bus.close()


async def test_other_methods_and_paths_are_not_there(ingress: Ingress) -> None:
    assert (await ingress.get("/webhooks/github"))[0] == 405
    assert (await ingress.get("/"))[0] == 404


HEADER_TEXT = st.text(
    st.characters(min_codepoint=1, max_codepoint=0x2FF, exclude_characters="\r\n"), max_size=80
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=150,
    deadline=None,
)
@given(
    event=HEADER_TEXT,
    delivery=HEADER_TEXT,
    signature=HEADER_TEXT | st.just(sign(b"{}", "wrong")) | st.just("sha256=" + "0" * 64),
    content_type=st.just("application/json") | HEADER_TEXT,
    body=st.binary(max_size=100),
)
def test_no_header_makes_it_fail_and_none_replaces_a_signature(
    odd: Callable[..., int], event: str, delivery: str, signature: str, content_type: str, body: bytes
) -> None:
    status = odd(event, delivery, signature, content_type, body)
    assert status in (400, 401, 415)


@pytest.fixture
def odd(settings: Callable[..., Settings], nats_url: str, bus_prefix: str) -> Any:
    """Posts one delivery with the given headers as raw bytes; an application of its own loop serves them."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()

        async def start() -> Ingress:
            bus = await Bus.connect(nats_url, prefix=bus_prefix)
            stack.push_async_callback(bus.close)
            return await stack.enter_async_context(serving(settings(), bus))

        ingress = runner.run(start())

        def post(event: str, delivery: str, signature: str, content_type: str, body: bytes) -> int:
            request = b"".join(
                (
                    b"POST /webhooks/github HTTP/1.1\r\nHost: x\r\nConnection: close\r\n",
                    b"Content-Type: " + content_type.encode() + b"\r\n",
                    b"X-GitHub-Event: " + event.encode("utf-8") + b"\r\n",
                    b"X-GitHub-Delivery: " + delivery.encode("latin-1", "replace") + b"\r\n",
                    b"X-Hub-Signature-256: " + signature.encode() + b"\r\n",
                    b"Content-Length: %d\r\n\r\n" % len(body) + body,
                )
            )
            return int(runner.run(ingress.raw(request)).split()[1])

        yield post
        runner.run(stack.aclose())


# ------------------------------------------------------------------------------------- when the broker is not well


async def test_a_full_stream_answers_503_and_takes_it_later(ingress: Ingress, payload: Payloads) -> None:
    await ingress.bus.ensure_stream(StreamSettings(max_bytes=1_000))
    body = encoded(payload("pull_request"))
    answers = [await ingress.post(body, delivery=f"d-{number}") for number in range(6)]
    assert answers[0] == (202, "accepted")
    assert answers[-1] == (503, "stream_full")
    taken = answers.count((202, "accepted"))
    assert await stored(ingress) == taken
    await ingress.bus.ensure_stream(StreamSettings(max_bytes=1_000_000))
    assert await ingress.post(body, delivery="d-5") == (202, "accepted")


async def test_a_broker_that_is_gone_answers_503_until_it_is_back(
    tmp_path: Path, settings: Callable[..., Settings], payload: Payloads
) -> None:
    body = encoded(payload("pull_request"))
    async with embedded.nats_server(tmp_path / "nats") as server:
        bus = await Bus.connect(server.url)
        try:
            await bus.ensure_stream(StreamSettings(max_bytes=1_000_000))
            async with serving(settings(), bus) as ingress:
                assert (await ingress.get("/readyz"))[0] == 200
                await asyncio.to_thread(server.kill)
                async with asyncio.timeout(9):  # GitHub waits ten seconds
                    assert await ingress.post(body) == (503, "bus_unavailable")
                status, text = await ingress.get("/readyz")
                assert (status, json.loads(text)["checks"]["broker"]) == (503, "disconnected")
                assert (await ingress.get("/healthz"))[0] == 200
                await asyncio.to_thread(server.start)
                async with asyncio.timeout(10):
                    while (await ingress.get("/readyz"))[0] != 200:
                        await asyncio.sleep(0.05)
                assert await ingress.post(body) == (202, "accepted")
        finally:
            await bus.close()


# -------------------------------------------------------------------------------------------- health and metrics


async def test_readiness_shows_every_check_and_waits_for_none(ingress: Ingress) -> None:
    async def fine() -> None:
        return None

    async def poor() -> str:
        return "no_schema"

    async def broken() -> str:
        raise RuntimeError("with details that stay inside")

    async def notice() -> str:
        return "app_refused"

    ingress.readiness.add("database", fine)
    ingress.readiness.add("github", notice, blocking=False)
    status, text = await ingress.get("/readyz")
    assert status == 200
    assert json.loads(text) == {
        "ready": True,
        "checks": {"broker": "ok", "database": "ok", "github": "app_refused"},
    }
    ingress.readiness.add("database", poor)
    ingress.readiness.add("actors", broken)
    status, text = await ingress.get("/readyz")
    assert status == 503
    assert json.loads(text)["checks"] == {
        "broker": "ok",
        "database": "no_schema",
        "github": "app_refused",
        "actors": "RuntimeError",
    }


async def test_metrics_count_answers_and_no_header_becomes_a_label(
    ingress: Ingress, payload: Payloads
) -> None:
    await ingress.post(b"{}", event="made_up_by_somebody")
    await ingress.post(b"{}", headers={"X-Hub-Signature-256": None})
    status, text = await ingress.get("/metrics")
    assert status == 200
    assert 'graft_deliveries_total{event="other",outcome="ignored"} 1.0' in text
    assert 'graft_deliveries_total{event="other",outcome="no_signature"} 1.0' in text
    assert "graft_delivery_seconds_count 2.0" in text
    assert "made_up" not in text
