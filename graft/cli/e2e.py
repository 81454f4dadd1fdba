"""`graft e2e`: plays the scenarios on a simulated GitHub, or on a sandbox repository of a real one."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import click
import uvloop

from graft import embedded, logs
from graft.cli.daemon import fail
from graft.cli.demo import settings_for
from graft.config import ReaderSettings
from graft.e2e import SCENARIOS, Outcome, Played, Scenario, Stage, play, require_sandbox, to_json, to_markdown
from graft.e2e.live import LiveStage
from graft.e2e.simulated import SimulatedStage
from graft.errors import ConfigError, GraftError
from graft.simulator import Simulator
from graft.simulator.demo_repository import RepositoryBuilder
from graft.testing import agreeable_model

NAMES = [scenario.name for scenario in SCENARIOS]


@click.command()
@click.option(
    "--repository", metavar="OWNER/REPO", help="A sandbox on a real GitHub, with the App installed."
)
@click.option(
    "--sandboxes",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The list of repositories that may be played with, a full name a line.",
)
@click.option("--metrics", "metrics_url", metavar="URL", help="The daemon's /metrics, to see votes arrive.")
@click.option("--app", "app_slug", metavar="SLUG", help="The App whose comments and checks are looked at.")
@click.option(
    "--scenario", "chosen", multiple=True, type=click.Choice(NAMES), help="Only these; may be repeated."
)
@click.option(
    "--patience", type=click.FloatRange(1, 3600), default=180.0, show_default=True, help="Seconds to wait."
)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the report here: .md or .json."
)
def e2e(
    repository: str | None,
    sandboxes: Path | None,
    metrics_url: str | None,
    app_slug: str | None,
    chosen: Sequence[str],
    patience: float,
    output: Path | None,
) -> None:
    """Do what people do and see whether Graft shows what it should.

    Without --repository everything runs here against a simulated GitHub. With it, GITHUB_TOKEN is a token of a
    person who may push to the sandbox, and a running Graft serves it. Exits with 1 when a scenario failed.
    """
    scenarios = [scenario for scenario in SCENARIOS if not chosen or scenario.name in chosen]
    try:
        if repository is None:
            played, where = uvloop.run(_simulated(scenarios, patience)), "a simulated GitHub"
            name = "octo/sandbox"
        else:
            if sandboxes is None or app_slug is None:
                raise ConfigError(["--repository needs --sandboxes and --app as well; nothing was touched"])
            require_sandbox(sandboxes, repository)
            settings = ReaderSettings.from_env(os.environ)
            stage = LiveStage(
                settings.github_api_url,
                settings.github_token.value,
                repository,
                app_slug=app_slug,
                metrics_url=metrics_url,
            )
            played, where = uvloop.run(_live(stage, scenarios, patience)), settings.github_api_url
            name = repository
    except ConfigError as error:
        fail(error)
    except GraftError as error:
        fail(ConfigError([f"--repository: {error}"]))
    at = datetime.now(UTC)
    report = to_markdown(played, repository=name, github=where, at=at)
    click.echo(report, nl=False)
    if output is not None:
        as_json = output.suffix == ".json"
        output.write_bytes(
            to_json(played, repository=name, github=where, at=at) if as_json else report.encode()
        )
    sys.exit(1 if any(each.outcome is Outcome.FAILED for each in played) else 0)


async def _simulated(scenarios: Sequence[Scenario], patience: float) -> list[Played]:
    logs.configure(level="error", form="console")
    async with simulated_stage() as stage:
        return await play(stage, scenarios, patience=patience, look=0.1)


async def _live(stage: LiveStage, scenarios: Sequence[Scenario], patience: float) -> list[Played]:
    async with stage:
        return await play(stage, scenarios, patience=patience, look=5.0)


@asynccontextmanager
async def simulated_stage() -> AsyncIterator[Stage]:
    """Real NATS, Postgres and daemon, a simulated GitHub, and a model that agrees with everything."""
    from actors.daemon import running

    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="graft-e2e-")))
        nats = await stack.enter_async_context(embedded.nats_server(directory / "nats"))
        postgres = await stack.enter_async_context(embedded.postgres_server(directory / "postgres"))
        simulator = await stack.enter_async_context(Simulator())
        settings = settings_for(simulator, nats.url, postgres.url(), GRAFT_FEEDBACK_POLL_CRON="* * * * *")
        daemon = await stack.enter_async_context(running(settings, model=agreeable_model()))
        simulator.app.webhook_url = f"{daemon.url}/webhooks/github"
        builder = RepositoryBuilder(path=directory / "sandbox.git")
        builder.commit("main", {"README.md": "# Sandbox\n"}, message="Start")
        repository = simulator.add_repository("octo/sandbox", builder.path)
        yield SimulatedStage(simulator, builder, repository, f"{daemon.url}/metrics")
