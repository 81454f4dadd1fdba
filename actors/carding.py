"""Which card is shown for a head: the stored one, one carried over, one to be written, or the reason for none.

The model is asked only when nothing stored holds: not the card of this head, not one of an earlier head with
the same diff and the same inputs. Then the pushes have to settle first. What a card costs is reserved under the
repository's budget before each call; a card is stored as soon as it is written, before anything is published,
so that a crash in between costs no second call.

The floor is computed anew in every run, also for a stored card, so an edit of the description that addresses
AI reviewers raises the risk that is shown although no model is asked again.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import msgspec
from msgspec.structs import replace

from actors.reading import Reading
from actors.run import Run
from actors.services import Services
from actors.spending import Budget
from graft import intent
from graft.changes import Snapshot
from graft.database import Connection
from graft.github import GitHubRefused, issues
from graft.intent import Card, CardInputs, Clause, LinkedIssue, Models, Status, VerifierStatus
from graft.policy import Card as PolicyCard
from graft.policy import LoadedPolicy
from graft.provenance import Provenance
from graft.records import RecordsReview
from graft.store import cards, work
from graft.store.cards import CardRow

# A title or body can be edited for ever; a model is asked this often for one head.
CARDS_PER_HEAD = 4
# About 3,000 tokens in plain records, 5,000 at worst.
MOST_CLAUSES = 40
# Failures that may pass by themselves are tried again this often, after 30 s, 1, 2 and 4 minutes.
TRIES = 5
FIRST_RETRY_SECONDS = 30.0
LONGEST_RETRY_SECONDS = 900.0


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """What was found out about one head without a model. `rules` is the card that the rules alone give; `records`
    is there where base or head has intent records."""

    base_sha: str
    snapshot: Snapshot
    provenance: Provenance
    policy: LoadedPolicy
    inputs: CardInputs
    rules: Card
    records: RecordsReview | None


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What stands for the card now.

    `status` is what the comment shows: a card's own status, `making`, or `retrying`. `due_now` says that the
    model is to be asked in this run, `ask` that a run for it has to be asked for, and `retry_in` when the need
    for a card is due again (a failed try where there is a `failure`).
    """

    card: Card
    card_id: UUID | None
    status: str
    older: Card | None = None
    due_now: bool = False
    ask: bool = False
    retry_in: float | None = None
    failure: dict[str, Any] | None = None

    @property
    def is_final(self) -> bool:
        """Whether there is something for the policy to decide on: a card, or the reason why there is none."""
        return self.status != "making"

    @property
    def policy_card(self) -> PolicyCard:
        if self.card.status is Status.READY and self.card.verifier is VerifierStatus.AGREES:
            return PolicyCard.VERIFIED
        if self.card.status in (Status.READY, Status.UNVERIFIED):
            return PolicyCard.UNVERIFIED
        return PolicyCard.MISSING

    @property
    def retry_at(self) -> datetime | None:
        return None if self.retry_in is None else datetime.now(UTC) + timedelta(seconds=self.retry_in)


