"""What the report reads beside votes, incidents, review times and daily numbers."""

from __future__ import annotations

from datetime import date

import msgspec

from graft.database import Connection
from graft.store.ratings import Scope


class ChangeCost(msgspec.Struct, frozen=True, kw_only=True):
    """What the model calls for one change cost, over its whole life."""

    first_day: date
    cost_usd: float


async def costs(connection: Connection, scope: Scope) -> list[ChangeCost]:
    """The cost of every change that a model was first asked about in the period."""
    rows = await connection.fetch(
        """
        SELECT (min(spent_at) AT TIME ZONE 'UTC')::date AS first_day, sum(cost_usd)::float8 AS cost_usd
          FROM intent_spend
         WHERE change_id IS NOT NULL AND ($3::bigint[] IS NULL OR repository_id = ANY($3))
         GROUP BY change_id HAVING min(spent_at) >= $1 AND min(spent_at) < $2
         ORDER BY min(spent_at)
        """,
        scope.since,
        scope.until,
        scope.ids,
    )
    return [ChangeCost(**dict(row)) for row in rows]


async def repositories(connection: Connection, scope: Scope) -> list[str]:
    """The names of the repositories in scope that are still installed."""
    rows = await connection.fetch(
        """
        SELECT full_name FROM repositories
         WHERE removed_at IS NULL AND ($1::bigint[] IS NULL OR id = ANY($1)) ORDER BY full_name
        """,
        scope.ids,
    )
    return [row["full_name"] for row in rows]


async def dead_work(connection: Connection) -> dict[str, int]:
    """{need: how many} of the work that was given up."""
    rows = await connection.fetch(
        """
        SELECT split_part(need, ':', 1) AS need, count(*) AS count FROM work
         WHERE dead_at IS NOT NULL GROUP BY 1 ORDER BY 1
        """
    )
    return {row["need"]: row["count"] for row in rows}
