"""What one pull request costs, measured: processor time, bytes, calls; and what replicas do together.

Pull requests are opened, and every one gets a second head. Brokers and database are real and durable, `graft serve`
runs as processes of its own, GitHub and the model are simulated in this one. Processor time is the operating
system's count for each part; bytes are what broker and database say. Each pull request is the first one of its
installation, so a token and a look at the installation are in its costs: later ones are cheaper.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TypeVar

import msgspec
import psutil

from bench.tables import ROOT, machine
from graft import triggers
from graft.bus import Bus
from graft.llm import Usage
from graft.simulator import Pull
from graft.streams import StreamSettings
from graft.triggers import Trigger
from proof.arena import HEADS, Arena
from proof.processes import Process
from proof.site import STREAM_BYTES, Site, opened, until

T = TypeVar("T")

AT_ONCE = 24
_PUBLISHERS = 64
_RECORDED = ROOT / "eval" / "recorded" / "good-honest.jsonl"


class Busy(msgspec.Struct, frozen=True, kw_only=True):
    """What so many replicas did with a crowd of heads: `rate` in heads a second, the rest in seconds of processor
    time a head. `simulated` is GitHub, the model and the measuring, which share one process."""

    replicas: int
    heads: int
    rate: float
    daemon: float
    broker: float
    postgres: float
    simulated: float

    @property
    def together(self) -> float:
        return self.daemon + self.broker + self.postgres + self.simulated


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """Unit costs. Calls, deliveries and transactions are for one head; the bytes of a change are those of its first
    head. `trigger_bytes` is what the stream takes for one, `publish_rate` how many a second one broker stores when
    each is on the disk before it is acknowledged."""

    measured: str
    cores: int
    one: Busy
    two: Busy
    reads: float
    writes: float
    deliveries: float
    triggers: float
    transactions: float
    change_bytes: float
    head_bytes: float
    delivery_bytes: float
    trigger_bytes: float
    publish_rate: float
    writer: Usage
    verifier: Usage


async def measure(pulls: int) -> Costs:
    """Measure everything; takes about as long as four heads for each of the pull requests, and some seconds."""
    with tempfile.TemporaryDirectory(prefix="graft-bench-") as directory:
        async with opened(Path(directory)) as site:
            first = await _crowd(site, Path(directory), replicas=1, pulls=pulls)
            rate = await _publish_rate(site)
    with tempfile.TemporaryDirectory(prefix="graft-bench-") as directory:
        async with opened(Path(directory)) as site:
            second = await _crowd(site, Path(directory), replicas=2, pulls=pulls)
    return Costs(
        measured=machine(),
        cores=os.cpu_count() or 1,
        one=first.busy,
        two=second.busy,
        publish_rate=rate,
        trigger_bytes=await _trigger_bytes(),
        writer=_tokens("writer"),
        verifier=_tokens("verifier"),
        **{name: getattr(first, name) for name in _Crowd.__struct_fields__ if name != "busy"},
    )


class _Crowd(msgspec.Struct, frozen=True, kw_only=True):
    busy: Busy
    reads: float
    writes: float
    deliveries: float
    triggers: float
    transactions: float
    change_bytes: float
    head_bytes: float
    delivery_bytes: float


async def _crowd(site: Site, directory: Path, *, replicas: int, pulls: int) -> _Crowd:
    """Have so many replicas do two heads of each pull request, as many as they can at a time."""
    daemons = [await site.start() for _ in range(replicas)]
    try:
        await until(lambda: _shared(site, replicas), seconds=30)
        site.send_to(daemons[0])
        arena = Arena(site, directory)
        await arena.listen()
        turn = iter(range(10**9))

        async def opening(_number: int) -> None:
            site.send_to(daemons[next(turn) % replicas])
            assert await arena.sample(arena.heads[0]) is not None

        async def pushing(pull: Pull) -> None:
            site.send_to(daemons[next(turn) % replicas])
            published: asyncio.Future[float] = asyncio.get_running_loop().create_future()
            arena.waiting[pull.repository.id, pull.number] = published
            await site.simulator.synchronize(pull, arena.heads[1 + pull.repository.id % (HEADS - 1)])
            await asyncio.wait_for(published, 120)

        await _each(opening, range(AT_ONCE))  # warms up
        await site.settled(seconds=60)
        arena.pulls.clear()
        parts = _Parts(site, daemons)
        empty, calls = await _size(site), len(site.simulator.requests)
        sent, transactions = len(site.simulator.deliveries), await _transactions(site)
        rows = await _rows(site)
        before, began = parts.seconds(), time.perf_counter()
        await _each(opening, range(pulls))
        await site.settled(seconds=120)
        wall = time.perf_counter() - began
        opened_bytes = await _size(site)
        began = time.perf_counter()
        await _each(pushing, list(arena.pulls))
        await site.settled(seconds=120)
        wall += time.perf_counter() - began
        used = [after - earlier for after, earlier in zip(parts.seconds(), before, strict=True)]
        heads = 2 * pulls
        # The token of an installation is the App's own request, outside the quota of any installation.
        made = [r for r in list(site.simulator.requests)[calls:] if not r.path.startswith("/app")]
        delivered = await _rows(site) - rows
        return _Crowd(
            busy=Busy(
                replicas=replicas,
                heads=heads,
                rate=heads / wall,
                daemon=used[0] / heads,
                broker=used[1] / heads,
                postgres=used[2] / heads,
                simulated=used[3] / heads,
            ),
            reads=sum(r.method == "GET" for r in made) / heads,
            writes=sum(r.method != "GET" for r in made) / heads,
            deliveries=(len(site.simulator.deliveries) - sent) / heads,
            triggers=delivered / heads,
            transactions=(await _transactions(site) - transactions) / heads,
            change_bytes=(opened_bytes - empty) / pulls,
            head_bytes=(await _size(site) - opened_bytes) / pulls,
            delivery_bytes=await site.pool.fetchval(
                "SELECT pg_total_relation_size('webhook_deliveries') / greatest(count(*), 1)::float8"
                " FROM webhook_deliveries"
            ),
        )
    finally:
        for daemon in daemons:
            await daemon.kill()


class _Parts:
    """Processor time of daemons, broker, database and this process."""

    def __init__(self, site: Site, daemons: Iterable[Process]) -> None:
        self._daemons = [psutil.Process(daemon.pid) for daemon in daemons]
        self._broker = psutil.Process(site.nats.pid)
        self._postgres = psutil.Process(site.postgres.pid)

    def seconds(self) -> list[float]:
        backends = self._postgres.children(recursive=True)
        return [
            sum(_busy(daemon) for daemon in self._daemons),
            _busy(self._broker),
            _busy(self._postgres) + sum(_busy(backend) for backend in backends),
            _busy(psutil.Process()),
        ]


def _busy(process: psutil.Process) -> float:
    try:
        return float(sum(process.cpu_times()[:2]))
    except psutil.NoSuchProcess:
        return 0.0


async def _each(do: Callable[[T], Awaitable[None]], items: Iterable[T]) -> None:
    """Do it for every item, `AT_ONCE` at a time."""
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await do(item)

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))


async def _shared(site: Site, replicas: int) -> bool:
    held: int = await site.pool.fetchval(
        "SELECT count(DISTINCT holder) FROM partitions WHERE lease_until > now()"
    )
    return held == replicas


async def _size(site: Site) -> float:
    """Bytes of all tables and indexes without what was deleted from them."""
    await site.pool.execute("VACUUM")
    found: int = await site.pool.fetchval("SELECT pg_database_size(current_database())")
    return float(found)


async def _rows(site: Site) -> int:
    found: int = await site.pool.fetchval("SELECT count(*) FROM webhook_deliveries")
    return found


async def _transactions(site: Site) -> int:
    found: int = await site.pool.fetchval(
        "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
    )
    return found


# ------------------------------------------------------------------------------------------------- the broker


def _trigger(number: int) -> Trigger:
    """A trigger as a pull request's events make it."""
    return msgspec.structs.replace(
        _SAMPLE, delivery_id=f"0a1565ea-ed64-11f1-a423-{number:012x}", number=1 + number % 10_000
    )


