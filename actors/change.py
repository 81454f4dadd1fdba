"""The actor of one pull request: everything about it happens here, one thing after the other.

A run does what is due, in this order: is the pull request still there and open; one snapshot of its head;
provenance; the base's policy and intent records; floor; card; verdict; publish, and in the same commit the
needs are done. A step that changed nothing writes nothing, so a run is safe to repeat, whoever asked for it
and however often.

Provenance and floor are shown at once, with the card marked as in the making. The model is asked once the
pushes have settled; a newer head cancels the call.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from uuid import UUID

import msgspec

from actors import reactions, reviewers, showing
from actors.carding import Carding, Findings, Shown
from actors.publish import Overtaken, Published, publish
from actors.reading import Reading, Snapshots, find_repository, read_pull, read_rules
from actors.run import Run
from actors.services import Services
from graft.database import Connection
from graft.errors import PermanentError
from graft.github import repositories
from graft.logs import get_logger
from graft.provenance import resolve
from graft.records import Memory
from graft.store import cards, changes, work
from graft.store.installations import Repository
from graft.triggers import EVERYTHING, pull_address

log = get_logger("change")

# What is answered by showing the pull request's state; any of them computes all of it.
DISPLAY = frozenset({*EVERYTHING, "inputs", "repair"})
# What a new head usually writes at a time: the comment and three check runs.
USUAL_WRITES = 4
# A step that somebody asked to run again runs again once a minute at most.
RERUN_SECONDS = 60.0


class _Standing:
    """What this process published last, of the changes it published lately. After `seconds` it is looked at again:
    somebody may have edited or deleted the comment, and no event says so."""

    def __init__(self, most: int = 4_096, seconds: float = 600.0) -> None:
        self._kept: OrderedDict[UUID, tuple[Published, float]] = OrderedDict()
        self._most = most
        self._seconds = seconds

    def get(self, change_id: UUID) -> Published | None:
        published, at = self._kept.get(change_id, (None, 0.0))
        return published if _now() < at + self._seconds else None

    def put(self, change_id: UUID, published: Published) -> None:
        """Without what GitHub holds: that is good for the run that wrote it."""
        _, at = self._kept.pop(change_id, (None, None))
        confirmed = at is not None and published.comment is None
        bare = msgspec.structs.replace(published, comment=None, runs=None)
        self._kept[change_id] = (bare, at if confirmed and at is not None else _now())
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)


def _now() -> float:
    return asyncio.get_running_loop().time()


class ChangeActor:
    """Does the needs of `pull.<repository>.<number>`."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.snapshots = Snapshots()
        self.memory = Memory()
        self.carding = Carding(services)
        self.published = _Standing()

    async def run(self, run: Run) -> None:
        _, repository_id, number = run.address.split(".")
        unknown = run.needs - DISPLAY - {"reactions", "reviewers"}
        if unknown:
            raise PermanentError(f"a pull request has no need {sorted(unknown)[0]!r}", reason="unknown_need")
        repository = await find_repository(self.services, run, int(repository_id))
        if repository is None:
            await run.finish(*run.needs)
            return
        if run.needs & DISPLAY:
            await self._show(run, repository, int(number))
        async with self.services.pool.acquire() as connection:
            change = await changes.get(connection, repository.id, int(number))
        if "reactions" in run.needs:
            await reactions.poll(self.services, run, repository, change)
        if "reviewers" in run.needs:
            await reviewers.sync(self.services, run, repository, change)

    # ---------------------------------------------------------------------------------------- showing

    async def _show(self, run: Run, repository: Repository, number: int) -> None:
        self.services.github.installation(repository.installation_id).check_pace(USUAL_WRITES)
        reading = await read_pull(self.services, run, repository, number)
        if not reading.pull.is_open:
            await self._close(run, reading)
            return
        findings = await self._find(run, reading)
        forced = await self._forced(run, reading)
        shown = await self.carding.find(run, reading, findings, forced="intent" in forced)
        earlier = None
        if shown.due_now:
            earlier = await self._publish(run, reading, findings, shown, forced, done=())
            shown = await self._write(run, reading, findings)
        later = shown.retry_in is not None and "intent" in run.needs
        done = tuple(run.needs & DISPLAY - ({"intent"} if later else set()))
        await self._publish(run, reading, findings, shown, forced, done=done, earlier=earlier)
        if later and shown.retry_in is not None:
            await run.postpone("intent", shown.retry_in, shown.failure)

    async def _find(self, run: Run, reading: Reading) -> Findings:
        """Everything that is found out without a model."""
        pull, client = reading.pull, reading.client
        run.say("reading the change")
        base_sha = await repositories.read_branch_head(client, reading.repository.full_name, pull.base_ref)
        snapshot = await self.snapshots.read(reading, base_sha)
        provenance = resolve(
            snapshot.commits,
            author=pull.author,
            truncated=snapshot.commits_truncated,
            branch=pull.head_ref,
            body=pull.body,
        )
        policy, records = await read_rules(reading, base_sha, snapshot, self.memory)
        return await self.carding.weigh(reading, base_sha, snapshot, provenance, policy, records)

    async def _write(self, run: Run, reading: Reading, findings: Findings) -> Shown:
        """Have the card written; a newer head cancels the call."""
        run.say("asking the model")
        writing = asyncio.create_task(self.carding.write(run, reading, findings))
        overtaken = asyncio.create_task(run.superseded.wait())
        try:
            await asyncio.wait({writing, overtaken}, return_when=asyncio.FIRST_COMPLETED)
            if not writing.done():
                raise Overtaken
            return writing.result()
        finally:
            overtaken.cancel()
            writing.cancel()
            await asyncio.gather(writing, overtaken, return_exceptions=True)

    async def _publish(
        self,
        run: Run,
        reading: Reading,
        findings: Findings,
        shown: Shown,
        forced: frozenset[str],
        *,
        done: tuple[str, ...],
        earlier: Published | None = None,
    ) -> Published:
        decision = showing.decide(reading, findings, shown)
        retried = any(row.attempts for row in run.rows.values())
        publication = showing.publication(
            reading,
            findings,
            shown,
            decision,
            thorough=retried or "repair" in run.needs,
            renew=frozenset(f"graft/{need}" for need in forced),
        )
        changed = False
        asks = [self._ask_card(reading)] if shown.ask else []

        async def also(connection: Connection) -> None:
            nonlocal changed
            changed = await showing.store(connection, reading, findings, shown, decision)
            await self.services.ask_now(*asks, connection=connection)

        published = await publish(
            self.services,
            run,
            reading.change,
            reading.client,
            reading.repository.full_name,
            publication,
            done=done,
            also=also,
            earlier=earlier or self.published.get(reading.change.id),
        )
        self.published.put(reading.change.id, published)
        await self.services.wake(asks)
        await self._tell(reading, shown, changed)
        return published

    def _ask_card(self, reading: Reading) -> work.Ask:
        """Nobody has asked for a card, and one is missing."""
        return self.services.ask(
            pull_address(reading.repository.id, reading.pull.number),
            "intent",
            installation_id=reading.repository.installation_id,
            repository_id=reading.repository.id,
        )

    async def _tell(self, reading: Reading, shown: Shown, verdict_changed: bool) -> None:
        """Signals for whoever listens; nothing depends on them."""
        facts = {
            "repository_id": reading.repository.id,
            "number": reading.pull.number,
            "head_sha": reading.pull.head_sha,
        }
        await self.services.bus.signal("published", {**facts, "final": shown.is_final})
        if verdict_changed:
            await self.services.bus.signal("verdict changed", facts)

    async def _forced(self, run: Run, reading: Reading) -> frozenset[str]:
        """The steps that somebody asked to run again and that may."""
        wanted = [need for need, row in run.rows.items() if row.forced]
        allowed = set()
        if wanted:
            async with self.services.pool.acquire() as connection:
                for need in wanted:
                    if await changes.claim_rerun(
                        connection, reading.change.id, need, every_seconds=RERUN_SECONDS
                    ):
                        allowed.add(need)
        return frozenset(allowed)

    # ---------------------------------------------------------------------------------------- closing

    async def _close(self, run: Run, reading: Reading) -> None:
        """Drop what would be shown. A comment that promises a card gets one last update, and so does one of which
        nobody knows for sure what it shows: somebody died or failed while writing it. A repair that waits for GitHub's
        lists to catch up still looks for a second comment when it is due."""
        done = tuple(run.needs & DISPLAY)

        async def drop(connection: Connection) -> None:
            await work.drop(connection, run.address, DISPLAY - {"repair"}, before=run.seq)

        async with self.services.pool.acquire() as connection:
            promises = await cards.promises(connection, reading.change.id)
            uncertain = (
                len(promises) > 1
                or "repair" in run.needs
                or await work.waiting(connection, run.address, "repair") is not None
                or await changes.is_abandoned(connection, reading.change.id)
            )
        if not uncertain and (True not in promises or reading.change.graft_comment_id is None):
            await run.finish(*done, also=drop)
            return
        publication = showing.last_word(reading, thorough=uncertain)
        if uncertain:
            findings = await self._find(run, reading)
            shown = await self.carding.find(run, reading, findings, forced=False)
            if shown.is_final and shown.status != "retrying":
                publication = showing.last_card(reading, findings, shown)
        await publish(
            self.services,
            run,
            reading.change,
            reading.client,
            reading.repository.full_name,
            publication,
            done=done,
            also=drop,
        )
