"""The bench of local review: the diff it makes is as large as it says, and every aim has a verdict."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bench import big_diff, review
from bench.tables import ROOT, place
from graft.git import Repository


def test_the_large_diff_has_its_size_and_its_review_is_measured(tmp_path: Path) -> None:
    text = big_diff.build(tmp_path, size=4_000_000)
    diff = subprocess.run(["git", "-C", str(tmp_path), "diff", text], check=True, capture_output=True).stdout
    assert 3_900_000 < len(diff) < 4_200_000
    peak = big_diff.measure(tmp_path, text)
    assert 0 < peak.before <= peak.own
    assert peak.git > 0


def test_a_review_has_its_own_time_and_that_of_git(tmp_path: Path) -> None:
    text = big_diff.build(tmp_path, size=500_000)
    timing = review.review(Repository.open(tmp_path), text)
    assert timing.own > 0
    assert timing.git > 0
    assert timing.files == 1


@pytest.mark.parametrize(("percent", "value"), [(50, 2.0), (99, 4.0), (1, 1.0)])
def test_a_percentile_is_a_value_that_was_measured(percent: int, value: float) -> None:
    assert review.percentile([4.0, 1.0, 3.0, 2.0], percent) == value


@pytest.mark.parametrize("name", ["review", "many"])
def test_the_page_keeps_a_place_for_the_table(name: str) -> None:
    assert place(name).search((ROOT / "docs" / "performance.md").read_text())
