"""From votes to ratings: who counts, which of a person's votes counts, and when a card was right.

The rules, in order:

1. A vote that was taken back does not count, nor does one by a bot, nor (unless asked for) one by the author
   of the pull request: the card judges their work.
2. A person has one vote per card, the latest whatever it was given with. Of two at the same instant, “wrong”
   counts. The order in which votes arrive changes nothing.
3. A card is rated once somebody's vote on it counts. It was accurate if more people said so than said it was
   wrong; a tie counts as wrong.

Accuracy is the share of accurate cards among the rated ones. The unit is the card and not the vote, because
votes on one card are about the same words and would make the interval look narrower than it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from graft.pilot.figures import LEAST_FOR_SHARE, Figure, share

ACCURATE = "accurate"
WRONG = "wrong"

ACCURACY = (
    "Rated cards that more reviewers called accurate than wrong (a tie is wrong), among cards that a model wrote "
    "and at least one reviewer rated. One vote per reviewer and card, the latest; pull request authors and bots "
    "do not count."
)
ACCURACY_WITH_AUTHORS = ACCURACY.replace("pull request authors and bots do", "bots do")


class Vote(msgspec.Struct, frozen=True, kw_only=True):
    """One vote as it is stored: per card, user and source."""

    card_id: str
    user_id: int
    user_login: str
    verdict: str
    source: str
    is_pr_author: bool
    voted_at: datetime
    withdrawn: bool = False

    @property
    def is_bot(self) -> bool:
        return self.user_login.lower().endswith("[bot]")


class CardFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a rating can be split by. `shown_at` is when the card first stood in the comment."""

    card_id: str
    change_id: str
    repository: str
    risk: str
    model: str
    prompt_version: str
    shown_at: datetime


class Rating(msgspec.Struct, frozen=True, kw_only=True):
    """A card with the people who rated it."""

    card: CardFacts
    accurate: int
    wrong: int

    @property
    def is_accurate(self) -> bool:
        return self.accurate > self.wrong


def effective(votes: Iterable[Vote], *, include_authors: bool = False) -> dict[tuple[str, int], Vote]:
    """{(card, user): the vote that counts}."""
    counting: dict[tuple[str, int], Vote] = {}
    for vote in votes:
        if vote.withdrawn or vote.is_bot or (vote.is_pr_author and not include_authors):
            continue
        key = (vote.card_id, vote.user_id)
        other = counting.get(key)
        if other is None or _rank(vote) > _rank(other):
            counting[key] = vote
    return counting


def _rank(vote: Vote) -> tuple[datetime, bool, str]:
    return vote.voted_at, vote.verdict == WRONG, vote.source


def rate(cards: Iterable[CardFacts], votes: Iterable[Vote], *, include_authors: bool = False) -> list[Rating]:
    """The rated cards among `cards`, in the order they were shown. Votes on other cards are left aside."""
    tally: dict[str, list[int]] = {}
    for vote in effective(votes, include_authors=include_authors).values():
        counts = tally.setdefault(vote.card_id, [0, 0])
        counts[0 if vote.verdict == ACCURATE else 1] += 1
    found = [
        Rating(card=card, accurate=tally[card.card_id][0], wrong=tally[card.card_id][1])
        for card in cards
        if card.card_id in tally
    ]
    return sorted(found, key=lambda rating: (rating.card.shown_at, rating.card.card_id))


def accuracy(
    ratings: Sequence[Rating],
    *,
    key: str = "accuracy",
    name: str = "Accuracy of cards",
    include_authors: bool = False,
    needed: int = LEAST_FOR_SHARE,
) -> Figure:
    """The share of accurate cards with its 95 % Wilson interval."""
    return share(
        key=key,
        name=name,
        definition=ACCURACY_WITH_AUTHORS if include_authors else ACCURACY,
        successes=sum(rating.is_accurate for rating in ratings),
        sample=len(ratings),
        sample_of="rated cards",
        needed=needed,
    )


SPLITS: Mapping[str, Callable[[CardFacts], str]] = {
    "repository": lambda card: card.repository,
    "risk": lambda card: card.risk,
    "model": lambda card: card.model,
    "prompt": lambda card: card.prompt_version,
    "week": lambda card: week_of(card.shown_at),
    "month": lambda card: f"{card.shown_at:%Y-%m}",
}


def split(ratings: Iterable[Rating], by: str) -> dict[str, list[Rating]]:
    """Ratings by one of `SPLITS`, in the order of the names."""
    groups: dict[str, list[Rating]] = {}
    for rating in ratings:
        groups.setdefault(SPLITS[by](rating.card), []).append(rating)
    return dict(sorted(groups.items()))


def week_of(moment: datetime) -> str:
    """The ISO week of a time, in UTC as it is stored: `2026-W49`."""
    year, week, _ = moment.isocalendar()
    return f"{year}-W{week:02d}"
