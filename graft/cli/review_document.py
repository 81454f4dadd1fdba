"""The document that `graft review --json` prints, and its JSON Schema.

The structs below are the contract: `graft review --schema` is generated from them, so that the two cannot differ.
Fields may be added; a field keeps its name and meaning as long as `version` stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from graft.policy import Decision
from graft.provenance import Provenance
from graft.records import RecordsReview

if TYPE_CHECKING:
    from graft.cli.review import Review

RiskClass = Literal["trivial", "logic", "sensitive"]
Sha = Annotated[str, Meta(pattern="^[0-9a-f]{40}([0-9a-f]{24})?$")]
Count = Annotated[int, Meta(ge=0)]


class FilesOut(Struct, frozen=True, kw_only=True):
    """What changed since `merge_base`, in files and lines. `incomplete` says that there is more than was read, for
    the `incomplete_reasons`."""

    total: Count
    additions: Count
    deletions: Count
    incomplete: bool
    incomplete_reasons: list[str]


class RiskReason(Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"risk": "class"}):
    """One rule that applied. `path` is there where the rule is about a file; `detail` is in Graft's own words."""

    code: str
    risk: RiskClass
    path: str | None = None
    detail: str | None = None


class RiskOut(Struct, frozen=True, kw_only=True):
    """`floor` is what the rules say, for the `reasons`. `final` is at least `logic` where no card was checked."""

    floor: RiskClass
    final: RiskClass
    reasons: list[RiskReason]


class TrailerOut(Struct, frozen=True, kw_only=True):
    """A trailer as git reads it; key and value are cut and made visible."""

    key: str
    value: str


class CommitOut(Struct, frozen=True, kw_only=True):
    """What one commit says. `part` is what it adds to the answer: `agent`, `human`, `automation`, `bot` (unknown),
    `merge`, `suggestion` (of a reviewer, accepted) or `unread`."""

    sha: Sha
    part: str
    agent: str | None
    source: Literal["declared", "detected", "none"]
    model: str | None
    task: str | None
    session: str | None
    trailers: list[TrailerOut]


class HintOut(Struct, frozen=True, kw_only=True):
    """A sign that decided nothing, or a Graft line that git does not read as a trailer (`line` in the message)."""

    kind: str
    agent: str | None
    commit: Sha | None
    key: str | None
    line: int | None


class ProvenanceOut(Struct, frozen=True, kw_only=True):
    """Who wrote the change. `reason` is a stable code, `explanation` the same in a sentence; `decided_by` names the
    commits that gave the answer."""

    author_kind: Literal["agent", "human", "mixed", "automation", "unknown"]
    source: Literal["declared", "detected", "none"]
    reason: str
    explanation: str
    agents: list[str]
    models: list[str]
    tasks: list[str]
    hints: list[HintOut]
    decided_by: list[Sha]
    commits: list[CommitOut]


class PolicyRule(Struct, frozen=True, kw_only=True):
    """What became of one rule, and the facts that decided it. `code` is the condition that failed, `matched`, or
    `earlier_rule`."""

    name: str
    state: Literal["matched", "not_matched", "not_evaluated"]
    code: str
    facts: list[str]


class PolicyError(Struct, frozen=True, kw_only=True):
    """One thing wrong with the policy file; lines and columns count from 1."""

    line: int
    column: int
    path: str
    message: str


class PolicyOut(Struct, frozen=True, kw_only=True):
    """The policy at BASE and what it would decide. `reason` says how reading it went (`ok`, `missing`, …); `rule` is
    the name of the rule that matched, `null` where the default or nothing decided; `guards` are the facts for which
    no rule may approve."""

    status: Literal["none", "valid", "invalid", "unreadable"]
    reason: str
    file: str | None
    outcome: Literal["approve", "review", "block", "none"]
    rule: str | None
    rules: list[PolicyRule]
    guards: list[str]
    errors: list[PolicyError]


class CardOut(Struct, frozen=True, kw_only=True):
    """The intent card. This command has no model, so there is none: `unavailable`, or `empty` for a change without
    files, which needs none."""

    status: Literal["unavailable", "empty"]
    reason: Literal["no_model"] | None


class TouchedOut(Struct, frozen=True, kw_only=True):
    """A clause (`0007-refunds R3`) or a law whose approved text the change touches, and what it does to it."""

    name: str
    change: str


class StaleOut(Struct, frozen=True, kw_only=True):
    """Evidence that does not hold any more, or has to be produced again."""

    kind: str
    name: str
    reason: str


