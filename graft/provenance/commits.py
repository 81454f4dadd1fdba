"""Reads one commit: what its trailers declare, whose signature it carries, and what is only a hint."""

from __future__ import annotations

import re

import msgspec

from graft.changes import Commit, Person
from graft.provenance import signatures, tasks, trailers
from graft.provenance.facts import CommitFacts, Hint, Part, Source
from graft.provenance.signatures import Match
from graft.provenance.table import Kind, Role, Row
from graft.provenance.trailers import Trailer
from graft.provenance.values import bounded

MESSAGE_LIMIT = 1 << 16  # characters; a longer message is not read, and that is said
MOST_TRAILERS = 50  # of one commit that are kept; all are read
MOST_HINTS = 10  # of one commit
MOST_VALUES = 10  # agents, models or tasks of one commit

_AGENT, _MODEL, _TASK, _SESSION = "Graft-Agent", "Graft-Model", "Graft-Task", "Graft-Session"
KEYS = (_AGENT, _MODEL, _TASK, _SESSION)

_SLUG = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_NO_AGENT = frozenset({"none", "no", "human", "n-a", "false"})
_GRAFT_LINE = re.compile(r"[ \t]*(Graft-(?:Agent|Model|Task|Session))[ \t]*[:=](.*)", re.IGNORECASE)

# The subjects git and GitHub give to a merge, and GitHub to an accepted suggestion.
_MERGE = re.compile(r"Merge (?:branch|branches|remote-tracking branch|tag|commit|pull request) ")
_SUGGESTION = re.compile(r"Apply suggestions? from |Apply suggested (?:fix|change)")
_GITHUB = "noreply@github.com"  # the committer of what is done on github.com


def read(commit: Commit) -> CommitFacts:
    """The facts of one commit. Any text is taken."""
    if len(commit.message) > MESSAGE_LIMIT:
        return CommitFacts(sha=commit.sha, part=Part.UNREAD)
    block = trailers.read(commit.message)
    matches = _matches(commit.author, block.trailers)
    declared = _values(block.trailers, _AGENT)
    agents = tuple(dict.fromkeys(slug for value in declared if (slug := agent_slug(value))))[:MOST_VALUES]
    signed = [(trailer, m) for trailer, m in matches if m.row.strong and m.row.role is Role.AUTHOR]
    hints = [*_misplaced(commit.sha, block), *_weak(commit, matches)]
    facts = CommitFacts(
        sha=commit.sha,
        part=Part.AGENT,
        models=_unique(_values(block.trailers, _MODEL)),
        tasks=tuple(dict.fromkeys(t for v in _values(block.trailers, _TASK) if (t := tasks.parse(v))))[
            :MOST_VALUES
        ],
        session=next(iter(_unique(_values(block.trailers, _SESSION))), None),
        trailers=tuple(
            Trailer(key=bounded(t.key, 80), value=bounded(t.value)) for t in block.trailers[:MOST_TRAILERS]
        ),
    )
    if agents:
        others = dict.fromkeys(m.row.agent for _, m in signed if m.row.agent not in agents)
        hints += [Hint(kind="outvoted", agent=agent, commit=commit.sha) for agent in others]
        found = msgspec.structs.replace(facts, agents=agents, source=Source.DECLARED, rule=_AGENT)
    elif any(t.is_named(key) for t in block.trailers for key in (_AGENT, _MODEL, _SESSION)):
        hints.append(Hint(kind="unusable_trailer", commit=commit.sha, key=_AGENT))
        found = _undeclared(commit, facts, block.trailers, matches, signed)
    else:
        found = _undeclared(commit, facts, block.trailers, matches, signed)
    return msgspec.structs.replace(found, hints=tuple(dict.fromkeys(hints))[:MOST_HINTS])


def agent_slug(value: str) -> str | None:
    """The short name an agent goes by (`Claude Code` is `claude-code`), `None` where the value names none."""
    slug = "-".join(value.lower().split())
    return slug if _SLUG.fullmatch(slug) and slug not in _NO_AGENT else None


