"""Money for model calls: reserved under the repository's daily budget before a call, settled after it.

The day is UTC, by the database's clock. What a killed process had reserved keeps counting at its estimate, so
a crash can only make Graft spend less. Amounts are US dollars.
"""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

from graft.database import Connection


async def reserve(
    connection: Connection,
    *,
    repository_id: int,
    change_id: UUID | None,
    purpose: str,
    model: str,
    estimate_usd: Decimal,
    budget_usd: Decimal,
) -> UUID | None:
    """A reservation, or `None` where the estimate does not fit into what is left of the repository's day.

    Must run in a transaction: two replicas that spend at once are put in line by a lock on the repository.
    """
    await connection.execute("SELECT 1 FROM repositories WHERE id = $1 FOR NO KEY UPDATE", repository_id)
    used = await used_today(connection, repository_id)
    if used + estimate_usd > budget_usd:
        return None
    reservation: UUID = await connection.fetchval(
        """
        INSERT INTO spend_reservations (repository_id, change_id, purpose, model, estimate_usd)
        VALUES ($1, $2, $3, $4, $5) RETURNING id
        """,
        repository_id,
        change_id,
        purpose,
        model,
        estimate_usd,
    )
    return reservation


async def used_today(connection: Connection, repository_id: int) -> Decimal:
    """What a repository has spent and promised since midnight UTC."""
    used: Decimal = await connection.fetchval(
        """
        SELECT coalesce((SELECT sum(cost_usd) FROM intent_spend
                          WHERE repository_id = $1
                            AND spent_at >= date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'), 0)
             + coalesce((SELECT sum(estimate_usd) FROM spend_reservations
                          WHERE repository_id = $1
                            AND reserved_at >= date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'),
                        0)
        """,
        repository_id,
    )
    return used


async def settle(
    connection: Connection, reservation: UUID, *, outcome: str, tokens: int, cost_usd: Decimal
) -> None:
    """Turn a reservation into a row of the ledger with what the call really cost. Settling twice does nothing."""
    await connection.execute(
        """
        WITH settled AS (DELETE FROM spend_reservations WHERE id = $1 RETURNING *)
        INSERT INTO intent_spend (repository_id, change_id, purpose, model, outcome, tokens, cost_usd)
        SELECT repository_id, change_id, purpose, model, $2, $3, $4 FROM settled
        """,
        reservation,
        outcome,
        tokens,
        cost_usd,
    )
