"""Work that failed for good: shown, revived or dropped by an operator."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from graft.database import Connection


class DeadRow(msgspec.Struct, frozen=True, kw_only=True):
    """A dead row, with its failure as metadata."""

    address: str
    name: str
    need: str
    dead_at: datetime
    attempts: int
    failure: dict[str, Any] | None
    head_sha: str | None
    installation_id: int
    repository_id: int | None
    first_asked_at: datetime
    forced: bool


async def listed(connection: Connection, *, match: str | None, limit: int) -> tuple[list[DeadRow], int]:
    """Dead rows, the latest first, and how many there are."""
    rows = await connection.fetch(
        """
        WITH named AS (
            SELECT w.address, w.need, w.dead_at, w.attempts, w.last_failure AS failure, w.head_sha,
                   w.installation_id, w.repository_id, w.first_asked_at, w.forced,
                   CASE WHEN r.id IS NULL THEN w.address
                        WHEN w.address LIKE 'pull.%' THEN r.full_name || '#' || split_part(w.address, '.', 3)
                        ELSE r.full_name END AS name
              FROM work w
              LEFT JOIN repositories r ON r.id = CASE WHEN w.address ~ '^(pull|repository)[.]'
                                                      THEN split_part(w.address, '.', 2)::bigint END
             WHERE w.dead_at IS NOT NULL
        )
        SELECT *, count(*) OVER () AS total FROM named
         WHERE $1::text IS NULL OR position(lower($1) IN lower(name)) > 0 OR position($1 IN address) > 0
         ORDER BY dead_at DESC, address, need LIMIT $2
        """,
        match,
        limit,
    )
    found = [DeadRow(**{key: value for key, value in dict(row).items() if key != "total"}) for row in rows]
    return found, rows[0]["total"] if rows else 0


async def revive(
    connection: Connection, *, address: str | None, need: str | None
) -> list[tuple[str, str, int]]:
    """Make dead rows due again with their attempts forgotten; (address, need, partition) of each."""
    rows = await connection.fetch(
        """
        UPDATE work SET dead_at = NULL, attempts = 0, due_at = now(), ask_seq = nextval('work_seq'),
               last_asked_at = now(), first_asked_at = now()
         WHERE dead_at IS NOT NULL AND ($1::text IS NULL OR address = $1) AND ($2::text IS NULL OR need = $2)
        RETURNING address, need, partition
        """,
        address,
        need,
    )
    return sorted((row["address"], row["need"], row["partition"]) for row in rows)


async def drop(connection: Connection, *, address: str | None, need: str | None) -> list[tuple[str, str]]:
    """Delete dead rows; (address, need) of each."""
    rows = await connection.fetch(
        """
        DELETE FROM work
         WHERE dead_at IS NOT NULL AND ($1::text IS NULL OR address = $1) AND ($2::text IS NULL OR need = $2)
        RETURNING address, need
        """,
        address,
        need,
    )
    return sorted((row["address"], row["need"]) for row in rows)
