"""The worked example of the documentation: its evidence holds, and it is compared with the function that ships."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from graft.records import check, conform, gate, inventory, receipt_command
from graft.records.files import DiskTree
from graft.risk import Risk, highest

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "records"
RECORD = "0001-final-risk"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A copy, because the gate writes probes beside the model."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "example"))


def rows(name: str) -> list[str]:
    """The rows that a Bend program of the example says it prints."""
    lines = (EXAMPLE / ".intent/model" / name).read_text(encoding="utf-8").split("\n")
    return [line[3:] for line in lines if line.startswith("#| ")]


def test_its_evidence_is_fresh() -> None:
    report = check.run(DiskTree(EXAMPLE), None)
    assert (report.exit, report.problems, report.notes) == (0, [], [])
    listed = inventory.run(DiskTree(EXAMPLE))
    assert listed.exit == 0
    assert all("defined" in line and "neg/" in line for line in listed.lines[:4])


def test_the_receipt_is_a_scripted_fixture_that_can_be_made_again(example: Path) -> None:
    path = example / f".intent/receipts/{RECORD}.json"
    before = path.read_bytes()
    path.unlink()
    report = receipt_command.run(
        example,
        RECORD,
        "scripted/fixture-20261201",
        answers="answers.json",
        dry_run=False,
        reuse=False,
        routes={},
    )
    assert report.exit == 0
    assert path.read_bytes() == before
    assert b'"model":"scripted/' in before


def test_the_rows_are_every_case_of_the_shipped_function() -> None:
    expected = [
        f"{floor}/{said or 'silent'} {highest(floor, said)}" for floor in Risk for said in (None, *Risk)
    ]
    assert rows("Rows.bend") == expected
    assert sorted(rows("Broken.bend")) != sorted(expected)


def test_the_gate_passes(example: Path, bend_env: dict[str, str]) -> None:
    report = gate.run(example, bend_env)
    assert report.problems == []


def test_conformance_calls_the_shipped_function(
    example: Path, bend_env: dict[str, str], tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "python3").symlink_to(sys.executable)
    env = {
        **bend_env,
        "PATH": f"{programs}{os.pathsep}{bend_env['PATH']}",
        "PYTHONPATH": str(EXAMPLE.parents[2]),
    }
    report = conform.run(example, env, require_coverage=True)
    assert (report.exit, report.problems, report.notes) == (0, [], [])


def test_conformance_finds_a_function_that_lowers_the_floor(
    example: Path, standin: dict[str, str], tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "python3").symlink_to(sys.executable)
    oracle = example / ".intent/oracle/final_risk.py"
    oracle.write_text(oracle.read_text().replace("highest(floor, said)", "said or floor"))
    env = {
        **standin,
        "PATH": f"{programs}{os.pathsep}{standin['PATH']}",
        "PYTHONPATH": str(EXAMPLE.parents[2]),
    }
    report = conform.run(example, env)
    assert [problem.code for problem in report.problems] == ["rows-differ"]
    assert 'check "final-risk": model x1, real x0: sensitive/trivial sensitive' in report.lines
