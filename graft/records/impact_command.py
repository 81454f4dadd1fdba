"""`impact`: what did an edit of an approved record or of LAWS.bend make stale? Needs git, no Bend, no network."""

from __future__ import annotations

from collections.abc import Sequence

from . import arguments, baseline
from .files import DiskTree
from .history import History, HistoryError
from .impact import Item
from .report import Report
from .repository import load, selected

SUMMARY = "Name what an edit of an approved record or of LAWS.bend makes stale, and why."


def main(argv: Sequence[str]) -> int:
    made = arguments.parser("impact", SUMMARY)
    made.add_argument(
        "--since", metavar="REF", default="", help="compare with this commit instead of the receipts"
    )
    options = arguments.parse(made, argv)
    root = arguments.root(options)
    report = Report("impact")
    tree, history = DiskTree(root), History(root)
    now = load(tree)
    report.notes += now.notes
    if not root.is_dir():
        report.add("missing", "is no directory", str(root))
    elif options.record and not selected(now, options.record, report):
        pass
    elif options.since:
        try:
            items = baseline.by_tree(tree, now, load(history.tree(options.since)), report, options.record)
        except HistoryError as error:
            report.add("history", str(error))
        else:
            _add(report, items)
    else:
        _add(report, baseline.by_receipts(tree, now, report, history.find, options.record))
    return arguments.finish(report, options)


def _add(report: Report, items: list[Item]) -> None:
    report.data["impact"] = [item.value() for item in items]
    report.problems += baseline.problems(items)
