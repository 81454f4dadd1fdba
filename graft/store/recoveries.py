"""Which deliveries GitHub was asked to send again, and how often: the bound on recovery.

A delivery that never arrived has no row among `webhook_deliveries`, so its tries are counted here. Rows are
forgotten once GitHub has forgotten the delivery as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from graft.database import Connection


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """How often a delivery was asked for, and how many seconds ago last. A `settled` one needs nothing more:
    its answer shows that nobody has to act on it."""

    tries: int
    seconds_ago: float
    settled: bool


async def known(connection: Connection, delivery_ids: Sequence[str]) -> dict[str, str]:
    """The status of those deliveries that a row knows."""
    rows = await connection.fetch(
        "SELECT delivery_id, status FROM webhook_deliveries WHERE delivery_id = ANY($1::text[])",
        list(delivery_ids),
    )
    return {row["delivery_id"]: row["status"] for row in rows}


async def tried(connection: Connection, delivery_ids: Sequence[str]) -> dict[str, Recovery]:
    """What was done about these deliveries so far."""
    rows = await connection.fetch(
        """
        SELECT delivery_id, tries, settled, extract(epoch FROM now() - last_at)::float8 AS seconds_ago
          FROM recoveries WHERE delivery_id = ANY($1::text[])
        """,
        list(delivery_ids),
    )
    return {
        row["delivery_id"]: Recovery(
            tries=row["tries"], seconds_ago=row["seconds_ago"], settled=row["settled"]
        )
        for row in rows
    }


async def note(connection: Connection, delivery_id: str, *, settled: bool = False) -> None:
    """Count one try, or note that nothing has to be done about it."""
    await connection.execute(
        """
        INSERT INTO recoveries AS r (delivery_id, tries, settled)
        VALUES ($1, CASE WHEN $2 THEN 0 ELSE 1 END, $2)
        ON CONFLICT (delivery_id) DO UPDATE SET tries = r.tries + excluded.tries,
            settled = r.settled OR excluded.settled, last_at = now()
        """,
        delivery_id,
        settled,
    )


async def forget(connection: Connection, *, days: float) -> int:
    """Drop what is older than GitHub's own memory; how many rows."""
    rows = await connection.fetch(
        "DELETE FROM recoveries WHERE last_at < now() - $1 * interval '1 day' RETURNING 1", days
    )
    return len(rows)
