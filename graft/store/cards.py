"""Intent cards and when each of them stood in the comment.

A row is one card for one head. `card` holds the typed card as graft.intent writes it; the columns beside it
are what reports and queries need. Cards are never changed, apart from the time of their publication.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from graft.database import Connection


class CardRow(msgspec.Struct, frozen=True, kw_only=True):
    """One stored card. Tokens and calls describe the run that wrote it."""

    id: UUID
    change_id: UUID
    head_sha: str
    base_sha: str
    status: str
    reason: str | None
    risk_class: str
    risk_floor: str
    risk_writer: str | None
    risk_first_pass: str | None
    risk_verifier: str | None
    verifier_status: str
    injection_suspected: bool
    card: dict[str, Any]
    writer_model: str | None
    verifier_model: str | None
    prompt_version: str
    input_hash: str
    diff_fingerprint: str | None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    llm_calls: int = 0
    carried_from: UUID | None = None
    created_at: datetime | None = None
    published_at: datetime | None = None


_COLUMNS = ", ".join(CardRow.__struct_fields__)
_WRITTEN = CardRow.__struct_fields__[:-2]  # the two times are the database's


async def put(connection: Connection, card: CardRow) -> None:
    """Insert a card."""
    await connection.execute(
        f"INSERT INTO intent_cards ({', '.join(_WRITTEN)}) "  # noqa: S608 - the struct's own field names
        f"VALUES ({', '.join(f'${i}' for i in range(1, len(_WRITTEN) + 1))})",
        *(getattr(card, name) for name in _WRITTEN),
    )


async def latest(connection: Connection, change_id: UUID, head_sha: str) -> CardRow | None:
    """The newest card of one head."""
    row = await connection.fetchrow(
        f"""
        SELECT {_COLUMNS} FROM intent_cards WHERE change_id = $1 AND head_sha = $2
         ORDER BY created_at DESC, id LIMIT 1
        """,  # noqa: S608
        change_id,
        head_sha,
    )
    return None if row is None else CardRow(**dict(row))


async def previous(connection: Connection, change_id: UUID, head_sha: str) -> CardRow | None:
    """The newest card of another head of the same change that a model wrote."""
    row = await connection.fetchrow(
        f"""
        SELECT {_COLUMNS} FROM intent_cards
         WHERE change_id = $1 AND head_sha <> $2 AND status = 'ready'
         ORDER BY created_at DESC, id LIMIT 1
        """,  # noqa: S608
        change_id,
        head_sha,
    )
    return None if row is None else CardRow(**dict(row))


async def find_carriable(
    connection: Connection,
    change_id: UUID,
    *,
    input_hash: str,
    diff_fingerprint: str,
    prompt_version: str,
) -> CardRow | None:
    """A finished card of this change whose writer would read exactly the same again."""
    row = await connection.fetchrow(
        f"""
        SELECT {_COLUMNS} FROM intent_cards
         WHERE change_id = $1 AND input_hash = $2 AND diff_fingerprint = $3 AND prompt_version = $4
           AND status = 'ready'
         ORDER BY created_at DESC, id LIMIT 1
        """,  # noqa: S608
        change_id,
        input_hash,
        diff_fingerprint,
        prompt_version,
    )
    return None if row is None else CardRow(**dict(row))


async def count_written(connection: Connection, change_id: UUID, head_sha: str) -> int:
    """How many cards a model was asked to write for one head."""
    count: int = await connection.fetchval(
        "SELECT count(*) FROM intent_cards WHERE change_id = $1 AND head_sha = $2 AND llm_calls > 0",
        change_id,
        head_sha,
    )
    return count


async def ids(connection: Connection, change_id: UUID) -> set[str]:
    """The ids of all cards of a change, as check runs carry them."""
    rows = await connection.fetch("SELECT id FROM intent_cards WHERE change_id = $1", change_id)
    return {str(row["id"]) for row in rows}


async def known(connection: Connection, external_ids: Iterable[str]) -> set[str]:
    """Those ids, as check runs carry them, that are of any card or change. What is no id of ours counts as known: it
    is not for us to judge."""
    found = set()
    asked: list[UUID] = []
    for one in external_ids:
        try:
            asked.append(UUID(one))
        except ValueError:
            found.add(one)
    rows = await connection.fetch(
        """
        SELECT id FROM intent_cards WHERE id = ANY($1::uuid[])
        UNION ALL SELECT id FROM changes WHERE id = ANY($1::uuid[])
        """,
        asked,
    )
    return found | {str(row["id"]) for row in rows}


async def belongs_to(
    connection: Connection, card_id: UUID, repository_id: int
) -> tuple[UUID, UUID, int | None] | None:
    """(change, card that votes count on, author) of a card, if it is a card of this repository."""
    row = await connection.fetchrow(
        """
        SELECT c.id, coalesce(k.carried_from, k.id) AS counted_on, c.author_id
          FROM intent_cards k JOIN changes c ON c.id = k.change_id
         WHERE k.id = $1 AND c.repository_id = $2
        """,
        card_id,
        repository_id,
    )
    return None if row is None else (row["id"], row["counted_on"], row["author_id"])


async def shown(
    connection: Connection, change_id: UUID, card_id: UUID | None, status: str, at: datetime
) -> None:
    """Note that the comment shows this card from `at` (GitHub's clock) on; the same as before is no news."""
    await connection.execute(
        """
        INSERT INTO intent_displays (change_id, card_id, status, shown_at)
        SELECT $1, $2, $3, $4
         WHERE NOT EXISTS (
            SELECT FROM (SELECT card_id, status FROM intent_displays WHERE change_id = $1
                          ORDER BY shown_at DESC LIMIT 1) last
             WHERE last.card_id IS NOT DISTINCT FROM $2 AND last.status = $3)
        """,
        change_id,
        card_id,
        status,
        at,
    )
    if card_id is not None:
        await connection.execute(
            "UPDATE intent_cards SET published_at = coalesce(published_at, $2) WHERE id = $1", card_id, at
        )


async def displayed_at(connection: Connection, change_id: UUID, at: datetime) -> UUID | None:
    """The card that a reader saw at this time, followed to the card it was carried from."""
    found: UUID | None = await connection.fetchval(
        """
        SELECT coalesce(k.carried_from, k.id) FROM intent_displays d JOIN intent_cards k ON k.id = d.card_id
         WHERE d.change_id = $1 AND d.shown_at <= $2 ORDER BY d.shown_at DESC LIMIT 1
        """,
        change_id,
        at,
    )
    return found


async def promises(connection: Connection, change_id: UUID) -> set[bool]:
    """Whether the comment promises a card that is not there: in the making, or tried again later. Both answers
    where it changed within the second that GitHub's clock shows, none where nothing was ever shown."""
    rows = await connection.fetch(
        """
        SELECT DISTINCT status IN ('making', 'retrying') AS promised FROM intent_displays
         WHERE change_id = $1
           AND shown_at = (SELECT max(shown_at) FROM intent_displays WHERE change_id = $1)
        """,
        change_id,
    )
    return {row["promised"] for row in rows}
