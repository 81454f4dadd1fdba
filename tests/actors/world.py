"""A whole Graft for one test: simulated GitHub, real NATS and Postgres, the daemon in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from actors.daemon import Daemon, running
from graft.config import Settings
from graft.database import Pool
from graft.llm import LlmClient
from graft.simulator import Comment, Pull, Repository, Simulator
from graft.simulator.demo_repository import RepositoryBuilder

MAIN = {"src/app.py": "def main():\n    return 1\n", "README.md": "# Demo\n"}


class World:
    """The simulator, the daemon, and one repository to work in."""

    def __init__(
        self, simulator: Simulator, daemon: Daemon, builder: RepositoryBuilder, repository: Repository
    ):
        self.simulator = simulator
        self.daemon = daemon
        self.builder = builder
        self.repository = repository

    @property
    def pool(self) -> Pool:
        return self.daemon.services.pool

    def commit(
        self, branch: str, files: Mapping[str, str | None], *, message: str = "Change something"
    ) -> str:
        """A commit on a branch that starts at `main`, known to git and not yet to GitHub."""
        start = None if self.builder.tip(branch) else self.builder.tip("main")
        return self.builder.commit(branch, files, message=message, parent=start)

    async def open(self, branch: str = "feature", **fields: object) -> Pull:
        """Open a pull request from a branch that has commits."""
        sha = self.builder.tip(branch)
        assert sha is not None
        return await self.simulator.open_pull(self.repository, head=sha, head_ref=branch, **fields)  # type: ignore[arg-type]

    async def settled(self, *, seconds: float = 30.0) -> None:
        """Until every webhook is answered, the stream is empty and no live work is left, apart from reviewers that
        are read an hour later."""
        async with asyncio.timeout(seconds):
            await self.simulator.drain()
            while True:
                backlog = await self.daemon.services.bus.backlog()
                left = await self.pool.fetchval(
                    "SELECT count(*) FROM work WHERE dead_at IS NULL AND address <> 'lead'"
                    " AND NOT (need = 'reviewers' AND due_at > now() + interval '1 minute')"
                )
                if not backlog.messages and not left and not self.daemon.system.running:
                    return
                await asyncio.sleep(0.02)

    async def hurried(self) -> None:
        """Until nothing is left, without waiting for retries and verifications to fall due."""
        async with asyncio.timeout(45):
            while True:
                await self.simulator.drain()
                await self.pool.execute("UPDATE work SET due_at = now() WHERE address <> 'lead'")
                left = await self.pool.fetchval(
                    "SELECT count(*) FROM work WHERE dead_at IS NULL AND address <> 'lead'"
                )
                backlog = await self.daemon.services.bus.backlog()
                if not left and not backlog.messages and not self.daemon.system.running:
                    return
                await asyncio.sleep(0.1)

    def comments(self, pull: Pull) -> list[Comment]:
        """The comments that this App left on a pull request."""
        return [c for c in pull.issue.comments if c.body.startswith("<!-- graft:managed-comment")]

    def comment(self, pull: Pull) -> str:
        """The body of the one managed comment."""
        [comment] = self.comments(pull)
        return comment.body

    def checks(self, pull: Pull) -> dict[str, str]:
        """{name: title} of the check runs on the pull request's head; every name is there once."""
        runs = self.repository.runs_at(pull.head_sha)
        assert len({run.name for run in runs}) == len(runs)
        return {run.name: str(run.output["title"]) for run in runs}


@asynccontextmanager
async def world(
    directory: Path,
    settings: Callable[..., Settings],
    *,
    database_url: str,
    nats_url: str,
    prefix: str,
    model: LlmClient | None = None,
    **variables: str,
) -> AsyncIterator[World]:
    """Start everything; the repository is `octo/demo` with a `main` branch."""
    async with Simulator() as simulator:
        builder = RepositoryBuilder(path=directory / "demo.git")
        builder.commit("main", MAIN, message="Start")
        repository = simulator.add_repository("octo/demo", builder.path)
        chosen = settings(**environment(simulator, database_url, nats_url, prefix) | variables)
        async with running(chosen, model=model) as daemon:
            simulator.app.webhook_url = f"{daemon.url}/webhooks/github"
            yield World(simulator, daemon, builder, repository)


def environment(simulator: Simulator, database_url: str, nats_url: str, prefix: str) -> dict[str, str]:
    """The settings of a daemon that works for this simulator."""
    return {
        "DATABASE_URL": database_url,
        "NATS_URL": nats_url,
        "GRAFT_NATS_PREFIX": prefix,
        "GITHUB_API_URL": simulator.base_url,
        "GITHUB_APP_ID": str(simulator.app.id),
        "GITHUB_APP_SLUG": simulator.app.slug,
        "GITHUB_APP_PRIVATE_KEY": simulator.private_key,
        "GITHUB_WEBHOOK_SECRET": simulator.app.webhook_secret,
        "GRAFT_SETTLE_SECONDS": "0",
        # Many tests share a broker, and each stream's size is set aside.
        "GRAFT_STREAM_MAX_BYTES": "1048576",
    }
