"""`inventory`: an index of the declarations of a model. It is no proof checker.

`defined` says that an authored definition resolves to a law; only the gate establishes the judgment.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import arguments, model
from .files import DiskTree, Tree
from .model import Negative
from .report import Report
from .repository import LAWS, MODEL, PROOF

SUMMARY = "List laws, definitions, types, imports and negatives of the model."


def run(tree: Tree) -> Report:
    """Index the model. Only what cannot be read is a problem; an open law is not."""
    report = Report("inventory")
    found = model.read(tree)
    report.problems += [problem for problem in found.problems if problem.code != "forbidden"]
    laws = found.files.get(LAWS)
    if laws is None and not any(problem.path == LAWS for problem in report.problems):
        report.add("laws-missing", "does not exist", LAWS)
    declared = laws.laws if laws else ()
    proof = found.files.get(PROOF)
    proven = model.proofs(PROOF, proof) if proof else {}
    controls = [model.negative(path, found.files[path], declared) for path in found.negatives]
    covered = {item.law: item.path for item in controls if isinstance(item, Negative)}
    report.data["laws"] = [
        {
            "id": law,
            "line": laws.line_of("law", law) if laws else None,
            "status": "defined" if law in proven else "open",
            "proofLine": proven.get(law),
            "negative": covered.get(law),
        }
        for law in declared
    ]
    report.data["files"] = {
        path: [{"kind": item.kind, "name": item.name, "line": item.line} for item in scan.declarations]
        for path, scan in found.files.items()
    }
    for law in declared:
        status = f"defined at PROOF.bend:{proven[law]}" if law in proven else "open"
        control = covered.get(law, "no negative")
        report.lines.append(f"law {law}: {status}; {control}")
    for path, scan in found.files.items():
        names = ", ".join([f"{item.kind} {item.name}" for item in scan.declarations])
        report.lines.append(f"{path[len(MODEL) + 1 :]}: {names or 'no declaration'}")
    return report


def main(argv: Sequence[str]) -> int:
    options = arguments.parse(arguments.parser("inventory", SUMMARY, record=False), argv)
    return arguments.run("inventory", options, lambda root: run(DiskTree(root)))
