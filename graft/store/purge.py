"""Removing everything of one installation, and proving it by counting.

`COVERED` names every table and how a purge reaches it; a test compares it with the database's own catalogue, so a
new table cannot be forgotten.
"""

from __future__ import annotations

import msgspec

from graft.database import Connection
from graft.errors import GraftError

_REPOSITORIES = "SELECT id FROM repositories WHERE installation_id = $1"
_CHANGES = f"SELECT id FROM changes WHERE repository_id IN ({_REPOSITORIES})"  # noqa: S608 - constants
_RUNS = f"SELECT id FROM review_time_runs WHERE repository_id IN ({_REPOSITORIES})"  # noqa: S608

_OF_REPOSITORY = f"repository_id IN ({_REPOSITORIES})"
_OF_CHANGE = f"change_id IN ({_CHANGES})"

# table -> which of its rows belong to installation $1.
COVERED: dict[str, str] = {
    "installations": "id = $1",
    "repositories": "installation_id = $1",
    "tasks": _OF_REPOSITORY,
    "changes": _OF_REPOSITORY,
    "check_runs": _OF_CHANGE,
    "provenance": _OF_CHANGE,
    "change_provenance": _OF_CHANGE,
    "intent_cards": _OF_CHANGE,
    "intent_displays": _OF_CHANGE,
    "intent_feedback": _OF_CHANGE,
    "intent_spend": _OF_REPOSITORY,
    "spend_reservations": _OF_REPOSITORY,
    "policy_verdicts": _OF_CHANGE,
    "guard_events": _OF_REPOSITORY,
    "pr_reviewers": _OF_CHANGE,
    "reviewer_check_denials": _OF_CHANGE,
    "review_time_runs": _OF_REPOSITORY,
    "review_time_prs": f"run_id IN ({_RUNS})",
    "incidents": _OF_REPOSITORY,
    "metrics_daily": _OF_REPOSITORY,
    "api_calls": _OF_REPOSITORY,
    # No foreign key leads to these: they are deleted by themselves.
    "webhook_deliveries": f"installation_id = $1 OR (installation_id IS NULL AND {_OF_REPOSITORY})",
    "work": f"installation_id = $1 OR address = 'installation.' || $1 OR (installation_id = 0 AND {_OF_REPOSITORY})",
    "pending_votes": "installation_id = $1",
    # Of a delivery that never came, only its random id stands here, for the days that GitHub keeps it.
    "recoveries": "delivery_id IN (SELECT delivery_id FROM webhook_deliveries WHERE installation_id = $1)",
}
# Tables that hold nothing of any installation but its number, or nothing at all.
KEPT: dict[str, str] = {
    "pilot_purges": "the tombstone: it says that the installation was purged, and drops its late triggers",
    "partitions": "shares of the work, of no installation",
    "replicas": "running processes",
    "schema_version": "the schema's own version",
}
# Deleted in this order; all other tables go with `installations`, by their foreign keys.
WITHOUT_KEY = ("recoveries", "work", "pending_votes", "webhook_deliveries")
_DELETED_DIRECTLY = (*WITHOUT_KEY, "installations")


class Purged(msgspec.Struct, frozen=True, kw_only=True):
    """What a purge removed, by table, and the repositories whose triggers may still lie in the broker."""

    rows: dict[str, int]
    repositories: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.rows.values())


class RowsLeft(GraftError):
    """A purge left rows behind; the transaction was rolled back. `tables` names them."""

    def __init__(self, tables: list[str]) -> None:
        super().__init__(f"rows of the installation are left in {', '.join(tables)}; nothing was removed")
        self.tables = tables


async def count(connection: Connection, installation_id: int) -> dict[str, int]:
    """How many rows each table has of an installation; tables without any are left out."""
    parts = [
        f"SELECT '{table}' AS name, count(*) AS rows FROM {table} WHERE {rows}"  # noqa: S608 - constants
        for table, rows in COVERED.items()
    ]
    found = await connection.fetch(" UNION ALL ".join(parts), installation_id)
    return {row["name"]: row["rows"] for row in found if row["rows"]}


async def repositories_of(connection: Connection, installation_id: int) -> tuple[int, ...]:
    """The repositories that an installation has or had."""
    rows = await connection.fetch(f"{_REPOSITORIES} ORDER BY id", installation_id)
    return tuple(row["id"] for row in rows)


async def purge(connection: Connection, installation_id: int, *, reason: str) -> Purged:
    """Delete every row of an installation and record it. Must run in a transaction.

    Whoever works for the installation at this moment loses its partition, so that nothing is written afterwards.
    A purge that finds nothing to remove leaves no second record. Raises RowsLeft when a count is not zero.
    """
    await connection.execute(
        f"""
        UPDATE partitions SET epoch = epoch + 1 WHERE partition IN (
            SELECT w.partition FROM work w WHERE {COVERED["work"]})
        """,  # noqa: S608 - constants
        installation_id,
    )
    repositories = await repositories_of(connection, installation_id)
    rows = await count(connection, installation_id)
    for table in _DELETED_DIRECTLY:
        await connection.execute(f"DELETE FROM {table} WHERE {COVERED[table]}", installation_id)  # noqa: S608
    left = await count(connection, installation_id)
    if left:
        raise RowsLeft(sorted(left))
    if rows or not await is_purged(connection, installation_id):
        await connection.execute(
            "INSERT INTO pilot_purges (installation_id, reason, rows_deleted) VALUES ($1, $2, $3)",
            installation_id,
            reason,
            rows,
        )
    return Purged(rows=rows, repositories=repositories)


async def is_purged(connection: Connection, installation_id: int) -> bool:
    """Whether the installation was purged before."""
    found = await connection.fetchval(
        "SELECT 1 FROM pilot_purges WHERE installation_id = $1", installation_id
    )
    return found is not None


async def deleted_for(connection: Connection, installation_id: int) -> float | None:
    """For how many days GitHub has not known the installation any more; `None` while it does."""
    days: float | None = await connection.fetchval(
        "SELECT extract(epoch FROM now() - deleted_at)::float8 / 86400 FROM installations WHERE id = $1",
        installation_id,
    )
    return days


async def due(connection: Connection, *, after_days: float) -> list[int]:
    """Installations to purge: deleted for `after_days`, or purged already with rows that came late."""
    rows = await connection.fetch(
        """
        SELECT id FROM installations WHERE deleted_at <= now() - $1 * interval '1 day'
         UNION
        SELECT p.installation_id FROM pilot_purges p
         WHERE EXISTS (SELECT FROM webhook_deliveries d WHERE d.installation_id = p.installation_id)
            OR EXISTS (SELECT FROM work w WHERE w.installation_id = p.installation_id)
            OR EXISTS (SELECT FROM pending_votes v WHERE v.installation_id = p.installation_id)
            OR EXISTS (SELECT FROM installations i WHERE i.id = p.installation_id)
         ORDER BY 1
        """,
        after_days,
    )
    return [row["id"] for row in rows]
