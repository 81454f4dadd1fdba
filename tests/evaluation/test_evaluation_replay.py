"""What CI looks at: the recorded answers, replayed by this Graft, against the saved baseline.

A failure here is no mistake in itself. It says that a change has an effect on cards: to prompts, floor, markers, the
budget of a diff, the reading of answers or the rendering. Renew the baseline (docs/evaluation.md), so that the effect
is part of the pull request.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from graft.evaluation import (
    Case,
    Replay,
    Run,
    compare,
    comparison_text,
    load_run,
    load_thresholds,
    run,
    save_run,
)

ROOT = Path(__file__).parents[2]
RECORDED = sorted((ROOT / "eval/recorded").glob("*.jsonl"))


def test_there_are_recordings_and_each_has_a_baseline() -> None:
    assert len(RECORDED) >= 2
    assert [path.stem for path in RECORDED] == sorted(p.stem for p in (ROOT / "eval/baseline").glob("*.json"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_replay_is_as_good_as_the_baseline_and_the_same(
    path: Path, all_cases: tuple[Case, ...], tmp_path: Path
) -> None:
    baseline = load_run(ROOT / "eval/baseline" / f"{path.stem}.json")
    now = saved(asyncio.run(run(all_cases, Replay.load(path))).run, tmp_path)
    thresholds = load_thresholds(ROOT / "eval/replay-thresholds.yaml")
    found = compare(baseline, now)
    beyond = [*thresholds.of_run(now), *thresholds.of_comparison(found)]
    assert beyond == [], f"\n{comparison_text(found)}"
    renew = "nothing is worse, and the cards are others: run python -m graft.evaluation"
    assert now == baseline, f"\n{comparison_text(found)}\n\n{renew}"


def test_the_recordings_fit_the_prompts_of_this_graft(all_cases: tuple[Case, ...]) -> None:
    for path in RECORDED:
        replay = Replay.load(path)
        asyncio.run(run(all_cases, replay))
        assert (replay.stale, replay.missing) == (0, 0), f"{path.name}: python -m graft.evaluation"


def test_a_worse_graft_would_be_noticed(all_cases: tuple[Case, ...], tmp_path: Path) -> None:
    """As if the floor had forgotten its rules: the final classes of the unguarded recording fall."""
    baseline = load_run(ROOT / "eval/baseline/gullible-trusting.json")
    cases = tuple(
        msgspec.structs.replace(case, scores=case.scores | {"under_rating": (1.0, 1.0)})
        if case.kind == "injection"
        else case
        for case in baseline.cases
    )
    found = compare(baseline, msgspec.structs.replace(baseline, cases=cases))
    thresholds = load_thresholds(ROOT / "eval/replay-thresholds.yaml")
    assert any(text.startswith("under_rating: ") for text in thresholds.of_comparison(found))


def saved(made: Run, tmp_path: Path) -> Run:
    """The run as its file gives it back."""
    save_run(tmp_path / "run.json", made)
    return load_run(tmp_path / "run.json")
