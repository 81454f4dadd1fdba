"""One connection to the broker, on which typed questions are asked and signals heard.

Whatever goes wrong becomes an `Unanswered` with the cause, what to do next and the exit code that programs see:
1 the daemon refused, 2 the call or its settings are wrong, 3 nobody answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from graft.bus import disconnect
from graft.cli.broker import Broker
from graft.control import Operation, Refused

Q = TypeVar("Q")
A = TypeVar("A")

CONNECT_SECONDS = 3.0
REFUSED, MISUSED, SILENT = 1, 2, 3


class Unanswered(Exception):
    """There is no answer. The text is for people, `code` is the exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Asker:
    """Asks a running Graft."""

    def __init__(self, broker: Broker, *, seconds: float | None = None) -> None:
        self.broker = broker
        self.seconds = seconds
        self.client = Client()
        self._problem = ""
        self._denied = asyncio.Event()
        # The connection is lost, or the server says that something is not allowed.
        self._over = asyncio.Event()

    async def connect(self) -> None:
        """Raises Unanswered when no connection stands within three seconds, ConfigError for bad settings."""
        arguments = self.broker.arguments()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self.client.connect(
                    **arguments,
                    name="graftctl",
                    error_cb=self._on_error,
                    disconnected_cb=self._on_disconnect,
                    connect_timeout=2,
                    max_reconnect_attempts=0,
                    allow_reconnect=False,
                )
        except (nats.errors.Error, TimeoutError, OSError, ValueError) as error:
            await disconnect(self.client)
            raise self._no_connection(error) from None

    def _no_connection(self, error: Exception) -> Unanswered:
        where = self.broker.origin
        said = f"{self._problem} {error}".lower()
        if "authorization" in said or "authentication" in said:
            return Unanswered(
                f"{where}: the NATS server refused these credentials; give --creds or a --context", MISUSED
            )
        if isinstance(error, ValueError):
            return Unanswered(f"{where}: the credentials cannot be used ({type(error).__name__})", MISUSED)
        return Unanswered(
            f"{where}: no NATS server answered; check the address (--server, NATS_URL, `nats context ls`) "
            "and that the broker runs",
            SILENT,
        )

    async def _on_error(self, error: Exception) -> None:
        self._problem = str(error).lower()
        if "permissions violation" in self._problem:
            self._denied.set()
            self._over.set()

    async def _on_disconnect(self) -> None:
        self._over.set()

    async def close(self) -> None:
        await disconnect(self.client)

    async def ask(self, operation: Operation[Q, A], question: Q) -> A:
        """The answer. Raises Unanswered."""
        subject = operation.subject(self.broker.prefix)
        seconds = self.seconds or operation.seconds + 1.0
        request = asyncio.ensure_future(
            self.client.request(subject, msgspec.json.encode(question), timeout=seconds)
        )
        # The server does not answer a question that may not be asked; it complains on the side.
        denied = asyncio.ensure_future(self._denied.wait())
        try:
            await asyncio.wait({request, denied}, return_when=asyncio.FIRST_COMPLETED)
            if not request.done():
                raise Unanswered(f"this NATS user may not publish to {subject}; use other --creds", REFUSED)
            message = request.result()
        except nats.errors.NoRespondersError:
            raise Unanswered(
                f"no Graft answers on {subject}: is `graft serve` running, and is --prefix "
                f"{self.broker.prefix} its GRAFT_NATS_PREFIX?",
                SILENT,
            ) from None
        except (nats.errors.Error, TimeoutError, OSError):
            raise Unanswered(
                f"no answer to {operation.name} within {seconds:g} s; try --timeout, or look at /readyz",
                SILENT,
            ) from None
        finally:
            for task in (request, denied):
                task.cancel()
            await asyncio.gather(request, denied, return_exceptions=True)
        return _read(message, operation)

    async def hear(self, handler: Callable[[str, dict[str, Any]], None]) -> None:
        """Call `handler` with name and facts of every signal from now on."""
        start = f"{self.broker.prefix}.signal."

        async def receive(message: Msg) -> None:
            try:
                facts = msgspec.json.decode(message.data, type=dict[str, Any])
            except (msgspec.DecodeError, UnicodeDecodeError):
                return
            handler(message.subject.removeprefix(start).replace("_", " "), facts)

        await self.client.subscribe(f"{start}*", cb=receive)
        await self.client.flush()

    async def gone(self) -> None:
        """Until the connection is lost, or the server says that something is not allowed. Raises Unanswered."""
        await self._over.wait()
        if self._denied.is_set():
            raise Unanswered("this NATS user may not listen to signals; use other --creds", REFUSED)
        raise Unanswered("the connection to the NATS server was lost", SILENT)


def _read(message: Msg, operation: Operation[Q, A]) -> A:
    headers = message.headers or {}
    if code := headers.get("Nats-Service-Error-Code"):
        text = headers.get("Nats-Service-Error", "")
        raise Unanswered(text, SILENT if code == "503" else REFUSED) from Refused(code, text)
    try:
        return msgspec.json.decode(message.data, type=operation.answer)
    except msgspec.MsgspecError:
        raise Unanswered(
            f"the answer to {operation.name} is of another release; use the graftctl that came with the daemon",
            REFUSED,
        ) from None


@asynccontextmanager
async def asking(broker: Broker, *, seconds: float | None = None) -> AsyncIterator[Asker]:
    """A connection for the length of a block."""
    asker = Asker(broker, seconds=seconds)
    await asker.connect()
    try:
        yield asker
    finally:
        await asker.close()
