"""What every actor is given: the open connections and the settings, and the few things said with them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from actors.partitioning import Partitioning
from graft.bus import Bus
from graft.config import ActorSettings
from graft.database import Connection, Pool
from graft.github import GitHub, comment
from graft.llm import LlmClient
from graft.metrics import Metrics
from graft.store import work


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """Opened once by the daemon, shared by all actors of a process. `llm` is `None` where no model is set."""

    settings: ActorSettings
    pool: Pool
    bus: Bus
    github: GitHub
    llm: LlmClient | None
    metrics: Metrics
    partitioning: Partitioning

    @property
    def author(self) -> comment.Author:
        """Who we are on GitHub."""
        return comment.Author(app_id=self.settings.github_app_id, slug=self.settings.github_app_slug)

    def ask(
        self,
        address: str,
        need: str,
        *,
        installation_id: int,
        repository_id: int | None = None,
        delay: float = 0.0,
        revive: bool = True,
        forced: bool = False,
    ) -> work.Ask:
        """An ask of our own, as of now."""
        return work.Ask(
            address=address,
            need=need,
            partition=self.partitioning.of(address),
            asked_at=datetime.now(UTC),
            installation_id=installation_id,
            repository_id=repository_id,
            delay=delay,
            revive=revive,
            forced=forced,
        )

    async def ask_now(self, *asks: work.Ask, connection: Connection | None = None) -> None:
        """Merge asks into their rows; in the caller's transaction if one is given, which then also wakes."""
        if connection is not None:
            await work.ask(connection, asks)
            return
        async with self.pool.acquire() as own:
            await work.ask(own, asks)
        await self.wake(asks)

    async def wake(self, asks: Iterable[work.Ask]) -> None:
        """Tell the holders of these addresses to look; a lost wake-up costs a second."""
        for partition in sorted({ask.partition for ask in asks}):
            await self.bus.wake(partition)
