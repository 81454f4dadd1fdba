"""A writer with a fixed card and a verifier that supports every claim of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graft.testing.model import FakeModel


def agreeable_model(
    *,
    goal: str = "Refuses coupons after their last day.",
    changes: Sequence[str] = ("An expired coupon is refused with an error.",),
    risk: str = "logic",
) -> FakeModel:
    """A model for tests and benchmarks that are not about the card's content."""
    return (
        FakeModel()
        .says("writer", writer_answer(goal, changes, risk))
        .says("verifier", verifier_answer(len(changes)))
    )


def writer_answer(goal: str, changes: Sequence[str], risk: str) -> dict[str, Any]:
    """What a writer answers."""
    return {
        "goal": goal,
        "behavior_changes": list(changes),
        "out_of_scope": [],
        "risk": risk,
        "risk_reason": "It changes what callers see.",
    }


def verifier_answer(changes: int, *, verdict: str = "supported", risk: str = "trivial") -> dict[str, Any]:
    """What a verifier answers about a goal and that many behaviour changes."""
    ids = ["goal", *(f"change-{number}" for number in range(1, changes + 1))]
    return {
        "claims": [{"id": one, "verdict": verdict, "reason": "The diff shows it."} for one in ids],
        "missed_changes": [],
        "out_of_scope": [],
        "risk": risk,
        "risk_reason": "Small.",
    }
