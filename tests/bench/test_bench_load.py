"""The load tool counts what was taken, and only that."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from bench import load

DELIVERIES = [load.Delivery(event="push", body=b'{"a":1}'), load.Delivery(event="issues", body=b'{"b":22}')]
TAKEN = load.Taken(status=202, word=b"accepted")


def answer(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


def test_requests_are_signed_and_never_have_the_same_id() -> None:
    ids = set()
    made = itertools.islice(load.requests(DELIVERIES, port=80, secret="s"), 6)
    for request, delivery in zip(made, DELIVERIES * 3, strict=True):
        head, _, body = request.partition(b"\r\n\r\n")
        headers = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
        assert body == delivery.body
        assert headers[b"Content-Length"] == str(len(body)).encode()
        assert headers[b"X-GitHub-Event"].decode() == delivery.event
        expected = hmac.new(b"s", body, hashlib.sha256).hexdigest()
        assert headers[b"X-Hub-Signature-256"].decode() == f"sha256={expected}"
        ids.add(headers[b"X-GitHub-Delivery"])
    assert len(ids) == 6


@pytest.mark.parametrize("length", [b"content-length: 3", b"Content-Length:3"])
def test_an_answer_is_complete_with_its_last_byte(length: bytes) -> None:
    whole = b"HTTP/1.1 200 OK\r\nServer: x\r\n%b\r\n\r\nok\n" % length
    assert [cut for cut in range(len(whole) + 1) if load.complete(whole[:cut])] == [len(whole)]


@pytest.mark.parametrize(
    ("status", "body", "taken"),
    [
        (202, b"accepted", True),
        (202, b"ignored", False),
        (503, b"accepted", False),
        (2021, b"accepted", False),
    ],
)
def test_taken_is_status_and_word(status: int, body: bytes, taken: bool) -> None:
    assert TAKEN.by(answer(status, body)) is taken


def test_a_load_has_its_rate_and_percentiles() -> None:
    found = load.Load(waited=[n / 1000 for n in range(1, 200)], refused=0, seconds=2.0)
    assert found.rate == 99.5
    assert found.percentile(50) == pytest.approx(0.1)
    assert found.percentile(99) == pytest.approx(0.198)


@pytest.fixture
def port() -> Iterator[int]:
    """A server that takes a push in two pieces, refuses an issue and drops the connection for any other event."""
    ready: Future[int] = Future()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:")
                )
                await reader.readexactly(length)
                if b"Event: push" in head:
                    whole = answer(202, b"accepted")
                    writer.write(whole[:30])
                    await writer.drain()
                    writer.write(whole[30:])
                elif b"Event: issues" in head:
                    writer.write(answer(503, b"busy"))
                else:
                    break
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            ready.set_result(server.sockets[0].getsockname()[1])
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    yield ready.result(10)
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    loop.close()


def test_a_load_counts_taken_and_refused(port: int) -> None:
    source = load.requests(DELIVERIES, port=port, secret="s")
    found = load.post(source, port=port, taken=TAKEN, connections=3, seconds=0.2)
    assert found.waited
    # Both kinds take turns, whichever connection posts them.
    assert abs(len(found.waited) - found.refused) <= 3
    assert found.seconds >= 0.2


def test_a_dropped_connection_is_a_refusal(port: int) -> None:
    source = load.requests([load.Delivery(event="ping", body=b"{}")], port=port, secret="s")
    found = load.post(source, port=port, taken=TAKEN, connections=2, seconds=0.1)
    assert (list(found.waited), found.refused) == ([], 2)
