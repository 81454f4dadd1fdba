"""Which votes count, and what a rating is: rules as properties, and one history with its answer counted by hand."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft.pilot import feedback
from graft.pilot.feedback import CardFacts, Vote, accuracy, effective, rate, split

T0 = datetime(2026, 12, 1, tzinfo=UTC)


def vote(**fields: object) -> Vote:
    facts: dict[str, object] = {
        "card_id": "a",
        "user_id": 1,
        "user_login": "ann",
        "verdict": "accurate",
        "source": "reaction",
        "is_pr_author": False,
        "voted_at": T0,
        **fields,
    }
    return Vote(**facts)  # type: ignore[arg-type]


def card(card_id: str = "a", **fields: object) -> CardFacts:
    facts: dict[str, object] = {
        "card_id": card_id,
        "change_id": f"change of {card_id}",
        "repository": "octo/demo",
        "risk": "logic",
        "model": "m",
        "prompt_version": "1",
        "shown_at": T0,
        **fields,
    }
    return CardFacts(**facts)  # type: ignore[arg-type]


USERS = {1: "ann", 2: "ben", 3: "dependabot[bot]"}
votes_strategy = st.lists(
    st.builds(
        lambda card_id, user, verdict, source, author, minute, withdrawn: vote(
            card_id=card_id,
            user_id=user,
            user_login=USERS[user],
            verdict=verdict,
            source=source,
            is_pr_author=author,
            voted_at=T0 + timedelta(minutes=minute),
            withdrawn=withdrawn,
        ),
        st.sampled_from("abc"),
        st.sampled_from([1, 2, 3]),
        st.sampled_from(["accurate", "wrong"]),
        st.sampled_from(["reaction", "button"]),
        st.booleans(),
        st.integers(0, 3),  # ties are frequent
        st.booleans(),
    ),
    max_size=14,
)


def reference(votes: list[Vote], *, include_authors: bool) -> dict[str, tuple[int, int]]:
    """{card: (accurate, wrong)} by trying every vote against every other."""
    standing = [
        v
        for v in votes
        if not v.withdrawn and "[bot]" not in v.user_login and (include_authors or not v.is_pr_author)
    ]
    found: dict[str, tuple[int, int]] = {}
    for name in {v.card_id for v in standing}:
        right = wrong = 0
        for user in {v.user_id for v in standing if v.card_id == name}:
            own = [v for v in standing if v.card_id == name and v.user_id == user]
            last = [v for v in own if all(v.voted_at >= other.voted_at for other in own)]
            if any(v.verdict == "wrong" for v in last):
                wrong += 1
            else:
                right += 1
        found[name] = (right, wrong)
    return found


@given(votes_strategy, st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_arrival_never_changes_the_result(
    votes: list[Vote], authors: bool, dice: random.Random
) -> None:
    shuffled = list(votes)
    dice.shuffle(shuffled)
    cards = [card(name) for name in "abc"]
    assert rate(cards, votes, include_authors=authors) == rate(cards, shuffled, include_authors=authors)
    one = {key: v.verdict for key, v in effective(votes, include_authors=authors).items()}
    assert one == {key: v.verdict for key, v in effective(shuffled, include_authors=authors).items()}


@given(votes_strategy, st.booleans())
def test_ratings_are_what_counting_by_hand_gives(votes: list[Vote], authors: bool) -> None:
    found = rate([card(name) for name in "abc"], votes, include_authors=authors)
    assert {r.card.card_id: (r.accurate, r.wrong) for r in found} == reference(votes, include_authors=authors)


@given(votes_strategy)
def test_a_vote_given_twice_counts_once(votes: list[Vote]) -> None:
    cards = [card(name) for name in "abc"]
    assert rate(cards, votes + votes) == rate(cards, votes)


@given(votes_strategy)
def test_withdrawn_bots_and_authors_might_as_well_not_have_voted(votes: list[Vote]) -> None:
    kept = [v for v in votes if not v.withdrawn and not v.is_pr_author and v.user_id != 3]
    cards = [card(name) for name in "abc"]
    assert rate(cards, votes) == rate(cards, kept)


def test_the_latest_vote_counts_across_sources() -> None:
    votes = [
        vote(source="button", verdict="accurate", voted_at=T0),
        vote(source="reaction", verdict="wrong", voted_at=T0 + timedelta(seconds=1)),
    ]
    [rating] = rate([card()], votes)
    assert (rating.accurate, rating.wrong) == (0, 1)


def test_taking_back_the_latest_lets_the_one_before_count_again() -> None:
    votes = [
        vote(source="button", verdict="accurate", voted_at=T0),
        vote(source="reaction", verdict="wrong", voted_at=T0 + timedelta(seconds=1), withdrawn=True),
    ]
    [rating] = rate([card()], votes)
    assert (rating.accurate, rating.wrong) == (1, 0)


def test_a_tie_is_wrong_and_a_majority_is_not() -> None:
    tie = [vote(user_id=1, verdict="accurate"), vote(user_id=2, verdict="wrong")]
    assert not rate([card()], tie)[0].is_accurate
    assert rate([card()], [*tie, vote(user_id=4, verdict="accurate")])[0].is_accurate


def test_accuracy_over_a_seeded_history() -> None:
    dice = random.Random(11)
    cards = [
        card(f"c{i}", risk=dice.choice(["trivial", "logic"]), shown_at=T0 + timedelta(days=i % 21))
        for i in range(90)
    ]
    verdicts = {c.card_id: dice.random() < 0.8 for c in cards[:70]}
    votes = [
        vote(card_id=name, user_id=user, verdict="accurate" if right else "wrong")
        for name, right in verdicts.items()
        for user in (1, 2)
    ]
    ratings = rate(cards, votes)
    figure = accuracy(ratings)
    assert (figure.sample, figure.value) == (70, sum(verdicts.values()) / 70)
    by_risk = split(ratings, "risk")
    assert list(by_risk) == ["logic", "trivial"]
    assert {name: len(group) for name, group in by_risk.items()} == {
        risk: sum(c.risk == risk for c in cards[:70]) for risk in ("logic", "trivial")
    }
    assert list(split(ratings, "week")) == ["2026-W49", "2026-W50", "2026-W51", "2026-W52"]


def test_votes_on_cards_outside_the_selection_are_left_aside() -> None:
    assert rate([card("a")], [vote(card_id="b")]) == []


@pytest.mark.parametrize(
    ("moment", "week"),
    [
        (datetime(2026, 12, 31, tzinfo=UTC), "2026-W53"),
        (datetime(2027, 1, 3, 23, 59, tzinfo=UTC), "2026-W53"),
        (datetime(2027, 1, 4, tzinfo=UTC), "2027-W01"),
    ],
)
def test_weeks_are_iso_weeks(moment: datetime, week: str) -> None:
    assert feedback.week_of(moment) == week
