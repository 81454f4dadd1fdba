"""The lead: the one actor that sweeps. Its address lives in a partition like any other, so exactly one replica
runs it, and its rows remember when each sweep is due next, so a change of hands skips and doubles nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from cronsim import CronSim

from actors.recovery import Recoverer
from actors.run import Run, describe
from actors.services import Services
from graft.database import Connection
from graft.errors import PermanentError
from graft.github import AppRefused
from graft.logs import get_logger
from graft.store import changes, incidents, installations, purge, rollups, votes
from graft.store.ratings import Scope
from graft.triggers import LEAD, installation_address, pull_address, repository_address

log = get_logger("lead")

RECONCILE_CRON = "*/30 * * * *"
# A sweep that finds nothing new costs one request.
RECOVERY_CRON = "* * * * *"
PURGE_CRON = "40 * * * *"
RECENT_DAYS = 7
# Votes and failures may come late: this many past days are computed anew.
ROLLUP_DAYS = 8
UNLINKED_DAYS = 60
MOST_CHANGES = 2_000


class LeadActor:
    """Does `feedback` (ask for reactions to be read), `reconcile` (ask for what may have been missed), `recovery`
    (have GitHub send again what never arrived), `rollup` (the days in numbers) and `purge` (remove what deleted
    installations left)."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.recoverer = Recoverer(services)
        self.sweeps: dict[str, tuple[str, Callable[[], Awaitable[int]]]] = {
            "feedback": (services.settings.feedback_poll_cron, self._in_transaction(self._feedback)),
            "reconcile": (RECONCILE_CRON, self._in_transaction(self._reconcile)),
            "recovery": (RECOVERY_CRON, self.recoverer.sweep),
            "rollup": (services.settings.rollup_cron, self._in_transaction(self._rollup)),
            "purge": (PURGE_CRON, self._in_transaction(self._purge)),
        }

    async def first(self) -> None:
        """Make sure that every sweep has its row; called at each start, and changes nothing later."""
        await self.services.ask_now(
            *(
                self.services.ask(LEAD, need, installation_id=0, delay=self._wait(cron), revive=True)
                for need, (cron, _) in self.sweeps.items()
            )
        )
        await self.recover()

    async def recover(self) -> None:
        """Have the log of deliveries looked at now: at a start, and when the broker is back."""
        await self.services.ask_now(self.services.ask(LEAD, "recovery", installation_id=0))

    async def run(self, run: Run) -> None:
        for need in sorted(run.needs):
            if need not in self.sweeps:
                raise PermanentError(f"the lead has no need {need!r}", reason="unknown_need")
            cron, sweep = self.sweeps[need]
            run.say(f"sweeping: {need}")
            wait = self._wait(cron)
            try:
                count = await sweep()
            except AppRefused:
                raise
            except Exception as error:  # noqa: BLE001 - a sweep that fails comes again, however often it fails
                wait = max(wait, getattr(error, "retry_after", None) or 0.0)
                log.warning("sweep failed", need=need, **describe(error))
            else:
                say = log.info if count else log.debug
                say("swept", need=need, count=count)
            await run.postpone(need, wait)

    def _in_transaction(self, sweep: Callable[[Connection], Awaitable[int]]) -> Callable[[], Awaitable[int]]:
        async def swept() -> int:
            async with self.services.pool.acquire() as connection, connection.transaction():
                return await sweep(connection)

        return swept

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

    async def _rollup(self, connection: Connection) -> int:
        """Compute the numbers of today and of the last days, and look again at incidents that are not linked."""
        await self.services.ask_now(
            *(
                self.services.ask(
                    repository_address(repository),
                    "incidents",
                    installation_id=installation,
                    repository_id=repository,
                    revive=False,
                )
                for installation, repository in await incidents.unlinked(
                    connection, recent_days=UNLINKED_DAYS
                )
            ),
            connection=connection,
        )
        now = datetime.now(UTC)
        scope = Scope(since=now - timedelta(days=ROLLUP_DAYS), until=now + timedelta(seconds=1))
        return await rollups.refresh(connection, scope)

    async def _purge(self, connection: Connection) -> int:
        """Ask installations that were deleted long enough ago whether they are still gone; their own actor then
        removes them. So it does with what came late for one that was purged."""
        found = await purge.due(connection, after_days=self.services.settings.purge_after_days)
        await self.services.ask_now(
            *(self.services.ask(installation_address(one), "sync", installation_id=one) for one in found),
            connection=connection,
        )
        return len(found)
