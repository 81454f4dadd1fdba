"""The load tool of the receivers' benches: signed deliveries over keep-alive connections, and how long each took.

Nothing but a protocol on uvloop, so that most of the machine is left to what is measured. A connection posts its
next delivery when the one before was answered; a delivery counts when its answer was the one that says it was
taken, and every delivery has an id of its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import itertools
import re
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Final, cast

import uvloop
from msgspec import Struct

CONNECTIONS: Final = (1, 16, 64)
_ANSWER_SECONDS: Final = 30
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Delivery(Struct, frozen=True, kw_only=True):
    """What GitHub posts: the name of the event and the bytes of its payload."""

    event: str
    body: bytes


class Taken(Struct, frozen=True, kw_only=True):
    """How a receiver says that it took a delivery: the status, and a word in the body."""

    status: int
    word: bytes

    def by(self, answer: bytes) -> bool:
        return answer.startswith(b"HTTP/1.1 %d " % self.status) and self.word in answer


class Load(Struct, frozen=True, kw_only=True):
    """What became of one load: seconds each taken delivery waited, how many were not taken, how long it all ran."""

    waited: Sequence[float]
    refused: int
    seconds: float

    @property
    def rate(self) -> float:
        """Deliveries taken a second."""
        return len(self.waited) / self.seconds

    def percentile(self, percent: int) -> float:
        """Seconds within which so many percent of the deliveries were taken; needs two of them."""
        return statistics.quantiles(self.waited, n=100)[percent - 1]


def requests(deliveries: Sequence[Delivery], *, port: int, secret: str) -> Iterator[bytes]:
    """These deliveries, signed, over and over under ever new ids."""
    signed = []
    for delivery in deliveries:
        signature = hmac.new(secret.encode(), delivery.body, hashlib.sha256).hexdigest()
        head = (
            f"POST /webhooks/github HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUser-Agent: GitHub-Hookshot/bench\r\n"
            f"Accept: */*\r\nContent-Type: application/json\r\nX-GitHub-Event: {delivery.event}\r\n"
            f"X-Hub-Signature-256: sha256={signature}\r\nContent-Length: {len(delivery.body)}\r\n"
            "X-GitHub-Delivery: "
        )
        signed.append((head.encode(), delivery.body))
    run = time.time_ns()
    for number, (head_bytes, body) in enumerate(itertools.cycle(signed)):
        yield b"%b%x-%x\r\n\r\n%b" % (head_bytes, run, number, body)


def complete(answer: bytes) -> bool:
    """Whether these are all the bytes of an answer that says its length."""
    head, end, body = answer.partition(b"\r\n\r\n")
    length = _LENGTH.search(head) if end else None
    return length is not None and len(body) >= int(length[1])


class Sender(asyncio.Protocol):
    """Posts one delivery after the other and notes how long each took."""

    def __init__(self, source: Iterator[bytes], taken: Taken) -> None:
        self._source = source
        self._taken = taken
        self._answer = b""
        self._began = 0.0
        self._transport: asyncio.Transport | None = None
        self.stopped = asyncio.get_running_loop().create_future()
        self.waited: list[float] = []
        self.refused = 0
        self.stopping = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is no subclass
        self._send()

    def _send(self) -> None:
        assert self._transport is not None
        self._began = time.perf_counter()
        self._transport.write(next(self._source))

    def data_received(self, data: bytes) -> None:
        self._answer += data
        if not complete(self._answer):
            return
        if self._taken.by(self._answer):
            self.waited.append(time.perf_counter() - self._began)
        else:
            self.refused += 1
        self._answer = b""
        if self.stopping:
            assert self._transport is not None
            self._transport.close()
            self.stopped.set_result(None)
        else:
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.stopped.done():
            self.refused += 1  # the one on its way was never answered
            self.stopped.set_result(None)


async def _post(source: Iterator[bytes], port: int, taken: Taken, connections: int, seconds: float) -> Load:
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    pairs = [
        await loop.create_connection(lambda: Sender(source, taken), "127.0.0.1", port)
        for _ in range(connections)
    ]
    await asyncio.sleep(seconds)
    senders = [sender for _, sender in pairs]
    for sender in senders:
        sender.stopping = True
    async with asyncio.timeout(_ANSWER_SECONDS):
        await asyncio.gather(*(sender.stopped for sender in senders))
    return Load(
        waited=[second for sender in senders for second in sender.waited],
        refused=sum(sender.refused for sender in senders),
        seconds=time.perf_counter() - began,
    )


def post(source: Iterator[bytes], *, port: int, taken: Taken, connections: int, seconds: float) -> Load:
    """Post over so many connections at a time for so long, and wait for the last answers.

    Raises TimeoutError when an answer does not come within half a minute.
    """
    return uvloop.run(_post(source, port, taken, connections, seconds))
