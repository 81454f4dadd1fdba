"""The answer to "who wrote this change, and how do we know?", and the facts it rests on."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from graft.provenance.tasks import Task
from graft.provenance.trailers import Trailer

MAX_COMMITS = 250  # GitHub lists no more for a pull request


class AuthorKind(StrEnum):
    """Who wrote the change. `MIXED` is agent and human; `UNKNOWN` means that Graft will not guess."""

    AGENT = "agent"
    HUMAN = "human"
    MIXED = "mixed"
    AUTOMATION = "automation"
    UNKNOWN = "unknown"


class Source(StrEnum):
    """How it is known: said in `Graft-Agent`, found by a strong signature, or not at all."""

    DECLARED = "declared"
    DETECTED = "detected"
    NONE = "none"


class Part(StrEnum):
    """What a commit contributes to the answer."""

    AGENT = "agent"
    HUMAN = "human"
    AUTOMATION = "automation"
    BOT = "bot"  # a bot that is not in the table: it may be an agent or not
    MERGE = "merge"  # brings in other commits, which are judged by themselves
    SUGGESTION = "suggestion"  # a reviewer's suggestion that somebody accepted
    UNREAD = "unread"  # its message is too long to be read


class Reason(StrEnum):
    """Why the answer is what it is. The values are stored and published: never change one."""

    DECLARED = "declared_agent"
    DETECTED = "detected_agent"
    OPENED_BY_AGENT = "opened_by_agent"
    AGENT_AND_HUMAN = "agent_and_human"
    NO_SIGNATURE = "no_signature"
    ONLY_AUTOMATION = "only_automation"
    UNKNOWN_BOT = "unknown_bot"
    TOO_MANY_COMMITS = "too_many_commits"
    COMMITS_TRUNCATED = "commits_truncated"
    MESSAGE_TOO_LONG = "message_too_long"
    NO_COMMITS = "no_commits"


class Hint(msgspec.Struct, frozen=True, kw_only=True):
    """Something worth knowing that decided nothing.

    `kind`: `branch`, `description`, `message`, `second_hand` (an identity that is not confirmed), `committer`,
    `outvoted` (a signature beside a declaration), `misplaced_trailer` (a Graft line that git does not read as a
    trailer), `unusable_trailer` (a Graft-Agent that names no agent, or other Graft lines without one).
    `line` counts from 1 in the commit's message.
    """

    kind: str
    agent: str | None = None
    commit: str | None = None
    key: str | None = None
    line: int | None = None


class CommitFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What one commit says. `rule` is the signature's code (`claude-code/address`) or `Graft-Agent`.

    All text is bounded and on one line. `trailers` are all that git reads, people's addresses included: they are
    shown, and are not for storing.
    """

    sha: str
    part: Part
    source: Source = Source.NONE
    agents: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    tasks: tuple[Task, ...] = ()
    session: str | None = None
    rule: str | None = None
    trailers: tuple[Trailer, ...] = ()
    hints: tuple[Hint, ...] = ()

    @property
    def agent(self) -> str | None:
        return self.agents[0] if self.agents else None

    @property
    def model(self) -> str | None:
        return self.models[0] if self.models else None

    @property
    def task(self) -> Task | None:
        return self.tasks[0] if self.tasks else None


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for a change. `decided_by` names the commits that gave it (none where the pull request's own
    author did); `explanation` is one sentence in Graft's words without any text from outside."""

    author_kind: AuthorKind
    source: Source
    reason: Reason
    explanation: str
    agents: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    tasks: tuple[Task, ...] = ()
    decided_by: tuple[str, ...] = ()
    commits: tuple[CommitFacts, ...] = ()
    hints: tuple[Hint, ...] = ()
