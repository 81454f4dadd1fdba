"""One order of events around one pull request, drawn from a seed, and what GitHub and the tables hold when it is over.

Heads A to C, or A, B and A again, are pushed while two replicas work; triggers come late, twice and out of order. A
replica is stopped until it has lost its partition, dies at any step, or loses its partition without being told.
"""

from __future__ import annotations

import asyncio
import hashlib
from datetime import timedelta
from functools import partial
from typing import Any, Final, cast

import msgspec

from graft.config import ActorSettings
from graft.llm import LlmRequest, LlmResult
from graft.metrics import Metrics
from graft.simulator.identity import shared_private_key
from graft.store import work
from graft.testing import agreeable_model
from graft.triggers import EVERYTHING
from proof.interleavings import database
from proof.interleavings.github import (
    APP_ID,
    FULL_NAME,
    INSTALLATION_ID,
    NUMBER,
    REPOSITORY_ID,
    Forge,
    Step,
    head_sha,
)
from proof.interleavings.loop import here, run
from proof.interleavings.memory import EPOCH, Memory
from proof.interleavings.replica import ADDRESS, PARTITION, Replica

# A partition is given to somebody else when its holder has not renewed for this long.
LEASE_SECONDS: Final = 4.0
RENEWED_EVERY: Final = 2.0
# What a stopped publisher sent too late stands until its repair.
DUST_SECONDS: Final = 15.0
GIVE_UP_SECONDS: Final = 3_600.0
CHECKS: Final = ("graft/intent", "graft/policy", "graft/provenance")


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one order: its violations, a digest of the steps in the order they were taken, and how many check
    runs are `hidden` behind a later one of the same name."""

    seed: int
    violations: tuple[str, ...]
    digest: bytes
    steps: int
    disturbances: tuple[str, ...]
    hidden: int


class Model:
    """A model that answers after a while."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._answers = agreeable_model()

    async def complete(self, request: LlmRequest) -> LlmResult:
        await self._step("model")
        return await self._answers.complete(request)

    async def count_tokens(self, model: str, text: str) -> int | None:
        return None


def settings() -> ActorSettings:
    """The settings of every replica."""
    return ActorSettings.from_env(
        {
            "DATABASE_URL": "postgresql://memory/graft",
            "NATS_URL": "nats://memory:4222",
            "GITHUB_APP_ID": str(APP_ID),
            "GITHUB_APP_SLUG": "graft",
            "GITHUB_APP_PRIVATE_KEY": shared_private_key(),
            "GRAFT_SETTLE_SECONDS": "1",
        }
    )


