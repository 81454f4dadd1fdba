"""Votes and the cards they are about, as the pilot reads them. Which votes count is decided in `graft.pilot`."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from graft.database import Connection
from graft.pilot.feedback import CardFacts, Vote


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of time and, unless all are meant, the repositories. `until` is not part of it any more."""

    since: datetime
    until: datetime
    repositories: tuple[int, ...] | None = None

    def until_now(self) -> Scope:
        """The same, going on to the present where it ended before."""
        return msgspec.structs.replace(self, until=max(self.until, datetime.now(UTC)))

    @property
    def ids(self) -> list[int] | None:
        return None if self.repositories is None else list(self.repositories)


# A card is shown from when it first stood in a comment, itself or as one carried over from it.
_SHOWN = """
    SELECT k.id, k.change_id, c.repository_id, k.risk_class, k.writer_model, k.prompt_version,
           least(k.published_at, (SELECT min(s.published_at) FROM intent_cards s WHERE s.carried_from = k.id))
               AS shown_at
      FROM intent_cards k JOIN changes c ON c.id = k.change_id
     WHERE k.status IN ('ready', 'unverified') AND k.carried_from IS NULL
       AND ($3::bigint[] IS NULL OR c.repository_id = ANY($3))
"""


async def cards(connection: Connection, scope: Scope) -> list[CardFacts]:
    """Cards that a model wrote and that were first shown in the period. A card carried over to another head is
    left out: its votes are on the card it came from."""
    rows = await connection.fetch(
        f"""
        WITH shown AS ({_SHOWN})
        SELECT s.id::text AS card_id, s.change_id::text, r.full_name AS repository, s.risk_class AS risk,
               coalesce(s.writer_model, 'unknown') AS model, s.prompt_version, s.shown_at
          FROM shown s JOIN repositories r ON r.id = s.repository_id
         WHERE s.shown_at >= $1 AND s.shown_at < $2 ORDER BY s.shown_at, s.id
        """,  # noqa: S608 - a constant
        scope.since,
        scope.until,
        scope.ids,
    )
    return [CardFacts(**dict(row)) for row in rows]


async def votes(connection: Connection, scope: Scope) -> list[Vote]:
    """Every vote, withdrawn ones included, on those cards."""
    rows = await connection.fetch(
        f"""
        WITH shown AS ({_SHOWN})
        SELECT f.card_id::text, f.user_id, f.user_login, f.verdict, f.source, f.is_pr_author, f.voted_at,
               f.withdrawn_at IS NOT NULL AS withdrawn
          FROM intent_feedback f JOIN shown s ON s.id = f.card_id
         WHERE s.shown_at >= $1 AND s.shown_at < $2
        """,  # noqa: S608 - a constant
        scope.since,
        scope.until,
        scope.ids,
    )
    return [Vote(**dict(row)) for row in rows]


async def participation(connection: Connection, scope: Scope) -> tuple[int, int]:
    """(rated, could have rated): pairs of a change with a card shown in the period and a reviewer whom GitHub
    confirmed as one who may write, and those of them with a standing vote on one of the change's cards."""
    row = await connection.fetchrow(
        """
        SELECT count(*) FILTER (WHERE EXISTS (
                   SELECT FROM intent_feedback f WHERE f.change_id = p.change_id AND f.user_id = p.user_id
                                                   AND f.withdrawn_at IS NULL)) AS rated,
               count(*) AS eligible
          FROM pr_reviewers p JOIN changes c ON c.id = p.change_id
         WHERE p.verified AND p.user_id IS DISTINCT FROM c.author_id
           AND ($3::bigint[] IS NULL OR c.repository_id = ANY($3))
           AND EXISTS (SELECT FROM intent_cards k
                        WHERE k.change_id = c.id AND k.published_at >= $1 AND k.published_at < $2
                          AND k.status IN ('ready', 'unverified'))
        """,
        scope.since,
        scope.until,
        scope.ids,
    )
    assert row is not None
    return row["rated"], row["eligible"]


async def named(connection: Connection, full_name: str) -> tuple[int, int] | None:
    """(repository, installation) of a repository's present name, in any case; the one still installed first."""
    row = await connection.fetchrow(
        """
        SELECT id, installation_id FROM repositories WHERE lower(full_name) = lower($1)
         ORDER BY removed_at NULLS FIRST, id DESC LIMIT 1
        """,
        full_name,
    )
    return None if row is None else (row["id"], row["installation_id"])
