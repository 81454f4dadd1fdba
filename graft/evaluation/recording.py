"""Model answers in a file, so that a run can be repeated without a model, a network or a cost.

A recording is one JSON value a line: who answered, then each case with its calls. It is replayed by case, probe and
purpose in the order of the calls, not by prompt: after a change of a prompt the old answers still show what the change
does to everything around the model. Answers to another prompt are counted, because they say nothing about that prompt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from graft.errors import PermanentError
from graft.evaluation.calls import Call, Probe, fingerprint
from graft.evaluation.cases import Case
from graft.intent import Models
from graft.llm import JsonError, LlmClient, LlmRequest, LlmResult, Outcome, decode_object

__all__ = ["Header", "RecordedCase", "Replay", "save"]

FORMAT = 1


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a recording."""

    format: int = FORMAT
    subject: str
    models: Models
    is_paid: bool
    prompt_version: str


class RecordedCase(msgspec.Struct, frozen=True, kw_only=True):
    """Every other line."""

    case: str
    inputs: str
    calls: tuple[Call, ...]


def save(path: Path, header: Header, cases: Iterable[RecordedCase]) -> None:
    """Write a recording, replacing the file."""
    lines = [msgspec.json.encode(value) for value in (header, *cases)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\n".join([*lines, b""]))


class Replay:
    """A recording as a `Subject`."""

    def __init__(self, header: Header, cases: Iterable[RecordedCase]) -> None:
        self.name = header.subject
        self.models = header.models
        self.is_paid = header.is_paid
        self.asked = 0
        self.stale = 0
        """Answers that were given to another prompt."""
        self.missing = 0
        """Questions that were not asked when it was recorded."""
        self._calls = {case.case: case.calls for case in cases}

    @classmethod
    def load(cls, path: Path) -> Replay:
        """Read a recording. Raises `PermanentError` with the line that is wrong."""
        try:
            lines = path.read_bytes().splitlines()
        except OSError as error:
            raise PermanentError(
                f"{path}: {error.strerror or 'cannot be read'}", reason="bad_recording"
            ) from None
        number = 1
        try:
            header = msgspec.json.decode(lines[0] if lines else b"", type=Header)
            if header.format != FORMAT:
                raise PermanentError(
                    f"{path} has format {header.format}, this Graft reads {FORMAT}: record again",
                    reason="format",
                )
            cases = []
            for line in lines[1:]:
                number += 1
                cases.append(msgspec.json.decode(line, type=RecordedCase))
        except msgspec.DecodeError as error:
            raise PermanentError(f"{path}, line {number}: {error}", reason="bad_recording") from None
        return cls(header, cases)

    def client(self, case: Case, probe: Probe) -> LlmClient:
        return _Replayed(self, [call for call in self._calls.get(case.slug, ()) if call.probe is probe])


class _Replayed:
    def __init__(self, replay: Replay, calls: Iterable[Call]) -> None:
        self._replay = replay
        self._left: dict[str, deque[Call]] = {}
        for call in calls:
            self._left.setdefault(call.purpose, deque()).append(call)

    async def complete(self, request: LlmRequest) -> LlmResult:
        self._replay.asked += 1
        left = self._left.get(request.purpose)
        if not left:
            self._replay.missing += 1
            return LlmResult(outcome=Outcome.NO_KEY, model=request.model)
        call = left.popleft()
        self._replay.stale += call.prompt != fingerprint(request)
        result = LlmResult(
            outcome=call.outcome, model=call.model, text=call.text, usage=call.usage, seconds=call.seconds
        )
        if call.outcome is not Outcome.OK:
            return result
        try:
            return msgspec.structs.replace(result, data=decode_object(call.text))
        except JsonError:
            return msgspec.structs.replace(result, outcome=Outcome.BAD_JSON)

    async def count_tokens(self, model: str, text: str) -> int | None:
        return None


def schema() -> dict[str, Any]:
    """The JSON Schema of one line of a recording."""
    lines, components = msgspec.json.schema_components((Header, RecordedCase), ref_template="#/$defs/{name}")
    return {"anyOf": list(lines), "$defs": components}
