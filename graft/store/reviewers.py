"""Who could have rated a change, and whom GitHub would not let us ask about."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import msgspec

from graft.database import Connection


class Reviewer(msgspec.Struct, frozen=True, kw_only=True):
    """A person who could have rated the change: because of a `review`, a `request` or a `vote`; `verified` when
    GitHub confirmed that they may write to the repository."""

    user_id: int
    user_login: str
    reason: str
    verified: bool


async def claim_sync(connection: Connection, change_id: UUID, *, every_seconds: float) -> bool:
    """Whether the reviewers of a change are due to be read again; claims the hour."""
    claimed = await connection.fetchval(
        """
        UPDATE changes SET reviewers_synced_at = now()
         WHERE id = $1 AND (reviewers_synced_at IS NULL
                            OR reviewers_synced_at <= now() - $2 * interval '1 second')
        RETURNING 1
        """,
        change_id,
        every_seconds,
    )
    return claimed is not None


async def voters(connection: Connection, change_id: UUID) -> dict[int, str]:
    """{user id: login} of everyone who voted on a change."""
    rows = await connection.fetch(
        "SELECT DISTINCT ON (user_id) user_id, user_login FROM intent_feedback WHERE change_id = $1",
        change_id,
    )
    return {row["user_id"]: row["user_login"] for row in rows}


async def denied(connection: Connection, change_id: UUID) -> set[int]:
    """Users about whom GitHub answered 403 or 404: not asked again."""
    rows = await connection.fetch(
        "SELECT user_id FROM reviewer_check_denials WHERE change_id = $1", change_id
    )
    return {row["user_id"] for row in rows}


async def put(connection: Connection, change_id: UUID, reviewers: Sequence[Reviewer]) -> None:
    """Add reviewers; one that was confirmed once stays confirmed."""
    await connection.executemany(
        """
        INSERT INTO pr_reviewers AS r (change_id, user_id, user_login, reason, verified)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (change_id, user_id) DO UPDATE SET user_login = excluded.user_login,
            reason = excluded.reason, verified = r.verified OR excluded.verified
        """,
        [(change_id, r.user_id, r.user_login, r.reason, r.verified) for r in reviewers],
    )


async def deny(connection: Connection, change_id: UUID, user_id: int, status: int) -> None:
    """Remember a refusal."""
    await connection.execute(
        """
        INSERT INTO reviewer_check_denials (change_id, user_id, status) VALUES ($1, $2, $3)
        ON CONFLICT DO NOTHING
        """,
        change_id,
        user_id,
        status,
    )
