"""A model that says what it is told to: the `LlmClient` of tests, demonstrations and whoever builds on Graft.

    model = FakeModel().says("writer", {"goal": …}).fails("verifier", Outcome.TIMEOUT)

Answers are taken in order per purpose; the last one stays. A text goes through the same decoding as a real
model's. Every request is kept in `requests`, to be looked at afterwards.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from graft.llm import JsonError, LlmRequest, LlmResult, Outcome, Usage, decode_object, estimate_tokens

Answer = LlmResult | Callable[[LlmRequest], "LlmResult | dict[str, Any] | str"]


class FakeModel:
    """Implements `LlmClient`. A purpose without an answer of its own takes those of `*`, then `no_key`.

    `counts` is what `count_tokens` answers, `None` for a service that cannot count.
    """

    def __init__(self, *, counts: Callable[[str], int] | None = None) -> None:
        self.requests: list[LlmRequest] = []
        self.started = asyncio.Event()
        """Set as soon as a call has begun."""
        self.cancelled = 0
        self._answers: dict[str, list[Answer]] = {}
        self._gate: asyncio.Event | None = None
        self._counts = counts

    def says(self, purpose: str, answer: dict[str, Any] | str, *, usage: Usage | None = None) -> FakeModel:
        """Answer a call of this purpose with a JSON object, or with text as it is."""
        text = answer if isinstance(answer, str) else json.dumps(answer)

        def answered(request: LlmRequest) -> LlmResult:
            return _judged(request, text, usage)

        return self.answers(purpose, answered)

    def fails(self, purpose: str, outcome: Outcome, *, retry_after: float | None = None) -> FakeModel:
        """End a call of this purpose with an outcome."""

        def failed(request: LlmRequest) -> LlmResult:
            return LlmResult(outcome=outcome, model=request.model, retry_after=retry_after)

        return self.answers(purpose, failed)

    def answers(self, purpose: str, answer: Answer) -> FakeModel:
        """Answer with a result, or with what a function makes of the request."""
        self._answers.setdefault(purpose, []).append(answer)
        return self

    def hold(self) -> FakeModel:
        """Let calls wait until `release`."""
        self._gate = asyncio.Event()
        return self

    def release(self) -> None:
        if self._gate is not None:
            self._gate.set()

    def asked(self, purpose: str) -> list[LlmRequest]:
        """The requests of one purpose, in order."""
        return [request for request in self.requests if request.purpose == purpose]

    async def complete(self, request: LlmRequest) -> LlmResult:
        self.requests.append(request)
        self.started.set()
        if self._gate is not None:
            try:
                await self._gate.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        queue = self._answers.get(request.purpose) or self._answers.get("*")
        if not queue:
            return LlmResult(outcome=Outcome.NO_KEY, model=request.model)
        answer = queue.pop(0) if len(queue) > 1 else queue[0]
        made = answer if isinstance(answer, LlmResult) else answer(request)
        if isinstance(made, LlmResult):
            return made
        return _judged(request, made if isinstance(made, str) else json.dumps(made), None)

    async def count_tokens(self, model: str, text: str) -> int | None:
        return None if self._counts is None else self._counts(text)


def _judged(request: LlmRequest, text: str, usage: Usage | None) -> LlmResult:
    if usage is None:
        prompt = request.system + "".join(turn.text for turn in request.turns)
        usage = Usage(input_tokens=estimate_tokens(prompt), output_tokens=estimate_tokens(text))
    try:
        return LlmResult(
            outcome=Outcome.OK, model=request.model, text=text, data=decode_object(text), usage=usage
        )
    except JsonError:
        outcome = Outcome.BAD_JSON if text.strip() else Outcome.EMPTY
        return LlmResult(outcome=outcome, model=request.model, text=text, usage=usage)
