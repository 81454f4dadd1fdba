"""No delivery lost: what GitHub sent and nobody here has is asked for again, because GitHub does not by itself.

Its log of deliveries is compared with the rows of those that arrived. Asked for again are handled events whose
last attempt failed, and those that GitHub calls delivered although no row knows them, once the stream is empty
and its duplicate window over (a broker that lost its disk). One that was answered `ignored` leaves no row
either: its answer is looked up once and remembered.

A purged installation's deliveries are left alone, each delivery is asked for a bounded number of times with
growing pauses, and the App's rate limit keeps a reserve. How far the log was found complete is kept in memory
only: another lead reads all of it once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from actors.run import Busy
from actors.services import Services
from graft.bus import BusUnavailable
from graft.github import GitHubRefused, installations
from graft.logs import get_logger
from graft.store import deliveries, recoveries
from graft.store.recoveries import Recovery
from graft.streams import DUPLICATE_WINDOW
from graft.triggers import is_handled

log = get_logger("recovery")

# How long GitHub can send a delivery again ("Redelivering webhooks"): three days, seven on Enterprise Server.
# An hour less, so that a request is not refused on the way.
KEPT = timedelta(days=3, hours=-1)
KEPT_BY_SERVER = timedelta(days=7, hours=-1)
# Tries per delivery, after 1, 2, 4, 8 and 16 minutes.
TRIES = 5
FIRST_PAUSE_SECONDS = 60.0
# Of one sweep; what is left over is due again soon.
MOST_ASKED = 200
MOST_READ = 50_000
# App-level requests that are left to everybody else.
RESERVE = 500
# GitHub's log may show an attempt this much later than it was made.
LOG_LAG = timedelta(minutes=1)


class Attempts(msgspec.Struct, kw_only=True):
    """All attempts of one delivery, newest first: `newest` is the last, `delivered` where any was taken."""

    newest: installations.Delivery
    oldest_at: datetime
    count: int = 1
    delivered: bool = False

    @property
    def guid(self) -> str:
        return self.newest.guid


Step = Literal["nothing", "wait", "ask", "look"]


def decide(
    found: Attempts, *, status: str | None, recovery: Recovery | None, now: datetime, drained: bool
) -> Step:
    """What to do about one delivery. `status` is that of its row, if there is one; `drained` says that the
    stream is empty. `look` asks for the answer that the delivery was given."""
    if status is not None or not is_handled(found.newest.event, found.newest.action):
        return "nothing"
    if recovery is not None and (recovery.settled or recovery.tries >= TRIES):
        return "nothing"
    if recovery is not None and recovery.seconds_ago < FIRST_PAUSE_SECONDS * 2 ** (recovery.tries - 1):
        return "wait"
    if not found.delivered:
        return "ask"
    age = (now - found.newest.delivered_at).total_seconds()
    if not drained or age <= DUPLICATE_WINDOW:
        return "wait"
    return "look"


def grouped(attempts: Iterable[installations.Delivery], into: dict[str, Attempts]) -> None:
    """Add attempts, newest first, to the deliveries they belong to."""
    for one in attempts:
        found = into.get(one.guid)
        if found is None:
            found = into[one.guid] = Attempts(newest=one, oldest_at=one.delivered_at)
        else:
            found.count += 1
            found.oldest_at = min(found.oldest_at, one.delivered_at)
        found.delivered = found.delivered or 200 <= one.status_code < 300


class Recoverer:
    """Compares and asks; used by the lead's sweep and by operators."""

    def __init__(self, services: Services, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.services = services
        self.now = now
        self.complete_until: datetime | None = None
        host = urlsplit(services.settings.github_api_url).hostname
        self.kept = KEPT if host == "api.github.com" else KEPT_BY_SERVER

    async def sweep(self) -> int:
        """Ask for what is missing; how many deliveries.

        Raises Busy while the broker is away, or when the App has used up its share of requests, and the
        client's errors.
        """
        drained = await self._drained()
        now = self.now()
        since = max(now - self.kept, self.complete_until or now - self.kept)
        found = await self._read(since)
        statuses, tries, purged = await self._known(found)
        asked = looked = unsettled = 0
        oldest_open = now
        for one in sorted(found.values(), key=lambda each: each.newest.delivered_at):
            if (one.newest.installation_id or 0) in purged:
                continue
            step = decide(
                one, status=statuses.get(one.guid), recovery=tries.get(one.guid), now=now, drained=drained
            )
            if step == "look" and looked < MOST_ASKED:
                looked += 1
                step = "nothing" if await self._was_ignored(one) else "ask"
            if step == "ask" and asked < MOST_ASKED:
                asked += 1
                await self.ask(one, last=one.guid in tries and tries[one.guid].tries + 1 >= TRIES)
            if step != "nothing":
                unsettled += 1
                oldest_open = min(oldest_open, one.oldest_at)
        self.complete_until = min(oldest_open, now) - LOG_LAG
        async with self.services.pool.acquire() as connection:
            await recoveries.forget(connection, days=self.kept.days + 2)
        self.services.metrics.deliveries_missing.set(unsettled)
        if unsettled:
            log.info("deliveries missing", count=asked, queued=unsettled)
        return asked

    async def ask(self, one: Attempts, *, last: bool = False) -> None:
        """Have GitHub send a delivery again, counting the try first: a crash must not make it unbounded."""
        async with self.services.pool.acquire() as connection:
            await recoveries.note(connection, one.guid)
        self.services.metrics.recoveries.labels("last_try" if last else "asked").inc()
        try:
            await installations.redeliver(self.services.github.app, one.newest.id)
        except GitHubRefused as error:
            log.warning("not redelivered", delivery_id=one.guid, reason=error.reason)

    async def latest(self, *, limit: int) -> dict[str, Attempts]:
        """The deliveries of the newest `limit` attempts."""
        found: dict[str, Attempts] = {}
        read = 0
        async for one in installations.list_deliveries(self.services.github.app):
            grouped([one], found)
            read += 1
            if read >= limit:
                break
        return found

    async def _drained(self) -> bool:
        try:
            backlog = await self.services.bus.backlog()
        except BusUnavailable:
            raise Busy("the broker is away", reason="bus_unavailable", retry_after=5.0) from None
        return backlog.messages == 0

    async def _read(self, since: datetime) -> dict[str, Attempts]:
        found: dict[str, Attempts] = {}
        read = 0
        async for one in installations.list_deliveries(self.services.github.app):
            if one.delivered_at < since:
                break
            grouped([one], found)
            read += 1
            if read >= MOST_READ:
                log.warning("log of deliveries too long", count=read)
                break
            if read % 100 == 0:
                self._keep_reserve()
        return found

    def _keep_reserve(self) -> None:
        limits = self.services.github.app.limits
        if limits.remaining is not None and limits.remaining < RESERVE and limits.reset_in:
            raise Busy(
                "the App's rate limit is nearly used up", reason="reserve", retry_after=limits.reset_in
            )

    async def _known(
        self, found: dict[str, Attempts]
    ) -> tuple[dict[str, str], dict[str, Recovery], set[int]]:
        guids = list(found)
        ids = {one.newest.installation_id or 0 for one in found.values()}
        async with self.services.pool.acquire() as connection:
            return (
                await recoveries.known(connection, guids),
                await recoveries.tried(connection, guids),
                await deliveries.purged(connection, sorted(ids)),
            )

    async def _was_ignored(self, one: Attempts) -> bool:
        """Whether the delivery was answered `ignored`: then it is no loss that no row knows it."""
        self._keep_reserve()
        try:
            answer = await installations.read_delivery_answer(self.services.github.app, one.newest.id)
        except GitHubRefused:
            answer = None
        if answer is None or '"ignored"' not in answer:
            return False
        async with self.services.pool.acquire() as connection:
            await recoveries.note(connection, one.guid, settled=True)
        self.services.metrics.recoveries.labels("ignored").inc()
        return True
