"""Deliveries that never arrived are asked for again, and nothing else is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.daemon import running
from actors.recovery import TRIES, Attempts, Recoverer, decide, grouped
from graft.config import Settings
from graft.embedded import NatsServer
from graft.github.installations import Delivery
from graft.store import recoveries
from graft.store.recoveries import Recovery
from graft.streams import DUPLICATE_WINDOW

from .world import World, world

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
CHANGE = {"src/app.py": "def main():\n    return 2\n"}


def attempt(
    guid: str = "g",
    *,
    minutes_ago: float = 30,
    code: int = 503,
    event: str = "pull_request",
    action: str | None = "opened",
) -> Delivery:
    return Delivery(
        id=1,
        guid=guid,
        delivered_at=NOW - timedelta(minutes=minutes_ago),
        status="OK" if code == 202 else "failed",
        status_code=code,
        event=event,
        action=action,
        installation_id=7,
    )


def of(*attempts: Delivery) -> Attempts:
    found: dict[str, Attempts] = {}
    grouped(attempts, found)
    [one] = found.values()
    return one


def step(found: Attempts, **known: object) -> str:
    facts: dict[str, object] = {"status": None, "recovery": None, "now": NOW, "drained": True, **known}
    return decide(found, **facts)  # type: ignore[arg-type]


def tried(times: int, *, seconds_ago: float = 1e6, settled: bool = False) -> Recovery:
    return Recovery(tries=times, seconds_ago=seconds_ago, settled=settled)


# ------------------------------------------------------------------------------------------------- the decision


@pytest.mark.parametrize("code", [0, 401, 404, 500, 503])
def test_a_failed_delivery_is_asked_for(code: int) -> None:
    assert step(of(attempt(code=code))) == "ask"


@pytest.mark.parametrize("status", ["accepted", "ignored", "dead"])
def test_what_a_row_knows_is_left_alone(status: str) -> None:
    assert step(of(attempt()), status=status) == "nothing"


@pytest.mark.parametrize(
    ("event", "action"),
    [("star", "created"), ("pull_request", "assigned"), ("check_run", "completed"), ("ping", None)],
)
def test_an_event_that_nobody_handles_may_get_lost(event: str, action: str | None) -> None:
    assert step(of(attempt(event=event, action=action))) == "nothing"


@pytest.mark.parametrize(
    ("event", "action"),
    [("push", None), ("installation", "deleted"), ("check_run", "requested_action"), ("issues", "labeled")],
)
def test_every_handled_event_is_recovered(event: str, action: str | None) -> None:
    assert step(of(attempt(event=event, action=action))) == "ask"


def test_a_delivered_one_that_no_row_knows_waits_for_the_stream_and_its_duplicate_window() -> None:
    old, young = attempt(code=202), attempt(code=202, minutes_ago=DUPLICATE_WINDOW / 60 - 0.1)
    assert step(of(old), drained=False) == "wait"
    assert step(of(young)) == "wait"
    assert step(of(old)) == "look"


def test_one_delivered_attempt_makes_it_delivered() -> None:
    found = of(attempt(minutes_ago=1, code=500), attempt(minutes_ago=60, code=202))
    assert (found.count, found.delivered, found.newest.status_code) == (2, True, 500)
    assert found.oldest_at == NOW - timedelta(minutes=60)
    assert step(found) == "wait"


def test_tries_are_bounded_and_pauses_grow() -> None:
    found = of(attempt())
    pauses = [60, 120, 240, 480]
    for tries, pause in enumerate(pauses, start=1):
        assert step(found, recovery=tried(tries, seconds_ago=pause - 1)) == "wait"
        assert step(found, recovery=tried(tries, seconds_ago=pause + 1)) == "ask"
    assert step(found, recovery=tried(TRIES)) == "nothing"
    assert step(found, recovery=tried(0, settled=True)) == "nothing"


@given(
    code=st.integers(0, 599),
    minutes=st.floats(-10, 10_000),
    times=st.integers(0, 12),
    ago=st.floats(0, 1e7),
    drained=st.booleans(),
)
def test_never_more_than_the_bound_whatever_the_log_says(
    code: int, minutes: float, times: int, ago: float, drained: bool
) -> None:
    found = of(attempt(code=code, minutes_ago=minutes))
    recovery = tried(times, seconds_ago=ago) if times else None
    if step(found, recovery=recovery, drained=drained) in ("ask", "look"):
        assert times < TRIES


# ---------------------------------------------------------------------------------------------- on real parts


async def until_recovered(graft: World, count: int) -> None:
    async with asyncio.timeout(30):
        while await graft.pool.fetchval("SELECT count(*) FROM webhook_deliveries") < count:
            await asyncio.sleep(0.05)


async def test_a_broker_that_was_down_loses_no_delivery(
    tmp_path: Path, settings: Callable[..., Settings], database_url: str
) -> None:
    broker = NatsServer(tmp_path / "nats", sync_always=False)
    await asyncio.to_thread(broker.start)
    try:
        async with world(
            tmp_path, settings, database_url=database_url, nats_url=broker.url, prefix="graft"
        ) as graft:
            await asyncio.to_thread(broker.kill)
            pulls = []
            for number in range(3):
                graft.commit(f"feature{number}", {"src/app.py": f"def main():\n    return {number + 2}\n"})
                pulls.append(await graft.open(f"feature{number}"))
            await graft.simulator.drain()
            failed = [d for d in graft.simulator.deliveries if d.event == "pull_request"]
            assert {d.status_code for d in failed} == {503}
            await asyncio.to_thread(broker.start)
            await until_recovered(graft, 3)
            await graft.settled()
            for pull in pulls:
                assert len(graft.comments(pull)) == 1
            # GitHub's own redelivery of one that had arrived after all stays a duplicate.
            asked = [d for d in graft.simulator.deliveries if d.redelivery]
            assert sorted(d.guid for d in asked) == sorted(d.guid for d in failed)
    finally:
        await asyncio.to_thread(broker.stop)


async def test_what_failed_while_no_replica_ran_comes_at_the_start(graft: World, nats_url: str) -> None:
    settings = graft.daemon.services.settings
    assert isinstance(settings, Settings)
    graft.simulator.app.webhook_url = "http://127.0.0.1:1/webhooks/github"
    graft.commit("feature", CHANGE)
    pull = await graft.open()
    await graft.simulator.drain()
    assert graft.simulator.deliveries[-1].status_code == 0
    async with running(settings) as second:
        graft.simulator.app.webhook_url = f"{second.url}/webhooks/github"
        await until_recovered(graft, 1)
        await graft.settled()
    assert len(graft.comments(pull)) == 1


async def test_a_delivery_that_github_calls_delivered_and_nobody_has_is_asked_for_once_the_window_is_over(
    graft: World,
) -> None:
    graft.simulator.faults.swallow_deliveries = 1
    graft.commit("feature", CHANGE)
    pull = await graft.open()
    await graft.simulator.drain()
    later = datetime.now(UTC) + timedelta(minutes=10)
    recoverer = Recoverer(graft.daemon.services, now=lambda: later)
    assert await Recoverer(graft.daemon.services).sweep() == 0, "its duplicate window is not over"
    assert await recoverer.sweep() == 1
    await until_recovered(graft, 1)
    await graft.settled()
    assert len(graft.comments(pull)) == 1
    assert await recoverer.sweep() == 0


async def test_an_ignored_delivery_is_looked_up_once_and_never_asked_for(graft: World) -> None:
    installation = graft.repository.installation
    assert installation is not None
    graft.simulator.send(
        "push",
        {
            "ref": "refs/tags/v1",
            "before": "0" * 40,
            "after": "a" * 40,
            "repository": {"id": graft.repository.id, "full_name": "octo/demo"},
            "installation": {"id": installation.id},
        },
        installation=installation,
        repository_id=graft.repository.id,
    )
    await graft.simulator.drain()
    [sent] = [d for d in graft.simulator.deliveries if d.event == "push"]
    assert sent.answer == '{"status": "ignored"}'
    later = datetime.now(UTC) + timedelta(minutes=10)
    for _ in range(2):
        assert await Recoverer(graft.daemon.services, now=lambda: later).sweep() == 0
    looked = [r for r in graft.simulator.requests if r.route.endswith("/app/hook/deliveries/{delivery_id}")]
    assert len(looked) == 1
    assert [d for d in graft.simulator.deliveries if d.redelivery] == []


async def test_a_purged_installation_is_left_alone(graft: World) -> None:
    installation = graft.repository.installation
    assert installation is not None
    graft.simulator.app.webhook_url = "http://127.0.0.1:1/"
    graft.commit("feature", CHANGE)
    await graft.open()
    await graft.simulator.drain()
    await graft.pool.execute(
        "INSERT INTO pilot_purges (installation_id, reason) VALUES ($1, 'deleted')", installation.id
    )
    assert await Recoverer(graft.daemon.services).sweep() == 0
    assert [d for d in graft.simulator.deliveries if d.redelivery] == []


async def test_a_delivery_that_keeps_failing_is_given_up(graft: World) -> None:
    graft.simulator.app.webhook_url = "http://127.0.0.1:1/"
    graft.commit("feature", CHANGE)
    await graft.open()
    await graft.simulator.drain()
    asked = 0
    for _ in range(TRIES + 3):
        await graft.pool.execute("UPDATE recoveries SET last_at = now() - interval '1 hour'")
        asked += await Recoverer(graft.daemon.services).sweep()
        await graft.simulator.drain()
    assert asked == TRIES
    assert len([d for d in graft.simulator.deliveries if d.redelivery]) == TRIES


async def test_a_sweep_reads_only_what_came_since_the_last_one(graft: World) -> None:
    for _ in range(3):
        graft.simulator.send("star", {"action": "created"})
    await graft.simulator.drain()
    recoverer = Recoverer(graft.daemon.services, now=lambda: datetime.now(UTC) + timedelta(hours=1))
    await recoverer.sweep()
    assert recoverer.complete_until is not None
    assert recoverer.complete_until > datetime.now(UTC)


async def test_what_github_has_forgotten_is_forgotten_here(graft: World) -> None:
    async with graft.pool.acquire() as connection:
        await recoveries.note(connection, "old")
        await connection.execute("UPDATE recoveries SET last_at = now() - interval '30 days'")
    await Recoverer(graft.daemon.services).sweep()
    assert await graft.pool.fetchval("SELECT count(*) FROM recoveries") == 0


async def test_a_github_that_fails_stops_no_other_sweep_and_is_asked_again(graft: World) -> None:
    graft.simulator.faults.fail("GET /app/hook/deliveries", status=502, times=12)
    for _ in range(12):
        await graft.daemon.services.ask_now(graft.daemon.services.ask("lead", "recovery", installation_id=0))
        await asyncio.sleep(0.05)
    async with asyncio.timeout(20):
        while graft.daemon.system.running:
            await asyncio.sleep(0.02)
    row = await graft.pool.fetchrow("SELECT * FROM work WHERE address = 'lead' AND need = 'recovery'")
    assert (row["dead_at"], row["attempts"]) == (None, 0)
