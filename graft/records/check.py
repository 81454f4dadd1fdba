"""`check`: are the records well formed, approved and backed by receipts that judge the current texts?

Offline, without Bend, without a network. When it rejects, it appends what is stale and why.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import arguments, baseline, headers, receipts
from .files import DiskTree, Tree
from .history import History
from .record import FOLDER, Record
from .report import Problem, Report
from .repository import LAWS, Intent, load, receipt_path, record_problems, selected

SUMMARY = "Check records, approvals and receipts, offline."


def examine(tree: Tree, intent: Intent, report: Report, only: str = "") -> None:
    """Add everything that is wrong with the records, the laws they rest on and their receipts."""
    report.problems += intent.folder_problems
    report.notes += intent.notes
    chosen = selected(intent, only, report)
    for record in chosen:
        problems, notes = record_problems(record, named=bool(only))
        report.problems += problems
        report.notes += notes
        if record.context and tree.kind(_plain(record.context)) != "file":
            report.note("record-context", "the vocabulary that `context:` names does not exist", record.path)
        if not record.approved and record.id in intent.receipts:
            report.note("draft", "is a receipt for a record that is not approved", receipt_path(record.id))
    approved = [record for record in chosen if record.approved]
    laws_exist = tree.kind(LAWS) != "missing"
    if approved or laws_exist:
        report.problems += intent.laws_problems
    if approved and laws_exist:
        report.problems += intent.approval_problems
        if intent.laws is not None and not intent.laws.ids:
            report.add("laws-empty", "declares no law", LAWS)
    for record in approved:
        report.problems += _evidence(intent, record)
    report.data["records"] = [
        {"id": record.id, "status": record.status, "clauses": len(record.clauses)} for record in chosen
    ]
    if not intent.records:
        report.note("missing", "there is no record", FOLDER)


def _plain(path: str) -> str:
    return "/".join([part for part in path.split("/") if part != "."])


def _evidence(intent: Intent, record: Record) -> list[Problem]:
    """What is wrong with the receipt of one approved record."""
    path = receipt_path(record.id)
    if record.id in intent.receipt_problems:
        return [intent.receipt_problems[record.id]]
    receipt = intent.receipts.get(record.id)
    if receipt is None:
        return [Problem("receipt-missing", "the approved record has no receipt", path, None, record.id)]
    if intent.laws is None:
        return []
    resolution = intent.resolution(record)
    found = list(resolution.problems)
    if not resolution.problems:
        judged = receipts.verify(receipt, record, intent.laws, resolution.modules)
        found += [Problem(code, message, path, None, record.id) for code, message in judged]
    return found


def run(tree: Tree, history: History | None, only: str = "") -> Report:
    """The whole check of a tree. Without a history the appended impact list has less detail."""
    report = Report("check")
    intent = load(tree)
    examine(tree, intent, report, only)
    report.problems += headers.drift(tree)
    if report.exit:
        append_impact(tree, intent, report, history, only)
    return report


def append_impact(
    tree: Tree, intent: Intent, report: Report, history: History | None, only: str = ""
) -> None:
    """The impact list behind a report that rejects; its own broken links are in the report already."""
    aside = Report("impact")
    items = baseline.by_receipts(
        tree, intent, aside, history.find if history else lambda path, sha256: None, only
    )
    baseline.append(report, items)
    report.notes += aside.notes


def main(argv: Sequence[str]) -> int:
    options = arguments.parse(arguments.parser("check", SUMMARY), argv)
    return arguments.run("check", options, lambda root: run(DiskTree(root), History(root), options.record))