class Carding:
    """Finds, writes and stores cards."""

    def __init__(self, services: Services) -> None:
        self.services = services
        settings = services.settings
        self.models = (
            None
            if services.llm is None
            else Models(
                fast=settings.fast_model,
                strong=settings.strong_model,
                count_tokens=settings.diff_measure == "api",
            )
        )
        # Not worth a setting of its own: when the App's key changes, no card is carried over once.
        secret = settings.github_app_private_key.value.encode()
        self._hash_key = hashlib.blake2b(secret, digest_size=32, person=b"graft card input").digest()

    async def weigh(
        self,
        reading: Reading,
        base_sha: str,
        snapshot: Snapshot,
        provenance: Provenance,
        policy: LoadedPolicy,
        records: RecordsReview | None,
    ) -> Findings:
        """The rules' own card, and what a model would be given."""
        extra = policy.policy.sensitive_paths if policy.policy else ()
        inputs = CardInputs(
            snapshot=snapshot,
            title=reading.pull.title,
            body=reading.pull.body,
            issue=await self._issue(reading, provenance),
            sensitive=(*self.services.settings.sensitive_paths, *extra),
            clauses=_clauses(records),
            records=records.protected if records else (),
            hash_key=self._hash_key,
        )
        return Findings(
            base_sha=base_sha,
            snapshot=snapshot,
            provenance=provenance,
            policy=policy,
            inputs=inputs,
            rules=intent.card_without_model(inputs),
            records=records,
        )

    async def _issue(self, reading: Reading, provenance: Provenance) -> LinkedIssue | None:
        """The issue that the pull request is about: the first candidate that is one."""
        pull, full_name = reading.pull, reading.repository.full_name
        candidates = intent.issue_candidates(
            title=pull.title,
            body=pull.body,
            tasks=[task.text for task in provenance.tasks],
            repository=full_name,
            number=pull.number,
        )
        for number in candidates:
            try:
                found = await issues.read_issue(reading.client, full_name, number)
            except GitHubRefused:
                continue
            if not found.is_pull:
                return LinkedIssue(number=number, title=found.title, body=found.body)
        return None

    # --------------------------------------------------------------------------------------- finding

    async def find(self, run: Run, reading: Reading, findings: Findings, *, forced: bool) -> Shown:
        """What is to be shown before any model is asked."""
        rules, change_id = findings.rules, reading.change.id
        wanted = intent.input_hash(findings.inputs, self.models)
        if rules.status is Status.EMPTY or self.models is None:
            reason = None if rules.status is Status.EMPTY else "no_model"
            return await self._settled(run, reading, replace(rules, reason=reason, input_hash=wanted))
        async with self.services.pool.acquire() as connection:
            latest = await cards.latest(connection, change_id, rules.head_sha)
            if not forced and latest is not None:
                written = await cards.count_written(connection, change_id, rules.head_sha)
                if self._holds(run, latest, findings, wanted, written):
                    return await self._stored(connection, run, latest, findings)
            carried = None if forced else await self._carriable(connection, change_id, rules, wanted)
            previous = await cards.previous(connection, change_id, rules.head_sha)
        if carried is not None:
            return await self._carry(run, reading, carried, findings)
        older = None if previous is None else Card.from_stored(previous.card)
        return await self._making(run, rules, older, forced=forced)

    def _holds(self, run: Run, row: CardRow, findings: Findings, wanted: str, written: int) -> bool:
        """Whether the stored card of this head still says what a model would be asked now."""
        rules = findings.rules
        same_diff = row.base_sha == rules.base_sha or (
            row.diff_fingerprint is not None and row.diff_fingerprint == rules.diff_fingerprint
        )
        if not same_diff:
            return False
        if row.input_hash != wanted and (written < CARDS_PER_HEAD or row.status == "empty"):
            return False
        return not ("intent" in run.needs and self._may_pass(Card.from_stored(row.card)))

    @staticmethod
    def _may_pass(card: Card) -> bool:
        """Whether a failure on the card is expected to go away."""
        return card.is_temporary or card.reason == "budget"

    async def _stored(self, connection: Connection, run: Run, row: CardRow, findings: Findings) -> Shown:
        card = self._again(row, findings)
        shown = Shown(card=card, card_id=row.id, status=str(card.status))
        if self._may_pass(card):
            waiting = await work.waiting(connection, run.address, "intent")
            if waiting is not None and not waiting.dead:
                return replace(shown, status="retrying", retry_in=waiting.seconds)
        return shown

    async def _carriable(
        self, connection: Connection, change_id: UUID, rules: Card, wanted: str
    ) -> CardRow | None:
        if rules.diff_fingerprint is None:
            return None
        return await cards.find_carriable(
            connection,
            change_id,
            input_hash=wanted,
            diff_fingerprint=rules.diff_fingerprint,
            prompt_version=rules.prompt_version,
        )

    async def _carry(self, run: Run, reading: Reading, row: CardRow, findings: Findings) -> Shown:
        """A rebase with the same diff: the old card, with this head's SHAs and floor."""
        card = self._again(row, findings)
        card_id = await self._put(run, reading, card, carried_from=row.carried_from or row.id)
        return Shown(card=card, card_id=card_id, status=str(card.status))

    def _again(self, row: CardRow, findings: Findings) -> Card:
        """A stored card with the floor and the suspicions of now."""
        assert self.models is not None
        return intent.carry_over(Card.from_stored(row.card), findings.inputs, self.models)

    async def _making(self, run: Run, rules: Card, older: Card | None, *, forced: bool) -> Shown:
        """A card has to be written: now, or when the pushes have settled."""
        making = Shown(card=rules, card_id=None, status="making", older=older)
        row = run.rows.get("intent")
        if row is None:
            async with self.services.pool.acquire() as connection:
                waiting = await work.waiting(connection, run.address, "intent")
            if waiting is None:
                return replace(making, ask=True)
            if waiting.dead:
                return Shown(card=replace(rules, reason="gave_up"), card_id=None, status="unavailable")
            return making
        settings = self.services.settings
        wait = min(
            settings.settle_seconds - row.last_asked,
            settings.settle_cap_seconds - row.first_asked,
        )
        if forced or row.attempts or wait <= 0.05:
            return replace(making, due_now=True)
        return replace(making, retry_in=wait)

    async def _settled(self, run: Run, reading: Reading, card: Card) -> Shown:
        """A card that needs no model: stored once per head and kind."""
        async with self.services.pool.acquire() as connection:
            latest = await cards.latest(connection, reading.change.id, card.head_sha)
        same = latest is not None and (latest.status, latest.reason) == (str(card.status), card.reason)
        card_id = latest.id if same and latest else await self._put(run, reading, card)
        return Shown(card=card, card_id=card_id, status=str(card.status))

    # --------------------------------------------------------------------------------------- writing

    async def write(self, run: Run, reading: Reading, findings: Findings) -> Shown:
        """Ask the models and store what comes of it. Cancelling abandons the call under way."""
        assert self.models is not None
        assert self.services.llm is not None
        card = await intent.write_card(
            findings.inputs,
            self.services.llm,
            self.models,
            gate=Budget(
                pool=self.services.pool,
                repository_id=reading.repository.id,
                change_id=reading.change.id,
                daily_usd=self.services.settings.daily_budget_usd,
            ),
        )
        card_id = await self._put(run, reading, card)
        shown = Shown(card=card, card_id=card_id, status=str(card.status))
        tries = run.rows["intent"].attempts + 1
        if card.reason == "budget":
            return replace(shown, status="retrying", retry_in=_until_tomorrow(card_id))
        if not card.is_temporary or tries >= TRIES:
            return shown
        wait = min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** (tries - 1))
        if card.retry_after is not None:
            wait = min(LONGEST_RETRY_SECONDS, max(wait, card.retry_after))
        failure = {"error": "Model", "reason": card.reason}
        return replace(shown, status="retrying", retry_in=wait, failure=failure)

    async def _put(self, run: Run, reading: Reading, card: Card, *, carried_from: UUID | None = None) -> UUID:
        row = CardRow(id=uuid4(), change_id=reading.change.id, carried_from=carried_from, **card.columns())

        async def store(connection: Connection) -> None:
            await cards.put(connection, row)

        await run.finish(also=store)
        return row.id


def _clauses(records: RecordsReview | None) -> tuple[Clause, ...]:
    """The approved clauses that the writer may point to: what the change edits, then what stands."""
    touched = (*records.clauses, *records.standing)[:MOST_CLAUSES] if records else ()
    return tuple(
        Clause(record=item.record, clause=item.clause, text=item.text, change=item.change) for item in touched
    )


def _until_tomorrow(card_id: UUID) -> float:
    """Seconds until the next day's budget, spread over ten minutes so that not everybody asks at midnight."""
    now = datetime.now(UTC)
    midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return (midnight - now).total_seconds() + card_id.int % 600
