"""Chaos in small: a few seeds survive, and what is planted in a real end state is found."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from graft.simulator.repository_git import GitRepository
from graft.simulator.routes.issues import add_comment
from proof import chaos
from proof.evidence import gather
from proof.faults import KILLS, OTHERS, schedule
from proof.ground import prepared
from proof.judge import judge
from proof.load import Load, build, ours


def test_a_seed_is_one_schedule_with_that_many_kills() -> None:
    for seed in range(50):
        planned = schedule(seed, seconds=5, kills=5, others=5)
        assert planned == schedule(seed, seconds=5, kills=5, others=5)
        assert planned == sorted(planned, key=lambda one: one.at)
        assert sum((one.kind in KILLS) * (1 + ("both" in one.kind)) for one in planned) == 5
        assert sum(one.kind in OTHERS for one in planned) == 5
    assert schedule(1, seconds=5, kills=5, others=5) != schedule(2, seconds=5, kills=5, others=5)


def test_a_thousand_kills_meet_every_kind_of_fault() -> None:
    kinds = {one.kind for seed in range(200) for one in schedule(seed, seconds=5, kills=5, others=5)}
    assert kinds == KILLS.keys() | OTHERS.keys()


@pytest.mark.timeout(300)
def test_two_seeds_lose_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "proof", "chaos", "--runs", "2", "--seed", "16"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| processes killed | 10 |" in done.stdout


@pytest.mark.timeout(300)
async def test_what_is_planted_in_a_real_end_is_found(tmp_path: Path, servers_directory: Path) -> None:
    material = build(tmp_path / "shop.git")
    git = GitRepository(material.path)
    async with prepared(servers_directory / "planted", replicas=1) as ground:
        load = Load(ground.simulator, material, git, name="planted")
        await load.run(seconds=2, events=40)
        await chaos.until_quiet(ground)
        sent = list(ground.simulator.deliveries)

        async def verdict() -> list[str]:
            found = judge(await gather(ground, load, sent, [], model_calls=ground.model.calls))
            return [f"{fault.kind}: {fault.what}" for fault in found]

        assert await verdict() == []
        [pull, *_] = [opened.pull for opened in load.opened if ours(opened.pull)]
        [comment] = ours(pull)
        add_comment(ground.simulator.world, pull.issue, comment.user, comment.body, via_app=True)
        [lost] = await ground.fetch(
            "DELETE FROM webhook_deliveries WHERE delivery_id ="
            " (SELECT delivery_id FROM webhook_deliveries LIMIT 1) RETURNING delivery_id"
        )
        await ground.fetch("DELETE FROM intent_spend RETURNING 1")
        found = await verdict()
        assert len(found) == 3
        assert found[0].startswith(f"lost: delivery {lost['delivery_id']}")
        assert re.fullmatch(r"lost: \d+ model calls, \d rows in the ledger", found[1])
        assert found[2].startswith(f"doubled: {pull.repository.full_name}#{pull.number} ")
        assert found[2].endswith(": 2 comments")
        await git.close()
