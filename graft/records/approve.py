"""`approve`: a person confirms the record, and then, separately, the meaning of the laws.

It writes `status: approved`, `approved-by:` and the date into the record, and the hash of LAWS.bend into
`laws.sha256`. That is a statement, no signature: who may write to the repository can write the same. A signed
commit or tag that holds the approved files is verified and named where there is one.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from . import arguments, persons, process, projection
from .blocks import Laws
from .files import DiskTree, replace_file
from .record import Record, is_placeholder, numbered_lines
from .report import Report, printable
from .repository import APPROVAL, LAWS, load, selected

SUMMARY = "Confirm a record and the meaning of the laws as a person."
WIDTH = 56

_STATUS = re.compile(r"(?m)^status:[^\r\n]*")
_APPROVED = re.compile(r"(?m)^approved-(by|on):[^\r\n]*(?:\r\n|\r|\n|\Z)")
_HEADING = re.compile(r"(?m)^## ")
_APPROVAL_HEADING = re.compile(r"(?m)^## Approval[ \t]*(?:\r\n|\r|\n|\Z)")


def with_approval(text: str, name: str, date: str) -> str:
    """The record's text with its status and the two approval lines; everything else byte for byte as it was."""
    newline = "\r\n" if "\r\n" in text else "\n"
    text = _STATUS.sub("status: approved", text, count=1)
    heading = _APPROVAL_HEADING.search(text)
    if heading is None:
        return text
    following = _HEADING.search(text, heading.end())
    end = following.start() if following else len(text)
    before = text[: heading.end()] + ("" if heading.group().endswith(("\n", "\r")) else newline)
    prose = _APPROVED.sub("", text[heading.end() : end]).strip("\r\n")
    lines = f"{newline}approved-by: {name}{newline}approved-on: {date}{newline}"
    if not is_placeholder(prose):
        lines += prose + newline
    return before + lines + (newline if following else "") + text[end:]


def side_by_side(record: Record, laws: Laws) -> list[str]:
    """The clauses on the left, the laws in plain language on the right."""
    left = [line for clause in record.clauses for line in _wrapped(f"{clause.id}: {clause.text}")]
    right = [line for law in laws.ids for line in _wrapped(f"{law}: {projection.law(laws, law)}")]
    rows = max(len(left), len(right))
    left += [""] * (rows - len(left))
    right += [""] * (rows - len(right))
    return [f"{left[index]:<{WIDTH}} | {right[index]}" for index in range(rows)]


def _wrapped(text: str) -> list[str]:
    lines = textwrap.wrap(printable(text), WIDTH, subsequent_indent="    ") or [""]
    return [*lines, ""]


def refusal(env: Mapping[str, str], name: str, *, terminal: bool) -> str:
    """Why nobody can approve here and now; empty when a person can."""
    sign = persons.automation(env)
    if sign:
        return f"{sign} is set: an agent or CI must not approve for a person"
    if not terminal and not name:
        return "this is no terminal; a person may say who they are with `--yes-i-am NAME`"
    return ""


def signatures(root: Path, paths: Sequence[str]) -> list[str]:
    """What git says about signatures on the commit that last touched these files, and on tags of HEAD."""
    lines = []
    logged = process.run(
        ["git", "--no-pager", "log", "-1", "--format=%H %G? %GS", "--", *paths], cwd=root, timeout=30.0
    )
    commit, _, verdict = logged.stdout.strip().partition(" ")
    words = {"G": "a good signature", "U": "a good signature of unknown trust", "B": "a BAD signature"}
    if logged.status == 0 and commit:
        state, _, signer = verdict.partition(" ")
        kind = words.get(state, "no signature that can be verified here")
        lines.append(
            f"the last commit of these files, {commit[:12]}, has {kind}{' by ' + signer if signer else ''}"
        )
    tags = process.run(["git", "--no-pager", "tag", "--points-at", "HEAD"], cwd=root, timeout=30.0)
    for tag in tags.stdout.split("\n")[:20] if tags.status == 0 else []:
        if tag:
            checked = process.run(["git", "verify-tag", "--", tag], cwd=root, timeout=30.0)
            lines.append(
                f"tag {tag} {'has a good signature' if checked.status == 0 else 'has no verified signature'}"
            )
    return lines


