"""The way from the ingress to the actors: JetStream carries triggers, core NATS wake-ups and signals.

What was published and acknowledged is on the broker's disk and is delivered at least once, to any replica, in
any order. Wake-ups and signals may get lost and nothing depends on them. The connection comes back by itself
for as long as the process runs; until then publishing fails fast and pulling finds nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
import nats.errors
import nats.js.errors
from msgspec import Struct
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from graft import streams, tracing, triggers
from graft.errors import ConfigError, PermanentError, TransientError
from graft.jetstream import Publisher
from graft.logs import get_logger
from graft.streams import StreamSettings
from graft.triggers import Trigger

log = get_logger("bus")

# GitHub waits ten seconds for an answer: both together have to be well below.
_CONNECTION_GRACE: Final = 2.0
_PUBLISH_TIMEOUT: Final = 5.0
# How long one pull request stays open at the server.
_PULL_EXPIRES: Final = 30.0
_RETRY_WAIT: Final = 0.5
# In the place of a partition: no wake-up of one, and below what replicas may say to each other anyway.
_FREE: Final = "free"

_NATS_ERRORS = (nats.errors.Error, TimeoutError, OSError)


class BusUnavailable(TransientError):
    """The broker did not take or answer it; it may all the same have been stored."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="bus_unavailable")


class StreamFull(TransientError):
    """The stream has reached its size; nothing was stored."""

    def __init__(self) -> None:
        super().__init__("the stream is full", reason="stream_full")


class Published(Struct, frozen=True):
    """The broker has it. `duplicate`: it had the same delivery within the window and stored nothing new."""

    duplicate: bool


class Backlog(Struct, frozen=True, kw_only=True):
    """What lies in the stream: `waiting` not yet delivered, `unacknowledged` delivered to a replica.
    `oldest_seconds` is the age of the first message, by the broker's clock."""

    messages: int
    bytes: int
    max_bytes: int
    waiting: int
    unacknowledged: int
    redelivered: int
    oldest_seconds: float | None = None


class _StreamState(Struct):
    messages: int
    bytes: int
    first_ts: datetime


class _StreamConfig(Struct):
    max_bytes: int = 0


class _StreamInfo(Struct):
    """The part of JetStream's answer that is read here; nats-py leaves `first_ts` out."""

    ts: datetime
    state: _StreamState
    config: _StreamConfig


class Pulled:
    """One message of the stream. `trigger` is `None` where the message is none; `problem` then says why.

    Acknowledgements do not raise: one that is lost costs one more delivery.
    """

    __slots__ = ("_message", "deliveries", "delivery_id", "problem", "trace", "trigger")

    def __init__(self, message: Msg) -> None:
        self._message = message
        self.delivery_id: str = (message.headers or {}).get("Nats-Msg-Id", "")
        self.trace: str | None = (message.headers or {}).get("traceparent")
        self.deliveries: int = message.metadata.num_delivered
        self.trigger: Trigger | None = None
        self.problem: str | None = None
        try:
            self.trigger = triggers.decode(message.data)
        except PermanentError as error:
            self.problem = str(error)

    async def ack(self) -> None:
        """Done: the stream forgets it."""
        await self._answer(Msg.Ack.Ack)

    async def nak(self) -> None:
        """Not done: deliver it again, at once."""
        await self._answer(Msg.Ack.Nak)

    async def in_progress(self) -> None:
        """Still at it: the time to acknowledge starts anew."""
        await self._answer(Msg.Ack.Progress)

    async def _answer(self, payload: bytes) -> None:
        try:
            await self._message._client.publish(self._message.reply, payload)
        except _NATS_ERRORS as error:
            log.debug("acknowledgement lost", error=type(error).__name__)


async def disconnect(client: Client) -> None:
    """Close a connection, also one whose broker has gone: what still waited to be sent cannot be, and uvloop answers
    the client's attempt with a RuntimeError, which would turn an orderly end into a crash."""
    with contextlib.suppress(*_NATS_ERRORS, RuntimeError):
        await client.close()


