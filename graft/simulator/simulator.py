"""The simulated GitHub as one object: start it, act on it, look at what it saw."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from graft.simulator.acts.administration import AdministrationActs
from graft.simulator.acts.conversation import ConversationActs
from graft.simulator.acts.pulls import PullActs
from graft.simulator.faults import Faults
from graft.simulator.identity import shared_private_key
from graft.simulator.routes import ROUTES
from graft.simulator.server import GitHubServer, RequestLog
from graft.simulator.state import AppRecord, Installation, World
from graft.simulator.webhooks import Delivery


class Simulator(PullActs, ConversationActs, AdministrationActs):
    """A GitHub with one App, in this process.

    Without a private key, one is made and shared by all simulators of the process. `prefix` puts the API
    below a path, as GitHub Enterprise Server does (`/api/v3`). `now` gives the time in seconds since 1970.
    """

    def __init__(
        self,
        *,
        app_id: int = 984_386,
        slug: str = "graft",
        private_key: str | None = None,
        webhook_secret: str = "a secret for the simulator",  # noqa: S107  # of no use anywhere else
        webhook_url: str | None = None,
        prefix: str = "",
        now: Callable[[], float] = time.time,
    ) -> None:
        world = World(now=now)
        app = AppRecord(
            id=app_id,
            slug=slug,
            name=slug.title(),
            owner=world.user("octocat"),
            client_id=f"Iv23li{app_id:014d}",
            webhook_secret=webhook_secret,
            webhook_url=webhook_url,
            created_at=world.time(),
        )
        server = GitHubServer(world, app, private_key or shared_private_key(), prefix=prefix, routes=ROUTES)
        super().__init__(server)
        self._runner: web.AppRunner | None = None

    @property
    def app(self) -> AppRecord:
        """The App: id, slug, secret, and the URL that its webhooks go to, which may be set at any time."""
        return self.server.app

    @property
    def private_key(self) -> str:
        """The App's key as PEM."""
        return self.server.private_key

    @property
    def base_url(self) -> str:
        """Where the API is; empty before the start."""
        return self.server.urls.api

    @property
    def faults(self) -> Faults:
        return self.server.faults

    @property
    def requests(self) -> RequestLog:
        """Every request so far, with route template and status."""
        return self.server.requests

    @property
    def deliveries(self) -> list[Delivery]:
        """Every webhook delivery so far, oldest first."""
        return self.server.webhooks.log

    async def start(self, *, host: str = "127.0.0.1", port: int = 0) -> str:
        """Listen, and return the base URL of the API."""
        self._runner = web.AppRunner(self.server.application, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        await site.start()
        bound = self._runner.addresses[0][1]
        self.server.urls.web = f"http://{host}:{bound}"
        self.server.urls.api = self.server.urls.web + self.server.prefix
        return self.base_url

    async def stop(self) -> None:
        """Stop listening; whatever hangs or is on the way ends."""
        self.faults.release()
        await self.server.webhooks.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        for git in {repository.git for repository in self.world.repositories.values()}:
            await git.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def drain(self) -> None:
        """Wait until every webhook that was sent is answered or given up."""
        await self.server.webhooks.drain()

    def send(
        self,
        event: str,
        payload: dict[str, Any],
        *,
        installation: Installation | None = None,
        repository_id: int | None = None,
    ) -> Delivery:
        """Send any payload as a signed webhook."""
        return self.server.webhooks.emit(event, payload, installation, repository_id)

    def redeliver(self, guid: str) -> Delivery:
        """Send the latest attempt of this GUID again. Raises `KeyError` for a GUID that never was."""
        for delivery in reversed(self.deliveries):
            if delivery.guid == guid:
                return self.server.webhooks.redeliver(delivery)
        raise KeyError(guid)
