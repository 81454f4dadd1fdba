"""Postgres and the database in memory are asked the same, at random, and have to answer the same."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

import msgspec
import pytest

from graft.database import Connection, Pool
from graft.store import cards, changes, installations, partitions, results, spend, work
from graft.store.cards import CardRow
from graft.store.changes import Change, CheckRun, PullFacts
from graft.store.partitions import Lease, LostPartition
from graft.store.results import ProvenanceRow, VerdictRow
from proof.interleavings import database
from proof.interleavings.memory import EPOCH, Memory

REPOSITORY, NUMBER, INSTALLATION = 11, 5, 9
ADDRESS = f"pull.{REPOSITORY}.{NUMBER}"
HEADS = ("a" * 40, "b" * 40)
NEEDS = ("intent", "policy", "repair", "state")
TOKENS = tuple(UUID(int=n) for n in range(1, 4))
CARDS = tuple(UUID(int=n) for n in range(10, 14))
START = datetime(2026, 6, 1, tzinfo=UTC)
LEASES = (
    Lease(partition=0, holder="a", epoch=1),
    Lease(partition=0, holder="a", epoch=2),
    Lease(partition=0, holder="b", epoch=1),
)
# Far enough apart that it does not matter when exactly which of the two is asked.
DELAYS = (0.0, 0.0, 1_000.0)


class Side:
    """One of the two databases, with what only it knows: ids that it made up itself."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.change: Change | None = None
        self.rows: list[work.Work] = []
        self.reservation: UUID | None = None


Question = Callable[[Side], Awaitable[object]]


