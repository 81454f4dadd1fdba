"""A day in numbers: computed from rows, the same every time, and additive."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft.pilot import rollup
from graft.pilot.rollup import CardRow, Day, DayFacts, SpendRow, compute, together

from .test_pilot_feedback import vote

DAY = date(2026, 12, 1)
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


def random_facts(dice: random.Random) -> DayFacts:
    return DayFacts(
        day=DAY,
        cards=[
            CardRow(
                status=dice.choice(["ready", "unverified", "unavailable", "empty"]),
                reason=dice.choice([None, None, "timeout", "budget"]),
                risk=dice.choice(["trivial", "logic", "sensitive"]),
                floor=dice.choice(["trivial", "logic"]),
                verifier=dice.choice(["agrees", "disagrees", "failed", "not_run"]),
                injection=dice.random() < 0.2,
                carried=dice.random() < 0.2,
                tokens=dice.randrange(1_000),
                llm_calls=2,
            )
            for _ in range(dice.randrange(30))
        ],
        spend=[
            SpendRow(
                model="m",
                outcome=dice.choice(["ok", "ok", "timeout"]),
                tokens=10,
                cost_usd=round(dice.random(), 6),
            )
            for _ in range(dice.randrange(20))
        ],
        verdicts=[dice.choice(["approve", "review", "block"]) for _ in range(dice.randrange(9))],
        dead_needs=["intent"] * dice.randrange(3),
        latencies=[dice.random() * 100 for _ in range(dice.randrange(5))],
        heads=dice.randrange(9),
        api_calls=dice.randrange(90),
    )


@pytest.mark.parametrize("seed", range(5))
def test_every_number_is_the_count_of_its_rows(seed: int) -> None:
    facts = random_facts(random.Random(seed))
    day = compute(facts)
    cards = facts.cards
    assert day.cards == len(cards) == sum(day.by_status.values()) == sum(day.by_risk.values())
    for status in ("ready", "unverified", "unavailable", "empty"):
        assert day.by_status.get(status, 0) == len([c for c in cards if c.status == status])
    assert day.disagreed == len([c for c in cards if c.verifier == "disagrees"])
    assert day.checked == len([c for c in cards if c.verifier in ("agrees", "disagrees")])
    assert day.raised == len([c for c in cards if c.risk != c.floor])
    assert day.by_reason.get("budget", 0) == len([c for c in cards if c.reason == "budget"])
    assert day.cost_usd == pytest.approx(sum(row.cost_usd for row in facts.spend))
    assert day.failed_calls.get("timeout", 0) == len([row for row in facts.spend if row.outcome != "ok"])
    assert (day.heads, day.api_calls) == (facts.heads, facts.api_calls)
    assert sum(day.verdicts.values()) == len(facts.verdicts)
    assert compute(facts) == day


def test_a_vote_counts_on_the_day_on_which_it_was_given_last() -> None:
    votes = [
        vote(user_id=1, verdict="wrong", voted_at=NOON),
        vote(user_id=2, verdict="wrong", voted_at=NOON),
        vote(user_id=2, verdict="accurate", source="button", voted_at=NOON + timedelta(days=1)),
        vote(user_id=3, verdict="accurate", voted_at=NOON - timedelta(days=1)),
        vote(user_id=4, verdict="accurate", voted_at=NOON, withdrawn=True),
    ]
    assert compute(DayFacts(day=DAY, votes=votes)).votes == {"wrong": 1}
    assert compute(DayFacts(day=DAY + timedelta(days=1), votes=votes)).votes == {"accurate": 1}


@given(st.lists(st.integers(0, 1_000), max_size=6), st.randoms(use_true_random=False))
def test_days_add_up_in_any_order_and_grouping(seeds: list[int], dice: random.Random) -> None:
    days = [compute(random_facts(random.Random(seed))) for seed in seeds]
    shuffled = list(days)
    dice.shuffle(shuffled)
    cut = len(days) // 2
    whole, other = together(days), together([together(shuffled[:cut]), together(shuffled[cut:])])
    assert other.cost_usd == pytest.approx(whole.cost_usd)
    assert sorted(other.latencies) == sorted(whole.latencies)
    assert msgspec.structs.replace(other, cost_usd=0.0, latencies=[]) == msgspec.structs.replace(
        whole, cost_usd=0.0, latencies=[]
    )


def test_a_stored_day_comes_back_as_it_was() -> None:
    day = compute(random_facts(random.Random(9)))
    assert rollup.read(msgspec.json.decode(msgspec.json.encode(day))) == day
    assert rollup.read({}) == Day()
