"""The models of an evaluation: who answers which question of which case, and what was asked and answered.

A card is written by `graft.intent.write_card`, exactly as in production; everything that an evaluation wants to know or
to decide about its calls happens in the `LlmClient` that it is given.
"""

from __future__ import annotations

import hashlib
import re
from decimal import Decimal
from enum import StrEnum
from typing import Protocol

import msgspec

from graft.evaluation.cases import Case
from graft.intent import Models
from graft.llm import LlmClient, LlmRequest, LlmResult, Outcome, Permit, Usage

__all__ = ["Budget", "Call", "Calls", "Probe", "Subject", "Writes", "fingerprint"]

_NONCE = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")


class Probe(StrEnum):
    """Why a card of a case is made."""

    CARD = "card"
    """As in production: the writer's card, checked by the verifier."""
    RIGHT = "right"
    """The card that the truth would write, given to the verifier: each doubt is a false alarm."""
    PLANTED = "planted"
    """The same with wrong claims among the right ones: each that passes was not caught."""


class Subject(Protocol):
    """What is evaluated."""

    @property
    def name(self) -> str:
        """How a run and a recording call it."""

    @property
    def models(self) -> Models:
        """The model ids that it is asked by."""

    @property
    def is_paid(self) -> bool:
        """Whether its tokens cost something."""

    def client(self, case: Case, probe: Probe) -> LlmClient:
        """Who answers the questions of one card."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call and its answer, as it is recorded."""

    probe: Probe
    purpose: str
    prompt: str
    """The fingerprint of everything that the model was told."""
    model: str
    outcome: Outcome
    text: str = ""
    usage: Usage = Usage()
    seconds: float = 0.0


def fingerprint(request: LlmRequest) -> str:
    """The same for the same prompt; the nonce of its data blocks, which is new for each call, is left out."""
    told = [
        request.system,
        msgspec.json.encode(request.schema).decode(),
        *(turn.text for turn in request.turns),
    ]
    return hashlib.sha256(_NONCE.sub("nonce", "\0".join(told)).encode("utf-8", "surrogatepass")).hexdigest()[
        :16
    ]


class Calls:
    """An `LlmClient` that passes everything on and keeps what came back."""

    def __init__(self, client: LlmClient, probe: Probe) -> None:
        self.made: list[Call] = []
        self._client = client
        self._probe = probe

    async def complete(self, request: LlmRequest) -> LlmResult:
        result = await self._client.complete(request)
        self.made.append(
            Call(
                probe=self._probe,
                purpose=request.purpose,
                prompt=fingerprint(request),
                model=result.model,
                outcome=result.outcome,
                text=result.text,
                usage=result.usage,
                seconds=round(result.seconds, 3),
            )
        )
        return result

    async def count_tokens(self, model: str, text: str) -> int | None:
        return await self._client.count_tokens(model, text)


class Writes:
    """A writer whose answer is given, with somebody else as the verifier."""

    def __init__(self, answer: dict[str, object], verifier: LlmClient) -> None:
        self._answer = answer
        self._text = msgspec.json.encode(answer).decode()
        self._verifier = verifier

    async def complete(self, request: LlmRequest) -> LlmResult:
        if request.purpose != "writer":
            return await self._verifier.complete(request)
        return LlmResult(outcome=Outcome.OK, model="the truth", data=self._answer, text=self._text)

    async def count_tokens(self, model: str, text: str) -> int | None:
        return await self._verifier.count_tokens(model, text)


class Budget:
    """A spend gate for one run: counts what is spent, and allows nothing that would pass the limit."""

    def __init__(self, limit_usd: Decimal | None = None) -> None:
        self.spent = Decimal(0)
        self._limit = limit_usd
        self._reserved = Decimal(0)

    def purse(self) -> Purse:
        """The gate of one card, which also knows that card's own cost."""
        return Purse(self)

    def take(self, estimate: Decimal) -> bool:
        if self._limit is not None and self.spent + self._reserved + estimate > self._limit:
            return False
        self._reserved += estimate
        return True

    def settle(self, estimate: Decimal, cost: Decimal) -> None:
        self._reserved -= estimate
        self.spent += cost


class Purse:
    """Implements `SpendGate`."""

    def __init__(self, budget: Budget) -> None:
        self.spent = Decimal(0)
        self.budget = budget

    async def reserve(self, *, purpose: str, model: str, estimate_usd: Decimal) -> Permit | None:
        return _Permit(self, estimate_usd) if self.budget.take(estimate_usd) else None


class _Permit:
    def __init__(self, purse: Purse, estimate: Decimal) -> None:
        self._purse = purse
        self._estimate = estimate

    async def settle(self, *, outcome: str, tokens: int, cost_usd: Decimal) -> None:
        self._purse.spent += cost_usd
        self._purse.budget.settle(self._estimate, cost_usd)
