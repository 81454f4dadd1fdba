"""Modules: assignment of clauses and laws, the slices a judge sees, and schema 2 receipts."""

from __future__ import annotations

from typing import Any

import pytest

from graft.records import canonical, modules, receipts
from graft.records.repository import load


def resolve(repo: Any) -> modules.Resolution:
    intent = load(repo.tree)
    return intent.resolution(intent.records[repo.record_id])


def replace_modules(repo: Any, lines: str) -> modules.Resolution:
    head, _, rest = repo.read(repo.record_path).partition("## Modules\n")
    tail = rest[rest.index("## Worked examples") :]
    repo.write(repo.record_path, head + "## Modules\n\n" + lines + "\n" + tail)
    return resolve(repo)


def test_clauses_as_written_and_laws_pattern_by_pattern(modular: Any) -> None:
    found = replace_modules(modular, "- all: R2, R1; laws: b, a*")
    assert found.problems == ()
    assert found.modules == (modules.Module("all", ("R2", "R1"), ("b", "a")),)
    assert replace_modules(modular, "- all: R1-R2; laws: *").modules[0].laws == ("a", "b")


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ("- first: R1; laws: a", "modules-assignment"),
        ("- first: R1-R2; laws: a", "modules-assignment"),
        ("- first: R1; laws: a, b", "modules-assignment"),
        ("- first: R1-R3; laws: a, b", "modules-assignment"),
        ("- first: R1-R2; laws: a, b, c", "modules-assignment"),
        ("- first: R1-R2; laws: a, b, c*", "modules-assignment"),
        ("- first: R1-R2; laws: a, a*, b", "modules-assignment"),
        ("- first: R1-R2, R1; laws: a, b", "modules-assignment"),
        ("- first: R1; laws: a\n- second: R1-R2; laws: b", "modules-assignment"),
        ("- first: R1; laws: a\n- first: R2; laws: b", "modules-syntax"),
        ("- First: R1-R2; laws: a, b", "modules-syntax"),
        ("- 1st: R1-R2; laws: a, b", "modules-syntax"),
        ("- " + "f" * 65 + ": R1-R2; laws: a, b", "modules-syntax"),
        ("- first: R2-R1; laws: a, b", "modules-syntax"),
        ("- first: R1-R1, R2; laws: a, b", "modules-syntax"),
        ("- first: R01, R2; laws: a, b", "modules-syntax"),
        ("- first: R1, ; laws: a, b", "modules-syntax"),
        ("- first: R1-R2; laws: a, ", "modules-syntax"),
        ("- first: R1-R2; laws: *a, b", "modules-syntax"),
        ("first: R1-R2; laws: a, b", "modules-syntax"),
        ("some prose", "modules-syntax"),
    ],
)
def test_refused_assignments(modular: Any, lines: str, code: str) -> None:
    problems = replace_modules(modular, lines).problems
    assert code in {problem.code for problem in problems}
    assert all(problem.line and problem.line >= 19 for problem in problems)


def test_an_assignment_that_rejects_exits_1_and_bad_syntax_exits_2(modular: Any) -> None:
    replace_modules(modular, "- first: R1; laws: a")
    assert modular.check().exit == 1
    replace_modules(modular, "nothing")
    assert modular.check().exit == 2


def test_an_empty_section_declares_nothing(modular: Any) -> None:
    assert {problem.code for problem in replace_modules(modular, "").problems} == {
        "modules-syntax",
        "modules-assignment",
    }


@pytest.mark.parametrize(
    "inserted",
    ["R1: The first letter is a.\nA continuation.", "R1: The first letter is a.\n### Later"],
)
def test_text_between_or_after_rules_is_refused(modular: Any, inserted: str) -> None:
    modular.edit(modular.record_path, "R1: The first letter is a.", inserted)
    assert [(item.code, item.line) for item in resolve(modular).problems] == [("modules-rules", 18)]
    assert modular.check().exit == 2


def test_blank_lines_between_rules_are_shared(modular: Any) -> None:
    modular.edit(modular.record_path, "R1: The first letter is a.", "R1: The first letter is a.\n")
    assert resolve(modular).problems == ()


@pytest.mark.parametrize("end", ["\r", "\u2028", "\u2029"])
def test_line_ends_that_parser_and_slicer_read_differently_are_refused(modular: Any, end: str) -> None:
    modular.edit(modular.record_path, "Say which", f"Say{end}which")
    assert [item.code for item in resolve(modular).problems] == ["modules-lines"]


def test_crlf_records_slice(modular: Any) -> None:
    modular.write(modular.record_path, modular.read(modular.record_path).replace("\n", "\r\n"))
    found = resolve(modular)
    assert found.problems == ()
    intent = load(modular.tree)
    state = modules.state(intent.records[modular.record_id], found.modules[0])
    assert "R1: The first letter is a.\r\n" in state
    assert "R2:" not in state


