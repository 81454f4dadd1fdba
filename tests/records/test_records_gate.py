"""The gate: static rules, Bend's judgments, negatives, the cross-check and its probes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graft.records import bend, crosscheck, gate
from graft.records.model import Negative
from graft.records.process import Outcome
from graft.records.report import Report
from graft.records.repository import load

Env = dict[str, str]
ROOT = Path(__file__).parents[2]


def codes(report: Report) -> list[str]:
    return [problem.code for problem in report.problems]


def probes(repo: Any) -> list[str]:
    return [path.name for path in (repo.root / ".intent/model").rglob(".crosscheck-*")]


def run(repo: Any, env: Env) -> Report:
    report = gate.run(repo.root, env)
    assert probes(repo) == []
    return report


def test_the_fixture_passes_and_says_which_bend(repo: Any, bend_env: Env) -> None:
    report = run(repo, bend_env)
    assert report.problems == []
    assert report.lines[0].startswith("using Bend 2.")


def test_a_no_break_space_in_proof_is_a_layout_error_of_proof(repo: Any, standin: Env) -> None:
    repo.edit(".intent/model/PROOF.bend", "\n\ndef M.a", "\n\u00a0\ndef M.a")
    report = run(repo, standin)
    assert report.exit == 2
    assert [(item.code, item.place) for item in report.problems] == [("layout", ".intent/model/PROOF.bend:3")]


def test_a_negative_with_another_location_is_invalid(repo: Any, standin: Env) -> None:
    repo.write(
        ".intent/model/LAWS.bend", repo.read(".intent/model/LAWS.bend") + "\nlaw ab:\n  {1n == 1n : Nat}\n"
    )
    repo.edit(".intent/model/PROOF.bend", "def M.b", "def M.ab():\n  {==}\n\ndef M.b")
    repo.write(".intent/model/neg/ab.bend", repo.read(".intent/model/neg/a.bend").replace("M.a", "M.ab"))
    text = "# expect-failure: M.a\nimport ../LAWS.bend as M\n\ndef M.ab():\n  {True{} : Bool}\n\ndef M.a():\n  {==}\n"
    repo.write(".intent/model/neg/a.bend", text)
    report = run(repo, standin)
    assert report.exit == 1
    assert codes(report) == ["negative-invalid"]
    assert "invalid negative: it failed at M.ab, not at `Location: M.a`" in report.problems[0].message


def test_an_alias_of_a_helper_proves_nothing(repo: Any, standin: Env) -> None:
    repo.write(
        ".intent/model/Helper.bend",
        "import Base\n\nlaw a:\n  {1n == 1n : Nat}\n\nlaw b:\n  {1n == 1n : Nat}\n",
    )
    repo.edit(".intent/model/PROOF.bend", "./LAWS.bend", "./Helper.bend")
    report = run(repo, standin)
    assert report.exit == 1
    assert {"proof-missing", "proof-import"} <= set(codes(report))
    assert any("missing proof" in item.message for item in report.problems)


def test_two_aliases_are_told_apart(repo: Any, bend_env: Env) -> None:
    repo.write(".intent/model/Helper.bend", "import Base\n\nlaw a:\n  {1n == 1n : Nat}\n\ndef a():\n  {==}\n")
    repo.edit(".intent/model/PROOF.bend", "as M\n", "as M\nimport ./Helper.bend as MH\n")
    assert run(repo, bend_env).exit == 0


def test_every_law_needs_a_proof(repo: Any, bend_env: Env) -> None:
    repo.edit(".intent/model/PROOF.bend", "def M.b():\n  {==}\n", "")
    report = run(repo, bend_env)
    assert report.exit == 1
    assert codes(report) == ["proof-missing", "proof-failed"]
    assert report.problems[0].place == ".intent/model/LAWS.bend:12"


def test_a_wrong_proof_fails(repo: Any, bend_env: Env) -> None:
    repo.edit(".intent/model/PROOF.bend", "def M.b():\n  {==}", "def M.b():\n  {True{} : Bool}")
    report = run(repo, bend_env)
    assert codes(report) == ["proof-failed"]
    assert "M.b" in report.problems[0].message


@pytest.mark.parametrize(
    ("path", "old", "new", "line"),
    [
        (".intent/model/PROOF.bend", "def M.a", "@unsafe\ndef M.a", 4),
        (".intent/model/PROOF.bend", "def M.a()", "def M.a?()", 4),
        (".intent/model/neg/a.bend", "  {True{} : Bool}", "  ?TODO", 6),
        (".intent/model/LAWS.bend", "  x\n", "  ?TODO\n", 5),
    ],
)
def test_forbidden_constructs_are_found_everywhere(
    repo: Any, standin: Env, path: str, old: str, new: str, line: int
) -> None:
    repo.edit(path, old, new)
    report = run(repo, standin)
    assert report.exit == 1
    assert ("forbidden", f"{path}:{line}") in [(item.code, item.place) for item in report.problems]


def test_mentions_in_comments_and_strings_are_no_constructs(repo: Any, standin: Env) -> None:
    repo.edit(
        ".intent/model/PROOF.bend",
        "def M.a",
        '# @unsafe ?TODO def f?\ndef note(x: Nat) -> String:\n  "@unsafe ?TODO"\n\ndef M.a',
    )
    assert run(repo, standin).exit == 0


def test_a_symlink_in_the_model_is_refused(repo: Any, standin: Env) -> None:
    (repo.root / ".intent/model/Alias.bend").symlink_to("PROOF.bend")
    (repo.root / ".intent/model/folder").symlink_to("/tmp")
    report = run(repo, standin)
    assert report.exit == 2
    assert codes(report) == ["symlink", "symlink"]


def test_a_helper_with_laws_is_checked_even_when_nobody_imports_it(repo: Any, bend_env: Env) -> None:
    repo.write(".intent/model/deep/Helper.bend", "import Base\n\nlaw open:\n  {1n == 1n : Nat}\n")
    report = run(repo, bend_env)
    assert [(item.code, item.path) for item in report.problems] == [
        ("proof-failed", ".intent/model/deep/Helper.bend")
    ]
    repo.write(
        ".intent/model/deep/Helper.bend",
        "import Base\n\nlaw open:\n  {1n == 1n : Nat}\n\ndef open():\n  {==}\n",
    )
    assert run(repo, bend_env).exit == 0


def control(
    expected: str, *, imports: str = "../LAWS.bend as M", law: str = "M.a", body: str = "{True{} : Bool}"
) -> str:
    lines = "".join([f"# expect-failure: {item}\n" for item in expected.split("|") if item])
    return f"{lines}import {imports}\n\ndef {law}():\n  {body}\n"


@pytest.mark.parametrize(
    ("text", "code", "status"),
    [
        (control(""), "negative-malformed", 2),
        (control("M.a|M.b"), "negative-malformed", 2),
        (control("M.a or so"), "negative-malformed", 2),
        (control("M.a", imports="../LAWS.bend as N", law="N.a"), "negative-unbound", 1),
        (control("M.a", imports="../PROOF.bend as M"), "negative-unbound", 1),
        (control("M.a", law="M.b"), "negative-unbound", 1),
        (control("M.z", law="M.z"), "negative-unbound", 1),
        (control("M.a", body="{==}"), "negative-invalid", 1),
        (control("M.a", body="syntax error"), "negative-invalid", 1),
        (control("M.a", imports="./Missing.bend as X\nimport ../LAWS.bend as M"), "negative-invalid", 1),
    ],
)
def test_what_is_no_negative(repo: Any, standin: Env, text: str, code: str, status: int) -> None:
    repo.write(".intent/model/neg/a.bend", text)
    report = run(repo, standin)
    assert report.exit == status
    assert code in codes(report)


def test_every_law_needs_a_negative(repo: Any, standin: Env) -> None:
    repo.remove(".intent/model/neg/b.bend")
    report = run(repo, standin)
    assert [(item.code, item.place) for item in report.problems] == [
        ("negative-missing", ".intent/model/LAWS.bend:12")
    ]


def test_imports_that_lead_out_of_the_model_are_noted(repo: Any) -> None:
    repo.write("src/app.bend", "import Base\n")
    repo.edit(
        ".intent/model/PROOF.bend",
        "as M\n",
        "as M\nimport ../../src/app.bend as App\nimport 0xabc/main.bend as P\n",
    )
    notes = gate.static(repo.tree, load(repo.tree), Report("gate"))[0].outside
    assert [(note.place, note.message.split(",")[0]) for note in notes] == [
        (".intent/model/PROOF.bend:3", "imports ../../src/app.bend"),
        (".intent/model/PROOF.bend:4", "imports 0xabc/main.bend"),
    ]


def test_all_static_problems_come_at_once(repo: Any, standin: Env) -> None:
    repo.remove(".intent/model/neg/b.bend")
    repo.edit(".intent/model/PROOF.bend", "def M.b():\n  {==}\n", "@unsafe\ndef M.c():\n  ?TODO\n")
    assert set(codes(run(repo, standin))) >= {"forbidden", "proof-missing", "negative-missing"}


def test_the_laws_have_to_exist(repo: Any, standin: Env) -> None:
    repo.write(".intent/model/LAWS.bend", "import Base\n")
    assert "laws-empty" in codes(run(repo, standin))
    repo.remove(".intent/model/LAWS.bend")
    report = run(repo, standin)
    assert report.exit == 2
    assert "laws-missing" in codes(report)
    repo.remove(".intent/model/PROOF.bend")
    assert "missing" in codes(run(repo, standin))


def test_a_rejecting_gate_appends_impact(repo: Any, standin: Env) -> None:
    repo.edit(".intent/model/LAWS.bend", "2n == 2n", "3n == 3n")
    repo.remove(".intent/model/neg/b.bend")
    assert "receipt 0001-letters is stale: LAWS.bend edited" in run(repo, standin).lines


# --- Bend itself --------------------------------------------------------------------------------------------


def test_without_bend_the_static_part_still_speaks(repo: Any, tmp_path: Path) -> None:
    repo.remove(".intent/model/neg/b.bend")
    report = run(repo, {"PATH": str(tmp_path / "nowhere"), "HOME": str(tmp_path)})
    assert report.exit == 2
    assert set(codes(report)) == {"negative-missing", "bend-missing"}


def test_bend_is_found_through_bend_bin_then_path_then_home(repo: Any, standin: Env, tmp_path: Path) -> None:
    home = tmp_path / "home" / ".bend" / "bin"
    home.mkdir(parents=True)
    program = Path(standin["HOME"]) / "bend"
    (home / "bend").write_bytes(program.read_bytes())
    (home / "bend").chmod(0o755)
    nowhere = str(tmp_path / "nowhere")
    assert bend.locate({"PATH": nowhere, "HOME": str(tmp_path / "home")}) == str(home / "bend")
    assert bend.locate({"PATH": standin["PATH"], "HOME": str(tmp_path / "home")}) == str(program)
    assert bend.locate({"BEND_BIN": str(home / "bend"), "PATH": standin["PATH"]}) == str(home / "bend")
    assert bend.locate({"BEND_BIN": str(tmp_path / "gone"), "PATH": standin["PATH"]}) == ""


@pytest.mark.parametrize(
    ("version", "status", "noted"), [("1.2.3", 2, False), ("2.0.20", 0, True), ("x", 2, False)]
)
def test_the_version_is_checked(
    repo: Any, standin_with: Callable[..., Env], version: str, status: int, noted: bool
) -> None:
    report = run(repo, standin_with(STANDIN_VERSION=version))
    assert report.exit == status
    assert any("older" in note.message for note in report.notes) == noted


def reading(stdout: str = "", stderr: str = "", status: int = 0) -> bend.Reading:
    return bend.Reading(Outcome(status, stdout.encode(), stderr.encode()))


def test_what_counts_as_passing() -> None:
    assert reading("ALL PROOFS CHECK\nUse --verdict for mathematical validity.\n").passed
    assert reading("All terms check.\n").passed
    assert reading("\x1b[32mALL PROOFS CHECK\x1b[0m\r\n").passed
    assert not reading("ALL PROOFS CHECK\n", status=1).passed
    assert not reading("not ALL PROOFS CHECK\n").passed
    assert not reading(stderr="ALL PROOFS CHECK\n").passed
    assert not reading("ALL PROOFS CHECK\nSOME PROOFS FAIL\n").passed
    assert not reading("ALL PROOFS CHECK\n", "SOME PROOFS FAIL\n").passed
    assert reading("ALL PROOFS CHECK\nit says: SOME PROOFS FAIL here\n").passed


def test_open_laws_and_locations() -> None:
    assert reading("1 TODO found.\n", status=1).open_laws == 1
    assert reading("12 TODO(s) found.\n", status=1).open_laws == 12
    assert reading("2 TODO found.\n").open_laws is None
    assert reading("hello\n").open_laws is None
    assert reading("SOME PROOFS FAIL\nLocation: M.a\nLocation:\n", status=1).locations == ["M.a", ""]


@pytest.mark.parametrize(
    ("given", "valid"),
    [
        (reading(stderr="SOME PROOFS FAIL\nLocation: M.a\n", status=1), True),
        (reading("SOME PROOFS FAIL\nLocation: M.a\n", status=1), True),
        (reading(stderr="SOME PROOFS FAIL\nLocation: M.ab\n", status=1), False),
        (reading(stderr="SOME PROOFS FAIL\nLocation:\n", status=1), False),
        (reading(stderr="SOME PROOFS FAIL\nNo Location: M.a\n", status=1), False),
        (reading(stderr="SOME PROOFS FAIL\nLocation: M.a\n", status=0), False),
        (reading(stderr="SOME PROOFS FAIL: all\nLocation: M.a\n", status=1), False),
        (reading(stderr="Location: M.a\n", status=1), False),
        (reading(stderr="panic\n", status=101), False),
    ],
)
def test_a_negative_fails_at_exactly_its_location(given: bend.Reading, valid: bool) -> None:
    report = Report("gate")
    gate.judge_negative(given, Negative("neg/a.bend", "M.a", "a"), report)
    assert (report.problems == []) == valid


def test_a_time_limit_or_cap_exits_2() -> None:
    for failure in ("timeout", "output-cap", "not-started"):
        report = Report("gate")
        gate.judge_positive(bend.Reading(Outcome(-1, failure=failure)), "PROOF.bend", report)
        gate.judge_negative(bend.Reading(Outcome(-1, failure=failure)), Negative("n", "M.a", "a"), report)
        assert codes(report) == [failure, failure]
        assert report.exit == 2


# --- the cross-check ----------------------------------------------------------------------------------------


def fake_bend(tmp_path: Path, body: str) -> Env:
    """A `bend` whose --check-only runs `body` with the file's text in `text`."""
    folder = tmp_path / "fake"
    folder.mkdir()
    program = folder / "bend"
    program.write_text(
        f"#!{sys.executable} -I\nimport sys\nif sys.argv[1] == 'version':\n    print('bend 2.0.36'); sys.exit()\n"
        f"text = open(sys.argv[1]).read()\n{body}\n"
    )
    program.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}


