"""Figures: intervals checked against their definitions, and no number without enough data."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft.pilot import figures
from graft.pilot.figures import Figure, as_text, as_value, quantile, wilson

Z = statistics.NormalDist().inv_cdf(0.975)


def by_definition(successes: int, n: int) -> tuple[float, float]:
    """Wilson's interval as what it is: all shares that the observed one does not contradict, by bisection."""
    seen = successes / n

    def agrees(share: float) -> bool:
        return abs(seen - share) <= Z * math.sqrt(share * (1 - share) / n)

    def edge(inside: float, outside: float) -> float:
        for _ in range(80):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if agrees(middle) else (inside, middle)
        return inside

    return edge(seen, 0.0), edge(seen, 1.0)


@given(st.integers(1, 2_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_the_set_of_shares_that_are_not_contradicted(case: tuple[int, int]) -> None:
    low, high = wilson(*case)
    expected = by_definition(*case)
    assert low == pytest.approx(expected[0], abs=1e-9)
    assert high == pytest.approx(expected[1], abs=1e-9)
    assert 0 <= low <= case[0] / case[1] <= high <= 1


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    # Newcombe (1998), table I, method 3.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_gives_published_values(successes: int, n: int, low: float, high: float) -> None:
    assert wilson(successes, n) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(("successes", "n"), [(1, 0), (-1, 5), (6, 5)])
def test_wilson_refuses_nonsense(successes: int, n: int) -> None:
    with pytest.raises(ValueError):
        wilson(successes, n)


def coverage(low: int, high: int, n: int) -> Fraction:
    """How often the true median lies between the values of two ranks (from 0)."""
    return sum((Fraction(math.comb(n, k), 2**n) for k in range(low + 1, high + 1)), Fraction())


@pytest.mark.parametrize("n", [10, 11, 12, 20, 25, 50, 101, 400, 999])
def test_the_interval_of_a_median_covers_95_percent_and_no_narrower_one_does(n: int) -> None:
    figure = figures.median(
        key="k", name="n", definition="d", values=[float(v) for v in range(n)], sample_of="x", unit="number"
    )
    assert figure.low is not None
    assert figure.high is not None
    low, high = int(figure.low), int(figure.high)
    assert coverage(low, high, n) >= Fraction(95, 100)
    assert coverage(low + 1, high - 1, n) < Fraction(95, 100)


def test_the_interval_of_a_large_sample_follows_on_that_of_a_smaller() -> None:
    def ranks(n: int) -> tuple[float | None, float | None]:
        figure = figures.median(
            key="k",
            name="n",
            definition="d",
            values=[float(v) for v in range(n)],
            sample_of="x",
            unit="number",
        )
        return figure.low, figure.high

    low, high = ranks(1_001)
    assert coverage(int(low or 0), int(high or 0), 1_001) >= Fraction(95, 100)
    assert abs((low or 0) - (ranks(999)[0] or 0)) <= 2


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60))
def test_quantiles_are_the_inclusive_ones_of_the_standard_library(values: list[float]) -> None:
    expected = statistics.quantiles(values, n=4, method="inclusive")
    found = [quantile(sorted(values), part) for part in (0.25, 0.5, 0.75)]
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-6)


@given(st.integers(0, 200), st.integers(0, 200), st.integers(1, 150))
def test_there_is_no_percentage_below_the_sample_that_it_needs(a: int, b: int, needed: int) -> None:
    successes, n = min(a, b), max(a, b)
    figure = figures.share(
        key="k",
        name="n",
        definition="d",
        successes=successes,
        sample=n,
        sample_of="cards",
        needed=needed,
    )
    assert figure.enough is (n >= needed)
    text = as_text(figure)
    assert f"n = {n:,} cards" in text
    if not figure.enough:
        assert "not enough data" in text
        assert "%" not in text
        assert figure.low is figure.high is None
    else:
        assert "95 % Wilson" in text


def test_every_kind_of_figure_names_sample_and_interval_in_words() -> None:
    values = [float(v) for v in range(30)]
    shown: list[Figure] = [
        figures.share(key="k", name="n", definition="d", successes=27, sample=30, sample_of="cards"),
        figures.median(key="k", name="n", definition="d", values=values, sample_of="pulls", unit="seconds"),
        figures.total(key="k", name="n", definition="d", values=values, sample_of="days", unit="usd"),
        figures.count(key="k", name="n", definition="d", value=3, sample_of="votes"),
    ]
    assert [as_text(each) for each in shown] == [
        "90.0 % (74.4 % to 96.5 %, 95 % Wilson, n = 30 cards)",
        "14 s (9 s to 20 s, 95 % by ranks, n = 30 pulls)",
        "$435.00 (complete count, n = 30 days)",
        "3 votes (complete count)",
    ]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.9314, "share", "93.1 %"),
        (59, "seconds", "59 s"),
        (90, "seconds", "1.5 min"),
        (-7_200, "seconds", "−2.0 h"),
        (400_000, "seconds", "4.6 d"),
        (0.0312, "usd", "$0.0312"),
        (0, "usd", "$0.00"),
        (1_234.5, "usd", "$1,234.50"),
        (12_345, "count", "12,345"),
        (11.27, "number", "11.3"),
    ],
)
def test_values_are_written_in_their_unit(value: float, unit: figures.Unit, text: str) -> None:
    assert as_value(value, unit) == text
