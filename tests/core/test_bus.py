from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import nats
import pytest
import uvloop

from graft import embedded, streams
from graft.bus import Bus, BusUnavailable, StreamFull
from graft.embedded import NatsServer
from graft.errors import ConfigError, TransientError
from graft.streams import StreamSettings
from graft.triggers import Trigger

NOW = datetime(2026, 12, 1, tzinfo=UTC)
SETTINGS = StreamSettings(max_bytes=1_000_000)


def trigger(name: str) -> Trigger:
    return Trigger(
        kind="repository",
        event="push",
        delivery_id=name,
        received_at=NOW,
        installation_id=7,
        repository_id=70,
    )


@pytest.fixture
async def connect(nats_url: str, bus_prefix: str) -> AsyncIterator[Callable[[], Awaitable[Bus]]]:
    """Connections with one stream that is gone after the test."""
    made: list[Bus] = []

    async def make() -> Bus:
        made.append(await Bus.connect(nats_url, prefix=bus_prefix))
        return made[-1]

    yield make
    for bus in made:
        await bus.close()
    async with await nats.connect(nats_url) as client:
        with contextlib.suppress(nats.js.errors.NotFoundError):
            await client.jetstream().delete_stream(streams.stream_name(bus_prefix))


@pytest.fixture
async def bus(connect: Callable[[], Awaitable[Bus]]) -> Bus:
    made = await connect()
    await made.ensure_stream(SETTINGS)
    return made


@pytest.fixture
async def own_server(tmp_path: Path) -> AsyncIterator[NatsServer]:
    """A broker for one test, which may stop it."""
    async with embedded.nats_server(tmp_path / "nats") as server:
        yield server


async def names(bus: Bus, *, batch: int = 10, within: float = 2.0) -> list[str]:
    return [pulled.delivery_id for pulled in await bus.pull(batch=batch, within=within)]


async def subscribed(bus: Bus) -> None:
    """Until the server knows the subscription just made: a first PING may leave before the waiting SUB."""
    await bus.client.flush()
    await bus.client.flush()


async def until(condition: Callable[[], bool], *, within: float = 10.0) -> None:
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(0.01)


# ------------------------------------------------------------------------------------------------- publishing


async def test_a_published_trigger_is_pulled_whole(bus: Bus) -> None:
    sent = trigger("d-1")
    assert not (await bus.publish(sent)).duplicate
    (pulled,) = await bus.pull(batch=10, within=2)
    assert (pulled.trigger, pulled.problem, pulled.delivery_id, pulled.deliveries) == (sent, None, "d-1", 1)


async def test_the_same_delivery_is_a_duplicate_also_when_the_first_is_long_done(bus: Bus) -> None:
    await bus.publish(trigger("d-1"))
    (pulled,) = await bus.pull(batch=10, within=2)
    await pulled.ack()
    assert (await bus.publish(trigger("d-1"))).duplicate
    assert await bus.pull(batch=10, within=0.1) == []


async def test_a_full_stream_refuses_and_keeps_what_it_has(bus: Bus) -> None:
    await bus.ensure_stream(StreamSettings(max_bytes=2_000))
    taken, refusal = 0, None
    while refusal is None and taken < 100:
        try:
            await bus.publish(trigger(f"d-{taken}"))
            taken += 1
        except StreamFull as error:
            refusal = error
    assert refusal is not None
    assert refusal.reason == "stream_full"
    assert taken > 2
    assert (await bus.backlog()).messages == taken
    # Once somebody has made room, the refused delivery is taken.
    for pulled in await bus.pull(batch=100, within=2):
        await pulled.ack()
    async with asyncio.timeout(5):
        while (await bus.backlog()).messages:
            await asyncio.sleep(0.01)
    assert not (await bus.publish(trigger(f"d-{taken}"))).duplicate


