"""What operators see of the whole: replicas, work, actors, installations and money. Reads only.

Ages and waits are seconds by the database's clock. An address is named by the repository it belongs to where
a row knows it (`octo/demo#7`), and by itself where none does.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import msgspec

from graft.database import Connection


class ReplicaRow(msgspec.Struct, frozen=True, kw_only=True):
    """A replica that was seen within the length of a lease."""

    holder: str
    version: str
    started_at: datetime
    draining: bool
    partitions: list[int]


class WorkCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of work by what they wait for; `parked` ones wait for a suspended or removed installation."""

    due: int
    waiting: int
    parked: int
    dead: int
    oldest_due_seconds: float | None


class ActorRow(msgspec.Struct, frozen=True, kw_only=True):
    """An address with work. `state` is `due`, `waiting`, `parked` or `dead`: the first that fits a row."""

    address: str
    name: str
    state: str
    needs: list[str]
    partition: int
    holder: str | None
    due_seconds: float
    age_seconds: float
    attempts: int
    failure: str | None


class SpendRow(msgspec.Struct, frozen=True, kw_only=True):
    """What models cost one repository today."""

    repository: str
    spent: Decimal
    reserved: Decimal
    calls: int
    tokens: int


async def replicas(connection: Connection) -> list[ReplicaRow]:
    """The running replicas with the partitions each of them holds now."""
    rows = await connection.fetch(
        """
        SELECT r.holder, r.version, r.started_at, r.draining,
               array(SELECT p.partition FROM partitions p
                      WHERE p.holder = r.holder AND p.lease_until > now() ORDER BY p.partition) AS partitions
          FROM replicas r WHERE r.seen_until > now() ORDER BY r.started_at, r.holder
        """
    )
    return [ReplicaRow(**dict(row)) for row in rows]


async def unheld(connection: Connection) -> list[int]:
    """Partitions that nobody holds at this moment."""
    rows = await connection.fetch(
        """
        SELECT partition FROM partitions
         WHERE holder IS NULL OR lease_until IS NULL OR lease_until <= now() ORDER BY partition
        """
    )
    return [row["partition"] for row in rows]


async def work_counts(connection: Connection) -> WorkCounts:
    """How many rows of work wait for what. The lead's own schedule is no work."""
    row = await connection.fetchrow(
        """
        WITH inactive AS (
            SELECT id FROM installations WHERE suspended_at IS NOT NULL OR deleted_at IS NOT NULL
        ), rows AS (
            SELECT w.due_at, w.dead_at, w.need <> 'sync' AND i.id IS NOT NULL AS parked
              FROM work w LEFT JOIN inactive i ON i.id = w.installation_id WHERE w.address <> 'lead'
        )
        SELECT count(*) FILTER (WHERE dead_at IS NULL AND NOT parked AND due_at <= now()) AS due,
               count(*) FILTER (WHERE dead_at IS NULL AND NOT parked AND due_at > now()) AS waiting,
               count(*) FILTER (WHERE dead_at IS NULL AND parked) AS parked,
               count(*) FILTER (WHERE dead_at IS NOT NULL) AS dead,
               extract(epoch FROM now() - min(due_at)
                       FILTER (WHERE dead_at IS NULL AND NOT parked AND due_at <= now()))::float8
               AS oldest_due_seconds
          FROM rows
        """
    )
    assert row is not None
    return WorkCounts(**dict(row))


async def installation_counts(connection: Connection) -> dict[str, int]:
    """Installations by state."""
    row = await connection.fetchrow(
        """
        SELECT count(*) FILTER (WHERE deleted_at IS NULL AND suspended_at IS NULL) AS active,
               count(*) FILTER (WHERE deleted_at IS NULL AND suspended_at IS NOT NULL) AS suspended,
               count(*) FILTER (WHERE deleted_at IS NOT NULL) AS deleted
          FROM installations
        """
    )
    assert row is not None
    return dict(row)


async def change_counts(connection: Connection) -> tuple[int, dict[str, int]]:
    """How many repositories Graft works on, and how many changes it knows by state."""
    repositories: int = await connection.fetchval(
        "SELECT count(*) FROM repositories WHERE removed_at IS NULL"
    )
    rows = await connection.fetch("SELECT state, count(*) AS n FROM changes GROUP BY state ORDER BY state")
    return repositories, {row["state"]: row["n"] for row in rows}