class Bus:
    """One connection to NATS. Made by `Bus.connect`; `close` ends it."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        # Where answers to this connection arrive; replicas of one role share it.
        self.inbox_prefix = ""
        self.client = Client()
        self._js = self.client.jetstream(timeout=_PUBLISH_TIMEOUT)
        self._publisher = Publisher(self.client, timeout=_PUBLISH_TIMEOUT)
        self._up = asyncio.Event()
        self._refused = False
        self._on_return: list[Callable[[], object]] = []
        self._settings: StreamSettings | None = None
        self._ensuring = asyncio.Lock()
        # What arrived on the pull inbox; `None` says that the connection was lost in between.
        self._arrived: asyncio.Queue[Msg | None] = asyncio.Queue()
        self._pull_inbox: Subscription | None = None
        self._expected = 0
        self._expires_at = 0.0

    @classmethod
    async def connect(
        cls,
        url: str,
        *,
        creds: str | None = None,
        prefix: str = "graft",
        role: str = "daemon",
        within: float = 5.0,
    ) -> Bus:
        """Connect to one of the comma-separated servers; `role` names the connection and its inboxes.

        Each role has inboxes of its own, because whoever may listen to an inbox sees every message pulled.
        Raises ConfigError naming NATS_URL or NATS_CREDS when no connection stands within that many
        seconds.
        """
        bus = cls(prefix)
        bus.inbox_prefix = f"_INBOX_{prefix}_{role}"
        try:
            async with asyncio.timeout(within):
                await bus.client.connect(
                    servers=url.split(","),
                    name=f"{prefix}-{role}-{os.getpid()}",
                    inbox_prefix=bus.inbox_prefix,
                    user_credentials=creds,
                    error_cb=bus._on_error,
                    disconnected_cb=bus._on_disconnect,
                    reconnected_cb=bus._on_reconnect,
                    connect_timeout=2,
                    reconnect_time_wait=_RETRY_WAIT,  # type: ignore[arg-type]  # seconds, fractions work
                    max_reconnect_attempts=-1,
                    ping_interval=20,
                )
        except (*_NATS_ERRORS, ValueError) as error:
            await disconnect(bus.client)
            raise ConfigError([bus._why_not(error, creds)]) from None
        except BaseException:
            await disconnect(bus.client)
            raise
        bus._up.set()
        return bus

    def _why_not(self, error: Exception, creds: str | None) -> str:
        if self._refused:
            return f"{'NATS_CREDS' if creds else 'NATS_URL'}: the NATS server refused the credentials"
        if isinstance(error, ValueError):
            return f"{'NATS_CREDS' if creds else 'NATS_URL'}: cannot be used to connect"
        return (
            "NATS_URL: no NATS server answered; start one (`graft up` brings its own) or correct the address"
        )

    @property
    def connected(self) -> bool:
        return self._up.is_set()

    async def _on_error(self, error: Exception) -> None:
        self._refused = self._refused or "auth" in str(error).lower()
        log.debug("nats error", error=type(error).__name__)

    async def _on_disconnect(self) -> None:
        if self._up.is_set() and not self.client.is_closed:
            log.warning("broker lost")
        self._up.clear()

    async def _on_reconnect(self) -> None:
        log.info("broker back")
        self._up.set()
        self._arrived.put_nowait(None)
        for handler in self._on_return:
            handler()

    def on_return(self, handler: Callable[[], object]) -> None:
        """Call `handler` whenever the broker is back after having been away."""
        self._on_return.append(handler)

    async def close(self) -> None:
        """Hand back what was pulled and not read, send what is waiting, and disconnect."""
        await self.stop_pulling()
        self._up.clear()
        with contextlib.suppress(*_NATS_ERRORS):
            async with asyncio.timeout(2):
                if self.client.is_connected:
                    await self.client.flush()
        await disconnect(self.client)

    # ------------------------------------------------------------------------------------------- the stream

    async def ensure_stream(self, settings: StreamSettings) -> None:
        """Create or update the stream and its consumer, now and whenever the broker turns out to have lost them.

        Raises ConfigError or TransientError, see `streams.ensure`.
        """
        self._settings = settings
        await streams.ensure(self._js, self.prefix, settings, batches=streams.takes_batches(self.client))

    async def _restore_stream(self) -> None:
        if self._settings is not None:
            async with self._ensuring:
                await self.ensure_stream(self._settings)

    async def publish(self, trigger: Trigger) -> Published:
        """Store a trigger under its delivery id.

        Raises StreamFull, or BusUnavailable when no acknowledgement came.
        """
        if not self._up.is_set():
            try:
                async with asyncio.timeout(_CONNECTION_GRACE):
                    await self._up.wait()
            except TimeoutError:
                raise BusUnavailable("not connected to NATS") from None
        try:
            try:
                return await self._publish(trigger)
            except nats.js.errors.NoStreamResponseError:
                # A broker that came back with an empty disk.
                await self._restore_stream()
                return await self._publish(trigger)
        except nats.js.errors.APIError as error:
            if error.err_code == streams.STORE_FULL:
                raise StreamFull from None
            raise BusUnavailable(f"JetStream refused the message (error {error.err_code})") from None
        except (*_NATS_ERRORS, msgspec.DecodeError, ConfigError, TransientError) as error:
            raise BusUnavailable(f"JetStream did not acknowledge ({type(error).__name__})") from None

    async def _publish(self, trigger: Trigger) -> Published:
        headers = {"Nats-Msg-Id": trigger.delivery_id}
        with tracing.span("publish", kind="producer", delivery_id=trigger.delivery_id):
            if parent := tracing.current():
                headers["traceparent"] = parent
            duplicate = await self._publisher.publish(
                triggers.subject_of(trigger, self.prefix), triggers.encode(trigger), headers
            )
        return Published(duplicate=duplicate)

    async def backlog(self) -> Backlog:
        """What lies in the stream now. Raises BusUnavailable."""
        if not self._up.is_set():
            raise BusUnavailable("not connected to NATS")
        name = streams.stream_name(self.prefix)
        try:
            answer = await self.client.request(f"$JS.API.STREAM.INFO.{name}", timeout=_PUBLISH_TIMEOUT)
            stream = msgspec.json.decode(answer.data, type=_StreamInfo)
            consumer = await self._js.consumer_info(name, streams.CONSUMER)
        except (*_NATS_ERRORS, msgspec.ValidationError) as error:
            raise BusUnavailable(f"JetStream did not answer ({type(error).__name__})") from None
        state = stream.state
        return Backlog(
            messages=state.messages,
            bytes=state.bytes,
            max_bytes=stream.config.max_bytes,
            oldest_seconds=(stream.ts - state.first_ts).total_seconds() if state.messages else None,
            waiting=consumer.num_pending or 0,
            unacknowledged=consumer.num_ack_pending or 0,
            redelivered=consumer.num_redelivered or 0,
        )

    async def discard(self, subjects: Iterable[str]) -> int:
        """Drop what lies in the stream under these subjects (wildcards allowed, without the prefix); how many
        messages that were. For the triggers of an installation that was purged. Raises BusUnavailable."""
        if not self._up.is_set():
            raise BusUnavailable("not connected to NATS")
        name = streams.stream_name(self.prefix)
        try:
            before = (await self._js.stream_info(name)).state.messages
            for subject in subjects:
                await self._js.purge_stream(name, subject=f"{self.prefix}.{subject}")
            return max(0, before - (await self._js.stream_info(name)).state.messages)
        except _NATS_ERRORS as error:
            raise BusUnavailable(f"JetStream did not answer ({type(error).__name__})") from None

    # ---------------------------------------------------------------------------------------------- pulling

    async def pull(self, *, batch: int, within: float) -> list[Pulled]:
        """Up to `batch` messages, as soon as there is one; none where none came `within` that many seconds.

        A broker that is away is a quiet one. One caller at a time. nats-py's `fetch` is not used because it
        goes on waiting for a whole batch once the first message is there.
        """
        found: list[Pulled] = []
        try:
            async with asyncio.timeout(within):
                while not found:
                    await self._ask_for(batch)
                    await self._take(await self._arrived.get(), found)
        except TimeoutError:
            return found
        while len(found) < batch and not self._arrived.empty():
            await self._take(self._arrived.get_nowait(), found)
        return found

    async def _ask_for(self, batch: int) -> None:
        await self._up.wait()
        now = asyncio.get_running_loop().time()
        if self._expected > 0 and now < self._expires_at:
            return
        try:
            if self._pull_inbox is None:
                self._pull_inbox = await self.client.subscribe(self.client.new_inbox(), cb=self._on_pulled)
            self._expected = batch
            # A little later than the server's own end, whose notice normally comes first.
            self._expires_at = now + _PULL_EXPIRES + 2
            await self.client.publish(
                f"$JS.API.CONSUMER.MSG.NEXT.{streams.stream_name(self.prefix)}.{streams.CONSUMER}",
                msgspec.json.encode({"batch": batch, "expires": int(_PULL_EXPIRES * 1e9)}),
                reply=self._pull_inbox.subject,
            )
        except _NATS_ERRORS as error:
            log.debug("pull failed", error=type(error).__name__)
            self._expected = 0
            await asyncio.sleep(_RETRY_WAIT)

    async def _on_pulled(self, message: Msg) -> None:
        self._arrived.put_nowait(message)

    async def _take(self, message: Msg | None, found: list[Pulled]) -> None:
        """Sort what arrived: a message of the stream, or a notice that the pull request is over."""
        if message is None:
            self._expected = 0
            return
        status = (message.headers or {}).get("Status") if not message.data else None
        if status is None:
            self._expected -= 1
            found.append(Pulled(message))
            return
        if status == "100":
            return
        self._expected = 0
        if status in ("404", "408"):
            return
        log.warning("pull ended", status=status)
        # The consumer is gone or moving (409), or nobody answers for the stream (503).
        try:
            await self._restore_stream()
        except (ConfigError, TransientError) as error:
            log.warning("stream not restored", error=type(error).__name__)
        await asyncio.sleep(_RETRY_WAIT)

    async def stop_pulling(self) -> None:
        """Give back what has arrived and was not read, so that another replica gets it without a wait."""
        if self._pull_inbox is None:
            return
        inbox, self._pull_inbox, self._expected = self._pull_inbox, None, 0
        try:
            await inbox.unsubscribe()
        except _NATS_ERRORS as error:
            log.debug("unsubscribe failed", error=type(error).__name__)
        while not self._arrived.empty():
            message = self._arrived.get_nowait()
            if message is not None and message.data:
                await Pulled(message).nak()

    # ------------------------------------------------------------------------------------ wake-ups, signals

    async def wake(self, partition: int) -> None:
        """Tell the holder of a partition that there is work; best effort."""
        await self._send(f"{self.prefix}.wake.{partition}", b"")

    async def subscribe_wakes(self, handler: Callable[[int], object]) -> Subscription:
        """Call `handler` with the partition of every wake-up from now on, also after a reconnect."""

        async def receive(message: Msg) -> None:
            partition = message.subject.rpartition(".")[2]
            if partition.isdecimal():
                handler(int(partition))

        return await self.client.subscribe(f"{self.prefix}.wake.*", cb=receive)

    async def offer(self) -> None:
        """Tell all replicas that there are partitions to be had; best effort."""
        await self._send(f"{self.prefix}.wake.{_FREE}", b"")

    async def subscribe_offers(self, handler: Callable[[], object]) -> Subscription:
        """Call `handler` whenever some replica says that partitions are free."""

        async def receive(message: Msg) -> None:
            handler()

        return await self.client.subscribe(f"{self.prefix}.wake.{_FREE}", cb=receive)

    async def signal(self, name: str, payload: Mapping[str, Any]) -> None:
        """Tell whoever listens that something was done; ids, SHAs and codes only; best effort.

        A subject holds no spaces: `verdict changed` goes out as `signal.verdict_changed`.
        """
        subject = f"{self.prefix}.signal.{name.replace(' ', '_')}"
        await self._send(subject, msgspec.json.encode(payload))

    async def subscribe_signals(self, handler: Callable[[str, dict[str, Any]], object]) -> Subscription:
        """Call `handler` with name and payload of every signal from now on."""

        async def receive(message: Msg) -> None:
            try:
                payload = msgspec.json.decode(message.data, type=dict[str, Any])
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                return
            name = message.subject.removeprefix(f"{self.prefix}.signal.")
            handler(name.replace("_", " "), payload)

        return await self.client.subscribe(f"{self.prefix}.signal.*", cb=receive)

    async def _send(self, subject: str, payload: bytes) -> None:
        if not self._up.is_set():
            return
        try:
            await self.client.publish(subject, payload)
        except _NATS_ERRORS as error:
            log.debug("message lost", error=type(error).__name__)
