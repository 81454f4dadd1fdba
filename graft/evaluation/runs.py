"""A run as a file: for every case what went in, what came out as typed values, and what it scored.

A run file is meant to be read and compared: JSON with one value a line, cases by name, the card as a reader sees it as
lines of text. So a change of a prompt, the floor, the budget of a diff or the rendering shows in the file's own diff.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from graft.errors import PermanentError
from graft.evaluation.cases import Kind
from graft.evaluation.scores import Scores, total
from graft.intent import Card, Models, Statement, Status, VerifierStatus

__all__ = ["CaseResult", "Probed", "Replayed", "Run", "load", "save", "schema"]

FORMAT = 1


class Probed(msgspec.Struct, frozen=True, kw_only=True):
    """What a verifier said about a card that it was given."""

    status: Status
    verifier: VerifierStatus
    claims: tuple[Statement, ...]
    missed: tuple[str, ...]

    @classmethod
    def of(cls, card: Card) -> Probed:
        claims = (
            *([card.goal] if card.goal else ()),
            *card.changes,
            *(item.why for item in card.out_of_scope),
        )
        return cls(status=card.status, verifier=card.verifier, claims=claims, missed=card.missed)


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """One case of a run."""

    case: str
    kind: Kind
    language: str
    inputs: str
    truth: str
    """Hashes of what Graft read and of what it was measured against."""
    prompts: dict[str, str]
    """The fingerprint of each prompt, by probe and purpose."""
    card: Card
    section: tuple[str, ...]
    """The lines of the comment's section."""
    right: Probed
    planted: Probed
    scores: Scores
    explained: tuple[str, ...]
    """Which claim says which part of the truth, and by which words."""


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """How well a recording fitted: of the questions `asked`, `stale` were answered to another prompt and `missing`
    not at all."""

    asked: int
    stale: int
    missing: int


class Run(msgspec.Struct, frozen=True, kw_only=True):
    format: int = FORMAT
    subject: str
    models: Models
    judge: str | None = None
    prompt_version: str
    replayed: Replayed | None = None
    cases: tuple[CaseResult, ...]

    @property
    def totals(self) -> Scores:
        return total(case.scores for case in self.cases)


def save(path: Path, run: Run) -> None:
    """Write a run, replacing the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(run, order="deterministic"), indent=1) + b"\n")


def load(path: Path) -> Run:
    """Read a run. Raises `PermanentError` with the place that is wrong."""
    try:
        run = msgspec.json.decode(path.read_bytes(), type=Run)
    except OSError as error:
        raise PermanentError(f"{path}: {error.strerror or 'cannot be read'}", reason="bad_run") from None
    except msgspec.DecodeError as error:
        raise PermanentError(f"{path}: {error}", reason="bad_run") from None
    if run.format != FORMAT:
        raise PermanentError(
            f"{path} has format {run.format}, this Graft reads {FORMAT}: run it again", reason="format"
        )
    return run


def schema() -> dict[str, Any]:
    """The JSON Schema of a run file."""
    return msgspec.json.schema(Run)
