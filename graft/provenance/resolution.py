"""Decides who wrote a change, from its own commits.

What an agent declares comes before what a signature shows; a weak sign never decides. Merges that bring the base
in and accepted suggestions leave the answer as it is, and automation beside people or agents does too. Where
Graft cannot see everything, the answer is `unknown`, not the likeliest one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graft.changes import Commit, Person
from graft.provenance import commits as reading
from graft.provenance import signatures
from graft.provenance.explain import explain
from graft.provenance.facts import (
    MAX_COMMITS,
    AuthorKind,
    CommitFacts,
    Hint,
    Part,
    Provenance,
    Reason,
    Source,
)
from graft.provenance.table import Role, Row
from graft.provenance.tasks import Task

MESSAGES_LIMIT = 1 << 20  # characters of all messages together: what is read takes a second at the very most
MOST_HINTS = 50
MOST_VALUES = 20  # agents, models or tasks of a change


def resolve(
    commits: Sequence[Commit],
    *,
    author: Person | None = None,
    truncated: bool = False,
    branch: str | None = None,
    body: str | None = None,
) -> Provenance:
    """Who wrote these commits, and how that is known.

    `author` is the account that opened the pull request, `branch` its head branch and `body` its description,
    each where there is one. `truncated` says that there are more commits than were given. Never raises.
    """
    facts = _read(commits[:MAX_COMMITS])
    opened_by = signatures.of_author(author) if author is not None and author.is_bot else None
    around = [
        *_hints("branch", signatures.in_branch(branch or "")),
        *_hints("description", _description(body)),
    ]
    if opened_by is not None and not opened_by.row.strong:
        around.append(Hint(kind="second_hand", agent=opened_by.row.agent))
    opener = (
        opened_by.row if opened_by and opened_by.row.strong and opened_by.row.role is Role.AUTHOR else None
    )

    kind, source, reason, deciding = _decide(commits, facts, truncated=truncated, opener=opener)
    of_agents = [f for f in deciding if f.part is Part.AGENT]
    agents: Iterable[str] = (a for f in of_agents for a in f.agents)
    if reason is Reason.OPENED_BY_AGENT and opener is not None:
        agents = [opener.agent]
    known = tuple(dict.fromkeys(agents))[:MOST_VALUES]
    hints = [*around, *(h for f in facts for h in f.hints)]
    tasks: dict[Task, None] = dict.fromkeys(t for f in facts for t in f.tasks)
    return Provenance(
        author_kind=kind,
        source=source,
        reason=reason,
        explanation=explain(reason, facts, deciding),
        agents=known,
        models=tuple(dict.fromkeys(m for f in of_agents for m in f.models))[:MOST_VALUES],
        tasks=tuple(tasks)[:MOST_VALUES],
        decided_by=tuple(f.sha for f in deciding),
        commits=facts,
        hints=tuple(dict.fromkeys(hints))[:MOST_HINTS],
    )


def _read(commits: Sequence[Commit]) -> tuple[CommitFacts, ...]:
    facts: list[CommitFacts] = []
    left = MESSAGES_LIMIT
    for commit in commits:
        left -= len(commit.message)
        facts.append(reading.read(commit) if left >= 0 else CommitFacts(sha=commit.sha, part=Part.UNREAD))
    return tuple(facts)


_Decision = tuple[AuthorKind, Source, Reason, list[CommitFacts]]


def _decide(
    commits: Sequence[Commit], facts: Sequence[CommitFacts], *, truncated: bool, opener: Row | None
) -> _Decision:
    def unknown(reason: Reason, deciding: list[CommitFacts]) -> _Decision:
        return AuthorKind.UNKNOWN, Source.NONE, reason, deciding

    parts = {part: [f for f in facts if f.part is part] for part in Part}
    if len(commits) > MAX_COMMITS:
        return unknown(Reason.TOO_MANY_COMMITS, [])
    if truncated:
        return unknown(Reason.COMMITS_TRUNCATED, [])
    if not commits:
        return unknown(Reason.NO_COMMITS, [])
    if parts[Part.UNREAD]:
        return unknown(Reason.MESSAGE_TOO_LONG, parts[Part.UNREAD])

    by_agent, by_human = parts[Part.AGENT], parts[Part.HUMAN]
    if by_agent:
        declared = any(f.source is Source.DECLARED for f in by_agent)
        source = Source.DECLARED if declared else Source.DETECTED
        if by_human:
            deciding = [f for f in facts if f.part in (Part.AGENT, Part.HUMAN)]
            return AuthorKind.MIXED, source, Reason.AGENT_AND_HUMAN, deciding
        return AuthorKind.AGENT, source, Reason.DECLARED if declared else Reason.DETECTED, by_agent
    if opener is not None:
        return AuthorKind.AGENT, Source.DETECTED, Reason.OPENED_BY_AGENT, []
    if parts[Part.BOT]:
        return unknown(Reason.UNKNOWN_BOT, parts[Part.BOT])
    if by_human:
        return AuthorKind.HUMAN, Source.NONE, Reason.NO_SIGNATURE, by_human
    if parts[Part.AUTOMATION]:
        return AuthorKind.AUTOMATION, Source.DETECTED, Reason.ONLY_AUTOMATION, parts[Part.AUTOMATION]
    return _of_neutral_commits(commits, facts)


def _of_neutral_commits(commits: Sequence[Commit], facts: Sequence[CommitFacts]) -> _Decision:
    """Only merges and accepted suggestions: whoever made them is the author."""
    people = [f for c, f in zip(commits, facts, strict=True) if not signatures.is_bot(c.author)]
    if people:
        return AuthorKind.HUMAN, Source.NONE, Reason.NO_SIGNATURE, people
    known = [f for c, f in zip(commits, facts, strict=True) if _is_robot(c.author)]
    if len(known) == len(facts):
        return AuthorKind.AUTOMATION, Source.DETECTED, Reason.ONLY_AUTOMATION, known
    return AuthorKind.UNKNOWN, Source.NONE, Reason.UNKNOWN_BOT, [f for f in facts if f not in known]


def _is_robot(person: Person) -> bool:
    found = signatures.of_author(person)
    return found is not None and found.row.role is not Role.AUTHOR


def _description(body: str | None) -> Iterable[Row]:
    return signatures.in_description(body or "")


def _hints(kind: str, rows: Iterable[Row]) -> list[Hint]:
    return [Hint(kind=kind, agent=row.agent) for row in rows]
