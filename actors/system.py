"""The actor system: which partitions this replica holds, and who runs in them.

An actor is one coroutine per address, created when something is due there and gone when it is done; nothing
of it is kept but what the next run can use. Postgres is the truth: any process may die at any moment, and
whoever holds the partition next starts from the rows.

Two loops run. The keeper renews leases every third of their length, takes free partitions up to the fair
share and gives back a surplus; when another replica gives some back it is told, and looks at once. The
dispatcher looks for due work when it is woken and at least once a second, and starts actors: round robin over
the installations, each within its share of this replica's slots.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from actors.calls import working_for
from actors.partitioning import Partitioning
from actors.run import WAITS, Actor, Run, backoff, describe
from graft import tracing
from graft.database import UNAVAILABLE, Pool
from graft.errors import GraftError, PermanentError, TransientError
from graft.github import AppRefused, InstallationUnavailable
from graft.logs import bind, get_logger
from graft.metrics import Metrics, actor_kind
from graft.store import partitions, work
from graft.store.partitions import LEASE_SECONDS, Lease, LostPartition
from graft.store.work import Due, Work

log = get_logger("system")

POLL_SECONDS = 1.0
REFUSED_PAUSE_SECONDS = 30.0
PARK_SECONDS = 60.0


class Running(msgspec.Struct, kw_only=True):
    """A running actor, as the system and operators see it."""

    due: Due
    task: asyncio.Task[None]
    run: Run | None = None


class Wakes(Protocol):
    """The part of the bus that the system uses."""

    async def subscribe_wakes(self, handler: Callable[[int], None]) -> Any: ...


class ActorSystem:
    """Runs the actors of the partitions that this replica holds."""

    def __init__(
        self,
        *,
        pool: Pool,
        bus: Wakes,
        actors: Mapping[str, Actor],
        holder: str,
        version: str,
        partitioning: Partitioning,
        concurrency: int = 32,
        poll_seconds: float = POLL_SECONDS,
        metrics: Metrics | None = None,
        offer: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`offer` tells the other replicas that partitions are free; they call `look_for_free`."""
        self.metrics = metrics or Metrics()
        self.pool = pool
        self.bus = bus
        self.actors = actors
        self.holder = holder
        self.version = version
        self.partitioning = partitioning
        self.concurrency = concurrency
        self.per_installation = max(1, concurrency // 4)
        self.poll_seconds = poll_seconds
        self.held: dict[int, int] = {}
        self.running: dict[str, Running] = {}
        self.refused: str | None = None
        self.changed_hands = 0
        self._refused_until = 0.0
        self._lease_until = 0.0
        self._wake = asyncio.Event()
        self._offer = offer
        self._free = asyncio.Event()
        self._draining = False
        self._loops: list[asyncio.Task[None]] = []

    # ------------------------------------------------------------------------------------------- life

    async def start(self) -> None:
        """Take the first partitions and begin to work."""
        await self.bus.subscribe_wakes(self.wake)
        await self._keep_once()
        self._loops = [
            asyncio.create_task(self._forever(self._keep_once, LEASE_SECONDS / 3), name="keeper"),
            asyncio.create_task(self._dispatch_forever(), name="dispatcher"),
        ]

    async def drain(self, *, seconds: float = 20.0) -> None:
        """Let running actors finish (at most `seconds`), give everything back, and stop.

        Partitions with nothing running go back at once, so that another replica carries on without a gap. A run
        that only waits for its turn to write is given up: its rows are as they were, and it waits elsewhere.
        """
        self._draining = True
        self._wake.set()
        deadline = time.monotonic() + seconds
        try:
            await self._announce()
            while self.running and time.monotonic() < deadline:
                for entry in self.running.values():
                    if entry.run is not None and entry.run.waits:
                        entry.task.cancel()
                await self._give_back(self._idle_partitions())
                tasks = [entry.task for entry in self.running.values()]
                if not tasks:  # the last one ended while partitions were given back
                    break
                await asyncio.wait(
                    tasks,
                    timeout=min(LEASE_SECONDS / 3, max(0.0, deadline - time.monotonic())),
                    return_when=asyncio.FIRST_COMPLETED,
                )
        except UNAVAILABLE as error:
            # There is nobody to give anything back to: the leases run out by themselves.
            log.warning("drain cut short", error=type(error).__name__)
        finally:
            await self._stop()

    def take_part(self, on: bool) -> None:
        """Without taking part a replica starts no actor and gives its partitions to the others as they become
        idle; it may take part again later."""
        self._draining = not on
        self._wake.set()

    async def _stop(self) -> None:
        for task in (*self._loops, *(entry.task for entry in self.running.values())):
            task.cancel()
        await asyncio.gather(
            *self._loops, *(entry.task for entry in self.running.values()), return_exceptions=True
        )
        try:
            await self._give_back(list(self.held))
            async with self.pool.acquire() as connection:
                await partitions.retire(connection, self.holder)
        except Exception as error:  # noqa: BLE001 - the leases run out by themselves
            log.warning("partitions not given back", error=type(error).__name__)

    async def _forever(self, step: Callable[[], Awaitable[None]], seconds: float) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._free.wait()
            self._free.clear()
            try:
                await step()
            except Exception as error:  # noqa: BLE001 - supervision: a lost database must not end the loop
                log.warning("keeper failed", error=type(error).__name__)
                if time.monotonic() >= self._lease_until:
                    self._drop(list(self.held))

    # ---------------------------------------------------------------------------------------- leases

    @property
    def leases_stand(self) -> bool:
        """Whether the leases are good by this process's own clock."""
        return time.monotonic() < self._lease_until

    async def _announce(self) -> None:
        async with self.pool.acquire() as connection:
            await partitions.announce(connection, self.holder, version=self.version, draining=self._draining)

    async def _keep_once(self) -> None:
        began = time.monotonic()
        await self._announce()
        async with self.pool.acquire() as connection, connection.transaction():
            held = await partitions.renew(connection, self.holder)
            if not self._draining:
                held |= await partitions.take(connection, self.holder)
            # In one transaction with the leases: nobody changes the count while one of them stands.
            count = await partitions.count(connection)
            surplus = len(held) if self._draining else await partitions.surplus(connection, self.holder)
        # A lease counts from before the statement was sent: our clock may be late, never early.
        self._lease_until = began + LEASE_SECONDS
        self._drop([p for p, epoch in self.held.items() if held.get(p) != epoch])
        self.partitioning.count = count
        if held != self.held:
            self.held = held
            self._wake.set()
        await self._bring_home()
        if surplus:
            await self._give_back(self._idle_partitions()[:surplus])

    async def _bring_home(self) -> None:
        """Move work that was filed in partitions that are gone; the holder of the first one looks for it."""
        if (epoch := self.held.get(0)) is None:
            return
        async with self.pool.acquire() as connection:
            addresses = await work.beyond(connection, self.partitioning.count)
        if addresses:
            await self._rehome(Lease(partition=0, holder=self.holder, epoch=epoch), addresses)

    async def _rehome(self, lease: Lease, addresses: list[str]) -> None:
        """File work under the partitions it belongs to. The lease proves that the count is known rightly."""
        try:
            async with self.pool.acquire() as connection, connection.transaction():
                await partitions.guard(connection, lease)
                await work.rehome(connection, {one: self.partitioning.of(one) for one in addresses})
        except LostPartition:
            self._lost(lease)

    def look_for_free(self) -> None:
        """Another replica has given partitions back: take a share of them now."""
        if not self._draining:
            self._free.set()

    def _idle_partitions(self) -> list[int]:
        busy = {entry.due.partition for entry in self.running.values()}
        return [p for p in self.held if p not in busy]

    async def _give_back(self, given: list[int]) -> None:
        if not given:
            return
        for partition in given:
            self.held.pop(partition, None)
        async with self.pool.acquire() as connection:
            await partitions.give_back(connection, self.holder, given)
        if self._offer is not None:
            await self._offer()

    def _drop(self, lost: list[int]) -> None:
        """Stop whatever runs in partitions that belong to somebody else now."""
        for partition in lost:
            self.held.pop(partition, None)
            self.changed_hands += 1
        gone = set(lost)
        for entry in self.running.values():
            if entry.due.partition in gone:
                entry.task.cancel()

    def _lost(self, lease: Lease) -> None:
        """A write found out before the keeper did: start nothing more in that partition."""
        log.info("changed hands", partition=lease.partition)
        if self.held.get(lease.partition) == lease.epoch:
            self._drop([lease.partition])

    # ------------------------------------------------------------------------------------- dispatching

    def wake(self, partition: int) -> None:
        """Look for due work now, if the partition is ours."""
        if partition in self.held:
            self._wake.set()

    async def _dispatch_forever(self) -> None:
        while True:
            # Not wait_for: in Python 3.11 that swallows a cancellation that meets the wake-up.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.poll_seconds):
                    await self._wake.wait()
            self._wake.clear()
            try:
                await self._dispatch()
            except Exception as error:  # noqa: BLE001 - supervision: look again in a second
                log.warning("dispatcher failed", error=type(error).__name__)
                await asyncio.sleep(POLL_SECONDS)

    async def _dispatch(self) -> None:
        if self._draining or not self.held or not self.leases_stand:
            return
        await self._supersede()
        if time.monotonic() < self._refused_until:
            return
        free = self.concurrency - len(self.running)
        if free <= 0:
            return
        async with self.pool.acquire() as connection:
            found = await work.due(
                connection,
                list(self.held),
                running=list(self.running),
                per_installation=self.per_installation,
                limit=self.concurrency,
            )
        strays = [due for due in found if self.partitioning.of(due.address) != due.partition]
        for partition in {due.partition for due in strays} & self.held.keys():
            lease = Lease(partition=partition, holder=self.holder, epoch=self.held[partition])
            await self._rehome(lease, [due.address for due in strays if due.partition == partition])
        busy: dict[int, int] = {}
        for entry in self.running.values():
            busy[entry.due.installation_id] = busy.get(entry.due.installation_id, 0) + 1
        for due in found:
            if due in strays:
                continue
            share = busy.get(due.installation_id, 0)
            if free <= 0 or share >= self.per_installation or due.partition not in self.held:
                continue
            busy[due.installation_id] = share + 1
            free -= 1
            self._start(due)

    async def _supersede(self) -> None:
        """Tell running actors that a newer head was asked for."""
        if not self.running:
            return
        async with self.pool.acquire() as connection:
            heads = await work.newest_heads(connection, list(self.running))
        for address, head_sha in heads.items():
            entry = self.running.get(address)
            if entry and entry.run and entry.run.head_sha and entry.run.head_sha != head_sha:
                entry.run.superseded.set()

    def _start(self, due: Due) -> None:
        lease = Lease(partition=due.partition, holder=self.holder, epoch=self.held[due.partition])
        task = asyncio.create_task(self._run(due, lease), name=due.address)
        self.running[due.address] = Running(due=due, task=task)
        task.add_done_callback(lambda ended: self._ended(due.address, ended))

    def _ended(self, address: str, task: asyncio.Task[None]) -> None:
        self.running.pop(address, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Not even its fate could be written: the database is away. The rows are as they were.
            log.warning("run failed", address=address, error=type(error).__name__)
        self._wake.set()

    async def _run(self, due: Due, lease: Lease) -> None:
        async with self.pool.acquire() as connection:
            seq = await work.begin(connection)
            rows = await work.load(connection, due.address)
        if not rows:
            return
        run = Run(due.address, seq, rows, lease, self.pool, self.metrics)
        self.running[due.address].run = run
        actor = self.actors[run.kind]
        # This task's own context: what is logged and asked of GitHub in it belongs to this run.
        bind(address=run.address, ask_seq=seq)
        actor_kind.set(run.kind)
        working_for.set(run.address)
        outcome = "failed"
        traces = list(dict.fromkeys(row.trace for row in rows if row.trace))
        try:
            with tracing.span(
                f"run {run.kind}",
                parent=traces[-1] if traces else None,
                links=traces[:-1],
                address=run.address,
            ):
                await actor.run(run)
            self.refused = None
            if run.rows:
                raise TransientError("the actor left work unreported", reason="unreported")
            outcome = "done"
        except LostPartition:
            outcome = "lost"
            self._lost(lease)
        except AppRefused as error:
            outcome = "refused"
            # The App's own fault, not this work's: count no attempt, leave every row due, look again soon.
            self.refused = str(error)
            self._refused_until = time.monotonic() + REFUSED_PAUSE_SECONDS
            log.error("app refused", address=due.address)
        except asyncio.CancelledError:
            outcome = "lost"
            raise
        except Exception as error:  # noqa: BLE001 - supervision: every failure becomes a row's fate
            if isinstance(error, WAITS):
                outcome = "waited"
            await self._fail(run, error)
        finally:
            run.end_stage()
            self.metrics.actor_runs.labels(run.kind, outcome).inc()

    async def _park(self, run: Run, need: str, row: Work) -> None:
        """The installation was suspended or removed: find out which, and let its rows wait for that."""
        address = f"installation.{row.installation_id}"
        if run.address == address:
            await run.postpone(
                need, backoff(row.attempts), {"error": "InstallationUnavailable", "reason": None}
            )
            return
        ask = work.Ask(
            address=address,
            need="sync",
            partition=self.partitioning.of(address),
            asked_at=datetime.now(UTC),
            installation_id=row.installation_id,
        )
        async with self.pool.acquire() as connection:
            await work.ask(connection, [ask])
        await run.postpone(need, PARK_SECONDS)

    async def _fail(self, run: Run, error: Exception) -> None:
        """Decide what becomes of the rows that a failed run left."""
        failure = describe(error)
        expected = isinstance(error, GraftError)
        log.warning("work failed", address=run.address, exc_info=None if expected else error, **failure)
        try:
            for need, row in list(run.rows.items()):
                if isinstance(error, InstallationUnavailable):
                    await self._park(run, need, row)
                elif isinstance(error, PermanentError):
                    await run.bury(need, failure)
                elif isinstance(error, WAITS):
                    await run.postpone(need, error.retry_after or POLL_SECONDS)
                else:
                    hinted = error.retry_after if isinstance(error, TransientError) else None
                    await run.postpone(need, max(hinted or 0.0, backoff(row.attempts)), failure)
        except LostPartition:
            self._lost(run.lease)
