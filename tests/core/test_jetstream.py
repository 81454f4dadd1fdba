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
