"""One text in every place of a change that takes text from outside, through the code that production uses.

Title, description, issue, branch, labels, paths, commit messages, trailers and names are read as GitHub's; the model
answers with the text wherever its schema has room for one; policy and records hold it too. What comes back is what
Graft would post: the whole comment and the check runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from graft import intent, policy, provenance, records
from graft.changes import ChangedFile, Commit, Person, Snapshot
from graft.github import comment_body
from graft.intent import CardInputs, Clause, LinkedIssue, Models, Omission, Pointer, Statement, VerifierStatus
from graft.llm import LlmRequest
from graft.risk import Risk
from graft.testing import FakeModel

BASE, HEAD = "b" * 40, "a" * 40
FOOTER = "Graft reports. It never blocks and never approves."
MODELS = Models(fast="fast", strong="strong")


class Posted(Struct, frozen=True, kw_only=True):
    """What would be posted: the comment's body, and title and summary of each check run."""

    card: intent.Card
    comment: str
    checks: Mapping[str, tuple[str, str]]

    @property
    def documents(self) -> Mapping[str, str]:
        """Every markdown document, by its place."""
        return {"comment": self.comment, **{name: summary for name, (_, summary) in self.checks.items()}}


def snapshot_with(text: str) -> Snapshot:
    """A change whose paths, patch, commit messages and people all hold the text."""
    person = Person(name=text, email=text, login=text)
    commits = (
        Commit(sha="1" * 40, message=f"{text}\n\nGraft-Agent: claude\nGraft-Model: {_line(text)}\n"
               f"Graft-Task: {_line(text)}\nGraft-Session: {_line(text)}", author=person, committer=person),
        Commit(sha="2" * 40, message=f"Change\n\nGraft-Agent: {text}\n\nGraft-Model: {text}\n\nand {text}",
               author=person, committer=person),
        Commit(sha="3" * 40, message=text, author=person, committer=person),
    )  # fmt: skip
    patch = "\n".join(["@@ -1 +1,9 @@", "-old", *(f"+{line}" for line in text.split("\n")[:8])])
    files = (
        ChangedFile(path=text, status="modified", additions=1, patch=patch),
        ChangedFile(path=f"migrations/{text}", previous_path=f"old/{text}", status="renamed", patch=patch),
        ChangedFile(path=f".github/workflows/{text}", status=text, binary=True),
        ChangedFile(path=f"graft.yaml/{text}", status="removed", deletions=3),
    )
    return Snapshot(
        base_sha=BASE, head_sha=HEAD, files=files, commits=commits, incomplete=("count_mismatch", text)
    )


async def post(text: str, *, obeys: str = "sensitive") -> Posted:
    """Everything that Graft would post about a change that holds the text everywhere."""
    snapshot = snapshot_with(text)
    inputs = CardInputs(
        snapshot=snapshot,
        title=text,
        body=text,
        issue=LinkedIssue(number=12, title=text, body=text),
        clauses=(
            Clause(record=text, clause="R1", text=text),
            Clause(record="0001-x", clause=text, text=text),
        ),
        records=(text,),
        hash_key=b"k",
    )
    card = await intent.write_card(inputs, repeating_model(text, snapshot, risk=obeys), MODELS)
    card = _filled(card, text)
    decision = policy.decide(policy.of_bytes(graft_yaml(text), "graft.yaml"), _facts(text, snapshot, card))
    refused = policy.decide(policy.of_bytes(f"{text}: [".encode(errors="replace"), "graft.yaml"),
                            _facts(text, snapshot, card))  # fmt: skip
    who = provenance.resolve(snapshot.commits, author=snapshot.commits[0].author, branch=text, body=text)
    review = records_with(text)
    comment = comment_body.compose(
        None,
        {
            "intent": intent.render_section(card, pending=True, older=card),
            "provenance": provenance.render_section(who),
            "policy": policy.render_section(decision),
            "records": records.render_section(review),
        },
        footer=FOOTER,
    )
    checks = {
        "graft/intent": intent.check_output(card),
        "graft/intent without a card": intent.check_output(intent.card_without_model(inputs, reason=text)),
        "graft/provenance": provenance.check_output(who),
        "graft/policy": policy.check_output(decision),
        "graft/policy, file not valid": policy.check_output(refused),
        "graft/records": records.check_output(review),
    }
    return Posted(card=card, comment=comment, checks=checks)


