"""What is to be done: one row per (address, need), however often and by whomever it was asked for.

Webhooks, sweeps, operators and recovery all ask in the same way, by merging into the row. Retry, settling and
rate-limit waits are the row's own `due_at`. A row is deleted only while its `ask_seq` is still the one that
was done, so a need asked for again in the meantime is done again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from graft.database import Connection

MAX_ATTEMPTS = 8
# Rows that an address seldom has more of; with more it only shares its turn with fewer others.
NEEDS_AT_ONCE = 12


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A wish that `need` be done at `address`.

    `asked_at` is when the event happened by GitHub's clock; it orders the heads that events name and nothing
    else. `revive` is true where a person or an
    event stands behind it; a sweep must not wake work that failed for good. `forced` asks for one run even if
    nothing changed.
    """

    address: str
    need: str
    partition: int
    asked_at: datetime
    installation_id: int = 0
    repository_id: int | None = None
    head_sha: str | None = None
    forced: bool = False
    revive: bool = True
    delay: float = 0.0
    trace: str | None = None


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """A row of work as its holder loaded it. `first_asked` and `last_asked` are seconds ago, by the database's
    clock."""

    address: str
    need: str
    ask_seq: int
    partition: int
    installation_id: int
    repository_id: int | None
    head_sha: str | None
    asked_at: datetime
    first_asked: float
    last_asked: float
    forced: bool
    attempts: int
    trace: str | None = None


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """An address with something due, and the newest head asked for."""

    address: str
    partition: int
    installation_id: int
    head_sha: str | None


def merged(asks: Iterable[Ask]) -> list[Ask]:
    """One ask per (address, need): the newest one's facts, forced or reviving if any was. In key order, so
    that two transactions never wait for each other crosswise."""
    rows: dict[tuple[str, str], Ask] = {}
    for ask in asks:
        key = (ask.address, ask.need)
        other = rows.get(key)
        if other is None:
            rows[key] = ask
            continue
        old, new = (other, ask) if _names_newer_head(ask, other) else (ask, other)
        rows[key] = msgspec.structs.replace(
            new,
            installation_id=new.installation_id or old.installation_id,
            repository_id=new.repository_id or old.repository_id,
            forced=new.forced or old.forced,
            revive=new.revive or old.revive,
            delay=min(new.delay, old.delay),
            trace=new.trace or old.trace,
        )
    return [rows[key] for key in sorted(rows)]


def _names_newer_head(ask: Ask, other: Ask) -> bool:
    if ask.head_sha is None:
        return False
    return other.head_sha is None or ask.asked_at >= other.asked_at


_ASK = """
INSERT INTO work AS w (address, need, partition, installation_id, repository_id, head_sha, asked_at, due_at, forced,
                       trace)
SELECT a.address, a.need, a.partition, a.installation_id, a.repository_id, a.head_sha, a.asked_at,
       now() + a.delay * interval '1 second', a.forced, a.trace
  FROM unnest($1::text[], $2::text[], $3::int[], $4::bigint[], $5::bigint[], $6::text[], $7::timestamptz[],
              $8::float8[], $9::bool[], $10::text[])
       AS a (address, need, partition, installation_id, repository_id, head_sha, asked_at, delay, forced, trace)
 ORDER BY a.address, a.need
ON CONFLICT (address, need) DO UPDATE SET
    ask_seq = nextval('work_seq'),
    trace = coalesce(excluded.trace, w.trace),
    installation_id = CASE WHEN excluded.installation_id <> 0 THEN excluded.installation_id
                           ELSE w.installation_id END,
    repository_id = coalesce(excluded.repository_id, w.repository_id),
    head_sha = CASE WHEN w.head_sha IS NULL OR (excluded.head_sha IS NOT NULL AND excluded.asked_at >= w.asked_at)
                    THEN excluded.head_sha ELSE w.head_sha END,
    asked_at = CASE WHEN w.head_sha IS NULL OR (excluded.head_sha IS NOT NULL AND excluded.asked_at >= w.asked_at)
                    THEN excluded.asked_at ELSE w.asked_at END,
    last_asked_at = now(),
    first_asked_at = CASE WHEN w.dead_at IS NULL THEN w.first_asked_at ELSE now() END,
    due_at = CASE WHEN w.dead_at IS NULL THEN least(w.due_at, excluded.due_at) ELSE excluded.due_at END,
    forced = w.forced OR excluded.forced,
    attempts = CASE WHEN w.dead_at IS NULL AND (excluded.head_sha IS NULL OR excluded.head_sha = w.head_sha)
                    THEN w.attempts ELSE 0 END,
    dead_at = NULL
"""


