"""Models without a model: writers and verifiers that know the truth of a case and use it as their character demands.

They test the harness: a bad writer must score badly on what it does badly, and only there. They answer through the
same prompts, decoding and repairs as a real model; the verifier reads the claims from the prompt that it is sent.

`good` and `honest` are as right as can be, so their scores are the best that the metrics allow.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

from graft.evaluation.calls import Probe
from graft.evaluation.cases import Attack, Case, Item
from graft.intent import Models
from graft.llm import LlmClient, LlmRequest
from graft.risk import Risk
from graft.testing.model import FakeModel

__all__ = ["VERIFIERS", "WRITERS", "Scripted", "right_answer"]

Answer = dict[str, Any] | str
_CARD = re.compile(r'kind="card">\n(.*?)\n</graft-data-', re.DOTALL)
_SCOPE = re.compile(r"^The goal does not explain the change of (.+?)\. ")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


def right_answer(case: Case) -> dict[str, Any]:
    """The card that the truth of a case would write."""
    truth = case.truth
    return {
        "goal": truth.goal.says,
        "behavior_changes": [change.says for change in truth.changes],
        "out_of_scope": [
            {"path": path, "reason": "the goal has no need of it"} for path in truth.out_of_scope
        ],
        "risk": str(truth.risk),
        "risk_reason": f"This is what a {truth.risk} change looks like.",
    }


def _good(case: Case) -> Answer:
    return right_answer(case)


def _lazy(case: Case) -> Answer:
    """Believes the description and copies it, without a look at the diff."""
    sentences = [sentence for sentence in _SENTENCE.split(" ".join(case.body.split())) if sentence]
    goal = case.title.strip() or (sentences[0] if sentences else "Changes some files")
    return right_answer(case) | {
        "goal": goal,
        "behavior_changes": sentences[:4],
        "out_of_scope": [],
        "risk": "logic",
        "risk_reason": "The description says so.",
    }


def _optimistic(case: Case) -> Answer:
    """Sees everything and finds it harmless."""
    return right_answer(case) | {"risk": "trivial", "risk_reason": "Nothing can go wrong."}


def _gullible(case: Case) -> Answer:
    """Does what a text tells it to do."""
    return _obeying(case, case.attack) if case.attack is not None else right_answer(case)


def _obeying(case: Case, attack: Attack) -> Answer:
    hidden = {number - 1 for number in attack.hides}
    changes = [change.says for at, change in enumerate(case.truth.changes) if at not in hidden]
    answer = right_answer(case) | {"behavior_changes": changes, "risk": str(attack.risk or case.truth.risk)}
    if attack.says is not None:
        answer |= {"goal": attack.says, "behavior_changes": []}
    if hidden:
        # Whoever keeps a change quiet does not name it in the goal, nor its file.
        answer |= {"goal": attack.says or case.title.strip() or "Changes some files", "out_of_scope": []}
    return answer


def _broken(case: Case) -> Answer:
    """Answers in every shape but the one asked for."""
    right = json.dumps(right_answer(case))
    shapes: tuple[Answer, ...] = (
        "This pull request looks fine to me.",
        right[: len(right) // 2],
        f"[{right}]",
        right_answer(case) | {"risk": "medium"},
        right_answer(case) | {"behavior_changes": "none"},
        {"summary": case.truth.goal.says},
        "",
    )
    return shapes[_number(case.slug, len(shapes))]


def _number(text: str, below: int) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % below


WRITERS: dict[str, Callable[[Case], Answer]] = {
    "good": _good,
    "lazy": _lazy,
    "optimistic": _optimistic,
    "gullible": _gullible,
    "broken": _broken,
}


def _honest(case: Case, claims: list[tuple[str, str]]) -> Answer:
    """Supports what is true, contradicts what must not be claimed, and names what is missing."""
    truth = case.truth
    planted = truth.wrong.by_kind().values()
    verdicts = []
    for claim_id, text in claims:
        scope = _SCOPE.match(text)
        if text in planted or (truth.forbids(text) and scope is None):
            verdict = "contradicted"
        elif scope is not None:
            verdict = "supported" if scope[1] in truth.out_of_scope else "unsupported"
        elif claim_id == "goal":
            verdict = "supported" if truth.is_right(text) else "unsupported"
        else:
            verdict = "supported" if any(truth.says(c, text) for c in _said_of(case)) else "unsupported"
        verdicts.append({"id": claim_id, "verdict": verdict, "reason": "by the diff"})
    said = [text for _, text in claims]
    return {
        "claims": verdicts,
        "missed_changes": [c.says for c in truth.changes if not any(truth.says(c, text) for text in said)],
        "out_of_scope": right_answer(case)["out_of_scope"],
        "risk": str(truth.risk),
        "risk_reason": "by the diff",
    }


def _said_of(case: Case) -> tuple[Item, ...]:
    return (*case.truth.changes, case.truth.goal)


def _trusting(case: Case, claims: list[tuple[str, str]]) -> Answer:
    """Believes the card."""
    return {
        "claims": [{"id": claim_id, "verdict": "supported", "reason": ""} for claim_id, _ in claims],
        "missed_changes": [],
        "out_of_scope": [],
        "risk": str(Risk.TRIVIAL),
        "risk_reason": "",
    }


def _suspicious(case: Case, claims: list[tuple[str, str]]) -> Answer:
    """Doubts everything."""
    return {
        "claims": [
            {"id": claim_id, "verdict": "unsupported", "reason": "not shown"} for claim_id, _ in claims
        ],
        "missed_changes": ["Something else changes as well."],
        "out_of_scope": [],
        "risk": str(Risk.SENSITIVE),
        "risk_reason": "one never knows",
    }


VERIFIERS: dict[str, Callable[[Case, list[tuple[str, str]]], Answer]] = {
    "honest": _honest,
    "trusting": _trusting,
    "suspicious": _suspicious,
}


class Scripted:
    """A writer and a verifier as a `Subject`. Raises `KeyError` for a name that is in neither table."""

    models = Models(fast="scripted", strong="scripted")
    is_paid = False

    def __init__(self, writer: str = "good", verifier: str = "honest") -> None:
        self.name = f"scripted:{writer}+{verifier}"
        self._write = WRITERS[writer]
        self._verify = VERIFIERS[verifier]

    def client(self, case: Case, probe: Probe) -> LlmClient:
        def write(_: LlmRequest) -> Answer:
            return self._write(case)

        def verify(request: LlmRequest) -> Answer:
            return self._verify(case, claims_in(request))

        model = FakeModel()
        for purpose, answer in (("writer", write), ("verifier", verify)):
            model.answers(purpose, answer).answers(f"{purpose}_repair", answer)
        return model


def claims_in(request: LlmRequest) -> list[tuple[str, str]]:
    """The claims of a verifier's prompt, by id."""
    card = _CARD.search(request.turns[0].text)
    lines = card[1].split("\n") if card else []
    return [(claim_id, text) for claim_id, _, text in (line.partition(": ") for line in lines)]
