"""The scenarios pass against a Graft that works, on both stages, and fail against one that does not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from actors.daemon import running
from graft.config import Settings
from graft.e2e import SCENARIOS, Outcome, Played, play, require_sandbox, to_json, to_markdown
from graft.e2e.live import LiveStage
from graft.e2e.metrics import read_votes
from graft.e2e.simulated import SimulatedStage
from graft.e2e.stage import BRANCH_PREFIX
from graft.errors import ConfigError, TransientError
from graft.simulator import Repository, Simulator
from graft.simulator.demo_repository import RepositoryBuilder
from graft.testing import agreeable_model
from tests.actors.world import environment

from .front import TOKEN, Front, serving

QUICK = [
    scenario for scenario in SCENARIOS if scenario.name in ("open", "force-push", "vote-button", "uninstall")
]


class Sandbox:
    """A simulated GitHub, a daemon that serves it, and a repository to play in."""

    def __init__(
        self, simulator: Simulator, builder: RepositoryBuilder, repository: Repository, url: str
    ) -> None:
        self.simulator = simulator
        self.builder = builder
        self.repository = repository
        self.metrics_url = f"{url}/metrics"
        self.stage = SimulatedStage(simulator, builder, repository, self.metrics_url)


@pytest.fixture
async def sandbox(
    tmp_path: Path, settings: Callable[..., Settings], database_url: str, nats_url: str, bus_prefix: str
) -> AsyncIterator[Sandbox]:
    async with Simulator() as simulator:
        chosen = settings(**environment(simulator, database_url, nats_url, bus_prefix))
        async with running(chosen, model=agreeable_model()) as daemon:
            simulator.app.webhook_url = f"{daemon.url}/webhooks/github"
            builder = RepositoryBuilder(path=tmp_path / "sandbox.git")
            builder.commit("main", {"README.md": "# Sandbox\n"}, message="Start")
            yield Sandbox(
                simulator, builder, simulator.add_repository("octo/sandbox", builder.path), daemon.url
            )


def outcomes(played: list[Played]) -> dict[str, tuple[Outcome, str]]:
    return {each.name: (each.outcome, each.detail) for each in played}


async def test_a_working_graft_passes_twice_and_is_left_clean(sandbox: Sandbox) -> None:
    for _ in range(2):
        played = await play(sandbox.stage, QUICK, patience=60, look=0.05)
        assert outcomes(played) == {each.name: (Outcome.PASSED, "") for each in QUICK}
    assert [pull.issue.state for pull in sandbox.repository.pulls if pull.issue.state == "open"] == []
    assert list(sandbox.repository.branches) == ["main"]


async def test_the_live_stage_does_the_same_over_the_api(sandbox: Sandbox) -> None:
    front = Front(sandbox.simulator, sandbox.builder, sandbox.repository)
    left_behind = f"{BRANCH_PREFIX}left-behind"
    sha = await sandbox.stage.branch(left_behind, {"x.py": "1\n"})
    await sandbox.simulator.open_pull(sandbox.repository, head=sha, head_ref=left_behind)
    names = ("open", "push", "retarget", "rerun", "rename", "fork", "vote-button", "uninstall")
    chosen = [scenario for scenario in SCENARIOS if scenario.name in names]
    async with (
        serving(front) as url,
        LiveStage(url, TOKEN, "octo/sandbox", app_slug="graft", metrics_url=sandbox.metrics_url) as stage,
    ):
        found = outcomes(await play(stage, chosen, patience=90, look=0.1))
    assert {name: outcome for name, (outcome, _) in found.items()} == {
        **dict.fromkeys(names, Outcome.PASSED),
        **dict.fromkeys(("fork", "vote-button", "uninstall"), Outcome.SKIPPED),
    }, found
    assert "no API to press" in found["vote-button"][1]
    assert [pull.head_ref for pull in sandbox.repository.pulls if pull.issue.state == "open"] == []
    assert list(sandbox.repository.branches) == ["main"]
    assert sandbox.repository.full_name == "octo/sandbox"


async def test_a_graft_that_says_nothing_fails_with_what_was_missing(tmp_path: Path) -> None:
    builder = RepositoryBuilder(path=tmp_path / "sandbox.git")
    builder.commit("main", {"README.md": "# Sandbox\n"}, message="Start")
    async with Simulator() as simulator:
        repository = simulator.add_repository("octo/sandbox", builder.path)
        stage = SimulatedStage(simulator, builder, repository, "http://127.0.0.1:1/metrics")
        chosen = [scenario for scenario in SCENARIOS if scenario.name in ("open", "vote-button")]
        played = await play(stage, chosen, patience=0.2, look=0.02)
    assert outcomes(played) == dict.fromkeys(
        ("open", "vote-button"),
        (Outcome.FAILED, "one comment and 3 neutral checks for the head, not within 0.2 s"),
    )
    assert list(repository.branches) == ["main"]
    report = to_markdown(played, repository="octo/sandbox", github="x", at=datetime(2026, 1, 2, tzinfo=UTC))
    assert "0 passed, 2 failed, 0 skipped" in report
    document = msgspec.json.decode(
        to_json(played, repository="octo/sandbox", github="x", at=datetime(2026, 1, 2, tzinfo=UTC))
    )
    assert [each["outcome"] for each in document["scenarios"]] == ["failed", "failed"]


@pytest.mark.parametrize("name", ["octo/product", "octo/sandbox-2", "sandbox", "octo/sandbox/x", ""])
def test_only_listed_repositories_are_played_with(tmp_path: Path, name: str) -> None:
    listed = tmp_path / "sandboxes.txt"
    listed.write_text("# ours\nocto/Sandbox  # renamed in every play\n\n")
    require_sandbox(listed, "octo/sandbox")
    with pytest.raises(ConfigError, match="nothing was touched"):
        require_sandbox(listed, name)


def test_a_list_that_cannot_be_read_lists_nothing(tmp_path: Path) -> None:
    listed = tmp_path / "sandboxes.txt"
    with pytest.raises(ConfigError, match="cannot be read"):
        require_sandbox(listed, "octo/sandbox")
    listed.write_text("octo/*\n")
    with pytest.raises(ConfigError, match="line 1"):
        require_sandbox(listed, "octo/sandbox")


def test_the_command_refuses_before_it_asks_for_anything(tmp_path: Path) -> None:
    listed = tmp_path / "sandboxes.txt"
    listed.write_text("octo/sandbox\n")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "graft", "e2e", "--repository", "octo/product", "--app", "graft"),
            *("--sandboxes", str(listed)),
        ],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": "http://127.0.0.1:1"},
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "octo/product is not on the list" in done.stderr


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ("nothing {", 200, "not those of Graft"),
        ("", 503, "answered 503"),
        ("graft_votes 1", 200, "not those"),
    ],
)
async def test_metrics_that_cannot_be_read_are_said_to_be(body: str, status: int, said: str) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=body, status=status)

    app = web.Application()
    app.router.add_get("/metrics", answer)
    async with TestServer(app) as server:
        with pytest.raises(TransientError, match=said):
            await read_votes(str(server.make_url("/metrics")))
    with pytest.raises(TransientError, match="do not answer"):
        await read_votes("http://127.0.0.1:1/metrics")
    with pytest.raises(ConfigError, match="--metrics"):
        await read_votes("file:///etc/passwd")
