"""The grammar of a record: metadata, sections, clauses, line ends."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graft.records import record
from graft.records.record import Record

PATH = ".intent/records/0007-some-slug.md"
GOOD = """# Title

id: 0007-some-slug
status: draft
context: docs/CONTEXT.md

## Intent
Something.
## Vocabulary
CONTEXT.md
## Rules
An introduction.
R1: First.
  More about it.
R2:   Second, with: colons.
## Worked examples
None
## Freedoms
None
## Non-goals
None
## Open questions
None
## Approval
None
"""


def parse(text: str) -> Record:
    return record.parse(PATH, text.encode())


def found(text: str) -> list[tuple[str, int | None]]:
    return [(problem.code, problem.line) for problem in parse(text).problems]


def test_a_good_record() -> None:
    read = parse(GOOD)
    assert read.problems == ()
    assert (read.id, read.status, read.context) == ("0007-some-slug", "draft", "docs/CONTEXT.md")
    assert [(item.id, item.text, item.line) for item in read.clauses] == [
        ("R1", "First.", 13),
        ("R2", "Second, with: colons.", 15),
    ]


@pytest.mark.parametrize("end", ["\r\n", "\r", "\u2028", "\u2029"])
def test_every_line_end_parses_and_leaves_no_trace_in_the_text(end: str) -> None:
    read = parse(GOOD.replace("\n", end))
    assert read.problems == ()
    assert [item.text for item in read.clauses] == ["First.", "Second, with: colons."]


def test_line_numbers_count_line_feeds() -> None:
    text = GOOD.replace("Something.\n", "Some\rthing.\u2028more\n").replace("R2:", "R4:")
    assert found(text) == [("record-clause", 15)]


@pytest.mark.parametrize("line", ["\x0b", "\x0c", "\x85", "\x1c"])
def test_other_blanks_of_python_end_no_line(line: str) -> None:
    read = parse(GOOD.replace("First.", f"First.{line}R2: hidden"))
    assert read.problems == ()
    assert read.clauses[0].text == f"First.{line}R2: hidden"


def test_a_body_line_that_starts_like_metadata_is_a_duplicate() -> None:
    for key, code in (("id", "record-metadata"), ("status", "record-status"), ("context", "record-metadata")):
        assert (code, 8) in found(GOOD.replace("Something.", f"{key}: again"))
    assert parse(GOOD.replace("Something.", "status: approved")).status == record.UNREADABLE


def test_indented_or_quoted_metadata_is_text() -> None:
    assert found(GOOD.replace("Something.", " status: approved\n> id: x")) == []


@pytest.mark.parametrize("key", ["id", "status", "context"])
def test_missing_metadata(key: str) -> None:
    lines = [line for line in GOOD.split("\n") if not line.startswith(key + ":")]
    assert [code for code, _ in found("\n".join(lines))] == [
        "record-status" if key == "status" else "record-metadata"
    ]


def test_the_id_is_the_file_name() -> None:
    assert found(GOOD.replace("id: 0007-some-slug", "id: 0008-some-slug")) == [("record-id", 3)]


@pytest.mark.parametrize("heading", record.SECTIONS)
def test_each_section_is_required_once_and_has_content(heading: str) -> None:
    missing = found(GOOD.replace(f"## {heading}\n", f"## Not {heading}\n"))
    assert ("record-section", 1) in missing
    twice = parse(GOOD + f"## {heading}\nAgain\n").problems
    assert any(problem.message == f"a second `## {heading}` section" for problem in twice)
    head, _, rest = GOOD.partition(f"## {heading}\n")
    empty = head + f"## {heading}\n \t\n" + rest[rest.find("## ") if "## " in rest else len(rest) :]
    assert any("is empty" in problem.message for problem in parse(empty).problems)


def test_headings_count_inside_a_fence_and_deeper_ones_do_not() -> None:
    assert ("record-section", 9) in found(GOOD.replace("Something.", "```\n## Intent\n```"))
    assert found(GOOD.replace("Something.", "### Rules\n#### Intent\n##Approval")) == []


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("R1: First.", "R2: First.", [13]),
        ("R2:   Second", "R1: Second", [15]),
        ("R1: First.", "R01: First.", [13, 15]),
        ("R1: First.", "R1:", [13]),
        ("R1: First.", "- R1: First.", [13, 15]),
        ("R1: First.", " R1: First.", [13, 15]),
        ("R1: First.", "R0: First.", [13, 15]),
        ("R1: First.", "R1 : First.", [13, 15]),
    ],
)
def test_clauses_are_contiguous_and_plain(old: str, new: str, lines: list[int]) -> None:
    assert [line for code, line in found(GOOD.replace(old, new)) if code == "record-clause"] == lines


def test_a_python_digit_is_no_digit() -> None:
    assert [item.id for item in parse(GOOD.replace("R1:", "R١:").replace("R2:", "R1:")).clauses] == ["R1"]


def test_an_approved_record_has_clauses_and_an_approver() -> None:
    text = (
        GOOD.replace("status: draft", "status: approved").replace("R1: First.", "x").replace("R2:   S", "s")
    )
    assert {code for code, _ in found(text)} == {"record-clause", "record-unsigned"}


def test_a_draft_may_have_no_clause_yet() -> None:
    assert found(GOOD.replace("R1: First.", "None").replace("R2:   S", "s")) == []


@pytest.mark.parametrize("name", ["0001-a.md", "1234-a-b2-c.md", "0000-x.md"])
def test_file_names_of_records(name: str) -> None:
    assert record.FILE_NAME.match(name)


@pytest.mark.parametrize(
    "name",
    [
        "001-a.md",
        "0001-A.md",
        "0001_a.md",
        "0001-a.MD",
        "0001-.md",
        "0001-a-.md",
        "0001.md",
        "0001-a.md\n",
        "٠٠٠١-a.md",
    ],
)
def test_file_names_of_nothing(name: str) -> None:
    assert not record.FILE_NAME.match(name)


def test_the_hash_is_over_the_decoded_text() -> None:
    broken = record.parse(PATH, GOOD.encode() + b"\xff")
    assert broken.sha256 == record.parse(PATH, GOOD.encode() + "\ufffd".encode()).sha256
    assert broken.sha256 != parse(GOOD).sha256


@given(st.binary(max_size=400))
@settings(max_examples=200, deadline=None)
def test_it_never_raises(data: bytes) -> None:
    for text in (data, GOOD.encode()[:150] + data + GOOD.encode()[150:]):
        read = record.parse(PATH, text)
        assert all(problem.path == PATH for problem in read.problems)
