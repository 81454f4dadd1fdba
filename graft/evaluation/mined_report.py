"""What a mined history says: how much of a project would be trivial, logic and sensitive, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from graft.evaluation.mining import Mined
from graft.risk import Risk, highest

__all__ = ["Report", "Row", "report"]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One reason: in how many changes it applied, and in how many the class rests on it alone."""

    code: str
    changes: int
    decisive: int


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """A number over all changes."""

    median: float
    most_of_ten: float
    """Nine of ten changes have no more."""
    largest: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    changes: int
    merges: int
    errors: dict[str, int]
    classes: dict[Risk, int]
    reasons: tuple[Row, ...]
    files: Spread
    lines: Spread
    seconds: Spread
    omitted: dict[str, int]
    """Changes of which something would not be shown to a model, by why."""
    suspicions: dict[str, int]


def report(mined: Sequence[Mined]) -> Report:
    """Sum up a mined history."""
    read = [change for change in mined if change.error is None]
    return Report(
        changes=len(read),
        merges=sum(change.is_merge for change in read),
        errors=dict(Counter(change.error for change in mined if change.error is not None)),
        classes={risk: sum(change.floor is risk for change in read) for risk in Risk},
        reasons=_reasons(read),
        files=_spread(change.files for change in read),
        lines=_spread(change.additions + change.deletions for change in read),
        seconds=_spread(change.seconds for change in read),
        omitted=dict(Counter(why for change in read for why in change.omissions).most_common()),
        suspicions=dict(Counter(marker for change in read for marker in change.suspicions).most_common()),
    )


def _reasons(read: Iterable[Mined]) -> tuple[Row, ...]:
    applied: Counter[str] = Counter()
    decisive: Counter[str] = Counter()
    for change in read:
        applied.update(reason.code for reason in change.reasons)
        for code in (reason.code for reason in change.reasons):
            without = highest(*(reason.risk for reason in change.reasons if reason.code != code))
            decisive[code] += without is not change.floor
    return tuple(Row(code=code, changes=n, decisive=decisive[code]) for code, n in applied.most_common())


def _spread(numbers: Iterable[float]) -> Spread:
    ordered = sorted(numbers) or [0]
    last = len(ordered) - 1
    return Spread(median=ordered[last // 2], most_of_ten=ordered[last * 9 // 10], largest=ordered[last])
