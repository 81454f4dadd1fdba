"""The difference of two medians: repeatable, honest about small samples, and about as wide as theory has it."""

from __future__ import annotations

import random
import statistics

import pytest

from graft.pilot.bootstrap import LEAST_FOR_DIFFERENCE, difference_of_medians
from graft.pilot.figures import Figure


def difference(before: list[float], after: list[float]) -> Figure:
    return difference_of_medians(
        key="k", name="n", definition="d", before=before, after=after, unit="seconds", sample_of="pulls"
    )


def test_the_difference_is_after_minus_before_and_below_zero_is_faster() -> None:
    dice = random.Random(1)
    before = [dice.gauss(100, 10) for _ in range(80)]
    after = [dice.gauss(70, 10) for _ in range(90)]
    figure = difference(before, after)
    assert figure.value == statistics.median(after) - statistics.median(before)
    assert figure.low is not None
    assert figure.high is not None
    assert figure.low < figure.value < figure.high < 0
    assert figure.sample == 80
    assert figure.interval == "95 % bootstrap"


def test_the_same_values_give_the_same_interval_in_any_order() -> None:
    dice = random.Random(2)
    before = [dice.expovariate(1) for _ in range(40)]
    after = [dice.expovariate(2) for _ in range(40)]
    first = difference(before, after)
    dice.shuffle(before)
    dice.shuffle(after)
    assert difference(before, after) == first


def test_the_interval_is_as_wide_as_theory_says() -> None:
    # The median of n normal values has a standard error of about 1.2533 σ / √n.
    dice = random.Random(3)
    n = 400
    before = [dice.gauss(0, 1) for _ in range(n)]
    after = [dice.gauss(0, 1) for _ in range(n)]
    figure = difference(before, after)
    assert figure.low is not None
    assert figure.high is not None
    expected = 2 * 1.96 * 1.2533 * (2 / n) ** 0.5
    assert figure.high - figure.low == pytest.approx(expected, rel=0.3)


@pytest.mark.parametrize(
    ("before", "after"), [(LEAST_FOR_DIFFERENCE - 1, 500), (500, LEAST_FOR_DIFFERENCE - 1), (0, 0)]
)
def test_a_small_side_gives_no_number(before: int, after: int) -> None:
    figure = difference([1.0] * before, [2.0] * after)
    assert not figure.enough
    assert figure.sample == min(before, after)
