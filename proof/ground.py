"""Everything a trial needs, running: NATS, Postgres, a simulated GitHub, a model, and replicas of `graft serve`.

NATS syncs every message, Postgres is durable, and between the replicas and everything else are links that can
be cut. Servers keep port and data when they are killed; a replica that dies is started again, as a process
supervisor would.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import asyncpg

from graft import database, embedded
from graft.bus import Bus
from graft.database import Pool
from graft.simulator import Simulator
from graft.streams import StreamSettings
from proof.links import Link, tcp, unix
from proof.nursery import Forked, start
from proof.stub_model import StubModel

PREFIX: Final = "proof"
STREAM_BYTES: Final = 64 * 1024 * 1024
_AWAY = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)


class Unsettled(Exception):
    """Something did not come about in its time."""


class Replica:
    """One `graft serve`, started again whenever it was killed. `ready` is set while it serves and is not frozen."""

    def __init__(self, variables: dict[str, str], log: Path | None = None) -> None:
        self._variables = variables
        self._log = log
        self._process: Forked | None = None
        self.ready = asyncio.Event()
        self.frozen = False

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def port(self) -> int:
        assert self._process is not None
        return int(self._process.url.rpartition(":")[2])

    async def start(self) -> None:
        """Start it, again and again while what it needs is away."""
        while True:
            try:
                self._process = await start(self._variables, log=self._log)
            except RuntimeError:  # it said why and ended
                await asyncio.sleep(0.2)
                continue
            self.ready.set()
            return

    def freeze(self) -> None:
        assert self._process is not None
        self.ready.clear()
        self.frozen = True
        self._process.freeze()

    def thaw(self) -> None:
        assert self._process is not None
        if self.frozen:
            self._process.thaw()
            self.frozen = False
            self.ready.set()

    async def kill(self) -> None:
        self.ready.clear()
        self.frozen = False
        if self._process is not None:
            await self._process.kill()

    async def terminate(self) -> int:
        """End it in order; its exit code."""
        assert self._process is not None
        self.ready.clear()
        return await self._process.terminate()


class Ground:
    """What runs. Made by `prepared`."""

    def __init__(
        self,
        *,
        nats: embedded.NatsServer,
        postgres: embedded.PostgresServer,
        simulator: Simulator,
        model: StubModel,
        links: dict[str, Link],
        replicas: list[Replica],
        pool: Pool,
        bus: Bus,
    ) -> None:
        self.nats = nats
        self.postgres = postgres
        self.simulator = simulator
        self.model = model
        self.links = links
        self.replicas = replicas
        self.pool = pool
        self.bus = bus
        self._turn = itertools.count()

    def choose(self) -> Replica:
        """The replica that takes the next connection, as a load balancer would choose it. Raises OSError when
        none serves."""
        serving = [replica for replica in self.replicas if replica.ready.is_set()]
        if not serving:
            raise ConnectionRefusedError
        return serving[next(self._turn) % len(serving)]

    async def fetch(self, query: str, *arguments: Any) -> list[Any]:
        """Rows of the database, asked for until it is there."""
        while True:
            try:
                return list(await self.pool.fetch(query, *arguments))
            except _AWAY:
                await asyncio.sleep(0.05)

    async def until(
        self, what: str, condition: Callable[[], Awaitable[bool]], *, seconds: float, every: float = 0.05
    ) -> None:
        """Wait for a condition. Raises Unsettled naming it after that many seconds."""
        try:
            async with asyncio.timeout(seconds):
                while not await condition():
                    await asyncio.sleep(every)
        except TimeoutError:
            raise Unsettled(f"{what}, not within {seconds:.0f} s") from None


@asynccontextmanager
async def prepared(
    directory: Path, *, replicas: int = 2, logs: Path | None = None, **variables: str
) -> AsyncIterator[Ground]:
    """Start everything; at the end everything is gone again. With `logs`, what each replica says is kept there."""
    async with AsyncExitStack() as stack:
        nats = await stack.enter_async_context(embedded.nats_server(directory / "nats"))
        postgres = await stack.enter_async_context(embedded.postgres_server(directory / "postgres"))
        simulator = await stack.enter_async_context(Simulator())
        model = await stack.enter_async_context(StubModel())
        pool = await database.open_pool(postgres.url(), size=4)
        stack.push_async_callback(_terminate, pool)
        async with pool.acquire() as connection:
            await database.migrate(connection)
        bus = await Bus.connect(nats.url, prefix=PREFIX, role="proof")
        stack.push_async_callback(bus.close)
        await bus.ensure_stream(StreamSettings(max_bytes=STREAM_BYTES))
        github_port = int(simulator.base_url.rpartition(":")[2])
        socket = f"{postgres.url().partition('host=')[2]}/.s.PGSQL.5432"
        ground: Ground
        links = {
            "nats": Link(tcp("127.0.0.1", lambda: nats.port)),
            "postgres": Link(unix(socket)),
            "github": Link(tcp("127.0.0.1", lambda: github_port)),
            "model": Link(tcp("127.0.0.1", lambda: model.port)),
            "webhooks": Link(tcp("127.0.0.1", lambda: ground.choose().port)),
        }
        for link in links.values():
            await link.start()
            stack.push_async_callback(link.stop)
        # Links to further pages have to lead through the proxy, too.
        simulator.server.urls.web = simulator.server.urls.api = f"http://127.0.0.1:{links['github'].port}"
        environment = _environment(simulator, links) | variables
        ground = Ground(
            nats=nats,
            postgres=postgres,
            simulator=simulator,
            model=model,
            links=links,
            replicas=[
                Replica(environment, logs / f"replica-{number}.log" if logs else None)
                for number in range(replicas)
            ],
            pool=pool,
            bus=bus,
        )
        for replica in ground.replicas:
            stack.push_async_callback(replica.kill)
        await asyncio.gather(*(replica.start() for replica in ground.replicas))
        simulator.app.webhook_url = f"http://127.0.0.1:{links['webhooks'].port}/webhooks/github"
        yield ground


async def _terminate(pool: Pool) -> None:
    pool.terminate()


def _environment(simulator: Simulator, links: dict[str, Link]) -> dict[str, str]:
    return {
        "DATABASE_URL": f"postgresql://postgres@127.0.0.1:{links['postgres'].port}/postgres?sslmode=disable",
        "NATS_URL": f"nats://127.0.0.1:{links['nats'].port}",
        "GRAFT_NATS_PREFIX": PREFIX,
        "GITHUB_API_URL": f"http://127.0.0.1:{links['github'].port}",
        "GITHUB_APP_ID": str(simulator.app.id),
        "GITHUB_APP_SLUG": simulator.app.slug,
        "GITHUB_APP_PRIVATE_KEY": simulator.private_key,
        "GITHUB_WEBHOOK_SECRET": simulator.app.webhook_secret,
        "ANTHROPIC_API_KEY": "a key for the stub",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{links['model'].port}",
        "GRAFT_SETTLE_SECONDS": "0",
        "GRAFT_STREAM_MAX_BYTES": str(STREAM_BYTES),
        "GRAFT_INTENT_DAILY_BUDGET_USD": "1000",
    }
