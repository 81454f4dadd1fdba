"""From loads to the two tables: what each receiver did, and how Graft compares, with the aims and their verdicts.

Pure. A ratio is taken within a round, where both met the same machine, and the median of the rounds counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from bench.load import CONNECTIONS


class Run(Struct, frozen=True, kw_only=True):
    """One load: deliveries a second, seconds, and processor seconds for 1,000 deliveries in the receiver, in
    its store and in posting them."""

    rate: float
    p50: float
    p99: float
    receiver: float
    store: float
    posting: float


# By receiver and connections, one run a round.
Runs: TypeAlias = dict[tuple[str, int], list[Run]]

NAMES: Final = {
    "durable": "Graft, `sync_interval: always`",
    "default": "Graft, NATS' default sync",
    "pgboss": "Fastify + pg-boss, `synchronous_commit=on`",
    "pgboss-off": "Fastify + pg-boss, `synchronous_commit=off`",
    "probot": "Probot (keeps nothing)",
}

FIGURES: Final = (
    *("Receiver", "Connections", "Deliveries/s", "p50, ms", "p99, ms"),
    *("CPU s per 1,000: receiver", "its store", "posting them"),
)
RATIOS: Final = (
    *("Graft", "against", "Connections", "Rate", "p50", "p99", "CPU in all"),
    *("Aim", "Verdict"),
)


class Aim(Struct, frozen=True, kw_only=True):
    """At least so many times the peer's rate, and at most such a part of its p99."""

    rate: float
    p99: float | None = None

    def __str__(self) -> str:
        return f"rate ≥ {self.rate:g}×" + (f", p99 ≤ {self.p99:g}×" if self.p99 else "")

    def verdict(self, rate: float, p99: float) -> str:
        missed = [
            *(["rate"] if rate < self.rate else []),
            *(["p99"] if self.p99 is not None and p99 > self.p99 else []),
        ]
        return f"missed: {' and '.join(missed)}" if missed else "met"


# Issue 9, item 13. Durable against durable, then default against default: Postgres' default is durable.
PAIRS: Final[tuple[tuple[str, str, dict[int, Aim]], ...]] = (
    ("durable", "pgboss", {16: Aim(rate=3, p99=0.2), 64: Aim(rate=4, p99=0.2)}),
    ("default", "pgboss", {16: Aim(rate=10), 64: Aim(rate=10)}),
    ("default", "pgboss-off", {}),
    ("default", "probot", {16: Aim(rate=1.3), 64: Aim(rate=1.3)}),
)


def receivers(runs: Runs) -> list[list[str]]:
    """A row for every receiver and number of connections."""
    return [
        [
            name,
            str(connections),
            f"{_median(found, lambda run: run.rate):,.0f}",
            f"{_median(found, lambda run: run.p50) * 1000:.2f}",
            f"{_median(found, lambda run: run.p99) * 1000:.2f}",
            f"{_median(found, lambda run: run.receiver):.2f}",
            f"{_median(found, lambda run: run.store):.2f}" if any(run.store for run in found) else "none",
            f"{_median(found, lambda run: run.posting):.2f}",
        ]
        for key, name in NAMES.items()
        for connections in CONNECTIONS
        for found in [runs[key, connections]]
    ]


def ratios(runs: Runs) -> list[list[str]]:
    """A row for every pair and number of connections."""
    return [
        _compared(ours, theirs, connections, runs, aims.get(connections))
        for ours, theirs, aims in PAIRS
        for connections in CONNECTIONS
    ]


def _compared(ours: str, theirs: str, connections: int, runs: Runs, aim: Aim | None) -> list[str]:
    def ratio(figure: Callable[[Run], float]) -> float:
        rounds = zip(runs[ours, connections], runs[theirs, connections], strict=True)
        return statistics.median(figure(one) / figure(other) for one, other in rounds)

    rate, p99 = ratio(lambda run: run.rate), ratio(lambda run: run.p99)
    return [
        NAMES[ours].removeprefix("Graft, "),
        NAMES[theirs],
        str(connections),
        f"{rate:.2f}×",
        f"{ratio(lambda run: run.p50):.2f}×",
        f"{p99:.2f}×",
        f"{ratio(lambda run: run.receiver + run.store):.2f}×",
        str(aim) if aim else "none",
        aim.verdict(rate, p99) if aim else "",
    ]


def _median(runs: Sequence[Run], figure: Callable[[Run], float]) -> float:
    return statistics.median(figure(run) for run in runs)
