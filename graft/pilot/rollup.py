"""One repository's day in numbers, computed from its rows and never counted along the way: computing a day again
gives the same, and more where votes or failures came late.

Days are UTC. A new meaning of a number is a new `VERSION`; rows of older versions stay as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any, Final

import msgspec

from graft.pilot.feedback import Vote, effective

VERSION: Final = 1

# How many waiting times a day keeps; medians over more days come from these.
MOST_LATENCIES: Final = 2_000


class CardRow(msgspec.Struct, frozen=True, kw_only=True):
    """What the rollup needs of a card."""

    status: str
    reason: str | None
    risk: str
    floor: str
    verifier: str
    injection: bool
    carried: bool
    tokens: int
    llm_calls: int


class SpendRow(msgspec.Struct, frozen=True, kw_only=True):
    """One model call of the ledger."""

    model: str
    outcome: str
    tokens: int
    cost_usd: float


class DayFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one repository and day. `votes` are all votes on every card that somebody voted on that day;
    `latencies` the seconds from opening to the first card, for changes whose first card was shown that day."""

    day: date
    cards: Sequence[CardRow] = ()
    spend: Sequence[SpendRow] = ()
    verdicts: Sequence[str] = ()
    votes: Sequence[Vote] = ()
    dead_needs: Sequence[str] = ()
    latencies: Sequence[float] = ()
    heads: int = 0
    api_calls: int = 0


class Day(msgspec.Struct, frozen=True, kw_only=True):
    """The rollup, as `metrics_daily.counts` holds it. Amounts are US dollars."""

    cards: int = 0
    by_status: dict[str, int] = {}
    by_reason: dict[str, int] = {}
    by_risk: dict[str, int] = {}
    raised: int = 0
    carried: int = 0
    checked: int = 0
    disagreed: int = 0
    check_failed: int = 0
    injections: int = 0
    llm_calls: int = 0
    failed_calls: dict[str, int] = {}
    tokens: int = 0
    cost_usd: float = 0.0
    latencies: list[float] = []
    heads: int = 0
    api_calls: int = 0
    verdicts: dict[str, int] = {}
    votes: dict[str, int] = {}
    dead_work: dict[str, int] = {}


def compute(facts: DayFacts) -> Day:
    """The rollup of one day."""
    verifiers = Counter(card.verifier for card in facts.cards)
    votes = [vote for vote in effective(facts.votes).values() if _utc_day(vote.voted_at) == facts.day]
    return Day(
        cards=len(facts.cards),
        by_status=_counted(card.status for card in facts.cards),
        by_reason=_counted(card.reason for card in facts.cards if card.reason),
        by_risk=_counted(card.risk for card in facts.cards),
        raised=sum(card.risk != card.floor for card in facts.cards),
        carried=sum(card.carried for card in facts.cards),
        checked=verifiers["agrees"] + verifiers["disagrees"],
        disagreed=verifiers["disagrees"],
        check_failed=verifiers["failed"],
        injections=sum(card.injection for card in facts.cards),
        llm_calls=len(facts.spend),
        failed_calls=_counted(row.outcome for row in facts.spend if row.outcome != "ok"),
        tokens=sum(row.tokens for row in facts.spend),
        cost_usd=round(sum(row.cost_usd for row in facts.spend), 6),
        latencies=sorted(round(each, 1) for each in facts.latencies)[:MOST_LATENCIES],
        heads=facts.heads,
        api_calls=facts.api_calls,
        verdicts=_counted(facts.verdicts),
        votes=_counted(vote.verdict for vote in votes),
        dead_work=_counted(facts.dead_needs),
    )


def _utc_day(moment: datetime) -> date:
    return moment.date()


def _counted(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def read(counts: Any) -> Day:
    """A stored rollup of this version. Raises msgspec.ValidationError for one of another form."""
    return msgspec.convert(counts, Day)


def together(days: Iterable[Day]) -> Day:
    """Several days or repositories as one."""
    total = Day()
    for day in days:
        total = Day(
            **{name: _plus(getattr(total, name), getattr(day, name)) for name in Day.__struct_fields__}
        )
    return total


def _plus(one: Any, other: Any) -> Any:
    if isinstance(one, dict):
        return dict(sorted((Counter(one) + Counter(other)).items()))
    return one + other
