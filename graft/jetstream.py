"""Publishing to JetStream with as little as possible between a message and its acknowledgement.

nats-py's own `publish` builds an inbox, a waiting task and two JSON passes for every message; that is most of
what a delivery costs the ingress. Here all acknowledgements arrive on one inbox and complete a future each.
Connection, reconnecting and the protocol stay nats-py's.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import APIError, NoStreamResponseError

# Deliveries on their way at a time are far fewer; beyond it nats-py would drop acknowledgements.
_MOST_PENDING: Final = 512 * 1024


class _Error(Struct):
    code: int = 0
    err_code: int = 0
    description: str = ""


class _Answer(Struct):
    """JetStream's PubAck, or why there is none (nats-server's `JSPubAckResponse`)."""

    duplicate: bool = False
    error: _Error | None = None


_ANSWER: Final = msgspec.json.Decoder(_Answer)


class Publisher:
    """Publishes over one connection, any number of messages at a time."""

    def __init__(self, client: Client, *, timeout: float) -> None:
        self._client = client
        self._timeout = timeout
        self._inbox = ""
        self._starting: asyncio.Task[str] | None = None
        self._numbers = itertools.count(1)
        self._waiting: dict[str, asyncio.Future[_Answer]] = {}

    async def publish(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> bool:
        """Store one message; whether the stream had one with its `Nats-Msg-Id` already.

        Raises NoStreamResponseError when no stream takes the subject, APIError when one refuses it, TimeoutError
        when no answer came in time, and nats-py's errors when it could not be sent.
        """
        loop = asyncio.get_running_loop()
        inbox = self._inbox or await self._listening()
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
        if found.error is not None:
            error = found.error
            raise APIError(code=error.code, err_code=error.err_code, description=error.description)
        return found.duplicate

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
