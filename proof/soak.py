"""Soak: hours of steady load, and everything that could grow is measured: does it level off?

One replica of `graft serve` with real NATS and Postgres under a load of pull request events on ever new pull
requests. Memory, file descriptors, threads, asyncio tasks, actors and Postgres connections are sampled; after
a warm-up a straight line is fitted to each by least squares. A figure levels off when the line's growth over the
measured time is smaller than the scatter around it or than a share of its size.

    python -m proof soak --minutes 10
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import logging
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import aiohttp
import msgspec
import psutil
import uvloop

from actors.daemon import POOL_SIZE
from bench.tables import Table, publish
from graft.simulator.repository_git import GitRepository
from proof.chaos import until_quiet
from proof.ground import Ground, Replica, prepared
from proof.load import Load, Material, build

# Caches, pools and the allocator fill up first; that part of the time is not measured.
WARM_UP: Final = 0.4
SAMPLES: Final = 120
ROUND_SECONDS: Final = 10.0
ROUND_EVENTS: Final = 60
# Pull requests come as fast as they can until the caches, which are bounded, are full: a steady load takes an hour.
FILLING_SECONDS: Final = 2.0
FILLING_EVENTS: Final = 24
# Growth over the measured time below this share of the figure's mean is none.
SLACK: Final = 0.05

FIGURES: Final = {
    "memory": "MiB",
    "file descriptors but Postgres": "",
    "threads": "",
    "asyncio tasks": "",
    "actors running": "",
    "Postgres connections": "",
}
# A pool opens a connection when all others are busy, and hours may pass until the last one is needed.
BOUNDS: Final = {"Postgres connections": POOL_SIZE}


class Trend(msgspec.Struct, frozen=True, kw_only=True):
    """A straight line through samples: `mean` of them, `slope` per hour, `growth` over the measured time and
    `scatter`, the standard deviation around the line; `most` of them, and the `bound` that there is, if any."""

    mean: float
    slope: float
    growth: float
    scatter: float
    most: float
    bound: float | None = None

    @property
    def levels_off(self) -> bool:
        """Whether nothing grows: a line that falls, or rises by less than noise or slack."""
        return self.growth <= max(2 * self.scatter, SLACK * abs(self.mean), 1.0)

    @property
    def verdict(self) -> str:
        if self.levels_off:
            return "levels off"
        if self.bound is not None and self.most <= self.bound:
            return f"within its bound of {self.bound:.0f}"
        return "grows"


def trend(seconds: Sequence[float], values: Sequence[float], *, bound: float | None = None) -> Trend:
    """The line through values at times. Raises statistics.StatisticsError for fewer than two times."""
    line = statistics.linear_regression(seconds, values)
    around = [value - line.intercept - line.slope * at for at, value in zip(seconds, values, strict=True)]
    return Trend(
        mean=statistics.fmean(values),
        slope=line.slope * 3600,
        growth=line.slope * (max(seconds) - min(seconds)),
        scatter=statistics.pstdev(around),
        most=max(values),
        bound=bound,
    )


class Watch:
    """Samples one replica."""

    def __init__(self, ground: Ground, replica: Replica) -> None:
        self._ground = ground
        self._replica = replica
        self._process = psutil.Process(replica.pid)
        self._began = time.monotonic()
        self.at: list[float] = []
        self.values: dict[str, list[float]] = {name: [] for name in FIGURES}

    async def sample(self, session: aiohttp.ClientSession) -> None:
        """Take one value of each."""
        async with session.get(f"http://127.0.0.1:{self._replica.port}/metrics") as answer:
            metrics = await answer.text()
        postgres = self._ground.links["postgres"].port
        connections = sum(
            one.raddr != () and one.raddr.port == postgres for one in self._process.net_connections("tcp")
        )
        sampled = {
            "memory": self._process.memory_info().rss / 2**20,
            "file descriptors but Postgres": self._process.num_fds() - connections,
            "threads": self._process.num_threads(),
            "asyncio tasks": total(metrics, "graft_tasks"),
            "actors running": total(metrics, "graft_actors_running"),
            "Postgres connections": connections,
        }
        self.at.append(time.monotonic() - self._began)
        for name, value in sampled.items():
            self.values[name].append(float(value))

    def trends(self) -> dict[str, Trend]:
        """The trend of each figure once the warm-up is over."""
        first = int(len(self.at) * WARM_UP)
        return {
            name: trend(self.at[first:], values[first:], bound=BOUNDS.get(name))
            for name, values in self.values.items()
        }


def total(metrics: str, name: str) -> float:
    """The sum of a metric's samples in Prometheus's text form."""
    found = re.findall(rf"^{re.escape(name)}(?:{{[^}}]*}})? (\S+)$", metrics, re.MULTILINE)
    return sum(float(value) for value in found)


async def run(seconds: float) -> tuple[dict[str, Trend], int, int]:
    """Load for so long: the trends, how many deliveries were taken, and how many pull requests there were."""
    with tempfile.TemporaryDirectory(prefix="graft-soak-") as name:
        directory = Path(name)
        material = build(directory / "shop.git")
        git = GitRepository(material.path)
        try:
            async with prepared(directory, replicas=1) as ground, aiohttp.ClientSession() as session:
                watch = Watch(ground, ground.replicas[0])
                until = time.monotonic() + seconds
                filled = time.monotonic() + 0.8 * WARM_UP * seconds
                loading = asyncio.create_task(_load(ground, material, git, filled))
                while time.monotonic() < until and not loading.done():
                    await watch.sample(session)
                    await asyncio.sleep(seconds / SAMPLES)
                loading.cancel()
                await asyncio.gather(loading, return_exceptions=True)
                await until_quiet(ground)
                [row] = await ground.fetch(
                    "SELECT (SELECT count(*) FROM webhook_deliveries) AS deliveries,"
                    " (SELECT count(*) FROM changes) AS changes"
                )
                return watch.trends(), row["deliveries"], row["changes"]
        finally:
            await git.close()


async def _load(ground: Ground, material: Material, git: GitRepository, filled: float) -> None:
    """Round after round of events, each on new pull requests; the ones before are closed. Fast until `filled`."""
    for number in itertools.count():
        load = Load(ground.simulator, material, git, name=f"round{number}")
        if time.monotonic() < filled:
            await load.run(seconds=FILLING_SECONDS, events=FILLING_EVENTS)
            await until_quiet(ground)
        else:
            await load.run(seconds=ROUND_SECONDS, events=ROUND_EVENTS)
        del ground.simulator.deliveries[:-500]
        for opened in load.opened:
            if opened.pull.issue.state == "open":
                await ground.simulator.close(opened.pull)


def table(trends: dict[str, Trend], *, minutes: float, deliveries: int, changes: int) -> Table:
    """The figures with their slopes."""
    rows = [
        [
            name,
            f"{found.mean:.1f} {FIGURES[name]}".strip(),
            f"{found.slope:+.2f} {FIGURES[name]}".strip(),
            f"{found.growth:+.2f}",
            f"{found.scatter:.2f}",
            found.verdict,
        ]
        for name, found in trends.items()
    ]
    return Table(
        name="soak",
        command=f"make soak MINUTES={minutes:g}",
        columns=["figure", "mean", "slope per hour", "growth in the measured time", "scatter", "verdict"],
        rows=rows,
        conditions={
            "load": f"{deliveries} deliveries on {changes} pull requests in {minutes:g} minutes,"
            f" {ROUND_EVENTS} events in {ROUND_SECONDS:g} s once the caches were filled",
            "measured": f"one replica, the last {1 - WARM_UP:.0%} of {SAMPLES} samples",
        },
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="proof soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--write", action="store_true", help="put the table into docs/reliability.md")
    options = parser.parse_args(arguments)
    logging.getLogger("asyncpg").setLevel(logging.CRITICAL)
    trends, deliveries, changes = uvloop.run(run(options.minutes * 60))
    publish(
        table(trends, minutes=options.minutes, deliveries=deliveries, changes=changes), write=options.write
    )
    return 1 if any(found.verdict == "grows" for found in trends.values()) else 0
