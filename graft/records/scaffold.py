"""`init`: a draft record with a tiny complete model, so that a new repository starts from files that fit together.

Nothing is approved, the oracle is a stub that fails until it calls real code, and everything stays under
`.intent/`. Files that exist are never touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import arguments
from .files import DiskTree, FileRefusedError, replace_file
from .record import FOLDER
from .report import Report

SUMMARY = "Create a draft record and a small model under .intent/."

_RECORD = """# First decision

id: 0001-first-decision
status: draft
context: {context}

## Intent

Say in two or three sentences what a person wants from this decision, and why.

## Vocabulary

Words that the project already defines are in CONTEXT.md. New here: **stopped** and **active**.

## Rules

R1: A stopped subject is refused.
R2: An active subject is allowed.

## Worked examples

- stopped: refused
- active: allowed

## Freedoms

How the answer is presented is up to the implementation.

## Non-goals

None

## Open questions

- Are these two rules the whole decision?

## Approval

None
"""

_CONTEXT = """# Vocabulary

Define each word of the project once, here. Records cite this file and define only what they introduce.
"""

_LAWS = """# The modelled decision and what is claimed of it. A person owns this file.
import Base

type State is Data:
  Stopped{}
  Active{}

def allowed(state: State) -> Bool:
  match state:
    case Stopped{}:
      False{}
    case Active{}:
      True{}

# R1
law stopped_refused:
  {allowed(Stopped{}) == False{} : Bool}

# R2
law active_allowed:
  {allowed(Active{}) == True{} : Bool}
"""

_PROOF = """import Base
import ./LAWS.bend as M

def M.stopped_refused():
  {==}

def M.active_allowed():
  {==}
"""

_LIB = """# Small lemmas for proofs. Import what you need; review updates like any other code.
import Base

law not_not:
  for value: Bool
  {Bool.not(Bool.not(value)) == value : Bool}

def not_not(value):
  match value:
    case True{}:
      {==}
    case False{}:
      {==}
"""

_NEGATIVE = """# A wrong proof of {law}: it has to fail, and exactly there.
# expect-failure: M.{law}
import Base
import ../LAWS.bend as M

def M.{law}():
  {{True{{}} : Bool}}
"""

_ROWS = """import Base
import ./LAWS.bend as M

def word(answer: Bool) -> String:
  match answer:
    case True{{}}:
      "{yes}"
    case False{{}}:
      "{no}"

def main() -> IO(Unit):
  do IO<Unit>:
    IO.print("stopped " ++ word(M.allowed(M.Stopped{{}})))
    IO.print("active " ++ word(M.allowed(M.Active{{}})))
"""

_MANIFEST = """{
  "schema": 1,
  "checks": [
    {
      "name": "first-decision",
      "laws": ["stopped_refused", "active_allowed"],
      "model": ["bend", ".intent/model/Rows.bend"],
      "real": ["python3", ".intent/oracle/first_decision.py"],
      "broken": ["bend", ".intent/model/Broken.bend"]
    }
  ]
}
"""

_ORACLE = """# Prints one `case result` line a case, by calling the code that ships. Do not retype the rules here.
import sys

sys.exit("replace this stub: import the shipped decision, call it for `stopped` and `active`, print the rows")
"""

_IGNORE = """# probes of the gate's cross-check, removed after every run
.crosscheck-*.bend
"""


def files(*, own_context: bool) -> dict[str, str]:
    """The scaffold by path. With `own_context`, a CONTEXT.md is part of it, below `.intent/`."""
    context = "./.intent/CONTEXT.md" if own_context else "./CONTEXT.md"
    made = {
        f"{FOLDER}/0001-first-decision.md": _RECORD.replace("{context}", context),
        ".intent/model/LAWS.bend": _LAWS,
        ".intent/model/PROOF.bend": _PROOF,
        ".intent/model/Lib.bend": _LIB,
        ".intent/model/neg/stopped_refused.bend": _NEGATIVE.format(law="stopped_refused"),
        ".intent/model/neg/active_allowed.bend": _NEGATIVE.format(law="active_allowed"),
        ".intent/model/Rows.bend": _ROWS.format(yes="allowed", no="refused"),
        ".intent/model/Broken.bend": _ROWS.format(yes="allowed", no="allowed"),
        ".intent/model/.gitignore": _IGNORE,
        ".intent/conform.json": _MANIFEST,
        ".intent/oracle/first_decision.py": _ORACLE,
    }
    return {**made, ".intent/CONTEXT.md": _CONTEXT} if own_context else made


def run(root: Path) -> Report:
    """Write the scaffold. Existing files stay; a repository that has records already gets none."""
    report = Report("init")
    tree = DiskTree(root)
    try:
        if any(name.endswith(".md") and name[:4].isdigit() for name in tree.names(FOLDER)):
            report.add("exists", "there are records already; copy one to start the next", FOLDER)
            return report
    except FileRefusedError as error:
        report.add(error.code, error.message, error.path)
        return report
    written = []
    for path, text in files(own_context=tree.kind("CONTEXT.md") != "file").items():
        parts = path.split("/")
        folders = ["/".join(parts[:index]) for index in range(1, len(parts))]
        blocked = [folder for folder in folders if tree.kind(folder) not in ("dir", "missing")]
        if blocked:
            report.add("symlink", "is not a plain directory; nothing is written through it", blocked[0])
            return report
        if tree.kind(path) != "missing":
            report.note("exists", "exists and is left as it is", path)
            continue
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        replace_file(root / path, text.encode())
        written.append(path)
    report.data["written"] = written
    report.lines += [f"wrote {path}" for path in written]
    report.lines.append(
        "next: edit the draft, answer its open questions, then let a person run `graft records approve`"
    )
    return report


def main(argv: Sequence[str]) -> int:
    options = arguments.parse(arguments.parser("init", SUMMARY, record=False), argv)
    return arguments.run("init", options, run)