async def test_a_broker_that_goes_away_refuses_quickly_and_comes_back(own_server: NatsServer) -> None:
    bus = await Bus.connect(own_server.url, prefix="graft")
    try:
        await bus.ensure_stream(SETTINGS)
        await bus.publish(trigger("d-1"))
        own_server.kill()
        await until(lambda: not bus.connected)
        async with asyncio.timeout(5):
            with pytest.raises(BusUnavailable):
                await bus.publish(trigger("d-2"))
            with pytest.raises(BusUnavailable):
                await bus.backlog()
            assert await bus.pull(batch=10, within=0.1) == []
            await bus.wake(3)
            await bus.signal("x", {})
        own_server.start()
        await until(lambda: bus.connected)
        # What was acknowledged before the crash is still there, and still known.
        assert await names(bus) == ["d-1"]
        assert (await bus.publish(trigger("d-1"))).duplicate
        assert not (await bus.publish(trigger("d-2"))).duplicate
        assert await names(bus) == ["d-2"]
    finally:
        await bus.close()


def test_what_waits_for_a_lost_broker_does_not_spoil_the_end(own_server: NatsServer) -> None:
    """In uvloop, which the daemon runs in: a replica was drained while its broker was away, and crashed."""

    async def end() -> None:
        bus = await Bus.connect(own_server.url, prefix="graft")
        await asyncio.to_thread(own_server.kill)
        await until(lambda: not bus.connected)
        await bus.client.publish("graft.wake", b"0")
        await bus.close()
        assert bus.client.is_closed

    uvloop.run(end())


async def test_a_publish_waits_for_a_broker_that_is_just_restarting(own_server: NatsServer) -> None:
    bus = await Bus.connect(own_server.url, prefix="graft")
    try:
        await bus.ensure_stream(SETTINGS)
        own_server.stop()
        await until(lambda: not bus.connected)
        publishing = asyncio.create_task(bus.publish(trigger("d-1")))
        await asyncio.to_thread(own_server.start)
        assert not (await publishing).duplicate
    finally:
        await bus.close()


async def test_a_pull_that_waits_goes_on_after_a_restart(own_server: NatsServer) -> None:
    bus = await Bus.connect(own_server.url, prefix="graft")
    try:
        await bus.ensure_stream(SETTINGS)
        pulling = asyncio.create_task(names(bus, within=15))
        await asyncio.sleep(0.1)
        own_server.stop()
        await until(lambda: not bus.connected)
        await asyncio.to_thread(own_server.start)
        await until(lambda: bus.connected)
        await bus.publish(trigger("d-1"))
        assert await pulling == ["d-1"]
    finally:
        await bus.close()


async def test_a_stream_that_was_lost_is_made_again(bus: Bus) -> None:
    pulling = asyncio.create_task(names(bus, within=15))
    await asyncio.sleep(0.05)
    await bus.client.jetstream().delete_stream(streams.stream_name(bus.prefix))
    assert not (await bus.publish(trigger("d-1"))).duplicate
    assert await pulling == ["d-1"]


# ---------------------------------------------------------------------------------------------------- pulling


async def test_the_first_message_does_not_wait_for_a_batch(bus: Bus) -> None:
    pulling = asyncio.create_task(names(bus, batch=100, within=30))
    await asyncio.sleep(0.05)
    await bus.publish(trigger("d-1"))
    async with asyncio.timeout(2):
        assert await pulling == ["d-1"]


async def test_every_message_is_pulled_once(bus: Bus) -> None:
    sent = [f"d-{number}" for number in range(150)]
    await asyncio.gather(*(bus.publish(trigger(name)) for name in sent))
    found: list[str] = []
    while len(found) < len(sent):
        batch = await bus.pull(batch=40, within=2)
        assert 0 < len(batch) <= 40
        found += [pulled.delivery_id for pulled in batch]
        for pulled in batch:
            await pulled.ack()
    assert sorted(found) == sorted(sent)
    assert await bus.pull(batch=40, within=0.1) == []


