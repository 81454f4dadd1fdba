"""Was anything lost, doubled or left wrong? Judged from what GitHub shows and what the database holds, nothing else.

`judge` is pure: it takes what was seen after the dust has settled and says what is wrong with it, so that tests
can plant a fault and see it found. `lost`: something accepted has no outcome. `doubled`: something is there
twice. `wrong`: something stands that is not the last state. `left`: work that nobody will do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, Literal

import msgspec

CHECKS: Final = frozenset({"graft/intent", "graft/policy", "graft/provenance"})
SECTIONS: Final = ("intent", "provenance", "policy")
# Words of a comment that promises something still to come.
_PROMISES: Final = ("in the making", "comes with the card", "tries again at")

Kind = Literal["lost", "doubled", "wrong", "left"]


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that must not be."""

    kind: Kind
    what: str


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery, all its attempts together."""

    guid: str
    event: str
    accepted: bool
    ignored: bool


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A check run as GitHub shows it."""

    id: int
    name: str
    head_sha: str
    status: str


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """What the database holds of one pull request. `checks` are ids by name, of the last head; `goal` and
    `card_status` are those of the last head's newest card."""

    state: str
    head_sha: str
    base_ref: str
    comment_id: int | None
    checks: Mapping[str, int]
    goal: str | None
    card_status: str | None
    outcome: str | None
    verdict_base: str | None
    provenance_head: str | None


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A pull request as GitHub shows it, and what is stored of it. `mark` is what the last head adds; `comments`
    are ours, by id."""

    name: str
    open: bool
    head_sha: str
    base_ref: str
    mark: str
    held: bool
    comments: Mapping[int, str]
    checks: tuple[Check, ...]
    stored: Stored | None


class Vote(msgspec.Struct, frozen=True, kw_only=True):
    """A press of a button, or its row."""

    login: str
    verdict: str


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All of a trial. `rows` are the statuses of deliveries by id; `poison` the ids of what was put into the
    stream to be refused; `model_calls` were answered, `ledger` rows of spend or of a promise are stored."""

    sent: tuple[Sent, ...]
    rows: Mapping[str, str]
    poison: tuple[str, ...]
    pulls: tuple[Seen, ...]
    pressed: tuple[Vote, ...]
    votes: tuple[Vote, ...]
    model_calls: int
    ledger: int
    work: tuple[str, ...] = ()
    dead: tuple[str, ...] = ()
    pending_votes: int = 0
    in_stream: int = 0


def judge(evidence: Evidence) -> list[Fault]:
    """Everything that is wrong; empty where nothing is."""
    return [
        *_deliveries(evidence),
        *_votes(evidence),
        *_leftovers(evidence),
        *(fault for pull in evidence.pulls for fault in _pull(pull)),
    ]


def _deliveries(evidence: Evidence) -> Iterator[Fault]:
    for one in evidence.sent:
        if not one.accepted:
            yield Fault(kind="left", what=f"delivery {one.guid} ({one.event}) was never accepted")
        elif not one.ignored and evidence.rows.get(one.guid) != "accepted":
            found = evidence.rows.get(one.guid, "no row")
            yield Fault(kind="lost", what=f"delivery {one.guid} ({one.event}) was accepted: {found}")
    for guid in evidence.poison:
        if evidence.rows.get(guid) != "dead":
            found = evidence.rows.get(guid, "no row")
            yield Fault(kind="lost", what=f"poison {guid} has no outcome: {found}")
    if evidence.ledger < evidence.model_calls:
        yield Fault(
            kind="lost", what=f"{evidence.model_calls} model calls, {evidence.ledger} rows in the ledger"
        )


