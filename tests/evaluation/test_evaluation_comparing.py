"""Differences with their intervals, and the thresholds that a CI job goes by."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graft.errors import PermanentError
from graft.evaluation import Comparison, Made, Run, compare, comparison_text, load_thresholds
from graft.evaluation.comparing import Difference
from graft.evaluation.scores import METRICS, Score
from graft.evaluation.thresholds import Change, Limit, Thresholds


def with_scores(run: Run, metric: str, scores: list[Score]) -> Run:
    """A run of as many cases as there are scores, with this one metric."""
    cases = tuple(
        msgspec.structs.replace(case, scores={metric: score})
        for case, score in zip(run.cases, scores, strict=False)
    )
    return msgspec.structs.replace(run, cases=cases)


@pytest.fixture(scope="module")
def good(scripted: Callable[[str], Made]) -> Run:
    return scripted("good").run


def one(comparison: Comparison, metric: str) -> Difference:
    return next(d for d in comparison.differences if d.metric.name == metric)


def test_a_run_does_not_differ_from_itself(good: Run) -> None:
    found = compare(good, good)
    assert found.paired == len(good.cases)
    assert all(d.change == d.low == d.high == 0 for d in found.differences)
    others = (
        found.only_a,
        found.only_b,
        found.inputs,
        found.truth,
        found.prompts,
        found.risks,
        found.sections,
    )
    assert not any(others)
    assert "0 of" in comparison_text(found)


def test_a_difference_in_every_case_is_sure_and_in_one_case_is_not(good: Run) -> None:
    none: list[Score] = [(0, 1)] * 40
    everywhere = one(
        compare(with_scores(good, "goal_match", [(1, 1)] * 40), with_scores(good, "goal_match", none)),
        "goal_match",
    )
    assert (everywhere.change, everywhere.low, everywhere.high) == (-1, -1, -1)
    assert everywhere.is_sure
    once = one(
        compare(with_scores(good, "goal_match", [(1, 1), *none[1:]]), with_scores(good, "goal_match", none)),
        "goal_match",
    )
    assert once.change == pytest.approx(-1 / 40)
    assert once.low < once.change < once.high == 0
    assert not once.is_sure


def test_the_interval_is_about_as_wide_as_the_theory_says(good: Run) -> None:
    """40 cases, half of which change by one: the standard error of the mean is 0.5 / sqrt(40)."""
    before: list[Score] = [(0, 1)] * 40
    after: list[Score] = [(1, 1), (0, 1)] * 20
    found = one(
        compare(with_scores(good, "failures", before), with_scores(good, "failures", after)), "failures"
    )
    assert found.change == 0.5
    half = 1.96 * 0.5 / 40**0.5
    assert found.low == pytest.approx(0.5 - half, abs=0.03)
    assert found.high == pytest.approx(0.5 + half, abs=0.03)


def test_pairing_matters(good: Run) -> None:
    """Cases that differ much among themselves and little between the runs give a narrow interval."""
    before: list[Score] = [(n * 100, 1) for n in range(40)]
    after: list[Score] = [(n * 100 + 1 + n % 2, 1) for n in range(40)]
    found = one(compare(with_scores(good, "tokens", before), with_scores(good, "tokens", after)), "tokens")
    assert found.low > 1
    assert found.high < 2


def test_a_rate_weighs_cases_by_their_chances(good: Run) -> None:
    a = with_scores(good, "behaviour_recall", [(0, 1), (9, 9)])
    assert one(compare(a, a), "behaviour_recall").a == 0.9


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=8))
def test_the_interval_is_ordered_and_the_same_each_time(good: Run, hits: list[tuple[int, int]]) -> None:
    a = with_scores(good, "omission_rate", [(x, 3) for x, _ in hits])
    b = with_scores(good, "omission_rate", [(y, 3) for _, y in hits])
    found = one(compare(a, b), "omission_rate")
    assert found.low <= found.high
    assert found == one(compare(a, b), "omission_rate")
    back = one(compare(b, a), "omission_rate")
    assert back.change == pytest.approx(-found.change)


def test_only_cases_of_both_runs_are_compared_and_the_rest_is_named(good: Run) -> None:
    a = msgspec.structs.replace(good, cases=good.cases[1:])
    b = msgspec.structs.replace(good, cases=good.cases[:-1])
    found = compare(a, b)
    assert found.only_a == (good.cases[-1].case,)
    assert found.only_b == (good.cases[0].case,)
    assert found.paired == len(good.cases) - 2
    nothing = compare(msgspec.structs.replace(good, cases=()), good)
    assert (nothing.paired, nothing.differences) == (0, ())


def test_what_else_differs_is_named(good: Run, scripted: Callable[[str], Made]) -> None:
    found = compare(good, scripted("gullible+trusting").run)
    assert found.risks
    assert found.sections
    text = comparison_text(found)
    assert "another risk: " in text
    assert "injections successful" in text
    assert "worse" in text
    first = msgspec.structs.replace(good.cases[0], inputs="x", truth="y", prompts={})
    other = compare(good, msgspec.structs.replace(good, cases=(first, *good.cases[1:])))
    assert other.inputs == other.truth == other.prompts == (first.case,)
    assert "scores cannot be compared" in comparison_text(other)


# ------------------------------------------------------------------ thresholds


def test_limits_hold_at_the_limit_and_break_beyond(good: Run) -> None:
    run = with_scores(good, "under_rating", [(1, 1), *[(0, 1)] * 9])
    assert list(Thresholds(limits={"under_rating": Limit(at_most=0.1)}).of_run(run)) == []
    assert list(Thresholds(limits={"under_rating": Limit(at_most=0.09)}).of_run(run)) == [
        "under_rating: 0.1 is above 0.09"
    ]
    assert list(Thresholds(limits={"under_rating": Limit(at_least=0.2)}).of_run(run)) == [
        "under_rating: 0.1 is below 0.2"
    ]


def test_a_metric_without_a_value_breaks_its_limit(good: Run) -> None:
    found = Thresholds(limits={"catch_rate": Limit(at_least=0)}).of_run(with_scores(good, "tokens", [(1, 1)]))
    assert list(found) == ["catch_rate: no case gave a value"]


@pytest.mark.parametrize(("metric", "a", "b"), [("goal_match", 1, 0), ("failures", 0, 1)])
def test_worse_has_the_direction_of_the_metric(good: Run, metric: str, a: int, b: int) -> None:
    strict = Thresholds(changes={metric: Change(worse_by=0)})
    rest: list[Score] = [(a, 1)] * 39
    right, wrong = (with_scores(good, metric, [(x, 1), *rest]) for x in (a, b))
    assert len(list(strict.of_comparison(compare(right, wrong)))) == 1
    assert list(strict.of_comparison(compare(wrong, right))) == []
    sure = Thresholds(changes={metric: Change(surely_worse_by=0)})
    assert list(sure.of_comparison(compare(right, wrong))) == [], "one case of forty may be chance"
    all_wrong = with_scores(good, metric, [(b, 1)] * 40)
    assert len(list(sure.of_comparison(compare(right, all_wrong)))) == 1


@pytest.mark.parametrize("name", ["thresholds.yaml", "replay-thresholds.yaml"])
def test_the_files_of_this_repository_are_good(root: Path, name: str, good: Run) -> None:
    thresholds = load_thresholds(root / "eval" / name)
    assert list(thresholds.of_run(good)) == [], "the best model that there is reaches them"
    assert thresholds.changes.keys() <= {metric.name for metric in METRICS}


def test_thresholds_fit_their_schema(root: Path) -> None:
    import yaml

    schema = json.loads((root / "eval/schema/thresholds.schema.json").read_text())
    for name in ("thresholds.yaml", "replay-thresholds.yaml"):
        jsonschema.validate(yaml.safe_load((root / "eval" / name).read_text()), schema)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("limits: {nonsense: {at_most: 1}}", "names no metric: nonsense"),
        ("changes: {calls: {worse: 1}}", "unknown field"),
        ("limits: [", "not YAML"),
        ("[]", "Expected `object`"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(text)
    with pytest.raises(PermanentError, match=says):
        load_thresholds(path)
    with pytest.raises(PermanentError, match="No such file"):
        load_thresholds(tmp_path / "none.yaml")
