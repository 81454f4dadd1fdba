from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from graft.llm import AnswerError, LlmRequest, LlmResult, Outcome, Turn, Unmetered, Usage, ask, prices
from graft.testing.model import FakeModel

REQUEST = LlmRequest(
    purpose="writer",
    model="claude-opus-5-5",
    system="system",
    turns=(Turn("user", "question"),),
    schema={},
    max_tokens=1000,
    timeout=5,
)


class Ledger:
    """A gate that writes down what happens and allows a number of calls."""

    def __init__(self, allowed: int = 99) -> None:
        self.allowed = allowed
        self.events: list[Any] = []

    async def reserve(self, *, purpose: str, model: str, estimate_usd: Decimal) -> Ledger | None:
        self.events.append(("reserve", purpose, estimate_usd))
        self.allowed -= 1
        return self if self.allowed >= 0 else None

    async def settle(self, *, outcome: str, tokens: int, cost_usd: Decimal) -> None:
        self.events.append(("settle", outcome, tokens, cost_usd))


def goal(data: object) -> str:
    if not isinstance(data, dict) or not isinstance(data.get("goal"), str):
        raise AnswerError("`$.goal` is missing")
    return str(data["goal"])


async def test_an_answer() -> None:
    model, ledger = FakeModel().says("writer", {"goal": "x"}, usage=Usage(input_tokens=100)), Ledger()
    asked = await ask(model, REQUEST, read=goal, gate=ledger)
    assert (asked.outcome, asked.value, asked.calls, asked.usage) == (
        Outcome.OK,
        "x",
        1,
        Usage(input_tokens=100),
    )
    assert ledger.events == [
        ("reserve", "writer", prices.at_most(REQUEST)),
        ("settle", "ok", 100, Decimal("0.0004")),
    ]


@pytest.mark.parametrize("first", ["nonsense", '{"goal": 3}', '{"other": "x"}'])
async def test_one_repair(first: str) -> None:
    model = FakeModel().says("writer", first).says("writer_repair", {"goal": "better"})
    asked = await ask(model, REQUEST, read=goal, gate=Unmetered())
    assert (asked.outcome, asked.value, asked.calls) == (Outcome.OK, "better", 2)
    (repair,) = model.asked("writer_repair")
    assert [turn.role for turn in repair.turns] == ["user", "assistant", "user"]
    assert repair.turns[1].text == first


async def test_at_most_one_repair() -> None:
    model = FakeModel().says("*", "nonsense")
    asked = await ask(model, REQUEST, read=goal, gate=Unmetered())
    assert (asked.outcome, asked.value, asked.calls, len(model.requests)) == (Outcome.BAD_JSON, None, 2, 2)


async def test_a_repair_that_fails_otherwise() -> None:
    model = FakeModel().says("writer", "nonsense").fails("writer_repair", Outcome.OVERLOADED, retry_after=9)
    asked = await ask(model, REQUEST, read=goal, gate=Unmetered())
    assert (asked.outcome, asked.calls, asked.retry_after) == (Outcome.OVERLOADED, 2, 9)


async def test_no_money_for_the_repair() -> None:
    model, ledger = FakeModel().says("writer", "nonsense"), Ledger(allowed=1)
    asked = await ask(model, REQUEST, read=goal, gate=ledger)
    assert (asked.outcome, asked.calls) == (Outcome.BAD_JSON, 1)


@pytest.mark.parametrize("outcome", [o for o in Outcome if o not in (Outcome.OK, Outcome.BAD_JSON)])
async def test_other_outcomes_are_passed_on(outcome: Outcome) -> None:
    model = FakeModel().fails("writer", outcome, retry_after=3)
    asked = await ask(model, REQUEST, read=goal, gate=Unmetered())
    assert (asked.outcome, asked.value, asked.retry_after, len(model.requests)) == (outcome, None, 3, 1)


async def test_no_budget_no_call() -> None:
    model = FakeModel().says("writer", {"goal": "x"})
    asked = await ask(model, REQUEST, read=goal, gate=Ledger(allowed=0))
    assert (asked.outcome, asked.calls, model.requests) == (Outcome.BUDGET, 0, [])


async def test_a_timeout_counts_for_its_prompt() -> None:
    ledger = Ledger()
    await ask(FakeModel().fails("writer", Outcome.TIMEOUT), REQUEST, read=goal, gate=ledger)
    (_, _, _, charged) = ledger.events[-1]
    assert 0 < charged < prices.at_most(REQUEST)
    ledger = Ledger()
    await ask(FakeModel().fails("writer", Outcome.RATE_LIMITED), REQUEST, read=goal, gate=ledger)
    assert ledger.events[-1] == ("settle", "rate_limited", 0, Decimal(0))


async def test_a_cancelled_call_stays_reserved() -> None:
    model, ledger = FakeModel().hold(), Ledger()
    task = asyncio.create_task(ask(model, REQUEST, read=goal, gate=ledger))
    await model.started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [event[0] for event in ledger.events] == ["reserve"]
    assert model.cancelled == 1


async def test_the_price_is_that_of_the_model_that_answered() -> None:
    answered = LlmResult(
        outcome=Outcome.OK, model="claude-haiku-5-5", data={"goal": "x"}, usage=Usage(output_tokens=1000)
    )
    ledger = Ledger()
    await ask(FakeModel().answers("writer", answered), REQUEST, read=goal, gate=ledger)
    assert ledger.events[-1] == ("settle", "ok", 1000, Decimal("0.0005"))


async def test_only_metadata_is_logged() -> None:
    model = FakeModel().says("*", "canary-answer")
    seen: list[str] = []
    import logging

    from graft import logs

    class Catch(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(str(record.msg) + str(record.args))

    logger = logging.getLogger("graft")
    handler = Catch()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        logs.get_logger("llm")
        await ask(model, REQUEST, read=goal, gate=Unmetered())
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
    assert len(seen) == 2
    assert "writer_repair" in seen[1]
    assert "bad_json" in seen[0]
    assert not [line for line in seen if "canary" in line or "question" in line]
