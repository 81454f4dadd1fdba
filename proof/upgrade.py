"""`make upgrade`: what the first release left is taken over by the code of now, and two replicas are replaced one
after the other under load.

`--freeze` writes the files of the first release anew; it is of use until that release is out, and never after it.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

import msgspec

from bench.tables import Table, publish
from graft import database
from graft.store.partitions import LEASE_SECONDS
from proof import rolling, takeover
from proof.rolling import Rolled
from proof.site import opened, ours
from proof.takeover import Kept


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """A takeover: the schema version it came to, what was in the rows and in the stream, and what is wrong."""

    version: int
    triggers: int
    deliveries: int
    comments: int
    votes: int
    faults: list[str]


async def take_over(directory: Path, kept: Kept) -> Taken:
    """Put the kept release back, start a daemon of now on it, and wait until nothing is left to do."""
    async with opened(directory, prefix=takeover.PREFIX, durable=False, migrated=False) as site:
        await takeover.restore_rows(site.postgres.url(), kept)
        await takeover.restore_stream(site.bus, kept)
        pulls = await takeover.restore_github(site.simulator, kept, directory / "kept.git")
        daemon = await site.start()
        try:
            site.send_to(daemon)
            await site.settled(seconds=90)
        finally:
            await daemon.terminate()
        faults = takeover.faults(pulls, kept)
        async with site.pool.acquire() as connection:
            version = await database.installed_version(connection)
            statuses = await connection.fetch("SELECT status FROM webhook_deliveries")
            votes = await connection.fetchval(
                "SELECT count(*) FROM intent_feedback WHERE withdrawn_at IS NULL"
            )
            dead = await connection.fetchval("SELECT count(*) FROM work WHERE dead_at IS NOT NULL")
        refused = [row for row in statuses if row["status"] != "accepted"]
        faults += [f"{len(refused)} triggers were not taken"] if refused else []
        faults += [f"{dead} rows of work are dead"] if dead else []
        faults += [f"{votes} votes instead of 2"] if votes != 2 else []
        return Taken(
            version=version or 0,
            triggers=len(kept.messages),
            deliveries=len(statuses),
            comments=sum(len(ours(pull)) for pull in pulls.values()),
            votes=votes,
            faults=faults,
        )


async def _freeze() -> None:
    with tempfile.TemporaryDirectory(prefix="graft-first-") as name:
        (await takeover.freeze(Path(name))).write(takeover.FIRST)


async def _measure(rounds: int, samples: int, pace: float) -> tuple[Taken, Rolled]:
    with tempfile.TemporaryDirectory(prefix="graft-up-") as name:
        taken = await take_over(Path(name), Kept.read())
    with tempfile.TemporaryDirectory(prefix="graft-up-") as name:
        return taken, await rolling.roll(Path(name), rounds=rounds, samples=samples, pace=pace)


def table(taken: Taken, rolled: Rolled, *, pace: float) -> Table:
    quiet, during = rolled.quiet, rolled.rolling
    ends = rolled.exits.count(0)
    return Table(
        name="upgrade",
        command="make upgrade",
        columns=["what", "found", "aim", ""],
        rows=[
            [
                "rows and triggers of the first release, taken over",
                f"schema {taken.version}; {taken.triggers} triggers from the stream; {taken.comments} comments on"
                f" 4 open pull requests; {taken.votes} votes; wrong: {_said(taken.faults)}",
                "one comment each, with the last head; no trigger refused, no work dead",
                _verdict(not taken.faults),
            ],
            [
                "replicas replaced under load",
                f"{len(rolled.exits)}, {ends} of them ended in order",
                "all",
                _verdict(ends == len(rolled.exits)),
            ],
            [
                "pull requests opened meanwhile",
                f"{len(during.seconds) + during.lost}, {during.lost} not published; wrong: {_said(rolled.faults)}",
                "none lost, none twice, every delivery taken at once",
                _verdict(not rolled.faults and not during.lost),
            ],
            [
                "longest that a partition had nobody to run it",
                f"{rolled.unheld * 1e3:.0f} ms",
                f"no gap: well below a lease ({LEASE_SECONDS:g} s)",
                _verdict(rolled.unheld < LEASE_SECONDS / 2),
            ],
            [
                "webhook to finished comment, p50 and longest",
                f"{during.quantile(50) * 1e3:.0f} ms and {during.quantile(100) * 1e3:.0f} ms"
                f" (before: {quiet.quantile(50) * 1e3:.0f} ms and {quiet.quantile(100) * 1e3:.0f} ms)",
                "",
                "",
            ],
        ],
        conditions={
            "load": f"{pace:g} pull requests a second, each in an installation of its own",
            "replicas": "of one release, on both sides",
        },
    )


def _said(faults: list[str]) -> str:
    return "; ".join(faults) if faults else "nothing"


def _verdict(met: bool) -> str:
    return "met" if met else "missed"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="proof upgrade", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often both replicas are replaced")
    parser.add_argument("--samples", type=int, default=20, help="pull requests before the first replacement")
    parser.add_argument("--pace", type=float, default=4.0, help="pull requests a second")
    parser.add_argument(
        "--freeze", action="store_true", help="keep what the present code leaves as the first release"
    )
    parser.add_argument("--write", action="store_true", help="put the table into docs/reliability.md")
    chosen = parser.parse_args(arguments)
    if chosen.freeze:
        asyncio.run(_freeze())
        return 0
    taken, rolled = asyncio.run(_measure(chosen.rounds, chosen.samples, chosen.pace))
    publish(table(taken, rolled, pace=chosen.pace), write=chosen.write)
    return 1 if taken.faults or rolled.faults else 0
