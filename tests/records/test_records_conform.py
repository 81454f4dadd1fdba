"""Conformance: the manifest is validated whole, programs run without a shell, rows compare as a multiset."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest

from graft.records import conform, manifest
from graft.records.report import Report

ENV = dict(os.environ)


def run(repo: Any, **options: Any) -> Report:
    return conform.run(repo.root, ENV, **options)


def codes(report: Report) -> list[str]:
    return [problem.code for problem in report.problems]


def test_the_fixture_passes(repo: Any) -> None:
    repo.manifest()
    report = run(repo, require_coverage=True)
    assert (report.exit, report.problems, report.notes) == (0, [], [])


def test_a_broken_program_that_differs_and_exits_3_has_failed(repo: Any) -> None:
    repo.manifest()
    repo.script(".intent/oracle/broken.py", "import sys\nprint('one z')\nsys.exit(3)\n")
    report = run(repo)
    assert report.exit == 1
    assert codes(report) == ["program-failed"]
    assert "program failed: `broken` exited with 3" in report.problems[0].message


@pytest.mark.parametrize("program", manifest.PROGRAMS)
@pytest.mark.parametrize("body", ["", "print('  \\n\\t\\n')", "import sys; print('one a'); sys.exit(1)"])
def test_every_program_prints_rows_and_exits_0(repo: Any, program: str, body: str) -> None:
    repo.manifest()
    repo.script(f".intent/oracle/{program}.py", body)
    report = run(repo)
    assert (report.exit, codes(report)) == (1, ["program-failed"])
    assert f"`{program}`" in report.problems[0].message


def test_order_and_blank_lines_do_not_matter_and_duplicates_do(repo: Any) -> None:
    repo.manifest()
    repo.script(".intent/oracle/real.py", "print('two b\\r\\n\\n   \\none a')")
    assert run(repo).exit == 0
    repo.script(".intent/oracle/real.py", "print('two b\\none a\\none a')")
    report = run(repo)
    assert codes(report) == ["rows-differ"]
    assert report.lines[0] == 'check "letters": model x1, real x2: one a'


def test_only_differing_rows_are_printed_with_their_counts(repo: Any) -> None:
    repo.manifest()
    repo.script(".intent/oracle/model.py", "for n in range(100): print(n, 'a')")
    repo.script(".intent/oracle/real.py", "for n in range(100): print(n, 'b' if n == 7 else 'a')")
    report = run(repo)
    assert "1 rows only in the model, 1 only in the real code" in report.problems[0].message
    assert report.lines[:2] == [
        'check "letters": model x1, real x0: 7 a',
        'check "letters": model x0, real x1: 7 b',
    ]
    assert len(report.lines) == 3


def test_many_differing_rows_are_cut(repo: Any) -> None:
    repo.manifest()
    repo.script(".intent/oracle/real.py", "for n in range(100): print(n)")
    assert any("more differing rows" in line for line in run(repo).lines)


def test_broken_has_to_differ_from_real(repo: Any) -> None:
    repo.manifest()
    repo.script(".intent/oracle/broken.py", "print('two b')\nprint('one a')\n")
    report = run(repo)
    assert (report.exit, codes(report)) == (1, ["oracle-idle"])
    assert "oracle does not exercise the real code" in report.problems[0].message


def test_all_failing_checks_are_reported(repo: Any) -> None:
    repo.manifest()
    value = json.loads(repo.read(".intent/conform.json"))
    first = value["checks"][0]
    value["checks"] += [
        {**first, "name": "two", "broken": first["real"]},
        {**first, "name": "three", "real": repo.script("x.py", "print('one b')")},
    ]
    repo.write(".intent/conform.json", json.dumps(value))
    report = run(repo)
    assert sorted(codes(report)) == ["oracle-idle", "rows-differ"]


def test_programs_run_side_by_side(repo: Any) -> None:
    repo.manifest()
    meet = """
import pathlib, sys, time
mine, other = [pathlib.Path(name) for name in sys.argv[1:]]
mine.touch()
deadline = time.monotonic() + 20
while not other.exists():
    if time.monotonic() > deadline:
        sys.exit("the other program was not started")
    time.sleep(0.01)
