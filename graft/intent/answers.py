"""Model answers from decoded JSON into bounded values.

A wrong shape is refused with the place and what was expected there, which the one repair call tells the model. What is
merely too long is cut, and a path that the change does not have is dropped and counted: a model must not be able to put
a file on the card that is not in the pull request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

import msgspec

from graft.intent.card import Verdict
from graft.llm import AnswerError
from graft.risk import Risk

__all__ = ["Scope", "Touch", "VerifierAnswer", "WriterAnswer", "verifier_reader", "writer_reader"]

A = TypeVar("A")

LONGEST_SENTENCE = 400
LONGEST_REASON = 300
MOST_CHANGES = 12
MOST_OUT_OF_SCOPE = 20
MOST_TOUCHES = 20


class Scope(msgspec.Struct, frozen=True):
    path: str
    reason: str = ""


class Touch(msgspec.Struct, frozen=True):
    """`change` counts the behaviour changes from 1; `clause` is a name that stood in the prompt."""

    change: int
    clause: str


class WriterAnswer(msgspec.Struct, frozen=True, kw_only=True):
    goal: str
    behavior_changes: tuple[str, ...]
    out_of_scope: tuple[Scope, ...]
    risk: Risk
    risk_reason: str = ""
    touches: tuple[Touch, ...] = ()
    dropped_paths: int = 0


class Finding(msgspec.Struct, frozen=True):
    id: str
    verdict: Verdict
    reason: str = ""


class VerifierAnswer(msgspec.Struct, frozen=True, kw_only=True):
    claims: tuple[Finding, ...]
    missed_changes: tuple[str, ...]
    out_of_scope: tuple[Scope, ...]
    risk: Risk
    risk_reason: str = ""
    dropped_paths: int = 0


def writer_reader(paths: Collection[str], clauses: Collection[str] = ()) -> Callable[[object], WriterAnswer]:
    """Reads a writer's answer about a change with these paths, and approved clauses with these names. The reader
    raises `AnswerError`."""

    def read(data: object) -> WriterAnswer:
        answer = _convert(data, WriterAnswer)
        goal = _sentence(answer.goal, LONGEST_SENTENCE)
        if not goal:
            raise AnswerError("`$.goal` is empty; one sentence is needed")
        scope, dropped = _known(answer.out_of_scope, paths)
        return WriterAnswer(
            goal=goal,
            behavior_changes=_sentences(answer.behavior_changes),
            out_of_scope=scope,
            risk=answer.risk,
            risk_reason=_sentence(answer.risk_reason, LONGEST_REASON),
            touches=_touches(answer, clauses),
            dropped_paths=dropped,
        )

    return read


def verifier_reader(paths: Collection[str], ids: Sequence[str]) -> Callable[[object], VerifierAnswer]:
    """Reads a verifier's answer about claims with these ids, in their order. Every id needs a verdict; of several the
    worst counts. The reader raises `AnswerError`."""

    def read(data: object) -> VerifierAnswer:
        answer = _convert(data, VerifierAnswer)
        worst: dict[str, Finding] = {}
        for finding in answer.claims:
            claim_id = finding.id.strip().lower()
            if claim_id not in worst or _badness(finding.verdict) > _badness(worst[claim_id].verdict):
                worst[claim_id] = finding
        if missing := [claim_id for claim_id in ids if claim_id not in worst]:
            raise AnswerError(f"`$.claims` has no entry for {', '.join(missing)}")
        scope, dropped = _known(answer.out_of_scope, paths)
        return VerifierAnswer(
            claims=tuple(
                Finding(claim_id, worst[claim_id].verdict, _sentence(worst[claim_id].reason, LONGEST_REASON))
                for claim_id in ids
            ),
            missed_changes=_sentences(answer.missed_changes),
            out_of_scope=scope,
            risk=answer.risk,
            risk_reason=_sentence(answer.risk_reason, LONGEST_REASON),
            dropped_paths=dropped,
        )

    return read


def _badness(verdict: Verdict) -> int:
    return (Verdict.SUPPORTED, Verdict.UNSUPPORTED, Verdict.CONTRADICTED).index(verdict)


def _convert(data: object, kind: type[A]) -> A:
    if isinstance(data, dict) and isinstance(data.get("risk"), str):
        data = data | {"risk": data["risk"].strip().lower()}
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise AnswerError(str(error)) from None


def _known(scope: Sequence[Scope], paths: Collection[str]) -> tuple[tuple[Scope, ...], int]:
    found: dict[str, Scope] = {}
    dropped = 0
    for item in scope:
        path = item.path if item.path in paths else item.path.strip().removeprefix("./")
        if path in paths:
            found.setdefault(path, Scope(path, _sentence(item.reason, LONGEST_REASON)))
        else:
            dropped += 1
    return tuple(found.values())[:MOST_OUT_OF_SCOPE], dropped


def _touches(answer: WriterAnswer, clauses: Collection[str]) -> tuple[Touch, ...]:
    """The touches of changes that are on the card, by their number there."""
    kept = [n for n, text in enumerate(answer.behavior_changes, 1) if _sentence(text, LONGEST_SENTENCE)]
    numbers = {given: shown for shown, given in enumerate(kept[:MOST_CHANGES], 1)}
    found = {
        Touch(numbers[touch.change], name): None
        for touch in answer.touches
        if touch.change in numbers and (name := " ".join(touch.clause.split())) in clauses
    }
    return tuple(sorted(found, key=lambda touch: touch.change))[:MOST_TOUCHES]


def _sentences(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(filter(None, (_sentence(text, LONGEST_SENTENCE) for text in texts)))[:MOST_CHANGES]


def _sentence(text: str, limit: int) -> str:
    one_line = " ".join(text[: limit * 4].split())
    return one_line if len(one_line) <= limit else f"{one_line[: limit - 1].rstrip()}…"
