"""The actor of one repository: its name, its base branches, and the votes and re-runs that name no pull request."""

from __future__ import annotations

from uuid import UUID

from actors import incidents
from actors.run import Run
from actors.services import Services
from graft.database import Connection
from graft.errors import PermanentError
from graft.github import CommitFiles, Installation, NotFound, checks, repositories
from graft.logs import get_logger
from graft.policy import CANDIDATES
from graft.store import cards, changes, installations, votes
from graft.store.installations import Repository
from graft.triggers import EVERYTHING, pull_address

log = get_logger("repository")

# What a push may change for the pull requests of a branch: the policy, and the approved records.
RECORDS_DIRECTORY = ".intent"
# Open pull requests that one push re-evaluates; they are asked in fair turns like any other work.
MOST_PULLS = 500


class RepositoryActor:
    """Does `sync`, `push`, `votes`, `incidents` and `rerun:<step>:<head>` for `repository.<id>`."""

    def __init__(self, services: Services) -> None:
        self.services = services

    async def run(self, run: Run) -> None:
        repository_id = int(run.address.partition(".")[2])
        if "sync" in run.needs:
            await self._sync(run, repository_id)
        if not run.rows:
            return
        async with self.services.pool.acquire() as connection:
            repository = await installations.repository(connection, repository_id)
        if repository is None or not repository.active:
            # Unknown yet, or removed: `sync` finds out which; everything else waits for it.
            await self._sync(run, repository_id)
            async with self.services.pool.acquire() as connection:
                repository = await installations.repository(connection, repository_id)
            if repository is None or not repository.active:
                await run.finish(*run.needs)
                return
        client = self.services.github.installation(repository.installation_id)
        for need in sorted(run.needs):
            if need == "push":
                await self._push(run, client, repository)
            elif need == "votes":
                await self._votes(run, client, repository)
            elif need == "incidents":
                await incidents.sync(self.services, run, client, repository)
            elif need.startswith("rerun:"):
                await self._rerun(run, repository, need)
            else:
                raise PermanentError(f"a repository has no need {need!r}", reason="unknown_need")

    async def _sync(self, run: Run, repository_id: int) -> None:
        """Read name, owner and state again. A repository that cannot be seen is removed from its installation."""
        run.say("reading the repository")
        installation_id = run.installation_id
        try:
            found = await repositories.read_repository(
                self.services.github.installation(installation_id), repository_id
            )
        except NotFound:

            async def remove(connection: Connection) -> None:
                await installations.remove_repository(connection, installation_id, repository_id)

            await run.finish("sync", also=remove)
            return
        listed = installations.ListedRepository(
            id=found.id,
            full_name=found.full_name,
            default_branch=found.default_branch or None,
            private=found.private,
            archived=found.archived,
        )

        async def store(connection: Connection) -> None:
            await installations.describe_repository(connection, installation_id, listed)

        await run.finish("sync", also=store)

    async def _push(self, run: Run, client: Installation, repository: Repository) -> None:
        """Ask the open pull requests of every branch on which policy or records have changed."""
        run.say("comparing base branches")
        async with self.services.pool.acquire() as connection:
            bases = await changes.open_bases(connection, repository.id)
        watched: dict[str, dict[str, str | None]] = {}
        asks = []
        for base in bases:
            try:
                head = await repositories.read_branch_head(client, repository.full_name, base)
                entries = await CommitFiles(client, repository.full_name, head).entries(
                    [*CANDIDATES, RECORDS_DIRECTORY]
                )
            except NotFound:
                continue
            seen = {path: entry.sha for path, entry in sorted(entries.items()) if entry.sha}
            watched[base] = dict(seen)
            if repository.watched.get(base) == watched[base]:
                continue
            async with self.services.pool.acquire() as connection:
                numbers = await changes.open_numbers(connection, repository.id, base, limit=MOST_PULLS)
            asks += [
                self.services.ask(
                    pull_address(repository.id, number),
                    "policy",
                    installation_id=repository.installation_id,
                    repository_id=repository.id,
                )
                for number in numbers
            ]

        async def store(connection: Connection) -> None:
            await installations.set_watched(connection, repository.id, watched)
            await self.services.ask_now(*asks, connection=connection)

        await run.finish("push", also=store)
        await self.services.wake(asks)

    async def _votes(self, run: Run, client: Installation, repository: Repository) -> None:
        """Confirm presses of the card's buttons through the API, and record them.

        The check run must be ours and carry a card of this repository; who pressed which button comes from the
        trigger. A press that cannot be confirmed is dropped.
        """
        run.say("confirming votes")
        async with self.services.pool.acquire() as connection:
            pressed = await votes.pending(connection, repository.id)
        confirmed: list[tuple[votes.PendingVote, votes.Vote | None]] = []
        for press in pressed:
            vote = await self._confirm(client, repository, press)
            confirmed.append((press, vote))
        asks = {
            vote.change_id: self.services.ask(
                await self._address_of(vote.change_id, repository.id),
                "reviewers",
                installation_id=repository.installation_id,
                repository_id=repository.id,
            )
            for _, vote in confirmed
            if vote is not None
        }

        async def store(connection: Connection) -> None:
            for _, vote in confirmed:
                if vote is not None:
                    await votes.record(connection, vote)
            await votes.settle(connection, [press.delivery_id for press, _ in confirmed])
            await self.services.ask_now(*asks.values(), connection=connection)

        await run.finish("votes", also=store)
        await self.services.wake(asks.values())
        for _, vote in confirmed:
            if vote is not None:
                await self.services.bus.signal("vote recorded", {"card_id": str(vote.card_id)})

    async def _confirm(
        self, client: Installation, repository: Repository, press: votes.PendingVote
    ) -> votes.Vote | None:
        if press.user_is_bot:
            return None
        try:
            found = await checks.read_run(client, repository.full_name, press.check_run_id)
        except NotFound:
            return None
        if not found.is_of(self.services.settings.github_app_id):
            return None
        try:
            card_id = UUID(found.external_id or "")
        except ValueError:
            return None
        async with self.services.pool.acquire() as connection:
            owner = await cards.belongs_to(connection, card_id, repository.id)
        if owner is None:
            return None
        change_id, counted_on, author_id = owner
        return votes.Vote(
            card_id=counted_on,
            change_id=change_id,
            user_id=press.user_id,
            user_login=press.user_login,
            verdict=press.verdict,
            source="button",
            is_pr_author=press.user_id == author_id,
            voted_at=press.voted_at,
        )

    async def _address_of(self, change_id: UUID, repository_id: int) -> str:
        async with self.services.pool.acquire() as connection:
            return pull_address(repository_id, await changes.number_of(connection, change_id))

    async def _rerun(self, run: Run, repository: Repository, need: str) -> None:
        """A re-run whose event named no pull request (forks): ask every open one on that head."""
        _, step, head_sha = need.split(":", 2)
        steps = EVERYTHING if step == "all" else (step,)
        async with self.services.pool.acquire() as connection:
            numbers = await changes.open_on_head(connection, repository.id, head_sha)
        asks = [
            self.services.ask(
                pull_address(repository.id, number),
                one,
                installation_id=repository.installation_id,
                repository_id=repository.id,
                forced=True,
            )
            for number in numbers
            for one in steps
        ]

        async def store(connection: Connection) -> None:
            await self.services.ask_now(*asks, connection=connection)

        await run.finish(need, also=store)
        await self.services.wake(asks)
