"""The numbers of a daemon after it has done something, and while its database is away."""

from __future__ import annotations

import asyncio
import re

import aiohttp

from graft.testing import agreeable_model

from .conftest import MakeWorld
from .world import World

CHANGE = {"src/app.py": "def main():\n    return 2\n"}


async def scraped(graft: World) -> dict[str, float]:
    """{series with labels: value}"""
    async with aiohttp.ClientSession() as http, http.get(f"{graft.daemon.url}/metrics") as answer:
        assert answer.status == 200
        text = await answer.text()
    return {m[1]: float(m[2]) for m in re.finditer(r"^(graft_\S+) (\S+)$", text, re.MULTILINE)}


async def readiness(graft: World) -> tuple[int, dict[str, str]]:
    async with aiohttp.ClientSession() as http, http.get(f"{graft.daemon.url}/readyz") as answer:
        return answer.status, (await answer.json())["checks"]


async def test_a_shown_pull_request_is_counted_on_every_way(make_world: MakeWorld) -> None:
    async with make_world(model=agreeable_model()) as graft:
        graft.commit("feature", CHANGE)
        await graft.open()
        await graft.settled()
        found = await scraped(graft)
        assert found['graft_deliveries_total{event="pull_request",outcome="accepted"}'] == 1
        assert found['graft_triggers_taken_total{outcome="stored"}'] >= 1
        assert found["graft_heads_total"] == 1
        calls = sum(value for name, value in found.items() if name.startswith("graft_github_calls_total"))
        assert 0 < found['graft_actor_github_calls_total{kind="pull"}'] <= calls
        assert found['graft_work_seconds_count{kind="pull",need="intent"}'] == 1
        assert found['graft_stage_seconds_count{kind="pull",stage="asking_the_model"}'] == 1
        assert found['graft_actor_runs_total{kind="pull",outcome="done"}'] >= 1
        answered = [name for name in found if name.startswith("graft_model_calls_total")]
        assert sum(found[name] for name in answered) == 3
        assert all('outcome="ok"' in name for name in answered)
        cost = sum(value for name, value in found.items() if name.startswith("graft_model_cost_usd_total"))
        assert cost > 0
        assert abs(found["graft_spend_today_usd"] - cost) < 1e-6, "the ledger and the counter agree"
        assert found["graft_replicas"] == 1
        assert (found["graft_partitions_held"], found["graft_partitions_unheld"]) == (32, 0)
        assert (found['graft_work{state="due"}'], found['graft_work{state="dead"}']) == (0, 0)
        assert found["graft_backlog_messages"] == 0
        assert found["graft_backlog_max_bytes"] > 0


async def test_no_label_holds_a_name_or_a_number_from_outside(graft: World) -> None:
    graft.commit("feature", CHANGE)
    pull = await graft.open()
    await graft.settled()
    text = " ".join(await scraped(graft))
    assert "octo" not in text
    assert pull.head_sha[:10] not in text
    assert str(graft.repository.id) not in text


async def test_while_the_app_is_refused_readiness_says_so_and_takes_deliveries(graft: World) -> None:
    assert await readiness(graft) == (
        200,
        {"broker": "ok", "database": "ok", "partitions": "ok", "github": "ok"},
    )
    graft.simulator.faults.refuse_app_key = True
    await graft.daemon.services.ask_now(graft.daemon.services.ask("lead", "recovery", installation_id=0))
    async with asyncio.timeout(20):
        while (await readiness(graft))[1]["github"] != "app_refused":
            await asyncio.sleep(0.05)
    assert (await readiness(graft))[0] == 200
    assert (await scraped(graft))["graft_app_refused"] == 1


async def test_without_its_database_a_daemon_shows_no_old_numbers_and_takes_deliveries(graft: World) -> None:
    await graft.pool.execute("ALTER TABLE work RENAME TO gone")
    try:
        found = await scraped(graft)
        assert found['graft_sample_failures_total{source="database"}'] == 1
        assert str(found["graft_replicas"]) == "nan"
        assert found["graft_backlog_messages"] == 0, "other sources go on"
        assert (await readiness(graft))[0] == 200
    finally:
        await graft.pool.execute("ALTER TABLE gone RENAME TO work")
