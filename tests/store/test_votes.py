"""Votes: one per card, user and source, the same whatever order they arrive in."""

from __future__ import annotations

from datetime import timedelta
from itertools import permutations
from uuid import UUID

from graft.database import Pool
from graft.store import cards, votes
from graft.store.cards import CardRow
from graft.store.changes import Change
from graft.store.votes import Vote

from .conftest import T0, card_row


def vote(
    card: CardRow, verdict: str = "accurate", *, at: int = 0, user: int = 9, source: str = "button"
) -> Vote:
    return Vote(
        card_id=card.id,
        change_id=card.change_id,
        user_id=user,
        user_login="rev",
        verdict=verdict,
        source=source,
        is_pr_author=False,
        voted_at=T0 + timedelta(seconds=at),
    )


async def standing(pool: Pool) -> list[tuple[int, str, str]]:
    rows = await pool.fetch(
        """
        SELECT user_id, source, verdict FROM intent_feedback WHERE withdrawn_at IS NULL
         ORDER BY user_id, source
        """
    )
    return [tuple(row) for row in rows]


async def test_the_latest_vote_stands_in_every_order_of_arrival(pool: Pool, card: CardRow) -> None:
    cast = [vote(card, "accurate", at=1), vote(card, "wrong", at=2), vote(card, "accurate", at=2)]
    for order in permutations(cast):
        async with pool.acquire() as connection:
            await connection.execute("DELETE FROM intent_feedback")
            for one in order:
                await votes.record(connection, one)
        assert await standing(pool) == [(9, "button", "wrong")]


async def test_recording_a_vote_again_changes_nothing(pool: Pool, card: CardRow) -> None:
    async with pool.acquire() as connection:
        assert await votes.record(connection, vote(card))
        assert not await votes.record(connection, vote(card))


async def test_a_removed_reaction_withdraws_and_leaves_buttons_alone(
    pool: Pool, change: Change, card: CardRow
) -> None:
    async with pool.acquire() as connection:
        for one in (
            vote(card, source="reaction"),
            vote(card, source="reaction", user=10),
            vote(card, user=11),
        ):
            await votes.record(connection, one)
        assert await votes.withdraw_missing(connection, change.id, [(card.id, 10)]) == 1
    assert await standing(pool) == [(10, "reaction", "accurate"), (11, "button", "accurate")]


async def test_a_reaction_made_anew_counts_again(pool: Pool, change: Change, card: CardRow) -> None:
    async with pool.acquire() as connection:
        await votes.record(connection, vote(card, source="reaction"))
        await votes.withdraw_missing(connection, change.id, [])
        assert await votes.record(connection, vote(card, source="reaction", at=5))
    assert await standing(pool) == [(9, "reaction", "accurate")]


async def test_a_reaction_belongs_to_the_card_that_was_on_display(
    pool: Pool, change: Change, card: CardRow
) -> None:
    later = card_row(change.id, head_sha="c" * 40)
    async with pool.acquire() as connection:
        await cards.put(connection, later)
        await cards.shown(connection, change.id, card.id, "ready", T0)
        await cards.shown(connection, change.id, None, "making", T0 + timedelta(seconds=10))
        await cards.shown(connection, change.id, later.id, "ready", T0 + timedelta(seconds=20))

        async def seen(at: int) -> UUID | None:
            return await cards.displayed_at(connection, change.id, T0 + timedelta(seconds=at))

        assert [await seen(-1), await seen(5), await seen(25)] == [None, card.id, later.id]


async def test_votes_on_a_carried_card_count_on_the_one_it_came_from(
    pool: Pool, change: Change, card: CardRow
) -> None:
    carried = card_row(change.id, head_sha="c" * 40, carried_from=card.id)
    async with pool.acquire() as connection:
        await cards.put(connection, carried)
        await cards.shown(connection, change.id, carried.id, "ready", T0)
        assert await cards.displayed_at(connection, change.id, T0) == card.id


async def test_showing_the_same_card_again_is_no_news(pool: Pool, change: Change, card: CardRow) -> None:
    async with pool.acquire() as connection:
        await cards.shown(connection, change.id, card.id, "ready", T0)
        await cards.shown(connection, change.id, card.id, "ready", T0 + timedelta(hours=1))
        assert await connection.fetchval("SELECT count(*) FROM intent_displays") == 1
        stored = await cards.latest(connection, change.id, card.head_sha)
    assert stored is not None
    assert stored.published_at == T0
