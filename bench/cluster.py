"""Past one machine: three brokers, two replicas, and the broker that leads the stream dies under load.

Pull requests come in at a steady pace, to both replicas in turn. One third of the way the leader is killed; two
thirds of the way it is started again. What was answered 202 has to be there: a row for every delivery, one comment
with the last head for every pull request, one check run of each kind. What was refused is sent again under its id,
as GitHub's button, an operator or Graft's own recovery does. Everything shares one machine, so its figures are those
of the protocol (how long an election takes) and no throughput.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import uvloop

from bench.tables import Table, publish
from graft.embedded import NatsServer
from graft.simulator import Delivery
from proof.arena import Arena
from proof.brokers import SIZE, Watcher, cluster
from proof.load import refused
from proof.rolling import CHECKS
from proof.site import Site, opened, ours, until

_RETRY_SECONDS = 0.5


class Outcome(msgspec.Struct, kw_only=True):
    """What came of it, in seconds and counts. `election` runs from the kill to the first answer of a new leader,
    `silence` is the longest time in which no event of a pull request was answered 202, `whole` how long the old
    leader needed to have everything again. `faults` is what was lost or is there twice."""

    pulls: int
    accepted: int
    refused: int
    election: float
    silence: float
    whole: float
    settled: float
    faults: list[str]


async def run(directory: Path, *, pulls: int, pace: float, durable: bool = True) -> Outcome:
    """Play it once. Raises TimeoutError when something never comes about."""
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(cluster(directory / "brokers"))
        site = await stack.enter_async_context(opened(directory, brokers=servers, durable=durable))
        watcher = Watcher(servers, site.prefix.upper())
        await watcher.connect()
        stack.push_async_callback(watcher.close)
        replicas = await asyncio.gather(site.start(), site.start())
        for replica in replicas:
            stack.push_async_callback(replica.kill)
        await until(watcher.whole, seconds=30)
        await until(lambda: _shared(site), seconds=30)
        arena = Arena(site, directory)
        again = asyncio.create_task(_send_again(site))
        stack.callback(again.cancel)
        began = time.monotonic()
        falling: asyncio.Task[tuple[float, float]] | None = None
        for number in range(pulls):
            await asyncio.sleep(max(0.0, began + number / pace - time.monotonic()))
            site.send_to(replicas[number % 2])
            pull = await site.simulator.open_pull(
                arena.repository(), head=arena.heads[0], head_ref="work", title="Mark a part"
            )
            arena.pulls.append(pull)
            if number == pulls // 3:
                falling = asyncio.create_task(_fall(servers, watcher, seconds=pulls / pace / 3))
        assert falling is not None
        election, whole = await falling
        await until(lambda: _nothing_refused(site), seconds=60)
        ended = time.monotonic()
        await site.settled(seconds=120)
        return Outcome(
            pulls=pulls,
            accepted=len({d.guid for d in site.simulator.deliveries if d.status_code == 202}),
            refused=len({d.guid for d in site.simulator.deliveries if d.status_code != 202}),
            election=election,
            silence=_silence(site.simulator.deliveries),
            whole=whole,
            settled=time.monotonic() - ended,
            faults=await _judge(site, arena),
        )


async def _fall(servers: Sequence[NatsServer], watcher: Watcher, *, seconds: float) -> tuple[float, float]:
    """Kill the leader, and start it again that many seconds later. How long until another one led, and until the old
    one had everything again."""
    first = await watcher.leader()
    assert first is not None
    began = time.monotonic()
    await asyncio.to_thread(servers[first].kill)
    await until(lambda: _led_by_another(watcher, first), seconds=60)
    election = time.monotonic() - began
    await asyncio.sleep(max(0.0, seconds - election))
    began = time.monotonic()
    await asyncio.to_thread(servers[first].start)
    await until(watcher.whole, seconds=60)
    return election, time.monotonic() - began


async def _led_by_another(watcher: Watcher, first: int) -> bool:
    return await watcher.leader() not in (None, first)


async def _shared(site: Site) -> bool:
    """Whether both replicas hold partitions."""
    return bool(
        await site.pool.fetchval(
            "SELECT count(DISTINCT holder) = 2 FROM partitions WHERE lease_until > now()"
        )
    )


async def _send_again(site: Site) -> None:
    """Send what was refused again, for ever."""
    while True:
        await asyncio.sleep(_RETRY_SECONDS)
        for delivery in refused(site.simulator.deliveries):
            site.simulator.redeliver(delivery.guid)


async def _nothing_refused(site: Site) -> bool:
    await site.simulator.drain()
    return not refused(site.simulator.deliveries)


def _silence(deliveries: Sequence[Delivery]) -> float:
    """The longest time between two answers of 202 to events that have to be stored."""
    answered = sorted(
        d.delivered_at.timestamp() + d.duration
        for d in deliveries
        if d.status_code == 202 and d.event == "pull_request"
    )
    return max((later - earlier for earlier, later in itertools.pairwise(answered)), default=0.0)


async def _judge(site: Site, arena: Arena) -> list[str]:
    """What is wrong, on GitHub and in the database; nothing where all is well."""
    found = []
    accepted = {
        d.guid for d in site.simulator.deliveries if d.status_code == 202 and d.event == "pull_request"
    }
    known = {
        row["delivery_id"] for row in await site.pool.fetch("SELECT delivery_id FROM webhook_deliveries")
    }
    if lost := accepted - known:
        found.append(f"{len(lost)} deliveries were accepted and lost")
    for pull in arena.pulls:
        comments = ours(pull)
        if len(comments) != 1 or pull.head_sha[:7] not in comments[0].body:
            found.append(f"{pull.repository.full_name}#{pull.number} has {len(comments)} comments")
        names = sorted(made.name for made in pull.repository.runs_at(pull.head_sha))
        if names != CHECKS:
            found.append(f"{pull.repository.full_name}#{pull.number} has the check runs {names}")
    dead = await site.pool.fetchval("SELECT count(*) FROM work WHERE dead_at IS NOT NULL")
    return [*found, f"{dead} rows of work are dead"] if dead else found


def table(found: Outcome, command: str, conditions: dict[str, str]) -> Table:
    """The outcome against what was aimed at."""
    good = "met" if not found.faults else "missed: " + "; ".join(found.faults[:3])
    return Table(
        name="cluster",
        command=command,
        columns=["what", "measured", "aim", "verdict"],
        rows=[
            ["pull requests opened", f"{found.pulls}", "", ""],
            ["deliveries accepted (202)", f"{found.accepted}", "every one has its row", good],
            ["lost, or shown twice", f"{len(found.faults)}", "0", good],
            ["refused at first, and sent again", f"{found.refused}", "", ""],
            [
                "until another broker led the stream",
                f"{found.election:.1f} s",
                "",
                "",
            ],
            ["longest time without a 202", f"{found.silence:.1f} s", "", ""],
            ["until the old leader had everything again", f"{found.whole:.1f} s", "", ""],
            ["until all was published, after the last 202", f"{found.settled:.1f} s", "", ""],
        ],
        conditions=conditions,
    )


def main(argv: list[str]) -> int:
    """1 when something was lost, or is there twice."""
    parser = argparse.ArgumentParser(prog="python -m bench cluster", description=__doc__)
    parser.add_argument("--pulls", type=int, default=120, help="pull requests (default: 120)")
    parser.add_argument("--pace", type=float, default=4.0, help="of them a second (default: 4)")
    parser.add_argument("--write", action="store_true", help="put the table into docs/scaling.md")
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="graft-bench-") as directory:
        found = uvloop.run(run(Path(directory), pulls=given.pulls, pace=given.pace))
    command = f"python -m bench cluster --pulls {given.pulls} --pace {given.pace:g}"
    conditions = {
        "brokers": f"{SIZE} servers of a cluster, each with a copy of the stream, default sync",
        "replicas": "2 processes, webhooks to both in turn",
        "postgres": "durable",
        "GitHub and model": "simulated, no latency",
    }
    publish(table(found, command, conditions), write=given.write)
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
