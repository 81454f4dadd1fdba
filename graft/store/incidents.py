"""Incidents: what the label stands for and what people entered. What a person decided, the label never changes."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from graft.database import Connection
from graft.pilot.incidents import Found, Incident, MergedChange
from graft.store.ratings import Scope


async def put_labelled(
    connection: Connection, repository_id: int, found: Sequence[Found], *, complete: bool
) -> int:
    """Store what the label stands for now; how many rows changed.

    A row that a person linked keeps its links, one that a person removed stays removed. With a `complete` list,
    rows whose label is gone are removed, and come back with it.
    """
    changed = await connection.fetch(
        """
        INSERT INTO incidents AS i (repository_id, issue_number, culprit_pr_number, fix_pr_number, source, occurred_at)
        SELECT $1, issue, culprit, fix, 'label', at
          FROM unnest($2::int[], $3::int[], $4::int[], $5::timestamptz[]) AS f (issue, culprit, fix, at)
         ORDER BY issue
        ON CONFLICT (repository_id, issue_number) WHERE issue_number IS NOT NULL DO UPDATE SET
            culprit_pr_number = coalesce(CASE WHEN i.source = 'manual' THEN i.culprit_pr_number END,
                                         excluded.culprit_pr_number),
            fix_pr_number = coalesce(CASE WHEN i.source = 'manual' THEN i.fix_pr_number END,
                                     excluded.fix_pr_number),
            removed_at = CASE WHEN i.removed_by = 'manual' THEN i.removed_at END,
            removed_by = CASE WHEN i.removed_by = 'manual' THEN i.removed_by END
        RETURNING 1
        """,
        repository_id,
        [f.issue_number for f in found],
        [f.culprit for f in found],
        [f.fix for f in found],
        [f.occurred_at for f in found],
    )
    if not complete:
        return len(changed)
    gone = await connection.fetch(
        """
        UPDATE incidents SET removed_at = now(), removed_by = 'label'
         WHERE repository_id = $1 AND source = 'label' AND removed_at IS NULL
           AND NOT issue_number = ANY($2::int[])
        RETURNING 1
        """,
        repository_id,
        [f.issue_number for f in found],
    )
    return len(changed) + len(gone)


async def unlinked(connection: Connection, *, recent_days: int) -> list[tuple[int, int]]:
    """(installation, repository) of active repositories with a labelled incident of the last days whose culprit or
    fix is not known yet: its text may have been edited, which sends nothing."""
    rows = await connection.fetch(
        """
        SELECT DISTINCT r.installation_id, r.id FROM incidents i
          JOIN repositories r ON r.id = i.repository_id JOIN installations n ON n.id = r.installation_id
         WHERE i.removed_at IS NULL AND i.issue_number IS NOT NULL
           AND (i.culprit_pr_number IS NULL OR i.fix_pr_number IS NULL)
           AND i.recorded_at > now() - $1 * interval '1 day'
           AND r.removed_at IS NULL AND n.suspended_at IS NULL AND n.deleted_at IS NULL
        """,
        recent_days,
    )
    return [(row["installation_id"], row["id"]) for row in rows]


async def add(
    connection: Connection, repository_id: int, *, issue: int | None, culprit: int | None, fix: int | None
) -> UUID:
    """Enter an incident by hand, or complete and revive the one that is there already: by its issue, else by the
    same culprit with the same fix, or with none yet. What is given wins over what was found."""
    known = await connection.fetchval(
        """
        SELECT id FROM incidents
         WHERE repository_id = $1
           AND (($2::int IS NOT NULL AND issue_number = $2)
                OR ($2::int IS NULL AND culprit_pr_number = $3
                    AND (fix_pr_number = $4 OR fix_pr_number IS NULL OR $4::int IS NULL)))
         ORDER BY removed_at NULLS FIRST, fix_pr_number NULLS LAST, recorded_at LIMIT 1 FOR UPDATE
        """,
        repository_id,
        issue,
        culprit,
        fix,
    )
    if known is not None:
        await connection.execute(
            """
            UPDATE incidents SET source = 'manual', culprit_pr_number = coalesce($2, culprit_pr_number),
                   fix_pr_number = coalesce($3, fix_pr_number), removed_at = NULL, removed_by = NULL
             WHERE id = $1
            """,
            known,
            culprit,
            fix,
        )
        return UUID(str(known))
    made = await connection.fetchval(
        """
        INSERT INTO incidents (repository_id, issue_number, culprit_pr_number, fix_pr_number, source)
        VALUES ($1, $2, $3, $4, 'manual') RETURNING id
        """,
        repository_id,
        issue,
        culprit,
        fix,
    )
    return UUID(str(made))


async def remove(connection: Connection, incident_id: UUID) -> bool:
    """Remove an incident for good; the label does not bring it back. False where there is none to remove."""
    removed = await connection.fetchval(
        """
        UPDATE incidents SET removed_at = now(), removed_by = 'manual'
         WHERE id = $1 AND (removed_at IS NULL OR removed_by = 'label') RETURNING 1
        """,
        incident_id,
    )
    return removed is not None


async def find(connection: Connection, scope: Scope) -> list[Incident]:
    """The standing incidents of a period, oldest first, with the class that the culprit's card showed last."""
    rows = await connection.fetch(
        """
        SELECT i.id::text, r.full_name AS repository, i.issue_number, i.culprit_pr_number AS culprit,
               i.fix_pr_number AS fix, i.source, i.occurred_at, shown.risk_class AS culprit_risk
          FROM incidents i JOIN repositories r ON r.id = i.repository_id
          LEFT JOIN changes c ON c.repository_id = i.repository_id AND c.pr_number = i.culprit_pr_number
          LEFT JOIN LATERAL (SELECT k.risk_class FROM intent_displays d JOIN intent_cards k ON k.id = d.card_id
                              WHERE d.change_id = c.id ORDER BY d.shown_at DESC LIMIT 1) shown ON true
         WHERE i.removed_at IS NULL AND i.occurred_at >= $1 AND i.occurred_at < $2
           AND ($3::bigint[] IS NULL OR i.repository_id = ANY($3))
         ORDER BY i.occurred_at, i.id
        """,
        scope.since,
        scope.until,
        scope.ids,
    )
    return [Incident(**dict(row)) for row in rows]


async def merged(connection: Connection, scope: Scope) -> list[MergedChange]:
    """The changes merged in a period, each with the class that its card showed last."""
    rows = await connection.fetch(
        """
        SELECT r.full_name AS repository, c.pr_number AS number, shown.risk_class AS risk
          FROM changes c JOIN repositories r ON r.id = c.repository_id
          LEFT JOIN LATERAL (SELECT k.risk_class FROM intent_displays d JOIN intent_cards k ON k.id = d.card_id
                              WHERE d.change_id = c.id ORDER BY d.shown_at DESC LIMIT 1) shown ON true
         WHERE c.merged_at >= $1 AND c.merged_at < $2 AND ($3::bigint[] IS NULL OR c.repository_id = ANY($3))
        """,
        scope.since,
        scope.until,
        scope.ids,
    )
    return [MergedChange(**dict(row)) for row in rows]
