"""Which replica runs which share of the actors, as leases with epochs.

Every change of hands raises the partition's epoch, and every transaction that writes `work` first proves that
its epoch still stands (`guard`). A process that was frozen past its lease can therefore do no harm: its next
write is refused. Whoever locks several partitions does so in their order: a drain gives back while the keeper renews.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from graft.database import Connection
from graft.errors import GraftError
from graft.store.work import rehome

LEASE_SECONDS = 3.0


class LostPartition(GraftError):
    """Another replica holds the partition now; whatever was being done there belongs to it."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """A partition held by `holder`, valid while its epoch stands."""

    partition: int
    holder: str
    epoch: int


async def ensure(connection: Connection, count: int) -> int:
    """Create the partitions of a new database and return how many there are.

    The count belongs to the database: once set, `count` is ignored, so that replicas with different settings
    agree. `resize` changes it.
    """
    async with connection.transaction():
        await connection.execute("LOCK TABLE partitions IN SHARE ROW EXCLUSIVE MODE")
        existing: int = await connection.fetchval("SELECT count(*) FROM partitions")
        if existing:
            return existing
        await connection.execute(
            "INSERT INTO partitions (partition) SELECT generate_series(0, $1::int - 1)", count
        )
        return count


async def count(connection: Connection) -> int:
    """How many there are. Whoever has renewed or taken a lease in the same transaction may rely on it until its
    end, and until that lease is lost."""
    found: int = await connection.fetchval("SELECT count(*) FROM partitions")
    return found


async def resize(
    connection: Connection, count: int, partition_of: Callable[[str, int], int]
) -> tuple[int, int]:
    """Deal the work out anew in `count` partitions; returns how many there were, and how many addresses moved.

    One transaction: it takes every lease away and raises every epoch, so that whoever runs something under the old
    count finds out at its next write. Replicas take the new partitions when they next renew (a third of a lease).
    Work that is asked for meanwhile by somebody who knows only the old count is moved when it is found.
    """
    async with connection.transaction():
        # Waits for every transaction that has proved its lease, and has later ones wait.
        await connection.execute("LOCK TABLE partitions IN EXCLUSIVE MODE")
        before = await connection.fetchrow("SELECT count(*) AS count, max(epoch) AS epoch FROM partitions")
        assert before is not None
        await connection.execute("DELETE FROM partitions WHERE partition >= $1", count)
        await connection.execute(
            """
            INSERT INTO partitions (partition) SELECT generate_series(0, $1::int - 1) ON CONFLICT DO NOTHING
            """,
            count,
        )
        # Above every epoch there ever was: a partition that went and comes back must not repeat one.
        await connection.execute(
            "UPDATE partitions SET holder = NULL, lease_until = NULL, epoch = $1::bigint + 1",
            before["epoch"] or 0,
        )
        # In the order in which asks lock their rows.
        rows = await connection.fetch("SELECT address FROM work ORDER BY address, need FOR UPDATE")
        moved = await rehome(
            connection, {row["address"]: partition_of(row["address"], count) for row in rows}
        )
        return before["count"], moved


async def guard(connection: Connection, lease: Lease) -> None:
    """Hold the lease still until the transaction ends. Raises LostPartition where the epoch has moved on."""
    row = await connection.fetchval(
        "SELECT 1 FROM partitions WHERE partition = $1 AND epoch = $2 AND holder = $3 FOR SHARE",
        lease.partition,
        lease.epoch,
        lease.holder,
    )
    if row is None:
        raise LostPartition(f"partition {lease.partition} has changed hands")


async def guard_once(connection: Connection, lease: Lease) -> None:
    """Whether the lease stands at this moment. Raises LostPartition where it does not."""
    async with connection.transaction():
        await guard(connection, lease)


async def announce(connection: Connection, holder: str, *, version: str, draining: bool) -> None:
    """Say that a replica runs, so that the others can tell their fair share."""
    await connection.execute(
        """
        INSERT INTO replicas (holder, seen_until, draining, version)
        VALUES ($1, now() + $2 * interval '1 second', $3, $4)
        ON CONFLICT (holder) DO UPDATE SET seen_until = excluded.seen_until, draining = excluded.draining
        """,
        holder,
        LEASE_SECONDS,
        draining,
        version,
    )


async def renew(connection: Connection, holder: str) -> dict[int, int]:
    """Renew every lease still held and return {partition: epoch}."""
    rows = await connection.fetch(
        """
        WITH mine AS (SELECT partition FROM partitions WHERE holder = $1 ORDER BY partition FOR UPDATE)
        UPDATE partitions p SET lease_until = now() + $2 * interval '1 second'
          FROM mine WHERE p.partition = mine.partition RETURNING p.partition, p.epoch
        """,
        holder,
        LEASE_SECONDS,
    )
    return {row["partition"]: row["epoch"] for row in rows}


async def take(connection: Connection, holder: str) -> dict[int, int]:
    """Take free and expired partitions up to the fair share, and return those taken.

    The fair share is the count divided by the running replicas that are not draining, rounded up. A replica
    that is not announced takes nothing.
    """
    rows = await connection.fetch(
        """
        WITH running AS (
            SELECT count(*) AS replicas, coalesce(bool_or(holder = $1), false) AS me
              FROM replicas WHERE seen_until > now() AND NOT draining
        ), mine AS (
            SELECT count(*) FILTER (WHERE holder = $1) AS held, count(*) AS total FROM partitions
        ), free AS (
            SELECT partition FROM partitions
             WHERE (lease_until IS NULL OR lease_until < now()) AND holder IS DISTINCT FROM $1
             ORDER BY partition
             LIMIT (SELECT CASE WHEN me THEN greatest(0, ceil(total::numeric / greatest(replicas, 1)) - held)
                                ELSE 0 END FROM running, mine)::bigint
             FOR UPDATE SKIP LOCKED
        )
        UPDATE partitions p SET holder = $1, epoch = epoch + 1, lease_until = now() + $2 * interval '1 second'
          FROM free WHERE p.partition = free.partition RETURNING p.partition, p.epoch
        """,
        holder,
        LEASE_SECONDS,
    )
    return {row["partition"]: row["epoch"] for row in rows}


async def surplus(connection: Connection, holder: str) -> int:
    """How many partitions a replica holds beyond its fair share (another one has joined)."""
    count: int = await connection.fetchval(
        """
        WITH running AS (
            SELECT count(*) AS replicas FROM replicas WHERE seen_until > now() AND NOT draining
        )
        SELECT greatest(0, count(*) FILTER (WHERE holder = $1)
                           - ceil(count(*)::numeric / greatest((SELECT replicas FROM running), 1)))::int
          FROM partitions
        """,
        holder,
    )
    return count


async def give_back(connection: Connection, holder: str, partitions: list[int]) -> None:
    """Let go of partitions at once, without waiting for the lease to run out."""
    await connection.execute(
        """
        WITH mine AS (
            SELECT partition FROM partitions WHERE holder = $1 AND partition = ANY($2::int[])
             ORDER BY partition FOR UPDATE
        )
        UPDATE partitions p SET holder = NULL, lease_until = NULL, epoch = epoch + 1
          FROM mine WHERE p.partition = mine.partition
        """,
        holder,
        partitions,
    )


async def retire(connection: Connection, holder: str) -> None:
    """Forget a replica that has given everything back."""
    await connection.execute(
        "DELETE FROM replicas WHERE holder = $1 OR seen_until < now() - interval '1 day'", holder
    )