async def actors(
    connection: Connection, *, match: str | None, state: str | None, sort: str, limit: int
) -> tuple[list[ActorRow], int]:
    """The first `limit` addresses that have work, in the order asked for, and how many there are.

    `match` is part of a repository's name (upper and lower case alike), such a part with `#` and a number, or
    part of an address; `sort` is `due`, `name`, `attempts` or `age`.
    """
    part, _, number = (match or "").partition("#")
    # Tens of thousands may have work: what only the chosen ones show is looked up for those alone.
    rows = await connection.fetch(
        """
        WITH inactive AS (
            SELECT id FROM installations WHERE suspended_at IS NOT NULL OR deleted_at IS NOT NULL
        ), grouped AS (
            SELECT w.address, min(w.partition) AS partition, max(w.repository_id) AS repository_id,
                   min(CASE WHEN w.dead_at IS NOT NULL THEN 3
                            WHEN i.id IS NOT NULL AND w.need <> 'sync' THEN 2
                            WHEN w.due_at > now() THEN 1 ELSE 0 END) AS stage,
                   min(w.due_at) AS due_at, min(w.first_asked_at) AS asked_at, max(w.attempts) AS attempts
              FROM work w LEFT JOIN inactive i ON i.id = w.installation_id
             WHERE $1 = '' OR position($1 IN w.address) > 0
                OR (w.repository_id IN (SELECT id FROM repositories WHERE position(lower($1) IN lower(full_name)) > 0)
                    AND ($2 = '' OR w.address LIKE 'pull.%.' || $2))
             GROUP BY w.address
        ), named AS (
            SELECT g.*, r.full_name, CASE $4 WHEN 'name' THEN lower(r.full_name) END COLLATE "C" AS word,
                   CASE $4 WHEN 'attempts' THEN -g.attempts END AS tries,
                   CASE $4 WHEN 'age' THEN g.asked_at WHEN 'due' THEN g.due_at END AS moment
              FROM grouped g LEFT JOIN repositories r ON r.id = g.repository_id
             WHERE $3::text IS NULL OR g.stage = array_position(ARRAY['due', 'waiting', 'parked', 'dead'], $3) - 1
        ), chosen AS (
            SELECT *, (SELECT count(*) FROM named) AS total FROM named
             ORDER BY tries, moment, word, address COLLATE "C" LIMIT $5
        )
        SELECT c.address, c.partition, c.attempts, c.total,
               (ARRAY['due', 'waiting', 'parked', 'dead'])[c.stage + 1] AS state,
               coalesce(c.full_name || CASE WHEN c.address LIKE 'pull.%'
                                            THEN '#' || split_part(c.address, '.', 3) ELSE '' END, c.address) AS name,
               array(SELECT w.need FROM work w WHERE w.address = c.address ORDER BY w.need) AS needs,
               (SELECT max(w.last_failure ->> 'reason') FROM work w WHERE w.address = c.address) AS failure,
               extract(epoch FROM c.due_at - now())::float8 AS due_seconds,
               extract(epoch FROM now() - c.asked_at)::float8 AS age_seconds,
               CASE WHEN p.lease_until > now() THEN p.holder END AS holder
          FROM chosen c LEFT JOIN partitions p ON p.partition = c.partition
         ORDER BY c.tries, c.moment, c.word, c.address COLLATE "C"
        """,
        part,
        number,
        state,
        sort,
        limit,
    )
    found = [
        ActorRow(**{name: value for name, value in dict(row).items() if name != "total"}) for row in rows
    ]
    return found, rows[0]["total"] if rows else 0


async def names(connection: Connection, addresses: list[str]) -> dict[str, str]:
    """The names of addresses whose repository is known."""
    rows = await connection.fetch(
        """
        SELECT a.address, r.full_name || CASE WHEN a.address LIKE 'pull.%'
                                              THEN '#' || split_part(a.address, '.', 3) ELSE '' END AS name
          FROM unnest($1::text[]) AS a (address)
          JOIN repositories r ON r.id = CASE WHEN a.address ~ '^(pull|repository)[.]'
                                             THEN split_part(a.address, '.', 2)::bigint END
        """,
        addresses,
    )
    return {row["address"]: row["name"] for row in rows}


async def spend_today(
    connection: Connection, *, match: str | None, limit: int
) -> tuple[list[SpendRow], Decimal, Decimal]:
    """Repositories by what they cost since midnight UTC, dearest first; what all of them cost today, and in
    the last 30 days."""
    rows = await connection.fetch(
        """
        WITH spent AS (
            SELECT repository_id, sum(cost_usd) AS spent, count(*) AS calls, sum(tokens) AS tokens
              FROM intent_spend
             WHERE spent_at >= date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'
             GROUP BY repository_id
        ), reserved AS (
            SELECT repository_id, sum(estimate_usd) AS reserved FROM spend_reservations
             WHERE reserved_at >= date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'
             GROUP BY repository_id
        )
        SELECT r.full_name AS repository, coalesce(s.spent, 0) AS spent, coalesce(h.reserved, 0) AS reserved,
               coalesce(s.calls, 0) AS calls, coalesce(s.tokens, 0)::bigint AS tokens
          FROM repositories r LEFT JOIN spent s ON s.repository_id = r.id
          LEFT JOIN reserved h ON h.repository_id = r.id
         WHERE (s.repository_id IS NOT NULL OR h.repository_id IS NOT NULL OR $1::text IS NOT NULL)
           AND ($1::text IS NULL OR position(lower($1) IN lower(r.full_name)) > 0)
         ORDER BY coalesce(s.spent, 0) + coalesce(h.reserved, 0) DESC, r.full_name LIMIT $2
        """,
        match,
        limit,
    )
    totals = await connection.fetchrow(
        """
        SELECT coalesce(sum(cost_usd) FILTER (
                    WHERE spent_at >= date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'), 0) AS today,
               coalesce(sum(cost_usd), 0) AS month
          FROM intent_spend WHERE spent_at >= now() - interval '30 days'
        """
    )
    assert totals is not None
    return [SpendRow(**dict(row)) for row in rows], totals["today"], totals["month"]


async def vote_counts(connection: Connection) -> dict[tuple[str, str], int]:
    """Standing votes by (verdict, source)."""
    rows = await connection.fetch(
        """
        SELECT verdict, source, count(*) AS n FROM intent_feedback WHERE withdrawn_at IS NULL
         GROUP BY verdict, source
        """
    )
    return {(row["verdict"], row["source"]): row["n"] for row in rows}
