"""`check`: the lifecycle of a record, its approval and its receipt, with exit codes and places."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graft.records import canonical
from graft.records.report import Report


def codes(report: Report) -> list[str]:
    return [problem.code for problem in report.problems]


def test_the_fixture_passes(repo: Any) -> None:
    report = repo.check()
    assert (report.exit, report.problems, report.notes) == (0, [], [])


def test_a_record_with_modules_passes(modular: Any) -> None:
    assert modular.receipt()["schema"] == 2
    assert modular.check().exit == 0


def test_line_ends_changed_after_the_receipt_make_the_record_stale(repo: Any) -> None:
    repo.write(repo.record_path, repo.read(repo.record_path).replace("\n", "\r\n"))
    report = repo.check()
    assert report.exit == 1
    assert codes(report) == ["receipt-stale-record"]
    assert "stale record" in report.problems[0].message


def test_true_is_no_probability(repo: Any) -> None:
    repo.reseal(lambda value: value["answers"]["fidelity"]["a"].update(noul=True))
    report = repo.check()
    assert report.exit == 2
    assert codes(report) == ["receipt-malformed"]
    assert "$.answers.fidelity.a.noul" in report.problems[0].message


def test_a_pretty_printed_receipt_passes(repo: Any) -> None:
    repo.write(repo.receipt_path, json.dumps(repo.receipt(), indent=4))
    assert repo.check().exit == 0


def test_a_stored_receipt_is_canonical_text_and_one_newline(repo: Any) -> None:
    assert repo.read(repo.receipt_path) == canonical.dumps(repo.receipt()) + "\n"


@pytest.mark.parametrize(
    ("status", "expected"),
    [("draft", 0), ("descriptive", 0), ("approved", 0), ("proposed", 2), ("", 2), ("Approved", 2)],
)
def test_status(repo: Any, status: str, expected: int) -> None:
    repo.edit(repo.record_path, "status: approved", f"status: {status}")
    if status == "approved":
        repo.judge()
    report = repo.check()
    assert report.exit == expected
    if expected:
        assert codes(report) == ["record-status"]
        assert report.problems[0].line == 4


def test_a_broken_draft_rejects_nothing_unless_it_is_asked_about(repo: Any) -> None:
    repo.write(
        ".intent/records/0002-broken.md",
        "id: 0002-broken\nstatus: draft\ncontext: ./CONTEXT.md\n\n## Rules\n",
    )
    report = repo.check()
    assert report.exit == 0
    assert {note.path for note in report.notes} == {".intent/records/0002-broken.md"}
    named = repo.check("0002-broken")
    assert named.exit == 2
    assert len(named.problems) == 8  # seven sections that are missing, one that is empty


def test_a_broken_approved_record_rejects_even_when_others_pass(repo: Any) -> None:
    repo.write(".intent/records/0002-broken.md", "id: 0002-broken\nstatus: approved\ncontext: ./CONTEXT.md\n")
    report = repo.check()
    assert report.exit == 2
    assert {problem.record for problem in report.problems} == {"0002-broken"}
    assert repo.check(repo.record_id).exit == 0


def test_other_files_in_the_records_folder_are_noted(repo: Any) -> None:
    for name in ("README.md", "1-short.md", "0003-Upper.md", "notes.txt", "0004-a.md.bak"):
        repo.write(f".intent/records/{name}", "status: approved\n")
    report = repo.check()
    assert report.exit == 0
    assert len(report.notes) == 5


@pytest.mark.parametrize("name", ["", "<human>", "<your name>", "None", "TODO", "tbd", "-", "…"])
def test_approved_by_nobody_is_refused(repo: Any, name: str) -> None:
    repo.edit(repo.record_path, "approved-by: Ada Lovelace", f"approved-by: {name}")
    repo.judge()
    report = repo.check()
    assert (report.exit, codes(report)) == (2, ["record-unsigned"])


def test_missing_approval_line_is_refused(repo: Any) -> None:
    repo.edit(repo.record_path, "approved-by: Ada Lovelace", "Ada said yes.")
    repo.judge()
    assert codes(repo.check()) == ["record-unsigned"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("{hash}", 0),
        ("  {hash} \r\n\n", 0),
        ("{hash}  LAWS.bend\n", 2),
        ("{HASH}\n", 2),
        ("", 2),
        ("0" * 64 + "\n", 1),
    ],
)
def test_laws_sha256(repo: Any, content: str, expected: int) -> None:
    digest = canonical.sha256(repo.read(".intent/model/LAWS.bend"))
    repo.write(
        ".intent/model/laws.sha256", content.replace("{hash}", digest).replace("{HASH}", digest.upper())
    )
    report = repo.check()
    assert report.exit == expected
    assert codes(report) == {0: [], 1: ["approval-stale"], 2: ["approval-malformed"]}[expected]


def test_missing_parts_of_an_approved_record_are_malformed(repo: Any) -> None:
    for path, code in (
        (".intent/model/laws.sha256", "approval-missing"),
        (repo.receipt_path, "receipt-missing"),
        (".intent/model/LAWS.bend", "laws-missing"),
    ):
        repo.remove(path)
        report = repo.check()
        assert report.exit == 2
        assert code in codes(report)
        assert all(problem.repair for problem in report.problems)


def test_a_draft_needs_no_model(repo: Any) -> None:
    repo.edit(repo.record_path, "status: approved", "status: draft")
    for path in (".intent/model/LAWS.bend", ".intent/model/laws.sha256", repo.receipt_path):
        repo.remove(path)
    assert repo.check().exit == 0


def test_changed_laws_make_approval_and_receipt_stale_and_impact_is_appended(repo: Any) -> None:
    repo.edit(".intent/model/LAWS.bend", "twice(1n) == 1n", "twice(1n) == 2n")
    report = repo.check()
    assert report.exit == 1
    assert sorted(codes(report)) == ["approval-stale", "receipt-stale-laws"]
    assert report.lines == ["receipt 0001-letters is stale: LAWS.bend edited"]


def test_a_proof_only_edit_changes_no_claim(repo: Any) -> None:
    repo.edit(".intent/model/PROOF.bend", "import Base\n", "import Base\n# another comment\n")
    assert repo.check().exit == 0


def test_every_approved_record_covers_the_whole_model(repo: Any) -> None:
    repo.write(
        ".intent/model/LAWS.bend", repo.read(".intent/model/LAWS.bend") + "\nlaw c:\n  {3n == 3n : Nat}\n"
    )
    repo.approve_laws()
    answers = {"coverage": {"R1": "a", "R2": "b"}, "fidelity": {"a": 1.0, "b": 1.0, "c": 1.0}}
    repo.judge(answers)
    report = repo.check()
    assert report.exit == 1
    assert any("law c is selected by no clause" in problem.message for problem in report.problems)


def test_two_wins_over_one(repo: Any) -> None:
    repo.write(".intent/model/laws.sha256", "0" * 64)
    repo.edit(repo.record_path, "approved-by: Ada Lovelace", "approved-by: None")
    report = repo.check()
    assert report.exit == 2
    assert {1, 2} == {problem.exit for problem in report.problems}


def test_everything_is_reported_at_once_with_place_and_repair(repo: Any) -> None:
    repo.edit(repo.record_path, "R2: The second", "R3: The second")
    repo.edit(repo.record_path, "## Freedoms\n\nNone", "## Freedoms")
    repo.edit(".intent/model/LAWS.bend", "law b:", "law none:")
    repo.write(".intent/model/laws.sha256", "nothing")
    report = repo.check()
    assert report.exit == 2
    found = {(problem.code, problem.path.rsplit("/", 1)[-1], problem.line) for problem in report.problems}
    assert {
        ("record-clause", "0001-letters.md", 18),
        ("record-section", "0001-letters.md", 24),
        ("laws-duplicate", "LAWS.bend", 12),
        ("approval-malformed", "laws.sha256", 1),
    } <= found
    text = report.text()
    assert text.count("repair: ") == len(report.problems)
    assert ".intent/records/0001-letters.md:18: record-clause: R3 stands where R2 is expected" in text


def test_json_output_has_the_same_content(repo: Any) -> None:
    repo.remove(repo.receipt_path)
    value = json.loads(repo.check().as_json())
    assert value["exit"] == 2
    assert value["problems"][0]["path"] == repo.receipt_path
    assert value["problems"][0]["repair"].startswith("Run `graft records receipt")
    assert value["impact"] == [
        {
            "kind": "receipt",
            "name": "0001-letters",
            "reason": "there is no receipt",
            "record": "0001-letters",
            "unchecked": True,
        }
    ]


def test_an_unknown_record_is_named(repo: Any) -> None:
    report = repo.check("0009-nothing")
    assert codes(report) == ["record-unknown"]


def test_symlinks_are_refused(repo: Any) -> None:
    target = repo.root / "elsewhere.md"
    target.write_text(repo.read(repo.record_path))
    repo.remove(repo.record_path)
    (repo.root / repo.record_path).symlink_to(target)
    report = repo.check()
    assert report.exit == 2
    assert codes(report) == ["symlink"]


def test_a_symlinked_folder_is_refused(repo: Any) -> None:
    folder = repo.root / ".intent" / "records"
    folder.rename(repo.root / "records")
    folder.symlink_to(repo.root / "records")
    assert codes(repo.check()) == ["symlink"]


def test_a_missing_vocabulary_is_noted(repo: Any) -> None:
    repo.remove("CONTEXT.md")
    report = repo.check()
    assert report.exit == 0
    assert [note.code for note in report.notes] == ["record-context"]


@pytest.mark.parametrize("value", ["../CONTEXT.md", "/etc/CONTEXT.md", "./context.md", "", "..\\CONTEXT.md"])
def test_context_stays_in_the_repository(repo: Any, value: str) -> None:
    repo.edit(repo.record_path, "context: ./CONTEXT.md", f"context: {value}")
    assert "record-context" in codes(repo.check())


def test_hostile_names_cannot_reach_the_terminal(repo: Any) -> None:
    repo.write(".intent/records/evil\x1b[31m\u202e.md", "x")
    text = repo.check().text()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\\x1b[31m\\u202e" in text
