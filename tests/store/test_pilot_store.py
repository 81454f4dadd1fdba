"""What the pilot reads from rows, against histories whose answers are counted here in another way."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from uuid import UUID, uuid4

import msgspec
import pytest

from graft.database import Connection, Pool
from graft.pilot import feedback, rollup
from graft.pilot.incidents import Found
from graft.pilot.review_time import Measured
from graft.store import (
    calls,
    cards,
    changes,
    incidents,
    installations,
    pilot,
    ratings,
    review_times,
    reviewers,
    rollups,
    votes,
)
from graft.store.ratings import Scope
from graft.store.reviewers import Reviewer
from graft.store.votes import Vote

from .conftest import T0, card_row, pull_facts

WEEK = Scope(since=T0 - timedelta(days=1), until=T0 + timedelta(days=7))


async def change(connection: Connection, number: int, **fields: object) -> UUID:
    facts = {"pr_number": number, "head_sha": f"{number:040x}", **fields}
    await installations.ensure(connection, 7, int(facts.get("repository_id", 70)), "octo/demo")  # type: ignore[call-overload]
    stored = await changes.put(connection, pull_facts(**facts))
    assert stored is not None
    return stored.id


async def shown_card(
    connection: Connection,
    change_id: UUID,
    at: datetime,
    *,
    created: datetime | None = None,
    **fields: object,
) -> UUID:
    row = card_row(change_id, **fields)
    await cards.put(connection, row)
    await cards.shown(connection, change_id, row.id, "ready", at)
    await connection.execute("UPDATE intent_cards SET created_at = $2 WHERE id = $1", row.id, created or at)
    return row.id


def a_vote(card_id: UUID, change_id: UUID, user: int, verdict: str, at: datetime, **fields: object) -> Vote:
    facts: dict[str, object] = {
        "card_id": card_id,
        "change_id": change_id,
        "user_id": user,
        "user_login": f"user{user}",
        "verdict": verdict,
        "source": "reaction",
        "is_pr_author": False,
        "voted_at": at,
        **fields,
    }
    return Vote(**facts)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [1, 2])
async def test_ratings_of_a_seeded_history(pool: Pool, seed: int) -> None:
    dice = random.Random(seed)
    told: list[Vote] = []
    known: dict[UUID, datetime] = {}
    async with pool.acquire() as connection:
        for number in range(1, 13):
            change_id = await change(connection, number)
            at = T0 + timedelta(hours=dice.randrange(200))
            status = dice.choice(["ready", "ready", "unverified", "unavailable"])
            card_id = await shown_card(connection, change_id, at, status=status)
            if status != "unavailable":
                known[card_id] = at
            for _ in range(dice.randrange(5)):
                told.append(
                    a_vote(
                        card_id,
                        change_id,
                        dice.choice([11, 12]),
                        dice.choice(["accurate", "wrong"]),
                        at + timedelta(minutes=dice.randrange(4)),
                        source=dice.choice(["reaction", "button"]),
                    )
                )
        dice.shuffle(told)
        for each in told:
            await votes.record(connection, each)
        found = feedback.rate(await ratings.cards(connection, WEEK), await ratings.votes(connection, WEEK))
    within = {card_id for card_id, at in known.items() if WEEK.since <= at < WEEK.until}
    expected: dict[str, Counter[str]] = {}
    for card_id in within:
        for user in (11, 12):
            own = [v for v in told if (v.card_id, v.user_id) == (card_id, user)]
            if own:
                last = max(own, key=lambda v: (v.voted_at, v.verdict))
                expected.setdefault(str(card_id), Counter())[last.verdict] += 1
    assert {r.card.card_id: (r.accurate, r.wrong) for r in found} == {
        card_id: (count["accurate"], count["wrong"]) for card_id, count in expected.items()
    }


async def test_a_carried_card_is_its_original(pool: Pool) -> None:
    """Votes stand on the original, which counts once, also where only the carried one was ever shown."""
    async with pool.acquire() as connection:
        change_id = await change(connection, 1)
        original = card_row(change_id)
        await cards.put(connection, original)
        carried = await shown_card(connection, change_id, T0, carried_from=original.id)
        await votes.record(connection, a_vote(original.id, change_id, 11, "accurate", T0))
        found = await ratings.cards(connection, WEEK)
        assert [(c.card_id, c.shown_at) for c in found] == [(str(original.id), T0)]
        assert str(carried) not in {c.card_id for c in found}
        assert len(await ratings.votes(connection, WEEK)) == 1


async def test_a_scope_of_one_repository_leaves_the_others_out(pool: Pool) -> None:
    async with pool.acquire() as connection:
        for repository in (70, 71):
            change_id = await change(connection, 1, repository_id=repository)
            await shown_card(connection, change_id, T0)
        only = msgspec.structs.replace(WEEK, repositories=(71,))
        assert len(await ratings.cards(connection, WEEK)) == 2
        assert len(await ratings.cards(connection, only)) == 1
        assert await ratings.named(connection, "OCTO/demo") == (71, 7)
        assert await ratings.named(connection, "octo/none") is None


async def test_participation_counts_reviewers_who_may_write(pool: Pool) -> None:
    async with pool.acquire() as connection:
        change_id = await change(connection, 1)
        card_id = await shown_card(connection, change_id, T0)
        people = [(11, True), (12, True), (13, False), (5, True)]  # 5 is the author
        await reviewers.put(
            connection,
            change_id,
            [Reviewer(user_id=u, user_login=f"u{u}", reason="review", verified=v) for u, v in people],
        )
        for user in (11, 13, 5):
            await votes.record(connection, a_vote(card_id, change_id, user, "accurate", T0))
        assert await ratings.participation(connection, WEEK) == (1, 2)


async def test_reviewers_are_read_at_most_once_an_hour(pool: Pool) -> None:
    async with pool.acquire() as connection:
        change_id = await change(connection, 1)
        assert await reviewers.wait(connection, change_id, every_seconds=3600) == 0
        await reviewers.synced(connection, change_id)
        assert 3590 < await reviewers.wait(connection, change_id, every_seconds=3600) <= 3600
        await connection.execute("UPDATE changes SET reviewers_synced_at = now() - interval '61 minutes'")
        assert await reviewers.wait(connection, change_id, every_seconds=3600) == 0


# --------------------------------------------------------------------------------------------------- incidents


def found(number: int, culprit: int | None = None, fix: int | None = None) -> Found:
    return Found(issue_number=number, occurred_at=T0, culprit=culprit, fix=fix)


async def standing(connection: Connection) -> dict[int | None, tuple[int | None, int | None, str]]:
    rows = await incidents.find(connection, WEEK)
    return {row.issue_number: (row.culprit, row.fix, row.source) for row in rows}


async def test_labels_come_and_go(pool: Pool) -> None:
    async with pool.acquire() as connection:
        await change(connection, 1)
        await incidents.put_labelled(connection, 70, [found(20, 12), found(21)], complete=True)
        await incidents.put_labelled(connection, 70, [found(20, 12), found(21)], complete=True)
        assert await standing(connection) == {20: (12, None, "label"), 21: (None, None, "label")}
        await incidents.put_labelled(connection, 70, [found(20, 12, 15)], complete=True)
        assert await standing(connection) == {20: (12, 15, "label")}
        await incidents.put_labelled(connection, 70, [found(21)], complete=False)
        assert set(await standing(connection)) == {20, 21}, "a list that was cut says nothing of the others"


async def test_what_a_person_decides_stays(pool: Pool) -> None:
    async with pool.acquire() as connection:
        await change(connection, 1)
        await incidents.put_labelled(connection, 70, [found(20, 12), found(21, 13)], complete=True)
        await incidents.add(connection, 70, issue=20, culprit=11, fix=None)
        [wrong] = [i for i in await incidents.find(connection, WEEK) if i.issue_number == 21]
        assert await incidents.remove(connection, UUID(wrong.id))
        assert not await incidents.remove(connection, UUID(wrong.id))
        assert not await incidents.remove(connection, uuid4())
        await incidents.put_labelled(connection, 70, [found(20, 12, 15), found(21, 13)], complete=True)
        assert await standing(connection) == {20: (11, 15, "manual")}, (
            "the fix was found, the culprit was given"
        )
        await incidents.put_labelled(connection, 70, [], complete=True)
        assert set(await standing(connection)) == {20}, "a person entered it: the label does not take it away"
        await incidents.add(connection, 70, issue=21, culprit=None, fix=None)
        assert set(await standing(connection)) == {20, 21}, "and a person brings back what a person removed"


async def test_an_incident_entered_twice_is_one(pool: Pool) -> None:
    async with pool.acquire() as connection:
        await change(connection, 1)
        first = await incidents.add(connection, 70, issue=None, culprit=12, fix=None)
        assert await incidents.add(connection, 70, issue=None, culprit=12, fix=None) == first
        assert await incidents.add(connection, 70, issue=None, culprit=12, fix=15) == first
        assert await incidents.add(connection, 70, issue=None, culprit=12, fix=15) == first
        other = await incidents.add(connection, 70, issue=None, culprit=12, fix=16)
        assert other != first
        assert await connection.fetchval("SELECT count(*) FROM incidents WHERE culprit_pr_number = 12") == 2


async def test_merged_changes_have_the_class_that_was_shown_last(pool: Pool) -> None:
    async with pool.acquire() as connection:
        for number, risks in ((1, ["trivial", "sensitive"]), (2, ["logic"]), (3, [])):
            change_id = await change(connection, number, state="merged", merged_at=T0 + timedelta(hours=5))
            for hour, risk in enumerate(risks):
                await shown_card(connection, change_id, T0 + timedelta(hours=hour), risk_class=risk)
        await change(connection, 4)
        await incidents.add(connection, 70, issue=None, culprit=1, fix=None)
        await connection.execute("UPDATE incidents SET occurred_at = $1", T0)
        merged = {each.number: each.risk for each in await incidents.merged(connection, WEEK)}
        assert merged == {1: "sensitive", 2: "logic", 3: None}
        assert [i.culprit_risk for i in await incidents.find(connection, WEEK)] == ["sensitive"]


# ----------------------------------------------------------------------------------------------------- rollups


async def spent(
    connection: Connection, change_id: UUID, at: datetime, cost: float, outcome: str = "ok"
) -> None:
    await connection.execute(
        """
        INSERT INTO intent_spend (repository_id, change_id, purpose, model, outcome, tokens, cost_usd, spent_at)
        VALUES (70, $1, 'writer', 'm', $4, 100, $3::float8, $2)
        """,
        change_id,
        at,
        cost,
        outcome,
    )


@pytest.mark.parametrize("seed", [3, 4])
async def test_rollups_of_a_seeded_history(pool: Pool, seed: int) -> None:
    dice = random.Random(seed)
    made: list[tuple[date, str, str]] = []
    costs: list[tuple[date, float]] = []
    firsts: dict[int, tuple[date, float]] = {}
    async with pool.acquire() as connection:
        for number in range(1, 16):
            opened = T0 + timedelta(minutes=dice.randrange(3 * 1440))
            change_id = await change(connection, number, opened_at=opened)
            for turn in range(dice.randrange(1, 4)):
                at = opened + timedelta(seconds=30 + turn * dice.randrange(1, 90_000))
                risk = dice.choice(["trivial", "logic", "sensitive"])
                verifier = dice.choice(["agrees", "disagrees", "failed"])
                await shown_card(connection, change_id, at, risk_class=risk, verifier_status=verifier)
                made.append((at.date(), risk, verifier))
                if turn == 0 or at < opened + timedelta(seconds=firsts[number][1]):
                    firsts[number] = (at.date(), (at - opened).total_seconds())
                cost = round(dice.random() / 10, 6)
                await spent(connection, change_id, at, cost)
                costs.append((at.date(), cost))
        scope = Scope(since=T0 - timedelta(days=1), until=T0 + timedelta(days=14))
        written = await rollups.refresh(connection, scope)
        assert await rollups.refresh(connection, scope) == written
        days = {each.day: each.counts for each in await rollups.find(connection, scope)}
    assert written == len(days) == len({day for day, _, _ in made})
    for day, counts in days.items():
        mine = [(risk, verifier) for when, risk, verifier in made if when == day]
        assert counts.cards == len(mine)
        assert counts.by_risk == Counter(risk for risk, _ in mine)
        assert counts.disagreed == sum(verifier == "disagrees" for _, verifier in mine)
        assert counts.checked == sum(verifier != "failed" for _, verifier in mine)
        assert counts.cost_usd == pytest.approx(sum(cost for when, cost in costs if when == day))
        assert counts.latencies == pytest.approx(
            sorted(seconds for when, seconds in firsts.values() if when == day), abs=0.1
        )


async def test_a_day_is_computed_anew_when_something_came_late_or_went(pool: Pool) -> None:
    async with pool.acquire() as connection:
        change_id = await change(connection, 1)
        card_id = await shown_card(connection, change_id, T0)
        await rollups.refresh(connection, WEEK)
        await votes.record(connection, a_vote(card_id, change_id, 11, "wrong", T0))
        await connection.execute(
            """
            INSERT INTO work (address, need, partition, installation_id, repository_id, asked_at, dead_at)
            VALUES ('pull.70.1', 'rerun:all:abc', 0, 7, 70, $1, $1)
            """,
            T0,
        )
        await calls.add(connection, {(70, T0.date()): 7, (999, T0.date()): 3})
        await calls.add(connection, {(70, T0.date()): 5})
        await rollups.refresh(connection, WEEK)
        [day] = await rollups.find(connection, WEEK)
        assert (day.counts.votes, day.counts.dead_work, day.counts.api_calls) == (
            {"wrong": 1},
            {"rerun": 1},
            12,
        )
        await connection.execute("DELETE FROM intent_cards")
        await connection.execute("DELETE FROM work")
        await connection.execute("DELETE FROM api_calls")
        await rollups.refresh(connection, WEEK)
        [day] = await rollups.find(connection, WEEK)
        assert day.counts == rollup.Day(), "a day that lost its rows says so"


async def test_days_of_another_version_are_left_as_they_are(pool: Pool) -> None:
    async with pool.acquire() as connection:
        await shown_card(connection, await change(connection, 1), T0)
        await connection.execute(
            "INSERT INTO metrics_daily (repository_id, day, rollup_version, counts) VALUES (70, $1, 0, '{}')",
            T0.date(),
        )
        await rollups.refresh(connection, WEEK)
        assert len(await rollups.find(connection, WEEK)) == 1
        assert await connection.fetchval("SELECT count(*) FROM metrics_daily") == 2


async def test_costs_belong_to_the_day_of_the_first_call(pool: Pool) -> None:
    async with pool.acquire() as connection:
        one, two = await change(connection, 1), await change(connection, 2)
        for change_id, at, cost in ((one, T0, 0.25), (one, T0 + timedelta(days=40), 0.5), (two, T0, 0.125)):
            await spent(connection, change_id, at, cost)
        assert [c.cost_usd for c in await pilot.costs(connection, WEEK)] in ([0.75, 0.125], [0.125, 0.75])
        later = Scope(since=T0 + timedelta(days=30), until=T0 + timedelta(days=60))
        assert await pilot.costs(connection, later) == []


# ------------------------------------------------------------------------------------------------ review times


def a_measured(number: int, **fields: object) -> Measured:
    facts: dict[str, object] = {
        "pr_number": number,
        "author_kind": "human",
        "risk_class": None,
        "start_basis": "opened",
        "started_at": T0,
        "first_review_at": None,
        "merged_at": None,
        "first_review_seconds": None,
        "merge_seconds": None,
        "changed_lines": 1,
        "changed_files": 1,
        "excluded": None,
        **fields,
    }
    return Measured(**facts)  # type: ignore[arg-type]


async def test_a_run_goes_on_where_it_stopped_and_only_finished_ones_are_reported(pool: Pool) -> None:
    first, last = date(2026, 12, 1), date(2026, 12, 31)
    async with pool.acquire() as connection:
        await change(connection, 1)
        run = await review_times.begin(connection, 70, "baseline", first, last, {"zone": "UTC"})
        assert (run.done, run.finished) == (frozenset(), False)
        await review_times.put(connection, run.id, a_measured(1))
        await review_times.put(connection, run.id, a_measured(1, changed_lines=5))
        again = await review_times.begin(connection, 70, "baseline", first, last, {"zone": "other"})
        assert (again.id, again.done, again.settings) == (run.id, frozenset({1}), {"zone": "UTC"})
        assert await review_times.newest(connection, "baseline", None) == []
        await review_times.finish(connection, run.id)
        assert await review_times.newest(connection, "baseline", [70]) == [a_measured(1, changed_lines=5)]
        assert await review_times.newest(connection, "shadow", None) == []
        assert await review_times.newest(connection, "baseline", [71]) == []
        later = await review_times.begin(connection, 70, "baseline", first, last + timedelta(days=1), {})
        await review_times.put(connection, later.id, a_measured(2))
        await review_times.finish(connection, later.id)
        assert [r.pr_number for r in await review_times.newest(connection, "baseline", None)] == [2]
        await review_times.discard(connection, later.id)
        assert [r.pr_number for r in await review_times.newest(connection, "baseline", None)] == [1]


async def test_what_graft_knows_of_a_pull_request(pool: Pool) -> None:
    async with pool.acquire() as connection:
        assert await review_times.known(connection, 70, 1) == review_times.Known(
            author_kind=None, risk_floor=None
        )
        change_id = await change(connection, 1)
        await shown_card(connection, change_id, T0, risk_floor="sensitive", risk_class="sensitive")
        assert (await review_times.known(connection, 70, 1)).risk_floor == "sensitive"


async def test_utc_is_the_day_whatever_the_session_says(pool: Pool) -> None:
    async with pool.acquire() as connection:
        await connection.execute("SET TIME ZONE 'Pacific/Auckland'")
        change_id = await change(connection, 1)
        late = datetime(2026, 12, 1, 23, 30, tzinfo=UTC)
        await shown_card(connection, change_id, late)
        await spent(connection, change_id, late, 0.5)
        await rollups.refresh(connection, WEEK)
        [day] = await rollups.find(connection, WEEK)
        assert (day.day, day.counts.cards) == (date(2026, 12, 1), 1)
        assert [c.first_day for c in await pilot.costs(connection, WEEK)] == [date(2026, 12, 1)]
