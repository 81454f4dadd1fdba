"""A line through samples tells what grows from what levels off."""

from __future__ import annotations

import random

import pytest

from proof.soak import FIGURES, run, total, trend

TIMES = [float(second) for second in range(0, 600, 5)]


def noisy(slope_per_hour: float, *, mean: float = 100.0, noise: float = 1.0) -> list[float]:
    draw = random.Random(7)
    return [mean + slope_per_hour * at / 3600 + draw.gauss(0, noise) for at in TIMES]


def test_noise_without_a_slope_levels_off() -> None:
    found = trend(TIMES, noisy(0))
    assert found.levels_off
    assert abs(found.slope) < 5
    assert found.scatter == pytest.approx(1, rel=0.3)


@pytest.mark.parametrize("slope", [60.0, 240.0])
def test_a_leak_grows(slope: float) -> None:
    found = trend(TIMES, noisy(slope, noise=0.5))
    assert found.slope == pytest.approx(slope, rel=0.2)
    assert not found.levels_off


def test_what_has_a_bound_may_come_near_to_it() -> None:
    values = noisy(60, mean=10.0, noise=0.1)
    assert trend(TIMES, values).verdict == "grows"
    assert trend(TIMES, values, bound=25).verdict == "within its bound of 25"
    assert trend(TIMES, values, bound=12).verdict == "grows"


def test_what_shrinks_levels_off() -> None:
    assert trend(TIMES, noisy(-500)).levels_off


def test_a_figure_that_never_changes_has_no_slope() -> None:
    found = trend(TIMES, [12.0] * len(TIMES))
    assert (found.slope, found.scatter, found.levels_off) == (0, 0, True)


def test_samples_of_a_metric_are_added() -> None:
    text = '# HELP graft_x X.\ngraft_x{kind="pull"} 2.0\ngraft_x{kind="lead"} 1.0\ngraft_xy 9.0\ngraft_tasks 5.0\n'
    assert total(text, "graft_x") == 3
    assert total(text, "graft_tasks") == 5


@pytest.mark.timeout(180)
async def test_a_short_soak_measures_every_figure() -> None:
    trends, deliveries, changes = await run(8)
    assert trends.keys() == FIGURES.keys()
    assert all(found.mean > 0 for name, found in trends.items() if name != "actors running")
    assert deliveries > 20
    assert changes >= 8
