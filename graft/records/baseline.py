"""Runs the impact walk for a work tree or for two trees: chooses the baseline and finds the older texts.

By default the baseline of a record is its receipt: its two hashes are compared with the files now, so an edit that
is already committed is found, and a reformatted receipt hides nothing. With a tree as baseline everything is
compared with that tree.
"""

from __future__ import annotations

from collections.abc import Callable

from . import blocks, impact, manifest, scanner
from .files import FileRefusedError, Tree
from .impact import Comparison, Item, Texts
from .manifest import Manifest
from .receipts import Receipt
from .record import FOLDER, UNREADABLE, Record, parse
from .report import Problem, Report
from .repository import LAWS, Intent, receipt_path

Find = Callable[[str, str], "str | None"]
"""Looks up (path, SHA-256) in older versions; None when it is not found."""


class _Walk:
    """Collects comparisons and reasons over the records, then assesses them once."""

    def __init__(self, tree: Tree, now: Intent, report: Report) -> None:
        self.tree = tree
        self.now = now
        self.report = report
        self.comparisons: list[Comparison] = []
        self.receipts: dict[str, str] = {}
        self.missing: list[Item] = []

    def finish(self) -> list[Item]:
        rows = self._manifest()
        items = impact.assess(self.comparisons, self.receipts, rows, self._exists) + self.missing
        if (
            rows is None
            and self.tree.kind(manifest.PATH) == "missing"
            and not any(i.kind == "conform" for i in items)
        ):
            self.report.note(
                "manifest-missing", "there is no conformance manifest; no law is stale", manifest.PATH
            )
        return items

    def _exists(self, path: str) -> bool:
        return self.tree.kind(path) in ("file", "dir")

    def _manifest(self) -> Manifest | None:
        try:
            rows = manifest.parse(self.tree.read(manifest.PATH), None)
        except FileRefusedError as error:
            if error.code != "missing":
                self.report.add(error.code, error.message, error.path)
            return None
        self.report.problems += rows.problems
        return rows


def _reasons(record: Record, laws_sha256: str, receipt: Receipt) -> str:
    edited = []
    if receipt.record_sha256 != record.sha256:
        edited.append("record edited")
    if receipt.laws_sha256 != laws_sha256:
        edited.append("LAWS.bend edited")
    return " and ".join(edited)


def _malformed(walk: _Walk, only: str) -> None:
    """Whatever breaks a link of the walk: records, laws and receipts that cannot be read."""
    now = walk.now
    walk.report.problems += now.folder_problems
    relevant = [item for item in now.records.values() if not only or item.id == only]
    for record in relevant:
        if record.approved or record.status == UNREADABLE:
            walk.report.problems += record.problems
            if record.id in now.receipt_problems:
                walk.report.problems.append(now.receipt_problems[record.id])
    if any(record.approved for record in relevant):
        walk.report.problems += now.laws_problems


def by_receipts(tree: Tree, now: Intent, report: Report, find: Find, only: str = "") -> list[Item]:
    """Stale items with each approved record's receipt as its baseline. Broken links become problems."""
    walk = _Walk(tree, now, report)
    _malformed(walk, only)
    for record in now.approved:
        if only and record.id != only:
            continue
        receipt = now.receipts.get(record.id)
        if receipt is None:
            if record.id not in now.receipt_problems:
                walk.missing.append(
                    Item("receipt", record.id, "there is no receipt", record.id, unchecked=True)
                )
            continue
        reason = _reasons(record, now.laws_sha256, receipt)
        if not reason:
            continue
        walk.receipts[record.id] = reason
        old = _judged_texts(record, now, receipt, find)
        if old is None:
            message = (
                "the text that the receipt judged is not in the git history here: "
                "clause, law, row and oracle detail is unavailable"
            )
            report.note("history", message, record.path, None, record.id)
        else:
            walk.comparisons.append(Comparison(record.id, old, Texts(record, now.laws), receipt))
    return walk.finish()


def _judged_texts(record: Record, now: Intent, receipt: Receipt, find: Find) -> Texts | None:
    old_record: Record | None = record
    old_laws = now.laws
    if receipt.record_sha256 != record.sha256:
        text = find(record.path, receipt.record_sha256)
        old_record = parse(record.path, text.encode()) if text is not None else None
    if receipt.laws_sha256 != now.laws_sha256:
        text = find(LAWS, receipt.laws_sha256)
        scan = scanner.scan(text, laws=True) if text is not None else None
        old_laws = blocks.split(scan) if scan and not scan.refusals else None
    return Texts(old_record, old_laws) if old_record and old_laws and now.laws else None


def by_tree(tree: Tree, now: Intent, old: Intent, report: Report, only: str = "") -> list[Item]:
    """Stale items with another reading of `.intent/` as the baseline."""
    walk = _Walk(tree, now, report)
    _malformed(walk, only)
    ids = {record.id: None for record in [*old.approved, *now.approved] if not only or record.id == only}
    for record_id in ids:
        before, after = old.records.get(record_id), now.records.get(record_id)
        edited = []
        if before and (after is None or before.sha256 != after.sha256):
            edited.append("record deleted" if after is None else "record edited")
        if old.laws_sha256 != now.laws_sha256:
            edited.append("LAWS.bend edited")
        current = now.receipts.get(record_id)
        if after and after.approved and current is None and record_id not in now.receipt_problems:
            walk.missing.append(Item("receipt", record_id, "there is no receipt", record_id, unchecked=True))
        if not edited:
            continue
        fresh = current and after and not _reasons(after, now.laws_sha256, current)
        if fresh:
            report.note("stale", "the receipt was made anew for the current texts", receipt_path(record_id))
        elif current or record_id in old.receipts:
            walk.receipts[record_id] = " and ".join(edited)
        if old.laws is None and old.laws_sha256:
            report.note(
                "history", "LAWS.bend of the baseline cannot be read: law detail is unavailable", LAWS
            )
        judged = _judging(record_id, before, old, now)
        laws = now.laws if old.laws is None and old.laws_sha256 else old.laws
        walk.comparisons.append(
            Comparison(record_id, Texts(before or after, laws), Texts(after, now.laws), judged)
        )
    return walk.finish()


def _judging(record_id: str, before: Record | None, old: Intent, now: Intent) -> Receipt | None:
    """The receipt that judged the old text of a record: the old one, or the current one if it still is that."""
    for receipt in (old.receipts.get(record_id), now.receipts.get(record_id)):
        if before and receipt and receipt.record_sha256 == before.sha256:
            return receipt
    return None


def append(report: Report, items: list[Item]) -> None:
    """Put the walk's result behind a report as lines and data, without changing its exit code."""
    report.lines += [item.text for item in items]
    report.data["impact"] = [item.value() for item in items]


def problems(items: list[Item]) -> list[Problem]:
    """The stale and unchecked items as problems of an impact report."""
    found = []
    for item in items:
        path = {
            "receipt": receipt_path(item.record),
            "clause": f"{FOLDER}/{item.record}.md",
            "law": LAWS,
            "oracle": item.name,
        }.get(item.kind, manifest.PATH)
        found.append(Problem("unchecked" if item.unchecked else "stale", item.text, path, None, item.record))
    return found
