"""How many requests to GitHub a head costs: counted in memory by the pull request that is being worked on, and
added to the database now and then. A killed process loses the counts of a few seconds."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, date, datetime

from graft.database import Pool
from graft.logs import get_logger
from graft.store import calls

log = get_logger("calls")

FLUSH_SECONDS = 15.0

# The address whose actor runs in this task, and in every task that it starts.
working_for: ContextVar[str] = ContextVar("working_for", default="")


class CallLedger:
    """Counts requests by (repository, UTC day)."""

    def __init__(self, pool: Pool, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.pool = pool
        self._now = now
        self._counted: Counter[tuple[int, date]] = Counter()

    def count(
        self, _route: str, _method: str, _status: int | None, _seconds: float, _installation: int | None
    ) -> None:
        """Told of every request by the GitHub client. What no pull request asked for is not counted."""
        kind, _, rest = working_for.get().partition(".")
        if kind == "pull":
            self._counted[int(rest.partition(".")[0]), self._now().date()] += 1

    async def run(self) -> None:
        """Write down the counts every few seconds, until cancelled."""
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        """Write down what was counted. A database that is away is tried again next time."""
        counted, self._counted = self._counted, Counter()
        if not counted:
            return
        try:
            async with self.pool.acquire() as connection:
                await calls.add(connection, counted)
        except Exception as error:  # noqa: BLE001 - a count is not worth an actor's work
            self._counted += counted
            log.warning("calls not counted", error=type(error).__name__)
