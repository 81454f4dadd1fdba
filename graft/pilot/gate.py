"""The accuracy gate: are the cards right often enough to be believed?

It passes when the lower end of the 95 % interval reaches the threshold: when the record would be surprising if
the cards were any worse than that. Too few ratings are neither a pass nor a failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from graft.pilot.feedback import Rating, accuracy
from graft.pilot.figures import Figure, as_value, wilson

THRESHOLD: Final = 0.9
MINIMUM: Final = 50


class Outcome(StrEnum):
    PASS = "pass"  # noqa: S105 - an outcome, not a password
    FAIL = "fail"
    NOT_ENOUGH_DATA = "not_enough_data"


EXIT_CODES: Final = {Outcome.PASS: 0, Outcome.FAIL: 1, Outcome.NOT_ENOUGH_DATA: 2}


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """The decision with what it rests on. `needed` rated cards decide; `reason` is one sentence."""

    outcome: Outcome
    accuracy: Figure
    threshold: float
    needed: int
    reason: str


def decide(
    ratings: Sequence[Rating],
    *,
    threshold: float = THRESHOLD,
    minimum: int = MINIMUM,
    include_authors: bool = False,
) -> Gate:
    """Decide over these ratings. `threshold` lies between 0 and 1, both excluded.

    At least `minimum` rated cards are needed, and never fewer than it takes for a flawless record to pass: below
    that even a perfect one would fail.
    """
    needed = max(minimum, least_that_can_pass(threshold))
    figure = accuracy(ratings, include_authors=include_authors, needed=needed)
    outcome, reason = _judge(figure, threshold, needed)
    return Gate(outcome=outcome, accuracy=figure, threshold=threshold, needed=needed, reason=reason)


def least_that_can_pass(threshold: float) -> int:
    """The fewest cards, all accurate, whose interval lies above the threshold."""
    if not 0 < threshold < 1:
        raise ValueError("a threshold between 0 and 1")
    n = 1
    while wilson(n, n)[0] < threshold:
        n += 1
    return n


def _judge(figure: Figure, threshold: float, needed: int) -> tuple[Outcome, str]:
    goal = as_value(threshold, "share")
    if figure.value is None or figure.low is None or figure.high is None:
        missing = needed - figure.sample
        return Outcome.NOT_ENOUGH_DATA, f"{missing} more rated cards are needed before the gate can decide"
    low, high = as_value(figure.low, "share"), as_value(figure.high, "share")
    if figure.low >= threshold:
        return Outcome.PASS, f"the lower end of the interval, {low}, reaches {goal}"
    if figure.high < threshold:
        return Outcome.FAIL, f"the whole interval lies below {goal}, up to {high}"
    return Outcome.FAIL, f"the lower end of the interval, {low}, does not reach {goal}"
