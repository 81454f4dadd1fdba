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


async def wait(connection: Connection, change_id: UUID, *, every_seconds: float) -> float:
    """Seconds until the reviewers of a change may be read again; 0 when they may be now."""
    seconds: float | None = await connection.fetchval(
        """
        SELECT extract(epoch FROM reviewers_synced_at - now())::float8 + $2::float8 FROM changes WHERE id = $1
        """,
        change_id,
        every_seconds,
    )
    return max(0.0, seconds or 0.0)


async def synced(connection: Connection, change_id: UUID) -> None:
    """Note that the reviewers of a change were read just now."""
    await connection.execute("UPDATE changes SET reviewers_synced_at = now() WHERE id = $1", change_id)


async def verified(connection: Connection, change_id: UUID) -> set[int]:
    """Users whom GitHub confirmed already: not asked again."""
    rows = await connection.fetch(
        "SELECT user_id FROM pr_reviewers WHERE change_id = $1 AND verified", change_id
    )
    return {row["user_id"] for row in rows}


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
