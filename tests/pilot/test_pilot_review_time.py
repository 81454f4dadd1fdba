"""Review time: the start, the first review, what is left out, and working hours counted minute by minute."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graft.pilot.review_time import Calendar, Measured, PullTimes, ReviewGiven, counted, exclusions, measure

T0 = datetime(2026, 12, 1, 12, tzinfo=UTC)  # a Tuesday
HOUR = timedelta(hours=1)
AUTHOR, BEN, CAT = 1, 2, 3
ALL_DAY = Calendar()


def review(hours: float, user: int | None = BEN, *, bot: bool = False) -> ReviewGiven:
    return ReviewGiven(user_id=user, is_bot=bot, submitted_at=T0 + hours * HOUR)


def pull(**fields: object) -> PullTimes:
    facts: dict[str, object] = {
        "number": 7,
        "author_id": AUTHOR,
        "author_is_bot": False,
        "author_kind": "human",
        "risk": "logic",
        "opened_at": T0,
        "merged_at": None,
        "merged_by_id": None,
        "draft_now": False,
        **fields,
    }
    return PullTimes(**facts)  # type: ignore[arg-type]


def measured(**fields: object) -> Measured:
    return measure(pull(**fields), ALL_DAY)


def test_the_first_review_by_another_person_counts() -> None:
    row = measured(
        reviews=(review(5, CAT), review(3), review(1, AUTHOR), review(2, 9, bot=True), review(0.5, None))
    )
    assert (row.start_basis, row.started_at) == ("opened", T0)
    assert row.first_review_seconds == 3 * 3600
    assert row.merge_seconds is None
    assert row.excluded is None


def test_without_a_review_there_is_no_time() -> None:
    assert measured().first_review_seconds is None


@pytest.mark.parametrize(
    ("drafts", "draft_now", "basis", "start", "excluded"),
    [
        ((), False, "opened", 0, None),
        ((), True, "opened", 0, "draft"),
        (((2, False),), False, "ready_for_review", 2, None),
        (((2, True), (4, False)), False, "opened", 0, None),
        (((2, False), (4, True), (6, False)), False, "ready_for_review", 2, None),
        (((2, False), (4, True)), True, "ready_for_review", 2, None),
        (((6, False), (4, True), (2, False)), False, "ready_for_review", 2, None),  # in any order
        (((2, True),), True, "opened", 0, None),
    ],
)
def test_the_start(
    drafts: tuple[tuple[int, bool], ...], draft_now: bool, basis: str, start: int, excluded: str | None
) -> None:
    events = tuple((T0 + hours * HOUR, draft) for hours, draft in drafts)
    row = measured(drafts=events, draft_now=draft_now)
    assert (row.start_basis, row.started_at, row.excluded) == (basis, T0 + start * HOUR, excluded)


def test_reviews_of_a_draft_are_not_what_the_clock_measures() -> None:
    row = measured(drafts=((T0 + 4 * HOUR, False),), reviews=(review(1), review(7)))
    assert row.first_review_seconds == 3 * 3600


@pytest.mark.parametrize(
    ("fields", "excluded"),
    [
        ({"author_kind": "automation"}, "automation"),
        ({"author_is_bot": True, "author_kind": "unknown"}, "automation"),
        ({"author_is_bot": True, "author_kind": "agent"}, None),
        ({"author_is_bot": True, "author_kind": "mixed"}, None),
        ({"title": 'Revert "Add coupons"'}, "revert"),
        ({"title": "revert: add coupons"}, "revert"),
        ({"title": "Reverting is hard, explain it"}, None),
        ({"title": "Revert to the old parser"}, None),
        ({"branch": "revert-12-coupons"}, "revert"),
        ({"branch": "reverted-colours"}, None),
        ({"body": "Reverts octo/demo#12"}, "revert"),
        ({"body": "This also reverts #12, see there"}, None),
        ({"merged_at": T0 + HOUR, "merged_by_id": AUTHOR}, "self_merged"),
        ({"merged_at": T0 + HOUR, "merged_by_id": AUTHOR, "reviews": (review(0.5),)}, None),
        ({"merged_at": T0 + HOUR, "merged_by_id": AUTHOR, "reviews": (review(0.5, AUTHOR),)}, "self_merged"),
        (
            {"merged_at": T0 + HOUR, "merged_by_id": AUTHOR, "reviews": (review(0.5, 9, bot=True),)},
            "self_merged",
        ),
        ({"merged_at": T0 + HOUR, "merged_by_id": BEN}, None),
        ({"merged_at": T0 + HOUR, "merged_by_id": None, "author_id": None}, None),
        ({"author_kind": "automation", "title": 'Revert "x"', "draft_now": True}, "automation"),
    ],
)
def test_what_is_left_out(fields: dict[str, object], excluded: str | None) -> None:
    assert measured(**fields).excluded == excluded


def test_what_is_left_out_is_counted_by_rule() -> None:
    rows = [
        measured(),
        measured(draft_now=True),
        measured(draft_now=True),
        measured(author_kind="automation"),
    ]
    assert exclusions(rows) == {"automation": 1, "draft": 2}
    assert counted(rows) == rows[:1]


# ------------------------------------------------------------------------------------------------ working hours

ZURICH = Calendar(zone="Europe/Zurich", first_hour=9, last_hour=17)


def minute_by_minute(calendar: Calendar, start: datetime, end: datetime) -> int:
    assert calendar.first_hour is not None
    assert calendar.last_hour is not None
    zone, total, moment = ZoneInfo(calendar.zone), 0, start
    while moment < end:
        local = moment.astimezone(zone)
        if local.weekday() in calendar.weekdays and calendar.first_hour <= local.hour < calendar.last_hour:
            total += 60
        moment += timedelta(minutes=1)
    return total


minutes = st.integers(0, 10 * 24 * 60)


@settings(max_examples=60)
@given(
    begin=st.sampled_from(
        [
            datetime(2026, 3, 26, tzinfo=UTC),  # summer time begins on the 29th
            datetime(2026, 10, 22, tzinfo=UTC),  # and ends on the 25th
            datetime(2026, 12, 1, tzinfo=UTC),
        ]
    ),
    first=minutes,
    second=minutes,
    calendar=st.builds(
        lambda zone, hours, days: Calendar(
            zone=zone, first_hour=min(hours), last_hour=max(hours), weekdays=tuple(sorted(days))
        ),
        st.sampled_from(["UTC", "Europe/Zurich", "America/St_Johns", "Asia/Kathmandu", "Pacific/Auckland"]),
        st.lists(st.integers(0, 24), min_size=2, max_size=2, unique=True),
        st.sets(st.integers(0, 6), min_size=1),
    ),
)
@example(
    begin=datetime(2026, 3, 28, tzinfo=UTC),
    first=0,
    second=3 * 24 * 60,
    calendar=Calendar(zone="Europe/Zurich", first_hour=0, last_hour=24, weekdays=(0, 1, 2, 3, 4, 5, 6)),
)
def test_working_time_is_what_counting_minutes_gives(
    begin: datetime, first: int, second: int, calendar: Calendar
) -> None:
    start, end = (begin + timedelta(minutes=m) for m in sorted((first, second)))
    assert calendar.working_seconds(start, end) == minute_by_minute(calendar, start, end)


@pytest.mark.parametrize(
    ("start", "end", "hours"),
    [
        # Friday 16:00 to Monday 10:00 in Zurich: one hour and one hour.
        (datetime(2026, 12, 4, 15, tzinfo=UTC), datetime(2026, 12, 7, 9, tzinfo=UTC), 2),
        # Saturday to Sunday: none.
        (datetime(2026, 12, 5, 9, tzinfo=UTC), datetime(2026, 12, 6, 9, tzinfo=UTC), 0),
        # Opened at night, reviewed at 9:30.
        (datetime(2026, 12, 1, 22, tzinfo=UTC), datetime(2026, 12, 2, 8, 30, tzinfo=UTC), 0.5),
    ],
)
def test_working_hours_by_example(start: datetime, end: datetime, hours: float) -> None:
    assert ZURICH.working_seconds(start, end) == hours * 3600


def test_time_never_runs_backwards() -> None:
    assert ALL_DAY.working_seconds(T0, T0 - HOUR) == 0
    assert ZURICH.working_seconds(T0, T0 - HOUR) == 0


def test_days_begin_where_people_are() -> None:
    assert ZURICH.day_begins(date(2026, 12, 1)) == datetime(2026, 11, 30, 23, tzinfo=UTC)
    assert ZURICH.day_begins(date(2026, 7, 1)) == datetime(2026, 6, 30, 22, tzinfo=UTC)