class Approval:
    """One run: shows, asks, writes. `ask` shows a prompt and returns what was typed."""

    def __init__(self, root: Path, report: Report, ask: Callable[[str], str], name: str, date: str) -> None:
        self.root = root
        self.report = report
        self.ask = ask
        self.name = name
        self.date = date

    def record(self, record: Record) -> bool:
        """Confirm the record; True when it is approved afterwards."""
        grammar = [item for item in record.problems if item.code != "record-unsigned"]
        self.report.problems += grammar
        if grammar:
            return False
        if not record.clauses:
            self.report.add(
                "record-clause", "a record without a clause has nothing to approve", record.path, 1
            )
            return False
        self._show([printable(line) for _, line in numbered_lines(record.text)])
        if record.approved and not is_placeholder(record.approved_by):
            self._show([f"approved before by {printable(record.approved_by)}"])
        if not self._confirmed(f"Type {record.id} to approve this record as {self.name}: ", record.id):
            return False
        text = with_approval(record.text, self.name, self.date)
        replace_file(self.root / record.path, text.encode())
        self.report.lines.append(f"{record.path}: approved by {self.name} on {self.date}")
        return True

    def laws(self, record: Record, laws: Laws, sha256: str) -> None:
        """Confirm the meaning of the laws and store their hash."""
        self._show(side_by_side(record, laws))
        self._show(["", "The right side is made by rule from LAWS.bend; read the file as well.", ""])
        if not self._confirmed(f"Type laws to approve LAWS.bend as {self.name}: ", "laws"):
            return
        replace_file(self.root / APPROVAL, (sha256 + "\n").encode())
        self.report.lines.append(f"{APPROVAL}: {sha256}")

    def _show(self, lines: Sequence[str]) -> None:
        sys.stderr.write("\n".join(lines) + "\n")

    def _confirmed(self, prompt: str, word: str) -> bool:
        if self.ask(prompt).strip() == word:
            return True
        self.report.add("approve-refused", f"not approved: `{word}` was not typed")
        return False


def run(
    root: Path, record_id: str, env: Mapping[str, str], ask: Callable[[str], str] | None, name: str
) -> Report:
    """Both confirmations for one record. `ask` is None when there is no terminal and `name` speaks for itself."""
    report = Report("approve")
    why = refusal(env, name if ask is None else "", terminal=ask is not None)
    if why:
        report.add("approve-refused", why)
        return report
    intent = load(DiskTree(root))
    report.problems += intent.folder_problems
    chosen = selected(intent, record_id, report)
    if report.exit or not chosen:
        return report
    record = chosen[0]
    name = (name or (ask or _nothing)("Your name: ")).strip()
    if is_placeholder(name) or printable(name) != name or len(name) > 200:
        report.add("approve-refused", "a person's name is needed")
        return report
    # Who says `--yes-i-am` has confirmed by saying it: the words that are asked for are echoed back.
    answer = ask or (lambda prompt: prompt.split(" ")[1])
    approval = Approval(root, report, answer, name, time.strftime("%Y-%m-%d", time.gmtime()))
    if approval.record(record):
        if intent.laws is not None:
            approval.laws(record, intent.laws, intent.laws_sha256)
        elif intent.laws_sha256:
            report.problems += intent.laws_problems
        else:
            report.note("laws-missing", "there are no laws yet: run this again when LAWS.bend exists", LAWS)
    report.lines += signatures(root, [record.path, LAWS, APPROVAL])
    report.lines.append(
        "This is a statement and no signature: sign the commit that holds it, and protect the branch."
    )
    return report


def _nothing(_prompt: str) -> str:
    return ""


def main(argv: Sequence[str]) -> int:
    made = arguments.parser("approve", SUMMARY, record=False, repo=False)
    made.add_argument("words", nargs="+", metavar="[REPO] RECORD-ID", help="the record to approve")
    made.add_argument(
        "--yes-i-am", metavar="NAME", default="", help="approve without a terminal, as this person"
    )
    options = arguments.parse(made, argv)
    if len(options.words) > 2:
        made.error("expected [REPO] RECORD-ID")
    root = Path(options.words[0] if len(options.words) == 2 else ".")
    ask = persons.ask if persons.on_terminal() and not options.yes_i_am else None
    return arguments.finish(run(root, options.words[-1], os.environ, ask, options.yes_i_am), options)