print("one a")
"""
    program = repo.script("meet.py", meet)
    repo.manifest(model=[*program, "here", "there"], real=[*program, "there", "here"])
    assert run(repo).exit == 0


def test_uncovered_laws_are_listed_and_rejected_on_request(repo: Any) -> None:
    repo.manifest(laws=["a"])
    report = run(repo)
    assert report.exit == 0
    assert [(note.code, note.place) for note in report.notes] == [("uncovered", ".intent/model/LAWS.bend:12")]
    assert report.data["uncovered"] == ["b"]
    strict = run(repo, require_coverage=True)
    assert (strict.exit, codes(strict)) == (1, ["uncovered"])


def test_a_time_limit_exits_2(repo: Any) -> None:
    repo.manifest(timeoutMs=300, real=repo.script("slow.py", "import time; time.sleep(30)"))
    report = run(repo)
    assert (report.exit, codes(report)) == (2, ["timeout"])


def test_an_output_cap_exits_2(repo: Any) -> None:
    repo.manifest(real=repo.script("loud.py", "print('x' * 2_000_000)"))
    assert codes(run(repo)) == ["output-cap"]


def test_a_missing_program_exits_2_and_two_wins(repo: Any) -> None:
    repo.manifest(real=["./no-such-program"], broken=repo.script("bad.py", "raise SystemExit(1)"))
    report = run(repo)
    assert (report.exit, sorted(codes(report))) == (2, ["not-started", "program-failed"])


def test_cwd_may_name_an_external_directory(repo: Any, tmp_path: Any) -> None:
    outside = tmp_path / "build"
    outside.mkdir()
    for name, row in (("model", "one a"), ("real", "one a"), ("broken", "one b")):
        (outside / f"{name}.py").write_text(
            f"import os; print('{row}' if os.getcwd() == {str(outside)!r} else 'no')"
        )
    programs = {name: [sys.executable, f"{name}.py"] for name in manifest.PROGRAMS}
    for cwd in (str(outside), "../build"):
        repo.manifest(cwd=cwd, **programs)
        assert run(repo).exit == 0


def test_bend_is_found_as_the_gate_finds_it(repo: Any, standin: dict[str, str]) -> None:
    repo.write(".intent/model/Rows.bend", "import Base\n#| one a\n#| two b\n")
    repo.manifest(model=["bend", ".intent/model/Rows.bend"])
    env = {**standin, "PATH": os.environ["PATH"], "BEND_BIN": f"{standin['HOME']}/bend"}
    assert conform.run(repo.root, env).exit == 0


# --- the manifest -------------------------------------------------------------------------------------------


def broken_manifest(repo: Any, change: Any) -> Report:
    """Runs with a changed manifest; its programs leave a mark if any of them is started."""
    mark = repo.root / "started"
    body = f"open({str(mark)!r}, 'w').close(); print('one a')"
    repo.manifest(**{name: repo.script(f"{name}.py", body) for name in manifest.PROGRAMS})
    value = json.loads(repo.read(".intent/conform.json"))
    changed = change(value)
    repo.write(".intent/conform.json", json.dumps(value if changed is None else changed))
    report = run(repo)
    assert not mark.exists(), "a program was started before the manifest was valid"
    return report


def set_check(**changes: Any) -> Any:
    return lambda value: value["checks"][0].update(changes)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda value: [], "$"),
        (lambda value: value.update(schema=2), "$.schema"),
        (lambda value: value.update(schema=True), "$.schema"),
        (lambda value: value.pop("schema") and None, "$.schema"),
        (lambda value: value.update(checks=[]), "$.checks"),
        (lambda value: value.update(checks={}), "$.checks"),
        (lambda value: value.update(checks=[1]), "$.checks[0]"),
        (lambda value: value["checks"].append(dict(value["checks"][0])), "$.checks[1].name"),
        (set_check(name=""), "$.checks[0].name"),
        (set_check(name=" "), "$.checks[0].name"),
        (set_check(name=1), "$.checks[0].name"),
        (set_check(laws=[]), "$.checks[0].laws"),
        (set_check(laws="a"), "$.checks[0].laws"),
        (set_check(laws=["a", 1]), "$.checks[0].laws[1]"),
        (set_check(laws=["a b"]), "$.checks[0].laws[0]"),
        (set_check(model=[]), "$.checks[0].model"),
        (set_check(model="bend x"), "$.checks[0].model"),
        (set_check(real=["python3", 1]), "$.checks[0].real"),
        (set_check(real=["a\0b"]), "$.checks[0].real"),
        (set_check(broken=[""]), "$.checks[0].broken"),
        (set_check(broken=None), "$.checks[0].broken"),
        (set_check(cwd=1), "$.checks[0].cwd"),
        (set_check(cwd=""), "$.checks[0].cwd"),
        (set_check(cwd="a\0"), "$.checks[0].cwd"),
        (set_check(timeoutMs=0), "$.checks[0].timeoutMs"),
        (set_check(timeoutMs=600_001), "$.checks[0].timeoutMs"),
        (set_check(timeoutMs=1.5), "$.checks[0].timeoutMs"),
        (set_check(timeoutMs=True), "$.checks[0].timeoutMs"),
        (set_check(timeoutMs="100"), "$.checks[0].timeoutMs"),
        (set_check(timeoutMs=None), "$.checks[0].timeoutMs"),
    ],
)
def test_a_malformed_manifest_runs_nothing(repo: Any, change: Any, place: str) -> None:
    report = broken_manifest(repo, change)
    assert (report.exit, codes(report)) == (2, ["manifest-malformed"])
    assert report.problems[0].message.startswith(place + ":")


def test_an_undeclared_law_rejects_with_its_line(repo: Any) -> None:
    report = broken_manifest(repo, set_check(laws=["a", "gone"]))
    assert (report.exit, codes(report)) == (1, ["manifest-law"])
    assert report.problems[0].line == 1


def test_all_problems_of_a_manifest_come_at_once(repo: Any) -> None:
    report = broken_manifest(repo, set_check(name="", laws=["gone"], model=[], timeoutMs=0))
    assert len(report.problems) == 4


def test_a_hostile_manifest_enables_nothing(repo: Any) -> None:
    repo.manifest(
        shell=True,
        env={"PATH": ""},
        maxBuffer=10**12,
        timeout=10**9,
        killSignal=0,
        executable="/bin/sh",
        input="x",
        real=[
            sys.executable,
            "-c",
            "import sys; print('one a'); print('two b')",
            "; touch owned",
            "$(touch owned)",
        ],
    )
    report = run(repo)
    assert report.exit == 0
    assert "7 unknown fields ignored" in report.notes[0].message
    assert not (repo.root / "owned").exists()
    check = manifest.parse((repo.root / ".intent/conform.json").read_bytes(), ["a", "b"]).checks[0]
    assert set(vars(check)) == {"name", "laws", "model", "real", "broken", "cwd", "timeout_ms"}


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"schema":1,"schema":1,"checks":[]}'])
def test_what_is_no_json(repo: Any, content: bytes) -> None:
    repo.write(".intent/conform.json", content)
    assert codes(run(repo)) == ["manifest-malformed"]


def test_a_missing_manifest_or_model_exits_2(repo: Any) -> None:
    assert codes(run(repo)) == ["manifest-missing"]
    repo.manifest()
    repo.remove(".intent/model/LAWS.bend")
    assert codes(run(repo)) == ["laws-missing"]


@pytest.mark.parametrize(
    ("cwd", "argument", "path"),
    [
        (".", "a/b.py", "a/b.py"),
        ("sub", "../a.py", "a.py"),
        (".", "../a.py", ""),
        (".", "/etc/passwd", ""),
        ("/build", "a.py", ""),
        ("../x", "a.py", ""),
        (".", ".", ""),
        (".", "", ""),
        (".", "..", ""),
    ],
)
def test_oracle_paths_stay_inside(cwd: str, argument: str, path: str) -> None:
    check = manifest.Check("n", ("a",), ("m",), ("r",), ("b",), cwd, 1)
    assert manifest.inside(check, argument) == path


def test_record_chooses_the_checks_of_its_receipt(repo: Any) -> None:
    repo.manifest(laws=["a"])
    assert run(repo, only="0001-letters").lines == ["1 checks run"]
    assert codes(run(repo, only="0002-x")) == ["record-unknown"]
    repo.remove(repo.receipt_path)
    assert codes(run(repo, only="0001-letters")) == ["receipt-missing"]
