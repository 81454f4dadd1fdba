"""Who is evaluated: names, money, patience with a busy service."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import pytest

from graft.errors import ConfigError
from graft.evaluation import Budget, Case, Live, Scripted, run, subjects
from graft.evaluation.scores import rate
from graft.evaluation.scripted import WRITERS, right_answer
from graft.intent import Models, Status
from graft.llm import LlmClient, LlmResult, NoModel, Outcome, Usage
from graft.testing.model import FakeModel

MODELS = Models(fast="claude-haiku-5-5", strong="claude-opus-5-5")


def named(spec: str) -> list[str]:
    return [subject.name for subject in subjects(spec, models=MODELS, connect=NoModel)]


def test_names() -> None:
    assert named("scripted") == [f"scripted:{writer}+honest" for writer in WRITERS]
    assert named("scripted:lazy") == ["scripted:lazy+honest"]
    assert named("scripted:good+trusting") == ["scripted:good+trusting"]
    assert named("anthropic") == ["anthropic:claude-haiku-5-5+claude-opus-5-5"]
    assert named("none") == ["none"]
    assert named("replay:" + str(Path(__file__).parents[2] / "eval/recorded/good-honest.jsonl")) == [
        "scripted:good+honest"
    ]


@pytest.mark.parametrize("spec", ["", "gpt", "scripted:x", "scripted:good+x", "replay:", "anthropic:x"])
def test_other_names_are_refused_with_what_there_is(spec: str) -> None:
    with pytest.raises(ConfigError, match="no such"):
        named(spec)


def test_nothing_connects_for_a_name_that_needs_no_service() -> None:
    def connect() -> LlmClient:
        raise AssertionError("connected")

    for spec in ("scripted", "none"):
        subjects(spec, models=MODELS, connect=connect)


@pytest.fixture
def case(case_of: Mapping[str, Case]) -> Case:
    return case_of["delete-rate-limiter"]


def paid(case: Case) -> FakeModel:
    """A writer that is right, and a verifier without an answer."""
    used = Usage(input_tokens=1_000, output_tokens=500)
    return FakeModel().says("writer", right_answer(case), usage=used).fails("verifier", Outcome.REFUSED)


async def test_a_card_costs_what_its_calls_cost(case: Case) -> None:
    """Floor trivial and a writer that says sensitive: one call of the fast model and one of the strong one."""
    made = await run([case], Live("x", paid(case), MODELS))
    expected = Decimal("0.0001") + Decimal("0.00025") + Decimal("0.004") + Decimal("0.01")
    assert rate(made.run.totals["cost_usd"]) == pytest.approx(float(expected))
    assert made.spent_usd == expected, "the two given cards are not written, and refused calls used nothing"
    assert made.run.totals["tokens"] == (3_000.0, 1.0)
    assert made.run.totals["calls"] == (3.0, 1.0)


async def test_a_budget_stops_calls_and_says_so_on_the_card(case: Case) -> None:
    model = paid(case)
    made = await run([case], Live("x", model, MODELS), budget=Budget(Decimal("0.01")))
    assert made.spent_usd < Decimal("0.01")
    card = made.run.cases[0].card
    assert (card.status, card.reason) == (Status.UNAVAILABLE, "budget")
    assert [request.model for request in model.requests] == [MODELS.fast]


async def test_a_busy_service_is_asked_again_and_the_waits_are_its_own(case: Case) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    model = (
        FakeModel()
        .fails("writer", Outcome.RATE_LIMITED, retry_after=7)
        .fails("writer", Outcome.OVERLOADED)
        .fails("writer", Outcome.RATE_LIMITED, retry_after=9_999)
        .says("writer", right_answer(case))
        .fails("verifier", Outcome.REFUSED)
    )
    made = await run([case], Live("x", model, MODELS, sleep=sleep))
    assert waits == [7, 4, 120]
    assert made.run.cases[0].card.status is Status.UNVERIFIED
    assert made.run.totals["seconds"] == (0.0, 1.0)


async def test_patience_ends(case: Case) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    model = FakeModel().fails("*", Outcome.OVERLOADED)
    made = await run([case], Live("x", model, MODELS, sleep=sleep))
    assert len(model.asked("writer")) == 5
    assert made.run.cases[0].card.reason == "overloaded"
    assert waits[:4] == [2, 4, 8, 16]


async def test_cases_are_worked_on_side_by_side_and_stay_in_order(all_cases: tuple[Case, ...]) -> None:
    under_way = most = 0

    class Slow:
        async def complete(self, request: object) -> LlmResult:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            for _ in range(3):
                await asyncio.sleep(0)
            under_way -= 1
            return LlmResult(outcome=Outcome.REFUSED, model="m")

        async def count_tokens(self, model: str, text: str) -> int | None:
            return None

    done: list[str] = []
    made = await run(
        all_cases[:12], Live("x", Slow(), MODELS), at_once=5, done=lambda case: done.append(case.slug)
    )
    assert most == 5
    assert [case.case for case in made.run.cases] == [case.slug for case in all_cases[:12]]
    assert sorted(done) == sorted(case.slug for case in all_cases[:12])


def test_scripted_models_are_free() -> None:
    assert not Scripted().is_paid
