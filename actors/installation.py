"""The actor of one installation: makes the stored rows what the API says now.

Events about installations carry no order, so none of them is believed: each only asks for `sync`. One that GitHub
does not know any more loses everything it has here after a grace period.
"""

from __future__ import annotations

from actors.run import Run
from actors.services import Services
from graft.bus import BusUnavailable
from graft.database import Connection
from graft.github import NotFound, installations
from graft.logs import get_logger
from graft.store import installations as rows
from graft.store import purge
from graft.triggers import subjects_of

log = get_logger("installation")


class InstallationActor:
    """Does `sync` for `installation.<id>`."""

    def __init__(self, services: Services) -> None:
        self.services = services

    async def run(self, run: Run) -> None:
        installation_id = int(run.address.partition(".")[2])
        run.say("reading the installation")
        try:
            record = await installations.read_installation(self.services.github.app, installation_id)
        except NotFound:
            await self._gone(run, installation_id)
            return
        repositories = None
        if record.suspended_at is None:
            run.say("listing repositories")
            repositories = await installations.list_installation_repositories(
                self.services.github.installation(installation_id)
            )

        async def store(connection: Connection) -> None:
            account = record.account
            await rows.describe(
                connection,
                installation_id,
                account_id=account.id if account else None,
                account_login=account.login if account else None,
                account_type=account.type if account else None,
                repository_selection=record.repository_selection,
                permissions=record.permissions,
                events=record.events,
                suspended_at=record.suspended_at,
            )
            # A list that was cut says nothing of those it does not name.
            if repositories is not None and repositories.complete:
                listed = [
                    rows.ListedRepository(
                        id=r.id,
                        full_name=r.full_name,
                        default_branch=r.default_branch or None,
                        private=r.private,
                        archived=r.archived,
                    )
                    for r in repositories
                ]
                await rows.set_repositories(connection, installation_id, listed)

        await run.finish("sync", also=store)
        await self.services.bus.signal("installation synced", {"installation_id": installation_id})

    async def _gone(self, run: Run, installation_id: int) -> None:
        """Remember that it is gone; once the grace period is over, or it was purged before, remove all of it."""
        purged: purge.Purged | None = None

        async def store(connection: Connection) -> None:
            nonlocal purged
            if not await purge.is_purged(connection, installation_id):
                await rows.mark_deleted(connection, installation_id)
                days = await purge.deleted_for(connection, installation_id)
                if days is None or days < self.services.settings.purge_after_days:
                    return
            purged = await purge.purge(connection, installation_id, reason="installation_deleted")

        await run.finish("sync", also=store)
        await self.services.github.forget(installation_id)
        if purged is None:
            log.info("installation deleted", installation_id=installation_id)
            return
        log.info("installation purged", installation_id=installation_id, count=purged.total)
        try:
            await self.services.bus.discard(subjects_of(installation_id, purged.repositories))
        except BusUnavailable as error:
            # The tombstone drops whatever still comes out of the stream.
            log.warning("triggers not discarded", installation_id=installation_id, reason=error.reason)
