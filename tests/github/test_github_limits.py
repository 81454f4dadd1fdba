"""Rate limits read from headers of any form, paced writes, and the memory of ETags."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft.github import limits
from graft.github.errors import Call, RateLimited
from graft.github.etags import EtagCache, Kept
from graft.github.limits import Gate, RateInfo
from graft.github.pacing import SPREAD_SECONDS, Pace, WritePaceExceeded, WritePacer

DATE = "Tue, 01 Dec 2026 12:00:00 GMT"
AT = 1_796_126_400.0
CALL = Call(method="GET", route="x")


class Time:
    def __init__(self) -> None:
        self.now = 1_000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_the_date_used_here_is_the_one_meant() -> None:
    assert limits.http_date(DATE) == AT


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("30", 30.0),
        (" 30 ", 30.0),
        ("-5", -5.0),
        ("0", 0.0),
        ("999999999999999", 999999999999999.0),
        ("9" * 400, None),
        ("1.5", None),
        ("+5", None),
        ("1_0", None),
        ("\u0663\u0660", None),
        ("", None),
        ("soon", None),
        ("Tue, 01 Dec 2026 12:01:00 GMT", 60.0),
        ("Tue, 01 Dec 2026 11:59:00 GMT", -60.0),
        ("Tue, 99 Dec 99999 12:01:00 GMT", None),
        ("x" * 10_000, None),
    ],
)
def test_retry_after_in_every_form(value: str, seconds: float | None) -> None:
    assert limits.read({"date": DATE, "retry-after": value}, wall=0).retry_after == seconds


def test_a_reset_is_relative_to_the_answers_date() -> None:
    headers = {"date": DATE, "x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(AT) + 90)}
    assert limits.read(headers, wall=5.0) == RateInfo(remaining=0, reset_in=90.0)


def test_without_a_date_our_own_clock_has_to_do() -> None:
    headers = {"x-ratelimit-reset": "100", "retry-after": "Tue, 01 Dec 2026 12:00:30 GMT"}
    assert limits.read(headers, wall=40.0) == RateInfo(reset_in=60.0, retry_after=AT + 30 - 40)


def test_the_limit_of_another_resource_is_not_ours() -> None:
    headers = {"x-ratelimit-resource": "search", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "5"}
    assert limits.read(headers, wall=0.0) == RateInfo()


@given(
    st.dictionaries(
        st.sampled_from(["date", "retry-after", "x-ratelimit-remaining", "x-ratelimit-reset"]),
        st.text(max_size=40),
    ),
    st.sampled_from([200, 403, 429, 500]),
    st.integers(1, 1_000_000),
)
def test_whatever_the_headers_say_a_wait_is_bounded(
    headers: dict[str, str], status: int, strikes: int
) -> None:
    rate = limits.read(headers, wall=AT)
    assert limits.MIN_WAIT <= limits.wait_for(rate, strikes=strikes) <= limits.MAX_WAIT
    retry_after = limits.bounded_retry_after(rate)
    assert retry_after is None or limits.MIN_WAIT <= retry_after <= limits.MAX_WAIT
    if status in (200, 500):
        assert limits.kind_of(status, rate, "rate limit") is None


@pytest.mark.parametrize(
    ("status", "rate", "message", "kind"),
    [
        (403, RateInfo(remaining=0), "", "primary_rate_limit"),
        (429, RateInfo(remaining=0), "", "primary_rate_limit"),
        (403, RateInfo(remaining=0), "you have exceeded a secondary rate limit", "secondary_rate_limit"),
        (403, RateInfo(remaining=50), "you have exceeded a secondary rate limit", "secondary_rate_limit"),
        (403, RateInfo(), "triggered an abuse detection mechanism", "secondary_rate_limit"),
        (403, RateInfo(remaining=50, retry_after=1), "", "secondary_rate_limit"),
        (403, RateInfo(remaining=50), "api rate limit exceeded", "secondary_rate_limit"),
        (429, RateInfo(), "", "secondary_rate_limit"),
        (403, RateInfo(remaining=50), "resource not accessible by integration", None),
        (403, RateInfo(), "", None),
        (404, RateInfo(remaining=0), "rate limit", None),
        (503, RateInfo(remaining=0, retry_after=3), "", None),
    ],
)
def test_which_answers_are_limits(status: int, rate: RateInfo, message: str, kind: str | None) -> None:
    assert limits.kind_of(status, rate, message) == kind


@pytest.mark.parametrize(
    ("rate", "strikes", "wait"),
    [
        (RateInfo(retry_after=30, remaining=0, reset_in=500), 1, 30),
        (RateInfo(retry_after=0.2), 1, 1),
        (RateInfo(retry_after=10**12), 1, 3_660),
        (RateInfo(retry_after=-5, remaining=0, reset_in=500), 1, 501),
        (RateInfo(retry_after=0), 1, 60),
        (RateInfo(remaining=0, reset_in=-3), 1, 60),
        (RateInfo(remaining=0, reset_in=10**9), 1, 3_660),
        (RateInfo(remaining=5, reset_in=500), 2, 120),
        (RateInfo(), 1, 60),
        (RateInfo(), 5, 960),
        (RateInfo(), 5_000, 960),
    ],
)
def test_how_long_to_wait(rate: RateInfo, strikes: int, wait: float) -> None:
    assert limits.wait_for(rate, strikes=strikes) == wait


# --- the gate --------------------------------------------------------------------------------------------


def test_answers_to_requests_in_flight_together_count_as_one_refusal() -> None:
    time = Time()
    gate = Gate(time)
    assert [gate.refused("secondary_rate_limit", RateInfo()) for _ in range(5)] == [60.0] * 5
    time.now += 61
    assert gate.refused("secondary_rate_limit", RateInfo()) == 120.0


def test_an_earlier_end_never_opens_the_gate() -> None:
    gate = Gate(Time())
    gate.refused("primary_rate_limit", RateInfo(retry_after=500))
    gate.refused("secondary_rate_limit", RateInfo(retry_after=5))
    gate.passed(RateInfo(remaining=100))
    assert gate.state().limited_for == 500
    with pytest.raises(RateLimited):
        gate.check(CALL)


def test_a_new_gate_is_open_and_knows_nothing() -> None:
    gate = Gate(Time())
    gate.check(CALL)
    assert gate.state() == limits.GateState(limited_for=0, remaining=None, reset_in=None)


# --- the pace --------------------------------------------------------------------------------------------


async def test_a_burst_passes_at_once_and_then_one_a_second() -> None:
    time = Time()
    pacer = WritePacer(Pace(), now=time, sleep=time.sleep)
    for _ in range(20):
        await pacer.permit(1)
    assert time.slept == []
    for _ in range(3):
        await pacer.permit(1)
    assert time.slept == [1.0, 1.0, 1.0]


async def test_a_wait_longer_than_wanted_reserves_nothing() -> None:
    time = Time()
    pacer = WritePacer(Pace(burst=2), now=time, sleep=time.sleep)
    await pacer.permit(2)
    with pytest.raises(WritePaceExceeded) as caught:
        await pacer.permit(2, max_wait=1.0)
    assert caught.value.retry_after == pytest.approx(2.0)
    await pacer.permit(1, max_wait=1.0)
    assert time.slept == [1.0]


async def test_the_hour_has_a_bound_of_its_own() -> None:
    time = Time()
    pacer = WritePacer(Pace(interval=0.0, burst=10, hourly=10), now=time, sleep=time.sleep)
    await pacer.permit(6)
    time.now += 100
    await pacer.permit(4)
    with pytest.raises(WritePaceExceeded) as caught:
        await pacer.permit(5)
    assert caught.value.retry_after == pytest.approx(3_500)
    time.now += 3_500
    await pacer.permit(6)


async def test_those_who_are_refused_come_again_one_after_the_other() -> None:
    time = Time()
    pacer = WritePacer(Pace(burst=2), now=time, sleep=time.sleep)
    for _ in range(17):
        await pacer.permit(2)
    time.now = 1_000.0
    with pytest.raises(WritePaceExceeded) as first:
        pacer.check(2)
    with pytest.raises(WritePaceExceeded) as second:
        await pacer.permit(2)
    # The first one when there is room, the next one an interval later.
    assert (first.value.retry_after, second.value.retry_after) == (34.0, 35.0)
    time.now += 34.0
    pacer.check(2)  # there is room now, and looking for it took none
    await pacer.permit(2, max_wait=0.0)


async def test_however_many_are_refused_nobody_is_sent_away_for_long() -> None:
    time = Time()
    pacer = WritePacer(Pace(burst=1), now=time, sleep=time.sleep)
    await pacer.permit(1)
    waits = []
    for _ in range(3_000):
        with pytest.raises(WritePaceExceeded) as caught:
            pacer.check(1, max_wait=0.0)
        waits.append(caught.value.retry_after or 0.0)
    assert max(waits) <= SPREAD_SECONDS + 1
    assert len(set(waits)) > SPREAD_SECONDS / 2


@pytest.mark.parametrize("n", [0, -1, 21])
async def test_a_permit_that_could_never_be_given_is_a_mistake(n: int) -> None:
    with pytest.raises(ValueError, match="1 to 20"):
        await WritePacer(Pace(), now=Time()).permit(n)


@given(st.lists(st.tuples(st.integers(1, 5), st.floats(0, 30)), min_size=1, max_size=120))
async def test_no_minute_sees_more_than_eighty_writes_and_no_hour_more_than_its_bound(
    asks: list[tuple[int, float]],
) -> None:
    time = Time()
    pacer = WritePacer(Pace(hourly=100), now=time, sleep=time.sleep)
    sent: list[float] = []
    for n, pause in asks:
        time.now += pause
        await pacer.permit(n, max_wait=1e9)
        sent += [time.now] * n
    for at in sent:
        assert sum(at <= other < at + 60 for other in sent) <= 80
        assert sum(at <= other < at + 3_599.99 for other in sent) <= 100


# --- ETags -----------------------------------------------------------------------------------------------


def _kept(size: int = 10) -> Kept:
    return Kept(etag='"e"', body=b"x" * size, next_url=None)


def test_the_least_recently_used_answer_goes_first() -> None:
    cache = EtagCache(max_entries=2)
    cache.put((1, "a", ""), _kept())
    cache.put((1, "b", ""), _kept())
    assert cache.get((1, "a", "")) is not None
    cache.put((1, "c", ""), _kept())
    assert cache.get((1, "b", "")) is None
    assert cache.get((1, "a", "")) is not None


def test_a_generation_is_forgotten_whole() -> None:
    cache = EtagCache()
    cache.put((1, "a", ""), _kept())
    cache.put((2, "a", ""), _kept(7))
    cache.forget(1)
    assert (len(cache), cache.size) == (1, 7)


@pytest.mark.parametrize("kept", [_kept(101), Kept(etag="e" * 300, body=b"", next_url=None)])
def test_what_is_too_large_is_not_kept_and_leaves_no_older_answer(kept: Kept) -> None:
    cache = EtagCache(max_bytes=1_600)
    cache.put((1, "a", ""), _kept())
    cache.put((1, "a", ""), kept)
    assert (len(cache), cache.size) == (0, 0)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(0, 100)), max_size=200))
def test_the_memory_is_bounded_and_counts_right(puts: list[tuple[int, int, int]]) -> None:
    cache = EtagCache(max_entries=10, max_bytes=800)
    for generation, url, size in puts:
        if size == 100:
            cache.forget(generation)
        cache.put((generation, str(url), ""), _kept(size))
        held: list[Any] = list(cache._entries.values())
        assert cache.size == sum(len(kept.body) for kept in held)
        assert len(cache) <= 10
        assert cache.size <= 800
