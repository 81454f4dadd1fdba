"""Everything that is stored of one pull request, for operators. Reads only, and nothing is computed here."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from graft.database import Connection


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """The change itself. `inactive` says why Graft leaves it alone: `removed`, `suspended` or `deleted`."""

    id: UUID
    name: str
    full_name: str
    repository_id: int
    pr_number: int
    installation_id: int
    state: str
    draft: bool
    author_login: str | None
    author_is_bot: bool
    head_sha: str
    base_ref: str
    opened_at: datetime | None
    pr_updated_at: datetime
    graft_comment_id: int | None
    task_linked: bool
    inactive: str | None


class Needed(msgspec.Struct, frozen=True, kw_only=True):
    """A need that is not done yet."""

    need: str
    state: str
    due_seconds: float
    age_seconds: float
    attempts: int
    forced: bool
    failure: dict[str, Any] | None


async def find(connection: Connection, full_name: str, number: int) -> Subject | None:
    """The change of `full_name#number`, upper and lower case alike. Of two repositories that have had this
    name the one that is still installed counts."""
    row = await connection.fetchrow(
        """
        SELECT c.id, r.full_name || '#' || c.pr_number AS name, r.full_name, c.repository_id, c.pr_number,
               r.installation_id, c.state, c.draft, c.author_login, c.author_is_bot, c.head_sha, c.base_ref,
               c.opened_at, c.pr_updated_at, c.graft_comment_id, c.task_id IS NOT NULL AS task_linked,
               CASE WHEN i.deleted_at IS NOT NULL THEN 'deleted' WHEN r.removed_at IS NOT NULL THEN 'removed'
                    WHEN i.suspended_at IS NOT NULL THEN 'suspended' END AS inactive
          FROM repositories r JOIN changes c ON c.repository_id = r.id
          JOIN installations i ON i.id = r.installation_id
         WHERE lower(r.full_name) = lower($1) AND c.pr_number = $2
         ORDER BY r.removed_at IS NOT NULL, r.id DESC LIMIT 1
        """,
        full_name,
        number,
    )
    return None if row is None else Subject(**dict(row))


async def find_repository(connection: Connection, full_name: str) -> tuple[int, int] | None:
    """(repository, installation) of a repository that Graft works on."""
    row = await connection.fetchrow(
        """
        SELECT r.id, r.installation_id FROM repositories r JOIN installations i ON i.id = r.installation_id
         WHERE lower(r.full_name) = lower($1) AND r.removed_at IS NULL AND i.deleted_at IS NULL
         ORDER BY r.id DESC LIMIT 1
        """,
        full_name,
    )
    return None if row is None else (row["id"], row["installation_id"])


async def needed(connection: Connection, address: str) -> list[Needed]:
    """The rows of work at an address."""
    rows = await connection.fetch(
        """
        SELECT w.need,
               CASE WHEN w.dead_at IS NOT NULL THEN 'dead'
                    WHEN w.need <> 'sync' AND (i.suspended_at IS NOT NULL OR i.deleted_at IS NOT NULL)
                         THEN 'parked'
                    WHEN w.due_at > now() THEN 'waiting' ELSE 'due' END AS state,
               extract(epoch FROM w.due_at - now())::float8 AS due_seconds,
               extract(epoch FROM now() - w.first_asked_at)::float8 AS age_seconds,
               w.attempts, w.forced, w.last_failure AS failure
          FROM work w LEFT JOIN installations i ON i.id = w.installation_id
         WHERE w.address = $1 ORDER BY w.need
        """,
        address,
    )
    return [Needed(**dict(row)) for row in rows]


async def provenance(
    connection: Connection, change_id: UUID
) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """The answer for the change, and what each of its commits said."""
    answer = await connection.fetchrow("SELECT * FROM change_provenance WHERE change_id = $1", change_id)
    commits = await connection.fetch(
        """
        SELECT commit_sha, source, author_kind, agent, model, task, rule FROM provenance
         WHERE change_id = $1 ORDER BY created_at, commit_sha LIMIT 500
        """,
        change_id,
    )
    return None if answer is None else dict(answer), [dict(row) for row in commits]


async def card(connection: Connection, change_id: UUID) -> tuple[dict[str, Any] | None, int]:
    """The newest card of the change, and how many there are."""
    row = await connection.fetchrow(
        """
        SELECT *, count(*) OVER () AS cards FROM intent_cards WHERE change_id = $1
         ORDER BY created_at DESC, id LIMIT 1
        """,
        change_id,
    )
    return (None, 0) if row is None else (dict(row), row["cards"])


async def verdict(connection: Connection, change_id: UUID) -> dict[str, Any] | None:
    """The newest verdict."""
    row = await connection.fetchrow(
        "SELECT * FROM policy_verdicts WHERE change_id = $1 ORDER BY evaluated_at DESC, id LIMIT 1", change_id
    )
    return None if row is None else dict(row)


async def displays(connection: Connection, change_id: UUID) -> list[dict[str, Any]]:
    """What the comment showed, newest first."""
    rows = await connection.fetch(
        """
        SELECT shown_at, status, card_id FROM intent_displays WHERE change_id = $1
         ORDER BY shown_at DESC, id LIMIT 20
        """,
        change_id,
    )
    return [dict(row) for row in rows]


async def check_runs(connection: Connection, change_id: UUID, head_sha: str) -> list[dict[str, Any]]:
    """The check runs on the present head."""
    rows = await connection.fetch(
        """
        SELECT name, check_run_id, published_at FROM check_runs
         WHERE change_id = $1 AND head_sha = $2 ORDER BY name
        """,
        change_id,
        head_sha,
    )
    return [dict(row) for row in rows]


async def votes(connection: Connection, change_id: UUID) -> list[dict[str, Any]]:
    """Every vote on the change's cards, newest first."""
    rows = await connection.fetch(
        """
        SELECT user_login, verdict, source, is_pr_author, voted_at, withdrawn_at IS NOT NULL AS withdrawn
          FROM intent_feedback WHERE change_id = $1 ORDER BY voted_at DESC, user_login LIMIT 100
        """,
        change_id,
    )
    return [dict(row) for row in rows]


async def spend(connection: Connection, change_id: UUID) -> list[dict[str, Any]]:
    """What model calls for the change cost, by purpose, model and outcome."""
    rows = await connection.fetch(
        """
        SELECT purpose, model, outcome, count(*) AS calls, sum(tokens)::bigint AS tokens,
               sum(cost_usd)::float8 AS cost_usd
          FROM intent_spend WHERE change_id = $1 GROUP BY purpose, model, outcome
         ORDER BY purpose, model, outcome
        """,
        change_id,
    )
    return [dict(row) for row in rows]