async def ask(connection: Connection, asks: Iterable[Ask]) -> None:
    """Merge the asks into their rows. Only a reviving ask touches a dead row."""
    rows = merged(asks)
    for revive, condition in ((True, ""), (False, " WHERE w.dead_at IS NULL")):
        part = [a for a in rows if a.revive is revive]
        if part:
            await connection.execute(_ASK + condition, *_columns(part))


def _columns(asks: Sequence[Ask]) -> tuple[list[Any], ...]:
    return (
        [a.address for a in asks],
        [a.need for a in asks],
        [a.partition for a in asks],
        [a.installation_id for a in asks],
        [a.repository_id for a in asks],
        [a.head_sha for a in asks],
        [a.asked_at for a in asks],
        [a.delay for a in asks],
        [a.forced for a in asks],
        [a.trace for a in asks],
    )


async def due(
    connection: Connection,
    partitions: Sequence[int],
    *,
    running: Sequence[str],
    per_installation: int,
    limit: int,
) -> list[Due]:
    """Addresses with due work in these partitions, taken round robin over the installations.

    Each installation offers its `per_installation` longest waiting addresses that are not `running`; the
    first ones of all come before the second ones of any. A suspended or deleted installation offers only
    `sync`: its other rows wait where they are. A long queue of one installation is counted and not read, because
    this is asked at every start and end of a run.
    """
    rows = await connection.fetch(
        """
        WITH queues AS (
            SELECT installation_id, min(due_at) AS since, bool_or(need = 'sync') AS sync
              FROM work WHERE partition = ANY($1::int[]) AND dead_at IS NULL AND due_at <= now()
             GROUP BY installation_id
        ), served AS (
            SELECT q.installation_id, i.id IS NULL OR (i.suspended_at IS NULL AND i.deleted_at IS NULL) AS active
              FROM queues q LEFT JOIN installations i ON i.id = q.installation_id
             WHERE q.sync OR i.id IS NULL OR (i.suspended_at IS NULL AND i.deleted_at IS NULL)
             -- Enough for every place, even if all of these have their share of runs already.
             ORDER BY q.since LIMIT 2 * $4::int
        ), ranked AS (
            SELECT found.*, s.installation_id,
                   row_number() OVER (PARTITION BY s.installation_id ORDER BY due_at, address) AS turn
              FROM served s CROSS JOIN LATERAL (
                SELECT address, partition, min(due_at) AS due_at,
                       (array_agg(head_sha ORDER BY asked_at DESC))[1] AS head_sha
                  FROM (SELECT * FROM work w
                         WHERE w.installation_id = s.installation_id AND w.dead_at IS NULL AND w.due_at <= now()
                           AND w.partition = ANY($1::int[]) AND NOT w.address = ANY($2::text[])
                           AND (s.active OR w.need = 'sync')
                         ORDER BY w.due_at LIMIT $3::int * $5::int) first
                 GROUP BY address, partition
              ) found
        )
        SELECT address, partition, installation_id, head_sha FROM ranked
         WHERE turn <= $3::int ORDER BY turn, due_at LIMIT $4::int
        """,
        list(partitions),
        list(running),
        per_installation,
        limit,
        NEEDS_AT_ONCE,
    )
    return [Due(**dict(row)) for row in rows]


async def beyond(connection: Connection, count: int) -> list[str]:
    """Addresses with live work in partitions that do not exist: asked for by somebody who knew only a larger
    count. At most a thousand at a time."""
    rows = await connection.fetch(
        "SELECT DISTINCT address FROM work WHERE partition >= $1 AND dead_at IS NULL LIMIT 1000", count
    )
    return [row["address"] for row in rows]


async def rehome(connection: Connection, partitions: Mapping[str, int]) -> int:
    """File the rows of each address in the partition given for it; returns how many addresses moved."""
    rows = await connection.fetch(
        """
        UPDATE work w SET partition = a.partition FROM unnest($1::text[], $2::int[]) AS a (address, partition)
         WHERE w.address = a.address AND w.partition <> a.partition RETURNING w.address
        """,
        list(partitions),
        list(partitions.values()),
    )
    return len({row["address"] for row in rows})


