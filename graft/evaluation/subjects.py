"""What can be evaluated, by the name that a command line gives it.

scripted                 each of the five scripted writers, checked by the honest verifier
scripted:lazy            one of them
scripted:lazy+trusting   with another verifier
replay:FILE              recorded answers
anthropic                the Anthropic API, with the models that production uses or others
none                     no model: floors and what can be said without a card
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from graft.errors import ConfigError
from graft.evaluation.calls import Probe, Subject
from graft.evaluation.cases import Case
from graft.evaluation.recording import Replay
from graft.evaluation.scripted import VERIFIERS, WRITERS, Scripted
from graft.intent import Models
from graft.llm import LlmClient, LlmRequest, LlmResult, NoModel

__all__ = ["Live", "subjects"]


_TRIES = 5
_LONGEST_WAIT = 120.0
Sleep = Callable[[float], Awaitable[None]]


class Live:
    """Somebody who answers whatever they are asked, the same for every case.

    A call that fails for a while (rate limit, overload, a lost connection) is made again, at most four times: a run
    measures answers, and not how busy a service was. The waits are no part of the measured time.
    """

    def __init__(
        self,
        name: str,
        client: LlmClient,
        models: Models,
        *,
        is_paid: bool = True,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.name = name
        self.models = models
        self.is_paid = is_paid
        self._client = _Patient(client, sleep)

    def client(self, case: Case, probe: Probe) -> LlmClient:
        return self._client


class _Patient:
    def __init__(self, client: LlmClient, sleep: Sleep) -> None:
        self._client = client
        self._sleep = sleep

    async def complete(self, request: LlmRequest) -> LlmResult:
        for tried in range(1, _TRIES):
            result = await self._client.complete(request)
            if not result.outcome.is_temporary:
                return result
            wait = 2.0**tried if result.retry_after is None else result.retry_after
            await self._sleep(min(wait, _LONGEST_WAIT))
        return await self._client.complete(request)

    async def count_tokens(self, model: str, text: str) -> int | None:
        return await self._client.count_tokens(model, text)


def subjects(spec: str, *, models: Models, connect: Callable[[], LlmClient]) -> tuple[Subject, ...]:
    """The subjects that a name stands for; `connect` is called for `anthropic` alone. Raises `ConfigError` for a name
    that nobody has, `PermanentError` for a recording that cannot be read."""
    kind, _, rest = spec.partition(":")
    if kind == "scripted" and not rest:
        return tuple(Scripted(writer) for writer in WRITERS)
    if kind == "scripted":
        writer, _, verifier = rest.partition("+")
        verifier = verifier or "honest"
        if writer in WRITERS and verifier in VERIFIERS:
            return (Scripted(writer, verifier),)
        raise ConfigError(
            [f"no such scripted model; writers: {', '.join(WRITERS)}; verifiers: {', '.join(VERIFIERS)}"]
        )
    if kind == "replay" and rest:
        return (Replay.load(Path(rest)),)
    if spec == "anthropic":
        return (Live(f"anthropic:{models.fast}+{models.strong}", connect(), models),)
    if spec == "none":
        return (Live("none", NoModel(), models, is_paid=False),)
    raise ConfigError(
        ["no such model: write scripted, scripted:WRITER+VERIFIER, replay:FILE, anthropic or none"]
    )
