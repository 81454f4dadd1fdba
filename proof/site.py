"""Real servers and a simulated GitHub for proofs that start and stop daemons as they go.

Nothing stands between the parts: what is measured here is Graft and its servers. Daemons are processes of their
own, so that the simulated GitHub takes its processor time elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from graft import database, embedded
from graft.bus import Bus
from graft.database import Pool
from graft.embedded import NatsServer, PostgresServer
from graft.errors import ConfigError, TransientError
from graft.simulator import Comment, Pull, Simulator
from graft.streams import StreamSettings
from proof.processes import Process, start
from proof.stub_model import StubModel

STREAM_BYTES: Final = 64 * 1024 * 1024


class Site:
    """What runs, and the daemons started on it. Made by `opened`."""

    def __init__(
        self,
        *,
        brokers: Sequence[NatsServer],
        postgres: PostgresServer,
        simulator: Simulator,
        model: StubModel,
        pool: Pool,
        bus: Bus,
        prefix: str,
    ) -> None:
        self.brokers = brokers
        self.postgres = postgres
        self.simulator = simulator
        self.model = model
        self.pool = pool
        self.bus = bus
        self.prefix = prefix

    @property
    def nats(self) -> NatsServer:
        """The broker, where there is one."""
        [only] = self.brokers
        return only

    @property
    def nats_url(self) -> str:
        return ",".join(broker.url for broker in self.brokers)

    def environment(self, **variables: str) -> dict[str, str]:
        """The settings of a daemon that works here, with `variables` over them."""
        return {
            "DATABASE_URL": self.postgres.url(),
            "NATS_URL": self.nats_url,
            "GRAFT_NATS_PREFIX": self.prefix,
            "GITHUB_API_URL": self.simulator.base_url,
            "GITHUB_APP_ID": str(self.simulator.app.id),
            "GITHUB_APP_SLUG": self.simulator.app.slug,
            "GITHUB_APP_PRIVATE_KEY": self.simulator.private_key,
            "GITHUB_WEBHOOK_SECRET": self.simulator.app.webhook_secret,
            "ANTHROPIC_API_KEY": "a key for the stub",
            "ANTHROPIC_BASE_URL": self.model.url,
            "GRAFT_SETTLE_SECONDS": "0",
            "GRAFT_STREAM_MAX_BYTES": str(STREAM_BYTES),
            "GRAFT_STREAM_REPLICAS": str(len(self.brokers)),
            "GRAFT_INTENT_DAILY_BUDGET_USD": "1000",
            **variables,
        }

    async def start(self, **variables: str) -> Process:
        """Start a daemon, which the caller ends."""
        return await start(self.environment(**variables))

    async def start_ingress(self) -> Process:
        """Start an ingress alone: what it takes stays in the stream."""
        return await start(self.environment(), command="ingress")

    def send_to(self, process: Process) -> None:
        """Have the webhooks sent to this daemon from now on."""
        self.simulator.app.webhook_url = f"{process.url}/webhooks/github"

    async def settled(self, *, seconds: float) -> None:
        """Until every webhook is answered, the stream is empty and nothing is left to do, but for reviewers that are
        read an hour later. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            await self.simulator.drain()
            while (await self.bus.backlog()).messages or await self.unfinished():
                await asyncio.sleep(0.05)

    async def unfinished(self) -> int:
        """Rows of live work that somebody has to do soon."""
        left: int = await self.pool.fetchval(
            "SELECT count(*) FROM work WHERE dead_at IS NULL AND address <> 'lead'"
            " AND NOT (need = 'reviewers' AND due_at > now() + interval '1 minute')"
        )
        return left


@asynccontextmanager
async def opened(
    directory: Path,
    *,
    prefix: str = "proof",
    durable: bool = True,
    migrated: bool = True,
    brokers: Sequence[NatsServer] = (),
) -> AsyncIterator[Site]:
    """Start NATS, Postgres, the simulated GitHub and a model; at the end everything is gone. The database is empty
    unless it is to be `migrated`. Where `brokers` are given they are used, and every one keeps the stream."""
    async with AsyncExitStack() as stack:
        brokers = brokers or [
            await stack.enter_async_context(embedded.nats_server(directory / "nats", sync_always=durable))
        ]
        postgres = await stack.enter_async_context(
            embedded.postgres_server(directory / "postgres", durable=durable)
        )
        simulator = await stack.enter_async_context(Simulator())
        model = await stack.enter_async_context(StubModel())
        pool = await database.open_pool(postgres.url(), size=4)
        stack.push_async_callback(pool.close)
        if migrated:
            async with pool.acquire() as connection:
                await database.migrate(connection)
        bus = await Bus.connect(",".join(one.url for one in brokers), prefix=prefix, role="proof")
        stack.push_async_callback(bus.close)
        await _ensured(bus, replicas=len(brokers))
        yield Site(
            brokers=brokers,
            postgres=postgres,
            simulator=simulator,
            model=model,
            pool=pool,
            bus=bus,
            prefix=prefix,
        )


async def _ensured(bus: Bus, *, replicas: int) -> None:
    """Make the stream; a cluster refuses until it has elected who decides."""
    async with asyncio.timeout(30):
        while True:
            try:
                await bus.ensure_stream(StreamSettings(max_bytes=STREAM_BYTES, replicas=replicas))
                return
            except (TransientError, ConfigError):
                if replicas == 1:
                    raise
                await asyncio.sleep(0.1)


async def until(condition: Callable[[], Awaitable[bool]], *, seconds: float) -> None:
    """Wait for a condition. Raises TimeoutError after that many seconds."""
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.05)


def ours(pull: Pull) -> list[Comment]:
    """The comments that Graft left on a pull request."""
    return [c for c in pull.issue.comments if c.via_app and c.body.startswith("<!-- graft:managed-comment")]
