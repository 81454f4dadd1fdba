"""What a policy is judged on: facts of one pull request at one moment, however they were found out.

Nothing in here was claimed by the pull request's own copy of the policy, and nothing in here is ever stored;
`Fact` is one sentence about them, with outside text kept apart from Graft's words.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from graft.changes import ChangedFile
from graft.risk import Risk


class Card(StrEnum):
    """The intent card of this head. `VERIFIED` only when the verifier ran and supported every claim."""

    VERIFIED = "verified"
    UNVERIFIED = "unverified"
    MISSING = "missing"


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """`incomplete` holds the reason codes of a file list that may not name everything; `risk` is the final
    risk, `None` where none was computed; `records` is `none` where the repository keeps none."""

    files: tuple[ChangedFile, ...]
    incomplete: tuple[str, ...] = ()
    author_kind: str = "unknown"
    source: str | None = None
    agents: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    risk: Risk | None = None
    card: Card = Card.MISSING
    injection_suspected: bool = False
    labels: tuple[str, ...] = ()
    base_ref: str
    draft: bool = False
    task_linked: bool = False
    records: str = "none"

    @property
    def lines(self) -> int:
        return sum(file.additions + file.deletions for file in self.files)


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence about a change. `code` is fit for a database column; each `{}` of `text` stands for one of
    `subjects`, which are text from outside (paths, globs, labels, names)."""

    code: str
    text: str
    subjects: tuple[str, ...] = ()

    def plain(self) -> str:
        """The sentence with its subjects as they are: for JSON, or to be made safe for a terminal."""
        return self.text.format(*self.subjects)
