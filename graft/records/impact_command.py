"""`impact`: what did an edit of an approved record or of LAWS.bend make stale? Needs git, no Bend, no network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import arguments, baseline
from .files import DiskTree
from .history import History, HistoryError
from .report import Report
from .repository import load, selected

SUMMARY = "Name what an edit of an approved record or of LAWS.bend makes stale, and why."


def run(root: Path, since: str, only: str) -> Report:
    """The walk for a work tree, against the receipts or against a commit."""
    report = Report("impact")
    tree, history = DiskTree(root), History(root)
    now = load(tree)
    report.notes += now.notes
    if only and not selected(now, only, report):
        return report
    try:
        if since:
            items = baseline.by_tree(tree, now, load(history.tree(since)), report, only)
        else:
            items = baseline.by_receipts(tree, now, report, history.find, only)
    except HistoryError as error:
        report.add("history", str(error))
        return report
    report.data["impact"] = [item.value() for item in items]
    report.problems += baseline.problems(items)
    return report


def main(argv: Sequence[str]) -> int:
    made = arguments.parser("impact", SUMMARY)
    made.add_argument(
        "--since", metavar="REF", default="", help="compare with this commit instead of the receipts"
    )
    options = arguments.parse(made, argv)
    return arguments.run("impact", options, lambda root: run(root, options.since, options.record))