def cross(repo: Any, env: Env) -> Report:
    report = Report("gate")
    laws = load(repo.tree).laws
    assert laws
    crosscheck.run(bend.find(env, repo.root), repo.root, laws, env, report)
    assert probes(repo) == []
    return report


def test_bend_and_the_scanner_agree(repo: Any, bend_env: Env) -> None:
    assert cross(repo, bend_env).problems == []


def test_open_laws_of_imported_files_are_discounted(repo: Any, bend_env: Env) -> None:
    repo.write(".intent/model/Base2.bend", "import Base\n\nlaw other:\n  {1n == 1n : Nat}\n")
    repo.edit(".intent/model/LAWS.bend", "import Base\n", "import Base\nimport ./Base2.bend as B\n")
    assert cross(repo, bend_env).problems == []


def test_a_law_that_bend_counts_and_the_scanner_does_not_is_found(repo: Any, tmp_path: Path) -> None:
    env = fake_bend(
        tmp_path, "print('3 TODO(s) found.' if 'def' not in text else '2 TODO(s) found.'); sys.exit(1)"
    )
    report = cross(repo, env)
    assert [(item.code, item.message) for item in report.problems] == [
        ("crosscheck", "Bend counts 3 open laws, the scanner 2")
    ]


def test_a_law_that_bend_does_not_know_is_found(repo: Any, tmp_path: Path) -> None:
    body = (
        "unknown = 'SOME PROOFS FAIL\\n- expected: a fresh name, or M, an alias\\nLocation:'\n"
        "if 'M.b' in text:\n    print(unknown, file=sys.stderr)\n"
        "else:\n    print('2 TODO(s) found.')\nsys.exit(1)"
    )
    report = cross(repo, fake_bend(tmp_path, body))
    assert [(item.code, item.place) for item in report.problems] == [
        ("crosscheck", ".intent/model/LAWS.bend:12")
    ]
    assert report.exit == 1


