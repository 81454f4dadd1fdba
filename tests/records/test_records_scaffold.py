"""`init`: a complete draft that passes its own check, stays under `.intent/` and touches nothing that exists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from graft.records import check, conform, gate, inventory, manifest, scaffold
from graft.records.files import DiskTree


def test_a_fresh_scaffold_is_complete_and_passes_as_a_draft(tmp_path: Path) -> None:
    report = scaffold.run(tmp_path)
    assert report.exit == 0
    checked = check.run(DiskTree(tmp_path), None, "0001-first-decision")
    assert (checked.exit, checked.problems, checked.notes) == (0, [], [])
    listed = inventory.run(DiskTree(tmp_path))
    assert listed.exit == 0
    laws: Any = listed.data["laws"]
    assert all(law["status"] == "defined" and law["negative"] for law in laws)


def test_everything_it_makes_is_below_the_hidden_folder(tmp_path: Path) -> None:
    scaffold.run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".intent"]


def test_no_file_that_it_names_is_missing(tmp_path: Path) -> None:
    scaffold.run(tmp_path)
    found = manifest.parse(
        (tmp_path / ".intent/conform.json").read_bytes(), ["stopped_refused", "active_allowed"]
    )
    assert found.problems == ()
    for program in manifest.PROGRAMS:
        assert (tmp_path / found.checks[0].argv(program)[1]).is_file()
    assert (tmp_path / ".intent/CONTEXT.md").is_file()


def test_a_vocabulary_that_exists_is_cited(tmp_path: Path) -> None:
    (tmp_path / "CONTEXT.md").write_text("# Words\n")
    scaffold.run(tmp_path)
    assert "context: ./CONTEXT.md\n" in (tmp_path / ".intent/records/0001-first-decision.md").read_text()
    assert not (tmp_path / ".intent/CONTEXT.md").exists()
    assert check.run(DiskTree(tmp_path), None).notes == []


def test_it_is_no_approval_and_no_working_oracle(tmp_path: Path) -> None:
    scaffold.run(tmp_path)
    assert not (tmp_path / ".intent/model/laws.sha256").exists()
    assert not (tmp_path / ".intent/receipts").exists()
    report = conform.run(tmp_path, {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
    assert report.exit in (1, 2)
    assert any("`real`" in problem.message for problem in report.problems)


def test_the_model_passes_the_gate(tmp_path: Path, bend_env: dict[str, str]) -> None:
    scaffold.run(tmp_path)
    report = gate.run(tmp_path, bend_env)
    assert report.problems == []


def test_existing_files_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / ".intent/model").mkdir(parents=True)
    (tmp_path / ".intent/model/LAWS.bend").write_text("# mine\n")
    report = scaffold.run(tmp_path)
    assert report.exit == 0
    assert [note.path for note in report.notes] == [".intent/model/LAWS.bend"]
    assert (tmp_path / ".intent/model/LAWS.bend").read_text() == "# mine\n"


def test_a_repository_with_records_gets_none(repo: Any) -> None:
    before = repo.files()
    assert [problem.code for problem in scaffold.run(repo.root).problems] == ["exists"]
    assert repo.files() == before


def test_nothing_is_written_through_a_symlink(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo/.intent").symlink_to(tmp_path / "target")
    assert scaffold.run(tmp_path / "repo").exit == 2
    assert list((tmp_path / "target").iterdir()) == []


def test_the_command(tmp_path: Path, capsys: Any) -> None:
    assert scaffold.main([str(tmp_path), "--json"]) == 0
    assert ".intent/model/LAWS.bend" in json.loads(capsys.readouterr().out)["written"]
    assert scaffold.main([str(tmp_path / "gone")]) == 2
