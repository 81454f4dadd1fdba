"""Approval: two confirmations by a person, written where the standard looks for them."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graft.records import approve, canonical, persons, projection
from graft.records.report import Report
from graft.records.repository import load

TODAY = time.strftime("%Y-%m-%d", time.gmtime())
ROOT = Path(__file__).parents[2]


def typed(*lines: str) -> Callable[[str], str]:
    given = iter(lines)
    return lambda prompt: next(given)


def run(
    repo: Any, ask: Callable[[str], str] | None, name: str = "", env: dict[str, str] | None = None
) -> Report:
    return approve.run(repo.root, repo.record_id, env or {}, ask, name)


@pytest.fixture
def draft(repo: Any) -> Any:
    repo.edit(repo.record_path, "status: approved", "status: draft")
    repo.edit(repo.record_path, "approved-by: Ada Lovelace", "None")
    repo.remove(".intent/model/laws.sha256")
    repo.remove(repo.receipt_path)
    return repo


def test_both_confirmations_are_written(draft: Any, capsys: pytest.CaptureFixture[str]) -> None:
    report = run(draft, typed("Ada Lovelace", draft.record_id, "laws"))
    assert report.exit == 0
    text = draft.read(draft.record_path)
    assert "\nstatus: approved\n" in text
    assert text.endswith(f"## Approval\n\napproved-by: Ada Lovelace\napproved-on: {TODAY}\n")
    assert (
        draft.read(".intent/model/laws.sha256")
        == canonical.sha256(draft.read(".intent/model/LAWS.bend")) + "\n"
    )
    draft.judge()
    assert draft.check().exit == 0
    shown = capsys.readouterr().err
    assert "R1: The first letter is a." in shown
    assert "a: twice(1n) equals 1n (as Nat) [LAWS.bend:8]" in shown
    assert any("no signature" in line for line in report.lines)


def test_clauses_and_laws_stand_side_by_side(repo: Any) -> None:
    intent = load(repo.tree)
    assert intent.laws
    rows = approve.side_by_side(intent.records[repo.record_id], intent.laws)
    assert rows[0].startswith("R1: The first letter is a.")
    assert rows[0].split(" | ")[1].startswith("a: twice(1n) equals 1n")


def test_the_laws_are_not_approved_with_the_record(draft: Any) -> None:
    report = run(draft, typed("Ada", draft.record_id, "no"))
    assert [problem.code for problem in report.problems] == ["approve-refused"]
    assert "status: approved" in draft.read(draft.record_path)
    assert not (draft.root / ".intent/model/laws.sha256").exists()


def test_a_refused_record_changes_nothing(draft: Any) -> None:
    before = draft.files()
    assert run(draft, typed("Ada", "yes")).exit == 2
    assert draft.files() == before


def test_a_record_is_approved_before_its_model_exists(draft: Any) -> None:
    draft.remove(".intent/model/LAWS.bend")
    report = run(draft, typed("Ada", draft.record_id))
    assert report.exit == 0
    assert [note.code for note in report.notes] == ["laws-missing"]
    assert "approved-by: Ada" in draft.read(draft.record_path)


def test_laws_that_cannot_be_read_are_not_approved(draft: Any) -> None:
    draft.write(".intent/model/LAWS.bend", "law a:\nx\n")
    assert "layout" in {problem.code for problem in run(draft, typed("Ada", draft.record_id)).problems}
    assert not (draft.root / ".intent/model/laws.sha256").exists()


def test_approving_again_replaces_name_and_date(repo: Any) -> None:
    assert run(repo, typed("Grace Hopper", repo.record_id, "laws")).exit == 0
    text = repo.read(repo.record_path)
    assert text.count("approved-by:") == 1
    assert f"approved-by: Grace Hopper\napproved-on: {TODAY}\n" in text


def test_everything_else_stays_byte_for_byte(draft: Any) -> None:
    text = draft.read(draft.record_path).replace("None\n", "None  \n", 1).replace("\n", "\r\n")
    draft.write(draft.record_path, text)
    run(draft, typed("Ada", draft.record_id, "laws"))
    written = draft.read(draft.record_path)
    head = text.replace("status: draft", "status: approved")
    assert written == head[: head.index("## Approval")] + (
        f"## Approval\r\n\r\napproved-by: Ada\r\napproved-on: {TODAY}\r\n"
    )


def test_prose_in_the_approval_section_is_kept(draft: Any) -> None:
    draft.edit(draft.record_path, "## Approval\n\nNone\n", "## Approval\n\nDiscussed on Monday.\n")
    run(draft, typed("Ada", draft.record_id, "laws"))
    assert draft.read(draft.record_path).endswith(f"approved-on: {TODAY}\nDiscussed on Monday.\n")


def test_sections_after_the_approval_and_lines_elsewhere_stay(draft: Any) -> None:
    draft.edit(draft.record_path, "- first: a", "- first: a\n\n```\napproved-by: nobody\n```")
    draft.write(draft.record_path, draft.read(draft.record_path) + "\n## History\n\napproved-by: somebody\n")
    run(draft, typed("Ada", draft.record_id, "laws"))
    text = draft.read(draft.record_path)
    assert "```\napproved-by: nobody\n```" in text
    assert text.endswith(f"approved-by: Ada\napproved-on: {TODAY}\n\n## History\n\napproved-by: somebody\n")


def test_a_broken_record_is_not_approved(draft: Any) -> None:
    draft.edit(draft.record_path, "R2: The second", "R3: The second")
    report = run(draft, typed("Ada"))
    assert [problem.code for problem in report.problems] == ["record-clause"]


@pytest.mark.parametrize("name", ["", "None", "<human>", "x\x1b[31m", "x" * 201])
def test_a_name_is_needed(draft: Any, name: str) -> None:
    assert run(draft, typed(name)).exit == 2
    assert "status: draft" in draft.read(draft.record_path)


def test_without_a_terminal_a_person_says_who_they_are(draft: Any) -> None:
    assert [problem.code for problem in run(draft, None).problems] == ["approve-refused"]
    assert run(draft, None, "Ada").exit == 0
    assert "approved-by: Ada" in draft.read(draft.record_path)
    assert (draft.root / ".intent/model/laws.sha256").exists()


@pytest.mark.parametrize("variable", [*persons.AGENT_VARIABLES, *persons.CI_VARIABLES])
def test_an_agent_or_ci_never_approves(draft: Any, variable: str) -> None:
    before = draft.files()
    for ask, name in ((None, "Ada"), (typed("Ada", draft.record_id, "laws"), "")):
        report = run(draft, ask, name, {variable: "1"})
        assert report.exit == 2
        assert variable in report.problems[0].message
    assert draft.files() == before


def test_switched_off_variables_do_not_count() -> None:
    assert persons.automation({"CI": "false", "CLAUDECODE": "", "AGENT": "0"}) == ""


def test_an_unknown_record(draft: Any) -> None:
    report = approve.run(draft.root, "0009-x", {}, None, "Ada")
    assert [problem.code for problem in report.problems] == ["record-unknown"]


def test_unsigned_commits_and_tags_are_named(draft: Any) -> None:
    draft.commit()
    draft.git("tag", "plain")
    lines = approve.signatures(draft.root, [draft.record_path])
    assert "has no signature that can be verified here" in lines[0]
    assert lines[1] == "tag plain has no verified signature"


def test_a_signed_commit_is_verified(draft: Any, tmp_path: Path) -> None:
    key = tmp_path / "key"
    made = subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], capture_output=True, check=False
    ) if shutil.which("ssh-keygen") else None  # fmt: skip
    if made is None or made.returncode != 0:
        pytest.skip("ssh-keygen is not installed")
    signers = tmp_path / "signers"
    signers.write_text(f"ada@example.org {(tmp_path / 'key.pub').read_text()}")
    draft.git("init", "-q", "-b", "main")
    for name, value in (
        ("gpg.format", "ssh"),
        ("user.signingkey", str(key)),
        ("gpg.ssh.allowedSignersFile", str(signers)),
    ):
        draft.git("config", name, value)
    draft.git("add", "-A")
    draft.git("commit", "-q", "-S", "-m", "signed")
    draft.git("tag", "-s", "v1", "-m", "signed")
    lines = approve.signatures(draft.root, [draft.record_path])
    assert "has a good signature by ada@example.org" in lines[0]
    assert lines[1] == "tag v1 has a good signature"


def test_on_a_real_terminal(draft: Any) -> None:
    """The command itself, with a terminal on the other end and the answers typed into it."""
    leader, follower = pty.openpty()
    clean = {"PATH": os.environ["PATH"], "HOME": str(draft.root), "PYTHONPATH": str(ROOT), "TERM": "dumb"}
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; from graft.records import approve; sys.exit(approve.main(sys.argv[1:]))",
         str(draft.root), draft.record_id],
        stdin=follower, stdout=follower, stderr=follower, env=clean, close_fds=True,
    )  # fmt: skip
    os.close(follower)
    os.write(leader, f"Ada Lovelace\n{draft.record_id}\nlaws\n".encode())
    shown = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(leader)
    assert process.wait(20) == 0, shown.decode()
    assert "approved-by: Ada Lovelace" in draft.read(draft.record_path)
    assert b"approve LAWS.bend as Ada Lovelace" in shown


@pytest.mark.parametrize(
    ("law", "words"),
    [
        ("law x:\n  {f(1n) == 2n : Nat}\n", "f(1n) equals 2n (as Nat) [LAWS.bend:1]"),
        ("law x:\n  for a: Nat\n  for +b: T where P(b)\n  {a != b : Nat}\n",
         "for every a of type Nat; for every b of type T with P(b); a differs from b (as Nat) [LAWS.bend:1]"),
        ("law x:\n  for s: {f(1n) == None{} : M}\n  exs y: Nat\n  z = g(y)\n  {z == y : Nat}\n",
         "given that f(1n) equals None{} (as M); there is a y of type Nat; where z is g(y); "
         "z equals y (as Nat) [LAWS.bend:1]"),
        ("law x:\n  Odd(1n)\n", "`Odd(1n)` [LAWS.bend:1]"),
        ("law x:\n  # nothing\n", "claims nothing [LAWS.bend:1]"),
    ],
)  # fmt: skip
def test_laws_in_plain_language(repo: Any, law: str, words: str) -> None:
    repo.write(".intent/model/LAWS.bend", law)
    intent = load(repo.tree)
    assert intent.laws, intent.laws_problems
    assert projection.law(intent.laws, "x") == words