def test_output_that_is_not_known_is_refused(repo: Any, tmp_path: Path) -> None:
    report = cross(repo, fake_bend(tmp_path, "print('everything is fine')"))
    assert set(codes(report)) == {"bend-output"}
    assert report.exit == 2


def test_a_probe_takes_the_parameters_of_its_law(repo: Any, bend_env: Env) -> None:
    law = "law x:\n  for a: Nat\n  for +b: T where P(b)\n  for -c: D\n  y = f(a)\n  {1n == 1n : Nat}\n"
    assert crosscheck.binders(law) == ["a", "+b", "-c"]
    repo.edit(".intent/model/LAWS.bend", "  {2n == 2n : Nat}", "  for x: Nat\n  {2n == 2n : Nat}")
    assert cross(repo, bend_env).problems == []


def test_a_forgotten_probe_is_ignored_unless_it_is_imported(repo: Any, standin: Env) -> None:
    name = ".crosscheck-abcdefabcdefabcd.bend"
    repo.write(f".intent/model/{name}", "@unsafe\ndef f(x):\n  x\n")
    assert gate.run(repo.root, standin).exit == 0
    repo.edit(".intent/model/PROOF.bend", "as M\n", f"as M\nimport ./{name} as P\n")
    assert "forbidden" in codes(gate.run(repo.root, standin))


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_probes_are_removed_on_an_interrupt(repo: Any, tmp_path: Path, signum: int) -> None:
    waiting = tmp_path / "waiting"
    body = (
        f"if 'import ./LAWS.bend as M' in text and 'expect-failure' not in text and 'def M.a' not in text:\n"
        f"    open({str(waiting)!r}, 'w').close()\n    import time; time.sleep(60)\n"
        "if 'expect-failure' in text:\n"
        "    law = text.split('expect-failure: ')[1].split()[0]\n"
        "    print('SOME PROOFS FAIL\\nLocation: ' + law, file=sys.stderr); sys.exit(1)\n"
        "print('ALL PROOFS CHECK')"
    )
    env = {**os.environ, **fake_bend(tmp_path, body), "PYTHONPATH": str(ROOT)}
    program = (
        "import sys; from graft.records import entry, gate; sys.exit(entry.run(gate.main, sys.argv[1:]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(repo.root)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 20
    while not waiting.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert probes(repo) != [], process.communicate(timeout=5)
    process.send_signal(signum)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "interrupted" in err
    assert probes(repo) == []


def test_a_directory_that_cannot_be_written_is_said(repo: Any, standin: Env) -> None:
    if os.geteuid() == 0:
        pytest.skip("root writes everywhere")
    folder = repo.root / ".intent/model"
    folder.chmod(0o555)
    try:
        assert "unreadable" in codes(run(repo, standin))
    finally:
        folder.chmod(0o755)
