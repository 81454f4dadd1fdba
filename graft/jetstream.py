"""Publishing to JetStream with as little as possible between a message and its acknowledgement.

nats-py's own `publish` builds an inbox, a waiting task and two JSON passes for every message; that is most of
what a delivery costs the ingress. Here all acknowledgements arrive on one inbox and complete a future each.
Connection, reconnecting and the protocol stay nats-py's.

A broker that syncs every message to its disk answers one after the other. When that would make the next message wait
for longer than a whole batch takes, messages gather and go out together, as one atomic batch (NATS 2.12, ADR-50):
a group commit. The broker syncs the batch before it answers (seen with `strace`: fsync of the stream's block, then
the acknowledgement), so nothing is promised that a single message would not be.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import secrets
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.errors import APIError, NoStreamResponseError

# Deliveries on their way at a time are far fewer; beyond it nats-py would drop acknowledgements.
_MOST_PENDING: Final = 512 * 1024
# About what a batch takes whatever its size: the broker keeps it in a store of its own until it is complete.
_BATCH_SECONDS: Final = 0.006
_SMALLEST_BATCH: Final = 8
_LARGEST_BATCH: Final = 128
# A message that is never answered does not hold up those that gather behind it.
_GATHER_SECONDS: Final = 0.05
# Answers after which the broker's cost of a message is found anew.
_WINDOW: Final = 128


class _Error(Struct):
    code: int = 0
    err_code: int = 0
    description: str = ""


class _Answer(Struct):
    """JetStream's PubAck, or why there is none (nats-server's `JSPubAckResponse`)."""

    duplicate: bool = False
    error: _Error | None = None


_ANSWER: Final = msgspec.json.Decoder(_Answer)


class _Message(Struct, frozen=True):
    subject: str
    payload: bytes
    headers: Mapping[str, str]
    done: asyncio.Future[bool]


class _Cost:
    """Seconds that the broker takes for one message: the least that an answer took for its place in the queue, of the
    last answers. Most answers tell more of how busy this process is."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._least = math.inf
        self._noted = 0

    def note(self, seconds: float) -> None:
        self._least = min(self._least, seconds)
        self._noted += 1
        if self._noted >= _WINDOW:
            self.seconds, self._least, self._noted = self._least, math.inf, 0


