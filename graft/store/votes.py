"""Reviewers' votes on cards: presses of a button until they are confirmed, then one row per (card, user,
source), the latest by the time GitHub gives."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from graft.database import Connection


class PendingVote(msgspec.Struct, frozen=True, kw_only=True):
    """A button that somebody pressed, not yet confirmed through the API."""

    delivery_id: str
    installation_id: int
    repository_id: int
    check_run_id: int
    user_id: int
    user_login: str
    user_is_bot: bool
    verdict: str
    voted_at: datetime


class Vote(msgspec.Struct, frozen=True, kw_only=True):
    """A confirmed vote."""

    card_id: UUID
    change_id: UUID
    user_id: int
    user_login: str
    verdict: str
    source: str
    is_pr_author: bool
    voted_at: datetime


async def hold(connection: Connection, votes: Sequence[PendingVote]) -> None:
    """Keep presses until the repository's actor confirms them."""
    await connection.executemany(
        """
        INSERT INTO pending_votes (delivery_id, installation_id, repository_id, check_run_id, user_id,
                                   user_login, user_is_bot, verdict, voted_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING
        """,
        [msgspec.structs.astuple(v) for v in votes],
    )


async def pending(connection: Connection, repository_id: int, *, limit: int = 200) -> list[PendingVote]:
    """The oldest presses of a repository that wait for confirmation."""
    rows = await connection.fetch(
        """
        SELECT delivery_id, installation_id, repository_id, check_run_id, user_id, user_login, user_is_bot,
               verdict, voted_at
          FROM pending_votes WHERE repository_id = $1 ORDER BY voted_at, delivery_id LIMIT $2
        """,
        repository_id,
        limit,
    )
    return [PendingVote(**dict(row)) for row in rows]


async def settle(connection: Connection, delivery_ids: Sequence[str]) -> None:
    """Forget presses that were recorded or refused."""
    await connection.execute(
        "DELETE FROM pending_votes WHERE delivery_id = ANY($1::text[])", list(delivery_ids)
    )


async def record(connection: Connection, vote: Vote) -> bool:
    """Store a vote unless a later one of the same user, card and source stands. True where something changed."""
    changed = await connection.fetchval(
        """
        INSERT INTO intent_feedback AS f
               (card_id, change_id, user_id, user_login, verdict, source, is_pr_author, voted_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (card_id, user_id, source) DO UPDATE SET verdict = excluded.verdict,
            user_login = excluded.user_login, voted_at = excluded.voted_at, withdrawn_at = NULL,
            is_pr_author = excluded.is_pr_author, recorded_at = now()
         WHERE (excluded.voted_at, excluded.verdict) > (f.voted_at, f.verdict)
            OR (f.withdrawn_at IS NOT NULL AND excluded.voted_at >= f.voted_at)
        RETURNING 1
        """,
        *msgspec.structs.astuple(vote),
    )
    return changed is not None


async def withdraw_missing(
    connection: Connection, change_id: UUID, standing: Sequence[tuple[UUID, int]]
) -> int:
    """Withdraw the reaction votes of a change that no reaction stands behind any more; how many."""
    withdrawn = await connection.fetch(
        """
        UPDATE intent_feedback f SET withdrawn_at = now()
         WHERE f.change_id = $1 AND f.source = 'reaction' AND f.withdrawn_at IS NULL
           AND NOT EXISTS (SELECT FROM unnest($2::uuid[], $3::bigint[]) AS s (card_id, user_id)
                            WHERE s.card_id = f.card_id AND s.user_id = f.user_id)
        RETURNING 1
        """,
        change_id,
        [card for card, _ in standing],
        [user for _, user in standing],
    )
    return len(withdrawn)


async def changes_to_poll(
    connection: Connection, *, recent_days: int, limit: int
) -> list[tuple[int, int, int]]:
    """(installation, repository, number) of changes whose comment may have gathered reactions: open ones and
    those closed within `recent_days`."""
    rows = await connection.fetch(
        """
        SELECT r.installation_id, c.repository_id, c.pr_number
          FROM changes c JOIN repositories r ON r.id = c.repository_id
          JOIN installations i ON i.id = r.installation_id
         WHERE c.graft_comment_id IS NOT NULL AND r.removed_at IS NULL AND i.suspended_at IS NULL
           AND i.deleted_at IS NULL
           AND (c.state = 'open' OR c.closed_at > now() - $1 * interval '1 day')
         ORDER BY c.pr_updated_at DESC LIMIT $2
        """,
        recent_days,
        limit,
    )
    return [(row["installation_id"], row["repository_id"], row["pr_number"]) for row in rows]
