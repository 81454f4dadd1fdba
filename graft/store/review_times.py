"""Runs that measure review time, and what each found for every pull request: a run that was interrupted goes on
where it stopped."""

from __future__ import annotations

from datetime import date
from typing import Any
from uuid import UUID

import msgspec

from graft.database import Connection
from graft.pilot.review_time import Measured


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run. `settings` are those it was measured with; `done` the pull requests that are measured."""

    id: UUID
    settings: dict[str, Any]
    finished: bool
    done: frozenset[int]


async def begin(
    connection: Connection, repository_id: int, period: str, first: date, last: date, settings: dict[str, Any]
) -> RunRow:
    """The run of this repository, period and date range, made if there is none."""
    await connection.execute(
        """
        INSERT INTO review_time_runs (repository_id, period, from_date, to_date, settings)
        VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING
        """,
        repository_id,
        period,
        first,
        last,
        settings,
    )
    row = await connection.fetchrow(
        """
        SELECT id, settings, finished_at IS NOT NULL AS finished FROM review_time_runs
         WHERE repository_id = $1 AND period = $2 AND from_date = $3 AND to_date = $4
        """,
        repository_id,
        period,
        first,
        last,
    )
    assert row is not None
    done = await connection.fetch("SELECT pr_number FROM review_time_prs WHERE run_id = $1", row["id"])
    return RunRow(
        id=row["id"],
        settings=row["settings"],
        finished=row["finished"],
        done=frozenset(each["pr_number"] for each in done),
    )


async def discard(connection: Connection, run_id: UUID) -> None:
    """Forget a run and all it measured."""
    await connection.execute("DELETE FROM review_time_runs WHERE id = $1", run_id)


async def put(connection: Connection, run_id: UUID, row: Measured) -> None:
    """Store one measured pull request; measuring it again replaces it."""
    await connection.execute(
        """
        INSERT INTO review_time_prs (run_id, pr_number, author_kind, risk_class, start_basis, started_at,
               first_review_at, merged_at, first_review_seconds, merge_seconds, changed_lines, changed_files, excluded)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
        ON CONFLICT (run_id, pr_number) DO UPDATE SET author_kind = excluded.author_kind,
            risk_class = excluded.risk_class, start_basis = excluded.start_basis, started_at = excluded.started_at,
            first_review_at = excluded.first_review_at, merged_at = excluded.merged_at,
            first_review_seconds = excluded.first_review_seconds, merge_seconds = excluded.merge_seconds,
            changed_lines = excluded.changed_lines, changed_files = excluded.changed_files,
            excluded = excluded.excluded
        """,
        run_id,
        *msgspec.structs.astuple(row),
    )


async def finish(connection: Connection, run_id: UUID) -> None:
    """Mark a run as whole."""
    await connection.execute("UPDATE review_time_runs SET finished_at = now() WHERE id = $1", run_id)


async def rows(connection: Connection, run_id: UUID) -> list[Measured]:
    """What a run measured, by number."""
    found = await connection.fetch(
        """
        SELECT pr_number, author_kind, risk_class, start_basis, started_at, first_review_at, merged_at,
               first_review_seconds, merge_seconds, changed_lines, changed_files, excluded
          FROM review_time_prs WHERE run_id = $1 ORDER BY pr_number
        """,
        run_id,
    )
    return [Measured(**dict(row)) for row in found]


async def newest(connection: Connection, period: str, repositories: list[int] | None) -> list[Measured]:
    """What the newest finished run of each repository measured, all together."""
    found = await connection.fetch(
        """
        SELECT p.pr_number, p.author_kind, p.risk_class, p.start_basis, p.started_at, p.first_review_at, p.merged_at,
               p.first_review_seconds, p.merge_seconds, p.changed_lines, p.changed_files, p.excluded
          FROM review_time_prs p
         WHERE p.run_id IN (SELECT DISTINCT ON (repository_id) id FROM review_time_runs
                             WHERE period = $1 AND finished_at IS NOT NULL
                               AND ($2::bigint[] IS NULL OR repository_id = ANY($2))
                             ORDER BY repository_id, to_date DESC, finished_at DESC)
         ORDER BY p.started_at, p.pr_number
        """,
        period,
        repositories,
    )
    return [Measured(**dict(row)) for row in found]


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What Graft's own rows say of a pull request."""

    author_kind: str | None
    risk_floor: str | None


async def known(connection: Connection, repository_id: int, number: int) -> Known:
    """Author kind and risk floor of a pull request, as far as Graft has seen it."""
    row = await connection.fetchrow(
        """
        SELECT p.author_kind, (SELECT k.risk_floor FROM intent_cards k WHERE k.change_id = c.id
                                ORDER BY k.created_at DESC LIMIT 1) AS risk_floor
          FROM changes c LEFT JOIN change_provenance p ON p.change_id = c.id
         WHERE c.repository_id = $1 AND c.pr_number = $2
        """,
        repository_id,
        number,
    )
    return Known(author_kind=None, risk_floor=None) if row is None else Known(**dict(row))
