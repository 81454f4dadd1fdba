"""The gate: pass, fail and not enough data are three different answers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft.pilot import gate
from graft.pilot.feedback import Rating
from graft.pilot.gate import Outcome, decide, least_that_can_pass

from .test_pilot_feedback import card


def ratings(accurate: int, wrong: int) -> list[Rating]:
    return [
        Rating(card=card(f"c{i}"), accurate=int(i < accurate), wrong=int(i >= accurate))
        for i in range(accurate + wrong)
    ]


@pytest.mark.parametrize(
    ("accurate", "wrong", "outcome"),
    [
        (0, 0, Outcome.NOT_ENOUGH_DATA),
        (49, 0, Outcome.NOT_ENOUGH_DATA),
        (0, 49, Outcome.NOT_ENOUGH_DATA),
        (50, 0, Outcome.PASS),
        (49, 1, Outcome.FAIL),  # 0.895 to 0.996
        (96, 4, Outcome.PASS),  # 0.9016 to 0.984
        (95, 5, Outcome.FAIL),  # 0.888 to 0.978: good, and not shown to be good enough
        (10, 90, Outcome.FAIL),
    ],
)
def test_outcomes(accurate: int, wrong: int, outcome: Outcome) -> None:
    decided = decide(ratings(accurate, wrong))
    assert decided.outcome is outcome
    assert decided.accuracy.enough is (outcome is not Outcome.NOT_ENOUGH_DATA)
    assert decided.reason


def test_the_exit_codes_are_three() -> None:
    assert gate.EXIT_CODES == {Outcome.PASS: 0, Outcome.FAIL: 1, Outcome.NOT_ENOUGH_DATA: 2}


@given(st.floats(0.5, 0.99))
def test_a_flawless_record_passes_as_soon_as_it_is_long_enough(threshold: float) -> None:
    # Wilson's lower end for n of n is n / (n + z²).
    least = math.ceil(round(1.959963984540054**2 * threshold / (1 - threshold), 9))
    assert least_that_can_pass(threshold) == max(least, 1)
    needed = max(1, least)
    assert decide(ratings(needed, 0), threshold=threshold, minimum=1).outcome is Outcome.PASS
    if needed > 1:
        short = decide(ratings(needed - 1, 0), threshold=threshold, minimum=1)
        assert short.outcome is Outcome.NOT_ENOUGH_DATA, "even perfect, it could not have passed"


@given(st.integers(0, 300), st.integers(0, 60))
def test_one_more_accurate_card_never_turns_a_pass_into_a_failure(accurate: int, wrong: int) -> None:
    if decide(ratings(accurate, wrong)).outcome is Outcome.PASS:
        assert decide(ratings(accurate + 1, wrong)).outcome is Outcome.PASS


@pytest.mark.parametrize("threshold", [0.0, 1.0, 1.5, -0.1])
def test_a_threshold_lies_between_nothing_and_all(threshold: float) -> None:
    with pytest.raises(ValueError):
        decide([], threshold=threshold)
