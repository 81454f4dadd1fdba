"""The composition root: settings become connections, connections become actors, and SIGTERM takes them down
again in the right order.

Everything that runs is listed here. `serve` returns when `stop` is set: first the ingress stops
taking deliveries and the inbox stops pulling, then running actors finish, partitions go back, connections close.
The ingress as a process of its own needs nothing of this: `graft.cli.ingress`.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager

from actors.calls import CallLedger
from actors.change import ChangeActor
from actors.inbox import Inbox
from actors.installation import InstallationActor
from actors.lead import LeadActor
from actors.metering import MeteredModel, sample
from actors.operator import Operator
from actors.partitioning import Partitioning
from actors.presence import Presence
from actors.publish import REQUEST_SECONDS
from actors.repository import RepositoryActor
from actors.services import Services
from actors.system import ActorSystem
from graft import __version__, database, ingress, llm
from graft.bus import Bus
from graft.config import ActorSettings, Settings
from graft.github import GitHub, OnCall
from graft.logs import get_logger
from graft.metrics import Metrics
from graft.store import partitions
from graft.streams import StreamSettings

log = get_logger("daemon")

POOL_SIZE = 12


class Daemon:
    """A running Graft: what a caller may look at while it runs."""

    def __init__(self, *, services: Services, system: ActorSystem, inbox: Inbox, url: str) -> None:
        self.services = services
        self.system = system
        self.inbox = inbox
        self.url = url


@asynccontextmanager
async def running(settings: ActorSettings, *, model: llm.LlmClient | None = None) -> AsyncIterator[Daemon]:
    """Start the actors, with complete `Settings` the ingress too, and take them down at the end. `model` answers
    instead of the one in the settings.

    Raises ConfigError, naming the variable, when Postgres, NATS or the address cannot be had.
    """
    metrics = Metrics()
    async with AsyncExitStack() as stack:
        pool = await database.open_pool(settings.database_url.value, size=POOL_SIZE)
        stack.push_async_callback(database.close_pool, pool)
        await database.prepare_schema(pool)
        async with pool.acquire() as connection:
            partitioning = Partitioning(await partitions.ensure(connection, settings.partitions))
        bus = await Bus.connect(
            settings.nats_url.value, creds=settings.nats_creds, prefix=settings.nats_prefix
        )
        stack.push_async_callback(bus.close)
        await bus.ensure_stream(
            StreamSettings(max_bytes=settings.stream_max_bytes, replicas=settings.stream_replicas)
        )
        calls = CallLedger(pool)
        github = GitHub(
            app_id=settings.github_app_id,
            private_key=settings.github_app_private_key.value,
            api_url=settings.github_api_url,
            user_agent=f"graft/{__version__}",
            timeout=REQUEST_SECONDS,
            on_call=_both(metrics.github_call, calls.count),
        )
        stack.push_async_callback(github.close)
        stack.push_async_callback(_stop_counting, calls, asyncio.create_task(calls.run(), name="calls"))
        services = Services(
            settings=settings,
            pool=pool,
            bus=bus,
            github=github,
            llm=None if (found := model or _model(settings)) is None else MeteredModel(found, metrics),
            metrics=metrics,
            partitioning=partitioning,
        )
        system = ActorSystem(
            pool=pool,
            bus=bus,
            actors={
                "pull": ChangeActor(services),
                "repository": RepositoryActor(services),
                "installation": InstallationActor(services),
                "lead": (lead := LeadActor(services)),
            },
            holder=f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}",
            version=__version__,
            partitioning=partitioning,
            concurrency=settings.concurrency,
            metrics=metrics,
            offer=bus.offer,
        )
        await bus.subscribe_offers(system.look_for_free)
        await lead.first()
        await system.start()
        stack.push_async_callback(system.drain)
        inbox = Inbox(bus=bus, pool=pool, partitioning=partitioning)
        pulling = asyncio.create_task(inbox.run(), name="inbox")
        stack.push_async_callback(_stop_inbox, bus, pulling)
        sample(metrics, pool=pool, bus=bus, system=system, inbox=inbox, github=github)
        presence = Presence(bus=bus, system=system, github=github, inbox=inbox)
        await presence.start()
        stack.push_async_callback(presence.stop)
        operator = Operator(services, presence, lead.recoverer)
        await operator.start()
        stack.push_async_callback(operator.stop)
        # What GitHub sent while the broker was away has failed there.
        recovering: set[asyncio.Task[None]] = set()
        bus.on_return(lambda: _begin(lead.recover(), recovering))
        url = await _listen(stack, settings, bus, metrics, system)
        log.info("ready", listen=url, version=__version__, partitions=partitioning.count)
        yield Daemon(services=services, system=system, inbox=inbox, url=url)
        log.info("draining")


async def serve(settings: ActorSettings, stop: asyncio.Event) -> None:
    """Run until `stop` is set: ingress and actors, or with ActorSettings the actors alone."""
    async with running(settings):
        await stop.wait()


def _model(settings: ActorSettings) -> llm.LlmClient | None:
    if settings.anthropic_api_key is None and settings.anthropic_auth_token is None:
        return None
    key, token = settings.anthropic_api_key, settings.anthropic_auth_token
    return llm.connect(
        api_key=key.value if key else None,
        auth_token=token.value if token else None,
        base_url=settings.anthropic_base_url,
    )


def _both(first: OnCall, second: OnCall) -> OnCall:
    def told(route: str, method: str, status: int | None, seconds: float, installation: int | None) -> None:
        first(route, method, status, seconds, installation)
        second(route, method, status, seconds, installation)

    return told


async def _stop_counting(calls: CallLedger, counting: asyncio.Task[None]) -> None:
    counting.cancel()
    await asyncio.gather(counting, return_exceptions=True)
    await calls.flush()


async def _stop_inbox(bus: Bus, pulling: asyncio.Task[None]) -> None:
    pulling.cancel()
    await asyncio.gather(pulling, return_exceptions=True)
    await bus.stop_pulling()


def _begin(work: Coroutine[None, None, None], tasks: set[asyncio.Task[None]]) -> None:
    """Start something whose failure is only logged; `tasks` keeps it from being forgotten half-way."""

    async def attempt() -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - the schedule comes round to it anyway
            log.warning("recovery not asked for", error=type(error).__name__)

    task = asyncio.create_task(attempt())
    tasks.add(task)
    task.add_done_callback(tasks.discard)


async def _listen(
    stack: AsyncExitStack, settings: ActorSettings, bus: Bus, metrics: Metrics, system: ActorSystem
) -> str:
    """Serve health and metrics, and webhooks where the settings have a secret for them; returns the URL."""
    readiness = ingress.Readiness()
    if isinstance(settings, Settings):
        # Troubles of the actors are shown, and no reason to turn deliveries away.
        _add_checks(readiness, system, blocking=False)
        app = ingress.create_app(settings, bus, readiness, metrics)
    else:
        _add_checks(readiness, system, blocking=True)
        app = ingress.create_health_app(bus, readiness, metrics)
    return await ingress.listen(stack, app, settings.listen)


def _add_checks(readiness: ingress.Readiness, system: ActorSystem, *, blocking: bool) -> None:
    """What may be wrong with the actors. The App being refused is not this replica's fault: it never blocks."""

    async def database_answers() -> str | None:
        async with system.pool.acquire() as connection:
            await database.check_schema(connection)
        return None

    async def partitions_held() -> str | None:
        return None if system.held and system.leases_stand else "none_held"

    async def app_accepted() -> str | None:
        return None if system.refused is None else "app_refused"

    readiness.add("database", database_answers, blocking=blocking)
    readiness.add("partitions", partitions_held, blocking=blocking)
    readiness.add("github", app_accepted, blocking=False)
