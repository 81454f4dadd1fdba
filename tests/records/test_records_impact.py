"""Impact: what an edit makes stale and why, with receipts or a commit as the baseline."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from graft.records import baseline, impact_command
from graft.records.history import History, HistoryError
from graft.records.report import Report
from graft.records.repository import load


def walk(repo: Any, since: str = "", only: str = "") -> tuple[int, list[str], Report]:
    """Exit code, texts and the report, as the command makes them."""
    report = Report("impact")
    now = load(repo.tree)
    history = History(repo.root)
    if since:
        items = baseline.by_tree(repo.tree, now, load(history.tree(since)), report, only)
    else:
        items = baseline.by_receipts(repo.tree, now, report, history.find, only)
    report.problems += baseline.problems(items)
    return report.exit, [item.text for item in items], report


@pytest.fixture
def committed(repo: Any) -> Any:
    """The fixture with a manifest, in git."""
    repo.manifest()
    repo.commit("first")
    return repo


def test_nothing_changed(committed: Any) -> None:
    assert walk(committed)[:2] == (0, [])
    assert walk(committed, "HEAD")[:2] == (0, [])


CLAUSE_CHAIN = [
    "receipt 0001-letters is stale: record edited",
    "clause R1: edited; it maps to law a",
    "law a is stale: clause R1 edited",
    'conform row "letters" is stale: law a is stale (clause R1 edited)',
    'oracle .intent/oracle/real.py is stale: conform row "letters" is stale: law a is stale (clause R1 edited)',
]


@pytest.mark.parametrize("since", ["", "HEAD~1"])
def test_an_edited_clause_has_a_reason_chain(committed: Any, since: str) -> None:
    committed.edit(committed.record_path, "The first letter", "The very first letter")
    committed.commit("edit")
    assert walk(committed, since)[:2] == (1, CLAUSE_CHAIN)


def test_an_edit_in_the_work_tree_counts_as_well(committed: Any) -> None:
    committed.edit(committed.record_path, "The first letter", "The very first letter")
    assert walk(committed)[1] == CLAUSE_CHAIN
    assert walk(committed, "HEAD")[1] == CLAUSE_CHAIN


def test_a_comment_in_shared_code_makes_only_the_receipt_stale(repo: Any) -> None:
    repo.commit()
    repo.edit(".intent/model/LAWS.bend", "# What is claimed.", "# What is claimed here.")
    status, texts, report = walk(repo)
    assert (status, texts) == (1, ["receipt 0001-letters is stale: LAWS.bend edited"])
    assert [(note.code, note.path) for note in report.notes] == [("manifest-missing", ".intent/conform.json")]


@pytest.mark.parametrize("since", ["", "HEAD~1"])
def test_an_edited_law(committed: Any, since: str) -> None:
    committed.edit(".intent/model/LAWS.bend", "2n == 2n", "3n == 3n")
    committed.commit("edit")
    assert walk(committed, since)[1] == [
        "receipt 0001-letters is stale: LAWS.bend edited",
        "law b is stale: law b edited",
        'conform row "letters" is stale: law b is stale (law b edited)',
        'oracle .intent/oracle/real.py is stale: conform row "letters" is stale: law b is stale (law b edited)',
    ]


def test_edited_shared_code_touches_every_surviving_law(committed: Any) -> None:
    committed.edit(".intent/model/LAWS.bend", "-> Nat:\n  x", "-> Nat:\n  Nat.add(x, x)")
    texts = walk(committed)[1]
    assert "law a is stale: shared code edited" in texts
    assert "law b is stale: shared code edited" in texts


def test_a_removed_law_that_a_row_still_names_is_reported(committed: Any) -> None:
    laws = committed.read(".intent/model/LAWS.bend")
    committed.write(".intent/model/LAWS.bend", laws[: laws.index("# R2")])
    texts = walk(committed)[1]
    assert "law b is stale: law b removed" in texts
    assert 'conform row "letters" is stale: law b is stale (law b removed)' in texts


def test_an_added_law(committed: Any) -> None:
    committed.write(
        ".intent/model/LAWS.bend",
        committed.read(".intent/model/LAWS.bend") + "\nlaw c:\n  {1n == 1n : Nat}\n",
    )
    assert "law c is stale: law c added" in walk(committed)[1]


def test_a_new_clause_is_stale_by_itself(committed: Any) -> None:
    committed.edit(
        committed.record_path, "R2: The second letter is b.", "R2: The second letter is b.\nR3: And so on."
    )
    assert "clause R3: is new: no receipt maps it" in walk(committed)[1]


def test_a_removed_clause_reaches_its_law(committed: Any) -> None:
    committed.edit(committed.record_path, "R2: The second letter is b.\n", "")
    texts = walk(committed)[1]
    assert "clause R2: removed; it maps to law b" in texts
    assert "law b is stale: clause R2 removed" in texts


def test_a_clause_that_maps_to_no_law(committed: Any) -> None:
    committed.judge({"coverage": {"R1": "none", "R2": "b"}, "fidelity": {"a": 1.0, "b": 1.0}})
    committed.commit("rejecting receipt")
    committed.edit(committed.record_path, "The first letter", "The very first letter")
    assert "clause R1: edited, and it maps to no law" in walk(committed)[1]


def test_an_edit_outside_the_clauses_makes_only_the_receipt_stale(committed: Any) -> None:
    committed.edit(committed.record_path, "Say which letter follows.", "Say which letter comes next.")
    assert walk(committed)[:2] == (1, ["receipt 0001-letters is stale: record edited"])


@pytest.mark.parametrize("since", ["", "HEAD"])
def test_a_missing_receipt_is_not_yet_checked_and_exits_1(committed: Any, since: str) -> None:
    committed.remove(committed.receipt_path)
    status, texts, report = walk(committed, since)
    assert (status, texts) == (1, ["receipt 0001-letters is not yet checked: there is no receipt"])
    assert [problem.code for problem in report.problems] == ["unchecked"]


def test_a_missing_manifest_is_not_yet_checked_when_a_law_is_stale(repo: Any) -> None:
    repo.commit()
    repo.edit(".intent/model/LAWS.bend", "2n == 2n", "3n == 3n")
    status, texts, report = walk(repo)
    assert (
        texts[-1] == ".intent/conform.json is not yet checked: there is no conformance row for the stale laws"
    )
    assert {problem.code for problem in report.problems} == {"stale", "unchecked"}
    assert status == 1


def test_a_missing_manifest_alone_is_a_note(repo: Any) -> None:
    status, _, report = walk(repo)
    assert status == 0
    assert [note.code for note in report.notes] == ["manifest-missing"]


def test_without_history_the_receipt_is_still_stale_and_a_note_says_what_is_missing(repo: Any) -> None:
    repo.manifest()
    repo.edit(repo.record_path, "The first letter", "The very first letter")
    status, texts, report = walk(repo)
    assert (status, texts) == (1, ["receipt 0001-letters is stale: record edited"])
    assert any("detail is unavailable" in note.message for note in report.notes)


def test_a_shallow_clone_finds_what_was_committed(committed: Any, tmp_path: Any) -> None:
    committed.edit(committed.record_path, "The first letter", "The very first letter")
    committed.commit("edit")
    subprocess.run(
        ["git", "clone", "-q", "--depth", "1", f"file://{committed.root}", str(tmp_path / "shallow")],
        check=True,
    )
    shallow = type(committed)(tmp_path / "shallow")
    status, texts, report = walk(shallow)
    assert (status, texts) == (1, ["receipt 0001-letters is stale: record edited"])
    assert any("detail is unavailable" in note.message for note in report.notes)


def test_a_reformatted_receipt_hides_and_invents_nothing(committed: Any) -> None:
    committed.write(committed.receipt_path, json.dumps(committed.receipt(), indent=2))
    committed.commit("format")
    assert walk(committed)[:2] == (0, [])
    committed.edit(committed.record_path, "The first letter", "The very first letter")
    committed.commit("edit")
    assert walk(committed)[1] == CLAUSE_CHAIN


def test_a_receipt_committed_apart_from_its_record(committed: Any) -> None:
    committed.edit(committed.record_path, "The first letter", "The very first letter")
    committed.commit("record")
    committed.judge()
    committed.commit("receipt")
    assert walk(committed)[:2] == (0, [])
    status, texts, report = walk(committed, "HEAD~2")
    assert status == 1
    assert texts == CLAUSE_CHAIN[1:]
    assert any("made anew" in note.message for note in report.notes)


def test_a_deleted_approved_record(committed: Any) -> None:
    committed.remove(committed.record_path)
    status, texts, _ = walk(committed, "HEAD")
    assert status == 1
    assert "receipt 0001-letters is stale: record deleted" in texts
    assert "clause R1: removed; it maps to law a" in texts


def test_approved_to_draft_still_counts_with_a_commit_as_baseline(committed: Any) -> None:
    committed.edit(committed.record_path, "status: approved", "status: draft")
    assert walk(committed, "HEAD")[:2] == (1, ["receipt 0001-letters is stale: record edited"])


def test_a_receipt_without_a_record_is_a_note(committed: Any) -> None:
    committed.write(".intent/receipts/0009-gone.json", "{}")
    assert load(committed.tree).notes[0].message == "is a receipt without a record"
    assert walk(committed)[0] == 0


def test_only_top_level_files_count(committed: Any) -> None:
    committed.write(".intent/records/old/0002-old.md", "status: approved\n")
    committed.write(".intent/receipts/old/0002-old.json", "{")
    assert walk(committed)[0] == 0


def test_schema_2_answers_map_clauses_too(modular: Any) -> None:
    modular.manifest()
    modular.commit()
    modular.edit(modular.record_path, "The second letter", "The very second letter")
    assert "law b is stale: clause R2 edited" in walk(modular)[1]


def test_record_limits_the_walk(committed: Any) -> None:
    committed.edit(committed.record_path, "The first letter", "The very first letter")
    assert walk(committed, only="0001-letters")[0] == 1
    assert walk(committed, only="0002-other")[0] == 0


@pytest.mark.parametrize(
    ("path", "content", "code"),
    [
        (".intent/conform.json", "{", "manifest-malformed"),
        (".intent/receipts/0001-letters.json", "{", "receipt-malformed"),
        (".intent/model/LAWS.bend", "law a:\n\u00a0\n", "layout"),
    ],
)
def test_a_malformed_link_exits_2(committed: Any, path: str, content: str, code: str) -> None:
    committed.write(path, content)
    status, _, report = walk(committed)
    assert status == 2
    assert code in {problem.code for problem in report.problems}


def test_a_malformed_record_exits_2(committed: Any) -> None:
    committed.edit(committed.record_path, "## Freedoms\n", "")
    status, _, report = walk(committed)
    assert status == 2
    assert "record-section" in {problem.code for problem in report.problems}


@pytest.mark.parametrize("ref", ["no-such-ref", "--upload-pack=touch owned", "HEAD:CONTEXT.md", "", "HEAD\n"])
def test_a_bad_ref_exits_2(committed: Any, ref: str) -> None:
    with pytest.raises(HistoryError):
        History(committed.root).tree(ref)


def test_no_git_here(repo: Any) -> None:
    with pytest.raises(HistoryError):
        History(repo.root).tree("HEAD")


def test_the_command_prints_items_and_exits(committed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    committed.edit(committed.record_path, "The first letter", "The very first letter")
    assert impact_command.main([str(committed.root), "--json", "--since", "HEAD"]) == 1
    value = json.loads(capsys.readouterr().out)
    assert [item["kind"] for item in value["impact"]] == ["receipt", "clause", "law", "row", "oracle"]
    assert impact_command.main([str(committed.root), "--since", "nothing"]) == 2
    assert impact_command.main([str(committed.root), "--record", "0009-x"]) == 2
    assert impact_command.main([str(committed.root / "gone")]) == 2


def test_a_repository_below_the_git_root(committed: Any, tmp_path: Any) -> None:
    outer = type(committed)(tmp_path / "outer")
    outer.write("README", "x")
    (tmp_path / "outer" / "inner").mkdir()
    for path, data in committed.files().items():
        outer.write(f"inner/{path}", data)
    outer.commit()
    inner = type(committed)(tmp_path / "outer" / "inner")
    inner.edit(inner.record_path, "The first letter", "The very first letter")
    assert walk(inner)[1] == CLAUSE_CHAIN
    assert walk(inner, "HEAD")[1] == CLAUSE_CHAIN


def test_git_is_asked_without_a_shell_or_a_network(committed: Any) -> None:
    History(committed.root).find("; touch owned", "0" * 64)
    assert not (committed.root / "owned").exists()
