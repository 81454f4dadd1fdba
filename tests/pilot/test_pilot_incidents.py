"""Incidents: who caused and fixed one, each counted once, and rates counted again by hand."""

from __future__ import annotations

import itertools
import random
import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft.pilot.incidents import (
    Found,
    Incident,
    Labelled,
    MergedChange,
    distinct,
    escape_rates,
    incident_counts,
    interpret,
    references,
)

T0 = datetime(2026, 12, 1, tzinfo=UTC)
REPO = "octo/demo"


@pytest.mark.parametrize(
    ("text", "culprits"),
    [
        ("Caused by #12", (12,)),
        ("caused by PR #12 and introduced in #13", (12, 13)),
        ("Culprit: #12", (12,)),
        ("The culprit is octo/demo#12.", (12,)),
        ("Regression from https://github.com/octo/demo/pull/12", (12,)),
        ("Regressed in #12", (12,)),
        ("broken since #12", (12,)),
        ("git bisected to #12", (12,)),
        ("Reverts octo/demo#12", (12,)),
        ("Reverts Octo/Demo#12", (12,)),
        ("Reverts someone/else#12", ()),
        ("Caused by https://github.com/someone/else/pull/12", ()),
        ("See #12", ()),
        ("caused by a full disk, see #12", ()),
        ("<!-- Caused by #12 -->", ()),
        ("Caused by #12a", ()),
        ("Caused by #99999999999", ()),
        ("Caused by #9999999999", ()),
        ("because of #12", ()),
        ("", ()),
    ],
)
def test_culprits_in_text(text: str, culprits: tuple[int, ...]) -> None:
    assert references(text, repository=REPO)[0] == culprits


@pytest.mark.parametrize(
    ("text", "fixes", "closes"),
    [
        ("Fixed by #15", (15,), ()),
        ("Fix: #15", (15,), (15,)),
        ("resolved in #15", (15,), ()),
        ("Fixes #20", (), (20,)),
        ("closes: octo/demo#20, resolves #21", (), (20, 21)),
        ("prefix #20", (), ()),
    ],
)
def test_fixes_and_closed_issues_in_text(text: str, fixes: tuple[int, ...], closes: tuple[int, ...]) -> None:
    assert references(text, repository=REPO)[1:] == (fixes, closes)


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    for numbers in references(text, repository=REPO):
        assert all(0 < number < 2**31 for number in numbers)


def test_long_hostile_text_is_read_in_time() -> None:
    began = time.process_time()
    for text in (
        "caused by " * 100_000,
        "<!--" * 100_000,
        "caused   by" + " " * 200_000 + "#1",
        "a/" * 200_000,
    ):
        references(text, repository=REPO)
    assert time.process_time() - began < 2


def issue(number: int, **fields: object) -> Labelled:
    return Labelled(number=number, is_pull=False, opened_at=T0 + timedelta(days=number), **fields)  # type: ignore[arg-type]


def pull(number: int, **fields: object) -> Labelled:
    return Labelled(number=number, is_pull=True, opened_at=T0 + timedelta(days=number), **fields)  # type: ignore[arg-type]


def read(*items: Labelled) -> dict[int, tuple[int | None, int | None]]:
    found: list[Found] = interpret(items)
    return {each.issue_number: (each.culprit, each.fix) for each in found}


def test_an_issue_names_its_culprit_and_its_fix() -> None:
    assert read(issue(20, culprits=(12,), fixes=(15,))) == {20: (12, 15)}
    assert read(issue(20)) == {20: (None, None)}


def test_a_labelled_pull_request_that_names_a_culprit_is_the_fix_otherwise_the_culprit() -> None:
    assert read(pull(21, culprits=(12,))) == {21: (12, 21)}
    assert read(pull(12)) == {12: (12, None)}


def test_a_labelled_fix_of_a_labelled_issue_is_no_second_incident() -> None:
    assert read(issue(20, culprits=(12,)), pull(21, closes=(20,))) == {20: (12, 21)}
    assert read(pull(21, closes=(20,))) == {21: (21, None)}, "the issue has no label"


def test_nothing_is_its_own_culprit_by_mention_and_no_fix_is_its_culprit() -> None:
    assert read(issue(20, culprits=(20, 12))) == {20: (12, None)}
    assert read(issue(20, culprits=(12,), fixes=(12, 20, 15))) == {20: (12, 15)}


def test_the_order_of_labels_never_matters() -> None:
    items = [issue(20, culprits=(12,)), pull(21, closes=(20,)), pull(22, closes=(20,)), pull(12), issue(30)]
    answers = {tuple(sorted(read(*order).items())) for order in itertools.permutations(items)}
    assert len(answers) == 1


def stored(number: int, **fields: object) -> Incident:
    facts: dict[str, object] = {
        "id": f"i{number}",
        "repository": REPO,
        "issue_number": number,
        "culprit": None,
        "fix": None,
        "source": "label",
        "occurred_at": T0 + timedelta(days=number),
        **fields,
    }
    return Incident(**facts)  # type: ignore[arg-type]


def test_one_defect_reported_twice_counts_once() -> None:
    reports = [stored(20, culprit=12, fix=15), stored(22, culprit=12, fix=15), stored(23, culprit=12, fix=16)]
    assert [each.issue_number for each in distinct(reversed(reports))] == [20, 23]


def test_unlinked_reports_and_other_repositories_stay_apart() -> None:
    reports = [
        stored(20),
        stored(21),
        stored(22, culprit=12),
        stored(23, culprit=12),
        stored(24, culprit=12, fix=15),
        stored(25, culprit=12, fix=15, repository="octo/other"),
    ]
    assert len(distinct(reports)) == 6
    assert [figure.value for figure in incident_counts(reports)] == [6, 4]


def test_rates_over_a_seeded_history() -> None:
    dice = random.Random(4)
    merged = [
        MergedChange(repository=REPO, number=n, risk=dice.choice(["trivial", "logic", "sensitive", None]))
        for n in range(1, 161)
    ]
    incidents = [
        stored(200 + i, culprit=dice.randrange(1, 170), fix=dice.choice([None, 180])) for i in range(40)
    ]
    figures = {figure.key: figure for figure in escape_rates(merged, incidents)}
    for risk in ("trivial", "logic", "sensitive"):
        numbers = {change.number for change in merged if change.risk == risk}
        guilty = {each.culprit for each in incidents} & numbers
        figure = figures[f"escaped.{risk}"]
        assert figure.sample == len(numbers)
        assert figure.value == len(guilty) / len(numbers)


def test_a_culprit_in_another_repository_is_another_change() -> None:
    merged = [MergedChange(repository=REPO, number=n, risk="trivial") for n in range(1, 31)]
    elsewhere = [stored(200, culprit=3, repository="octo/other")]
    [trivial, *_] = escape_rates(merged, elsewhere)
    assert trivial.value == 0


def test_few_merges_give_no_rate() -> None:
    merged = [MergedChange(repository=REPO, number=n, risk="trivial") for n in range(1, 20)]
    assert all(not figure.enough for figure in escape_rates(merged, [stored(1, culprit=1)]))