_SAMPLE = triggers.decode(
    json.dumps(
        {
            "kind": "pull",
            "event": "pull_request",
            "action": "synchronize",
            "delivery_id": "0a1565ea-ed64-11f1-a423-02fc00000001",
            "received_at": "2026-12-01T08:00:00.123456Z",
            "event_at": "2026-12-01T08:00:00Z",
            "installation_id": 61_234_567,
            "repository_id": 912_345_678,
            "full_name": "an-organisation/a-repository",
            "number": 1,
            "head_sha": "5664f1e17b5ccaa18efc3c9589f44218c0063e44",
            "base_ref": "main",
            "before_sha": "a71c23c8b05ccaa18efc3c9589f44218c0063e44",
            "after_sha": "5664f1e17b5ccaa18efc3c9589f44218c0063e44",
            "sender_id": 123_456,
            "sender_login": "a-developer",
        }
    ).encode()
)


async def _publish_rate(site: Site, *, seconds: float = 3.0) -> float:
    """Triggers that the broker stores in a second, from one client that has many on the way."""
    bus = await Bus.connect(site.nats_url, prefix="rate", role="proof")
    try:
        await bus.ensure_stream(StreamSettings(max_bytes=STREAM_BYTES))
        numbers, end = iter(range(10**9)), time.perf_counter() + seconds
        stored = 0

        async def publisher() -> None:
            nonlocal stored
            while time.perf_counter() < end:
                await bus.publish(_trigger(next(numbers)))
                stored += 1

        await asyncio.gather(*(publisher() for _ in range(_PUBLISHERS)))
        return stored / seconds
    finally:
        await bus.close()


async def _trigger_bytes() -> float:
    """What the stream takes for one trigger."""
    with tempfile.TemporaryDirectory(prefix="graft-bench-") as directory:
        async with opened(Path(directory), migrated=False) as site:
            for number in range(1000):
                await site.bus.publish(_trigger(number))
            found = await site.bus.backlog()
            return found.bytes / found.messages


# -------------------------------------------------------------------------------------------------- the model


def _tokens(purpose: str) -> Usage:
    """The average of the calls that the evaluation recorded: 66 small changes with the real prompts, whose tokens
    are counted by Graft's own estimate."""
    usages = [
        call["usage"]
        for line in _RECORDED.read_text().splitlines()[1:]
        for call in json.loads(line)["calls"]
        if call["probe"] == "card" and call["purpose"] == purpose
    ]
    return Usage(
        input_tokens=sum(usage["input_tokens"] for usage in usages) // len(usages),
        output_tokens=sum(usage["output_tokens"] for usage in usages) // len(usages),
    )