def _votes(evidence: Evidence) -> Iterator[Fault]:
    stored = Counter(vote.login for vote in evidence.votes)
    verdicts = {vote.login: vote.verdict for vote in evidence.votes}
    for press in evidence.pressed:
        if not stored[press.login]:
            yield Fault(kind="lost", what=f"the vote of {press.login}")
        elif stored[press.login] > 1:
            yield Fault(kind="doubled", what=f"the vote of {press.login}, {stored[press.login]} rows")
        elif verdicts[press.login] != press.verdict:
            yield Fault(kind="wrong", what=f"{press.login} voted {press.verdict}, stored is the opposite")
    for login in stored.keys() - {press.login for press in evidence.pressed}:
        yield Fault(kind="wrong", what=f"a vote of {login}, who pressed nothing")


def _leftovers(evidence: Evidence) -> Iterator[Fault]:
    yield from (Fault(kind="left", what=f"work {row}") for row in evidence.work)
    yield from (Fault(kind="left", what=f"dead work {row}") for row in evidence.dead)
    if evidence.pending_votes:
        yield Fault(kind="left", what=f"{evidence.pending_votes} votes unconfirmed")
    if evidence.in_stream:
        yield Fault(kind="left", what=f"{evidence.in_stream} triggers in the stream")


def _pull(seen: Seen) -> Iterator[Fault]:
    if len(seen.comments) > 1:
        yield Fault(kind="doubled", what=f"{seen.name}: {len(seen.comments)} comments")
    twice = Counter((check.head_sha, check.name) for check in seen.checks)
    for (head, name), count in twice.items():
        if count > 1:
            yield Fault(kind="doubled", what=f"{seen.name}: {count} runs of {name} at {head[:7]}")
    for body in seen.comments.values():
        for promise in _PROMISES:
            if promise in body:
                yield Fault(kind="wrong", what=f"{seen.name}: the comment still says “{promise}”")
    stored = seen.stored
    if stored is None:
        yield Fault(kind="lost", what=f"{seen.name}: no change is stored")
        return
    if stored.state != ("open" if seen.open else "closed"):
        yield Fault(kind="wrong", what=f"{seen.name}: stored as {stored.state}")
    if seen.open:
        yield from _shown(seen)
        yield from _kept(seen, stored)


def _shown(seen: Seen) -> Iterator[Fault]:
    """What GitHub has to show of an open pull request."""
    if not seen.comments:
        yield Fault(kind="lost", what=f"{seen.name}: no comment")
    for body in seen.comments.values():
        for section in SECTIONS:
            if f"<!-- graft:section:{section}:start -->" not in body:
                yield Fault(kind="lost", what=f"{seen.name}: the section {section}")
        if seen.head_sha[:7] not in body or seen.mark not in body:
            yield Fault(kind="wrong", what=f"{seen.name}: the comment is not of the last head {seen.mark}")
    at_head = {check.name: check for check in seen.checks if check.head_sha == seen.head_sha}
    for name in sorted(CHECKS - at_head.keys()):
        yield Fault(kind="lost", what=f"{seen.name}: the check {name} of the last head")
    for name in sorted(at_head.keys() - CHECKS):
        yield Fault(kind="wrong", what=f"{seen.name}: an unexpected check {name}")
    for check in at_head.values():
        if check.status != "completed":
            yield Fault(kind="wrong", what=f"{seen.name}: the check {check.name} is {check.status}")


def _kept(seen: Seen, stored: Stored) -> Iterator[Fault]:
    """What the database has to hold of an open pull request."""
    at_head = {check.name: check.id for check in seen.checks if check.head_sha == seen.head_sha}
    expected = {
        "head": (seen.head_sha, stored.head_sha),
        "base": (seen.base_ref, stored.base_ref),
        "comment": (next(iter(seen.comments), None), stored.comment_id),
        "check runs": (at_head, dict(stored.checks)),
        "card": ("ready", stored.card_status),
        "card's head": (True, seen.mark in (stored.goal or "")),
        "base of the verdict": (seen.base_ref, stored.verdict_base),
        "verdict": (seen.held, stored.outcome == "block"),
        "head of the provenance": (seen.head_sha, stored.provenance_head),
    }
    for name, (shown, held) in expected.items():
        if shown != held:
            kind: Kind = "lost" if held is None else "wrong"
            yield Fault(kind=kind, what=f"{seen.name}: {name} is {held}, not {shown}")
