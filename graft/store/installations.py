"""Installations and their repositories, as the API last described them.

Events carry no order, so nothing here trusts one: a deleted installation id stays deleted, everything else is
overwritten with what was just read. A pull request may arrive before its installation; `ensure` makes the
rows it needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from graft.database import Connection


class Repository(msgspec.Struct, frozen=True, kw_only=True):
    """A repository and whether Graft may work on it now."""

    id: int
    installation_id: int
    full_name: str
    removed_at: datetime | None
    suspended_at: datetime | None
    deleted_at: datetime | None
    watched: dict[str, dict[str, str | None]]

    @property
    def active(self) -> bool:
        """Installed, not suspended, not removed."""
        return self.removed_at is None and self.suspended_at is None and self.deleted_at is None


class ListedRepository(msgspec.Struct, frozen=True, kw_only=True):
    """A repository in an installation's list."""

    id: int
    full_name: str
    default_branch: str | None = None
    private: bool = False
    archived: bool = False


async def ensure(connection: Connection, installation_id: int, repository_id: int, full_name: str) -> None:
    """Create the rows of an installation and a repository that no event has announced yet."""
    await connection.execute(
        "INSERT INTO installations (id) VALUES ($1) ON CONFLICT DO NOTHING", installation_id
    )
    await connection.execute(
        """
        INSERT INTO repositories AS r (id, installation_id, full_name) VALUES ($1, $2, $3)
        ON CONFLICT (id) DO UPDATE SET installation_id = excluded.installation_id, removed_at = NULL
              WHERE r.installation_id <> excluded.installation_id
        """,
        repository_id,
        installation_id,
        full_name,
    )


async def describe(
    connection: Connection,
    installation_id: int,
    *,
    account_id: int | None,
    account_login: str | None,
    account_type: str | None,
    repository_selection: str | None,
    permissions: Mapping[str, str],
    events: Sequence[str],
    suspended_at: datetime | None,
) -> None:
    """Store what the API says of an installation now."""
    await connection.execute(
        """
        INSERT INTO installations (id, account_id, account_login, account_type, repository_selection,
                                   permissions, events, suspended_at, synced_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, now())
        ON CONFLICT (id) DO UPDATE SET account_id = excluded.account_id,
            account_login = excluded.account_login, account_type = excluded.account_type,
            repository_selection = excluded.repository_selection, permissions = excluded.permissions,
            events = excluded.events, suspended_at = excluded.suspended_at, synced_at = now()
        """,
        installation_id,
        account_id,
        account_login,
        account_type,
        repository_selection,
        dict(permissions),
        list(events),
        suspended_at,
    )


async def mark_deleted(connection: Connection, installation_id: int) -> None:
    """GitHub knows the installation no more. Its repositories are removed; its rows stay until the purge."""
    await connection.execute(
        """
        INSERT INTO installations (id, deleted_at) VALUES ($1, now())
        ON CONFLICT (id) DO UPDATE SET deleted_at = coalesce(installations.deleted_at, now()), synced_at = now()
        """,
        installation_id,
    )
    await connection.execute(
        "UPDATE repositories SET removed_at = now() WHERE installation_id = $1 AND removed_at IS NULL",
        installation_id,
    )


async def set_repositories(
    connection: Connection, installation_id: int, repositories: Sequence[ListedRepository]
) -> None:
    """Make the installation's repositories exactly the ones listed; the others are marked as removed."""
    rows = sorted({r.id: r for r in repositories}.values(), key=lambda r: r.id)
    await connection.execute(
        """
        INSERT INTO repositories (id, installation_id, full_name, default_branch, private, archived, synced_at)
        SELECT id, $1, full_name, default_branch, private, archived, now()
          FROM unnest($2::bigint[], $3::text[], $4::text[], $5::bool[], $6::bool[])
               AS r (id, full_name, default_branch, private, archived)
        ON CONFLICT (id) DO UPDATE SET installation_id = excluded.installation_id,
            full_name = excluded.full_name, default_branch = excluded.default_branch,
            private = excluded.private, archived = excluded.archived, removed_at = NULL, synced_at = now()
        """,
        installation_id,
        [r.id for r in rows],
        [r.full_name for r in rows],
        [r.default_branch for r in rows],
        [r.private for r in rows],
        [r.archived for r in rows],
    )
    await connection.execute(
        """
        UPDATE repositories SET removed_at = now()
         WHERE installation_id = $1 AND removed_at IS NULL AND NOT id = ANY($2::bigint[])
        """,
        installation_id,
        [r.id for r in rows],
    )


async def describe_repository(connection: Connection, installation_id: int, listed: ListedRepository) -> None:
    """Store what the API says of one repository now: a new name, a new owner, archived or not."""
    await connection.execute(
        "INSERT INTO installations (id) VALUES ($1) ON CONFLICT DO NOTHING", installation_id
    )
    await connection.execute(
        """
        INSERT INTO repositories (id, installation_id, full_name, default_branch, private, archived, synced_at)
        VALUES ($1, $2, $3, $4, $5, $6, now())
        ON CONFLICT (id) DO UPDATE SET installation_id = excluded.installation_id,
            full_name = excluded.full_name, default_branch = excluded.default_branch,
            private = excluded.private, archived = excluded.archived, removed_at = NULL, synced_at = now()
        """,
        listed.id,
        installation_id,
        listed.full_name,
        listed.default_branch,
        listed.private,
        listed.archived,
    )


async def remove_repository(connection: Connection, installation_id: int, repository_id: int) -> None:
    """The installation cannot see the repository any more (removed, transferred away or deleted)."""
    await connection.execute(
        """
        UPDATE repositories SET removed_at = coalesce(removed_at, now())
         WHERE id = $1 AND installation_id = $2
        """,
        repository_id,
        installation_id,
    )


async def repository(connection: Connection, repository_id: int) -> Repository | None:
    """A repository with the state of its installation."""
    row = await connection.fetchrow(
        """
        SELECT r.id, r.installation_id, r.full_name, r.removed_at, r.watched, i.suspended_at, i.deleted_at
          FROM repositories r JOIN installations i ON i.id = r.installation_id WHERE r.id = $1
        """,
        repository_id,
    )
    return None if row is None else Repository(**dict(row))


async def set_watched(
    connection: Connection, repository_id: int, watched: Mapping[str, Mapping[str, str | None]]
) -> None:
    """Remember the blobs last seen on each base branch, to tell whether a push changed them."""
    await connection.execute(
        "UPDATE repositories SET watched = $2 WHERE id = $1", repository_id, dict(watched)
    )


async def listed_installations(connection: Connection) -> list[int]:
    """Every installation that is not known to be deleted."""
    rows = await connection.fetch("SELECT id FROM installations WHERE deleted_at IS NULL ORDER BY id")
    return [row["id"] for row in rows]


async def rename(connection: Connection, repository_id: int, full_name: str) -> None:
    """Remember the name under which the API just answered."""
    await connection.execute(
        "UPDATE repositories SET full_name = $2 WHERE id = $1 AND full_name <> $2", repository_id, full_name
    )
