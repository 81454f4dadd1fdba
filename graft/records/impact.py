"""What an edit of an approved record or of LAWS.bend makes stale, and why.

The walk: receipt; changed clauses; clause to law through the receipt that judged the old text; changed laws; law
to conformance rows; row to oracle. Every item carries its reason chain. `assess` is pure: it compares two
readings of `.intent/`; where the older texts come from is the caller's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from . import manifest
from .blocks import Laws
from .manifest import Manifest
from .receipts import Receipt
from .record import Record

NONE = "none"


@dataclass(frozen=True)
class Item:
    """One stale or unchecked thing. `kind` is receipt, clause, law, row, oracle or conform."""

    kind: str
    name: str
    reason: str
    record: str = ""
    unchecked: bool = False

    @property
    def text(self) -> str:
        subject = {"row": f'conform row "{self.name}"', "conform": self.name}.get(
            self.kind, f"{self.kind} {self.name}"
        )
        state = "is not yet checked" if self.unchecked else "is stale"
        if self.kind == "clause":
            return f"{subject}: {self.reason}"
        return f"{subject} {state}: {self.reason}"

    def value(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "name": self.name,
            "reason": self.reason,
            "record": self.record,
            "unchecked": self.unchecked,
        }


@dataclass(frozen=True)
class Texts:
    """One reading of a record and the laws; either is None where it does not exist."""

    record: Record | None
    laws: Laws | None


@dataclass(frozen=True)
class Comparison:
    """What `assess` needs about one record. `judged` is the receipt that judged the old texts, if any."""

    record_id: str
    old: Texts
    new: Texts
    judged: Receipt | None


def clause_changes(old: Record | None, new: Record | None) -> dict[str, str]:
    """Clause id to `edited`, `new` or `removed`."""
    before = {clause.id: clause.text for clause in old.clauses} if old else {}
    after = {clause.id: clause.text for clause in new.clauses} if new else {}
    changes = {}
    for clause in [*before, *[item for item in after if item not in before]]:
        if clause not in after:
            changes[clause] = "removed"
        elif clause not in before:
            changes[clause] = "new"
        elif before[clause] != after[clause]:
            changes[clause] = "edited"
    return changes


def law_changes(old: Laws | None, new: Laws | None) -> dict[str, str]:
    """Law id to why it changed; an edit of shared code, comments aside, touches every law that survives."""
    before, after = (old.ids if old else ()), (new.ids if new else ())
    shared = old is not None and new is not None and old.meaning("") != new.meaning("")
    changes = {}
    for law in [*before, *[item for item in after if item not in before]]:
        if law not in after:
            changes[law] = "removed"
        elif law not in before:
            changes[law] = "added"
        elif old is not None and new is not None and old.meaning(law) != new.meaning(law):
            changes[law] = "edited"
        elif shared:
            changes[law] = "shared code edited"
    return changes


def assess(
    comparisons: Iterable[Comparison],
    receipt_reasons: Mapping[str, str],
    rows: Manifest | None,
    exists: Callable[[str], bool],
) -> list[Item]:
    """Every stale item, each once, in the order of the walk.

    `receipt_reasons` maps a record id to why its receipt is stale; `rows` is the current manifest; `exists`
    says whether a repository path exists.
    """
    items: list[Item] = []
    law_reasons: dict[str, str] = {}
    for record_id, reason in receipt_reasons.items():
        items.append(Item("receipt", record_id, reason, record_id))
    for comparison in comparisons:
        clauses = clause_changes(comparison.old.record, comparison.new.record)
        choices = comparison.judged.choices if comparison.judged else {}
        for clause, change in clauses.items():
            law = choices.get(clause)
            if change == "new":
                items.append(Item("clause", clause, "is new: no receipt maps it", comparison.record_id))
            elif law is None or law == NONE:
                items.append(Item("clause", clause, f"{change}, and it maps to no law", comparison.record_id))
            else:
                items.append(Item("clause", clause, f"{change}; it maps to law {law}", comparison.record_id))
                law_reasons.setdefault(law, f"clause {clause} {change}")
        for law, change in law_changes(comparison.old.laws, comparison.new.laws).items():
            law_reasons.setdefault(law, f"law {law} {change}" if change != "shared code edited" else change)
    items += [Item("law", law, reason) for law, reason in law_reasons.items()]
    items += _rows(law_reasons, rows, exists)
    return list(dict.fromkeys(items))


def _rows(law_reasons: Mapping[str, str], rows: Manifest | None, exists: Callable[[str], bool]) -> list[Item]:
    if rows is None:
        if not law_reasons:
            return []
        reason = "there is no conformance row for the stale laws"
        return [Item("conform", manifest.PATH, reason, unchecked=True)]
    stale_rows: dict[str, str] = {}
    oracles: dict[str, str] = {}
    for law, why in law_reasons.items():
        for check in rows.naming(law):
            if check.name in stale_rows:
                continue
            stale_rows[check.name] = f"law {law} is stale ({why})"
            for argument in check.real:
                path = manifest.inside(check, argument)
                if path and exists(path):
                    oracles.setdefault(path, f'conform row "{check.name}" is stale: {stale_rows[check.name]}')
    return [Item("row", name, reason) for name, reason in stale_rows.items()] + [
        Item("oracle", path, reason) for path, reason in oracles.items()
    ]
