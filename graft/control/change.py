"""Everything that operators are told of one pull request: how it stands, what was decided, and why."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from graft.control.replicas import Doing

FullName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}\Z")]
Number = Annotated[int, Meta(ge=1, le=2**31 - 1)]


class ChangeName(Struct, frozen=True, kw_only=True):
    """`OWNER/REPO#NUMBER`."""

    repository: FullName
    number: Number


class WorkRow(Struct, frozen=True, kw_only=True):
    """A need of the change that is not done."""

    need: str
    state: str
    due_seconds: float
    age_seconds: float
    attempts: int
    forced: bool
    failure: dict[str, Any] | None


class CommitOrigin(Struct, frozen=True, kw_only=True):
    """What one commit said of its author; `rule` is what detected it."""

    sha: str
    source: str
    author_kind: str
    agent: str | None
    model: str | None
    task: str | None
    rule: str | None
    decides: bool


class Provenance(Struct, frozen=True, kw_only=True):
    head_sha: str
    author_kind: str
    reason: str
    source: str
    agents: tuple[str, ...]
    models: tuple[str, ...]
    hints: tuple[str, ...]
    commits: tuple[CommitOrigin, ...]
    resolved_at: datetime


class Card(Struct, frozen=True, kw_only=True):
    """The newest card; `card` is the whole of it as it is stored."""

    id: str
    head_sha: str
    base_sha: str
    status: str
    reason: str | None
    risk: str
    risk_floor: str
    risk_first_pass: str | None
    risk_writer: str | None
    risk_verifier: str | None
    verifier_status: str
    injection_suspected: bool
    writer_model: str | None
    verifier_model: str | None
    carried_from: str | None
    created_at: datetime
    published_at: datetime | None
    card: dict[str, Any]


class RuleState(Struct, frozen=True, kw_only=True):
    """What became of one rule; `name` and `facts` only where the file could be read again."""

    index: int
    state: str
    code: str
    name: str | None = None
    facts: tuple[str, ...] = ()


class Verdict(Struct, frozen=True, kw_only=True):
    head_sha: str
    base_ref: str
    base_sha: str
    policy_path: str | None
    policy_status: str
    outcome: str
    rule_index: int | None
    rules: tuple[RuleState, ...]
    guards: tuple[str, ...]
    evaluated_at: datetime


class Display(Struct, frozen=True, kw_only=True):
    """What the comment showed from then on (GitHub's clock)."""

    shown_at: datetime
    status: str
    card_id: str | None


class CheckRun(Struct, frozen=True, kw_only=True):
    name: str
    check_run_id: int
    published_at: datetime


class Vote(Struct, frozen=True, kw_only=True):
    login: str
    verdict: str
    source: str
    is_author: bool
    voted_at: datetime
    withdrawn: bool


class Spend(Struct, frozen=True, kw_only=True):
    """What one kind of call cost for this change so far."""

    purpose: str
    model: str
    outcome: str
    calls: int
    tokens: int
    cost_usd: float


class Live(Struct, frozen=True, kw_only=True):
    """What happens with a change now. `state` is `running`, `idle`, or `changing hands` when no replica
    answered for its partition in time."""

    state: Literal["running", "idle", "changing hands"]
    partition: int
    replica: str | None = None
    doing: Doing | None = None


class Change(Struct, frozen=True, kw_only=True):
    """Everything that is stored of one pull request, and what happens with it now."""

    name: str
    address: str
    installation_id: int
    state: str
    draft: bool
    author: str | None
    author_is_bot: bool
    head_sha: str
    base_ref: str
    opened_at: datetime | None
    updated_at: datetime
    comment_id: int | None
    inactive: str | None
    live: Live
    work: tuple[WorkRow, ...]
    provenance: Provenance | None
    card: Card | None
    cards: int
    verdict: Verdict | None
    displays: tuple[Display, ...]
    checks: tuple[CheckRun, ...]
    votes: tuple[Vote, ...]
    spend: tuple[Spend, ...]


class Because(Struct, frozen=True, kw_only=True):
    """One decision: what it is, and every fact that had a say."""

    decision: str
    outcome: str
    facts: tuple[str, ...]


class Reasons(Struct, frozen=True, kw_only=True):
    """Why a change is shown as it is. `policy_read` says how graft.yaml could be read again: `ok`, `changed`
    when it is not the file that decided, `none` without a policy, or a reason."""

    name: str
    head_sha: str
    decisions: tuple[Because, ...]
    verdict: Verdict | None
    policy_read: str