def test_a_state_keeps_the_introduction_and_drops_other_rules_and_the_modules_section(modular: Any) -> None:
    modular.edit(modular.record_path, "R1: The first", "These rules are about letters.\n\nR1: The first")
    modular.judge()
    intent = load(modular.tree)
    record = intent.records[modular.record_id]
    first, second = resolve(modular).modules
    states = [modules.state(record, module) for module in (first, second)]
    assert all("These rules are about letters." in state for state in states)
    assert all("## Modules" not in state and "laws: a" not in state for state in states)
    assert ["R1:" in state for state in states] == [True, False]
    assert ["R2:" in state for state in states] == [False, True]
    assert all("## Worked examples" in state and "approved-by: Ada Lovelace" in state for state in states)
    kept = [line for line in record.text.split("\n") if not line.startswith("R2:")]
    start, end = kept.index("## Modules"), kept.index("## Worked examples")
    assert states[0] == "\n".join(kept[:start] + kept[end:])


def test_the_state_hash_is_over_record_and_laws(modular: Any) -> None:
    intent = load(modular.tree)
    assert intent.laws
    record = intent.records[modular.record_id]
    first = resolve(modular).modules[0]
    shown = {"record": modules.state(record, first), "laws": intent.laws.state(["a"])}
    entry = modular.receipt()["modules"]["first"]
    assert entry["stateSha256"] == canonical.sha256(canonical.dumps(shown))
    assert "law b" not in shown["laws"]
    assert "def twice" in shown["laws"]
    assert set(entry) == {"clauses", "laws", "stateSha256", "questions", "answers", "verdict"}
    assert set(modular.receipt()) == {*receipts.COMMON, "modules"}


def test_coverage_offers_only_the_laws_of_the_module(modular: Any) -> None:
    entry = modular.receipt()["modules"]["first"]
    assert set(entry["questions"]["coverage"]["R1"]["criteria"]) == {"a", "none"}
    assert set(entry["questions"]["fidelity"]) == {"a"}


def test_schema_and_modules_have_to_agree(repo: Any, modular: Any) -> None:
    value = modular.read(modular.receipt_path)
    replaced = modular.read(modular.record_path)
    start = replaced.index("## Modules")
    modular.write(modular.record_path, replaced[:start] + replaced[replaced.index("## Worked") :])
    schema1_record = load(modular.tree).records[modular.record_id]
    modular.write(modular.receipt_path, value)
    modular.reseal(lambda receipt: receipt.update(recordSha256=schema1_record.sha256))
    report = modular.check()
    assert report.exit == 1
    assert "schema 2, but the record declares no modules" in report.problems[0].message
    modular.judge()
    schema1 = modular.read(modular.receipt_path)
    modular.write(modular.record_path, replaced)
    modular.write(modular.receipt_path, schema1)
    modular.reseal(
        lambda receipt: receipt.update(recordSha256=load(modular.tree).records[modular.record_id].sha256)
    )
    assert "schema 1, but the record declares modules" in modular.check().problems[0].message


def test_one_rejecting_module_rejects_the_receipt(modular: Any) -> None:
    modular.judge({"coverage": {"R1": "a", "R2": "b"}, "fidelity": {"a": 1.0, "b": 0.89}})
    value = modular.receipt()
    assert value["verdict"] == "reject"
    assert [value["modules"][name]["verdict"] for name in ("first", "second")] == ["pass", "reject"]
    report = modular.check()
    assert report.exit == 1
    assert any("module second: law b: fidelity" in problem.message for problem in report.problems)


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry.update(clauses=["R2"]),
        lambda entry: entry.update(laws=["b"]),
        lambda entry: entry.update(stateSha256="0" * 64),
        lambda entry: entry.update(verdict="reject"),
        lambda entry: entry["questions"]["coverage"]["R1"].update(instructions="Choose a."),
        lambda entry: entry["questions"]["fidelity"]["a"]["criteria"].update(true="Always."),
    ],
)
def test_resealed_edits_of_a_module_are_found(modular: Any, change: Any) -> None:
    modular.reseal(lambda value: change(value["modules"]["first"]))
    report = modular.check()
    assert report.exit == 1
    assert {problem.code for problem in report.problems} <= {"receipt-disagrees"}


def test_a_module_too_few_or_too_many(modular: Any) -> None:
    modular.reseal(lambda value: value["modules"].pop("second"))
    assert modular.check().exit == 1
    modular.reseal(lambda value: value["modules"].update(third=value["modules"]["first"]))
    assert modular.check().exit == 1


def test_changing_the_modules_makes_the_record_stale(modular: Any) -> None:
    modular.edit(modular.record_path, "laws: b*", "laws: b")
    assert [problem.code for problem in modular.check().problems] == ["receipt-stale-record"]
