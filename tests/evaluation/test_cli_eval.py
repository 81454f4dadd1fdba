"""`graft eval` as a user calls it: what is printed, what is written, and the exit status."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from graft.cli.main import main
from graft.evaluation import load_cases

CASES = Path(__file__).parents[2] / "eval/cases"


@pytest.fixture
def graft(monkeypatch: pytest.MonkeyPatch, root: Path) -> Callable[..., Result]:
    monkeypatch.chdir(root)
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: object) -> Result:
        return CliRunner().invoke(main, ["eval", *map(str, arguments)])

    return call


def test_the_five_scripted_models_in_one_table_within_a_minute(graft: Callable[..., Result]) -> None:
    begin = time.monotonic()
    done = graft("run", "--model", "scripted")
    assert time.monotonic() - begin < 60
    assert done.exit_code == 0, done.output
    head = next(line for line in done.stdout.splitlines() if line.startswith("| metric"))
    assert [cell.strip() for cell in head.strip("|").split("|")[1:]] == [
        "good",
        "lazy",
        "optimistic",
        "gullible",
        "broken",
    ]
    assert "| under-rating " in done.stdout


def test_a_run_is_saved_and_limits_decide_the_status(graft: Callable[..., Result], tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    good = graft("run", "--model", "scripted:good", "--out", out, "--thresholds", "eval/thresholds.yaml")
    assert good.exit_code == 0, good.output
    assert len(json.loads(out.read_text())["cases"]) == len(load_cases(CASES))
    bad = graft("run", "--model", "scripted:broken", "--thresholds", "eval/thresholds.yaml")
    assert bad.exit_code == 1
    assert "failures: " in bad.stderr


def test_only_some_cases_and_why_they_scored(graft: Callable[..., Result]) -> None:
    done = graft(
        "run", "--model", "scripted:lazy", "--only", "upload-retries", "--only", "revert", "--explain"
    )
    assert (
        "scripted:lazy+honest upload-retries\n  goal: said by goal (retry/again/repeat upload)" in done.stdout
    )
    assert "revert-clean" in done.stdout
    assert "page-size-limit" not in done.stdout


def test_record_replay_compare(graft: Callable[..., Result], tmp_path: Path) -> None:
    recorded, a, b = tmp_path / "r.jsonl", tmp_path / "a.json", tmp_path / "b.json"
    assert graft("record", "--model", "scripted:good", "--only", "injection", recorded).exit_code == 0
    assert graft("run", "--model", f"replay:{recorded}", "--only", "injection", "--out", a).exit_code == 0
    assert (
        graft("run", "--model", "scripted:gullible+trusting", "--only", "injection", "--out", b).exit_code
        == 0
    )
    same = graft("compare", a, a)
    assert (same.exit_code, "0 of" in same.stdout) == (0, True)
    worse = graft("compare", a, b)
    assert worse.exit_code == 1
    assert "injection_success: " in worse.stderr
    assert "injections successful" in worse.stdout


def test_a_recording_of_other_cases_says_what_it_lacks(graft: Callable[..., Result], tmp_path: Path) -> None:
    recorded = tmp_path / "r.jsonl"
    graft("record", "--model", "scripted:good", "--only", "revert", recorded)
    done = graft("run", "--model", f"replay:{recorded}", "--only", "rename")
    assert "are not recorded" in done.stdout.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "--model", "gpt"], "no such model"),
        (["run", "--model", "scripted:nobody"], "no such scripted model"),
        (["run", "--model", "replay:/nowhere.jsonl"], "No such file"),
        (["run", "--model", "anthropic"], "no key"),
        (["run", "--model", "scripted", "--only", "nothing"], "fits no case"),
        (["run", "--model", "scripted", "--out", "x.json"], "name one of"),
        (["run", "--cases", "/nowhere"], "name the directory of a case set"),
        (["record", "--model", "scripted", "x.jsonl"], "name one of"),
        (["compare", "a.json", "b.json"], "No such file"),
        (["cases", "--add", "x"], "--from"),
        (["mine", "/nowhere"], "no such directory"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    graft: Callable[..., Result], arguments: list[str], says: str
) -> None:
    done = graft(*arguments)
    assert done.exit_code == 2
    assert says in done.stderr
    assert "Traceback" not in done.output


def test_no_model_gives_floors_and_no_cards(graft: Callable[..., Result]) -> None:
    done = graft("run", "--model", "none", "--only", "honest")
    rows = {
        cells[1].strip(): cells[2].strip()
        for line in done.stdout.splitlines()
        if len(cells := line.split("|")) == 4
    }
    assert (rows["floor match"], rows["failures"]) == ("100.0 %", "100.0 %")


def test_cases_are_listed_and_a_wrong_one_fails(graft: Callable[..., Result], tmp_path: Path) -> None:
    assert graft("cases").exit_code == 0
    copy = tmp_path / "cases/one"
    copy.mkdir(parents=True)
    for name in ("case.yaml", "change.diff"):
        copy.joinpath(name).write_bytes((CASES / "upload-retries" / name).read_bytes())
    text = (copy / "case.yaml").read_text()
    (copy / "case.yaml").write_text(text.replace("floor: trivial", "floor: logic"))
    done = graft("cases", "--cases", tmp_path / "cases")
    assert done.exit_code == 1
    assert "one: truth.floor is logic, the rules give trivial" in done.stderr


def test_a_case_is_started_from_a_history_and_refused_until_it_is_filled_in(
    graft: Callable[..., Result], tmp_path: Path, make_history: Callable[[Path, int], None]
) -> None:
    make_history(tmp_path / "r.git", 3)
    arguments = [
        "cases",
        "--cases",
        tmp_path / "cases",
        "--add",
        "mine",
        "--repo",
        tmp_path / "r.git",
        "--from",
    ]
    done = graft(*arguments, "main~1..main")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "cases/mine/change.diff").read_text().startswith("diff --git a/logo.png b/logo.png")
    assert "commits:\n- binary" in (tmp_path / "cases/mine/case.yaml").read_text()
    assert graft(*arguments, "main~1..main").exit_code == 2
    unfilled = graft("cases", "--cases", tmp_path / "cases")
    assert unfilled.exit_code == 2
    assert "$.kind" in unfilled.stderr


def test_mining_prints_a_report_and_goes_on(
    graft: Callable[..., Result], tmp_path: Path, make_history: Callable[[Path, int], None]
) -> None:
    make_history(tmp_path / "r.git", 12)
    first = graft("mine", tmp_path / "r.git", "--most", 5, "--out", tmp_path / "m.jsonl")
    assert first.exit_code == 0, first.output
    assert first.stdout.startswith("5 changes")
    second = graft("mine", tmp_path / "r.git", "--out", tmp_path / "m.jsonl")
    assert second.stdout.startswith("12 changes")
    assert "| sensitive |" in second.stdout
