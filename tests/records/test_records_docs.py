"""docs/records.md says what the code does: repairs, commands, and requirements with the tests that prove them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from graft.records import headers
from graft.records.report import REPAIRS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "records.md").read_text(encoding="utf-8")
ELSEWHERE = {
    "pull": ROOT / "tests/actors/test_records.py",
    "card": ROOT / "tests/intent/test_intent_clauses.py",
}


def table(heading: str) -> list[list[str]]:
    """The cells of the table under a heading, without its head."""
    rows = []
    for line in TEXT[TEXT.index(heading) :].split("\n")[1:]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
        elif rows:
            break
    return rows[2:]


def known() -> set[str]:
    """Every test of the records, as the document names it."""
    found = set()
    files = {
        path.stem.removeprefix("test_records_"): path
        for path in sorted(Path(__file__).parent.glob("test_records_*.py"))
        if path != Path(__file__)
    }
    for short, path in (files | ELSEWHERE).items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                found.add(f"{short}:{node.name.removeprefix('test_')}")
    return found


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_failure_has_its_repair_in_the_documentation() -> None:
    rows = {
        names(code)[0]: (int(status), repair) for code, status, repair in table("### From failure to repair")
    }
    assert rows == dict(REPAIRS)


def test_every_failure_is_reported_by_some_code() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "graft/records").glob("*.py"))
    for code in REPAIRS:
        assert sources.count(f'"{code}"') > 1, code


def test_every_command_is_documented() -> None:
    documented = {names(row[0])[0].split()[0] for row in table("## Commands")}
    assert documented == {*headers.COMMANDS, "approve"}


def test_every_requirement_names_tests_that_exist_and_every_test_has_a_requirement() -> None:
    forward = {number: names(cell) for number, _, cell in table("## What is required")}
    assert all(forward.values())
    named = {name for listed in forward.values() for name in listed}
    assert named == known()


def test_both_tables_say_the_same() -> None:
    forward = {number: names(cell) for number, _, cell in table("## What is required")}
    backward = {names(name)[0]: numbers.split(", ") for name, numbers in table("### The same from the tests")}
    inverse: dict[str, list[str]] = {}
    for number, listed in forward.items():
        for name in listed:
            inverse.setdefault(name, []).append(number)
    assert backward == inverse


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        if "://" not in target:
            assert (ROOT / "docs" / target).exists(), target
