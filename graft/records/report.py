"""What a command found: every problem with its place, its meaning for the exit code, and what to do about it.

`REPAIRS` is the one table from failure to repair; the documentation prints it and a test compares the two.
Exit 0 passes, 1 is rejected evidence (values that disagree), 2 is malformed or missing input, an unavailable
tool, a timeout or an output cap. When both occur, 2 wins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

PASS, REJECTED, MALFORMED = 0, 1, 2
MAX_PRINTED = 500
"""Most problems, notes or lines of each kind that are printed; the exit code counts all of them."""

REPAIRS: Mapping[str, tuple[int, str]] = {
    # records
    "record-status": (2, "Write one line `status: descriptive`, `status: draft` or `status: approved`."),
    "record-metadata": (
        2,
        "Write `id:`, `status:` and `context:` exactly once, each on a line of its own, anywhere.",
    ),
    "record-id": (2, "Make the `id:` line equal to the file name without `.md`."),
    "record-context": (2, "Let `context:` name a relative path that ends in `CONTEXT.md`."),
    "record-section": (
        2,
        "Keep each required `## ` section exactly once and put content in it, `None` if there is none.",
    ),
    "record-clause": (
        2,
        "Write clauses as `R1: text`, `R2: text`, … without a gap, one a line, in the Rules section.",
    ),
    "record-unsigned": (
        2,
        "Let the person who approves run `graft records approve ID`, or set `status: draft`.",
    ),
    "record-unknown": (2, "Name a record that exists: the file name in `.intent/records/` without `.md`."),
    "modules-syntax": (
        2,
        "Write each module as `- name: R1-R3, R5; laws: law_a, prefix_*`, names unique and lower case.",
    ),
    "modules-assignment": (1, "Put every clause and every law in exactly one module."),
    "modules-rules": (
        2,
        "In a record with modules keep only `R1: …` lines, and blank ones, from the first rule on.",
    ),
    "modules-lines": (2, "End the lines of a record with modules with LF or CRLF only."),
    # model
    "laws-missing": (2, "Write `.intent/model/LAWS.bend`, or set the record to draft until it exists."),
    "laws-empty": (1, "Declare at least one law in LAWS.bend."),
    "laws-duplicate": (2, "Give every law of LAWS.bend an id of its own; `none` is reserved."),
    "layout": (2, "Rewrite the line in the plain layout that the message names; the scanner does not guess."),
    "approval-missing": (
        2,
        "Let the person who owns the laws run `graft records approve ID`; it writes laws.sha256.",
    ),
    "approval-malformed": (
        2,
        "Keep only the lower-case SHA-256 in laws.sha256; `graft records approve ID` writes it.",
    ),
    "approval-stale": (
        1,
        "LAWS.bend changed after its approval: let a person review it and run `graft records approve ID`.",
    ),
    # receipts
    "receipt-missing": (2, "Run `graft records receipt ID MODEL` and commit the receipt."),
    "receipt-malformed": (2, "Regenerate the receipt with `graft records receipt ID MODEL`; do not edit it."),
    "receipt-policy": (
        1,
        "The receipt follows another policy: regenerate it with `graft records receipt ID MODEL`.",
    ),
    "receipt-stale-record": (
        1,
        "The record changed after its judgment: review it and regenerate the receipt.",
    ),
    "receipt-stale-laws": (
        1,
        "LAWS.bend changed after the judgment: approve it again and regenerate the receipt.",
    ),
    "receipt-disagrees": (1, "The receipt does not say what the current files make of it: regenerate it."),
    "receipt-rejected": (
        1,
        "The judges did not accept the model: revise the record or the laws, then judge again.",
    ),
    "receipt-edited": (1, "The receipt was edited after it was sealed: restore it or regenerate it."),
    # gate
    "forbidden": (1, "Remove the construct; a proof must be total and complete."),
    "proof-missing": (1, "Define `def M.law(...)` in PROOF.bend under the alias that imports LAWS.bend."),
    "proof-import": (1, "Import LAWS.bend in PROOF.bend: `import ./LAWS.bend as M`."),
    "proof-failed": (
        1,
        "Repair the proof; run `bend PROOF.bend --check-only` in `.intent/model` to see Bend's report.",
    ),
    "negative-missing": (
        1,
        "Add `.intent/model/neg/LAW.bend` with a wrong proof and `# expect-failure: M.LAW`.",
    ),
    "negative-malformed": (
        2,
        "Write exactly one `# expect-failure: M.law` line in every file of `.intent/model/neg/`.",
    ),
    "negative-unbound": (
        1,
        "Let the alias in `# expect-failure:` import LAWS.bend and define that law in the same file.",
    ),
    "negative-invalid": (
        1,
        "Make the control fail for its own law: Bend must print exactly `Location: M.law`.",
    ),
    "crosscheck": (
        1,
        "The scanner and Bend disagree about the laws: put each law at column zero as `law name:`.",
    ),
    "bend-missing": (2, "Install Bend 2 and put it on PATH, or set BEND_BIN to its path."),
    "bend-output": (
        2,
        "Bend printed something unknown: run it by hand; a newer Bend may need a newer Graft.",
    ),
    # conformance
    "manifest-missing": (2, "Write `.intent/conform.json`."),
    "manifest-malformed": (2, "Correct the manifest at the place that the message names."),
    "manifest-law": (1, "Name only laws that LAWS.bend declares."),
    "program-failed": (1, "Let the program exit 0 and print one `case result` line a case."),
    "rows-differ": (
        1,
        "Correct the code or have the record and the model revised; the differing rows are listed.",
    ),
    "oracle-idle": (
        1,
        "Make `broken` wrong for a case that `real` exercises, and let `real` call the shipped code.",
    ),
    "uncovered": (1, "Name the laws in a check of conform.json that exercises them."),
    # impact
    "stale": (
        1,
        "Follow the chain: review the change, approve it, regenerate the receipt, rerun conformance.",
    ),
    "unchecked": (1, "Produce the missing evidence; without it nothing is known."),
    "history": (2, "Name an existing commit in `--since`, and run inside a git work tree."),
    # tools and files
    "vendored-drift": (
        1,
        "Run `graft records vendor` to restore the scripts, or rename the file if it is yours.",
    ),
    "enums-malformed": (2, "Correct the enum specification at the place that the message names."),
    "enums-drift": (1, "Run `graft records enums SPEC --output FILE` again."),
    "exists": (2, "Remove or rename the file, or choose another target; it was not made by this tool."),
    "judge-unavailable": (
        2,
        "Install the package or set the variable that the message names, or choose another judge.",
    ),
    "judge-budget": (2, "Declare modules in the record, so that each is judged with its own laws only."),
    "judge-answer": (2, "The judge's answer was refused; run it again, or choose another judge."),
    "approve-refused": (
        2,
        "A person has to approve, on a terminal or with `--yes-i-am NAME` outside of agents and CI.",
    ),
    "draft": (2, "Approve the record and the laws first: `graft records approve ID`."),
    "missing": (2, "Create the file, or correct the path."),
    "symlink": (2, "Replace the symlink by a regular file; nothing below a symlink is read."),
    "unreadable": (2, "Make it a readable regular file."),
    "too-large": (2, "Make it smaller; the message names the bound."),
    "timeout": (2, "Make the program faster or raise `timeoutMs` (at most 600000)."),
    "output-cap": (2, "Print less: each stream is capped at 1 MiB."),
    "not-started": (2, "Install the program or correct the command."),
}


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, where, and (through its code) what it means and how to repair it."""

    code: str
    message: str
    path: str = ""
    line: int | None = None
    record: str = ""

    @property
    def exit(self) -> int:
        return REPAIRS[self.code][0]

    @property
    def repair(self) -> str:
        return REPAIRS[self.code][1]

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path


