"""One question to a model: money reserved before each call, the answer read into a type, at most one repair.

Every call is logged with its purpose, model, tokens, duration and outcome, and with nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Generic, Protocol, TypeVar

import msgspec

from graft.llm import prices
from graft.llm.types import LlmClient, LlmRequest, LlmResult, Outcome, Turn, Usage

T = TypeVar("T")

_LONGEST_ECHO = 20_000


class Permit(Protocol):
    """Leave to make one call. If it is never settled, because the process died or the call was cancelled,
    whoever gave it keeps counting it at its estimate."""

    async def settle(self, *, outcome: str, tokens: int, cost_usd: Decimal) -> None:
        """Say what the call really used."""


class SpendGate(Protocol):
    """Decides whether there is money for a call."""

    async def reserve(self, *, purpose: str, model: str, estimate_usd: Decimal) -> Permit | None:
        """A permit, or `None` where the budget does not hold `estimate_usd` any more."""


class Unmetered:
    """A gate for those who pay for themselves, such as an evaluation run: everything is allowed."""

    async def reserve(self, *, purpose: str, model: str, estimate_usd: Decimal) -> Permit | None:
        return self

    async def settle(self, *, outcome: str, tokens: int, cost_usd: Decimal) -> None:
        return None


class AnswerError(ValueError):
    """The JSON of an answer does not have the shape that was asked for. The message goes to the model only."""


class Asked(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """The value, or the outcome that stood in its way; the calls made for it, a repair included."""

    outcome: Outcome
    value: T | None = None
    model: str
    calls: int = 0
    usage: Usage = Usage()
    retry_after: float | None = None


async def ask(
    client: LlmClient, request: LlmRequest, *, read: Callable[[object], T], gate: SpendGate
) -> Asked[T]:
    """Ask, and ask once more when the answer is no JSON or `read` refuses it with `AnswerError`."""
    value, problem, result = await _once(client, request, read, gate)
    spent, calls = result.usage, int(_was_made(result))
    if problem is not None:
        again = msgspec.structs.replace(
            request,
            purpose=f"{request.purpose}_repair",
            turns=(
                *request.turns,
                Turn("assistant", result.text[:_LONGEST_ECHO]),
                Turn(
                    "user",
                    f"That answer cannot be used: {problem}. Answer the same question again, with one JSON object "
                    "that fits the schema and no other text.",
                ),
            ),
        )
        value, problem, second = await _once(client, again, read, gate)
        spent += second.usage
        calls += int(_was_made(second))
        # A repair that could not be made leaves the first answer as bad as it was.
        result = second if _was_made(second) else result
    outcome = Outcome.BAD_JSON if problem is not None else result.outcome
    return Asked(
        outcome=outcome,
        value=value,
        model=result.model,
        calls=calls,
        usage=spent,
        retry_after=result.retry_after,
    )


def _was_made(result: LlmResult) -> bool:
    return result.outcome not in (Outcome.NO_KEY, Outcome.BUDGET)


async def _once(
    client: LlmClient, request: LlmRequest, read: Callable[[object], T], gate: SpendGate
) -> tuple[T | None, str | None, LlmResult]:
    """(value, what is wrong with the answer if a repair may help, the call)."""
    estimate = prices.at_most(request)
    permit = await gate.reserve(purpose=request.purpose, model=request.model, estimate_usd=estimate)
    if permit is None:
        return None, None, LlmResult(outcome=Outcome.BUDGET, model=request.model)
    result = await client.complete(request)
    await permit.settle(
        outcome=str(result.outcome), tokens=result.usage.total, cost_usd=_charged(request, result)
    )
    _log(request, result)
    if result.outcome is Outcome.BAD_JSON and result.text.strip():
        return None, "it is not one JSON object", result
    if result.outcome is not Outcome.OK:
        return None, None, result
    try:
        return read(result.data), None, result
    except AnswerError as error:
        return None, str(error), result


def _log(request: LlmRequest, result: LlmResult) -> None:
    from graft import logs  # here, because structlog takes longer to import than all the rest

    logs.get_logger("llm").info("model call", purpose=request.purpose, **result.log_context())


def _charged(request: LlmRequest, result: LlmResult) -> Decimal:
    """What the call counts for. One that timed out was probably read, and may well be billed for its prompt."""
    if result.outcome is Outcome.TIMEOUT and result.usage.total == 0:
        return prices.cost(request.model, Usage(input_tokens=prices.prompt_tokens(request)))
    return prices.cost(result.model, result.usage)
