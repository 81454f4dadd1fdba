"""`graft records`: the commands, their help and exit codes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from graft.cli.main import main
from graft.records import headers
from graft.records.report import MAX_PRINTED, REPAIRS, Problem, Report, printable

COMMANDS = [*headers.COMMANDS, "approve"]


def run(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["records", *arguments])


def test_the_commands_are_listed() -> None:
    shown = run("--help").output
    assert all(f"  {command} " in shown for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_json(command: str) -> None:
    done = run(command, "--help")
    assert done.exit_code == 0
    assert f"usage: graft records {command}" in done.output
    assert "--json" in done.output
    assert "Exit 2: malformed" in done.output.replace("\n", " ")


@pytest.mark.parametrize("command", ["check", "gate", "conform", "impact"])
def test_record_is_an_option_of_the_commands_about_records(command: str) -> None:
    assert "--record ID" in run(command, "--help").output


def test_exit_codes_reach_the_shell(repo: Any) -> None:
    assert run("check", str(repo.root)).exit_code == 0
    assert run("check", "--json", "--record", "0001-letters", str(repo.root)).exit_code == 0
    repo.edit(repo.record_path, "The first", "The very first")
    assert run("check", str(repo.root)).exit_code == 1
    assert run("check", str(repo.root / "gone")).exit_code == 2
    assert run("check", "--nonsense").exit_code == 2
    assert run("nonsense").exit_code == 2
    for command in ("gate", "conform", "inventory"):
        assert run(command, str(repo.root / "gone")).exit_code == 2


def test_json_is_one_object(repo: Any) -> None:
    value = json.loads(run("inventory", str(repo.root), "--json").output)
    assert value["command"] == "inventory"
    assert [law["id"] for law in value["laws"]] == ["a", "b"]
    assert value["laws"][0] == {
        "id": "a",
        "line": 8,
        "status": "defined",
        "proofLine": 4,
        "negative": ".intent/model/neg/a.bend",
    }


def test_inventory_knows_no_law_in_a_comment_with_a_lone_cr(repo: Any) -> None:
    repo.edit(".intent/model/LAWS.bend", "# What is claimed.", "# What is claimed.\rlaw ghost:")
    done = run("inventory", str(repo.root))
    assert done.exit_code == 0
    assert "ghost" not in done.output


def test_inventory_says_what_is_open_and_does_not_judge(repo: Any) -> None:
    repo.edit(".intent/model/PROOF.bend", "def M.b():\n  {==}\n", "")
    repo.edit(".intent/model/PROOF.bend", "{==}", "?TODO")
    done = run("inventory", str(repo.root))
    assert done.exit_code == 0
    assert "law b: open; .intent/model/neg/b.bend" in done.output


def test_inventory_of_a_broken_model_exits_2(repo: Any) -> None:
    repo.write(".intent/model/Other.bend", "  def f(x):\n")
    assert run("inventory", str(repo.root)).exit_code == 2
    repo.remove(".intent/model/Other.bend")
    repo.remove(".intent/model/LAWS.bend")
    assert run("inventory", str(repo.root)).exit_code == 2


def test_receipt_through_the_command(repo: Any) -> None:
    repo.write("answers.json", '{"coverage": {"R1": "a", "R2": "b"}, "fidelity": {"a": 1, "b": 1}}')
    done = run("receipt", str(repo.root), "0001-letters", "scripted/x", "--answers", "answers.json")
    assert done.exit_code == 0
    assert "wrote .intent/receipts/0001-letters.json: pass, judged by scripted/x" in done.output
    assert run("receipt", "one").exit_code == 2
    assert run("receipt", str(repo.root), "0001-letters", "gpt-9").exit_code == 2


def test_every_repair_has_an_exit_code_and_a_sentence() -> None:
    for code, (status, repair) in REPAIRS.items():
        assert status in (1, 2), code
        assert repair.endswith("."), code


def test_a_report_is_bounded_and_counts_everything() -> None:
    report = Report("check")
    for number in range(2 * MAX_PRINTED):
        report.add("stale", f"problem {number}", f"file{number}")
    assert report.text().count("repair:") == MAX_PRINTED
    assert f"({2 * MAX_PRINTED} problems)" in report.text()
    assert report.exit == 1


def test_equal_problems_are_printed_once() -> None:
    report = Report("check", problems=[Problem("stale", "x")] * 2)
    assert report.text().count("repair:") == 1


def test_control_characters_are_shown() -> None:
    assert printable("a\x1b[0m\u202eb\n") == "a\\x1b[0m\\u202eb\\n"
