"""From the stream to rows: a pulled batch becomes one transaction, then it is acknowledged, then actors wake.

Taking the same trigger twice changes nothing, so any replica may take any batch, in any order, more than once,
and a crash between the commit and the acknowledgement costs nothing but the repetition. While the database is
away the batch is kept, and the broker is told that it is being worked on. A trigger that the database refuses
is retried alone, recorded dead and acknowledged: it must not stand in the way of others.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from actors.partitioning import Partitioning
from graft import tracing, triggers
from graft.bus import Bus, Pulled
from graft.database import UNAVAILABLE, Connection, Pool
from graft.errors import PermanentError
from graft.intent import BUTTONS
from graft.logs import get_logger
from graft.store import deliveries, votes, work
from graft.store.deliveries import Delivery
from graft.streams import ACK_WAIT
from graft.triggers import Trigger

log = get_logger("inbox")

BATCH = 64
PULL_SECONDS = 5.0
RETRY_SECONDS = 1.0
DRAIN_SECONDS = 5.0
# An id is what the ingress lets through; of anything else in the stream only that much is kept.
_NO_ID = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST_ID = 64


class Inbox:
    """Takes triggers from the shared consumer for as long as it runs."""

    def __init__(self, *, bus: Bus, pool: Pool, partitioning: Partitioning) -> None:
        self.bus = bus
        self.pool = pool
        self.partitioning = partitioning
        self.taken = 0
        self.dead = 0

    async def run(self) -> None:
        """Pull until cancelled."""
        while True:
            try:
                messages = await self.bus.pull(batch=BATCH, within=PULL_SECONDS)
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - supervision: the broker comes back or it does not
                log.warning("pull failed", error=type(error).__name__)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if messages:
                try:
                    await self._finish(self.take(messages))
                except Exception as error:  # noqa: BLE001 - supervision: the broker delivers them again
                    log.error("batch not taken", error=type(error).__name__)

    @staticmethod
    async def _finish(taking: Coroutine[Any, Any, None]) -> None:
        """Finish a batch in hand also when the process drains: it is a matter of milliseconds, unless the database
        is away; then the broker delivers it to somebody else."""
        task = asyncio.ensure_future(taking)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task}, timeout=DRAIN_SECONDS)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise

    async def take(self, messages: Sequence[Pulled]) -> None:
        """Store a batch and acknowledge it; afterwards its actors are awake."""
        holding = asyncio.create_task(self._hold(messages))
        try:
            await self._take(messages)
        finally:
            holding.cancel()

    async def _hold(self, messages: Sequence[Pulled]) -> None:
        """Tell the broker that these are being worked on, for as long as it takes."""
        while True:
            await asyncio.sleep(ACK_WAIT / 4)
            for message in messages:
                await message.in_progress()

    async def _take(self, messages: Sequence[Pulled]) -> None:
        try:
            woken = await self._stored(messages)
        except Exception as error:  # noqa: BLE001 - one of them is poison; find out which
            if len(messages) == 1:
                await self._bury(messages[0], error)
                return
            for message in messages:
                await self._take([message])
            return
        for message in messages:
            await message.ack()
        self.taken += len(messages)
        for partition in woken:
            await self.bus.wake(partition)

    async def _stored(self, messages: Sequence[Pulled]) -> list[int]:
        """Store a batch, waiting for the database as long as it takes."""
        found: list[Trigger] = []
        spans = {}
        for message in messages:
            if message.trigger is None:
                raise PermanentError("the message is no trigger", reason="bad_trigger")
            found.append(message.trigger)
            delivery_id = message.trigger.delivery_id
            spans[delivery_id] = tracing.start(
                "store", kind="consumer", parent=message.trace, delivery_id=delivery_id
            )
        traces = {delivery_id: tracing.current(span) for delivery_id, span in spans.items()}
        try:
            return await self._patiently(lambda connection: self._store(connection, found, traces))
        finally:
            for span in spans.values():
                span.end()

    async def _patiently(self, step: Callable[[Connection], Awaitable[list[int]]]) -> list[int]:
        while True:
            try:
                async with self.pool.acquire() as connection, connection.transaction():
                    return await step(connection)
            except UNAVAILABLE as error:
                log.warning("database unavailable", error=type(error).__name__)
                await asyncio.sleep(RETRY_SECONDS)

    async def _store(
        self, connection: Connection, found: Sequence[Trigger], traces: Mapping[str, str | None]
    ) -> list[int]:
        purged = await deliveries.purged(connection, sorted({t.installation_id for t in found}))
        new = await deliveries.record(connection, [_delivery(t, purged) for t in found])
        live = [t for t in found if t.delivery_id in new and t.installation_id not in purged]
        asks = [ask for trigger in live for ask in self.asks(trigger, traces[trigger.delivery_id])]
        await work.ask(connection, asks)
        await votes.hold(connection, [vote for t in live if (vote := _pressed(t)) is not None])
        for trigger in live:
            # From here on the address is what logs go by: this line says which delivery asked for what.
            log.info("taken", address=triggers.address_of(trigger), **trigger.log_context())
        return sorted({ask.partition for ask in asks})

    def asks(self, trigger: Trigger, trace: str | None = None) -> list[work.Ask]:
        """What a trigger asks for, as rows. Only a pull request's own event says which head is newest: a check
        run that is asked for again may belong to an older one."""
        own = trigger.event == "pull_request"
        return [
            work.Ask(
                address=ask.address,
                need=ask.need,
                partition=self.partitioning.of(ask.address),
                asked_at=trigger.event_at or trigger.received_at,
                installation_id=trigger.installation_id,
                repository_id=trigger.repository_id,
                head_sha=trigger.head_sha if own else None,
                forced=ask.forced,
                trace=trace,
            )
            for ask in triggers.needs_for(trigger)
        ]

    async def _bury(self, message: Pulled, error: Exception) -> None:
        """Record a trigger that cannot be stored, and take it off the stream."""
        reason = error.reason if isinstance(error, PermanentError) else type(error).__name__
        delivery_id = _NO_ID.sub("", message.delivery_id)[:_LONGEST_ID]
        log.error("trigger refused", delivery_id=delivery_id, reason=reason)
        bare = Delivery(
            delivery_id=delivery_id,
            event="unknown",
            received_at=datetime.now(UTC),
            status="dead",
            reason=reason,
        )
        trigger = message.trigger
        if trigger is None:
            await self._patiently(_recorded(bare))
        else:
            told = msgspec.structs.replace(_delivery(trigger, set()), status="dead", reason=reason)
            try:
                await self._patiently(_recorded(told))
            except Exception:  # noqa: BLE001 - it may be one of these very fields that no column holds
                await self._patiently(_recorded(bare))
        await message.ack()
        self.dead += 1


def _recorded(dead: Delivery) -> Callable[[Connection], Awaitable[list[int]]]:
    async def record(connection: Connection) -> list[int]:
        await deliveries.record(connection, [dead])
        return []

    return record


def _delivery(trigger: Trigger, purged: set[int]) -> Delivery:
    gone = trigger.installation_id in purged
    return Delivery(
        delivery_id=trigger.delivery_id,
        event=trigger.event,
        action=trigger.action,
        installation_id=trigger.installation_id,
        repository_id=trigger.repository_id,
        received_at=trigger.received_at,
        status="ignored" if gone else "accepted",
        reason="purged" if gone else None,
    )


def _pressed(trigger: Trigger) -> votes.PendingVote | None:
    """The vote in a press of one of the card's buttons."""
    verdict = BUTTONS.get(trigger.button or "")
    if verdict is None or trigger.check_run_id is None or trigger.repository_id is None:
        return None
    if trigger.sender_id is None or trigger.sender_login is None:
        return None
    return votes.PendingVote(
        delivery_id=trigger.delivery_id,
        installation_id=trigger.installation_id,
        repository_id=trigger.repository_id,
        check_run_id=trigger.check_run_id,
        user_id=trigger.sender_id,
        user_login=trigger.sender_login,
        user_is_bot=trigger.sender_is_bot,
        verdict=verdict,
        voted_at=trigger.event_at or trigger.received_at,
    )
