"""The report: the same numbers in every form, nothing without its definition, and no request to anywhere."""

from __future__ import annotations

import csv
import io
import itertools
import json
import random
import re
from html.parser import HTMLParser

import msgspec
import pytest

from graft.pilot import export, figures, page, report
from graft.pilot.document import Material, Report
from graft.pilot.figures import Figure, as_value
from graft.pilot.gate import decide
from graft.pilot.plots import duration_ticks, ticks
from graft.pilot.review_time import counted

from .seeded_history import BEGIN, WEEKS, material


@pytest.fixture(scope="module")
def built() -> Report:
    return report.build(material())


class Elements(HTMLParser):
    """Every element with its attributes, and the visible text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).replace("\u00a0", " ").split())


def every_figure(built: Report) -> list[Figure]:
    return [figure for _, _, figure in export.figures(built)]


def test_every_figure_says_what_it_is(built: Report) -> None:
    found = every_figure(built)
    assert len(found) > 100
    for figure in found:
        assert figure.name
        assert len(figure.definition) > 20, figure.key
        assert figure.sample_of
        assert figure.interval
        if figure.value is None:
            assert figure.sample < figure.needed or figure.key == "cost.calls"
            assert (figure.low, figure.high, figure.quartiles) == (None, None, None)
        elif figure.interval != figures.COMPLETE:
            assert figure.low is not None
            assert figure.high is not None
            assert figure.low <= figure.value <= figure.high


def test_keys_are_unique(built: Report) -> None:
    keys = [
        figure.key
        for section in built.sections
        for figure in (
            *section.figures,
            *(point.figure for table in section.tables for point in table.rows),
        )
    ]
    assert len(keys) == len(set(keys))


def test_json_csv_and_page_give_the_same_numbers(built: Report) -> None:
    rows = {(row["section"], row["key"]): row for row in csv.DictReader(io.StringIO(export.as_csv(built)))}
    document = json.loads(export.as_json(built))
    text = Elements(page.render(built)).text
    for shown, section in zip(document["sections"], built.sections, strict=True):
        for given, figure in zip(shown["figures"], section.figures, strict=True):
            row = rows[section.key, figure.key]
            assert given["value"] == figure.value
            assert row["value"] == ("" if figure.value is None else str(figure.value))
            assert (row["sample"], row["interval"]) == (str(figure.sample), figure.interval)
            assert f"n = {figure.sample:,}" in text
            assert figure.definition in text
            if figure.value is not None:
                assert as_value(figure.value, figure.unit) in text
    assert len(rows) == len(every_figure(built))


def test_the_numbers_are_those_of_the_history(built: Report) -> None:
    history = material()
    found = {figure.key: figure for figure in every_figure(built)}
    accurate = [rating for rating in history.ratings if rating.accurate > rating.wrong]
    assert found["accuracy"].value == len(accurate) / len(history.ratings)
    days = list(history.days.values())
    assert found["risk.cards"].value == sum(day.cards for day in days)
    assert found["risk.disagreement"].value == sum(d.disagreed for d in days) / sum(d.checked for d in days)
    assert found["cost.total"].value == pytest.approx(sum(day.cost_usd for day in days))
    assert found["cost.calls"].value == sum(d.api_calls for d in days) / sum(d.heads for d in days)
    assert sum(
        figure.value or 0 for key, figure in found.items() if key.startswith("cost.histogram.")
    ) == len(history.change_costs)
    reviewed = sorted(
        r.first_review_seconds for r in counted(history.after) if r.first_review_seconds is not None
    )
    middle = len(reviewed) // 2
    expected = reviewed[middle] if len(reviewed) % 2 else (reviewed[middle - 1] + reviewed[middle]) / 2
    assert found["review.first_review.all.with"].value == expected
    assert found["review.first_review.all.with"].sample == len(reviewed)


def test_a_defect_that_was_reported_after_the_period_counts_for_the_change_and_not_for_the_period() -> None:
    history = material()
    late = [msgspec.structs.replace(each, occurred_at=history.until) for each in history.incidents]
    found = {f.key: f for f in every_figure(report.build(msgspec.structs.replace(history, incidents=late)))}
    early = {f.key: f for f in every_figure(report.build(history))}
    assert found["incidents"].value == 0
    assert early["incidents"].value == len(history.incidents)
    assert found["escaped.logic"].value == early["escaped.logic"].value
    assert found["escaped.logic"].value


def test_weeks_without_ratings_are_shown_as_gaps(built: Report) -> None:
    [accuracy, *_] = built.sections
    so_far, weekly = accuracy.plots
    assert len(so_far.points) == len(weekly.points) == WEEKS
    samples = [point.figure.sample for point in so_far.points]
    assert samples == sorted(samples)
    assert samples[-1] == len(material().ratings)


def test_a_young_pilot_shows_no_percentage_at_all() -> None:
    empty = Material(
        generated_at=BEGIN,
        since=BEGIN,
        until=BEGIN.replace(month=10),
        repositories=("octo/new",),
        gate=decide([]),
    )
    built = report.build(empty)
    text = page.render(built)
    shown = Elements(text).text
    assert "Not enough data yet" in shown
    for figure in every_figure(built):
        assert figure.unit != "share" or figure.value is None
    body = text[text.index("<main>") :]
    said = re.sub(r"(95|90\.0)\s*(%|&nbsp;%|\u00a0%)", "", Elements(body).text)
    assert "%" not in said, "only the gate and the kind of interval may be percentages"


@pytest.fixture(scope="module")
def hostile_page() -> str:
    hostile = '<script>alert(1)</script>"><img src=x onerror=y>'
    history = material()
    ratings = [
        msgspec.structs.replace(r, card=msgspec.structs.replace(r.card, repository=hostile, model=hostile))
        for r in history.ratings
    ]
    return page.render(
        report.build(msgspec.structs.replace(history, ratings=ratings, repositories=(hostile, "=cmd()")))
    )


def test_names_from_outside_stay_text(hostile_page: str) -> None:
    tags = {tag for tag, _ in Elements(hostile_page).elements}
    assert tags.isdisjoint({"script", "img", "link", "iframe", "object", "embed", "a", "base", "form"})
    assert "<script>alert(1)</script>" in Elements(hostile_page).text


def test_nothing_is_loaded_from_anywhere(hostile_page: str) -> None:
    for _, attributes in Elements(hostile_page).elements:
        assert not attributes.keys() & {"src", "href", "xlink:href", "srcset", "poster", "data", "action"}
        assert not any(name.startswith("on") for name in attributes)
    assert "url(" not in hostile_page
    assert "@import" not in hostile_page
    assert "default-src 'none'" in hostile_page


def test_a_spreadsheet_takes_no_text_for_a_formula() -> None:
    history = material()
    ratings = [
        msgspec.structs.replace(r, card=msgspec.structs.replace(r.card, model="=1+1"))
        for r in history.ratings
    ]
    text = export.as_csv(report.build(msgspec.structs.replace(history, ratings=ratings)))
    for row in csv.reader(io.StringIO(text)):
        for cell in row:
            assert not cell.startswith(("=", "+", "@"))
            assert not cell.startswith("-") or re.fullmatch(r"-[\d.e+-]+", cell)


@pytest.mark.parametrize("seed", range(20))
def test_ticks_are_round_and_hold_the_range(seed: int) -> None:
    dice = random.Random(seed)
    high = dice.choice([0.0001, 0.7, 1.0, 42.0, 1e6]) * (1 + dice.random())
    for marks in (ticks(0, high), duration_ticks(high)):
        assert marks[0] == 0
        assert marks[-1] >= high
        assert 2 <= len(marks) <= 8
        steps = {round(b - a, 9) for a, b in itertools.pairwise(marks)}
        assert len(steps) == 1