class Scenario:
    """The world of one order."""

    def __init__(self, settings: ActorSettings, metrics: Metrics, memory: type[Memory]) -> None:
        loop = here()
        self.now = loop.time
        self.random = loop.random
        self.memory = memory(loop.time)
        self.memory.repositories[REPOSITORY_ID] = {
            "id": REPOSITORY_ID,
            "installation_id": INSTALLATION_ID,
            "full_name": FULL_NAME,
            "removed_at": None,
            "watched": {},
            "suspended_at": None,
            "deleted_at": None,
        }
        self.memory.partitions[PARTITION] = {"holder": "a", "epoch": 1}
        self.forge = Forge(loop.time, self.random, faults=self.random.choice((0, 0, 1, 3)))
        self.pace = self.random.choice((0.02, 0.02, 0.3, 1.5))
        self._make = partial(self._replica, settings, metrics, with_model=self.random.random() < 0.1)
        self.replicas = [self._make("a"), self._make("b")]
        self.disturbances: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._digest = hashlib.blake2b(digest_size=16)
        self._steps = 0

    def _replica(self, settings: ActorSettings, metrics: Metrics, name: str, *, with_model: bool) -> Replica:
        return Replica(
            name=name,
            memory=self.memory,
            forge=self.forge,
            settings=settings,
            metrics=metrics,
            model=Model if with_model else lambda _step: None,
            told=self._told,
            wake_all=self._wake_all,
            pace=self.pace,
        )

    def _told(self, name: str, doing: str) -> None:
        self._steps += 1
        self._digest.update(f"{name}:{doing};".encode())

    # ----------------------------------------------------------------------------------- what happens

    async def play(self, seed: int) -> Outcome:
        """Let it all happen, wait until nothing is left to do, and look."""
        for replica in self.replicas:
            self._go(replica)
        happening = [self._spawn(self._people()), self._spawn(self._trouble())]
        self._spawn(self._leases())
        try:
            await asyncio.gather(*happening)
            violations = await self._settled() or self._judged()
        finally:
            for task in self._tasks:
                task.cancel()
            for replica in self.replicas:
                for entry in replica.system.running.values():
                    entry.task.cancel()
            ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        for error in ended:
            if isinstance(error, Exception):
                raise error
        return Outcome(
            seed=seed,
            violations=tuple(violations),
            digest=self._digest.digest(),
            steps=self._steps,
            disturbances=tuple(self.disturbances),
            hidden=self._hidden(),
        )

    def _spawn(self, coroutine: Any) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.append(task)
        return task

    def _go(self, replica: Replica) -> None:
        self._spawn(replica.dispatch())
        self._spawn(replica.learn())

    async def _people(self) -> None:
        """Pushes, perhaps a close at the end, and the triggers that tell of them."""
        heads = self.random.choice(("AB", "AB", "ABA", "ABC"))
        told = [self._spawn(self._deliver("A", 0.0))]
        for name in heads[1:]:
            await asyncio.sleep(self.random.choice((0.05, 0.5, 2.0, 8.0)) * (0.5 + self.random.random()))
            self.forge.push(name)
            told += (
                self._spawn(self._deliver(name, self.forge.updated))
                for _ in range(self.random.choice((1, 1, 2)))
            )
        if self.random.random() < 0.15:
            await asyncio.sleep(self.random.random() * 4.0)
            self.forge.close()
            told.append(self._spawn(self._deliver(heads[-1], self.forge.updated, needs=("state",))))
        await asyncio.gather(*told)

    async def _deliver(self, name: str, happened: float, needs: tuple[str, ...] = EVERYTHING) -> None:
        await asyncio.sleep(self.random.choice((0.1, 3.0, 8.0)) * self.random.random())
        ask = work.Ask(
            address=ADDRESS,
            need="",
            partition=PARTITION,
            asked_at=EPOCH + timedelta(seconds=int(happened)),
            installation_id=INSTALLATION_ID,
            repository_id=REPOSITORY_ID,
            head_sha=head_sha(name),
        )
        connection = database.Connection(self.memory, self._inbox)
        await work.ask(cast(Any, connection), [msgspec.structs.replace(ask, need=need) for need in needs])
        self._wake_all()

    def _wake_all(self) -> None:
        for replica in self.replicas:
            replica.wake()

    async def _inbox(self, doing: str) -> None:
        self._told("inbox", doing)

    # --------------------------------------------------------------------------------- what goes wrong

    async def _trouble(self) -> None:
        """Up to three disturbances, each at some step of whoever holds the partition. A replica is stopped or killed,
        not both: who dies with a request in hand that was stopped past the lease leaves nobody to ask for its repair,
        and waits for the next sweep."""
        for _ in range(self.random.choice((0, 1, 1, 2, 3))):
            await asyncio.sleep(self.random.choice((0.0, 2.0, 6.0)) * self.random.random())
            holder = self._holder()
            if holder is None:
                continue
            what = self.random.choice(("taken", "stopped", "killed"))
            if (what, True) in (("stopped", holder.doomed), ("killed", holder.stops)):
                continue
            holder.doomed |= what == "killed"
            holder.stops |= what == "stopped"
            step = holder.steps + self.random.randrange(1, 45)
            holder.planned[step] = partial(getattr(self, f"_{what}"), holder)

    def _holder(self) -> Replica | None:
        name = self.memory.partitions[PARTITION]["holder"]
        return next((one for one in self.replicas if one.name == name and not one.dead), None)

    def _killed(self, replica: Replica) -> None:
        self.disturbances.append("killed")
        replica.dead = True

    def _stopped(self, replica: Replica) -> None:
        self.disturbances.append("stopped")
        replica.frozen_until = self.now() + self.random.choice((2.0, 6.0, 12.0, 25.0))

    def _taken(self, replica: Replica) -> None:
        """Its lease ran out without its knowing: what it does goes on."""
        others = [one for one in self.replicas if one is not replica and not one.dead]
        if others:
            self.disturbances.append("taken")
            self._spawn(self._give_to(self.random.choice(others)))

    async def _leases(self) -> None:
        """Give the partition to somebody else when its holder does not renew, and replace the dead."""
        missed = 0.0
        while True:
            await asyncio.sleep(RENEWED_EVERY)
            for replica in [r for r in self.replicas if r.dead and not r.replaced]:
                replica.replaced = True
                new = self._make(f"{replica.name}+")
                self.replicas.append(new)
                self._go(new)
            name = self.memory.partitions[PARTITION]["holder"]
            renewing = [r for r in self.replicas if not r.dead and self.now() >= r.frozen_until]
            missed = 0.0 if any(r.name == name for r in renewing) else missed + RENEWED_EVERY
            if missed >= LEASE_SECONDS and renewing:
                await self._give_to(self.random.choice(renewing))
                missed = 0.0

    async def _give_to(self, replica: Replica) -> None:
        async with self.memory.lock:
            row = self.memory.partitions[PARTITION]
            self.memory.partitions = {PARTITION: {"holder": replica.name, "epoch": row["epoch"] + 1}}
        for one in self.replicas:
            self._spawn(one.learn())

    # ------------------------------------------------------------------------------ what stands at last

    async def _settled(self) -> list[str]:
        """Until nothing is left to do, and still is not after the dust has settled."""
        quiet_since: float | None = None
        while self.now() < GIVE_UP_SECONDS:
            await asyncio.sleep(3.0)
            busy = self.memory.work or any(
                not r.dead and (r.system.running or self.now() < r.frozen_until) for r in self.replicas
            )
            if busy:
                quiet_since = None
            elif quiet_since is None:
                quiet_since = self.now()
            elif self.now() - quiet_since >= DUST_SECONDS:
                return []
        left = ", ".join(need for _, need in self.memory.work) or "a run"
        return [f"not settled within an hour: {left}"]

    def _judged(self) -> list[str]:
        forge, row = self.forge, self.memory.changes[REPOSITORY_ID, NUMBER]
        found: list[str] = []
        if row["publish_token"] is not None:
            found.append("a publish lease is left")
        comments = list(forge.comments.values())
        if forge.state == "closed":
            if len(comments) > 1:
                found.append(f"{len(comments)} comments")
            if any("in the making" in comment["body"] for comment in comments):
                found.append("the comment still promises a card")
        elif len(comments) != 1:
            found.append(f"{len(comments)} comments")
        else:
            [comment] = comments
            if row["graft_comment_id"] != comment["id"]:
                found.append("the comment's id is not stored")
            found += self._shown(comment["body"], row)
        return found

    def _hidden(self) -> int:
        """Check runs that a later one of the same name hides: they cannot be deleted. Whoever was stopped between its
        last look at the clock and its request makes them, and so does an answer that was lost."""
        names = {(check["head_sha"], check["name"]) for check in self.forge.runs.values()}
        return len(self.forge.runs) - len(names)

    def _shown(self, body: str, row: dict[str, Any]) -> list[str]:
        """The live head, and nothing of another, in comment and check runs."""
        sha = head_sha(self.forge.head)
        found = []
        if row["head_sha"] != sha or f"`{sha[:10]}`" not in body:
            found.append("the comment does not show the last head")
        found += (
            "the comment shows an old head"
            for other in "ABC"
            if other != self.forge.head and f"`{head_sha(other)[:10]}`" in body
        )
        stored = {
            name: kept["check_run_id"]
            for (_, head, name), kept in self.memory.check_runs.items()
            if head == sha
        }
        live = {
            check["name"]: number for number, check in self.forge.runs.items() if check["head_sha"] == sha
        }
        found += (f"no check run {name}" for name in CHECKS if name not in live)
        if stored != live:
            found.append("the check runs' ids are not stored")
        cards = {str(one) for one, card in self.memory.cards.items() if card["head_sha"] == sha}
        intent = self.forge.runs.get(live.get("graft/intent", 0))
        if intent is not None and intent["external_id"] not in cards:
            found.append("the intent check is not of a card of this head")
        return found


def play(seed: int, settings: ActorSettings, metrics: Metrics, *, memory: type[Memory] = Memory) -> Outcome:
    """Play the order of a seed. Always the same for the same seed and the same code."""

    async def scenario() -> Outcome:
        return await Scenario(settings, metrics, memory).play(seed)

    return run(f"order {seed}", scenario())
