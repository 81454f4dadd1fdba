"""From a change to its card: the rules first, then a writer, then a verifier that does not trust the writer.

    fast model if the floor is trivial, else the strong one   -> card
    the fast one says more than trivial: the strong one writes again, both classes count
    strong model, shown diff, file list and card only         -> a verdict for every claim

Whatever happens to a call becomes part of the card. Cancelling the task abandons the call under way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from graft.changes import ChangedFile, Snapshot
from graft.globs import Glob
from graft.intent import prompts
from graft.intent.answers import Touch, VerifierAnswer, WriterAnswer, verifier_reader, writer_reader
from graft.intent.card import Card, OutOfScope, Pointer, Statement, Status, VerifierStatus, final_risk
from graft.intent.excerpt import DIFF_TOKENS, Excerpt, cut_to, fit
from graft.intent.fingerprint import diff_fingerprint, keyed_hash
from graft.intent.floor import assess, file_risk
from graft.intent.injection import Suspicion, suspect
from graft.llm import Asked, LlmClient, LlmRequest, Outcome, SpendGate, Turn, Unmetered, Usage, ask
from graft.risk import Risk

__all__ = [
    "CardInputs",
    "Clause",
    "LinkedIssue",
    "Models",
    "card_without_model",
    "carry_over",
    "input_hash",
    "write_card",
]

# Both models think before they answer, and thinking counts as output.
_MAX_TOKENS = 16_000
_TIMEOUT = 240.0


class LinkedIssue(msgspec.Struct, frozen=True, kw_only=True):
    """The issue that the pull request is about; text from outside."""

    number: int
    title: str = ""
    body: str = ""

    def __repr__(self) -> str:
        return f"LinkedIssue(number={self.number})"


class Clause(msgspec.Struct, frozen=True, kw_only=True):
    """A clause of an approved intent record: what somebody wants, in their words. `change` says what the pull
    request does to its wording (`edited`, `added`, `removed`); empty where it stands."""

    record: str
    clause: str
    text: str
    change: str = ""

    @property
    def name(self) -> str:
        return f"{self.record} {self.clause}"

    def __repr__(self) -> str:
        return f"Clause({self.name!r})"


class Models(msgspec.Struct, frozen=True, kw_only=True):
    """Model ids. `count_tokens` asks the service for the size of a diff instead of estimating it."""

    fast: str
    strong: str
    count_tokens: bool = False


class CardInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a card is made from. `hash_key` keeps stored hashes of the texts from being tried out.

    `clauses` are approved intent that the writer may point to, the ones that the change edits first; `records` the
    changed paths of approved intent and its evidence.
    """

    snapshot: Snapshot
    title: str = ""
    body: str = ""
    issue: LinkedIssue | None = None
    sensitive: tuple[Glob, ...] = ()
    clauses: tuple[Clause, ...] = ()
    records: tuple[str, ...] = ()
    hash_key: bytes = b""

    def __repr__(self) -> str:
        return f"CardInputs(head_sha={self.snapshot.head_sha!r}, files={len(self.snapshot.files)})"


def input_hash(inputs: CardInputs, models: Models | None) -> str:
    """Changes with anything that the writer reads besides the diff: texts, issue, clauses, models, prompt version."""
    issue = inputs.issue
    return keyed_hash(
        inputs.hash_key,
        (
            prompts.PROMPT_VERSION,
            models.fast if models else None,
            models.strong if models else None,
            inputs.title,
            inputs.body,
            str(issue.number) if issue else None,
            issue.title if issue else None,
            issue.body if issue else None,
            *(part for clause in inputs.clauses for part in (clause.name, clause.change, clause.text)),
        ),
    )


