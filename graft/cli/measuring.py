"""Measuring the review time of past pull requests: resumable, and mindful of the rate limit that the daemon lives on.

Each pull request is stored as soon as it is measured, so a run that is interrupted goes on where it stopped. Of the
installation's hourly requests a reserve is left to the daemon; a reached limit is waited out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from graft.changes import Snapshot
from graft.database import Connection
from graft.errors import TransientError
from graft.github import GitHubRefused, Installation, RateLimited, history, pulls, snapshot
from graft.intent import assess
from graft.pilot.review_time import Calendar, Measured, PullTimes, ReviewGiven, measure
from graft.provenance import resolve
from graft.store import review_times
from graft.store.review_times import Known, RunRow

T = TypeVar("T")

RESERVE: Final = 500
TRIES: Final = 5
_EVENTS: Final = {"convert_to_draft": True, "ready_for_review": False}


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a run says of itself: `total` pull requests, `done` of them measured, and why it waits, if it does."""

    total: int
    done: int
    waiting: str = ""


class Measuring:
    """One run over one repository. `sleep` is replaced in tests."""

    def __init__(
        self,
        *,
        client: Installation,
        full_name: str,
        repository_id: int,
        connection: Connection,
        calendar: Calendar,
        tell: Callable[[Told], None] = lambda told: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        reserve: int = RESERVE,
    ) -> None:
        self.client = client
        self.full_name = full_name
        self.repository_id = repository_id
        self.connection = connection
        self.calendar = calendar
        self.tell = tell
        self.sleep = sleep
        self.reserve = reserve
        self._told = Told(total=0, done=0)

    async def run(self, row: RunRow, *, since: datetime, until: datetime) -> list[Measured]:
        """Measure what is not measured yet, and return all of the run.

        Raises TransientError when GitHub fails again and again, GitHubRefused when it will not answer; what was
        measured until then is kept.
        """
        numbers = sorted(await self._patiently(lambda: self._numbers(since, until)))
        self._say(total=len(numbers), done=len(row.done & set(numbers)))
        for number in numbers:
            if number in row.done:
                continue
            await self._leave_reserve()
            found = await self._patiently(lambda number=number: self._measure(number))  # type: ignore[misc]
            if found is not None:
                await review_times.put(self.connection, row.id, found)
            self._say(done=self._told.done + 1)
        await review_times.finish(self.connection, row.id)
        return await review_times.rows(self.connection, row.id)

    async def _numbers(self, since: datetime, until: datetime) -> list[int]:
        opened = history.pulls_opened(self.client, self.full_name, since=since, until=until)
        return [pull.number async for pull in opened]

    async def _measure(self, number: int) -> Measured | None:
        """One pull request; `None` where it is gone."""
        try:
            pull = await pulls.read_pull(self.client, self.full_name, number)
            reviews = await pulls.list_reviews(self.client, self.full_name, number)
            events = await history.timeline(self.client, self.full_name, number)
            known = await review_times.known(self.connection, self.repository_id, number)
            if known.author_kind is None or known.risk_floor is None:
                known = await self._find_out(pull, known)
        except GitHubRefused as error:
            if error.reason in ("not_found", "gone"):
                return None
            raise
        author = pull.author
        return measure(
            PullTimes(
                number=number,
                author_id=author.id if author else None,
                author_is_bot=author.is_bot if author else False,
                author_kind=known.author_kind or "unknown",
                risk=known.risk_floor,
                opened_at=pull.created_at,
                merged_at=pull.merged_at,
                merged_by_id=pull.merged_by.id if pull.merged_by else None,
                draft_now=pull.draft,
                drafts=tuple(
                    (event.at, _EVENTS[event.kind])
                    for event in events
                    if event.kind in _EVENTS and event.at is not None
                ),
                reviews=tuple(
                    ReviewGiven(user_id=r.user.id, is_bot=r.user.is_bot, submitted_at=r.submitted_at)
                    for r in reviews
                    if r.user is not None and r.submitted_at is not None
                ),
                title=pull.title,
                branch=pull.head_ref,
                body=pull.body,
                changed_lines=pull.counts.additions + pull.counts.deletions,
                changed_files=pull.counts.changed_files,
            ),
            self.calendar,
        )

    async def _find_out(self, pull: pulls.Pull, known: Known) -> Known:
        """Author kind and floor by the same rules as for a pull request that Graft has seen."""
        commits = await snapshot.list_commits(self.client, self.full_name, pull.number)
        files = await snapshot.list_files(self.client, self.full_name, pull.number)
        provenance = resolve(
            commits,
            author=pull.author,
            truncated=not commits.complete,
            branch=pull.head_ref,
            body=pull.body,
        )
        floor = assess(
            Snapshot(
                base_sha="",
                head_sha=pull.head_sha,
                files=tuple(files),
                commits=tuple(commits),
                incomplete=() if files.complete else ("too_many_files",),
            )
        )
        return Known(
            author_kind=known.author_kind or str(provenance.author_kind),
            risk_floor=known.risk_floor or str(floor.risk),
        )

    async def _leave_reserve(self) -> None:
        limits = self.client.limits
        if limits.remaining is not None and limits.remaining < self.reserve and limits.reset_in:
            await self._wait(limits.reset_in + 1, "leaving the rest of this hour's requests to the daemon")

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        tries = 0
        while True:
            try:
                return await work()
            except RateLimited as error:
                await self._wait(error.retry_after or 60.0, "GitHub's rate limit is reached")
            except TransientError as error:
                tries += 1
                if tries >= TRIES:
                    raise
                await self._wait(error.retry_after or 2.0**tries, f"GitHub failed ({error.reason})")

    async def _wait(self, seconds: float, why: str) -> None:
        self._say(waiting=f"{why}; going on in {seconds:.0f} s")
        await self.sleep(seconds)
        self._say(waiting="")

    def _say(self, **news: int | str) -> None:
        self._told = msgspec.structs.replace(self._told, **news)
        self.tell(self._told)
