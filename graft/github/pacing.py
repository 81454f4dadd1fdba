"""Writes at a pace GitHub bears: about one a second with a burst, and a bound an hour, per installation.

GitHub allows 80 content-creating requests a minute and 500 an hour, and asks for a second between writes
(docs "Rate limits for the REST API", "Best practices"). A virtual schedule of one write a second behind a burst
of 20 keeps every minute at or under 80; a log of the last hour keeps the other bound. Permits are taken before
the publish lease, so nobody waits while holding it. The pace is this process's own: GitHub's answer remains
the judge where several replicas write for one installation.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

import msgspec

from graft.errors import TransientError

# Those who cannot be served yet come again one after the other over this long, and not all at once.
SPREAD_SECONDS = 600.0


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """`interval` seconds between writes once a burst of `burst` is used up; `hourly` at most in any hour."""

    interval: float = 1.0
    burst: int = 20
    hourly: int = 500


class WritePaceExceeded(TransientError):
    """The next write would have to wait longer than the caller is willing to; nothing was reserved."""

    def __init__(self, wait: float) -> None:
        super().__init__(
            f"this installation's writes are used up for {wait:.0f} s", reason="write_pace", retry_after=wait
        )


class WritePacer:
    """The schedule of one installation. Reservations are given in the order they are asked for."""

    def __init__(
        self,
        pace: Pace,
        *,
        now: Callable[[], float],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._pace = pace
        self._now = now
        self._sleep = sleep
        self._theoretical = self._turn = now()
        self._log: deque[float] = deque(maxlen=pace.hourly)

    async def permit(self, n: int = 1, *, max_wait: float = 30.0) -> None:
        """Wait until `n` writes may be sent. Raises `WritePaceExceeded` rather than wait beyond `max_wait`,
        and `ValueError` for an `n` that no schedule could ever grant at once."""
        if not 1 <= n <= min(self._pace.burst, self._pace.hourly):
            raise ValueError(
                f"a permit is for 1 to {min(self._pace.burst, self._pace.hourly)} writes, not {n}"
            )
        now = self._now()
        at, theoretical = self._earliest(n, now)
        if at - now > max_wait:
            raise WritePaceExceeded(self._next_turn(at) - now)
        self._theoretical = theoretical
        self._log.extend([at] * n)
        if at > now:
            await self._sleep(at - now)

    def check(self, n: int = 1, *, max_wait: float = 30.0) -> None:
        """Raises `WritePaceExceeded` where `permit` would; reserves nothing and does not wait."""
        now = self._now()
        at, _ = self._earliest(n, now)
        if at - now > max_wait:
            raise WritePaceExceeded(self._next_turn(at) - now)

    def _next_turn(self, at: float) -> float:
        """When somebody who was refused comes again: an interval after the one before, from `at` on."""
        self._turn = max(self._turn + self._pace.interval, at)
        if self._turn > at + SPREAD_SECONDS:
            self._turn = at
        return self._turn

    def _earliest(self, n: int, now: float) -> tuple[float, float]:
        """When `n` writes may go together, and the schedule after them (the generic cell rate algorithm)."""
        theoretical = max(self._theoretical, now) + n * self._pace.interval
        at = max(now, theoretical - self._pace.burst * self._pace.interval)
        over = len(self._log) + n - self._pace.hourly
        if over > 0:
            at = max(at, self._log[over - 1] + 3_600.0)
            theoretical = max(theoretical, at + n * self._pace.interval)
        return at, theoretical
