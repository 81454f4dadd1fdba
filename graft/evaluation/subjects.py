"""What can be evaluated, by the name that a command line gives it.

scripted                 each of the five scripted writers, checked by the honest verifier
scripted:lazy            one of them
scripted:lazy+trusting   with another verifier
replay:FILE              recorded answers
anthropic                the Anthropic API, with the models that production uses or others
none                     no model: floors and what can be said without a card
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from graft.errors import ConfigError
from graft.evaluation.calls import Probe, Subject
from graft.evaluation.cases import Case
from graft.evaluation.recording import Replay
from graft.evaluation.scripted import VERIFIERS, WRITERS, Scripted
from graft.intent import Models
from graft.llm import LlmClient, NoModel

__all__ = ["Live", "subjects"]


class Live:
    """Somebody who answers whatever they are asked, the same for every case."""

    def __init__(self, name: str, client: LlmClient, models: Models, *, is_paid: bool = True) -> None:
        self.name = name
        self.models = models
        self.is_paid = is_paid
        self._client = client

    def client(self, case: Case, probe: Probe) -> LlmClient:
        return self._client


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
