"""Many changes: what 100,000 known pull requests and 10,000 live actors cost, and how it grows.

Two replicas, a broker and a database, at 1,000, 10,000 and 100,000 pull requests; a tenth of the largest number has
live actors, that is work that waits. Measured at each size: the memory that stays when all those actors have run
once and are idle again; how long it takes from an ask to the first step of its actor, over all of asking, waking,
choosing and loading; and how long an operator waits for `graftctl ls` and `graftctl show`, from the question to the
decoded answer. Both replicas and the asker share one process and one core.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import uvloop

from actors.daemon import Daemon, running
from actors.run import Actor, Run
from bench import filling, growth
from bench.control import figures, questions, timed
from bench.growth import Growth, Line
from bench.tables import ROOT, Table, publish
from graft import embedded
from graft.cli.asking import asking
from graft.cli.broker import Broker
from graft.cli.demo import settings_for
from graft.database import Pool
from graft.simulator import Simulator
from graft.triggers import pull_address

SIZES = (1_000, 10_000, 100_000)
LIVE = 10_000
WARM_UP = 500
IDLE_BYTES, WAKE_MS, ASK_MS = 2_048, 20.0, 100.0
PLOT = ROOT / "docs" / "many.svg"


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What was found at one size: bytes, and milliseconds at the 99th percentile."""

    changes: int
    live: int
    idle_bytes: float
    wake_ms: float
    ls_ms: float
    show_ms: float
    row_bytes: float


class _Probe:
    """An actor that says when it began, and does its work."""

    def __init__(self, actor: Actor, heard: asyncio.Queue[tuple[str, float]]) -> None:
        self.actor = actor
        self.heard = heard

    async def run(self, run: Run) -> None:
        self.heard.put_nowait((run.address, time.perf_counter()))
        await self.actor.run(run)


