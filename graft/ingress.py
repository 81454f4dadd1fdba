"""The aiohttp application that GitHub posts to, and health and metrics beside it.

`POST /webhooks/github` answers 202 only when JetStream has acknowledged the trigger (or when nobody has to
act), so whatever else happens GitHub counts the delivery as failed and it can be recovered. The signature is
checked over the raw bytes before anything of them is looked at. No answer and no log line holds anything of
the payload but the paths where it does not fit.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Final

from aiohttp import hdrs, web
from msgspec import Struct
from prometheus_client import Counter

from graft import payloads, tracing
from graft.bus import Bus, BusUnavailable, StreamFull
from graft.config import Address, IngressSettings, Settings
from graft.connections import Doorkeeper
from graft.errors import ConfigError, PermanentError
from graft.logs import get_logger
from graft.metrics import CONTENT_TYPE, Metrics
from graft.triggers import Trigger

log = get_logger("ingress")

# GitHub sends no larger payloads (webhook-events-and-payloads, "Payload cap").
LARGEST_BODY: Final = 25 * 1024 * 1024
_CHECK_SECONDS: Final = 2.0
_JSON: Final = {hdrs.CONTENT_TYPE: "application/json; charset=utf-8"}
_UNAVAILABLE: Final = {**_JSON, hdrs.RETRY_AFTER: "60"}
_HUB_SIGNATURE: Final = "X-Hub-Signature-256"
_GITHUB_EVENT: Final = "X-GitHub-Event"
_GITHUB_DELIVERY: Final = "X-GitHub-Delivery"
_FULL: Final = 0.98
# Hashing this much takes about as long as handing it to a thread.
_HASH_INLINE: Final = 256 * 1024

_EVENT = re.compile(r"[a-z_]{1,50}\Z", re.ASCII)
_DELIVERY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z", re.ASCII)
_SIGNATURE = re.compile(r"sha256=([0-9a-f]{64})\Z", re.ASCII)


class Limits(Struct, frozen=True, kw_only=True):
    """What one sender can make this process hold.

    `body` bytes of one delivery; `buffer` bytes of all that are held at a time, where the first `small` of each do
    not count, so that large ones cannot crowd out the usual ones; `seconds` for a body to arrive: GitHub waits ten
    for the answer, and publishing may take up to seven of them (graft.bus).
    """

    body: int = LARGEST_BODY
    buffer: int = 6 * LARGEST_BODY
    small: int = 128 * 1024
    seconds: float = 8.0


Check = Callable[[], Awaitable[str | None]]


class Readiness:
    """What `/readyz` asks. A check answers `None` or a reason code.

    A blocking one answers 503 for the whole process while it has a reason. Any other is only shown, for
    troubles that do not stop deliveries from being taken.
    """

    def __init__(self) -> None:
        self._checks: dict[str, tuple[Check, bool]] = {}

    def add(self, name: str, check: Check, *, blocking: bool = True) -> None:
        self._checks[name] = (check, blocking)

    async def report(self) -> tuple[bool, dict[str, str]]:
        """Whether this process is ready, and `ok` or a reason per check."""
        checks = list(self._checks.items())
        reasons = await asyncio.gather(*(self._ask(check) for _, (check, _) in checks))
        found = {name: reason or "ok" for (name, _), reason in zip(checks, reasons, strict=True)}
        ready = all(
            reason is None or not blocking for (_, (_, blocking)), reason in zip(checks, reasons, strict=True)
        )
        return ready, found

    async def _ask(self, check: Check) -> str | None:
        try:
            async with asyncio.timeout(_CHECK_SECONDS):
                return await check()
        except TimeoutError:
            return "timeout"
        except Exception as error:  # noqa: BLE001 - a check that breaks is a check that fails
            return type(error).__name__


class _Refused(Exception):
    """A delivery that is not taken: status, and a reason from a closed set."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


def create_app(
    settings: IngressSettings | Settings,
    bus: Bus,
    readiness: Readiness,
    metrics: Metrics,
    *,
    limits: Limits | None = None,
) -> web.Application:
    """Webhooks, health and metrics; `readiness` may get more checks while it runs."""
    app = create_health_app(bus, readiness, metrics)
    receiver = _Receiver(settings, bus, metrics, limits or Limits())
    app.router.add_post("/webhooks/github", receiver.receive)
    return app


