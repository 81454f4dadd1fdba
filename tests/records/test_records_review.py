"""A pull request's review: what it touches, what it leaves stale, and that BASE decides what is approved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cmarkgfm
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graft.records import RecordsReview, check_output, is_protected, render_section, review
from graft.records.review import MAX_TEXT, MAX_TOUCHED


@pytest.fixture
def base(repo: Any) -> dict[str, bytes]:
    repo.manifest()
    return dict(repo.files())


def change(repo: Any, base: dict[str, bytes], edit: Callable[[Any], None]) -> RecordsReview:
    edit(repo)
    return review(base, repo.files())


def test_nothing_changed_is_fresh(base: dict[str, bytes]) -> None:
    found = review(base, base)
    letters = [("R1", "The first letter is a."), ("R2", "The second letter is b.")]
    assert [(item.clause, item.text) for item in found.standing] == letters
    assert replace(found, standing=()) == RecordsReview("fresh", ("0001-letters",), (), (), (), (), (), ())
    assert not found.touches_intent
    assert not found.edits_protected


def test_without_approved_records_there_is_none(repo: Any) -> None:
    assert review({}, {}).status == "none"
    repo.edit(repo.record_path, "status: approved", "status: draft")
    assert review(repo.files(), repo.files()).status == "none"


def test_head_cannot_approve(repo: Any) -> None:
    repo.edit(repo.record_path, "status: approved", "status: draft")
    before = repo.files()
    repo.edit(repo.record_path, "status: draft", "status: approved")
    repo.judge(model="scripted/other-20261101")
    found = review(before, repo.files())
    assert found.status == "none"
    assert found.protected == (repo.receipt_path,)


def test_an_edited_clause_names_text_law_rows_and_oracle(repo: Any, base: dict[str, bytes]) -> None:
    found = change(repo, base, lambda r: r.edit(r.record_path, "The first letter", "The very first letter"))
    assert found.status == "stale"
    assert [(item.clause, item.change, item.text) for item in found.clauses] == [
        ("R1", "edited", "The first letter is a.")
    ]
    assert [(item.kind, item.name) for item in found.stale] == [
        ("receipt", "0001-letters"),
        ("row", "letters"),
        ("oracle", ".intent/oracle/real.py"),
    ]
    assert any(item.reason == "law a is stale (clause R1 edited)" for item in found.stale)
    assert found.protected == (repo.record_path,)


def test_an_edited_law(repo: Any, base: dict[str, bytes]) -> None:
    found = change(repo, base, lambda r: r.edit(".intent/model/LAWS.bend", "2n == 2n", "3n == 3n"))
    assert [(item.law, item.change) for item in found.laws] == [("b", "edited")]
    assert found.status == "stale"
    assert found.protected == (".intent/model/LAWS.bend",)
    assert any("not the text that was approved" in problem for problem in found.problems)


def test_a_complete_change_is_fresh_and_still_protected(repo: Any, base: dict[str, bytes]) -> None:
    repo.edit(repo.record_path, "The first letter", "The very first letter")
    repo.judge()
    found = review(base, repo.files())
    assert found.status == "fresh"
    assert found.edits_protected
    assert [item.clause for item in found.clauses] == ["R1"]
    assert ("row", "letters") in {(item.kind, item.name) for item in found.stale}
    assert ("receipt", "0001-letters") not in {(item.kind, item.name) for item in found.stale}


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (lambda r: r.remove(r.record_path), "the approved record is deleted"),
        (lambda r: r.edit(r.record_path, "status: approved", "status: draft"), "is now draft"),
        (lambda r: r.edit(r.record_path, "status: approved", "status: what"), "is now unreadable"),
        (lambda r: r.remove(r.receipt_path), "has no receipt"),
        (lambda r: r.write(r.receipt_path, "{"), "not JSON"),
        (lambda r: r.remove(".intent/model/laws.sha256"), "has no approval"),
        (lambda r: r.remove(".intent/model/LAWS.bend"), "does not exist"),
        (lambda r: r.write(".intent/model/LAWS.bend", "law a:\nx\n"), "unsupported layout at line 2"),
        (lambda r: r.write(".intent/tools/graft_check.py", "x"), "no header"),
    ],
)
def test_missing_and_malformed_parts_are_stale(
    repo: Any, base: dict[str, bytes], edit: Any, why: str
) -> None:
    found = change(repo, base, edit)
    assert found.status == "stale"
    assert found.edits_protected
    assert any(why in problem for problem in found.problems), found.problems


def test_a_base_that_cannot_be_read_is_stale(repo: Any) -> None:
    repo.edit(repo.record_path, "status: approved", "status: what")
    assert review(repo.files(), repo.files()).status == "stale"


def test_a_base_that_was_stale_before_stays_stale(repo: Any) -> None:
    repo.edit(repo.record_path, "The first letter", "The very first letter")
    found = review(repo.files(), repo.files())
    assert found.status == "stale"
    assert found.protected == ()


@pytest.mark.parametrize(
    ("path", "protected"),
    [
        (".intent/model/LAWS.bend", True),
        (".intent/model/PROOF.bend", True),
        (".intent/model/neg/a.bend", True),
        (".intent/model/laws.sha256", True),
        (".intent/receipts/0001-letters.json", True),
        (".intent/conform.json", True),
        (".intent/tools/graft_check.py", True),
        (".intent/tools/other.mjs", True),
        (".intent/records/0001-letters.md", True),
        (".intent/records/0002-draft.md", False),
        (".intent/records/README.md", False),
        (".intent/model/Rows.bend", False),
        (".intent/oracle/real.py", False),
        ("src/app.py", False),
        ("x/.intent/model/LAWS.bend", False),
    ],
)
def test_protected_files(base: dict[str, bytes], path: str, protected: bool) -> None:
    assert is_protected(path, frozenset(["0001-letters"])) == protected
    assert review(base, {**base, path: b"changed"}).edits_protected == protected


def test_code_alone_touches_nothing(base: dict[str, bytes]) -> None:
    found = review(base, {**base, "src/app.py": b"x"})
    assert found.status == "fresh"
    assert not found.touches_intent


def test_lists_are_bounded(repo: Any) -> None:
    rules = "\n".join(f"R{n}: Rule {n} " + "x" * 2000 for n in range(1, 201))
    repo.edit(repo.record_path, "R1: The first letter is a.\nR2: The second letter is b.", rules)
    before = repo.files()
    repo.write(repo.record_path, repo.read(repo.record_path).replace("Rule", "Law"))
    found = review(before, repo.files())
    assert len(found.clauses) == MAX_TOUCHED
    assert max(len(item.text) for item in found.clauses) == MAX_TEXT
    assert "150 more touched clauses" in found.truncated


def test_too_many_files_are_stale_and_named(base: dict[str, bytes]) -> None:
    many = {f".intent/records/notes-{n}.txt": b"x" for n in range(3_000)}
    found = review(base, {**base, **many})
    assert found.status == "stale"
    assert "files of head" in found.truncated[0]


def test_too_many_bytes_are_not_read(base: dict[str, bytes]) -> None:
    large = {f".intent/records/{n:04}-large.md": b"x" * 1_900_000 for n in range(2, 40)}
    found = review(base, {**base, **large})
    assert found.status == "stale"
    assert found.truncated


def test_the_section_says_what_and_why(repo: Any, base: dict[str, bytes]) -> None:
    found = change(repo, base, lambda r: r.edit(r.record_path, "The first letter", "The very first letter"))
    text = render_section(found)
    assert text.startswith("### Records\n\n**Approved intent has stale evidence; touches 1 clause.**\n")
    assert "- `0001-letters` `R1` (edited): The first letter is a." in text
    assert "- row `letters`: law a is stale" in text
    assert "A change of approved intent or of its evidence is sensitive" in text
    title, summary = check_output(found)
    assert title == "Approved intent has stale evidence; touches 1 clause"
    assert "### " not in summary
    assert "<!-- graft:" not in text


@pytest.mark.parametrize("status", ["none", "fresh"])
def test_the_section_of_an_untouched_repository_is_one_line(base: dict[str, bytes], status: str) -> None:
    text = render_section(review(base, base) if status == "fresh" else review({}, {}))
    assert len(text.strip().split("\n")) == 3


def test_hostile_text_is_inert(repo: Any) -> None:
    hostile = "@everyone <!-- graft:end --> [x](http://evil) ![i](http://evil) </details> `code` #1"
    repo.edit(repo.record_path, "The first letter is a.", hostile)
    repo.judge()
    repo.manifest(name="<!-- graft:x --> @all | `y`")
    before = repo.files()
    repo.edit(repo.record_path, hostile, hostile + " more")
    found = review(before, repo.files())
    for text in (render_section(found), check_output(found)[1]):
        html = cmarkgfm.github_flavored_markdown_to_html(text)
        assert "<!--" not in text
        for made in ("<a ", "<img", "</details>"):
            assert made not in html


def test_a_section_stays_small(repo: Any) -> None:
    rules = "\n".join(f"R{n}: Rule {n} " + "@" * 2000 for n in range(1, 201))
    repo.edit(repo.record_path, "R1: The first letter is a.\nR2: The second letter is b.", rules)
    before = repo.files()
    repo.write(repo.record_path, repo.read(repo.record_path).replace("Rule", "Law"))
    assert len(render_section(review(before, repo.files()))) < 20_000
    assert len(check_output(review(before, repo.files()))[1]) < 60_000


@given(st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_it_never_raises(base: dict[str, bytes], data: st.DataObject) -> None:
    head = dict(base)
    for path in data.draw(st.lists(st.sampled_from(sorted(base)), max_size=3)):
        old = base[path]
        at = data.draw(st.integers(0, len(old)))
        head[path] = old[:at] + data.draw(st.binary(max_size=20)) + old[at + data.draw(st.integers(0, 40)) :]
    sides = data.draw(st.permutations([base, head]))
    found = review(sides[0], sides[1])
    assert found.status in ("fresh", "stale", "none")
    render_section(found)