def _undeclared(
    commit: Commit,
    facts: CommitFacts,
    block: tuple[Trailer, ...],
    matches: list[tuple[Trailer | None, Match]],
    signed: list[tuple[Trailer | None, Match]],
) -> CommitFacts:
    replace = msgspec.structs.replace
    merge = len(commit.parents) > 1
    if merge and (not signed or _MERGE.match(commit.message)):
        return replace(facts, part=Part.MERGE)
    if signed and _is_accepted_suggestion(commit, signed):
        return replace(facts, part=Part.SUGGESTION)
    if signed:
        return replace(
            facts,
            agents=tuple(dict.fromkeys(m.row.agent for _, m in signed)),
            models=facts.models or _unique([m.model for _, m in signed if m.model]),
            session=facts.session or next((bounded(s) for t in block if (s := signatures.session(t))), None),
            source=Source.DETECTED,
            rule=signed[0][1].row.code,
        )
    author = next((m for trailer, m in matches if trailer is None and m.row.strong), None)
    if author is not None and author.row.role is Role.AUTOMATION:
        return replace(facts, part=Part.AUTOMATION, source=Source.DETECTED, rule=author.row.code)
    if any(m.row.role is Role.REVIEWER for _, m in matches):
        return replace(facts, part=Part.SUGGESTION)
    if signatures.is_bot(commit.author):
        return replace(facts, part=Part.BOT)
    return replace(facts, part=Part.HUMAN)


def _matches(author: Person, block: tuple[Trailer, ...]) -> list[tuple[Trailer | None, Match]]:
    """Every row that author and trailers bear out; the author's first, with no trailer."""
    found: list[tuple[Trailer | None, Match]] = []
    if by_author := signatures.of_author(author):
        found.append((None, by_author))
    found += [(trailer, m) for trailer in block if (m := signatures.of_trailer(trailer))]
    return found


def _is_accepted_suggestion(commit: Commit, signed: list[tuple[Trailer | None, Match]]) -> bool:
    """Somebody pressed "Commit suggestion" on an agent's review: GitHub then names the agent as co-author."""
    return (
        commit.committer.email.lower() == _GITHUB
        and _SUGGESTION.match(commit.message) is not None
        and all(trailer is not None and signatures.is_identity(trailer) for trailer, _ in signed)
    )


def _misplaced(sha: str, block: trailers.Block) -> list[Hint]:
    hints: list[Hint] = []
    for number, line in enumerate(block.lines):
        if block.start <= number < block.end or len(hints) == MOST_HINTS:
            continue
        if found := _GRAFT_LINE.match(line[:400]):
            key = next(k for k in KEYS if k.lower() == found[1].lower())
            agent = agent_slug(bounded(found[2])) if key == _AGENT else None
            hints.append(Hint(kind="misplaced_trailer", agent=agent, commit=sha, key=key, line=number + 1))
    return hints


def _weak(commit: Commit, matches: list[tuple[Trailer | None, Match]]) -> list[Hint]:
    def hint(kind: str, row: Row) -> Hint:
        return Hint(kind=kind, agent=row.agent, commit=commit.sha)

    hints = [hint("second_hand", m.row) for _, m in matches if not m.row.strong]
    hints += [hint("message", row) for row in signatures.in_message(commit.message)]
    committer = signatures.of_author(commit.committer)
    # Aider commits what a person left uncommitted under its own name as committer: that is no sign of anything.
    if committer and committer.row.role is Role.AUTHOR and committer.row.kind is not Kind.AUTHOR_NAME:
        hints.append(hint("committer", committer.row))
    strong = {m.row.agent for _, m in matches if m.row.strong}
    return [h for h in hints if h.agent not in strong]


def _values(block: tuple[Trailer, ...], key: str) -> list[str]:
    return [t.value for t in block if t.is_named(key) and t.value]


def _unique(values: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(bounded(v) for v in values))[:MOST_VALUES]