async def test_replicas_share_the_messages(connect: Callable[[], Awaitable[Bus]]) -> None:
    one, other = await connect(), await connect()
    await asyncio.gather(one.ensure_stream(SETTINGS), other.ensure_stream(SETTINGS))
    for number in range(20):
        await one.publish(trigger(f"d-{number}"))
    first, second = await names(one, batch=10), await names(other, batch=20)
    assert len(set(first + second)) == len(first) + len(second)
    assert first
    assert second


async def test_a_message_not_done_comes_again_and_says_so(bus: Bus) -> None:
    await bus.publish(trigger("d-1"))
    (pulled,) = await bus.pull(batch=10, within=2)
    await pulled.in_progress()
    await pulled.nak()
    (again,) = await bus.pull(batch=10, within=2)
    assert (again.delivery_id, again.deliveries) == ("d-1", 2)
    assert (await bus.backlog()).redelivered == 1
    await again.ack()


async def test_what_was_pulled_and_not_read_goes_to_another_replica(
    connect: Callable[[], Awaitable[Bus]],
) -> None:
    one, other = await connect(), await connect()
    await one.ensure_stream(SETTINGS)
    await other.ensure_stream(SETTINGS)
    await one.publish(trigger("d-0"))
    assert await names(one, batch=10) == ["d-0"]  # its pull request stays open for nine more
    for number in range(1, 4):
        await other.publish(trigger(f"d-{number}"))
    await subscribed(one)
    await one.stop_pulling()
    found: list[str] = []
    while len(found) < 3:
        batch = await names(other)
        assert batch, found
        found += batch
    assert sorted(found) == ["d-1", "d-2", "d-3"]


async def test_a_message_that_is_no_trigger_says_why(bus: Bus) -> None:
    await bus.client.jetstream().publish(
        f"{bus.prefix}.trigger.odd", b'{"kind": 5}', headers={"Nats-Msg-Id": "d-9"}
    )
    (pulled,) = await bus.pull(batch=10, within=2)
    assert (pulled.trigger, pulled.problem, pulled.delivery_id) == (None, "not a trigger: $.kind", "d-9")


async def test_the_backlog_counts_what_waits_and_what_is_out(bus: Bus) -> None:
    for number in range(3):
        await bus.publish(trigger(f"d-{number}"))
    assert (await bus.backlog()).waiting == 3
    assert len(await names(bus, batch=1)) == 1
    backlog = await bus.backlog()
    assert (backlog.messages, backlog.waiting, backlog.unacknowledged) == (3, 2, 1)
    assert 0 < backlog.bytes < backlog.max_bytes == SETTINGS.max_bytes
    assert backlog.oldest_seconds is not None
    assert 0 <= backlog.oldest_seconds < 60


async def test_an_empty_stream_has_no_oldest_message(bus: Bus) -> None:
    assert (await bus.backlog()).oldest_seconds is None


# --------------------------------------------------------------------------------------------- wakes, signals


async def test_wake_ups_reach_every_replica(connect: Callable[[], Awaitable[Bus]]) -> None:
    one, other = await connect(), await connect()
    heard: list[int] = []
    await other.subscribe_wakes(heard.append)
    await subscribed(other)
    await one.wake(3)
    await one.wake(31)
    await until(lambda: heard == [3, 31])


async def test_signals_carry_name_and_payload(connect: Callable[[], Awaitable[Bus]]) -> None:
    one, other = await connect(), await connect()
    heard: list[tuple[str, dict[str, object]]] = []
    await other.subscribe_signals(lambda name, payload: heard.append((name, payload)))
    await subscribed(other)
    await one.client.publish(f"{one.prefix}.signal.odd", b"not JSON")
    await one.signal("published", {"repository_id": 70, "number": 12})
    await one.signal("verdict changed", {"number": 12})
    await until(lambda: len(heard) == 2)
    assert heard == [("published", {"repository_id": 70, "number": 12}), ("verdict changed", {"number": 12})]


# ------------------------------------------------------------------------------------------ stream, connection