class RecordsOut(Struct, frozen=True, kw_only=True):
    """What the change does to the intent that BASE approves (`.intent/`). `none` where BASE approves none; `stale`
    where the evidence at HEAD does not hold or could not all be read (`not_read`). A path in `protected` makes the
    change sensitive."""

    status: Literal["none", "fresh", "stale"]
    clauses: list[TouchedOut]
    laws: list[TouchedOut]
    stale: list[StaleOut]
    problems: list[str]
    protected: list[str]
    not_read: list[str]


class Document(Struct, frozen=True, kw_only=True):
    """A review of a range of a git repository. `base` is the commit (or tree) BASE names, where policy and records
    are read; `merge_base` is what the files are compared with."""

    version: Literal[1] = 1
    base: Sha
    head: Sha
    merge_base: Sha
    files: FilesOut
    risk: RiskOut
    provenance: ProvenanceOut
    policy: PolicyOut
    card: CardOut
    records: RecordsOut


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the document."""
    schema = msgspec.json.schema(Document)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "graft review", **schema}


def document(made: Review) -> Document:
    """The document of a review."""
    snapshot, card = made.snapshot, made.card
    return Document(
        base=made.range.base,
        head=made.range.head,
        merge_base=made.range.merge_base,
        files=FilesOut(
            total=len(snapshot.files),
            additions=snapshot.additions,
            deletions=snapshot.deletions,
            incomplete=bool(snapshot.incomplete),
            incomplete_reasons=list(snapshot.incomplete),
        ),
        risk=RiskOut(
            floor=card.floor.risk.value,
            final=card.risk.value,
            reasons=[
                RiskReason(code=r.code, risk=r.risk.value, path=r.path, detail=r.detail)
                for r in card.floor.reasons
            ],
        ),
        provenance=_provenance(made.provenance),
        policy=_policy(made.decision),
        card=CardOut(status="empty", reason=None)
        if snapshot.is_empty
        else CardOut(status="unavailable", reason="no_model"),
        records=_records(made.records),
    )


def _records(found: RecordsReview | None) -> RecordsOut:
    if found is None:
        return RecordsOut(
            status="none", clauses=[], laws=[], stale=[], problems=[], protected=[], not_read=[]
        )
    return RecordsOut(
        status=found.status,
        clauses=[
            TouchedOut(name=f"{item.record} {item.clause}", change=item.change) for item in found.clauses
        ],
        laws=[TouchedOut(name=item.law, change=item.change) for item in found.laws],
        stale=[StaleOut(kind=item.kind, name=item.name, reason=item.reason) for item in found.stale],
        problems=list(found.problems),
        protected=list(found.protected),
        not_read=list(found.truncated),
    )


def _provenance(who: Provenance) -> ProvenanceOut:
    return ProvenanceOut(
        author_kind=who.author_kind.value,
        source=who.source.value,
        reason=who.reason.value,
        explanation=who.explanation,
        agents=list(who.agents),
        models=list(who.models),
        tasks=[task.text for task in who.tasks],
        hints=[
            HintOut(kind=h.kind, agent=h.agent, commit=h.commit, key=h.key, line=h.line) for h in who.hints
        ],
        decided_by=list(who.decided_by),
        commits=[
            CommitOut(
                sha=c.sha,
                part=c.part.value,
                agent=c.agent,
                source=c.source.value,
                model=c.model,
                task=c.task.text if c.task is not None else None,
                session=c.session,
                trailers=[TrailerOut(key=t.key, value=t.value) for t in c.trailers],
            )
            for c in who.commits
        ],
    )


def _policy(decision: Decision) -> PolicyOut:
    loaded, verdict = decision.loaded, decision.verdict
    results = verdict.results if verdict is not None else ()
    return PolicyOut(
        status=loaded.status.value,
        reason=loaded.reason,
        file=loaded.path,
        outcome=verdict.outcome.value if verdict is not None else "none",
        rule=results[verdict.rule].name if verdict is not None and verdict.rule is not None else None,
        rules=[
            PolicyRule(
                name=r.name, state=r.state.value, code=r.code, facts=[fact.plain() for fact in r.facts]
            )
            for r in results
        ],
        guards=[guard.plain() for guard in verdict.guards] if verdict is not None else [],
        errors=[
            PolicyError(line=p.line, column=p.column, path=p.path, message=p.message) for p in loaded.problems
        ],
    )
