"""The lead: the one actor that sweeps. Its address lives in a partition like any other, so exactly one replica
runs it, and its rows remember when each sweep is due next, so a change of hands skips and doubles nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from cronsim import CronSim

from actors.services import Services
from actors.system import Run
from graft.database import Connection
from graft.errors import PermanentError
from graft.logs import get_logger
from graft.store import changes, installations, votes
from graft.triggers import LEAD, installation_address, pull_address

log = get_logger("lead")

RECONCILE_CRON = "*/30 * * * *"
RECENT_DAYS = 7
MOST_CHANGES = 2_000


class LeadActor:
    """Does `feedback` (ask for reactions to be read) and `reconcile` (ask for what may have been missed)."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.sweeps: dict[str, tuple[str, Callable[[Connection], Awaitable[int]]]] = {
            "feedback": (services.settings.feedback_poll_cron, self._feedback),
            "reconcile": (RECONCILE_CRON, self._reconcile),
        }

    async def first(self) -> None:
        """Make sure that every sweep has its row; called at each start, and changes nothing later."""
        await self.services.ask_now(
            *(
                self.services.ask(LEAD, need, installation_id=0, delay=self._wait(cron), revive=True)
                for need, (cron, _) in self.sweeps.items()
            )
        )

    async def run(self, run: Run) -> None:
        for need in sorted(run.needs):
            if need not in self.sweeps:
                raise PermanentError(f"the lead has no need {need!r}", reason="unknown_need")
            cron, sweep = self.sweeps[need]
            run.say(f"sweeping: {need}")
            async with self.services.pool.acquire() as connection, connection.transaction():
                count = await sweep(connection)
            log.info("swept", need=need, count=count)
            await run.postpone(need, self._wait(cron))

    @staticmethod
    def _wait(cron: str) -> float:
        """Seconds until the next time of a cron expression, in UTC."""
        now = datetime.now(UTC)
        return max(1.0, (next(CronSim(cron, now)) - now).total_seconds())

    async def _feedback(self, connection: Connection) -> int:
        """Reactions send no webhook: ask every change with a comment to read its own."""
        found = await votes.changes_to_poll(connection, recent_days=RECENT_DAYS, limit=MOST_CHANGES)
        await self.services.ask_now(
            *(
                self.services.ask(
                    pull_address(repository, number),
                    "reactions",
                    installation_id=installation,
                    repository_id=repository,
                    revive=False,
                )
                for installation, repository, number in found
            ),
            connection=connection,
        )
        return len(found)

    async def _reconcile(self, connection: Connection) -> int:
        """Ask installations what they are now, and open changes without a finished head to finish it."""
        listed = await installations.listed_installations(connection)
        open_ones = await changes.unfinished(connection, limit=MOST_CHANGES)
        await self.services.ask_now(
            *(
                self.services.ask(installation_address(one), "sync", installation_id=one, revive=False)
                for one in listed
            ),
            *(
                self.services.ask(
                    pull_address(repository, number),
                    "intent",
                    installation_id=installation,
                    repository_id=repository,
                    revive=False,
                )
                for installation, repository, number in open_ones
            ),
            connection=connection,
        )
        return len(listed) + len(open_ones)
