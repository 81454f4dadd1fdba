"""Carries out what was planned: kills, freezes, cuts, a misbehaving GitHub, a full stream, poison.

Each server that is killed is started again on its data. How long it took until somebody else, or it again, did
the work is measured where the work can be seen to go on: partitions held, deliveries accepted.
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

import nats
from nats.errors import Error as NatsError
from nats.js.errors import Error as JetStreamError

from graft import streams
from graft.streams import StreamSettings
from proof.faults import Planned
from proof.ground import PREFIX, STREAM_BYTES, Ground, Replica
from proof.load import Load

# Longer than this nothing is waited for: the trial goes on, and the figure says so.
_MEASURED: Final = 30.0
_FROZEN: Final = 8.0
_FULL: Final = StreamSettings(max_bytes=1)
_BROKER = (NatsError, JetStreamError, OSError, TimeoutError)
# What is measured.
ONE_KILLED: Final = "kill of one replica until the other one held its partitions"
ALL_KILLED: Final = "kill of all replicas until started ones held every partition"
NATS_BACK: Final = "NATS back until a delivery was accepted"
POSTGRES_BACK: Final = "Postgres back until every partition was held"
HANDOVER: Final = "drain, longest that a partition had no holder"
MEANWHILE: Final = ", another process killed, frozen or drained meanwhile"
_UNHELD = (
    "SELECT count(*) AS unheld FROM partitions"
    " WHERE holder IS NULL OR lease_until < now() OR NOT holder LIKE ANY($1::text[])"
)
_HELD_BY = "SELECT count(*) AS held FROM partitions WHERE holder LIKE $1 AND lease_until > now()"


class Injector:
    """The faults of one trial. `seconds` holds the measured times by what they are of; `exits` the exit codes of
    drained replicas; `poison` the ids of what was put into the stream."""

    def __init__(self, ground: Ground, load: Load) -> None:
        self.ground = ground
        self.load = load
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self.poison: list[str] = []
        self.exits: list[int] = []
        self.done: list[str] = []
        # Set when no more events are sent: then nothing shows that the broker takes them again.
        self.quiet = asyncio.Event()
        self._killed = 0
        self._tasks: list[asyncio.Task[None]] = []
        # One at a time for each server: a server is not killed while it is started.
        self._nats = asyncio.Lock()
        self._postgres = asyncio.Lock()
        self._replicas = {id(replica): asyncio.Lock() for replica in ground.replicas}

    async def run(self, planned: list[Planned]) -> None:
        """Do each thing at its time; returns when the last has begun."""
        began = time.monotonic()
        for fault in planned:
            await asyncio.sleep(max(0.0, began + fault.at - time.monotonic()))
            self._tasks.append(asyncio.create_task(self._inject(fault), name=fault.kind))

    async def settle(self) -> None:
        """Until everything that was begun has ended and everything is as it should be again."""
        await asyncio.gather(*self._tasks)
        self.ground.simulator.faults.clear()
        for installation in self.ground.simulator.world.installations.values():
            installation.used = 0
        for link in self.ground.links.values():
            link.mend()
        await self._resize(STREAM_BYTES)

    async def _inject(self, fault: Planned) -> None:
        faults, pick = self.ground.simulator.faults, random.Random(fault.pick)
        match fault.kind:
            case "kill one replica":
                await self._kill([pick.choice(self.ground.replicas)], fault)
            case "kill both replicas":
                await self._kill(self.ground.replicas, fault)
            case "kill NATS":
                await self._kill_nats(fault)
            case "kill Postgres":
                await self._kill_postgres(fault)
            case "freeze a replica":
                await self._freeze(pick.choice(self.ground.replicas))
            case "drain a replica":
                await self._drain(pick.choice(self.ground.replicas), fault)
            case "cut a connection":
                self.ground.links[fault.link].cut(fault.direction)
            case "GitHub answers 502":
                faults.fail(times=2 + fault.pick % 4)
            case "GitHub hangs after storing":
                faults.hang(fault.target, after=True)
            case "GitHub drops after storing":
                faults.drop(fault.target, after=True)
            case "the stream is full":
                await self._fill(fault)
            case "poison in the stream":
                await self._poison(fault)
            case _:
                self._disturb_one(fault, pick)
        self.done.append(fault.kind)

    def _disturb_one(self, fault: Planned, pick: random.Random) -> None:
        """What goes wrong on GitHub for one pull request or its installation."""
        pulls = [opened.pull for opened in self.load.opened]
        if not pulls:
            return
        pull, faults = pick.choice(pulls), self.ground.simulator.faults
        installation = pull.repository.installation
        assert installation is not None
        match fault.kind:
            case "GitHub limits an installation (secondary)":
                faults.secondary_limit(installation, retry_after="2")
            case "GitHub limits an installation (primary)":
                reset = self.ground.simulator.world.now() + 2
                faults.primary_limit(installation, reset_at=reset)
            case "GitHub serves an old head":
                if pull.previous_head_sha is not None:
                    faults.serve_old_head(pull, times=2)
            case "GitHub's list of comments lags":
                faults.lag_comments(pull.issue, reads=1)

    # --------------------------------------------------------------------------------------- processes

    async def _kill(self, victims: list[Replica], fault: Planned) -> None:
        locks = [self._replicas[id(victim)] for victim in victims]
        for lock in locks:
            await lock.acquire()
        try:
            others = [r for r in self.ground.replicas if r not in victims and r.ready.is_set()]
            self._killed += 1
            began = time.monotonic()
            await asyncio.gather(*(victim.kill() for victim in victims))
            name = ONE_KILLED if others else ALL_KILLED
            watching = asyncio.create_task(self._taken_over(name, began))
            await asyncio.sleep(fault.for_)
            await asyncio.gather(*(victim.start() for victim in victims))
        finally:
            for lock in locks:
                lock.release()
        await watching

    async def _taken_over(self, name: str, began: float) -> None:
        """Until every partition is held, and by replicas that live."""

        async def held() -> bool:
            alive = [f"%-{replica.pid}-%" for replica in self.ground.replicas if replica.ready.is_set()]
            [row] = await self.ground.fetch(_UNHELD, alive)
            return not row["unheld"]

        await self._measure(name, held, began)

    async def _measure(self, name: str, condition: Callable[[], Awaitable[bool]], began: float) -> None:
        """Wait for a condition and note how long it took, apart from where something else was killed meanwhile."""
        killed = self._killed
        while not await condition():
            if time.monotonic() > began + _MEASURED:
                break
            await asyncio.sleep(0.03)
        self.seconds[name if killed == self._killed else f"{name}{MEANWHILE}"].append(
            time.monotonic() - began
        )

    async def _kill_nats(self, fault: Planned) -> None:
        log = self.ground.simulator.deliveries
        async with self._nats:
            self._killed += 1
            await asyncio.to_thread(self.ground.nats.kill)
            before = sum(delivery.status_code == 202 for delivery in log)
            await asyncio.sleep(fault.for_)
            await asyncio.to_thread(self.ground.nats.start)
        began = time.monotonic()

        async def accepted() -> bool:
            return self.quiet.is_set() or sum(delivery.status_code == 202 for delivery in log) > before

        if not self.quiet.is_set():
            await self._measure(NATS_BACK, accepted, began)

    async def _kill_postgres(self, fault: Planned) -> None:
        async with self._postgres:
            self._killed += 1
            await asyncio.to_thread(self.ground.postgres.kill)
            await asyncio.sleep(fault.for_)
            await asyncio.to_thread(self.ground.postgres.start)
        await self._taken_over(POSTGRES_BACK, time.monotonic())

    async def _freeze(self, replica: Replica) -> None:
        """Hold it still until it has lost its partitions, then let it go on."""
        async with self._replicas[id(replica)]:
            holder = f"%-{replica.pid}-%"
            self._killed += 1
            replica.freeze()
            began = time.monotonic()
            while time.monotonic() < began + _FROZEN:
                [row] = await self.ground.fetch(_HELD_BY, holder)
                if not row["held"]:
                    break
                await asyncio.sleep(0.1)
            replica.thaw()

    async def _drain(self, replica: Replica, fault: Planned) -> None:
        """End it in order: it gives back what it holds, and the other one carries on."""
        async with self._replicas[id(replica)]:
            # Somebody has to be there to carry on, and two that end at a time leave nobody.
            alone = not any(other.ready.is_set() for other in self.ground.replicas if other is not replica)
            self._killed += 1
            ended = asyncio.Event()
            watching = asyncio.create_task(self._gap(ended, alone=alone))
            self.exits.append(await replica.terminate())
            ended.set()
            await asyncio.sleep(fault.for_)
            await watching
            await replica.start()

    async def _gap(self, ended: asyncio.Event, *, alone: bool) -> None:
        """The longest that a partition is held by nobody, until the replica has ended and all are held."""
        killed, longest = self._killed, 0.0
        since: dict[int, float] = {}
        began = time.monotonic()
        while time.monotonic() < began + _MEASURED:
            rows = await self.ground.fetch(
                "SELECT partition FROM partitions WHERE holder IS NULL OR lease_until < now()"
            )
            now = time.monotonic()
            unheld = {row["partition"] for row in rows}
            since = {partition: since.get(partition, now) for partition in unheld}
            longest = max([longest, *(now - at for at in since.values())])
            if ended.is_set() and (alone or not unheld):
                break
            await asyncio.sleep(0.01)
        disturbed = alone or killed != self._killed
        self.seconds[f"{HANDOVER}{MEANWHILE}" if disturbed else HANDOVER].append(longest)

    # ---------------------------------------------------------------------------------------- the broker

    async def _fill(self, fault: Planned) -> None:
        """Make the stream so small that it takes nothing more."""
        await self._resize(_FULL.max_bytes)
        await asyncio.sleep(fault.for_)
        await self._resize(STREAM_BYTES)

    async def _resize(self, max_bytes: int) -> None:
        settings = StreamSettings(max_bytes=max_bytes)
        while True:
            try:
                async with self._nats:
                    client = await nats.connect(self.ground.nats.url, allow_reconnect=False)
                    try:
                        config = streams.stream_config(
                            PREFIX, settings, batches=streams.takes_batches(client)
                        )
                        await client.jetstream(timeout=5).update_stream(config)
                    finally:
                        await client.close()
                return
            except _BROKER:
                await asyncio.sleep(0.1)

    async def _poison(self, fault: Planned) -> None:
        """Something in the stream that no inbox can store."""
        guid = f"poison-{uuid.UUID(int=random.Random(fault.pick).getrandbits(128))}-{len(self.poison)}"
        bad = {
            "no JSON": b"\x00\xff{",
            "no trigger": b'{"kind": "pull", "event": "pull_request"}',
            "a time that no column holds": _impossible(guid),
        }[fault.target]
        while True:
            try:
                async with self._nats:
                    client = await nats.connect(self.ground.nats.url, allow_reconnect=False)
                    try:
                        await client.jetstream(timeout=5).publish(
                            f"{PREFIX}.trigger.pull.1.1.pull_request", bad, headers={"Nats-Msg-Id": guid}
                        )
                    finally:
                        await client.close()
                self.poison.append(guid)
                return
            except _BROKER:
                await asyncio.sleep(0.1)


def _impossible(guid: str) -> bytes:
    """A trigger that is one by its shape, with a time before the first that UTC has in Python."""
    first = datetime.min.replace(tzinfo=UTC).isoformat().replace("+00:00", "+14:00")
    return (
        f'{{"kind": "installation", "event": "installation", "delivery_id": "{guid}",'
        f' "received_at": "{first}", "installation_id": 1}}'
    ).encode()
