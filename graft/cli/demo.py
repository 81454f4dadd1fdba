"""`graft demo`: the whole way of a delivery, with everything real but GitHub.

NATS, Postgres and the daemon run as they would in production; a simulated GitHub over a local git repository
opens the pull request, sends the signed webhook and takes the comment and the check runs.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.markdown import Markdown
from rich.panel import Panel
from rich.table import Table

from actors.daemon import Daemon, running
from graft import embedded, logs
from graft.cli.daemon import run_to_end, stop_on_signals
from graft.config import Settings
from graft.errors import ConfigError
from graft.simulator import Pull, Repository, Simulator
from graft.simulator.demo_repository import build_demo_repository

PUBLISH_SECONDS = 60.0
REPOSITORY = "octo/demo"


@click.command()
@click.option(
    "--repo",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A local git repository to open the pull request in.",
)
@click.option("--range", "commits", metavar="BASE..HEAD", help="The commits that become the pull request.")
@click.option("--once", is_flag=True, help="End after publishing instead of serving until Ctrl-C.")
def demo(repo: Path | None, commits: str | None, once: bool) -> None:
    """Open a pull request on a simulated GitHub and show what Graft publishes.

    Without a repository a small one is made. Nothing leaves this machine and nothing is written to the
    repository.
    """
    if (repo is None) != (commits is None):
        raise click.UsageError("--repo and --range go together")
    run_to_end(show(repo, commits, once=once))


async def show(repo: Path | None, commits: str | None, *, once: bool) -> None:
    """Run the demo on the terminal."""
    console = Console()
    logs.configure(level="warning", form="console")
    stop = stop_on_signals()
    began = time.monotonic()
    async with world() as (simulator, daemon, directory):
        console.print(
            f"[dim]NATS, Postgres, GitHub and the daemon are up ({time.monotonic() - began:.1f} s)[/]"
        )
        published = asyncio.Event()

        def hear(name: str, payload: dict[str, object]) -> None:
            if name == "published" and payload.get("final"):
                published.set()

        await daemon.services.bus.subscribe_signals(hear)
        opened = time.monotonic()
        repository, pull = await open_pull(simulator, directory, repo, commits)
        console.print(f"Pull request [bold]{REPOSITORY}#{pull.number}[/] opened, signed webhook sent")
        try:
            await asyncio.wait_for(published.wait(), PUBLISH_SECONDS)
        except TimeoutError:
            raise ConfigError(
                [f"nothing was published within {PUBLISH_SECONDS:.0f} s; see the log above"]
            ) from None
        console.print(f"[dim]Published after {time.monotonic() - opened:.2f} s[/]\n")
        render(console, repository, pull)
        if once:
            return
        console.print(
            f"\nServing webhooks on [bold]{daemon.url}/webhooks/github[/], metrics on {daemon.url}/metrics; "
            f"the simulated GitHub is {simulator.base_url}. Ctrl-C ends it."
        )
        await stop.wait()
        console.print("Shutting down")


@asynccontextmanager
async def world() -> AsyncIterator[tuple[Simulator, Daemon, Path]]:
    """Real servers in a temporary directory, a simulated GitHub, and the daemon between them."""
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="graft-demo-")))
        nats = await stack.enter_async_context(embedded.nats_server(directory / "nats"))
        postgres = await stack.enter_async_context(embedded.postgres_server(directory / "postgres"))
        simulator = await stack.enter_async_context(Simulator())
        daemon = await stack.enter_async_context(running(settings_for(simulator, nats.url, postgres.url())))
        simulator.app.webhook_url = f"{daemon.url}/webhooks/github"
        yield simulator, daemon, directory


def settings_for(simulator: Simulator, nats_url: str, database_url: str, **variables: str) -> Settings:
    """Settings of a daemon that works for a simulated GitHub."""
    return Settings.from_env(
        {
            "DATABASE_URL": database_url,
            "NATS_URL": nats_url,
            "GITHUB_API_URL": simulator.base_url,
            "GITHUB_APP_ID": str(simulator.app.id),
            "GITHUB_APP_SLUG": simulator.app.slug,
            "GITHUB_APP_PRIVATE_KEY": simulator.private_key,
            "GITHUB_WEBHOOK_SECRET": simulator.app.webhook_secret,
            "GRAFT_LISTEN": "127.0.0.1:0",
            "GRAFT_SETTLE_SECONDS": "0",
            **variables,
        }
    )


async def open_pull(
    simulator: Simulator, directory: Path, repo: Path | None, commits: str | None
) -> tuple[Repository, Pull]:
    """Open the demo's pull request, or one of the range. Raises ConfigError for a bad repository or range."""
    if repo is None or commits is None:
        made = build_demo_repository(directory / "demo.git")
        repository = simulator.add_repository(REPOSITORY, made.path)
        return repository, await simulator.open_pull(
            repository, head=made.head_branch, title=made.title, body=made.body
        )
    try:
        repository = simulator.add_repository(REPOSITORY, repo)
        return repository, await simulator.open_pull(
            repository, head=commits, title=f"The commits {commits}", body=None
        )
    except ValueError as error:
        raise ConfigError([f"--repo, --range: {error}"]) from None


def render(console: Console, repository: Repository, pull: Pull) -> None:
    """Show the comment and the check runs as a reader of the pull request sees them."""
    for comment in pull.issue.comments:
        body = re.sub(r"<!--.*?-->|</?sub>", "", comment.body, flags=re.DOTALL)
        console.print(
            Panel(Markdown(body.strip()), title=f"comment by {comment.user.login}", border_style="cyan")
        )
    table = Table("check run", "conclusion", "title")
    for run in reversed(repository.runs_at(pull.head_sha)):
        table.add_row(run.name, run.conclusion or run.status, str(run.output.get("title", "")))
    console.print(table)
