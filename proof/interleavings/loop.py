"""An event loop that does one thing at a time, in an order that a seed decides, and whose clock costs nothing.

Whenever several things could go on, one of them is drawn; when nothing can, the clock jumps to whatever comes next.
No selector, no threads, no real time: the same seed is the same order, in microseconds instead of seconds.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Coroutine, Generator
from typing import Any, Final, TypeVar

T = TypeVar("T")

AT_ONCE: Final = 0.5


class Stuck(Exception):
    """Everything waits for something that nobody will ever do."""


class _Turn:
    """What `asyncio.sleep(0)` waits for."""

    def __await__(self) -> Generator[None, None, None]:
        yield


def _over(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class SeededLoop(asyncio.BaseEventLoop):
    """See the module. `random` decides, and may be drawn from by whoever runs in the loop."""

    # What asyncio's own loop keeps; they are not part of its public interface.
    _ready: Any
    _scheduled: Any

    def __init__(self, seed: str) -> None:
        super().__init__()
        self.random = random.Random(seed)
        self._now = 0.0

    def time(self) -> float:
        """Seconds since the loop began, by its own clock."""
        return self._now

    async def pause(self, most: float) -> None:
        """Let others go on: at once, or for up to `most` seconds."""
        random = self.random.random()
        if random < AT_ONCE:
            await _Turn()
            return
        future = self.create_future()
        self.call_later((random - AT_ONCE) / (1.0 - AT_ONCE) * most, _over, future)
        await future

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled
        if not ready:
            if not scheduled:
                raise Stuck("nothing is ready and nothing is waited for")
            timer = heapq.heappop(scheduled)
            timer._scheduled = False
            if timer.cancelled():
                return
            self._now = max(self._now, timer.when())
            ready.append(timer)
        elif len(ready) > 1:
            ready.rotate(-self.random.randrange(len(ready)))
        handle = ready.popleft()
        if not handle.cancelled():
            handle._run()

    def _process_events(self, event_list: object) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody waits in a selector."""


def run(seed: str, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in a loop of its own. Raises Stuck, and what the coroutine raises."""
    loop = SeededLoop(seed)
    loop.set_exception_handler(lambda _loop, _context: None)  # replicas that die leave tasks behind
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(work)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def here() -> SeededLoop:
    """The loop that this runs in."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SeededLoop)
    return loop
