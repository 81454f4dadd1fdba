"""From the stream to rows: idempotent, patient with the database, and not held up by poison."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

import asyncpg
import pytest

from actors.inbox import Inbox
from actors.partitioning import Partitioning
from graft.bus import Bus, Pulled
from graft.database import Pool
from graft.streams import ACK_WAIT, StreamSettings
from graft.triggers import Trigger, partition_of

T0 = datetime(2026, 12, 1, 12, tzinfo=UTC)
PARTITIONS = 8


def trigger(delivery_id: str = "d1", **fields: object) -> Trigger:
    facts: dict[str, object] = {
        "kind": "pull",
        "event": "pull_request",
        "action": "opened",
        "received_at": T0,
        "event_at": T0,
        "installation_id": 7,
        "repository_id": 70,
        "full_name": "octo/demo",
        "number": 1,
        "head_sha": "a" * 40,
        **fields,
    }
    return Trigger(delivery_id=delivery_id, **facts)  # type: ignore[arg-type]


@pytest.fixture
async def bus(nats_url: str, bus_prefix: str) -> AsyncIterator[Bus]:
    opened = await Bus.connect(nats_url, prefix=bus_prefix)
    await opened.ensure_stream(StreamSettings(max_bytes=1_048_576))
    yield opened
    await opened.close()


@pytest.fixture
def inbox(bus: Bus, pool: Pool) -> Inbox:
    return Inbox(bus=bus, pool=pool, partitioning=Partitioning(PARTITIONS))


async def pulled(bus: Bus, count: int) -> list[Pulled]:
    found: list[Pulled] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            found += await bus.pull(batch=count - len(found), within=2)
    return found


async def empty(bus: Bus) -> bool:
    return (await bus.backlog()).messages == 0


async def until_empty(bus: Bus) -> None:
    async with asyncio.timeout(20):
        while not await empty(bus):
            await asyncio.sleep(0.02)


async def work(pool: Pool) -> list[tuple[str, str, int]]:
    rows = await pool.fetch("SELECT address, need, ask_seq FROM work ORDER BY need")
    return [tuple(row) for row in rows]


async def test_a_trigger_becomes_rows_and_is_acknowledged(bus: Bus, pool: Pool, inbox: Inbox) -> None:
    woken: list[int] = []
    await bus.subscribe_wakes(woken.append)
    await bus.publish(trigger())
    await inbox.take(await pulled(bus, 1))
    needs = {need for _, need, _ in await work(pool)}
    assert needs == {"state", "provenance", "intent", "policy", "records"}
    row = await pool.fetchrow("SELECT * FROM webhook_deliveries")
    assert (row["delivery_id"], row["installation_id"], row["status"]) == ("d1", 7, "accepted")
    await until_empty(bus)
    async with asyncio.timeout(10):
        while not woken:
            await asyncio.sleep(0.02)
    assert woken == [partition_of("pull.70.1", PARTITIONS)]


async def test_a_crash_between_commit_and_acknowledgement_costs_only_the_repetition(
    bus: Bus, pool: Pool, inbox: Inbox
) -> None:
    await bus.publish(trigger())
    [message] = await pulled(bus, 1)

    class Deaf:
        """The message whose acknowledgement never leaves the process."""

        trigger, delivery_id, trace = message.trigger, message.delivery_id, message.trace

        async def ack(self) -> None:
            await message.nak()  # what the broker does when `ack_wait` is over

    await inbox.take([Deaf()])  # type: ignore[list-item]
    before = await work(pool)
    await inbox.take(await pulled(bus, 1))
    assert await work(pool) == before, "asked for once"
    await until_empty(bus)


async def test_a_delivery_after_the_brokers_window_is_known_to_the_database(
    bus: Bus, pool: Pool, inbox: Inbox
) -> None:
    await bus.publish(trigger())
    await inbox.take(await pulled(bus, 1))
    await pool.execute("DELETE FROM work")
    # A stream made anew remembers no message id: the same as a window that is over.
    await bus.client.jetstream().delete_stream(bus.prefix.upper())
    await bus.ensure_stream(StreamSettings(max_bytes=1_048_576))
    assert not (await bus.publish(trigger())).duplicate
    await inbox.take(await pulled(bus, 1))
    assert await work(pool) == []


async def test_within_the_window_the_broker_says_duplicate(bus: Bus) -> None:
    assert not (await bus.publish(trigger())).duplicate
    assert (await bus.publish(trigger())).duplicate


async def test_poison_is_recorded_dead_alone_and_others_go_through(
    bus: Bus, pool: Pool, inbox: Inbox
) -> None:
    await bus.publish(trigger("good"))
    await bus.client.jetstream().publish(
        f"{bus.prefix}.trigger.pull.70.1.pull_request", b"{not json", headers={"Nats-Msg-Id": "bad"}
    )
    await bus.publish(trigger("also-good", number=2))
    await inbox.take(await pulled(bus, 3))
    rows = await pool.fetch("SELECT delivery_id, status, reason FROM webhook_deliveries ORDER BY delivery_id")
    assert [tuple(row) for row in rows] == [
        ("also-good", "accepted", None),
        ("bad", "dead", "bad_trigger"),
        ("good", "accepted", None),
    ]
    assert {address for address, _, _ in await work(pool)} == {"pull.70.1", "pull.70.2"}
    await until_empty(bus)


async def test_a_row_that_the_database_refuses_is_poison_too(bus: Bus, pool: Pool, inbox: Inbox) -> None:
    await pool.execute("ALTER TABLE work ADD CONSTRAINT small CHECK (repository_id < 100)")
    await bus.publish(trigger("good"))
    await bus.publish(trigger("bad", repository_id=500))
    await inbox.take(await pulled(bus, 2))
    rows = await pool.fetch("SELECT delivery_id, status, reason FROM webhook_deliveries ORDER BY delivery_id")
    assert [tuple(row) for row in rows] == [
        ("bad", "dead", "CheckViolationError"),
        ("good", "accepted", None),
    ]


async def test_poison_whose_own_fields_no_column_holds_is_recorded_all_the_same(
    bus: Bus, pool: Pool, inbox: Inbox
) -> None:
    impossible = (
        b'{"kind": "installation", "event": "installation", "delivery_id": "bad",'
        b' "received_at": "0001-01-01T00:00:00+14:00", "installation_id": 1}'
    )
    await bus.client.jetstream().publish(
        f"{bus.prefix}.trigger.installation.1.installation", impossible, headers={"Nats-Msg-Id": "bad"}
    )
    await bus.publish(trigger("good"))
    await inbox.take(await pulled(bus, 2))
    rows = await pool.fetch("SELECT delivery_id, event, status FROM webhook_deliveries ORDER BY delivery_id")
    assert [tuple(row) for row in rows] == [("bad", "unknown", "dead"), ("good", "pull_request", "accepted")]
    await until_empty(bus)


async def test_what_a_dead_replica_had_in_hand_comes_to_another_within_seconds(
    bus: Bus, pool: Pool, inbox: Inbox, nats_url: str
) -> None:
    other = await Bus.connect(nats_url, prefix=bus.prefix)
    await bus.publish(trigger())
    assert len(await pulled(other, 1)) == 1  # taken in hand, and never acknowledged
    await other.close()
    async with asyncio.timeout(ACK_WAIT + 4):
        await inbox.take(await pulled(bus, 1))
    assert await work(pool) != []


async def test_a_connection_that_broke_in_its_protocol_condemns_no_delivery(bus: Bus, pool: Pool) -> None:
    await bus.publish(trigger())
    broken = Away(pool, 1, asyncpg.InternalClientError("cannot switch to state 15"))
    await Inbox(bus=bus, pool=broken, partitioning=Partitioning(PARTITIONS)).take(await pulled(bus, 1))
    assert await pool.fetchval("SELECT status FROM webhook_deliveries") == "accepted"


async def test_an_inbox_that_fails_in_a_way_nobody_thought_of_goes_on_pulling(bus: Bus, pool: Pool) -> None:
    await bus.publish(trigger())
    inbox = Inbox(
        bus=bus, pool=Away(pool, 3, RuntimeError("unheard of")), partitioning=Partitioning(PARTITIONS)
    )
    running = asyncio.create_task(inbox.run())
    await until_empty(bus)
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_dead_delivery_that_github_sends_again_gets_another_chance(
    bus: Bus, pool: Pool, inbox: Inbox
) -> None:
    await pool.execute("ALTER TABLE work ADD CONSTRAINT small CHECK (repository_id < 10)")
    await bus.publish(trigger())
    await inbox.take(await pulled(bus, 1))
    await pool.execute("ALTER TABLE work DROP CONSTRAINT small")
    await bus.client.jetstream().delete_stream(bus.prefix.upper())
    await bus.ensure_stream(StreamSettings(max_bytes=1_048_576))
    await bus.publish(trigger())
    await inbox.take(await pulled(bus, 1))
    assert await pool.fetchval("SELECT status FROM webhook_deliveries") == "accepted"
    assert await work(pool) != []


class Away:
    """A pool whose server refuses the first connections, as one does while it starts again."""

    def __init__(self, pool: Pool, refusals: int, error: Exception | None = None) -> None:
        self.pool = pool
        self.refusals = refusals
        self.error = error or ConnectionRefusedError()

    def acquire(self) -> object:
        if self.refusals:
            self.refusals -= 1
            raise self.error
        return self.pool.acquire()


async def test_while_the_database_is_away_the_batch_is_kept(bus: Bus, pool: Pool) -> None:
    await bus.publish(trigger())
    [message] = await pulled(bus, 1)
    told: list[str] = []

    class Watched:
        trigger, delivery_id, trace = message.trigger, message.delivery_id, message.trace

        async def in_progress(self) -> None:
            told.append("in progress")
            await message.in_progress()

        async def ack(self) -> None:
            told.append("ack")
            await message.ack()

    inbox = Inbox(bus=bus, pool=Away(pool, 2), partitioning=Partitioning(PARTITIONS))
    await inbox.take([Watched()])  # type: ignore[list-item]
    assert told == ["in progress", "in progress", "ack"]
    assert await work(pool) != []
    await until_empty(bus)


async def test_a_late_trigger_of_a_purged_installation_is_dropped(bus: Bus, pool: Pool, inbox: Inbox) -> None:
    await pool.execute("INSERT INTO pilot_purges (installation_id, reason) VALUES (7, 'asked')")
    await bus.publish(trigger())
    await inbox.take(await pulled(bus, 1))
    assert await work(pool) == []
    assert await pool.fetchval("SELECT reason FROM webhook_deliveries") == "purged"


@pytest.mark.parametrize(
    ("button", "held"), [("card-accurate", ["accurate"]), ("card-wrong", ["wrong"]), ("other", [])]
)
async def test_a_button_becomes_a_pending_vote(
    bus: Bus, pool: Pool, inbox: Inbox, button: str, held: Sequence[str]
) -> None:
    press = trigger(
        kind="repository",
        event="check_run",
        action="requested_action",
        number=None,
        event_at=None,
        check_run_id=5,
        button=button,
        sender_id=9,
        sender_login="rev",
    )
    await bus.publish(press)
    await inbox.take(await pulled(bus, 1))
    rows = await pool.fetch("SELECT verdict FROM pending_votes")
    assert [row["verdict"] for row in rows] == list(held)


async def test_a_check_that_is_asked_for_again_does_not_say_which_head_is_newest(inbox: Inbox) -> None:
    rerun = trigger(kind="repository", event="check_run", action="rerequested", pulls=(1,), head_sha="f" * 40)
    asks = inbox.asks(rerun)
    assert asks
    assert all(ask.head_sha is None and ask.forced for ask in asks)
