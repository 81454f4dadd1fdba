"""The judge of a trial finds what is planted, and nothing where nothing is."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from proof.judge import CHECKS, SECTIONS, Check, Evidence, Fault, Seen, Sent, Stored, Vote, judge

HEAD, OLD = "a" * 40, "b" * 40


def comment(*, mark: str = "mark-p0h1", head: str = HEAD, without: str = "") -> str:
    blocks = [f"<!-- graft:section:{name}:start -->" for name in SECTIONS if name != without]
    return f"{' '.join(blocks)} Sets {mark} at {head[:7]}."


def checks(head: str = HEAD) -> tuple[Check, ...]:
    return tuple(
        Check(id=number, name=name, head_sha=head, status="completed")
        for number, name in enumerate(sorted(CHECKS), start=1)
    )


STORED = Stored(
    state="open",
    head_sha=HEAD,
    base_ref="main",
    comment_id=7,
    checks={check.name: check.id for check in checks()},
    goal="Sets mark-p0h1.",
    card_status="ready",
    outcome="review",
    verdict_base="main",
    provenance_head=HEAD,
)
PULL = Seen(
    name="octo/shop#1",
    open=True,
    head_sha=HEAD,
    base_ref="main",
    mark="mark-p0h1",
    held=False,
    comments={7: comment()},
    checks=checks(),
    stored=STORED,
)
GOOD = Evidence(
    sent=(Sent(guid="d1", event="pull_request.opened", accepted=True, ignored=False),),
    rows={"d1": "accepted", "p1": "dead"},
    poison=("p1",),
    pulls=(PULL,),
    pressed=(Vote(login="ann", verdict="wrong"),),
    votes=(Vote(login="ann", verdict="wrong"),),
    model_calls=2,
    ledger=3,
)


def pull(**fields: object) -> Evidence:
    return replace(GOOD, pulls=(replace(PULL, **fields),))


def stored(**fields: object) -> Evidence:
    return pull(stored=replace(STORED, **fields))


def test_a_good_end_is_no_fault() -> None:
    assert judge(GOOD) == []


def test_an_ignored_delivery_needs_no_row() -> None:
    ignored = Sent(guid="d2", event="check_suite.requested", accepted=True, ignored=True)
    assert judge(replace(GOOD, sent=(*GOOD.sent, ignored))) == []


def test_a_closed_pull_request_needs_nothing_of_its_last_head() -> None:
    closed = replace(STORED, state="closed", goal=None, card_status=None)
    assert judge(pull(open=False, comments={7: comment(head=OLD)}, checks=(), stored=closed)) == []


@pytest.mark.parametrize(
    ("evidence", "kind", "what"),
    [
        (replace(GOOD, rows={"p1": "dead"}), "lost", "no row"),
        (replace(GOOD, rows={"d1": "dead", "p1": "dead"}), "lost", "accepted: dead"),
        (replace(GOOD, rows={"d1": "accepted"}), "lost", "poison"),
        (replace(GOOD, sent=(replace(GOOD.sent[0], accepted=False),)), "left", "never accepted"),
        (replace(GOOD, ledger=1), "lost", "model calls"),
        (replace(GOOD, votes=()), "lost", "the vote of ann"),
        (replace(GOOD, votes=GOOD.votes * 2), "doubled", "the vote of ann"),
        (replace(GOOD, votes=(Vote(login="ann", verdict="accurate"),)), "wrong", "ann voted wrong"),
        (replace(GOOD, pressed=()), "wrong", "pressed nothing"),
        (replace(GOOD, work=("pull.1.1 intent",)), "left", "work pull.1.1"),
        (replace(GOOD, dead=("pull.1.1 intent",)), "left", "dead work"),
        (replace(GOOD, pending_votes=1), "left", "unconfirmed"),
        (replace(GOOD, in_stream=1), "left", "in the stream"),
        (pull(comments={7: comment(), 9: comment()}), "doubled", "2 comments"),
        (pull(comments={}), "lost", "no comment"),
        (pull(comments={7: comment(without="policy")}), "lost", "the section policy"),
        (pull(comments={7: comment(head=OLD)}), "wrong", "not of the last head"),
        (pull(comments={7: comment(mark="mark-p0h0")}), "wrong", "not of the last head"),
        (pull(comments={7: comment() + " It is in the making."}), "wrong", "in the making"),
        (pull(comments={8: comment()}), "wrong", "comment is 7, not 8"),
        (pull(checks=(*checks(), replace(checks()[0], id=9))), "doubled", "2 runs of"),
        (pull(checks=(*checks(), *checks(OLD), *checks(OLD))), "doubled", "at bbbbbbb"),
        (pull(checks=checks()[:2]), "lost", "the check"),
        (pull(checks=(replace(checks()[0], status="in_progress"), *checks()[1:])), "wrong", "in_progress"),
        (pull(stored=None), "lost", "no change"),
        (stored(state="closed"), "wrong", "stored as closed"),
        (stored(head_sha=OLD), "wrong", "head is"),
        (stored(base_ref="release"), "wrong", "base is"),
        (stored(verdict_base="release"), "wrong", "base of the verdict"),
        (stored(outcome="block"), "wrong", "verdict is"),
        (stored(goal="Sets mark-p0h0."), "wrong", "card's head"),
        (stored(card_status=None), "lost", "card is None"),
        (stored(provenance_head=OLD), "wrong", "provenance"),
        (stored(checks={}), "wrong", "check runs"),
    ],
)
def test_what_is_planted_is_found(evidence: Evidence, kind: str, what: str) -> None:
    found = judge(evidence)
    assert any(fault.kind == kind and what in fault.what for fault in found), found


def test_every_kind_of_fault_has_a_place_in_the_table() -> None:
    from proof.chaos import Tally, table

    tally = Tally(runs=1)
    tally.found.update(Fault(kind=kind, what="").kind for kind in ("lost", "doubled", "wrong", "left"))
    missed = [row for row in table(tally, seed=1).rows if row[3] == "missed"]
    assert [row[0] for row in missed] == ["lost", "duplicates", "wrong or stale", "left undone"]