def repeating_model(text: str, snapshot: Snapshot, *, risk: str) -> FakeModel:
    """A model that says the text wherever it may say anything, and the risk that it was told to say."""
    scope = [{"path": path, "reason": text} for file in snapshot.files for path in file.paths]
    writer = {
        "goal": text,
        "behavior_changes": [text, f"Then {text}", f"({text})"],
        "out_of_scope": scope,
        "touches": [{"change": 1, "clause": f"{text} R1"}, {"change": 2, "clause": f"0001-x {text}"}],
        "risk": risk,
        "risk_reason": text,
    }

    def verifies(request: LlmRequest) -> dict[str, Any]:
        named = "".join(turn.text for turn in request.turns).split("The ids are: ", 1)[1].split(".", 1)[0]
        claims = [{"id": one, "verdict": "supported", "reason": text} for one in named.split(", ")]
        return {
            "claims": claims,
            "missed_changes": [] if risk == "trivial" else [text],
            "out_of_scope": [] if risk == "trivial" else scope,
            "risk": risk,
            "risk_reason": text,
        }

    return FakeModel().says("writer", writer).says("writer_repair", writer).answers("verifier", verifies)


def _filled(card: intent.Card, text: str) -> intent.Card:
    """The card with the text also where no model and no change could have put it: defence in depth."""
    if card.goal is None:
        # A text that cleans to nothing is no goal, and there is no card.
        return card
    doubted = Statement(text=text, verdict=intent.Verdict.CONTRADICTED, reason=text)
    return msgspec.structs.replace(
        card,
        goal=doubted,
        changes=(doubted, *card.changes),
        missed=(text, *card.missed),
        verifier=VerifierStatus.DISAGREES,
        touches=(*card.touches, Pointer(change=1, record=text, clause=text)),
        omissions=(*card.omissions, Omission(path=text, why=text)),
        incomplete=(*card.incomplete, text),
        writer_model=text,
        verifier_model=text,
        prompt_version=text,
        reason=text,
        risk_reason_writer=text,
        risk_reason_verifier=text,
    )


def graft_yaml(text: str) -> bytes:
    """A policy that holds the text wherever the format takes one; text that it refuses makes it invalid."""
    name = " ".join(text.split())[:70] or "rule"
    quoted, line = json.dumps(text[:400]), json.dumps(name)
    glob = json.dumps("".join(char for char in name if char not in "[]{}!\\")[:200] or "x")
    return "\n".join(
        [
            "version: 1",
            "rules:",
            f"  - name: {json.dumps(f'first {name}'[:78])}",
            f"    when: {{labels: {{none: [{line}]}}}}",
            "    then: block",
            f"  - name: {json.dumps(f'second {name}'[:78])}",
            f"    when: {{paths: {{only: [{glob}]}}}}",
            "    then: approve",
            f"  - name: {json.dumps(f'third {name}'[:78])}",
            f"    when: {{models: {{none: [{glob}]}}, labels: {{any: [{line}]}}}}",
            f"    then: {{review: {{teams: [octo/reviewers], users: [octocat], message: {quoted}}}}}",
            f"default: {{review: {{message: {quoted}}}}}",
        ]
    ).encode(errors="surrogatepass")


def _facts(text: str, snapshot: Snapshot, card: intent.Card) -> policy.Facts:
    return policy.Facts(
        files=snapshot.files,
        author_kind="agent",
        source="declared",
        agents=(text,),
        models=(text,),
        risk=card.risk,
        card=policy.Card.UNVERIFIED,
        injection_suspected=bool(card.suspicions),
        labels=(" ".join(text.split())[:70], text),
        base_ref=text,
        incomplete=(text,),
    )


def records_with(text: str) -> records.RecordsReview:
    """A review of records that quotes the text everywhere."""
    return records.RecordsReview(
        status="stale",
        approved=(text,),
        clauses=(records.TouchedClause(text, text, "edited", text, text),),
        laws=(records.TouchedLaw(text, "edited"),),
        stale=(records.Stale("receipt", text, text),),
        problems=(text, f".intent/records/{text}: {text}"),
        protected=(text,),
        truncated=(text,),
    )


def floor_of(text: str) -> Risk:
    """The floor of the change that `post` writes about."""
    return intent.assess(snapshot_with(text)).risk


def _line(text: str) -> str:
    return " ".join(text.split())
