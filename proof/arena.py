"""Pull requests at a steady pace, and how long each of them takes from its webhook to its finished comment."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil

from graft.simulator import Installation, Pull, Repository
from graft.simulator.demo_repository import RepositoryBuilder
from graft.simulator.repository_git import GitRepository
from proof.processes import Process
from proof.site import Site

HEADS: Final = 40
LONGEST: Final = 120.0
_MAIN: Final = {f"src/part{number}.py": "MARK = 0\n" for number in range(4)}


class Stretch(msgspec.Struct, kw_only=True):
    """Samples in seconds, those that never came, and the processor time that the daemons took meanwhile."""

    seconds: list[float] = msgspec.field(default_factory=list)
    lost: int = 0
    cpu: float = 0.0
    wall: float = 0.0

    def quantile(self, percent: int) -> float:
        """In seconds. With fewer than a hundred samples the 99th is the largest."""
        ranked = sorted(self.seconds)
        return ranked[min(len(ranked) - 1, len(ranked) * percent // 100)]

    @property
    def load(self) -> float:
        """Processors that the daemons kept busy."""
        return self.cpu / self.wall if self.wall else 0.0


class Arena:
    """The installations of one run, and who was published when. Only of `daemons` is the processor time known."""

    def __init__(self, site: Site, directory: Path, daemons: Sequence[Process] = ()) -> None:
        self.site = site
        self.daemons = [psutil.Process(daemon.pid) for daemon in daemons]
        builder = RepositoryBuilder(path=directory / "demo.git")
        base = builder.commit("main", _MAIN, message="Start")
        self.heads = [
            builder.commit(f"work-{number}", {"src/part0.py": f"MARK = {number + 1}\n"}, parent=base)
            for number in range(HEADS)
        ]
        self.path = builder.path
        self.git = GitRepository(builder.path)
        self.pulls: list[Pull] = []
        self.names = 0
        self.waiting: dict[tuple[int, int], asyncio.Future[float]] = {}

    async def listen(self) -> None:
        await self.site.bus.subscribe_signals(self._hear)

    def _hear(self, name: str, payload: dict[str, Any]) -> None:
        if name != "published" or not payload.get("final"):
            return
        found = self.waiting.pop((payload["repository_id"], payload["number"]), None)
        if found is not None and not found.done():
            found.set_result(time.perf_counter())

    def repository(self, *, of: Installation | None = None) -> Repository:
        """Another repository; in an installation of its own unless one is given."""
        self.names += 1
        owner = of.account.login if of is not None else f"octo{self.names}"
        made = self.site.simulator.add_repository(f"{owner}/demo{self.names}", self.path, installation=of)
        made.git = self.git  # one git process for all of them
        return made

    async def sample(self, head: str) -> float | None:
        """Open the first pull request of an installation and wait for its finished comment; `None` when it does
        not come."""
        repository = self.repository()
        answered: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self.waiting[repository.id, repository.next_number()] = answered
        began = time.perf_counter()
        self.pulls.append(
            await self.site.simulator.open_pull(repository, head=head, head_ref="work", title="Mark a part")
        )
        try:
            return await asyncio.wait_for(answered, LONGEST) - began
        except TimeoutError:
            return None

    async def measure(self, into: Stretch, *, samples: int, pace: float) -> None:
        """Open pull requests at a steady pace, whatever becomes of those before."""
        before, began = self._cpu(), time.perf_counter()
        running = []
        for number in range(samples):
            await asyncio.sleep(max(0.0, began + number / pace - time.perf_counter()))
            running.append(asyncio.create_task(self.sample(self.heads[number % HEADS])))
        for found in await asyncio.gather(*running):
            if found is None:
                into.lost += 1
            else:
                into.seconds.append(found)
        into.cpu += self._cpu() - before
        into.wall += time.perf_counter() - began

    def _cpu(self) -> float:
        return float(sum(sum(daemon.cpu_times()[:2]) for daemon in self.daemons))