def create_health_app(bus: Bus, readiness: Readiness, metrics: Metrics) -> web.Application:
    """Health and metrics alone, for a process that takes no deliveries."""

    async def broker() -> str | None:
        if not bus.connected:
            return "disconnected"
        try:
            backlog = await bus.backlog()
        except BusUnavailable as error:
            return error.reason
        return "stream_full" if backlog.bytes >= _FULL * backlog.max_bytes else None

    readiness.add("broker", broker)

    async def healthz(_request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def readyz(_request: web.Request) -> web.Response:
        ready, checks = await readiness.report()
        return web.json_response({"ready": ready, "checks": checks}, status=200 if ready else 503)

    async def show_metrics(_request: web.Request) -> web.Response:
        return web.Response(body=await metrics.scrape(), headers={"Content-Type": CONTENT_TYPE})

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", show_metrics)
    return app


def runner(app: web.Application) -> web.AppRunner:
    """Serves the application; what the connection has to do for it is set here.

    Bodies stay as they came, because the signature is over those bytes.
    """
    return web.AppRunner(
        app,
        access_log=None,
        auto_decompress=False,
        max_line_size=4_096,
        max_field_size=4_096,
        max_headers=64,
        read_bufsize=32 * 1024,
        lingering_time=2.0,
    )


async def listen(stack: AsyncExitStack, app: web.Application, address: Address) -> str:
    """Serve an application until the stack unwinds, which lets requests on the way finish; returns its URL.

    Raises ConfigError when the address cannot be had.
    """
    served = runner(app)
    door = Doorkeeper(served)
    await served.setup()
    stack.push_async_callback(served.cleanup)
    try:
        host, port = await door.open(stack, address.host, address.port)
    except OSError as error:
        raise ConfigError(
            [f"GRAFT_LISTEN: {error.strerror or type(error).__name__}; choose another address"]
        ) from None
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Receiver:
    """One delivery after the other, and the memory they share."""

    def __init__(
        self, settings: IngressSettings | Settings, bus: Bus, metrics: Metrics, limits: Limits
    ) -> None:
        self._bus = bus
        self._limits = limits
        self._metrics = metrics
        self._app_id = settings.github_app_id
        self._incident_label = settings.incident_label
        secrets = (settings.github_webhook_secret, settings.github_webhook_secret_previous)
        self._secrets = [secret.value.encode() for secret in secrets if secret is not None]
        self._buffered = 0
        self._counters: dict[tuple[str, str], Counter] = {}

    async def receive(self, request: web.Request) -> web.Response:
        started = time.perf_counter()
        received_at = datetime.now(UTC)
        event, delivery_id, held = "other", None, 0
        try:
            signature = self._precheck(request)
            body, held = await self._read(request)
            await self._verify(signature, body)
            name, delivery_id = self._identify(request)
            event = name if name in payloads.EVENTS else "other"
            with tracing.span("webhook", kind="server", event=event, delivery_id=delivery_id) as span:
                reduced = self._reduce(name, delivery_id, body, received_at)
                del body  # publishing may take seconds
                self._buffered -= held
                held = 0
                outcome = "ignored" if reduced is None else await self._publish(reduced)
                span.set_attribute("outcome", outcome)
            status = 202
        except _Refused as refused:
            status, outcome = refused.status, refused.reason
            log.info("delivery refused", status=status, reason=outcome, delivery_id=delivery_id)
        finally:
            self._buffered -= held
        self._count(event, outcome)
        self._metrics.delivery_seconds.observe(time.perf_counter() - started)
        return _answer(status, outcome)

    def _count(self, event: str, outcome: str) -> None:
        counter = self._counters.get((event, outcome))
        if counter is None:
            counter = self._metrics.deliveries.labels(event, outcome)
            self._counters[event, outcome] = counter
        counter.inc()

    def _precheck(self, request: web.Request) -> bytes:
        """What the headers alone decide; returns the signature that came."""
        if _header(request, hdrs.CONTENT_TYPE).partition(";")[0].strip().lower() != "application/json":
            raise _Refused(415, "not_json")
        if any(
            coding.strip().lower() != "identity"
            for coding in request.headers.getall(hdrs.CONTENT_ENCODING, ())
        ):
            raise _Refused(415, "encoded")
        if request.content_length is not None and request.content_length > self._limits.body:
            raise _Refused(413, "too_large")
        signature = _SIGNATURE.match(_header(request, _HUB_SIGNATURE))
        if signature is None:
            raise _Refused(401, "no_signature")
        return bytes.fromhex(signature[1])

    async def _read(self, request: web.Request) -> tuple[payloads.Data, int]:
        """The whole body, or a refusal as soon as it is too long, too slow or more than memory allows; and the
        bytes that stay counted until the caller gives them back."""
        if request.content.is_eof() and request.content.exception() is None:
            # Nearly every delivery: the body came with the headers, in less than one read of the socket.
            return request.content.read_nowait(), 0
        body = bytearray()
        counted = 0
        try:
            async with asyncio.timeout(self._limits.seconds):
                async for piece in request.content.iter_any():
                    body += piece
                    if len(body) > self._limits.body:
                        raise _Refused(413, "too_large")
                    more = max(len(body) - self._limits.small, 0) - counted
                    self._buffered += more
                    counted += more
                    if more and self._buffered > self._limits.buffer:
                        raise _Refused(503, "busy")
        except BaseException as error:
            self._buffered -= counted
            if isinstance(error, TimeoutError):
                raise _Refused(408, "too_slow") from None
            if isinstance(error, _Refused) or not isinstance(error, Exception):
                raise
            # Whatever a broken transfer is called, in every aiohttp.
            raise _Refused(400, "broken_body") from None
        return body, counted

    async def _verify(self, signature: bytes, body: payloads.Data) -> None:
        if len(body) > _HASH_INLINE:
            genuine = await asyncio.to_thread(self._signed, signature, body)
        else:
            genuine = self._signed(signature, body)
        if not genuine:
            raise _Refused(401, "bad_signature")

    def _signed(self, signature: bytes, body: payloads.Data) -> bool:
        # Every secret is tried, whether an earlier one fits or not.
        matches = [hmac.compare_digest(hmac.digest(key, body, "sha256"), signature) for key in self._secrets]
        return any(matches)

    def _identify(self, request: web.Request) -> tuple[str, str]:
        """Event name and delivery id: the signature does not cover them, and they become a subject and a key."""
        event = _header(request, _GITHUB_EVENT)
        if _EVENT.match(event) is None:
            raise _Refused(400, "bad_event")
        delivery_id = _header(request, _GITHUB_DELIVERY)
        if _DELIVERY.match(delivery_id) is None:
            raise _Refused(400, "bad_delivery")
        return event, delivery_id

    def _reduce(
        self, event: str, delivery_id: str, body: payloads.Data, received_at: datetime
    ) -> Trigger | None:
        """What has to be acted on, if anything."""
        context = payloads.Context(
            delivery_id=delivery_id,
            received_at=received_at,
            app_id=self._app_id,
            incident_label=self._incident_label,
        )
        try:
            reduced = payloads.reduce(event, body, context)
        except PermanentError as error:
            raise _Refused(400, error.reason) from None
        if not isinstance(reduced, payloads.Ignored):
            return reduced
        say = log.warning if reduced.paths else log.debug
        say(
            "delivery ignored",
            delivery_id=delivery_id,
            github_event=event,
            reason=reduced.reason,
            paths=reduced.paths,
        )
        return None

    async def _publish(self, trigger: Trigger) -> str:
        """Returns the outcome of a delivery that the broker has."""
        try:
            published = await self._bus.publish(trigger)
        except (BusUnavailable, StreamFull) as error:
            log.error("delivery not stored", reason=error.reason, **trigger.log_context())
            raise _Refused(503, error.reason) from None
        return "duplicate" if published.duplicate else "accepted"


def _answer(status: int, outcome: str) -> web.Response:
    answer = web.Response(
        status=status,
        body=b'{"status": "%s"}' % outcome.encode(),
        headers=_UNAVAILABLE if status == 503 else _JSON,
    )
    if status >= 400:
        # Whoever is refused asks again from the start, and does not get more than one turn.
        answer.force_close()
    return answer


def _header(request: web.Request, name: str) -> str:
    """A header that must not come twice: two values are none."""
    found = request.headers.getall(name, ())
    return found[0] if len(found) == 1 else ""
