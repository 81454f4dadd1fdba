"""What a pull request does to approved intent, from the files of both sides alone: no Bend, no subprocess.

BASE decides what is approved; HEAD is only looked at for staleness. The result is a bounded value: counts beyond
the bounds are named in `truncated`, and a broken or missing part counts as stale, never as fresh.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from . import baseline, check, headers, impact
from .files import MAX_BYTES, MemoryTree
from .manifest import PATH as MANIFEST
from .receipts import FOLDER as RECEIPTS
from .record import FOLDER as RECORDS
from .record import UNREADABLE
from .report import Report
from .repository import APPROVAL, LAWS, NEGATIVES, PROOF, Intent, load

MAX_FILES = 2_000
"""Most files of one side that are looked at."""

MAX_TOTAL_BYTES = 16 * MAX_BYTES
"""Most bytes of one side that are looked at."""

MAX_TOUCHED = 50
"""Most touched clauses, and most touched laws, that are kept."""

MAX_STALE = 100
MAX_PROBLEMS = 50
MAX_TEXT = 500
"""Longest text of a clause that is kept, in characters."""

Status = Literal["none", "fresh", "stale"]


@dataclass(frozen=True)
class TouchedClause:
    """A clause of a record that BASE has approved. `text` is BASE's wording (HEAD's for a new clause), cut.
    `change` is empty where the clause stands as it was."""

    record: str
    clause: str
    change: str
    text: str
    path: str


@dataclass(frozen=True)
class TouchedLaw:
    """A law that differs between the sides and why: edited, added, removed, or shared code edited."""

    law: str
    change: str


@dataclass(frozen=True)
class Stale:
    """Evidence that HEAD leaves stale or unchecked. `kind` is receipt, row, oracle or conform."""

    kind: str
    name: str
    reason: str


@dataclass(frozen=True)
class RecordsReview:
    """The outcome for one pull request.

    `status` is `none` when BASE has no approved record, `stale` when HEAD's evidence does not hold or cannot be
    read, else `fresh`. `stale` also lists what has to be run again for a change that is fresh. `protected` are the
    changed paths that raise the floor; `standing` the approved clauses whose wording the change leaves alone.
    """

    status: Status
    approved: tuple[str, ...]
    clauses: tuple[TouchedClause, ...]
    laws: tuple[TouchedLaw, ...]
    stale: tuple[Stale, ...]
    problems: tuple[str, ...]
    protected: tuple[str, ...]
    truncated: tuple[str, ...]
    standing: tuple[TouchedClause, ...] = ()

    @property
    def edits_protected(self) -> bool:
        """Whether the change touches an approved record or the evidence and tools around it."""
        return bool(self.protected)

    @property
    def touches_intent(self) -> bool:
        """Whether there is anything to tell a reader."""
        return bool(self.status == "stale" or self.clauses or self.laws or self.protected)


def relevant(path: str) -> bool:
    """Whether the content of this path is looked at. Of everything else under `.intent/` it only matters that it
    exists and whether it has changed, so a caller may hand over any bytes that differ when the file does."""
    folders = (f"{RECORDS}/", f"{RECEIPTS}/", f"{headers.FOLDER}/")
    return path in (LAWS, APPROVAL, MANIFEST) or path.startswith(folders)


def review(
    base_files: Mapping[str, bytes],
    head_files: Mapping[str, bytes],
    *,
    base_refused: Mapping[str, str] | None = None,
    head_refused: Mapping[str, str] | None = None,
    cut: Sequence[str] = (),
) -> RecordsReview:
    """Compare the sides. Both mappings hold all of `.intent/`, and for oracles any other path that exists.

    `base_refused` and `head_refused` say why the content of a path could not be read (`symlink`, `too-large` or
    `unreadable`); `cut` names what the caller has left out.
    """
    truncated = list(cut)
    base_tree = MemoryTree(_bounded(base_files, "base", truncated), base_refused)
    head_tree = MemoryTree(_bounded(head_files, "head", truncated), head_refused)
    base, head = load(base_tree), load(head_tree)
    protected = _protected(base_files, head_files, base, unsure=bool(truncated))
    if not base.approved:
        return RecordsReview(
            "stale" if _broken(base) else "none", (), (), (), (), (), tuple(protected), tuple(truncated)
        )
    clauses = _touched_clauses(base, head)
    changes = impact.law_changes(base.laws, head.laws) if base.laws and head.laws else {}
    laws = [TouchedLaw(law, change) for law, change in changes.items()]
    problems = _problems(base, head, head_tree)
    broken, rerun = _stale(base, head, head_tree)
    status: Status = "stale" if problems or broken or truncated else "fresh"
    stale = list({(item.kind, item.name): item for item in [*rerun, *broken]}.values())
    return RecordsReview(
        status=status,
        approved=tuple(record.id for record in base.approved),
        clauses=_cut(clauses, MAX_TOUCHED, "touched clauses", truncated),
        laws=_cut(laws, MAX_TOUCHED, "touched laws", truncated),
        stale=_cut(stale, MAX_STALE, "stale items", truncated),
        problems=_cut(problems, MAX_PROBLEMS, "problems", truncated),
        protected=tuple(protected),
        truncated=tuple(truncated),
        standing=_standing(base, clauses)[:MAX_TOUCHED],
    )


def unreadable(changed: Collection[str], reason: str) -> RecordsReview:
    """The review of a `.intent/` that could not be read, given the paths there that the change names. Nobody can
    say then what is approved, so every record counts as it."""
    protected = sorted(path for path in changed if path.startswith(f"{RECORDS}/") or _is_evidence(path))
    problem = f".intent/: cannot be read ({reason})"
    return RecordsReview("stale", (), (), (), (), (problem,), tuple(protected[:MAX_STALE]), ())


def _standing(base: Intent, touched: Collection[TouchedClause]) -> tuple[TouchedClause, ...]:
    edited = {(item.record, item.clause) for item in touched}
    return tuple(
        TouchedClause(record.id, clause.id, "", clause.text[:MAX_TEXT], record.path)
        for record in base.approved
        for clause in record.clauses
        if (record.id, clause.id) not in edited
    )


def _cut(items: list, limit: int, what: str, truncated: list[str]) -> tuple:  # type: ignore[type-arg]
    if len(items) > limit:
        truncated.append(f"{len(items) - limit} more {what}")
    return tuple(items[:limit])


def _bounded(files: Mapping[str, bytes], side: str, truncated: list[str]) -> dict[str, bytes]:
    """The files that fit the bounds, `.intent/` first; what is left out is named."""
    kept: dict[str, bytes] = {}
    total = 0
    for path in sorted(files, key=lambda item: (not item.startswith(".intent/"), item)):
        size = len(files[path]) if path.startswith(".intent/") else 0
        if len(kept) >= MAX_FILES or total + size > MAX_TOTAL_BYTES:
            truncated.append(f"{len(files) - len(kept)} of {len(files)} files of {side}")
            break
        total += size
        kept[path] = files[path]
    return kept


def _broken(base: Intent) -> bool:
    """Whether BASE has a record whose status cannot be read, so that nobody can say what is approved."""
    return any(record.status == UNREADABLE for record in base.records.values()) or bool(base.folder_problems)


def _protected(
    base_files: Mapping[str, bytes], head_files: Mapping[str, bytes], base: Intent, *, unsure: bool
) -> list[str]:
    """The changed paths that raise the floor. A record of BASE that could not be read may be approved, and where not
    everything was looked at, any record may."""
    approved = {
        record.path for record in base.records.values() if record.approved or record.status == UNREADABLE
    }
    approved |= {problem.path for problem in base.folder_problems}
    changed = [path for path in {**base_files, **head_files} if base_files.get(path) != head_files.get(path)]
    return sorted(
        path
        for path in changed
        if path in approved or _is_evidence(path) or (unsure and path.startswith(f"{RECORDS}/"))
    )[:MAX_STALE]


def _is_evidence(path: str) -> bool:
    folders = (f"{NEGATIVES}/", f"{RECEIPTS}/", f"{headers.FOLDER}/")
    return path in (LAWS, PROOF, APPROVAL, MANIFEST) or path.startswith(folders)


def is_protected(path: str, approved_records: frozenset[str]) -> bool:
    """Whether a change of this path raises the floor; the record ids are those that BASE approves."""
    record = path.startswith(f"{RECORDS}/") and path[len(RECORDS) + 1 : -len(".md")] in approved_records
    return record or _is_evidence(path)


def _touched_clauses(base: Intent, head: Intent) -> list[TouchedClause]:
    touched = []
    for record in base.approved:
        after = head.records.get(record.id)
        for clause, change in impact.clause_changes(record, after).items():
            wording = record.clause(clause) or (after.clause(clause) if after else None)
            text = wording.text[:MAX_TEXT] if wording else ""
            touched.append(TouchedClause(record.id, clause, change, text, record.path))
    return touched


def _problems(base: Intent, head: Intent, head_tree: MemoryTree) -> list[str]:
    """What keeps HEAD from passing `check`, for the records that BASE approves."""
    report = Report("check")
    check.examine(head_tree, head, report)
    report.problems += headers.drift(head_tree)
    found = []
    for record in base.approved:
        after = head.records.get(record.id)
        if after is None:
            found.append(f"{record.path}: the approved record is deleted")
        elif not after.approved:
            found.append(f"{record.path}: the approved record is now {after.status}")
    found += [f"{problem.place}: {problem.message}" for problem in report.problems]
    return list(dict.fromkeys(found))


def _stale(base: Intent, head: Intent, head_tree: MemoryTree) -> tuple[list[Stale], list[Stale]]:
    """Evidence that does not hold at HEAD, and evidence that the edits between the sides make stale.

    A change that brings its own new receipt is not broken by it; its rows have to be run again all the same.
    """
    aside = Report("impact")
    broken = baseline.by_receipts(head_tree, head, aside, _older(base))
    between = baseline.by_tree(head_tree, head, base, aside)
    return _evidence(broken), _evidence(between)


def _evidence(items: list[impact.Item]) -> list[Stale]:
    """Clauses and laws are told apart from the evidence about them."""
    return [Stale(item.kind, item.name, item.reason) for item in items if item.kind not in ("clause", "law")]


def _older(base: Intent) -> baseline.Find:
    """Looks for the text that a receipt judged in BASE, the only older version there is here."""

    def find(path: str, sha256: str) -> str | None:
        if path == LAWS and base.laws and base.laws_sha256 == sha256:
            return base.laws.scan.text
        for record in base.records.values():
            if record.path == path and record.sha256 == sha256:
                return record.text
        return None

    return find
