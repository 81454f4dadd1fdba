"""The budget as a gate for model calls: reserved in Postgres before each call, settled after it."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

import msgspec

from graft.database import Pool
from graft.store import spend


class Reserved(msgspec.Struct, frozen=True, kw_only=True):
    """Leave to make one call, backed by a row that counts until it is settled."""

    pool: Pool
    reservation: UUID

    async def settle(self, *, outcome: str, tokens: int, cost_usd: Decimal) -> None:
        """Replace the promise by what the call cost."""
        async with self.pool.acquire() as connection:
            await spend.settle(
                connection, self.reservation, outcome=outcome, tokens=tokens, cost_usd=cost_usd
            )


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The daily budget of one repository, for the calls of one change."""

    pool: Pool
    repository_id: int
    change_id: UUID
    daily_usd: Decimal

    async def reserve(self, *, purpose: str, model: str, estimate_usd: Decimal) -> Reserved | None:
        """A permit, or `None` where the estimate does not fit into what is left of the day."""
        async with self.pool.acquire() as connection, connection.transaction():
            reservation = await spend.reserve(
                connection,
                repository_id=self.repository_id,
                change_id=self.change_id,
                purpose=purpose,
                model=model,
                estimate_usd=estimate_usd,
                budget_usd=self.daily_usd,
            )
        return None if reservation is None else Reserved(pool=self.pool, reservation=reservation)
