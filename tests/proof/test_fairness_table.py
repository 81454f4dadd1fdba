"""The program that measures fairness comes to its end, and its verdicts follow from its figures."""

from __future__ import annotations

import argparse

import pytest

from proof import fairness
from proof.arena import Stretch
from proof.fairness import AIM, QUIET


def measured(quiet: list[float], queued: list[float], *, lost: int = 0) -> list[list[str]]:
    found = {QUIET: Stretch(seconds=quiet), "queued": Stretch(seconds=queued, lost=lost)}
    table = fairness.table({0.05: found}, argparse.Namespace(pace=4.0))
    assert all(len(row) == len(table.columns) for row in table.rows)
    return [list(row) for row in table.rows]


@pytest.mark.parametrize(
    ("queued", "lost", "verdict"),
    [([1.9] * 100, 0, "met"), ([2.1] * 100, 0, "missed"), ([1.0] * 99, 1, "missed")],
)
def test_the_aim_is_a_ratio_of_the_slowest_and_nobody_lost(
    queued: list[float], lost: int, verdict: str
) -> None:
    quiet, other = measured([1.0] * 100, queued, lost=lost)
    assert quiet[-1] == "", "quiet is what the others are compared with"
    assert other[-1] == verdict
    assert float(other[5]) == pytest.approx(max(queued), abs=0.01)
    assert AIM == 2.0


def test_one_slow_one_in_a_hundred_is_the_99th() -> None:
    stretch = Stretch(seconds=[*[0.1] * 98, 5.0, 6.0])
    assert (stretch.quantile(50), stretch.quantile(98)) == (0.1, 5.0)
    assert stretch.quantile(99) == 6.0
    assert Stretch(seconds=[0.3]).quantile(99) == 0.3


async def test_the_program_comes_to_its_end() -> None:
    found = await fairness.run(
        samples=3, pace=6.0, latency=0.0, events={"slow": 6, "limited": 6}, conditions=["slow", "limited"]
    )
    assert set(found) == {QUIET, "slow", "limited"}
    assert [stretch.lost for stretch in found.values()] == [0, 0, 0]
    assert [len(stretch.seconds) for stretch in found.values()] == [9, 3, 3]
