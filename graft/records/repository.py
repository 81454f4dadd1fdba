"""Everything under `.intent/` that the offline tools look at, read once and with all its problems.

`load` never raises on bad content: what cannot be read becomes a problem at its place, so that a command can
report everything at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from . import blocks, canonical, modules, receipts, scanner
from .blocks import Laws
from .files import FileRefusedError, Tree, read_text
from .modules import Resolution
from .receipts import Receipt
from .record import FILE_NAME, FOLDER, UNREADABLE, Record, parse
from .report import Problem, Report

MODEL = ".intent/model"
LAWS = f"{MODEL}/LAWS.bend"
PROOF = f"{MODEL}/PROOF.bend"
NEGATIVES = f"{MODEL}/neg"
APPROVAL = f"{MODEL}/laws.sha256"
MANIFEST = ".intent/conform.json"

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


@dataclass
class Intent:
    """The records, the laws and the receipts of one tree.

    `laws` is None when LAWS.bend is missing or refused; `laws_problems` says why. A receipt that is malformed
    has its problem in `receipt_problems` and no entry in `receipts`.
    """

    records: dict[str, Record] = field(default_factory=dict)
    laws: Laws | None = None
    laws_sha256: str = ""
    laws_problems: list[Problem] = field(default_factory=list)
    approval_problems: list[Problem] = field(default_factory=list)
    receipts: dict[str, Receipt] = field(default_factory=dict)
    receipt_problems: dict[str, Problem] = field(default_factory=dict)
    notes: list[Problem] = field(default_factory=list)
    folder_problems: list[Problem] = field(default_factory=list)

    @property
    def approved(self) -> list[Record]:
        return [record for record in self.records.values() if record.approved]

    def resolution(self, record: Record) -> Resolution:
        """The modules of a record against the laws; nothing for a record without modules or without laws."""
        if self.laws is None or not record.has_modules:
            return Resolution((), ())
        return modules.resolve(record, self.laws.ids)


def load(tree: Tree) -> Intent:
    """Read records, LAWS.bend, its approval and the receipts."""
    intent = Intent()
    _load_records(tree, intent)
    _load_laws(tree, intent)
    _load_receipts(tree, intent)
    return intent


def _problem(error: FileRefusedError) -> Problem:
    return Problem(error.code, error.message, error.path)


def _listing(tree: Tree, folder: str, intent: Intent) -> list[str]:
    try:
        return tree.names(folder)
    except FileRefusedError as error:
        intent.folder_problems.append(_problem(error))
        return []


def _load_records(tree: Tree, intent: Intent) -> None:
    for name in _listing(tree, FOLDER, intent):
        path = f"{FOLDER}/{name}"
        kind = tree.kind(path)
        if kind == "dir" or not FILE_NAME.match(name):
            intent.notes.append(
                Problem("record-unknown", "is no record (NNNN-slug.md) and is not looked at", path)
            )
            continue
        try:
            record = parse(path, tree.read(path))
        except FileRefusedError as error:
            intent.folder_problems.append(_problem(error))
            continue
        intent.records[record.id] = record


def _load_laws(tree: Tree, intent: Intent) -> None:
    try:
        text = read_text(tree, LAWS)
    except FileRefusedError as error:
        code = "laws-missing" if error.code == "missing" else error.code
        intent.laws_problems.append(Problem(code, error.message, LAWS))
        return
    intent.laws_sha256 = canonical.sha256(text)
    scan = scanner.scan(text, laws=True)
    intent.laws_problems += [
        Problem("layout", f"LAWS.bend: unsupported layout at line {item.line}: {item.text}", LAWS, item.line)
        for item in scan.refusals
    ]
    intent.laws_problems += list(_identity_problems(scan))
    if not intent.laws_problems:
        intent.laws = blocks.split(scan)
    intent.approval_problems += list(_approval_problems(tree, intent.laws_sha256))


def _identity_problems(scan: scanner.Scan) -> Iterator[Problem]:
    seen: set[str] = set()
    for item in scan.declarations:
        if item.kind != "law":
            continue
        if item.name == "none":
            yield Problem("laws-duplicate", "the law id `none` is reserved", LAWS, item.line)
        if item.name in seen:
            yield Problem("laws-duplicate", f"a second `law {item.name}`", LAWS, item.line)
        seen.add(item.name)


def _approval_problems(tree: Tree, laws_sha256: str) -> Iterator[Problem]:
    try:
        stored = read_text(tree, APPROVAL).strip(" \t\r\n")
    except FileRefusedError as error:
        code = "approval-missing" if error.code == "missing" else error.code
        yield Problem(
            code, "LAWS.bend has no approval" if error.code == "missing" else error.message, APPROVAL
        )
        return
    if not _SHA256.match(stored):
        yield Problem("approval-malformed", "is not one lower-case SHA-256", APPROVAL, 1)
    elif stored != laws_sha256:
        yield Problem("approval-stale", "LAWS.bend is not the text that was approved", APPROVAL, 1)


def _load_receipts(tree: Tree, intent: Intent) -> None:
    for name in _listing(tree, receipts.FOLDER, intent):
        path = f"{receipts.FOLDER}/{name}"
        record_id = name[: -len(".json")] if name.endswith(".json") else ""
        if not record_id or tree.kind(path) == "dir":
            intent.notes.append(Problem("record-unknown", "is no receipt and is not looked at", path))
            continue
        if record_id not in intent.records:
            intent.notes.append(
                Problem("record-unknown", "is a receipt without a record", path, None, record_id)
            )
            continue
        try:
            intent.receipts[record_id] = receipts.parse(tree.read(path))
        except FileRefusedError as error:
            intent.receipt_problems[record_id] = Problem(error.code, error.message, path, None, record_id)
        except receipts.ShapeError as error:
            intent.receipt_problems[record_id] = Problem(
                "receipt-malformed", str(error), path, None, record_id
            )


def receipt_path(record_id: str) -> str:
    return f"{receipts.FOLDER}/{record_id}.json"


def selected(intent: Intent, only: str, report: Report) -> list[Record]:
    """All records, or the one that `--record` names; naming an unknown one is a problem."""
    if not only:
        return list(intent.records.values())
    if only not in intent.records:
        report.add("record-unknown", "there is no such record", f"{FOLDER}/{only}.md")
        return []
    return [intent.records[only]]


def record_problems(record: Record, *, named: bool) -> tuple[list[Problem], list[Problem]]:
    """Problems that count and problems that are only notes.

    A draft is work in progress: what is wrong with it is a note, unless it was asked about by name or its
    status cannot be read at all.
    """
    counts = record.approved or record.status == UNREADABLE or named
    return (list(record.problems), []) if counts else ([], list(record.problems))