def card_without_model(inputs: CardInputs, *, reason: str | None = None) -> Card:
    """What the rules alone say, at once and without I/O: the floor and what could not be read.

    `reason` is why there is no more than that. An empty change gets the card of one.
    """
    excerpt = cut_to(inputs.snapshot.files, risk_of=_risk_of(inputs), room=DIFF_TOKENS * 5 // 2)
    return _finished(_start(inputs, excerpt, None), reason=reason)


async def write_card(
    inputs: CardInputs, llm: LlmClient, models: Models, *, gate: SpendGate | None = None
) -> Card:
    """The card of one head. Asks no model about an empty change. Raises only on a programming error."""
    if inputs.snapshot.is_empty:
        return card_without_model(inputs)

    async def count(text: str) -> int | None:
        return await llm.count_tokens(models.strong, text)

    excerpt = await fit(
        inputs.snapshot.files, risk_of=_risk_of(inputs), count=count if models.count_tokens else None
    )
    card = _start(inputs, excerpt, models)
    asking = _Asking(inputs, excerpt, llm, gate or Unmetered())
    if card.floor.risk is Risk.TRIVIAL:
        first = await asking.write("writer", models.fast)
        card = _counted(card, first)
        if first.value is None or first.value.risk is Risk.TRIVIAL:
            return await _checked(_written(card, first), asking, models)
        card = replace(card, risk_first_pass=first.value.risk)
    written = await asking.write("writer", models.strong)
    return await _checked(_written(_counted(card, written), written), asking, models)


def carry_over(card: Card, inputs: CardInputs, models: Models) -> Card:
    """The card of another head, or of the same head before its texts were edited, for these inputs.

    What the models said stays; floor, omissions and suspicions are found anew, and a suspicion under which the card
    was written is not forgotten. Only right for a card whose writer would read the same (`input_hash`,
    `diff_fingerprint`), or to keep a card truthful for which no new call may be made.
    """
    excerpt = cut_to(inputs.snapshot.files, risk_of=_risk_of(inputs), room=DIFF_TOKENS * 5 // 2)
    fresh = _start(inputs, excerpt, models, known=card.suspicions)
    clauses = {(clause.record, clause.clause) for clause in inputs.clauses}
    return _finished(
        replace(
            card,
            base_sha=fresh.base_sha,
            head_sha=fresh.head_sha,
            touches=tuple(touch for touch in card.touches if (touch.record, touch.clause) in clauses),
            floor=fresh.floor,
            suspicions=fresh.suspicions,
            omissions=fresh.omissions,
            incomplete=fresh.incomplete,
            input_hash=fresh.input_hash,
            diff_fingerprint=fresh.diff_fingerprint,
            usage=Usage(),
            llm_calls=0,
        )
    )


class _Asking:
    """The two questions about one change."""

    def __init__(self, inputs: CardInputs, excerpt: Excerpt, llm: LlmClient, gate: SpendGate) -> None:
        self._inputs = inputs
        self._excerpt = excerpt
        self._llm = llm
        self._gate = gate
        self._paths = frozenset(path for file in inputs.snapshot.files for path in file.paths)

    async def write(self, purpose: str, model: str) -> Asked[WriterAnswer]:
        inputs = self._inputs
        prompt = prompts.writer_prompt(
            title=inputs.title,
            body=inputs.body,
            issue=(inputs.issue.title, inputs.issue.body) if inputs.issue else None,
            files=inputs.snapshot.files,
            excerpt=self._excerpt,
            incomplete=inputs.snapshot.incomplete,
            clauses=[
                (clause.name, f"({clause.change} here) {clause.text}" if clause.change else clause.text)
                for clause in inputs.clauses
            ],
        )
        request = _request(purpose, model, prompts.WRITER_SYSTEM, prompt, prompts.WRITER_SCHEMA)
        read = writer_reader(self._paths, {clause.name for clause in inputs.clauses})
        return await ask(self._llm, request, read=read, gate=self._gate)

    async def verify(self, model: str, claims: Sequence[tuple[str, str]]) -> Asked[VerifierAnswer]:
        prompt = prompts.verifier_prompt(
            claims=claims,
            files=self._inputs.snapshot.files,
            excerpt=self._excerpt,
            incomplete=self._inputs.snapshot.incomplete,
        )
        request = _request("verifier", model, prompts.VERIFIER_SYSTEM, prompt, prompts.VERIFIER_SCHEMA)
        read = verifier_reader(self._paths, [claim_id for claim_id, _ in claims])
        return await ask(self._llm, request, read=read, gate=self._gate)


def _request(purpose: str, model: str, system: str, prompt: str, schema: dict[str, Any]) -> LlmRequest:
    return LlmRequest(
        purpose=purpose,
        model=model,
        system=system,
        turns=(Turn("user", prompt),),
        schema=schema,
        max_tokens=_MAX_TOKENS,
        timeout=_TIMEOUT,
    )


def _risk_of(inputs: CardInputs) -> Callable[[ChangedFile], Risk]:
    """The class of a file, which puts the weightiest part of a diff first."""
    records = frozenset(inputs.records)

    def risk(file: ChangedFile) -> Risk:
        if not records.isdisjoint(file.paths):
            return Risk.SENSITIVE
        return file_risk(file, sensitive=inputs.sensitive)

    return risk


def _start(
    inputs: CardInputs, excerpt: Excerpt, models: Models | None, *, known: Sequence[Suspicion] = ()
) -> Card:
    """The card before any model has said anything."""
    snapshot = inputs.snapshot
    issue = inputs.issue
    suspicions = suspect(
        title=inputs.title,
        body=inputs.body,
        issue=f"{issue.title}\n\n{issue.body}" if issue else None,
        snapshot=snapshot,
    )
    suspicions = tuple(dict.fromkeys((*suspicions, *known)))
    floor = assess(
        snapshot,
        sensitive=inputs.sensitive,
        omissions=[(omission.path, omission.why) for omission in excerpt.omissions],
        injection=dict.fromkeys(suspicion.marker for suspicion in suspicions),
        records=inputs.records,
    )
    return Card(
        status=Status.EMPTY if snapshot.is_empty else Status.UNAVAILABLE,
        base_sha=snapshot.base_sha,
        head_sha=snapshot.head_sha,
        risk=floor.risk,
        floor=floor,
        suspicions=suspicions,
        omissions=excerpt.omissions,
        incomplete=snapshot.incomplete,
        prompt_version=prompts.PROMPT_VERSION,
        input_hash=input_hash(inputs, models),
        diff_fingerprint=diff_fingerprint(snapshot),
    )


def _counted(card: Card, asked: Asked[Any]) -> Card:
    return replace(card, usage=card.usage + asked.usage, llm_calls=card.llm_calls + asked.calls)


def _written(card: Card, asked: Asked[WriterAnswer]) -> Card:
    """The card with what the writer said, or with why it said nothing."""
    answer = asked.value
    if answer is None:
        return _failed(card, asked)
    return replace(
        card,
        status=Status.UNVERIFIED,
        goal=Statement(text=answer.goal),
        changes=tuple(Statement(text=text) for text in answer.behavior_changes),
        out_of_scope=tuple(
            OutOfScope(path=item.path, why=Statement(text=item.reason), by="writer")
            for item in answer.out_of_scope
        ),
        risk_writer=answer.risk,
        risk_reason_writer=answer.risk_reason,
        touches=tuple(_pointer(touch) for touch in answer.touches),
        dropped_paths=answer.dropped_paths,
        writer_model=asked.model,
    )


def _pointer(touch: Touch) -> Pointer:
    record, _, clause = touch.clause.partition(" ")
    return Pointer(change=touch.change, record=record, clause=clause)


async def _checked(card: Card, asking: _Asking, models: Models) -> Card:
    """The card with the verifier's verdicts, or with why there are none."""
    if card.status is not Status.UNVERIFIED:
        return _finished(card)
    asked = await asking.verify(models.strong, _claims(card))
    card = _counted(card, asked)
    answer = asked.value
    if answer is None:
        return _finished(replace(_failed(card, asked), verifier=VerifierStatus.FAILED))
    verdicts = {finding.id: finding for finding in answer.claims}

    def judged(claim_id: str, statement: Statement) -> Statement:
        finding = verdicts[claim_id]
        return replace(statement, verdict=finding.verdict, reason=finding.reason)

    named = {item.path for item in card.out_of_scope}
    assert card.goal is not None
    card = replace(
        card,
        status=Status.READY,
        goal=judged("goal", card.goal),
        changes=tuple(judged(f"change-{n}", change) for n, change in enumerate(card.changes, 1)),
        out_of_scope=(
            *(replace(i, why=judged(f"scope-{n}", i.why)) for n, i in enumerate(card.out_of_scope, 1)),
            *(
                OutOfScope(path=item.path, why=Statement(text=item.reason), by="verifier")
                for item in answer.out_of_scope
                if item.path not in named
            ),
        ),
        missed=answer.missed_changes,
        risk_verifier=answer.risk,
        risk_reason_verifier=answer.risk_reason,
        dropped_paths=card.dropped_paths + answer.dropped_paths,
        verifier_model=asked.model,
    )
    agrees = not card.doubts and not card.missed
    return _finished(replace(card, verifier=VerifierStatus.AGREES if agrees else VerifierStatus.DISAGREES))


def _claims(card: Card) -> list[tuple[str, str]]:
    assert card.goal is not None
    return [
        ("goal", card.goal.text),
        *((f"change-{n}", change.text) for n, change in enumerate(card.changes, 1)),
        *(
            (f"scope-{n}", f"The goal does not explain the change of {item.path}. {item.why.text}")
            for n, item in enumerate(card.out_of_scope, 1)
        ),
    ]


def _failed(card: Card, asked: Asked[Any]) -> Card:
    return replace(
        card,
        reason="no_model" if asked.outcome is Outcome.NO_KEY else str(asked.outcome),
        is_temporary=asked.outcome.is_temporary,
        retry_after=asked.retry_after,
    )


def _finished(card: Card, *, reason: str | None = None) -> Card:
    return replace(
        card,
        reason=card.reason if reason is None or card.status is Status.EMPTY else reason,
        risk=final_risk(
            status=card.status,
            floor=card.floor.risk,
            writer=card.risk_writer,
            first_pass=card.risk_first_pass,
            verifier=card.risk_verifier,
            verifier_status=card.verifier,
            injection=bool(card.suspicions),
        ),
    )
