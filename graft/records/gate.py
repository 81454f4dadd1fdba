"""`gate`: does Bend accept the proofs, and does every deliberately wrong one fail for its own law?

The model is scanned first: layout, forbidden constructs, symlinks, proof definitions through aliases, negatives.
Then Bend checks PROOF.bend, every other module with laws of its own and every negative, and is asked which laws
LAWS.bend declares. `--check-only` is used, not `--verdict`, which rejects proofs that the checker accepts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event

from . import arguments, bend, blocks, crosscheck, model, process
from .bend import Bend, BendUnavailableError, Reading
from .check import append_impact
from .files import DiskTree, Tree
from .history import History
from .model import Model, Negative
from .report import MALFORMED, Report
from .repository import LAWS, MODEL, NEGATIVES, PROOF, Intent, load

SUMMARY = "Check the model, its proofs and its negative controls with Bend."


def static(tree: Tree, intent: Intent, report: Report) -> tuple[Model, list[Negative]]:
    """Everything that can be said without Bend. Returns the model and its well-formed negatives."""
    found = model.read(tree)
    report.problems += found.problems
    report.notes += found.outside
    report.problems += [item for item in intent.laws_problems if item.code != "layout"]
    laws = found.files[LAWS].laws if LAWS in found.files else ()
    if LAWS in found.files and not laws:
        report.add("laws-empty", "declares no law", LAWS)
    proof = found.files.get(PROOF)
    if proof is None:
        if not any(item.path == PROOF for item in report.problems):
            report.add("missing", "does not exist", PROOF)
    elif not proof.refusals:  # of a refused file nothing is known, so nothing is missing from it
        if LAWS not in model.aliases(PROOF, proof).values():
            report.add("proof-import", "does not import LAWS.bend under an alias", PROOF, 1)
        proven = model.proofs(PROOF, proof)
        for law in laws:
            if law not in proven:
                line = found.files[LAWS].line_of("law", law)
                report.add(
                    "proof-missing",
                    f"missing proof: PROOF.bend has no total definition of law {law}",
                    LAWS,
                    line,
                )
    controls = _negatives(found, laws, report)
    report.data["laws"] = list(laws)
    return found, controls


def _negatives(found: Model, laws: tuple[str, ...], report: Report) -> list[Negative]:
    controls = []
    for path in found.negatives:
        if found.files[path].refusals:
            continue
        read = model.negative(path, found.files[path], laws)
        if isinstance(read, Negative):
            controls.append(read)
        else:
            report.problems.append(read)
    covered = {item.law for item in controls}
    for law in laws:
        if law not in covered and not any(found.files[path].refusals for path in found.negatives):
            line = found.files[LAWS].line_of("law", law)
            report.add("negative-missing", f"law {law} has no negative control", LAWS, line)
    return controls


def judge_positive(reading: Reading, path: str, report: Report) -> None:
    """Add a problem unless Bend accepted the file."""
    outcome = reading.outcome
    if outcome.failure:
        report.add(outcome.failure, f"Bend {outcome.detail}", path)
    elif reading.failed or reading.open_laws:
        where = ", ".join([item or "a parse error" for item in reading.locations][:10])
        detail = f" at {where}" if where else f": {reading.excerpt()}"
        report.add("proof-failed", f"Bend does not accept it{detail}", path)
    elif not reading.passed:
        report.add(
            "proof-failed", f"Bend prints no success (exit {outcome.status}): {reading.excerpt()}", path
        )


def judge_negative(reading: Reading, control: Negative, report: Report) -> None:
    """Add a problem unless the control failed, and for exactly the law it names."""
    outcome = reading.outcome
    if outcome.failure:
        report.add(outcome.failure, f"Bend {outcome.detail}", control.path)
    elif outcome.status == 0 or not reading.failed:
        report.add("negative-invalid", "invalid negative: the control did not fail", control.path)
    elif control.location not in reading.locations:
        other = ", ".join([item or "a parse error" for item in reading.locations][:5]) or "no location"
        message = f"invalid negative: it failed at {other}, not at `Location: {control.location}`"
        report.add("negative-invalid", message, control.path)


def _judge(
    tool: Bend, root: Path, found: Model, controls: list[Negative], env: Mapping[str, str], report: Report
) -> None:
    positives = [path for path in [PROOF, *found.others] if path in found.files]
    paths = positives + [control.path for control in controls]
    folder = root / MODEL
    stop = Event()

    def one(path: str) -> Reading:
        return bend.check(tool, path[len(MODEL) + 1 :], folder, env, stop)

    readings = process.side_by_side(one, paths, stop)
    for index, path in enumerate(positives):
        judge_positive(readings[index], path, report)
    for index, control in enumerate(controls):
        judge_negative(readings[len(positives) + index], control, report)


def run(root: Path, env: Mapping[str, str], only: str = "") -> Report:
    """The whole gate of a repository."""
    report = Report("gate")
    tree = DiskTree(root)
    intent = load(tree)
    found, controls = static(tree, intent, report)
    try:
        tool: Bend | None = bend.find(env, root)
    except BendUnavailableError as error:
        report.add("bend-missing", str(error))
        tool = None
    if tool is not None:
        report.data["bend"] = tool.label
        report.lines.append(f"using {tool.label}")
        if tool.version < bend.TESTED:
            report.note("bend-output", f"{tool.label} is older than the one these tools were written for")
    if tool is not None and report.exit < MALFORMED:
        _judge(tool, root, found, controls, env, report)
        if intent.laws is not None and LAWS in found.files:
            crosscheck.run(tool, root, blocks.split(found.files[LAWS]), env, report)
    elif tool is not None:
        report.note("layout", "Bend was not run: the model has to be well formed first", MODEL)
    report.lines.append(f"{len(found.files)} model files, {len(controls)} negatives in {NEGATIVES}")
    if report.exit:
        append_impact(tree, intent, report, History(root), only)
    return report


def main(argv: Sequence[str]) -> int:
    options = arguments.parse(arguments.parser("gate", SUMMARY), argv)
    return arguments.run("gate", options, lambda root: run(root, os.environ, options.record))
