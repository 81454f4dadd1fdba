"""The composition root: settings become connections, connections become actors, and SIGTERM takes them down
again in the right order.

Everything that runs is listed here. `serve` returns when `stop` is set: first the ingress stops taking
deliveries and the inbox stops pulling, then running actors finish, partitions go back, connections close.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web

from actors.change import ChangeActor
from actors.inbox import Inbox
from actors.installation import InstallationActor
from actors.lead import LeadActor
from actors.publish import REQUEST_SECONDS
from actors.repository import RepositoryActor
from actors.services import Services
from actors.system import ActorSystem
from graft import __version__, database, llm, triggers
from graft.bus import Bus
from graft.config import Settings
from graft.github import GitHub
from graft.ingress import Readiness, create_app
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
async def running(settings: Settings, *, model: llm.LlmClient | None = None) -> AsyncIterator[Daemon]:
    """Start ingress and actors, and take them down at the end. `model` answers instead of the one in the
    settings.

    Raises ConfigError, naming the variable, when Postgres, NATS or the address cannot be had.
    """
    metrics = Metrics()
    async with AsyncExitStack() as stack:
        pool = await database.open_pool(settings.database_url.value, size=POOL_SIZE)
        stack.push_async_callback(pool.close)
        await database.prepare_schema(pool)
        async with pool.acquire() as connection:
            count = await partitions.ensure(connection, settings.partitions)
        bus = await Bus.connect(
            settings.nats_url.value, creds=settings.nats_creds, prefix=settings.nats_prefix
        )
        stack.push_async_callback(bus.close)
        await bus.ensure_stream(
            StreamSettings(max_bytes=settings.stream_max_bytes, replicas=settings.stream_replicas)
        )
        github = GitHub(
            app_id=settings.github_app_id,
            private_key=settings.github_app_private_key.value,
            api_url=settings.github_api_url,
            user_agent=f"graft/{__version__}",
            timeout=REQUEST_SECONDS,
            on_call=metrics.github_call,
        )
        stack.push_async_callback(github.close)
        services = Services(
            settings=settings,
            pool=pool,
            bus=bus,
            github=github,
            llm=model or _model(settings),
            metrics=metrics,
            partitions=count,
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
            partition_of=lambda address: triggers.partition_of(address, count),
            concurrency=settings.concurrency,
        )
        await lead.first()
        await system.start()
        stack.push_async_callback(system.drain)
        inbox = Inbox(bus=bus, pool=pool, partitions=count)
        pulling = asyncio.create_task(inbox.run(), name="inbox")
        stack.push_async_callback(_stop_inbox, bus, pulling)
        url = await _listen(stack, settings, bus, metrics, system)
        log.info("ready", listen=url, version=__version__, partitions=count)
        yield Daemon(services=services, system=system, inbox=inbox, url=url)
        log.info("draining")


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Run until `stop` is set."""
    async with running(settings):
        await stop.wait()


def _model(settings: Settings) -> llm.LlmClient | None:
    if settings.anthropic_api_key is None and settings.anthropic_auth_token is None:
        return None
    key, token = settings.anthropic_api_key, settings.anthropic_auth_token
    return llm.connect(
        api_key=key.value if key else None,
        auth_token=token.value if token else None,
        base_url=settings.anthropic_base_url,
    )


async def _stop_inbox(bus: Bus, pulling: asyncio.Task[None]) -> None:
    pulling.cancel()
    await asyncio.gather(pulling, return_exceptions=True)
    await bus.stop_pulling()


async def _listen(
    stack: AsyncExitStack, settings: Settings, bus: Bus, metrics: Metrics, system: ActorSystem
) -> str:
    """Serve webhooks, health and metrics; returns the URL."""
    readiness = Readiness()
    app = create_app(settings, bus, readiness, metrics)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    site = web.TCPSite(runner, settings.listen.host, settings.listen.port)
    await site.start()
    host, port = runner.addresses[0][:2]
    return f"http://{host}:{port}"