@dataclass
class Report:
    """Collected by a command, then printed as text or as one JSON object."""

    command: str
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    data: dict[str, object] = field(default_factory=dict)

    def add(self, code: str, message: str, path: str = "", line: int | None = None, record: str = "") -> None:
        self.problems.append(Problem(code, message, path, line, record))

    def note(
        self, code: str, message: str, path: str = "", line: int | None = None, record: str = ""
    ) -> None:
        """Something worth knowing that does not change the exit code."""
        self.notes.append(Problem(code, message, path, line, record))

    @property
    def exit(self) -> int:
        return max([problem.exit for problem in self.problems], default=PASS)

    def text(self) -> str:
        out = [printable(line) for line in _bounded(self.lines)]
        for problem in _bounded(_sorted(self.problems)):
            out.append(f"{problem.place or self.command}: {problem.code}: {problem.message}")
            out.append(f"    repair: {problem.repair}")
        for note in _bounded(_sorted(self.notes)):
            out.append(f"note: {note.place + ': ' if note.path else ''}{note.message}")
        verdict = ("pass", "rejected", "malformed or missing input")[self.exit]
        count = len(self.problems)
        out.append(
            f"graft records {self.command}: {verdict}"
            + (f" ({count} problem{'s' * (count != 1)})" if count else "")
        )
        return "\n".join([printable(line) for line in out]) + "\n"

    def as_json(self) -> str:
        value = {
            "command": self.command,
            "exit": self.exit,
            "problems": [_plain(problem, repair=True) for problem in _bounded(_sorted(self.problems))],
            "notes": [_plain(note, repair=False) for note in _bounded(_sorted(self.notes))],
            **self.data,
        }
        return json.dumps(value, indent=2, ensure_ascii=True) + "\n"


def _plain(problem: Problem, *, repair: bool) -> dict[str, object]:
    value: dict[str, object] = {
        "code": problem.code,
        "message": problem.message,
        "path": problem.path,
        "line": problem.line,
        "record": problem.record,
    }
    if repair:
        value.update({"exit": problem.exit, "repair": problem.repair})
    return value


def _sorted(problems: list[Problem]) -> list[Problem]:
    unique = list(dict.fromkeys(problems))
    return sorted(unique, key=lambda item: (item.path, item.line or 0))


def _bounded(items: list) -> list:  # type: ignore[type-arg]
    return items[:MAX_PRINTED]


def printable(text: str) -> str:
    """Text for a terminal: control and direction-changing characters are shown, not obeyed."""
    return "".join([char if char.isprintable() else char.encode("unicode_escape").decode() for char in text])
