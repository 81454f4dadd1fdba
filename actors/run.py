"""One run of an actor: the rows it was given, the lease it writes under, and what becomes of each row.

Every write proves first that the partition's lease still stands, in the same transaction. Whoever was frozen past
its lease finds out here, with nothing written.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from graft import tracing
from graft.database import Connection, Pool
from graft.errors import TransientError
from graft.github import RateLimited, WritePaceExceeded
from graft.metrics import Metrics
from graft.store import partitions, work
from graft.store.partitions import Lease
from graft.store.work import Work


class Actor(Protocol):
    """What the system needs of an actor. `run` does the rows it is given, in its own order, and reports each
    of them through `Run`; what it leaves unreported is tried again later."""

    async def run(self, run: Run) -> None: ...


class Run:
    """One run of an actor: its rows, the lease it writes under, and what became of each row."""

    def __init__(
        self,
        address: str,
        seq: int,
        rows: list[Work],
        lease: Lease,
        pool: Pool,
        metrics: Metrics | None = None,
    ) -> None:
        self.address = address
        self.kind = kind_of(address)
        self.metrics = metrics or Metrics()
        # Drawn before anything was read: what this run publishes is as new as that.
        self.seq = seq
        self.lease = lease
        self.pool = pool
        self.rows = {row.need: row for row in rows}
        self.installation_id = rows[0].installation_id
        self.doing = "starting"
        self.waits = False
        self.began = self.since = time.monotonic()
        self.head_sha: str | None = None
        self.superseded = asyncio.Event()

    def say(self, doing: str, *, waits: bool = False) -> None:
        """What the run is doing now, for operators; never anything from a pull request. While it `waits`, nothing is
        under way that would have to be finished."""
        self.end_stage()
        tracing.event(doing)
        self.doing = doing
        self.waits = waits
        self.since = time.monotonic()

    def end_stage(self) -> None:
        """Count the time of what the run was doing so far."""
        seconds = time.monotonic() - self.since
        stage = self.doing.replace(":", "").replace(" ", "_")
        self.metrics.stage_seconds.labels(self.kind, stage).observe(seconds)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset(self.rows)

    async def finish(self, *needs: str, also: Callable[[Connection], Awaitable[None]] | None = None) -> None:
        """Mark needs as done; `also` runs in the same transaction, after the lease was proven to stand.

        Raises LostPartition, with nothing written, where the partition has changed hands.
        """
        rows = [self.rows[need] for need in needs if need in self.rows]
        async with self.pool.acquire() as connection, connection.transaction():
            await partitions.guard(connection, self.lease)
            if also is not None:
                await also(connection)
            await work.finish(connection, rows)
        for row in rows:
            del self.rows[row.need]
            seconds = row.first_asked + time.monotonic() - self.began
            self.metrics.work_seconds.labels(self.kind, row.need.partition(":")[0]).observe(seconds)
            if row.need == "intent" and self.head_sha is not None:
                self.metrics.heads.inc()

    async def postpone(self, need: str, seconds: float, failure: Mapping[str, Any] | None = None) -> None:
        """Do a need later; it counts as failed only with a `failure`."""
        row = self.rows.pop(need)
        async with self.pool.acquire() as connection, connection.transaction():
            await partitions.guard(connection, self.lease)
            await work.postpone(connection, row, seconds=seconds, failure=failure)

    async def bury(self, need: str, failure: Mapping[str, Any]) -> None:
        """Give a need up for good, leaving it for the operator to see."""
        row = self.rows.pop(need)
        async with self.pool.acquire() as connection, connection.transaction():
            await partitions.guard(connection, self.lease)
            await work.bury(connection, row, failure)


class Busy(TransientError):
    """Nothing is wrong with the work, it only has to wait: another publisher is at it, or the
    pull request has moved on. Waited out, and never counted towards dead work."""


# Nothing has failed: the row is only due later.
WAITS = (RateLimited, WritePaceExceeded, Busy)


def kind_of(address: str) -> str:
    """The kind of actor that lives at an address."""
    return address.partition(".")[0]


def backoff(attempts: int) -> float:
    """Seconds until the next try: 2, 4, 8, … up to ten minutes."""
    return float(min(600, 2 ** (attempts + 1)))


def describe(error: Exception) -> dict[str, Any]:
    """An error as metadata: its class and reason code, never its text."""
    return {"error": type(error).__name__, "reason": getattr(error, "reason", None)}
