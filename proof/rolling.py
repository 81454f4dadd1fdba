"""Two replicas are replaced one after the other while pull requests come in: nothing lost, nothing twice, no gap.

Webhooks go to a replica that is not about to stop, as a load balancer that looks at readiness would send them.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path

import msgspec

from graft.simulator import Pull
from proof.arena import Arena, Stretch
from proof.processes import Process
from proof.site import Site, opened, ours

CHECKS = ["graft/intent", "graft/policy", "graft/provenance"]


class Rolled(msgspec.Struct, kw_only=True):
    """What came of it. `exits` are the exit codes of the replicas that were stopped, `unheld` the longest time that
    a partition had nobody to run it, in seconds."""

    quiet: Stretch
    rolling: Stretch
    exits: list[int] = msgspec.field(default_factory=list)
    unheld: float = 0.0
    faults: list[str] = msgspec.field(default_factory=list)

    @property
    def pulls(self) -> int:
        return len(self.quiet.seconds) + len(self.rolling.seconds)


async def roll(directory: Path, *, rounds: int, samples: int, pace: float, durable: bool = True) -> Rolled:
    """Replace both replicas `rounds` times while pull requests are opened at a steady pace; `samples` before it,
    then for as long as it takes."""
    found = Rolled(quiet=Stretch(), rolling=Stretch())
    async with opened(directory, durable=durable) as site:
        replicas = [await site.start(), await site.start()]
        try:
            site.send_to(replicas[1])
            arena = Arena(site, directory)
            await arena.listen()
            await arena.measure(Stretch(), samples=4, pace=pace)
            await arena.measure(found.quiet, samples=samples, pace=pace)
            over = asyncio.Event()
            load = asyncio.create_task(_until(arena, found.rolling, over, pace=pace))
            watch = asyncio.create_task(_longest_unheld(site, over))
            try:
                for _ in range(rounds):
                    await _replace(site, replicas, 0, found.exits)
                    await _replace(site, replicas, 1, found.exits)
            finally:
                over.set()
                found.unheld = await watch
                await load
            await site.settled(seconds=60)
            found.faults = await judge(site, arena.pulls)
        finally:
            for replica in replicas:
                await replica.kill()
    return found


async def _until(arena: Arena, into: Stretch, over: asyncio.Event, *, pace: float) -> None:
    """A steady load until `over` is set."""
    pieces = []
    while not over.is_set():
        pieces.append(asyncio.create_task(arena.measure(into, samples=1, pace=pace)))
        await asyncio.sleep(1 / pace)
    await asyncio.gather(*pieces)


async def _longest_unheld(site: Site, over: asyncio.Event) -> float:
    """How long the partition that waited longest had no holder whose lease stood, by the database's clock."""
    since: dict[int, datetime] = {}
    longest = 0.0
    while not over.is_set():
        now, free = await site.pool.fetchrow(
            "SELECT now(), array_agg(partition) FILTER (WHERE holder IS NULL OR lease_until < now()) FROM partitions"
        )
        since = {partition: since.get(partition, now) for partition in free or ()}
        longest = max([longest, *((now - began).total_seconds() for began in since.values())])
        await asyncio.sleep(0.02)
    return longest


async def _replace(site: Site, replicas: list[Process], which: int, exits: list[int]) -> None:
    """End one replica in order, and start another one in its place."""
    site.send_to(replicas[1 - which])
    exits.append(await replicas[which].terminate())
    replicas[which] = await site.start()
    site.send_to(replicas[which])


async def judge(site: Site, pulls: list[Pull]) -> list[str]:
    """What is wrong, on GitHub, in its log of deliveries and in the database; nothing where all is well."""
    found = []
    for pull in pulls:
        comments = ours(pull)
        if len(comments) != 1 or pull.head_sha[:7] not in comments[0].body:
            found.append(f"{pull.repository.full_name}#{pull.number} has {len(comments)} comments")
        names = sorted(run.name for run in pull.repository.runs_at(pull.head_sha))
        if names != CHECKS:
            found.append(f"{pull.repository.full_name}#{pull.number} has the check runs {names}")
    deliveries = site.simulator.deliveries
    found += [
        f"a delivery of {d.event} was answered {d.status_code}" for d in deliveries if d.status_code != 202
    ]
    found += [f"a delivery of {d.event} was sent again" for d in deliveries if d.redelivery]
    dead = await site.pool.fetchval("SELECT count(*) FROM work WHERE dead_at IS NOT NULL")
    found += [f"{dead} rows of work are dead"] if dead else []
    spent = await site.pool.fetchval("SELECT count(*) FROM intent_spend")
    if spent != site.model.calls:
        found.append(f"the model answered {site.model.calls} calls, the ledger has {spent}")
    return found
