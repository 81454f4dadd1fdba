"""How many requests to GitHub the work on a repository's pull requests took, by day."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from graft.database import Connection


async def add(connection: Connection, counted: Mapping[tuple[int, date], int]) -> None:
    """Add to the counts; a repository that no row knows is left out."""
    rows = sorted(counted.items())
    await connection.execute(
        """
        INSERT INTO api_calls AS a (repository_id, day, calls)
        SELECT c.repository_id, c.day, c.calls
          FROM unnest($1::bigint[], $2::date[], $3::bigint[]) AS c (repository_id, day, calls)
          JOIN repositories r ON r.id = c.repository_id
         ORDER BY c.repository_id, c.day
        ON CONFLICT (repository_id, day) DO UPDATE SET calls = a.calls + excluded.calls
        """,
        [repository for (repository, _), _ in rows],
        [day for (_, day), _ in rows],
        [calls for _, calls in rows],
    )
