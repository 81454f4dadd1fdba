"""A pilot's history out of one seed: what a team of some size produces in ten weeks."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta

from graft.pilot import gate as gates
from graft.pilot.document import Material
from graft.pilot.feedback import CardFacts, Vote, rate
from graft.pilot.incidents import Incident, MergedChange
from graft.pilot.review_time import Measured
from graft.pilot.rollup import Day

BEGIN = datetime(2026, 9, 21, tzinfo=UTC)
WEEKS = 10


def cards(dice: random.Random, count: int) -> list[CardFacts]:
    return [
        CardFacts(
            card_id=f"card-{number}",
            change_id=f"change-{number}",
            repository=dice.choice(["octo/shop", "octo/shop", "octo/billing"]),
            risk=dice.choices(["trivial", "logic", "sensitive"], [3, 5, 2])[0],
            model=dice.choice(["claude-haiku-5-5", "claude-opus-5-5"]),
            prompt_version="3" if number > count / 2 else "2",
            shown_at=BEGIN + timedelta(seconds=dice.randrange(WEEKS * 7 * 86_400)),
        )
        for number in range(count)
    ]


def votes(dice: random.Random, shown: list[CardFacts], *, accuracy: float) -> list[Vote]:
    found = []
    for card in shown:
        right = dice.random() < accuracy
        for user in dice.sample(range(1, 9), dice.choice([0, 1, 1, 2])):
            verdict = "accurate" if right else "wrong"
            found.append(
                Vote(
                    card_id=card.card_id,
                    user_id=user,
                    user_login=f"reviewer-{user}",
                    verdict=verdict,
                    source=dice.choice(["reaction", "button"]),
                    is_pr_author=False,
                    voted_at=card.shown_at + timedelta(hours=dice.randrange(1, 48)),
                )
            )
    return found


def day(dice: random.Random) -> Day:
    risks = {name: dice.randrange(most) for name, most in (("trivial", 5), ("logic", 8), ("sensitive", 4))}
    total = sum(risks.values())
    checked = max(total - 1, 0)
    unavailable = min(total, dice.choice([0, 0, 0, 1]))
    return Day(
        cards=total,
        by_status={"ready": total - unavailable, "unavailable": unavailable},
        by_reason={"timeout": unavailable} if unavailable else {},
        by_risk=risks,
        raised=total // 3,
        checked=checked,
        disagreed=min(checked, dice.choice([0, 0, 1, 1, 2])),
        check_failed=dice.choice([0, 0, 0, 1]),
        injections=dice.choice([0] * 9 + [1]),
        llm_calls=total * 2,
        failed_calls={"timeout": unavailable} if unavailable else {},
        tokens=total * dice.randrange(9_000, 15_000),
        cost_usd=round(total * dice.uniform(0.03, 0.06), 4),
        latencies=[round(dice.uniform(25, 90), 1) for _ in range(total)],
        heads=total + 2,
        api_calls=(total + 2) * dice.randrange(9, 14),
        verdicts={"approve": total // 2, "review": total - total // 2},
        dead_work={"intent": 1} if dice.random() < 0.04 else {},
    )


def measured(dice: random.Random, begin: datetime, count: int, *, hours: float) -> list[Measured]:
    rows = []
    for number in range(count):
        started = begin + timedelta(hours=dice.uniform(0, 1_000))
        first = dice.lognormvariate(0, 0.9) * hours * 3_600
        merge = first + dice.lognormvariate(0, 0.8) * hours * 5_000
        reviewed = dice.random() < 0.93
        rows.append(
            Measured(
                pr_number=number + 1,
                author_kind=dice.choices(["human", "agent", "mixed"], [5, 4, 1])[0],
                risk_class=dice.choices(["trivial", "logic", "sensitive"], [4, 4, 2])[0],
                start_basis="opened",
                started_at=started,
                first_review_at=started + timedelta(seconds=first) if reviewed else None,
                merged_at=started + timedelta(seconds=merge) if reviewed else None,
                first_review_seconds=int(first) if reviewed else None,
                merge_seconds=int(merge) if reviewed else None,
                changed_lines=dice.randrange(1, 600),
                changed_files=dice.randrange(1, 20),
                excluded=dice.choice([None] * 8 + ["automation", "draft"]),
            )
        )
    return rows


def material(seed: int = 5, *, cards_shown: int = 320, accuracy: float = 0.955) -> Material:
    """Ten weeks of a pilot that goes well."""
    dice = random.Random(seed)
    shown = cards(dice, cards_shown)
    ratings = rate(shown, votes(dice, shown, accuracy=accuracy))
    until = BEGIN + timedelta(weeks=WEEKS)
    days: dict[date, Day] = {}
    for number in range(WEEKS * 7):
        when = (BEGIN + timedelta(days=number)).date()
        days[when] = day(dice) if when.weekday() < 5 else Day()
    merged = [
        MergedChange(
            repository="octo/shop",
            number=number,
            risk=dice.choices(["trivial", "logic", "sensitive"], [3, 5, 2])[0],
        )
        for number in range(1, 260)
    ]
    culprits = [change.number for change in merged if change.risk != "trivial"][:9]
    return Material(
        generated_at=until,
        since=BEGIN,
        until=until,
        repositories=("octo/billing", "octo/shop"),
        gate=gates.decide(ratings),
        ratings=ratings,
        participation=(231, 402),
        days=days,
        change_costs=[round(dice.lognormvariate(-2.9, 0.8), 5) for _ in range(300)],
        merged=merged,
        incidents=[
            Incident(
                id=f"incident-{number}",
                repository="octo/shop",
                issue_number=900 + number,
                culprit=number,
                fix=None,
                source="label",
                occurred_at=BEGIN + timedelta(days=place),
            )
            for place, number in enumerate(culprits)
        ],
        before=measured(dice, BEGIN - timedelta(weeks=WEEKS), 140, hours=7.5),
        after=measured(dice, BEGIN, 150, hours=4.6),
    )