async def test_the_stream_refuses_rather_than_drops_and_keeps_without_limit_of_time(bus: Bus) -> None:
    js = bus.client.jetstream()
    config = (await js.stream_info(streams.stream_name(bus.prefix))).config
    assert (config.retention, config.storage, config.discard) == ("workqueue", "file", "new")
    assert (config.max_age, config.duplicate_window, config.max_msgs) == (0, 120, -1)
    consumer = (await js.consumer_info(streams.stream_name(bus.prefix), streams.CONSUMER)).config
    assert (consumer.ack_policy, consumer.ack_wait, consumer.max_deliver) == ("explicit", 4, -1)


async def test_replicas_may_make_the_stream_at_once_and_another_size_is_taken_over(
    connect: Callable[[], Awaitable[Bus]],
) -> None:
    buses = [await connect() for _ in range(4)]
    await asyncio.gather(*(bus.ensure_stream(SETTINGS) for bus in buses))
    await buses[0].publish(trigger("d-1"))
    await buses[1].ensure_stream(StreamSettings(max_bytes=2_000_000))
    backlog = await buses[2].backlog()
    assert (backlog.max_bytes, backlog.messages) == (2_000_000, 1)


@pytest.mark.parametrize(
    ("settings", "variable"),
    [
        (StreamSettings(max_bytes=2**50), "GRAFT_STREAM_MAX_BYTES"),
        (StreamSettings(max_bytes=1_000_000, replicas=3), "GRAFT_STREAM_REPLICAS"),
    ],
)
async def test_a_stream_that_cannot_be_names_the_setting(
    own_server: NatsServer, settings: StreamSettings, variable: str
) -> None:
    bus = await Bus.connect(own_server.url, prefix="graft")
    try:
        with pytest.raises(ConfigError) as caught:
            await bus.ensure_stream(settings)
    finally:
        await bus.close()
    assert caught.value.problems[0].startswith(f"{variable}:")


@pytest.mark.parametrize("name", ["OTHER", None])
async def test_a_stream_of_somebody_else_is_left_alone(
    connect: Callable[[], Awaitable[Bus]], name: str | None
) -> None:
    bus = await connect()
    js = bus.client.jetstream()
    name = streams.stream_name(bus.prefix) if name is None else f"{bus.prefix}{name}"
    await js.add_stream(name=name, subjects=[f"{bus.prefix}.trigger.>"])
    try:
        with pytest.raises(ConfigError) as caught:
            await bus.ensure_stream(SETTINGS)
        assert caught.value.problems[0].startswith("GRAFT_NATS_PREFIX:")
        assert (await js.stream_info(name)).config.retention == "limits"
    finally:
        await js.delete_stream(name)


async def test_a_server_without_jetstream_is_told(own_server: NatsServer) -> None:
    bus = await Bus.connect(own_server.url, prefix="graft")
    try:
        nobody = bus.client.jetstream(domain="elsewhere", timeout=1)
        with pytest.raises(TransientError, match="is it switched on in the server"):
            await streams.ensure(nobody, "graft", SETTINGS, batches=True)
    finally:
        await bus.close()


async def test_no_server_is_a_problem_of_nats_url() -> None:
    with pytest.raises(ConfigError) as caught:
        await Bus.connect("nats://user:hunter2@127.0.0.1:1", within=0.3)
    assert caught.value.problems[0].startswith("NATS_URL: no NATS server answered")
    assert "hunter2" not in str(caught.value)


async def test_refused_credentials_are_said(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "nats", more='authorization { user: "a", password: "b" }')
    await asyncio.to_thread(server.start)
    try:
        with pytest.raises(ConfigError, match="NATS_URL: the NATS server refused the credentials"):
            await Bus.connect(server.url, within=1)
        bus = await Bus.connect(server.url.replace("//", "//a:b@"))
        assert bus.connected
        await bus.close()
    finally:
        await asyncio.to_thread(server.stop)
    assert not bus.connected
