"""The intent card as a value: what it says, how that was checked, and the one rule for its final risk.

A card holds paths, SHAs, numbers, codes and the models' own prose, so it can be stored as it is. It holds no
diff, no prompt and no text of the pull request.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from graft.intent.excerpt import Omission
from graft.intent.floor import Floor
from graft.intent.injection import Suspicion
from graft.llm import Usage
from graft.risk import Risk, highest

__all__ = [
    "Card",
    "OutOfScope",
    "Pointer",
    "Statement",
    "Status",
    "Verdict",
    "VerifierStatus",
    "final_risk",
]

_MOST_STORED = 200


class Status(StrEnum):
    """`ready`: written and checked (the check may disagree). `unverified`: written, the check failed.
    `unavailable`: not written; `Card.reason` says why. `empty`: nothing changed, no card is needed."""

    READY = "ready"
    UNVERIFIED = "unverified"
    UNAVAILABLE = "unavailable"
    EMPTY = "empty"


class VerifierStatus(StrEnum):
    AGREES = "agrees"
    DISAGREES = "disagrees"
    FAILED = "failed"
    NOT_RUN = "not_run"


class Verdict(StrEnum):
    """What the verifier found about one claim."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    CONTRADICTED = "contradicted"


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """One claim of the card, with the verifier's verdict once there is one."""

    text: str
    verdict: Verdict | None = None
    reason: str = ""

    @property
    def is_doubted(self) -> bool:
        return self.verdict in (Verdict.UNSUPPORTED, Verdict.CONTRADICTED)


class OutOfScope(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the goal does not explain; `by` is `writer` or `verifier`."""

    path: str
    why: Statement
    by: str


class Pointer(msgspec.Struct, frozen=True, kw_only=True):
    """A behaviour change (its number on the card) that the writer thinks falls under an approved clause. Nobody has
    checked that."""

    change: int
    record: str
    clause: str


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """Everything known about one head. `risk` is final; the other classes say where it came from."""

    status: Status
    reason: str | None = None
    """Why there is no card, or no check: `no_model`, `budget`, or the outcome of the call that failed."""
    base_sha: str
    head_sha: str

    goal: Statement | None = None
    changes: tuple[Statement, ...] = ()
    out_of_scope: tuple[OutOfScope, ...] = ()
    missed: tuple[str, ...] = ()
    """Behaviour changes that the verifier found and the card does not mention."""
    touches: tuple[Pointer, ...] = ()

    risk: Risk
    floor: Floor
    risk_writer: Risk | None = None
    risk_first_pass: Risk | None = None
    risk_verifier: Risk | None = None
    risk_reason_writer: str = ""
    risk_reason_verifier: str = ""
    verifier: VerifierStatus = VerifierStatus.NOT_RUN

    suspicions: tuple[Suspicion, ...] = ()
    omissions: tuple[Omission, ...] = ()
    incomplete: tuple[str, ...] = ()
    dropped_paths: int = 0
    """Paths that a model named and the change does not have."""

    writer_model: str | None = None
    verifier_model: str | None = None
    prompt_version: str
    input_hash: str
    diff_fingerprint: str | None = None
    usage: Usage = Usage()
    llm_calls: int = 0
    is_temporary: bool = False
    """The failure may pass by itself; `retry_after` is the service's own wish in seconds, if it had one."""
    retry_after: float | None = None

    @property
    def doubts(self) -> tuple[Statement, ...]:
        """Claims that the verifier did not find in the diff."""
        claims = (
            *([self.goal] if self.goal else ()),
            *self.changes,
            *(item.why for item in self.out_of_scope),
        )
        return tuple(claim for claim in claims if claim.is_doubted)

    def stored(self) -> dict[str, Any]:
        """The card as plain JSON values, long lists cut to what a reader can use."""
        floor = msgspec.structs.replace(self.floor, reasons=self.floor.reasons[:_MOST_STORED])
        cut = msgspec.structs.replace(self, floor=floor, omissions=self.omissions[:_MOST_STORED])
        plain: dict[str, Any] = msgspec.to_builtins(cut)
        return plain

    @classmethod
    def from_stored(cls, plain: dict[str, Any]) -> Card:
        """Read back what `stored` gave. Raises `msgspec.ValidationError` for anything else."""
        return msgspec.convert(plain, cls)

    def columns(self) -> dict[str, Any]:
        """The columns of a stored card that come from it."""
        return {
            "head_sha": self.head_sha,
            "base_sha": self.base_sha,
            "status": str(self.status),
            "reason": self.reason,
            "risk_class": str(self.risk),
            "risk_floor": str(self.floor.risk),
            "risk_writer": _text(self.risk_writer),
            "risk_first_pass": _text(self.risk_first_pass),
            "risk_verifier": _text(self.risk_verifier),
            "verifier_status": str(self.verifier),
            "injection_suspected": bool(self.suspicions),
            "card": self.stored(),
            "writer_model": self.writer_model,
            "verifier_model": self.verifier_model,
            "prompt_version": self.prompt_version,
            "input_hash": self.input_hash,
            "diff_fingerprint": self.diff_fingerprint,
            "input_tokens": self.usage.input_tokens,
            "output_tokens": self.usage.output_tokens,
            "cache_read_tokens": self.usage.cache_read_tokens,
            "cache_write_tokens": self.usage.cache_write_tokens,
            "llm_calls": self.llm_calls,
        }


def final_risk(
    *,
    status: Status,
    floor: Risk,
    writer: Risk | None,
    first_pass: Risk | None,
    verifier: Risk | None,
    verifier_status: VerifierStatus,
    injection: bool,
) -> Risk:
    """The highest of everything that has a say: a model can raise the class and never lower it.

    Without a card that was checked and found right the class is at least `logic`; only an empty change needs
    none.
    """
    unchecked = status is not Status.EMPTY and verifier_status is not VerifierStatus.AGREES
    return highest(floor, writer, first_pass, verifier, Risk.LOGIC if unchecked or injection else None)


def _text(risk: Risk | None) -> str | None:
    return None if risk is None else str(risk)
