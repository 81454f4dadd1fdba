"""GitHub's rate limits, read from one response and remembered per installation.

The order of GitHub's documentation holds: `retry-after` first, then `x-ratelimit-reset` when nothing remains,
then one minute, doubled at each further refusal. A reset is an instant of GitHub's clock, so it is taken
relative to the response's own `Date`. Whatever a header says, a wait is between one second and about an hour.
Source: docs "Rate limits for the REST API", "Best practices for using the REST API".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Literal

import msgspec

from .errors import Call, RateLimited

MIN_WAIT = 1.0
MAX_WAIT = 3_660.0
_FIRST_BACKOFF = 60.0
_MAX_BACKOFF = 960.0
_INTEGER = re.compile(r"-?[0-9]{1,15}", re.ASCII)

LimitKind = Literal["primary_rate_limit", "secondary_rate_limit"]


class RateInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What one response said. Durations are seconds from the response; `None` where it said nothing usable."""

    remaining: int | None = None
    reset_in: float | None = None
    retry_after: float | None = None


def http_date(value: str | None) -> float | None:
    """An HTTP date as seconds since the epoch; `None` for anything else."""
    if not value or len(value) > 100:
        return None
    try:
        return parsedate_to_datetime(value).timestamp()
    except (TypeError, ValueError, IndexError, OverflowError, OSError):
        return None


def read(headers: Mapping[str, str], *, wall: float) -> RateInfo:
    """Read the rate-limit headers (keys in lower case). `wall` stands in for a missing `Date`. Never raises."""
    sent_at = http_date(headers.get("date"))
    if sent_at is None:
        sent_at = wall
    core = headers.get("x-ratelimit-resource", "core") == "core"
    remaining = _integer(headers.get("x-ratelimit-remaining")) if core else None
    reset = _integer(headers.get("x-ratelimit-reset")) if core else None
    return RateInfo(
        remaining=remaining,
        reset_in=None if reset is None else reset - sent_at,
        retry_after=_retry_after(headers.get("retry-after"), sent_at),
    )


def kind_of(status: int, rate: RateInfo, message: str) -> LimitKind | None:
    """Whether an answer is a rate limit, and which. `message` is the lower-cased text of the error body."""
    if status not in (403, 429):
        return None
    if "secondary rate limit" in message or "abuse detection" in message:
        return "secondary_rate_limit"
    if rate.remaining is not None and rate.remaining <= 0:
        return "primary_rate_limit"
    if status == 429 or rate.retry_after is not None or "rate limit" in message:
        return "secondary_rate_limit"
    return None


def wait_for(rate: RateInfo, *, strikes: int) -> float:
    """How long to leave GitHub alone after the `strikes`-th refusal in a row (the first is 1)."""
    if rate.retry_after is not None and rate.retry_after > 0:
        wait = rate.retry_after
    elif (
        rate.remaining is not None and rate.remaining <= 0 and rate.reset_in is not None and rate.reset_in > 0
    ):
        wait = rate.reset_in + 1
    else:
        wait = min(_FIRST_BACKOFF * 2.0 ** min(strikes - 1, 10), _MAX_BACKOFF)
    return min(max(wait, MIN_WAIT), MAX_WAIT)


def bounded_retry_after(rate: RateInfo) -> float | None:
    """A server's own `retry-after` for a 5xx, bounded; `None` where there is none."""
    if rate.retry_after is None or rate.retry_after <= 0:
        return None
    return min(max(rate.retry_after, MIN_WAIT), MAX_WAIT)


class GateState(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about one installation's limit; durations in seconds from now."""

    limited_for: float
    remaining: int | None
    reset_in: float | None


class Gate:
    """The rate-limit memory of one installation (or of the App): closed while GitHub asked to be left alone."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._limited_until = float("-inf")
        self._kind: LimitKind = "secondary_rate_limit"
        self._strikes = 0
        self._remaining: int | None = None
        self._reset_at: float | None = None

    def state(self) -> GateState:
        now = self._now()
        return GateState(
            limited_for=max(0.0, self._limited_until - now),
            remaining=self._remaining,
            reset_in=None if self._reset_at is None else max(0.0, self._reset_at - now),
        )

    def check(self, call: Call) -> None:
        """Raises `RateLimited` without a request while the gate is closed: going on would prolong the limit."""
        wait = self._limited_until - self._now()
        if wait > 0:
            raise RateLimited(call, reason=self._kind, retry_after=max(wait, MIN_WAIT))

    def passed(self, rate: RateInfo) -> None:
        """An answer that was no refusal. With nothing left, the gate closes before GitHub has to say so."""
        self._remember(rate)
        if self._limited_until <= self._now():
            self._strikes = 0
            if rate.remaining is not None and rate.remaining <= 0 and rate.reset_in is not None:
                self._close("primary_rate_limit", wait_for(rate, strikes=1))

    def refused(self, kind: LimitKind, rate: RateInfo) -> float:
        """A rate-limit answer; returns the wait. Answers to requests in flight together count once."""
        self._remember(rate)
        if self._limited_until <= self._now():
            self._strikes += 1
        wait = wait_for(rate, strikes=max(self._strikes, 1))
        self._close(kind, wait)
        return wait

    def _close(self, kind: LimitKind, wait: float) -> None:
        self._kind = kind
        self._limited_until = max(self._limited_until, self._now() + wait)

    def _remember(self, rate: RateInfo) -> None:
        if rate.remaining is not None:
            self._remaining = rate.remaining
        if rate.reset_in is not None:
            self._reset_at = self._now() + min(max(rate.reset_in, 0.0), MAX_WAIT)


def _integer(value: str | None) -> int | None:
    return int(value) if value is not None and _INTEGER.fullmatch(value) else None


def _retry_after(value: str | None, sent_at: float) -> float | None:
    if value is None:
        return None
    seconds = _integer(value.strip())
    if seconds is not None:
        return float(seconds)
    at = http_date(value)
    return None if at is None else at - sent_at
