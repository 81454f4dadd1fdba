"""Publishing with one inbox for all acknowledgements, against a real broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import APIError, NoStreamResponseError

from graft.jetstream import Publisher


@pytest.fixture
async def client(nats_url: str) -> AsyncIterator[Client]:
    client = await nats.connect(nats_url)
    yield client
    await client.close()


@pytest.fixture
async def subject(client: Client, bus_prefix: str) -> AsyncIterator[str]:
    """Where a small stream listens that refuses what does not fit."""
    js = client.jetstream()
    await js.add_stream(name=bus_prefix, subjects=[f"{bus_prefix}.t.>"], max_msgs=300, discard="new")
    yield f"{bus_prefix}.t.one"
    await js.delete_stream(bus_prefix)


async def test_many_at_a_time_get_their_own_answers(client: Client, subject: str) -> None:
    publisher = Publisher(client, timeout=5)
    ids = [str(number // 2) for number in range(200)]
    answers = await asyncio.gather(
        *(publisher.publish(subject, b"x", {"Nats-Msg-Id": number}) for number in ids)
    )
    assert sorted(answers) == [False] * 100 + [True] * 100
    for first, second in zip(answers[::2], answers[1::2], strict=True):
        assert first != second


@pytest.fixture
async def batches(client: Client, bus_prefix: str) -> AsyncIterator[str]:
    """The subject of a stream that allows batches."""
    js = client.jetstream()
    await js.add_stream(
        name=bus_prefix, subjects=[f"{bus_prefix}.t.>"], retention="workqueue", allow_atomic=True
    )
    yield f"{bus_prefix}.t.one"
    await js.delete_stream(bus_prefix)


def eager(client: Client) -> Publisher:
    """A publisher that lets messages gather as if every broker were slow."""
    return Publisher(client, timeout=10, patience=0)


async def crowd(publisher: Publisher, subject: str, ids: list[str]) -> list[bool]:
    return await asyncio.gather(
        *(publisher.publish(subject, one.encode(), {"Nats-Msg-Id": one}) for one in ids)
    )


async def stored(client: Client, stream: str) -> list[tuple[str, bool]]:
    """What is in the stream: each body, and whether it came in a batch."""
    js = client.jetstream()
    count = (await js.stream_info(stream)).state.messages
    pull = await js.pull_subscribe("", durable="reader", stream=stream)
    found = await pull.fetch(count, timeout=5)
    return [(m.data.decode(), "Nats-Batch-Id" in (m.headers or {})) for m in found]


async def test_what_would_wait_gathers_and_is_stored_once(
    client: Client, batches: str, bus_prefix: str
) -> None:
    ids = [f"id-{number}" for number in range(200)]
    assert await crowd(eager(client), batches, ids) == [False] * 200
    found = await stored(client, bus_prefix)
    assert [body for body, _ in found] == ids
    assert all(in_batch for _, in_batch in found)


async def test_a_few_go_out_by_themselves(client: Client, batches: str, bus_prefix: str) -> None:
    assert await crowd(eager(client), batches, ["a", "b", "c"]) == [False] * 3
    assert await stored(client, bus_prefix) == [("a", False), ("b", False), ("c", False)]


async def test_a_duplicate_in_a_batch_is_told_and_the_others_are_stored(
    client: Client, batches: str, bus_prefix: str
) -> None:
    ids = [f"id-{number // 2}" for number in range(200)]
    answers = await crowd(eager(client), batches, ids)
    assert sorted(answers) == [False] * 100 + [True] * 100
    assert sorted(body for body, _ in await stored(client, bus_prefix)) == sorted(set(ids))


async def test_a_stream_without_batches_gets_single_messages(
    client: Client, subject: str, bus_prefix: str
) -> None:
    publisher = eager(client)
    for wave in range(2):
        ids = [f"id-{wave}-{number}" for number in range(100)]
        assert await crowd(publisher, subject, ids) == [False] * 100
    found = await stored(client, bus_prefix)
    assert len(found) == 200
    assert not any(in_batch for _, in_batch in found)


async def test_one_of_a_batch_that_no_stream_takes_fails_alone(client: Client, batches: str) -> None:
    publisher = eager(client)
    answers = await asyncio.gather(
        *(publisher.publish(batches, b"x", {}) for _ in range(20)),
        *(publisher.publish("elsewhere.nobody", b"x", {}) for _ in range(20)),
        return_exceptions=True,
    )
    assert answers[:20] == [False] * 20
    assert {type(answer) for answer in answers[20:]} == {NoStreamResponseError}


async def test_no_stream_and_a_full_one_are_told_apart(client: Client, subject: str) -> None:
    publisher = Publisher(client, timeout=5)
    with pytest.raises(NoStreamResponseError):
        await publisher.publish(f"elsewhere.{subject}", b"x", {})
    await asyncio.gather(*(publisher.publish(subject, b"x", {}) for _ in range(300)))
    with pytest.raises(APIError) as refused:
        await publisher.publish(subject, b"x", {})
    assert refused.value.err_code == 10077


async def test_an_answer_that_never_comes_is_a_timeout(client: Client, bus_prefix: str) -> None:
    async def silent(_message: object) -> None:
        return None

    await client.subscribe(f"{bus_prefix}.silent", cb=silent)
    publisher = Publisher(client, timeout=0.05)
    with pytest.raises(TimeoutError):
        await publisher.publish(f"{bus_prefix}.silent", b"x", {})


async def test_an_answer_that_is_none_is_an_error_of_its_own(client: Client, bus_prefix: str) -> None:
    async def nonsense(message: Msg) -> None:
        await message.respond(b"{")

    await client.subscribe(f"{bus_prefix}.nonsense", cb=nonsense)
    with pytest.raises(ValueError, match="truncated"):
        await Publisher(client, timeout=5).publish(f"{bus_prefix}.nonsense", b"x", {})
