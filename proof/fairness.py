"""`make fairness`: what one installation does to the others.

Pull requests are opened at a steady pace in installations that have nothing to do with each other, and the time
from the webhook to the finished comment is taken: with nothing else going on, and while one more installation
has 1,000 events waiting, a GitHub that takes 30 s for each of its requests, or no requests left in its hour.
Quiet and disturbed stretches alternate in one run on one daemon, because a machine is not the same from one
minute to the next. The aim is a p99 within twice the quiet one.

A GitHub that answers at once makes everything a matter of one processor, so the pace of GitHub is a parameter:
every request takes that long.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import uvloop

from bench.tables import Table, publish
from graft.simulator import Installation, Pull
from graft.triggers import Trigger
from proof.arena import HEADS, Arena, Stretch
from proof.site import Site, opened, until

AIM: Final = 2.0
SLOW_SECONDS: Final = 30.0
QUIET: Final = "quiet"


@asynccontextmanager
async def disturbed(arena: Arena, condition: str, events: int) -> AsyncIterator[None]:
    """One more installation in trouble for the length of the block, with so many events that have just been stored:
    they stand before everything else in the stream, too."""
    site, simulator = arena.site, arena.site.simulator
    loud = simulator.add_installation(f"loud{arena.names}")
    if condition == "slow":
        simulator.faults.installation_latency[loud.id] = SLOW_SECONDS
    elif condition == "limited":
        simulator.faults.primary_limit(loud, reset_at=time.time() + 3_600)
    repositories = [arena.repository(of=loud) for _ in range(-(-events // HEADS))]
    url, simulator.app.webhook_url = simulator.app.webhook_url, None
    pulls = [
        await simulator.open_pull(
            repositories[number // HEADS],
            head=arena.heads[number % HEADS],
            head_ref=f"work-{number}",
            title="Mark a part",
        )
        for number in range(events)
    ]
    simulator.app.webhook_url = url
    # Nothing was sent, and nothing has to be recovered: the triggers are stored as if an ingress had taken them.
    simulator.deliveries[:] = [one for one in simulator.deliveries if one.status != "inactive"]
    await asyncio.gather(*(site.bus.publish(_opened(pull, loud)) for pull in pulls))
    yield
    # A suspended installation's work waits in its rows: the others are alone again.
    simulator.faults.installation_latency.clear()
    simulator.suspend(loud)
    await simulator.drain()
    await until(lambda: _asleep(site, loud), seconds=60)


def _opened(pull: Pull, installation: Installation) -> Trigger:
    now = datetime.now(UTC)
    return Trigger(
        kind="pull",
        event="pull_request",
        action="opened",
        delivery_id=str(uuid.uuid4()),
        received_at=now,
        event_at=now,
        installation_id=installation.id,
        repository_id=pull.repository.id,
        full_name=pull.repository.full_name,
        number=pull.number,
        head_sha=pull.head_sha,
        base_ref=pull.base_ref,
    )


async def _asleep(site: Site, installation: Installation) -> bool:
    suspended: bool = await site.pool.fetchval(
        "SELECT EXISTS (SELECT FROM installations WHERE id = $1 AND suspended_at IS NOT NULL)",
        installation.id,
    )
    return suspended


CONDITIONS: Final = {"queued": 1_000, "slow": 100, "limited": 100}
_SAY: Final = {
    QUIET: "quiet",
    "queued": "has 1,000 events in the stream and in its rows",
    "slow": "has a GitHub that takes 30 s",
    "limited": "has used up its hour's requests",
}


async def run(
    *, samples: int, pace: float, latency: float, events: dict[str, int], conditions: Sequence[str]
) -> dict[str, Stretch]:
    """Measure one pace of GitHub; stretches by condition."""
    found = {name: Stretch() for name in (QUIET, *conditions)}
    with tempfile.TemporaryDirectory(prefix="graft-fair-") as name:
        directory = Path(name)
        async with opened(directory) as site:
            daemon = await site.start()
            try:
                site.send_to(daemon)
                site.simulator.faults.latency = latency
                arena = Arena(site, directory, [daemon])
                await arena.listen()
                await arena.measure(Stretch(), samples=max(8, samples // 8), pace=pace)  # warms up
                for condition in conditions:
                    await arena.measure(found[QUIET], samples=samples, pace=pace)
                    async with disturbed(arena, condition, events[condition]):
                        await arena.measure(found[condition], samples=samples, pace=pace)
                await arena.measure(found[QUIET], samples=samples, pace=pace)
            finally:
                await daemon.kill()
    return found


def table(measured: dict[float, dict[str, Stretch]], arguments: argparse.Namespace) -> Table:
    rows = []
    for latency, found in measured.items():
        quiet = found[QUIET].quantile(99)
        for name, stretch in found.items():
            ratio = stretch.quantile(99) / quiet
            met = ratio <= AIM and not stretch.lost
            rows.append(
                [
                    f"{latency * 1e3:.0f} ms",
                    _SAY[name],
                    f"{len(stretch.seconds)}",
                    f"{statistics.median(stretch.seconds) * 1e3:.0f}",
                    f"{stretch.quantile(99) * 1e3:.0f}",
                    "" if name == QUIET else f"{ratio:.2f}",
                    f"{stretch.load:.2f}",
                    "" if name == QUIET else "met" if met else "missed",
                ]
            )
    return Table(
        name="fairness",
        command="make fairness",
        columns=[
            "a request to GitHub takes",
            "the other installation",
            "samples",
            "p50 ms",
            "p99 ms",
            "p99 to quiet",
            "daemon's cores",
            f"aim: {AIM:g} at most",
        ],
        rows=rows,
        conditions={
            "load": f"{arguments.pace:g} pull requests a second, each in an installation of its own",
            "parts": "one daemon; NATS and Postgres durable; GitHub and model simulated in another process",
        },
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="proof fairness", description=__doc__)
    parser.add_argument("--samples", type=int, default=100, help="pull requests in each stretch")
    parser.add_argument("--pace", type=float, default=4.0, help="pull requests a second")
    parser.add_argument("--latency", type=float, nargs="+", default=[50.0, 0.0], help="of GitHub, in ms")
    parser.add_argument("--events", type=int, default=0, help="of the other installation, in every condition")
    parser.add_argument("--conditions", nargs="+", choices=list(CONDITIONS), default=list(CONDITIONS))
    parser.add_argument("--write", action="store_true", help="put the table into docs/reliability.md")
    chosen = parser.parse_args(arguments)
    events = {name: chosen.events or count for name, count in CONDITIONS.items()}
    measured = {}
    for latency in chosen.latency:
        measured[latency / 1e3] = uvloop.run(
            run(
                samples=chosen.samples,
                pace=chosen.pace,
                latency=latency / 1e3,
                events=events,
                conditions=chosen.conditions,
            )
        )
    publish(table(measured, chosen), write=chosen.write)
    return 0