async def newest_heads(connection: Connection, addresses: Sequence[str]) -> dict[str, str]:
    """The newest head asked for at each address that has live work naming one."""
    rows = await connection.fetch(
        """
        SELECT DISTINCT ON (address) address, head_sha FROM work
         WHERE address = ANY($1::text[]) AND head_sha IS NOT NULL AND dead_at IS NULL
         ORDER BY address, asked_at DESC
        """,
        list(addresses),
    )
    return {row["address"]: row["head_sha"] for row in rows}


async def begin(connection: Connection) -> int:
    """A number for a run, drawn from the same sequence as the asks: a later run has a higher one, whoever
    holds the address. What a run publishes is as new as its number."""
    number: int = await connection.fetchval("SELECT nextval('work_seq')")
    return number


async def load(connection: Connection, address: str) -> list[Work]:
    """All that is due at an address now."""
    rows = await connection.fetch(
        """
        SELECT address, need, ask_seq, partition, installation_id, repository_id, head_sha, asked_at,
               extract(epoch FROM now() - first_asked_at)::float8 AS first_asked,
               extract(epoch FROM now() - last_asked_at)::float8 AS last_asked, forced, attempts, trace
          FROM work WHERE address = $1 AND dead_at IS NULL AND due_at <= now() ORDER BY need
        """,
        address,
    )
    return [Work(**dict(row)) for row in rows]


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A row that is not due: for how many more seconds, or for good when it is `dead`."""

    seconds: float
    dead: bool
    attempts: int


async def waiting(connection: Connection, address: str, need: str) -> Waiting | None:
    """The row of one need, if it is there and not due now."""
    row = await connection.fetchrow(
        """
        SELECT extract(epoch FROM due_at - now())::float8 AS seconds, dead_at IS NOT NULL AS dead, attempts
          FROM work WHERE address = $1 AND need = $2 AND (dead_at IS NOT NULL OR due_at > now())
        """,
        address,
        need,
    )
    return None if row is None else Waiting(**dict(row))


async def finish(connection: Connection, done: Iterable[Work]) -> None:
    """Delete the rows that were done, except those asked for again since."""
    rows = list(done)
    await connection.execute(
        """
        DELETE FROM work w USING unnest($1::text[], $2::text[], $3::bigint[]) AS d (address, need, ask_seq)
         WHERE w.address = d.address AND w.need = d.need AND w.ask_seq = d.ask_seq
        """,
        [w.address for w in rows],
        [w.need for w in rows],
        [w.ask_seq for w in rows],
    )


async def drop(connection: Connection, address: str, needs: Iterable[str], *, before: int) -> None:
    """Delete needs that have lost their point, due or not, unless they were asked for after `before`."""
    await connection.execute(
        "DELETE FROM work WHERE address = $1 AND need = ANY($2::text[]) AND ask_seq < $3",
        address,
        list(needs),
        before,
    )


async def postpone(
    connection: Connection, work: Work, *, seconds: float, failure: Mapping[str, Any] | None = None
) -> None:
    """Make a row due later. With a `failure` (metadata only) it counts as a failed attempt; without one it is
    a wait, and counts nothing. A forced run is forced once: its retries are ordinary ones. A row asked for
    again since is left alone."""
    await connection.execute(
        """
        UPDATE work SET due_at = now() + $4 * interval '1 second',
               attempts = attempts + CASE WHEN $5::jsonb IS NULL THEN 0 ELSE 1 END,
               last_failure = coalesce($5, last_failure),
               forced = forced AND $5::jsonb IS NULL,
               dead_at = CASE WHEN $5::jsonb IS NOT NULL AND attempts + 1 >= $6 THEN now() END
         WHERE address = $1 AND need = $2 AND ask_seq = $3
        """,
        work.address,
        work.need,
        work.ask_seq,
        seconds,
        failure,
        MAX_ATTEMPTS,
    )


async def bury(connection: Connection, work: Work, failure: Mapping[str, Any]) -> None:
    """A permanent failure: the row stays for the operator to see, and nothing runs it until it is asked anew."""
    await connection.execute(
        """
        UPDATE work SET dead_at = now(), attempts = attempts + 1, last_failure = $4
         WHERE address = $1 AND need = $2 AND ask_seq = $3
        """,
        work.address,
        work.need,
        work.ask_seq,
        failure,
    )


async def next_due_in(connection: Connection, partitions: Sequence[int]) -> timedelta | None:
    """How long until the next row of these partitions is due, `None` when nothing waits."""
    wait: timedelta | None = await connection.fetchval(
        "SELECT min(due_at) - now() FROM work WHERE partition = ANY($1::int[]) AND dead_at IS NULL",
        list(partitions),
    )
    return wait
