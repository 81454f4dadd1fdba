"""Changes (pull requests), and the publish lease that decides who may write to GitHub for one of them.

Rows are guarded by the pull request's own `updated_at`, as *stored*: what is older is refused, what is equal
is taken, because our own comment moves that time too.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

import msgspec

from graft.database import Connection
from graft.store.partitions import Lease

PUBLISH_SECONDS = 10.0


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored of one pull request."""

    id: UUID
    repository_id: int
    pr_number: int
    head_sha: str
    base_ref: str
    state: str
    pr_updated_at: datetime
    graft_comment_id: int | None
    section_seq: int
    author_id: int | None


class PullFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the API says of a pull request, as far as it is stored."""

    repository_id: int
    pr_number: int
    head_sha: str
    head_repository_id: int | None
    base_ref: str
    author_id: int | None
    author_login: str | None
    author_is_bot: bool
    state: str
    draft: bool
    opened_at: datetime | None
    closed_at: datetime | None
    merged_at: datetime | None
    merge_commit_sha: str | None
    pr_updated_at: datetime


_COLUMNS = ", ".join(Change.__struct_fields__)


async def put(connection: Connection, facts: PullFacts) -> Change | None:
    """Insert or update a change; `None` where the stored row is newer than these facts."""
    row = await connection.fetchrow(
        f"""
        INSERT INTO changes AS c (repository_id, pr_number, head_sha, head_repository_id, base_ref, author_id,
               author_login, author_is_bot, state, draft, opened_at, closed_at, merged_at, merge_commit_sha,
               pr_updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
        ON CONFLICT (repository_id, pr_number) DO UPDATE SET
            head_sha = excluded.head_sha, head_repository_id = excluded.head_repository_id,
            base_ref = excluded.base_ref, author_id = excluded.author_id, author_login = excluded.author_login,
            author_is_bot = excluded.author_is_bot, state = excluded.state, draft = excluded.draft,
            opened_at = excluded.opened_at, closed_at = excluded.closed_at, merged_at = excluded.merged_at,
            merge_commit_sha = excluded.merge_commit_sha, pr_updated_at = excluded.pr_updated_at
         WHERE excluded.pr_updated_at >= c.pr_updated_at
        RETURNING {_COLUMNS}
        """,  # noqa: S608 - a constant list of columns
        *msgspec.structs.astuple(facts),
    )
    return None if row is None else Change(**dict(row))


async def get(connection: Connection, repository_id: int, pr_number: int) -> Change | None:
    """One change by its number."""
    row = await connection.fetchrow(
        f"SELECT {_COLUMNS} FROM changes WHERE repository_id = $1 AND pr_number = $2",  # noqa: S608
        repository_id,
        pr_number,
    )
    return None if row is None else Change(**dict(row))


async def open_bases(connection: Connection, repository_id: int) -> list[str]:
    """The base branches of a repository's open changes."""
    rows = await connection.fetch(
        "SELECT DISTINCT base_ref FROM changes WHERE repository_id = $1 AND state = 'open' ORDER BY base_ref",
        repository_id,
    )
    return [row["base_ref"] for row in rows]


async def open_numbers(connection: Connection, repository_id: int, base_ref: str, *, limit: int) -> list[int]:
    """The open changes against a branch, newest first."""
    rows = await connection.fetch(
        """
        SELECT pr_number FROM changes WHERE repository_id = $1 AND base_ref = $2 AND state = 'open'
         ORDER BY pr_number DESC LIMIT $3
        """,
        repository_id,
        base_ref,
        limit,
    )
    return [row["pr_number"] for row in rows]


async def open_on_head(connection: Connection, repository_id: int, head_sha: str) -> list[int]:
    """The open changes whose head this is."""
    rows = await connection.fetch(
        """
        SELECT pr_number FROM changes WHERE repository_id = $1 AND head_sha = $2 AND state = 'open'
         ORDER BY pr_number
        """,
        repository_id,
        head_sha,
    )
    return [row["pr_number"] for row in rows]


async def number_of(connection: Connection, change_id: UUID) -> int:
    """The pull request number of a change."""
    number: int = await connection.fetchval("SELECT pr_number FROM changes WHERE id = $1", change_id)
    return number


class Leased(msgspec.Struct, frozen=True, kw_only=True):
    """A change as it stands under the publish lease. `abandoned`: the publisher before let its lease run out, so it
    may have died after a write that no row knows of."""

    change: Change
    abandoned: bool


async def acquire(
    connection: Connection, change: Change, token: UUID, *, section_seq: int, lease: Lease
) -> Leased | None:
    """Take the publish lease by compare-and-set, and return the row as it stands under it.

    `None` where another publisher holds it, a newer state was published, the partition has changed hands, or
    the installation is not active. Changes on one head share their check runs, so only one of them is
    published at a time. The lease lasts PUBLISH_SECONDS from the database's clock. Must run in a transaction.
    """
    await connection.execute(
        "SELECT pg_advisory_xact_lock(hashtextextended($1, $2))", change.head_sha, change.repository_id
    )
    row = await connection.fetchrow(
        f"""
        UPDATE changes c SET publish_token = $2, publish_until = now() + $3 * interval '1 second'
          FROM (SELECT id AS held_id, publish_token AS held FROM changes WHERE id = $1) before
         WHERE c.id = held_id AND (c.publish_until IS NULL OR c.publish_until < now()) AND c.section_seq <= $4
           AND NOT EXISTS (SELECT FROM changes o WHERE o.repository_id = c.repository_id
                              AND o.head_sha = $8 AND o.id <> c.id AND o.publish_until >= now())
           AND EXISTS (SELECT FROM partitions p WHERE p.partition = $5 AND p.epoch = $6 AND p.holder = $7)
           AND EXISTS (SELECT FROM repositories r JOIN installations i ON i.id = r.installation_id
                        WHERE r.id = c.repository_id AND r.removed_at IS NULL
                          AND i.suspended_at IS NULL AND i.deleted_at IS NULL)
        RETURNING {_COLUMNS}, held IS NOT NULL AS abandoned
        """,  # noqa: S608
        change.id,
        token,
        PUBLISH_SECONDS,
        section_seq,
        lease.partition,
        lease.epoch,
        lease.holder,
        change.head_sha,
    )
    if row is None:
        return None
    facts = dict(row)
    abandoned = facts.pop("abandoned")
    return Leased(change=Change(**facts), abandoned=abandoned)


async def commit_publication(
    connection: Connection, change_id: UUID, token: UUID, *, section_seq: int, comment_id: int | None
) -> bool:
    """Store what was published and let go of the lease, by compare-and-set on the token.

    False where the lease had run out and somebody else has published since: what was sent must be repaired.
    """
    updated = await connection.fetchval(
        """
        UPDATE changes SET section_seq = $3, graft_comment_id = $4, publish_token = NULL, publish_until = NULL
         WHERE id = $1 AND publish_token = $2 AND section_seq <= $3 RETURNING 1
        """,
        change_id,
        token,
        section_seq,
        comment_id,
    )
    return updated is not None


async def confirm(connection: Connection, change_id: UUID, *, shown_seq: int, section_seq: int) -> bool:
    """Say that what was published as `shown_seq` is what run `section_seq` would publish. False where it is not the
    last publication, or somebody is publishing or has died while publishing."""
    confirmed = await connection.fetchval(
        """
        UPDATE changes SET section_seq = $3
         WHERE id = $1 AND section_seq = $2 AND publish_token IS NULL AND $2 <= $3 RETURNING 1
        """,
        change_id,
        shown_seq,
        section_seq,
    )
    return confirmed is not None


async def is_abandoned(connection: Connection, change_id: UUID) -> bool:
    """Whether somebody took the publish lease and has not committed: it is being used now, or
    whoever held it died."""
    found: bool = await connection.fetchval(
        "SELECT publish_token IS NOT NULL FROM changes WHERE id = $1", change_id
    )
    return found


async def claim_rerun(connection: Connection, change_id: UUID, need: str, *, every_seconds: float) -> bool:
    """Whether a step may be forced to run again now; at most once in `every_seconds`."""
    claimed = await connection.fetchval(
        """
        UPDATE changes SET reruns = reruns || jsonb_build_object($2::text, extract(epoch FROM now()))
         WHERE id = $1 AND coalesce((reruns ->> $2)::float8, 0) <= extract(epoch FROM now()) - $3::float8
        RETURNING 1
        """,
        change_id,
        need,
        every_seconds,
    )
    return claimed is not None


class CheckRun(msgspec.Struct, frozen=True, kw_only=True):
    """A check run of ours as it was last written."""

    check_run_id: int
    external_id: str
    content_hash: str


async def check_runs(connection: Connection, change_id: UUID, head_sha: str) -> dict[str, CheckRun]:
    """The check runs of one head, by name."""
    rows = await connection.fetch(
        """
        SELECT name, check_run_id, external_id, content_hash FROM check_runs
         WHERE change_id = $1 AND head_sha = $2
        """,
        change_id,
        head_sha,
    )
    return {
        row["name"]: CheckRun(
            check_run_id=row["check_run_id"],
            external_id=row["external_id"],
            content_hash=row["content_hash"],
        )
        for row in rows
    }


async def put_check_runs(
    connection: Connection, change_id: UUID, head_sha: str, runs: Mapping[str, CheckRun]
) -> None:
    """Remember the check runs that were written."""
    names = sorted(runs)
    await connection.execute(
        """
        INSERT INTO check_runs (change_id, head_sha, name, check_run_id, external_id, content_hash)
        SELECT $1, $2, * FROM unnest($3::text[], $4::bigint[], $5::text[], $6::text[])
        ON CONFLICT (change_id, head_sha, name) DO UPDATE SET check_run_id = excluded.check_run_id,
            external_id = excluded.external_id, content_hash = excluded.content_hash, published_at = now()
        """,
        change_id,
        head_sha,
        names,
        [runs[n].check_run_id for n in names],
        [runs[n].external_id for n in names],
        [runs[n].content_hash for n in names],
    )


async def unfinished(connection: Connection, *, limit: int) -> list[tuple[int, int, int]]:
    """(installation, repository, number) of open changes whose present head shows no finished card."""
    rows = await connection.fetch(
        """
        SELECT r.installation_id, c.repository_id, c.pr_number
          FROM changes c JOIN repositories r ON r.id = c.repository_id
          JOIN installations i ON i.id = r.installation_id
         WHERE c.state = 'open' AND r.removed_at IS NULL AND i.suspended_at IS NULL AND i.deleted_at IS NULL
           AND NOT EXISTS (SELECT FROM intent_cards k WHERE k.change_id = c.id AND k.head_sha = c.head_sha
                              AND k.published_at IS NOT NULL)
         ORDER BY c.pr_updated_at DESC LIMIT $1
        """,
        limit,
    )
    return [(row["installation_id"], row["repository_id"], row["pr_number"]) for row in rows]
