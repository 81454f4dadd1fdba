"""Why a card scored as it did, in words: which claim says which part of the truth, and by which words."""

from __future__ import annotations

from graft.evaluation.cases import Case
from graft.evaluation.matching import matches, missing
from graft.intent import Card

__all__ = ["explain"]


def explain(case: Case, card: Card) -> tuple[str, ...]:
    """For each part of the truth the claim that says it and the pattern that fitted, or what the nearest one lacks;
    and each claim that must not be made."""
    truth = case.truth
    told = [("goal", card.goal.text)] if card.goal else []
    told += [(f"claim {number}", change.text) for number, change in enumerate(card.changes, 1)]
    told += [(f"missed {number}", text) for number, text in enumerate(card.missed, 1)]
    lines = []
    for name, item in (("goal", truth.goal), *((f"change {n}", c) for n, c in enumerate(truth.changes, 1))):
        fits = [
            (who, a)
            for who, text in told
            if not truth.forbids(text)
            for a in item.aliases
            if matches(a, text)
        ]
        if fits:
            lines.append(f"{name}: said by {fits[0][0]} ({fits[0][1]})")
        elif told:
            lacks = min((missing(alias, text) for _, text in told for alias in item.aliases), key=len)
            lines.append(
                f"{name}: not said, the nearest lacks {' and '.join(lacks) or 'nothing but is false'}"
            )
        else:
            lines.append(f"{name}: not said, there is no card")
    for who, text in told:
        lines += [f"{who}: must not be claimed ({p})" for p in truth.must_not_claim if matches(p, text)]
    return tuple(lines)
