"""How long an operator waits: graftctl's questions to two replicas that know 10,000 pull requests.

Postgres holds 100 repositories with 100 pull requests each, every one with provenance, a card, a verdict and a
row of work. Each question is asked one after the other over one connection, as `graftctl` does, and timed from
the request to the decoded answer; either replica answers. `graftctl` itself, a fresh process each time, is timed
beside it: most of that is Python's start.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import uvloop

from actors.daemon import Daemon, running
from bench import filling
from bench.filling import PULLS
from graft import control, embedded
from graft.cli.asking import Asker, asking
from graft.cli.broker import Broker
from graft.cli.demo import settings_for
from graft.simulator import Simulator

REPOSITORIES = 100
LIMIT_SECONDS = 0.1


def figures(seconds: list[float]) -> tuple[float, float]:
    cuts = statistics.quantiles(seconds, n=100)
    return cuts[49], cuts[98]


async def timed(rounds: int, ask: Callable[[int], Awaitable[object]]) -> list[float]:
    seconds = []
    for number in range(rounds + 20):
        began = time.perf_counter()
        await ask(number)
        if number >= 20:
            seconds.append(time.perf_counter() - began)
    return seconds


def questions(
    asker: Asker, *, repositories: int = REPOSITORIES
) -> dict[str, Callable[[int], Awaitable[object]]]:
    """What is asked, by the command that asks it."""

    def pull(number: int) -> control.ChangeName:
        repository = 1 + number * 7 % repositories
        name = f"octo{1 + repository % 10}/repo{repository}"
        return control.ChangeName(repository=name, number=1 + number * 13 % PULLS)

    return {
        "status": lambda _: asker.ask(control.STATUS, control.Nothing()),
        "ls": lambda _: asker.ask(control.ACTORS, control.ListActors()),
        "ls repo7 --sort age": lambda _: asker.ask(
            control.ACTORS, control.ListActors(match="repo7", sort="age")
        ),
        "show": lambda number: asker.ask(control.SHOW, pull(number)),
        "why": lambda number: asker.ask(control.WHY, pull(number)),
        "dead ls": lambda _: asker.ask(control.DEAD, control.ListDead()),
        "budget": lambda _: asker.ask(control.BUDGET, control.BudgetQuestion()),
        "config": lambda _: asker.ask(control.CONFIG, control.Nothing()),
    }


async def measure(rounds: int, processes: int) -> bool:
    """Print the figures; whether every question was answered fast enough."""
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="graft-bench-")))
        nats = await stack.enter_async_context(embedded.nats_server(directory / "nats"))
        postgres = await stack.enter_async_context(embedded.postgres_server(directory / "postgres"))
        simulator = await stack.enter_async_context(Simulator())
        settings = settings_for(simulator, nats.url, postgres.url())
        replicas: list[Daemon] = [await stack.enter_async_context(running(settings)) for _ in range(2)]
        await filling.fill(replicas[0].services.pool, last=REPOSITORIES)
        while any(len(one.system.held) != 16 for one in replicas):
            await asyncio.sleep(0.1)
        broker = Broker(url=nats.url, prefix=settings.nats_prefix, origin="bench")
        print(f"graftctl, two replicas, {REPOSITORIES * PULLS:,} pull requests, {rounds} questions each")
        good = True
        async with asking(broker) as asker:
            for name, ask in questions(asker).items():
                p50, p99 = figures(await timed(rounds, ask))
                good = good and p99 < LIMIT_SECONDS
                print(f"  {name:20} p50 {p50 * 1000:6.2f} ms, p99 {p99 * 1000:6.2f} ms")
        started = await asyncio.to_thread(process_times, nats.url, processes)
        print(
            f"  {'graftctl status':20} p50 {statistics.median(started) * 1000:6.0f} ms as a process of its own"
        )
        return good


def process_times(nats_url: str, count: int) -> list[float]:
    """Seconds that `graftctl status --json` takes from its start to its end."""
    command = [str(Path(sys.executable).with_name("graftctl")), "--server", nats_url, "status", "--json"]
    seconds = []
    for _ in range(count):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ})
        seconds.append(time.perf_counter() - began)
    return seconds


def main(argv: list[str]) -> int:
    """1 when a p99 is 100 ms or more."""
    parser = argparse.ArgumentParser(prog="python -m bench control", description=__doc__)
    parser.add_argument("--rounds", type=int, default=500, help="questions of each kind")
    parser.add_argument("--processes", type=int, default=20, help="times that graftctl itself is started")
    arguments = parser.parse_args(argv)
    return 0 if uvloop.run(measure(arguments.rounds, arguments.processes)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
