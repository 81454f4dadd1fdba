"""`conform`: does the app's real code do what the model says, and would the check notice if it did not?

The whole manifest is validated before anything runs. Then every check runs (side by side), each as three argv
lists without a shell. Rows are compared as a multiset; only rows that differ are printed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event

from . import arguments, bend, manifest, process
from .files import DiskTree, FileRefusedError
from .manifest import PATH, PROGRAMS, Check, Manifest
from .process import Outcome
from .report import Report
from .repository import LAWS, Intent, load, selected

SUMMARY = "Compare the model with the app's real code, case by case."
MAX_SHOWN = 20
"""Most differing rows that are printed for one check; all of them count."""


def rows(output: str) -> Counter[str]:
    """The nonblank lines of an output with how often each occurs."""
    lines = [line[:-1] if line.endswith("\r") else line for line in output.split("\n")]
    return Counter([line for line in lines if line.strip(" \t")])


def compare(check: Check, outcomes: Mapping[str, Outcome], report: Report) -> None:
    """Add what is wrong with one check, given what its programs did."""
    where = f'check "{check.name}"'
    usable = True
    for program in PROGRAMS:
        outcome = outcomes[program]
        if outcome.failure:
            report.add(outcome.failure, f"{where}: `{program}` {outcome.detail}", PATH)
        elif outcome.status != 0:
            detail = _first_line(outcome.stderr)
            message = f"{where}: program failed: `{program}` exited with {outcome.status}{detail}"
            report.add("program-failed", message, PATH)
        elif not rows(outcome.stdout):
            report.add("program-failed", f"{where}: program failed: `{program}` printed no row", PATH)
        else:
            continue
        usable = False
    if not usable:
        return
    model, real, broken = [rows(outcomes[program].stdout) for program in PROGRAMS]
    if model != real:
        report.add("rows-differ", f"{where}: {_difference(model, real)}", PATH)
        report.lines += _differing_rows(check.name, model, real)
    if broken == real:
        report.add(
            "oracle-idle", f"{where}: oracle does not exercise the real code: `broken` prints the same", PATH
        )


def _first_line(stderr: str) -> str:
    for line in reversed(stderr.split("\n")):
        if line.strip():
            return f" ({line.strip()[:200]})"
    return ""


def _difference(model: Counter[str], real: Counter[str]) -> str:
    missing, extra = sum((model - real).values()), sum((real - model).values())
    return f"model and real code differ: {missing} rows only in the model, {extra} only in the real code"


def _differing_rows(name: str, model: Counter[str], real: Counter[str]) -> list[str]:
    differing = sorted(row for row in {*model, *real} if model[row] != real[row])
    lines = [
        f'check "{name}": model x{model[row]}, real x{real[row]}: {row[:300]}'
        for row in differing[:MAX_SHOWN]
    ]
    if len(differing) > MAX_SHOWN:
        lines.append(f'check "{name}": and {len(differing) - MAX_SHOWN} more differing rows')
    return lines


def _argv(argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """The program named `bend` is found as the gate finds it."""
    if argv[0] == "bend":
        return [bend.locate(env) or argv[0], *argv[1:]]
    return list(argv)


def execute(checks: Sequence[Check], root: Path, env: Mapping[str, str], report: Report) -> None:
    """Run the programs of the checks and compare; Ctrl-C ends every program that is running."""
    stop = Event()

    def one(work: tuple[Check, str]) -> Outcome:
        check, program = work
        argv = _argv(check.argv(program), env)
        return process.run(argv, cwd=root / check.cwd, timeout=check.timeout_ms / 1000, env=env, stop=stop)

    outcomes = process.side_by_side(one, [(check, program) for check in checks for program in PROGRAMS], stop)
    for index, check in enumerate(checks):
        start = index * len(PROGRAMS)
        compare(check, {name: outcomes[start + at] for at, name in enumerate(PROGRAMS)}, report)


def _read(tree: DiskTree, intent: Intent, report: Report) -> Manifest | None:
    try:
        data = tree.read(PATH)
    except FileRefusedError as error:
        report.add("manifest-missing" if error.code == "missing" else error.code, error.message, PATH)
        return None
    found = manifest.parse(data, intent.laws.ids if intent.laws else None)
    report.problems += found.problems
    report.notes += found.notes
    return found


def _chosen(found: Manifest, intent: Intent, only: str, report: Report) -> list[Check]:
    """All checks, or those that name a law to which the record's receipt maps a clause."""
    if not only:
        return list(found.checks)
    if not selected(intent, only, report):
        return []
    receipt = intent.receipts.get(only)
    if receipt is None:
        message = "without a readable receipt it is not known which checks belong to the record"
        report.add("receipt-missing", message, f".intent/receipts/{only}.json", None, only)
        return []
    laws = set(receipt.choices.values())
    return [check for check in found.checks if laws & set(check.laws)]


def run(root: Path, env: Mapping[str, str], *, require_coverage: bool = False, only: str = "") -> Report:
    """Validate the manifest, run the checks, list the laws that no check names."""
    report = Report("conform")
    tree = DiskTree(root)
    intent = load(tree)
    report.problems += intent.laws_problems
    found = _read(tree, intent, report)
    if found is None or intent.laws is None:
        return report
    checks = _chosen(found, intent, only, report)
    named = {law for check in found.checks for law in check.laws}
    uncovered = [law for law in intent.laws.ids if law not in named]
    report.data["uncovered"] = list(uncovered)
    for law in uncovered:
        line = intent.laws.scan.line_of("law", law)
        (report.add if require_coverage else report.note)(
            "uncovered", f"law {law} is named by no check", LAWS, line
        )
    if found.problems or (only and not checks):
        return report
    execute(checks, root, env, report)
    report.lines.append(f"{len(checks)} checks run")
    return report


def main(argv: Sequence[str]) -> int:
    made = arguments.parser("conform", SUMMARY)
    made.add_argument(
        "--require-coverage", action="store_true", help="reject when a law is named by no check"
    )
    options = arguments.parse(made, argv)

    def work(root: Path) -> Report:
        return run(root, os.environ, require_coverage=options.require_coverage, only=options.record)

    return arguments.run("conform", options, work)
