"""Triggers of a purged installation are dropped from the broker, and those of others are not."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from graft import triggers
from graft.bus import Bus, BusUnavailable
from graft.streams import StreamSettings
from graft.triggers import Trigger


def trigger(kind: str, installation: int, repository: int | None, number: int | None = None) -> Trigger:
    return Trigger(
        kind=kind,  # type: ignore[arg-type]
        event="pull_request" if kind == "pull" else "push" if kind == "repository" else "installation",
        delivery_id=f"{kind}-{installation}-{repository}-{number}",
        received_at=datetime.now(UTC),
        installation_id=installation,
        repository_id=repository,
        number=number,
    )


async def test_only_the_triggers_of_the_installation_are_dropped(nats_url: str, bus_prefix: str) -> None:
    bus = await Bus.connect(nats_url, prefix=bus_prefix)
    try:
        await bus.ensure_stream(StreamSettings(max_bytes=1_000_000))
        for installation, repository in ((7, 70), (7, 71), (8, 80), (77, 700)):
            await bus.publish(trigger("pull", installation, repository, 1))
            await bus.publish(trigger("pull", installation, repository, 2))
            await bus.publish(trigger("repository", installation, repository))
        for installation in (7, 8, 77):
            await bus.publish(trigger("installation", installation, None))
        assert await bus.discard(triggers.subjects_of(7, [70, 71])) == 7
        left = []
        while messages := await bus.pull(batch=20, within=0.3):
            for message in messages:
                await message.ack()
                assert message.trigger is not None
                left.append(message.trigger.installation_id)
        assert sorted(left) == [8] * 4 + [77] * 4
        assert await bus.discard(triggers.subjects_of(7, [70, 71])) == 0
    finally:
        await bus.close()


async def test_without_a_broker_nothing_is_said_to_be_dropped(nats_url: str, bus_prefix: str) -> None:
    bus = await Bus.connect(nats_url, prefix=bus_prefix)
    await bus.close()
    with pytest.raises(BusUnavailable):
        await bus.discard(triggers.subjects_of(7, []))
