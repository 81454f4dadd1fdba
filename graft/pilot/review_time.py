"""How long reviews take: what is measured, from when on, and what is left out.

- The clock starts when the pull request was opened, or, for one that was opened as a draft, when it was first
  declared ready for review.
- The first review is the earliest submitted review after the start by a person who is not the author and no
  bot. Comments on a draft are not what the clock measures.
- Left out, by the first rule that fits: `automation` (bots that are no coding agents), `draft` (never ready),
  `revert`, `self_merged` (merged by its author with no review by anybody else).
- With business hours, only the time within them counts.

A pull request without a review yet has no first-review time; it counts neither as fast nor as slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import msgspec

AUTOMATION = "automation"
DRAFT = "draft"
REVERT = "revert"
SELF_MERGED = "self_merged"

_REVERT_TITLE = re.compile(r'\s{0,10}revert\b\s{0,3}[:"“\']', re.IGNORECASE)
_REVERT_BRANCH = re.compile(r"revert-\d{1,10}-")
_REVERT_BODY = re.compile(r"reverts\s{1,5}([\w.-]{1,100}/[\w.-]{1,100})?#\d{1,10}\b", re.IGNORECASE)
_AGENTS = frozenset({"agent", "mixed"})


class Calendar(msgspec.Struct, frozen=True, kw_only=True):
    """When people work. Without hours every second counts and the zone only says where days begin."""

    zone: str = "UTC"
    first_hour: int | None = None
    last_hour: int | None = None
    weekdays: tuple[int, ...] = (0, 1, 2, 3, 4)  # Monday is 0

    def working_seconds(self, start: datetime, end: datetime) -> int:
        """Seconds from start to end, or those of them within working hours. Never negative."""
        if end <= start:
            return 0
        if self.first_hour is None or self.last_hour is None:
            return int((end - start).total_seconds())
        zone = ZoneInfo(self.zone)
        day, last = start.astimezone(zone).date(), end.astimezone(zone).date()
        seconds = 0.0
        while day <= last:
            if day.weekday() in self.weekdays:
                # In UTC, so that a change to or from summer time is counted as long as it lasts.
                opens = max(start, _instant(day, self.first_hour, zone))
                closes = min(end, _instant(day, self.last_hour, zone))
                seconds += max(0.0, (closes - opens).total_seconds())
            day += timedelta(days=1)
        return int(seconds)

    def day_begins(self, day: date) -> datetime:
        """Midnight at the beginning of a day in this zone, as an instant."""
        return _instant(day, 0, ZoneInfo(self.zone))


def _instant(day: date, hour: int, zone: ZoneInfo) -> datetime:
    whole = day + timedelta(days=hour // 24)
    return datetime.combine(whole, time(hour % 24), zone).astimezone(UTC)


class ReviewGiven(msgspec.Struct, frozen=True, kw_only=True):
    user_id: int | None
    is_bot: bool
    submitted_at: datetime


class PullTimes(msgspec.Struct, frozen=True, kw_only=True):
    """One pull request as GitHub tells its history. Title, branch and body are only looked at for signs of a
    revert, and never kept. `drafts` are the instants at which it became (true) or stopped being a draft."""

    number: int
    author_id: int | None
    author_is_bot: bool
    author_kind: str
    risk: str | None
    opened_at: datetime
    merged_at: datetime | None
    merged_by_id: int | None
    draft_now: bool
    drafts: tuple[tuple[datetime, bool], ...] = ()
    reviews: tuple[ReviewGiven, ...] = ()
    title: str = ""
    branch: str = ""
    body: str = ""
    changed_lines: int = 0
    changed_files: int = 0


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `review_time_prs`."""

    pr_number: int
    author_kind: str
    risk_class: str | None
    start_basis: str
    started_at: datetime
    first_review_at: datetime | None
    merged_at: datetime | None
    first_review_seconds: int | None
    merge_seconds: int | None
    changed_lines: int
    changed_files: int
    excluded: str | None


def measure(pull: PullTimes, calendar: Calendar) -> Measured:
    """Apply the rules to one pull request."""
    basis, started = _start(pull)
    first = _first_review(pull, started)
    return Measured(
        pr_number=pull.number,
        author_kind=pull.author_kind,
        risk_class=pull.risk,
        start_basis=basis,
        started_at=started,
        first_review_at=first,
        merged_at=pull.merged_at,
        first_review_seconds=None if first is None else calendar.working_seconds(started, first),
        merge_seconds=None if pull.merged_at is None else calendar.working_seconds(started, pull.merged_at),
        changed_lines=pull.changed_lines,
        changed_files=pull.changed_files,
        excluded=_excluded(pull),
    )


def _ready_at(pull: PullTimes) -> datetime | None:
    """When it first was ready for review; `None` if it never was."""
    for at, became_draft in sorted(pull.drafts):
        # The first event tells how it was opened: only a draft can be declared ready.
        return pull.opened_at if became_draft else at
    return None if pull.draft_now else pull.opened_at


def _start(pull: PullTimes) -> tuple[str, datetime]:
    ready = _ready_at(pull)
    if ready is None or ready == pull.opened_at:
        return "opened", pull.opened_at
    return "ready_for_review", ready


def _first_review(pull: PullTimes, started: datetime) -> datetime | None:
    times = [
        review.submitted_at
        for review in pull.reviews
        if not review.is_bot
        and review.user_id is not None
        and review.user_id != pull.author_id
        and review.submitted_at >= started
    ]
    return min(times, default=None)


def _excluded(pull: PullTimes) -> str | None:
    if pull.author_kind == AUTOMATION or (pull.author_is_bot and pull.author_kind not in _AGENTS):
        return AUTOMATION
    if _ready_at(pull) is None:
        return DRAFT
    if is_revert(title=pull.title, branch=pull.branch, body=pull.body):
        return REVERT
    others = any(not r.is_bot and r.user_id is not None and r.user_id != pull.author_id for r in pull.reviews)
    own = pull.merged_by_id is not None and pull.merged_by_id == pull.author_id
    return SELF_MERGED if pull.merged_at is not None and own and not others else None


def is_revert(*, title: str, branch: str, body: str) -> bool:
    """Whether GitHub's revert button (`Reverts owner/name#12` first in the body), or git's own message, made it."""
    return bool(
        _REVERT_TITLE.match(title[:200])
        or _REVERT_BRANCH.match(branch[:200])
        or _REVERT_BODY.match(body.lstrip()[:300])
    )


def counted(rows: Iterable[Measured]) -> list[Measured]:
    """Those that no rule leaves out."""
    return [row for row in rows if row.excluded is None]


def exclusions(rows: Sequence[Measured]) -> dict[str, int]:
    """How many each rule leaves out."""
    found: dict[str, int] = {}
    for row in rows:
        if row.excluded is not None:
            found[row.excluded] = found.get(row.excluded, 0) + 1
    return dict(sorted(found.items()))
