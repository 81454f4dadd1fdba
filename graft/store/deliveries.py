"""Deliveries that were taken in. The primary key is the lasting dedup: a known id changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from graft.database import Connection


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One webhook delivery, as metadata. `status` is `accepted`, `ignored` or `dead`."""

    delivery_id: str
    event: str
    received_at: datetime
    action: str | None = None
    installation_id: int | None = None
    repository_id: int | None = None
    status: str = "accepted"
    reason: str | None = None


async def record(connection: Connection, deliveries: Sequence[Delivery]) -> set[str]:
    """Insert what is not known yet and return the ids that were new.

    A delivery that was recorded dead counts as new when it comes again and is accepted: GitHub redelivers
    under the same id, and the fault may be gone.
    """
    ordered = sorted({d.delivery_id: d for d in deliveries}.values(), key=lambda d: d.delivery_id)
    rows = await connection.fetch(
        """
        INSERT INTO webhook_deliveries AS w
               (delivery_id, event, action, installation_id, repository_id, status, reason, received_at)
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[],
                             $7::text[], $8::timestamptz[])
        ON CONFLICT (delivery_id) DO UPDATE SET status = excluded.status, reason = excluded.reason
                    WHERE w.status = 'dead' AND excluded.status <> 'dead'
        RETURNING delivery_id
        """,
        [d.delivery_id for d in ordered],
        [d.event for d in ordered],
        [d.action for d in ordered],
        [d.installation_id for d in ordered],
        [d.repository_id for d in ordered],
        [d.status for d in ordered],
        [d.reason for d in ordered],
        [d.received_at for d in ordered],
    )
    return {row["delivery_id"] for row in rows}


async def purged(connection: Connection, installations: Sequence[int]) -> set[int]:
    """Which of these installations were purged: their late triggers are dropped."""
    rows = await connection.fetch(
        "SELECT DISTINCT installation_id FROM pilot_purges WHERE installation_id = ANY($1::bigint[])",
        list(installations),
    )
    return {row["installation_id"] for row in rows}