async def measure(sizes: Sequence[int], *, live: int, rounds: int) -> list[Measured]:
    """Fill the database step by step and measure at each size."""
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="graft-bench-")))
        nats = await stack.enter_async_context(embedded.nats_server(directory / "nats"))
        postgres = await stack.enter_async_context(embedded.postgres_server(directory / "postgres"))
        simulator = await stack.enter_async_context(Simulator())
        settings = settings_for(simulator, nats.url, postgres.url(), GRAFT_LOG_LEVEL="warning")
        replicas: list[Daemon] = [await stack.enter_async_context(running(settings)) for _ in range(2)]
        while any(len(one.system.held) != 16 for one in replicas):
            await asyncio.sleep(0.1)
        asker = await stack.enter_async_context(
            asking(Broker(url=nats.url, prefix=settings.nats_prefix, origin="bench"))
        )
        pool = replicas[0].services.pool
        empty = await _size(pool)
        found = []
        filled = 0
        for size in sizes:
            repositories = size // filling.PULLS
            await filling.fill(pool, first=filled + 1, last=repositories, live=live // filling.PULLS)
            filled = repositories
            alive = min(size, live)
            idle = await _idle(pool, replicas, alive)
            wake = await _wake_ups(replicas, alive, rounds)
            asked = questions(asker, repositories=repositories)
            found.append(
                Measured(
                    changes=size,
                    live=alive,
                    idle_bytes=idle,
                    wake_ms=figures(wake)[1] * 1000,
                    ls_ms=figures(await timed(rounds, asked["ls"]))[1] * 1000,
                    show_ms=figures(await timed(rounds, asked["show"]))[1] * 1000,
                    row_bytes=(await _size(pool) - empty) / size,
                )
            )
        return found


async def _size(pool: Pool) -> int:
    """Bytes of the database."""
    found: int = await pool.fetchval("SELECT pg_database_size(current_database())")
    return found


async def _idle(pool: Pool, replicas: Sequence[Daemon], live: int) -> float:
    """Bytes that stay in the process for each actor that has run and is idle again."""
    await _all_run(pool, replicas, min(WARM_UP, live))
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        await _all_run(pool, replicas, live)
        gc.collect()
        return max(0.0, (tracemalloc.get_traced_memory()[0] - before) / live)
    finally:
        tracemalloc.stop()


async def _all_run(pool: Pool, replicas: Sequence[Daemon], live: int) -> None:
    """Have the first `live` actors do what they have to do, and have something to do later again."""
    addresses = [pull_address(1 + n // filling.PULLS, 1 + n % filling.PULLS) for n in range(live)]
    asks = [
        replicas[0].services.ask(
            address,
            "reactions",
            installation_id=1 + int(address.split(".")[1]) % filling.INSTALLATIONS,
            repository_id=int(address.split(".")[1]),
        )
        for address in addresses
    ]
    await replicas[0].services.ask_now(*asks)
    query = "SELECT count(*) FROM work WHERE need = 'reactions' AND due_at <= now()"
    while await pool.fetchval(query) or any(one.system.running for one in replicas):
        await asyncio.sleep(0.05)
    await replicas[0].services.ask_now(*(msgspec.structs.replace(ask, delay=86_400.0) for ask in asks))


async def _wake_ups(replicas: Sequence[Daemon], live: int, rounds: int) -> list[float]:
    """Seconds from an ask to the first step of its actor, one after the other."""
    heard: asyncio.Queue[tuple[str, float]] = asyncio.Queue()
    before = [replica.system.actors for replica in replicas]
    for replica in replicas:
        actors = replica.system.actors
        replica.system.actors = {**actors, "pull": _Probe(actors["pull"], heard)}

    async def wake(number: int) -> float:
        number = number * 7919 % live
        repository = 1 + number // filling.PULLS
        ask = replicas[number % len(replicas)].services.ask(
            pull_address(repository, 1 + number % filling.PULLS),
            "reactions",
            installation_id=1 + repository % filling.INSTALLATIONS,
            repository_id=repository,
        )
        began = time.perf_counter()
        await replicas[0].services.ask_now(ask)
        while True:
            address, at = await heard.get()
            if address == ask.address:
                return at - began

    try:
        for number in range(20):
            await wake(number)
        return [await wake(20 + number) for number in range(rounds)]
    finally:
        for replica, actors in zip(replicas, before, strict=True):
            replica.system.actors = actors


def table(found: Sequence[Measured], command: str, rounds: int) -> Table:
    """The figures side by side, the largest size against the aims."""
    last = found[-1]
    rows = [
        ["live actors", *(f"{one.live:,}" for one in found), "", ""],
        _row(
            "memory of an idle actor",
            [f"{one.idle_bytes:,.0f} B" for one in found],
            "2 KB",
            last.idle_bytes <= IDLE_BYTES,
        ),
        _row(
            "ask to its actor's first step, p99",
            [f"{one.wake_ms:.1f} ms" for one in found],
            "20 ms",
            last.wake_ms <= WAKE_MS,
        ),
        _row("`graftctl ls`, p99", [f"{one.ls_ms:.1f} ms" for one in found], "100 ms", last.ls_ms <= ASK_MS),
        _row(
            "`graftctl show`, p99",
            [f"{one.show_ms:.1f} ms" for one in found],
            "100 ms",
            last.show_ms <= ASK_MS,
        ),
        ["database, per known change", *(f"{one.row_bytes / 1000:.1f} kB" for one in found), "", ""],
    ]
    return Table(
        name="many",
        command=command,
        columns=["known changes", *(f"{one.changes:,}" for one in found), "aim", "verdict"],
        rows=rows,
        conditions={
            "replicas": "2, in one process with the asker",
            "samples": f"{rounds} of each, one after the other",
            "memory": "Python's, by tracemalloc, after every live actor has run once",
            "in the database": "a card, 5 commits, 3 check runs, 3 deliveries, 2 model calls for each change",
        },
    )


def _row(name: str, values: list[str], aim: str, good: bool) -> list[str]:
    return [name, *values, aim, "met" if good else "missed"]


def plot(found: Sequence[Measured]) -> str:
    """The growth of the figures as an SVG."""
    return growth.svg(
        Growth(
            title="Milliseconds at the 99th percentile",
            sizes=[one.changes for one in found],
            lines=[
                Line(name="graftctl ls", values=[one.ls_ms for one in found]),
                Line(name="wake-up", values=[one.wake_ms for one in found]),
                Line(name="graftctl show", values=[one.show_ms for one in found]),
            ],
            across="known changes",
            limits=[(ASK_MS, "aim, graftctl: 100"), (WAKE_MS, "aim, wake-up: 20")],
        )
    )


def main(argv: list[str]) -> int:
    """1 when an aim is missed at the largest size."""
    parser = argparse.ArgumentParser(prog="python -m bench many", description=__doc__)
    parser.add_argument(
        "--sizes", default=",".join(map(str, SIZES)), help="known changes, multiples of 100, ascending"
    )
    parser.add_argument("--live", type=int, default=LIVE, help="actors with work (default: 10,000)")
    parser.add_argument("--rounds", type=int, default=500, help="questions and wake-ups at each size")
    parser.add_argument("--write", action="store_true", help="put table and plot into docs/")
    given = parser.parse_args(argv)
    sizes = [int(size) for size in given.sizes.split(",")]
    if any(size <= 0 or size % filling.PULLS for size in sizes) or sizes != sorted(sizes):
        parser.error(f"--sizes: each has to be a multiple of {filling.PULLS}, the smallest first")
    found = uvloop.run(measure(sizes, live=given.live, rounds=given.rounds))
    command = f"python -m bench many --sizes {given.sizes} --live {given.live} --rounds {given.rounds}"
    made = table(found, command, given.rounds)
    publish(made, write=given.write)
    if given.write:
        PLOT.write_text(plot(found))
    return 1 if any(row[-1] == "missed" for row in made.rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