class Questions:
    """Draws questions that mean the same to both sides."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def draw(self) -> Question:
        kind = self.random.choice(
            (
                self._change,
                self._lease,
                self._runs,
                self._card,
                self._results,
                self._ask,
                self._work,
                self._spend,
            )
        )
        return kind()

    # Everything that is drawn is drawn before either side is asked.

    def _change(self) -> Question:
        head, state = self.random.choice(HEADS), self.random.choice(("open", "closed"))
        at = START + timedelta(seconds=self.random.randrange(4))
        if self.random.random() < 0.3:
            return lambda side: _known(side, changes.get(side.connection, REPOSITORY, NUMBER))
        facts = PullFacts(
            repository_id=REPOSITORY,
            pr_number=NUMBER,
            head_sha=head,
            head_repository_id=REPOSITORY,
            base_ref="main",
            author_id=3,
            author_login="ada",
            author_is_bot=False,
            state=state,
            draft=False,
            opened_at=START,
            closed_at=None,
            merged_at=None,
            merge_commit_sha=None,
            pr_updated_at=at,
        )
        return lambda side: _known(side, changes.put(side.connection, facts))

    def _lease(self) -> Question:
        token, seq, lease = self.random.choice(TOKENS), self.random.randrange(5), self.random.choice(LEASES)
        comment, what = (
            self.random.choice((None, 7)),
            self.random.choice(("acquire", "commit", "confirm", "abandoned", "guard")),
        )

        shown_seq = self.random.randrange(5)

        async def ask(side: Side) -> object:
            if what == "guard":
                await partitions.guard_once(side.connection, lease)
                return None
            if side.change is None:
                return None
            if what == "acquire":
                async with side.connection.transaction():
                    leased = await changes.acquire(
                        side.connection, side.change, token, section_seq=seq, lease=lease
                    )
                return leased and (_anonymous(leased.change), leased.abandoned)
            if what == "commit":
                return await changes.commit_publication(
                    side.connection, side.change.id, token, section_seq=seq, comment_id=comment
                )
            if what == "confirm":
                return await changes.confirm(
                    side.connection, side.change.id, shown_seq=shown_seq, section_seq=seq
                )
            return await changes.is_abandoned(side.connection, side.change.id)

        return ask

    def _runs(self) -> Question:
        head, number = self.random.choice(HEADS), self.random.randrange(1, 9)
        names = self.random.sample(("graft/intent", "graft/policy"), self.random.randrange(3))
        runs = {
            name: CheckRun(check_run_id=number, external_id=str(number), content_hash="c") for name in names
        }

        async def ask(side: Side) -> object:
            if side.change is None:
                return None
            await changes.put_check_runs(side.connection, side.change.id, head, runs)
            return await changes.check_runs(side.connection, side.change.id, head)

        return ask

    def _card(self) -> Question:
        one, head, other = self.random.choice(CARDS), self.random.choice(HEADS), self.random.choice(HEADS)
        status = self.random.choice(("ready", "unavailable"))
        calls, shown = self.random.randrange(2), self.random.choice(("making", status))
        at = START + timedelta(seconds=self.random.randrange(3))

        async def ask(side: Side) -> object:
            if side.change is None:
                return None
            change_id = side.change.id
            if str(one) not in await cards.ids(side.connection, change_id):
                await cards.put(side.connection, _card_row(one, change_id, head, status, calls))
            await cards.shown(side.connection, change_id, one, shown, at)
            found = (
                await cards.latest(side.connection, change_id, other),
                await cards.previous(side.connection, change_id, other),
                await cards.find_carriable(
                    side.connection, change_id, input_hash="i", diff_fingerprint=other, prompt_version="2"
                ),
            )
            return (
                [card and (card.id, card.status, card.head_sha, card.published_at) for card in found],
                await cards.count_written(side.connection, change_id, other),
                await cards.promises(side.connection, change_id),
                await cards.known(side.connection, [str(one), "no id", str(CARDS[0])]),
            )

        return ask

    def _results(self) -> Question:
        head, facts_hash = self.random.choice(HEADS), self.random.choice("xy")

        async def ask(side: Side) -> object:
            if side.change is None:
                return None
            await results.put_provenance(side.connection, side.change.id, _provenance(head), [])
            verdict = _verdict(head, facts_hash)
            return await results.put_verdict(side.connection, side.change.id, verdict)

        return ask

    def _ask(self) -> Question:
        asks = [self._one_ask() for _ in range(self.random.randrange(1, 4))]
        return lambda side: work.ask(side.connection, asks)

    def _one_ask(self) -> work.Ask:
        head = self.random.choice((None, *HEADS))
        # Never two heads of one second: which of them `newest_heads` names is not decided.
        at = 2 * self.random.randrange(3) + (head == HEADS[1])
        return work.Ask(
            address=ADDRESS,
            need=self.random.choice(NEEDS),
            partition=0,
            asked_at=START + timedelta(seconds=at),
            installation_id=self.random.choice((0, INSTALLATION)),
            repository_id=self.random.choice((None, REPOSITORY)),
            head_sha=head,
            forced=self.random.random() < 0.2,
            revive=self.random.random() < 0.7,
            delay=self.random.choice(DELAYS),
        )

    def _work(self) -> Question:
        what = self.random.choice(("load", "load", "finish", "postpone", "bury", "drop", "waiting", "heads"))
        index, need, delay = self.random.randrange(4), self.random.choice(NEEDS), self.random.choice(DELAYS)
        failure = self.random.choice((None, {"error": "Example"}))
        before = self.random.randrange(200)

        async def ask(side: Side) -> object:
            row = side.rows[index % len(side.rows)] if side.rows else None
            if what == "load":
                side.rows = await work.load(side.connection, ADDRESS)
                return [_timeless(row) for row in side.rows]
            if what == "waiting":
                found = await work.waiting(side.connection, ADDRESS, need)
                return found and (round(found.seconds, -2), found.dead, found.attempts)
            if what == "heads":
                return await work.newest_heads(side.connection, [ADDRESS])
            if what == "drop":
                await work.drop(side.connection, ADDRESS, [need], before=before)
            elif row is None:
                return await work.begin(side.connection)
            elif what == "finish":
                await work.finish(side.connection, [row])
            elif what == "bury":
                await work.bury(side.connection, row, {"error": "Example"})
            else:
                await work.postpone(side.connection, row, seconds=delay, failure=failure)
            return None

        return ask

    def _spend(self) -> Question:
        estimate, settle = Decimal(self.random.randrange(1, 40)) / 100, self.random.random() < 0.5

        async def ask(side: Side) -> object:
            if settle and side.reservation is not None:
                await spend.settle(
                    side.connection, side.reservation, outcome="ok", tokens=5, cost_usd=estimate / 2
                )
            else:
                async with side.connection.transaction():
                    side.reservation = await spend.reserve(
                        side.connection,
                        repository_id=REPOSITORY,
                        change_id=side.change.id if side.change else None,
                        purpose="writer",
                        model="m",
                        estimate_usd=estimate,
                        budget_usd=Decimal(1),
                    )
            return side.reservation is None, await spend.used_today(side.connection, REPOSITORY)

        return ask


async def _known(side: Side, asked: Awaitable[Change | None]) -> object:
    found = await asked
    side.change = found or side.change
    return found and _anonymous(found)


def _anonymous(change: Change) -> Change:
    return msgspec.structs.replace(change, id=UUID(int=0))


def _timeless(row: work.Work) -> work.Work:
    return msgspec.structs.replace(row, first_asked=0.0, last_asked=0.0)


def _card_row(one: UUID, change_id: UUID, head: str, status: str, calls: int) -> CardRow:
    return CardRow(
        id=one,
        change_id=change_id,
        head_sha=head,
        base_sha="0" * 40,
        status=status,
        reason=None,
        risk_class="logic",
        risk_floor="trivial",
        risk_writer=None,
        risk_first_pass=None,
        risk_verifier=None,
        verifier_status="agrees",
        injection_suspected=False,
        card={"version": 1},
        writer_model=None,
        verifier_model=None,
        prompt_version="2",
        input_hash="i",
        diff_fingerprint=head,
        llm_calls=calls,
    )


def _provenance(head: str) -> ProvenanceRow:
    return ProvenanceRow(
        head_sha=head,
        author_kind="human",
        author_kind_reason="no_trace",
        source="none",
        agents=(),
        models=(),
        deciding_commits=(),
        hints=(),
    )


def _verdict(head: str, facts_hash: str) -> VerdictRow:
    return VerdictRow(
        head_sha=head,
        base_ref="main",
        base_sha="0" * 40,
        policy_path=None,
        policy_hash=None,
        policy_status="none",
        outcome="none",
        rule_index=None,
        rules=[],
        guards=(),
        card_id=None,
        facts_hash=facts_hash,
    )


async def _answer(question: Question, side: Side) -> object:
    try:
        return await question(side)
    except LostPartition:
        return "lost"


@pytest.mark.parametrize("seed", range(4))
async def test_postgres_and_the_memory_answer_the_same(pool: Pool, seed: int) -> None:
    memory = Memory(lambda: time.time() - EPOCH.timestamp())

    async def step(_doing: str) -> None:
        """There is nobody else."""

    async with pool.acquire() as connection:
        await installations.ensure(connection, INSTALLATION, REPOSITORY, "octo/demo")
        await connection.execute(
            "INSERT INTO partitions (partition, holder, epoch, lease_until)"
            " VALUES (0, 'a', 1, now() + interval '1 hour')"
        )
        memory.repositories[REPOSITORY] = {"id": REPOSITORY}
        memory.partitions[0] = {"holder": "a", "epoch": 1}
        real, double = Side(connection), Side(cast(Any, database.Connection(memory, step)))
        questions = Questions(seed)
        for number in range(250):
            question = questions.draw()
            expected = await _answer(question, real)
            assert await _answer(question, double) == expected, f"question {number}"


async def test_an_unknown_statement_is_an_error() -> None:
    async def step(_doing: str) -> None:
        """There is nobody else."""

    connection = database.Connection(Memory(lambda: 0.0), step)
    with pytest.raises(LookupError, match="does not know this statement: SELECT 1"):
        await connection.fetchval("SELECT 1")
