"""Spend: reserved before a call, settled after it, and never more than the day's budget."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from uuid import UUID

from graft.database import Pool
from graft.store import spend
from graft.store.changes import Change


async def reserve(pool: Pool, change: Change, estimate: str, budget: str = "1.00") -> UUID | None:
    async with pool.acquire() as connection, connection.transaction():
        return await spend.reserve(
            connection,
            repository_id=change.repository_id,
            change_id=change.id,
            purpose="writer",
            model="m",
            estimate_usd=Decimal(estimate),
            budget_usd=Decimal(budget),
        )


async def used(pool: Pool) -> Decimal:
    async with pool.acquire() as connection:
        return await spend.used_today(connection, 70)


async def test_two_replicas_spending_at_once_stay_within_the_budget(pool: Pool, change: Change) -> None:
    granted = await asyncio.gather(*(reserve(pool, change, "0.30") for _ in range(8)))
    assert sum(one is not None for one in granted) == 3
    assert await used(pool) == Decimal("0.90")


async def test_a_reservation_counts_until_it_is_settled_at_its_real_cost(pool: Pool, change: Change) -> None:
    reservation = await reserve(pool, change, "0.80")
    assert reservation is not None
    async with pool.acquire() as connection:
        for _ in range(2):  # settling twice writes one row
            await spend.settle(connection, reservation, outcome="ok", tokens=10, cost_usd=Decimal("0.05"))
    assert await used(pool) == Decimal("0.05")
    assert await pool.fetchval("SELECT count(*) FROM intent_spend") == 1


async def test_what_a_killed_process_had_reserved_keeps_counting(pool: Pool, change: Change) -> None:
    await reserve(pool, change, "0.80")
    assert await reserve(pool, change, "0.30") is None


async def test_the_day_begins_at_midnight_utc(pool: Pool, change: Change) -> None:
    await reserve(pool, change, "0.80")
    await pool.execute("UPDATE spend_reservations SET reserved_at = now() - interval '25 hours'")
    assert await used(pool) == 0
    assert await reserve(pool, change, "0.80") is not None
