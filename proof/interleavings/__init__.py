"""Orders of events around one pull request, explored by a seeded scheduler: `python -m proof interleavings`.

The real actor of a pull request, its publisher and its supervision run in two replicas on a database and a GitHub in
memory, in an event loop that draws what goes on next. What must hold at the end is the publish protocol's promise: one
comment with the last head, each check run shown once and stored, nothing left to do, whatever was late, lost, stopped
or killed on the way.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Final

import msgspec

from bench.tables import Table, publish
from graft.metrics import Metrics
from proof.interleavings import scenario
from proof.interleavings.scenario import Outcome, play, settings

WORKERS: Final = 2
SECONDS_AIM: Final = 60.0


class Explored(msgspec.Struct, kw_only=True):
    """What an exploration has seen: digests of the distinct orders, and the outcomes that broke a promise."""

    digests: set[bytes] = msgspec.field(default_factory=set)
    played: int = 0
    steps: int = 0
    hidden: int = 0
    disturbances: Counter[str] = msgspec.field(default_factory=Counter)
    broken: list[Outcome] = msgspec.field(default_factory=list)
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def add(self, outcome: Outcome) -> None:
        self.digests.add(outcome.digest)
        self.played += 1
        self.steps += outcome.steps
        self.hidden += outcome.hidden
        self.disturbances.update(outcome.disturbances)
        if outcome.violations:
            self.broken.append(outcome)


def explore(orders: int, *, seed: int, chunk: int = 100) -> Explored:
    """Play seeds from `seed` on, a `chunk` at a time, until so many different orders were seen."""
    explored = Explored()
    began = time.monotonic()
    context = get_context("forkserver")
    context.set_forkserver_preload([scenario.__name__])
    with ProcessPoolExecutor(WORKERS, mp_context=context) as pool:
        starts = itertools.count(seed, chunk)
        waiting = [pool.submit(_chunk, next(starts), chunk) for _ in range(2 * WORKERS)]
        while len(explored.digests) < orders:
            outcomes, cpu_seconds = waiting.pop(0).result()
            for outcome in outcomes:
                explored.add(outcome)
            explored.cpu_seconds += cpu_seconds
            waiting.append(pool.submit(_chunk, next(starts), chunk))
        explored.seconds = time.monotonic() - began
        pool.shutdown(cancel_futures=True)
    return explored


def _chunk(first: int, count: int) -> tuple[list[Outcome], float]:
    """Play the orders of some seeds; their outcomes and the CPU time it took."""
    logging.getLogger("graft").setLevel(logging.CRITICAL)
    began = time.process_time()
    chosen, metrics = settings(), Metrics()
    outcomes = [play(seed, chosen, metrics) for seed in range(first, first + count)]
    return outcomes, time.process_time() - began


def table(explored: Explored, *, orders: int, seed: int) -> Table:
    """The exploration as a table of docs/reliability.md."""
    found, aim = len(explored.digests), "in under 60 s"
    broken = len(explored.broken)
    rows = [
        ["different orders", f"{found:,}", f"{orders:,}", _met(found >= orders)],
        ["seconds", f"{explored.seconds:.1f}", aim, _met(explored.seconds < SECONDS_AIM)],
        ["orders that broke a promise", str(broken), "0", _met(not broken)],
        ["orders played, the same ones counted", f"{explored.played:,}", "", ""],
        ["steps drawn", f"{explored.steps:,}", "", ""],
        *(
            [f"replicas {what}", f"{count:,}", "", ""]
            for what, count in sorted(explored.disturbances.items())
        ),
        ["check runs hidden behind a later one of their name", str(explored.hidden), "", ""],
        ["CPU milliseconds per order", f"{1e3 * explored.cpu_seconds / explored.played:.1f}", "", ""],
    ]
    return Table(
        name="interleavings",
        command=f"make interleavings ORDERS={orders} SEED={seed}",
        columns=["what", "found", "aim", "verdict"],
        rows=rows,
        conditions={
            "real": "the actor of a pull request, publisher, supervision, stores' functions",
            "in memory": "tables, GitHub, a model for one order in ten, time",
            "processes": str(WORKERS),
        },
    )


def _met(met: bool) -> str:
    return "met" if met else "missed"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="proof interleavings", description=__doc__)
    parser.add_argument("--orders", type=int, default=10_000, help="how many different orders to see")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--write", action="store_true", help="put the table into docs/reliability.md")
    options = parser.parse_args(arguments)
    explored = explore(options.orders, seed=options.seed)
    for outcome in explored.broken:
        print(f"seed {outcome.seed}: {'; '.join(outcome.violations)} ({', '.join(outcome.disturbances)})")
    publish(table(explored, orders=options.orders, seed=options.seed), write=options.write)
    return 1 if explored.broken else 0
