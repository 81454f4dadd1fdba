"""One replica: the real actor of a pull request under the real supervision, told when to go on, stop and die."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from actors.change import ChangeActor
from actors.partitioning import Partitioning
from actors.services import Services
from actors.system import POLL_SECONDS, ActorSystem
from graft.bus import Bus
from graft.config import ActorSettings
from graft.database import Pool
from graft.github import GitHub
from graft.llm import LlmClient
from graft.metrics import Metrics
from graft.store.work import Due
from graft.triggers import pull_address
from proof.interleavings import database
from proof.interleavings.github import INSTALLATION_ID, NUMBER, REPOSITORY_ID, Client, Forge
from proof.interleavings.loop import here
from proof.interleavings.memory import Memory

ADDRESS: Final = pull_address(REPOSITORY_ID, NUMBER)
PARTITION: Final = 0
_DUE: Final = Due(address=ADDRESS, partition=PARTITION, installation_id=INSTALLATION_ID, head_sha=None)
# As long as a replica may not know yet that it has lost its partition: a third of a lease, and a slow database.
UNAWARE_SECONDS: Final = 4.0


class Killed(BaseException):
    """The process is gone: nothing of it runs on, not even what would clear up."""


class _Bus:
    """Wake-ups to every replica; signals to nobody."""

    def __init__(self, wake_all: Callable[[], None]) -> None:
        self._wake_all = wake_all

    async def wake(self, _partition: int) -> None:
        self._wake_all()

    async def signal(self, _name: str, _facts: object) -> None:
        """Nothing depends on them."""


class Replica:
    """A process that runs the actor while it believes that the partition is its own."""

    def __init__(
        self,
        name: str,
        memory: Memory,
        forge: Forge,
        settings: ActorSettings,
        metrics: Metrics,
        model: Callable[[Callable[[str], Awaitable[None]]], LlmClient | None],
        told: Callable[[str, str], None],
        wake_all: Callable[[], None],
        pace: float,
    ) -> None:
        """`pace` is how many seconds a step takes at most; `told` hears of each; `wake_all` has all replicas look."""
        self.name = name
        self._loop = here()
        self.memory = memory
        self.steps = 0
        self.planned: dict[int, Callable[[], None]] = {}
        self.frozen_until = 0.0
        self.dead = self.replaced = self.doomed = self.stops = False
        self._pace = pace
        self._told = told
        bus = _Bus(wake_all)
        pool = cast(Pool, database.Pool(memory, self.step))
        services = Services(
            settings=settings,
            pool=pool,
            bus=cast(Bus, bus),
            github=cast(GitHub, Client(forge, self.step)),
            llm=model(self.step),
            metrics=metrics,
            partitioning=Partitioning(1),
        )
        self.system = ActorSystem(
            pool=pool,
            bus=cast(Any, bus),
            actors={"pull": ChangeActor(services)},
            holder=name,
            version="proof",
            partitioning=services.partitioning,
            metrics=metrics,
        )

    async def step(self, doing: str) -> None:
        """Called before each thing that others could notice: it takes its time, and here the process may end."""
        if not self.dead:
            self.steps += 1
            self._told(self.name, doing)
            await self._loop.pause(self._pace)
            if (happens := self.planned.pop(self.steps, None)) is not None:
                happens()
            if not self.memory.lock.locked():
                await self._thawed()
        if self.dead:
            raise Killed

    def wake(self) -> None:
        """Look for due work now."""
        self.system._wake.set()

    async def _thawed(self) -> None:
        """A stopped process stands still. Not within a transaction: everybody would only wait for it here."""
        while (left := self.frozen_until - self._loop.time()) > 0:
            await asyncio.sleep(left)

    async def learn(self) -> None:
        """Find out whether the partition is held: at once by whoever takes it, late by whoever has lost it."""
        if self.memory.partitions[PARTITION]["holder"] != self.name:
            await asyncio.sleep(self._loop.random.random() * UNAWARE_SECONDS)
        await self._thawed()
        row, believed = self.memory.partitions[PARTITION], self.system.held.get(PARTITION)
        now = row["epoch"] if row["holder"] == self.name else None
        if self.dead or believed == now:
            return
        if believed is not None:
            self.system._drop([PARTITION])
        if now is not None:
            self.system.held = {PARTITION: now}
            self.wake()

    async def dispatch(self) -> None:
        """Start the actor where something is due, and tell a running one of a newer head."""
        wake = self.system._wake
        while not self.dead:
            await self._thawed()
            wake.clear()
            await self.system._supersede()
            free = PARTITION in self.system.held and ADDRESS not in self.system.running
            if free and self.memory.load(ADDRESS):
                self.system._start(_DUE)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._until_due()):
                    await wake.wait()

    def _until_due(self) -> float | None:
        """Seconds until something more is due here, and then until the next of the looks that come every second."""
        if PARTITION not in self.system.held or ADDRESS in self.system.running:
            return None
        due = [row["due_at"] for row in self.memory.work.values() if row["dead_at"] is None]
        if not due:
            return None
        wait: float = (min(due) - self.memory.now).total_seconds()
        return wait + self._loop.random.random() * POLL_SECONDS
