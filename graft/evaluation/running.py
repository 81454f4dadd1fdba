"""Runs a case set against a subject: three cards for each case, made exactly as in production.

One is written and checked by the subject. Two are given to its verifier alone: the card that the truth would write,
and the same with three wrong claims among the right ones. The second and third cost one call each.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from decimal import Decimal

import msgspec

from graft.evaluation.calls import Budget, Calls, Probe, Subject, Writes
from graft.evaluation.cases import Case
from graft.evaluation.explanations import explain
from graft.evaluation.judge import Judge
from graft.evaluation.recording import Header, RecordedCase, Replay
from graft.evaluation.runs import CaseResult, Probed, Replayed, Run
from graft.evaluation.scores import Scores, card_scores, planted_scores, right_scores
from graft.evaluation.scripted import right_answer
from graft.intent import PROMPT_VERSION, Card, render_section, write_card

__all__ = ["Made", "run"]


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A run, and what is needed to replay it."""

    run: Run
    header: Header
    recorded: tuple[RecordedCase, ...]
    spent_usd: Decimal


async def run(
    cases: Sequence[Case],
    subject: Subject,
    *,
    at_once: int = 4,
    budget: Budget | None = None,
    judge: Judge | None = None,
    done: Callable[[Case], None] = lambda _: None,
) -> Made:
    """Evaluate `subject`, `at_once` cases at the same time; `done` is told of each case that is finished."""
    money = budget or Budget()
    gate = asyncio.Semaphore(at_once)

    async def one(case: Case) -> tuple[CaseResult, RecordedCase]:
        async with gate:
            made = await _case(case, subject, money, judge)
        done(case)
        return made

    made = await asyncio.gather(*(one(case) for case in cases))
    replayed = None
    if isinstance(subject, Replay):
        replayed = Replayed(asked=subject.asked, stale=subject.stale, missing=subject.missing)
    return Made(
        run=Run(
            subject=subject.name,
            models=subject.models,
            judge=judge.model if judge else None,
            prompt_version=PROMPT_VERSION,
            replayed=replayed,
            cases=tuple(result for result, _ in made),
        ),
        header=Header(
            subject=subject.name,
            models=subject.models,
            is_paid=subject.is_paid,
            prompt_version=PROMPT_VERSION,
        ),
        recorded=tuple(recorded for _, recorded in made),
        spent_usd=money.spent if subject.is_paid else Decimal(0),
    )


async def _case(
    case: Case, subject: Subject, budget: Budget, judge: Judge | None
) -> tuple[CaseResult, RecordedCase]:
    inputs, purse = case.inputs(), budget.purse()
    asked = {probe: Calls(subject.client(case, probe), probe) for probe in Probe}

    async def given(probe: Probe, answer: dict[str, object]) -> Card:
        return await write_card(inputs, Writes(answer, asked[probe]), subject.models, gate=budget.purse())

    card = await write_card(inputs, asked[Probe.CARD], subject.models, gate=purse)
    right = await given(Probe.RIGHT, right_answer(case))
    planted = await given(Probe.PLANTED, _planted_answer(case))
    measured = await judge.widened(case, card) if judge else case
    calls = asked[Probe.CARD].made
    scores: Scores = {
        **card_scores(measured, card),
        **right_scores(right),
        **planted_scores(planted, case.truth.wrong.by_kind()),
        **({"cost_usd": (float(purse.spent), 1)} if subject.is_paid else {}),
        "tokens": (sum(call.usage.total for call in calls), 1),
        "seconds": (round(sum(call.seconds for call in calls), 3), 1),
        "calls": (len(calls), 1),
    }
    made = [call for probe in Probe for call in asked[probe].made]
    result = CaseResult(
        case=case.slug,
        kind=case.kind,
        language=case.language,
        inputs=case.inputs_hash,
        truth=case.truth_hash,
        prompts={f"{call.probe}/{call.purpose}": call.prompt for call in made},
        card=card,
        section=tuple(render_section(card).split("\n")),
        right=Probed.of(right),
        planted=Probed.of(planted),
        scores={name: (float(hits), float(chances)) for name, (hits, chances) in scores.items()},
        explained=explain(measured, card),
    )
    return result, RecordedCase(case=case.slug, inputs=case.inputs_hash, calls=tuple(made))


def _planted_answer(case: Case) -> dict[str, object]:
    """The right card with the wrong claims in between, at places that depend on the case alone."""
    answer = right_answer(case)
    claims = [*answer["behavior_changes"], *case.truth.wrong.by_kind().values()]
    claims.sort(key=lambda text: hashlib.sha256(f"{case.slug}/{text}".encode()).digest())
    return answer | {"behavior_changes": claims}
