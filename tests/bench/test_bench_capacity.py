"""The arithmetic of the capacity model; the costs here are made up and easy to multiply."""

from __future__ import annotations

import msgspec
import pytest

from bench import capacity
from bench.capacity import Assumed
from bench.costs import Busy, Costs
from graft.llm import Usage

ASSUMED = Assumed(
    pulls_per_repository_day=1,
    heads_per_pull=2,
    peak=1,
    busy=1,
    repositories_per_installation=10,
    outage_hours=1,
    kept_days=1,
    carded=1,
    trivial=0,
    tokens_times=1,
    quota_per_hour=100,
    postgres_cores=10,
)


def busy(**changed: float) -> Busy:
    usual = Busy(replicas=1, heads=10, rate=5, daemon=0.1, broker=0.01, postgres=0.05, simulated=0.04)
    return msgspec.structs.replace(usual, **changed)


COSTS = Costs(
    measured="",
    cores=2,
    one=busy(),
    two=busy(replicas=2, rate=9),
    reads=10,
    writes=5,
    deliveries=4,
    triggers=1,
    transactions=30,
    change_bytes=3_000,
    head_bytes=1_000,
    delivery_bytes=100,
    trigger_bytes=500,
    publish_rate=1_000,
    writer=Usage(input_tokens=1_000_000, output_tokens=0),
    verifier=Usage(input_tokens=0, output_tokens=1_000_000),
)


def test_a_head_a_second_needs_what_a_head_costs() -> None:
    found = capacity.need(43_200, COSTS, ASSUMED)  # a pull request with two heads each a day
    assert found.heads_per_second == pytest.approx(1)
    assert (found.daemon_cores, found.broker_cores, found.postgres_cores) == pytest.approx((0.1, 0.01, 0.05))
    assert found.deliveries_per_second == pytest.approx(4)
    assert found.stream_bytes == pytest.approx(3600 * 500)
    assert found.database_bytes == pytest.approx(43_200 * 4_000)
    assert found.requests_per_hour == pytest.approx(20 / 24 * 15)
    assert found.quota_used == pytest.approx(20 / 24 * 15 / 100)


def test_a_small_installation_does_not_share_its_quota() -> None:
    assert capacity.need(1, COSTS, ASSUMED).requests_per_hour == pytest.approx(2 / 24 * 15)


def test_two_replicas_are_the_least() -> None:
    assert capacity.need(1, COSTS, ASSUMED).replicas == 2
    assert capacity.need(43_200 * 45, COSTS, ASSUMED).replicas == 5


def test_a_card_is_a_writer_and_a_verifier() -> None:
    assert capacity.card_dollars(COSTS, ASSUMED) == pytest.approx(4 + 20)
    fast = msgspec.structs.replace(ASSUMED, trivial=1)
    assert capacity.card_dollars(COSTS, fast) < 21


@pytest.mark.parametrize(
    ("changed", "first"),
    [
        ({}, "GitHub's quota of an installation"),
        ({"reads": 0.0, "writes": 0.0}, "one Postgres primary"),
        ({"reads": 0.0, "writes": 0.0, "publish_rate": 1.0}, "one stream"),
    ],
)
def test_what_saturates_first(changed: dict[str, float], first: str) -> None:
    costs = msgspec.structs.replace(COSTS, **changed)
    assert capacity.need(43_200, costs, ASSUMED).first == first


def test_the_prediction_knows_that_the_machine_is_shared() -> None:
    assert capacity.predicted_rate(COSTS) == pytest.approx(2 / 0.2)
    alone = msgspec.structs.replace(COSTS, cores=64)
    assert capacity.predicted_rate(alone) == pytest.approx(2 / 0.1)


def test_the_tables_name_their_assumptions() -> None:
    table = capacity.capacity_table(COSTS, ASSUMED, "x")
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert "1 pull requests a repository and day" in table.conditions["load"]
    assert [row[1] for row in capacity.prediction_table(COSTS, "x").rows[:3]] == ["10.0", "9.0", "90%"]
