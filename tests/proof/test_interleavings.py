"""Some hundred orders keep their promise; a protocol with a hole does not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from actors import reading
from graft.config import ActorSettings
from graft.metrics import Metrics
from proof.interleavings import Explored, explore, table
from proof.interleavings.loop import Stuck, here, run
from proof.interleavings.memory import Memory, Row
from proof.interleavings.scenario import Outcome, play, settings

ORDERS = 150
# Enough to meet a hole in the protocol several times over.
SEARCHED = 1_200


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logger = logging.getLogger("graft")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


@pytest.fixture(scope="module")
def chosen() -> ActorSettings:
    return settings()


@pytest.fixture(scope="module")
def metrics() -> Metrics:
    return Metrics()


def test_orders_keep_their_promise(chosen: ActorSettings, metrics: Metrics) -> None:
    outcomes = [play(seed, chosen, metrics) for seed in range(ORDERS)]
    assert [(one.seed, one.violations) for one in outcomes if one.violations] == []
    assert len({one.digest for one in outcomes}) > 0.9 * ORDERS
    assert {what for one in outcomes for what in one.disturbances} == {"killed", "stopped", "taken"}


def test_a_seed_is_an_order(chosen: ActorSettings, metrics: Metrics) -> None:
    assert play(7, chosen, metrics) == play(7, chosen, metrics)


class TwoAtATime(Memory):
    """The publish lease is given to whoever asks."""

    def acquire(self, change_id: UUID, *asked: Any) -> list[Row]:
        row = self.change_by_id(change_id)
        assert row is not None
        self._update(row, publish_until=None)
        return super().acquire(change_id, *asked)


class Forgetful(Memory):
    """What was asked for again in the meantime counts as done."""

    def finish(self, addresses: list[str], needs: list[str], seqs: list[int]) -> list[Row]:
        for key in zip(addresses, needs, strict=True):
            self.work.pop(key, None)
        return []


@pytest.mark.parametrize("memory", [TwoAtATime, Forgetful])
def test_a_hole_in_the_protocol_is_found(
    memory: type[Memory], chosen: ActorSettings, metrics: Metrics
) -> None:
    assert _first_broken(chosen, metrics, memory) is not None


def test_believing_an_old_head_is_found(
    chosen: ActorSettings, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "STALE_SECONDS", 0.0)
    broken = _first_broken(chosen, metrics, Memory)
    assert broken is not None
    assert "the comment does not show the last head" in broken.violations


def _first_broken(chosen: ActorSettings, metrics: Metrics, memory: type[Memory]) -> Outcome | None:
    outcomes = (play(seed, chosen, metrics, memory=memory) for seed in range(SEARCHED))
    return next((one for one in outcomes if one.violations), None)


def test_an_exploration_goes_on_until_it_has_seen_enough(capsys: pytest.CaptureFixture[str]) -> None:
    explored = explore(60, seed=1, chunk=15)
    assert len(explored.digests) >= 60
    assert explored.played % 15 == 0
    found = table(explored, orders=60, seed=1)
    assert found.rows[0] == ["different orders", str(len(explored.digests)), "60", "met"]
    assert found.rows[2] == ["orders that broke a promise", "0", "0", "met"]


def test_a_broken_order_is_counted() -> None:
    explored = Explored(played=1, seconds=1.0)
    explored.add(
        Outcome(seed=3, violations=("2 comments",), digest=b"x", steps=9, disturbances=("killed",), hidden=1)
    )
    rows = {row[0]: row[1:] for row in table(explored, orders=2, seed=3).rows}
    assert rows["different orders"] == ["1", "2", "missed"]
    assert rows["orders that broke a promise"] == ["1", "0", "missed"]
    assert rows["replicas killed"][0] == "1"


def test_the_loop_has_a_clock_of_its_own_and_an_order_by_its_seed() -> None:
    async def order() -> tuple[list[int], float]:
        seen: list[int] = []

        async def one(number: int) -> None:
            await here().pause(100.0)
            seen.append(number)

        await asyncio.gather(*map(one, range(8)))
        return seen, here().time()

    first, seconds = run("a", order())
    assert run("a", order()) == (first, seconds)
    assert run("b", order()) != (first, seconds)
    assert sorted(first) == list(range(8))
    assert 0.0 < seconds <= 100.0


def test_waiting_for_nobody_is_an_error() -> None:
    async def forever() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Stuck):
        run("a", forever())