class Publisher:
    """Publishes over one connection, any number of messages at a time."""

    def __init__(self, client: Client, *, timeout: float, patience: float = _BATCH_SECONDS) -> None:
        """`timeout` seconds for an answer; messages gather when the next would wait `patience` seconds for its own."""
        self._client = client
        self._patience = patience
        self._timeout = timeout
        self._inbox = ""
        self._starting: asyncio.Task[str] | None = None
        self._numbers = itertools.count(1)
        self._waiting: dict[str, asyncio.Future[_Answer]] = {}
        self._cost = _Cost()
        self._gathered: list[_Message] = []
        self._gathering: asyncio.TimerHandle | None = None
        self._batches = True
        self._sending: set[asyncio.Task[None]] = set()

    async def publish(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> bool:
        """Store one message; whether the stream had one with its `Nats-Msg-Id` already.

        Raises NoStreamResponseError when no stream takes the subject, APIError when one refuses it, TimeoutError
        when no answer came in time, and nats-py's errors when it could not be sent.
        """
        if self._batches and (self._gathered or len(self._waiting) * self._cost.seconds >= self._patience):
            return await self._join(subject, payload, headers)
        return await self._publish(subject, payload, headers)

    # ------------------------------------------------------------------------------------------ one message

    async def _publish(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> bool:
        before = len(self._waiting)
        loop = asyncio.get_running_loop()
        began = loop.time()
        answer = await self._exchange(subject, payload, headers)
        self._cost.note((loop.time() - began) / (before + 1))
        return answer.duplicate

    async def _exchange(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> _Answer:
        """Send a message and wait for its answer, which is none of an error."""
        inbox = self._inbox or await self._listening()
        loop = asyncio.get_running_loop()
        number = str(next(self._numbers))
        answer: asyncio.Future[_Answer] = loop.create_future()
        self._waiting[number] = answer
        timer = loop.call_later(self._timeout, self._expire, number)
        try:
            await self._client.publish(subject, payload, reply=inbox + number, headers=dict(headers))
            found = await answer
        finally:
            timer.cancel()
            self._waiting.pop(number, None)
            if self._gathered and not self._waiting:
                self._send_gathered()
        if found.error is not None:
            error = found.error
            raise APIError(code=error.code, err_code=error.err_code, description=error.description)
        return found

    async def _listening(self) -> str:
        """Where acknowledgements arrive, subscribed once; nats-py renews it after a reconnect."""
        if self._starting is None or (self._starting.done() and self._starting.exception() is not None):
            self._starting = asyncio.create_task(self._listen())
        return await asyncio.shield(self._starting)

    async def _listen(self) -> str:
        inbox = self._client.new_inbox()
        await self._client.subscribe(f"{inbox}.*", cb=self._on_answer, pending_msgs_limit=_MOST_PENDING)
        self._inbox = f"{inbox}."
        return self._inbox

    async def _on_answer(self, message: Msg) -> None:
        answer = self._waiting.get(message.subject.rpartition(".")[2])
        if answer is None or answer.done():
            return
        if message.headers and message.headers.get("Status") == "503":
            answer.set_exception(NoStreamResponseError())
            return
        try:
            answer.set_result(_ANSWER.decode(message.data))
        except msgspec.DecodeError as error:
            answer.set_exception(error)

    def _expire(self, number: str) -> None:
        answer = self._waiting.get(number)
        if answer is not None and not answer.done():
            answer.set_exception(TimeoutError())

    # -------------------------------------------------------------------------------------------- a batch

    async def _join(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> bool:
        loop = asyncio.get_running_loop()
        message = _Message(subject, payload, headers, loop.create_future())
        self._gathered.append(message)
        if len(self._gathered) >= _LARGEST_BATCH:
            self._send_gathered()
        elif self._gathering is None:
            self._gathering = loop.call_later(_GATHER_SECONDS, self._send_gathered)
        return await message.done

    def _send_gathered(self) -> None:
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        messages, self._gathered = self._gathered, []
        send = self._send_batch if len(messages) >= _SMALLEST_BATCH else self._send_singly
        task = asyncio.create_task(send(messages))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send_batch(self, messages: list[_Message]) -> None:
        """All of them or none: a duplicate among them refuses the batch, and then each is asked for by itself."""
        batch = secrets.token_hex(16)
        *first, last = messages
        try:
            for number, message in enumerate(first, 1):
                await self._client.publish(
                    message.subject, message.payload, headers=_headers(message, batch, number)
                )
            commit = {**_headers(last, batch, len(messages)), "Nats-Batch-Commit": "1"}
            await self._exchange(last.subject, last.payload, commit)
        except (APIError, NoStreamResponseError) as error:
            self._batches = getattr(error, "err_code", None) != _NO_BATCHES
            await self._send_singly(messages)
        except (NatsError, TimeoutError, OSError, msgspec.DecodeError) as error:
            for message in messages:
                if not message.done.done():
                    message.done.set_exception(error)
        else:
            for message in messages:
                if not message.done.done():
                    message.done.set_result(False)

    async def _send_singly(self, messages: list[_Message]) -> None:
        await asyncio.gather(*(self._send_one(message) for message in messages))

    async def _send_one(self, message: _Message) -> None:
        try:
            duplicate = await self._publish(message.subject, message.payload, message.headers)
        except Exception as error:  # noqa: BLE001 - raised where the message is waited for
            if not message.done.done():
                message.done.set_exception(error)
        else:
            if not message.done.done():
                message.done.set_result(duplicate)


# JetStream's error code, from nats-server's server/errors.json: the stream does not allow batches.
_NO_BATCHES: Final = 10174


def _headers(message: _Message, batch: str, number: int) -> dict[str, str]:
    return {**message.headers, "Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(number)}
