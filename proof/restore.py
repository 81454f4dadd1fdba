"""`make restore`: the database as it was an hour ago, the stream gone, and GitHub as it is now.

A backup is taken with `pg_dump` while the daemon runs. In the hour after it pull requests are opened, pushed to,
retitled, merged and voted on, an account installs the App, and Graft publishes all of it. Then the database is
lost and restored with `pg_restore`, and the broker comes back with an empty disk. The daemon is started again and
left alone: it finds in GitHub's log of deliveries what no row knows, and asks for it again.

GitHub is the judge: each open pull request has the one comment that it had before, with its last head, and each
check run once. What the lost hour's rows alone held cannot come back, and the table says what that is.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Final

import msgspec

from bench.tables import Table, publish
from graft.simulator import Pull, Repository, Simulator
from graft.simulator.demo_repository import RepositoryBuilder
from graft.streams import DUPLICATE_WINDOW
from proof import postgres
from proof.site import Site, opened, ours, until

LOST: Final = timedelta(hours=1)
CHECKS: Final = ["graft/intent", "graft/policy", "graft/provenance"]


class Case(msgspec.Struct, kw_only=True):
    """A kind of pull request, and what became of those of it. `before` are the ids of the comments at the moment of
    the loss, by pull request."""

    say: str
    pulls: list[Pull] = msgspec.field(default_factory=list)
    before: dict[int, list[int]] = msgspec.field(default_factory=dict)
    faults: list[str] = msgspec.field(default_factory=list)

    def note(self) -> None:
        """Remember what stands on GitHub now."""
        self.before = {pull.id: [comment.id for comment in ours(pull)] for pull in self.pulls}

    def judge(self) -> None:
        for pull in self.pulls:
            name = f"{pull.repository.full_name}#{pull.number}"
            comments = ours(pull)
            if [comment.id for comment in comments] != self.before[pull.id] or len(comments) != 1:
                self.faults.append(f"{name} has the comments {[c.id for c in comments]}")
            elif pull.issue.state == "open" and pull.head_sha[:7] not in comments[0].body:
                self.faults.append(f"{name} does not show its head")
            names = sorted(run.name for run in pull.repository.runs_at(pull.head_sha))
            if names != CHECKS:
                self.faults.append(f"{name} has the check runs {names}")


class Votes(msgspec.Struct, kw_only=True):
    """Votes by button that stand in the database: of cards in the backup, and of cards written after it."""

    known_card: int = 0
    lost_card: int = 0


class Restored(msgspec.Struct, kw_only=True):
    """What came of it. `missing` are the deliveries that no row knew after the restore, `again` those that were asked
    for. `pressed` is how many buttons were pressed in the lost hour on each kind of card. `spent` counts rows of the
    ledger, `calls` what the model answered, before the loss and after the recovery."""

    cases: list[Case]
    pressed: int
    missing: int = 0
    again: int = 0
    seconds: float = 0.0
    votes: Votes = msgspec.field(default_factory=Votes)
    spent: tuple[int, int] = (0, 0)
    calls: tuple[int, int] = (0, 0)
    dead: int = 0

    @property
    def faults(self) -> list[str]:
        return [fault for case in self.cases for fault in case.faults]


class Play:
    """The pull requests of one run, each in an installation of its own."""

    def __init__(self, site: Site, path: Path) -> None:
        self.site = site
        self.simulator = site.simulator
        builder = RepositoryBuilder(path=path)
        base = builder.commit("main", {"src/app.py": "MARK = 0\n"}, message="Start")
        self.heads = []
        for number in range(2):
            self.heads.append(builder.commit("work", {"src/app.py": f"MARK = {number + 1}\n"}, parent=base))
        self.path = path
        self.names = 0

    def repository(self, *, installed: bool = True) -> Repository:
        self.names += 1
        return self.simulator.add_repository(f"octo{self.names}/demo", self.path, installed=installed)

    async def open(self, case: Case, count: int) -> None:
        for _ in range(count):
            await self.open_in(case, self.repository())

    async def open_in(self, case: Case, repository: Repository) -> None:
        pull = await self.simulator.open_pull(
            repository, head=self.heads[0], head_ref="work", title="Mark it"
        )
        case.pulls.append(pull)

    def press(self, pull: Pull, user: str) -> None:
        """Say of the card that is shown that it is right."""
        [run] = [r for r in pull.repository.runs_at(pull.head_sha) if r.actions]
        self.simulator.set_permission(pull.repository, user, "write")
        self.simulator.press_button(run.id, run.actions[0]["identifier"], user=user)


async def play(directory: Path, *, count: int, durable: bool = True) -> Restored:
    """`count` pull requests of each kind."""
    async with opened(directory, durable=durable) as site:
        simulator = site.simulator
        stage = Play(site, directory / "demo.git")
        kinds = {
            "untouched": "published before the backup, untouched since",
            "pushed": "pushed to in the lost hour",
            "retitled": "retitled in the lost hour",
            "merged": "merged in the lost hour",
            "voted": "voted on before and in the lost hour",
            "opened": "opened in the lost hour",
            "grown": "opened and pushed to in the lost hour, voted on",
            "installed": "opened where the App was installed in the lost hour",
            "ended": "opened and merged in the lost hour",
        }
        cases = {name: Case(say=say) for name, say in kinds.items()}
        daemon = await site.start()
        try:
            site.send_to(daemon)
            for name in ("untouched", "pushed", "retitled", "merged", "voted"):
                await stage.open(cases[name], count)
            await site.settled(seconds=120)
            for pull in cases["voted"].pulls:
                stage.press(pull, "mona")
            await site.settled(seconds=60)
            backup = directory / "graft.dump"
            await postgres.call("pg_dump", "--format=custom", f"--file={backup}", site.postgres.url())
            await _lost_hour(stage, cases, count)
        finally:
            await daemon.terminate()
        found = Restored(cases=list(cases.values()), pressed=count)
        for case in found.cases:
            case.note()
        known = await _rows(site, "webhook_deliveries")
        spent, calls = await _rows(site, "intent_spend"), site.model.calls
        await _lose(site, directory)
        _age(simulator)
        await postgres.call(
            *("pg_restore", "--clean", "--if-exists", "--no-owner"),
            *(f"--dbname={site.postgres.url()}", str(backup)),
        )
        await site.pool.expire_connections()
        found.missing = known - await _rows(site, "webhook_deliveries")
        began = asyncio.get_running_loop().time()
        daemon = await site.start()
        try:
            site.send_to(daemon)
            await until(lambda: _all_known(site, known), seconds=120)
            await site.settled(seconds=120)
            found.seconds = asyncio.get_running_loop().time() - began
        finally:
            await daemon.terminate()
        for case in found.cases:
            case.judge()
        found.again = sum(d.redelivery for d in simulator.deliveries)
        found.votes = await _votes(site, cases)
        found.spent = (spent, await _rows(site, "intent_spend"))
        found.calls = (calls, site.model.calls)
        found.dead = await site.pool.fetchval("SELECT count(*) FROM work WHERE dead_at IS NOT NULL")
        return found


async def _lost_hour(stage: Play, cases: dict[str, Case], count: int) -> None:
    """What happens between the backup and the loss; all of it is published."""
    simulator = stage.simulator
    for pull in cases["pushed"].pulls:
        await simulator.push(pull.repository, "work", stage.heads[1])
    for pull in cases["retitled"].pulls:
        await simulator.edit(pull, title="Mark it better", body="A description.")
    for pull in cases["merged"].pulls:
        await simulator.close(pull, merged=True)
    for pull in cases["voted"].pulls:
        stage.press(pull, "hubot")
    for name in ("opened", "grown", "ended"):
        await stage.open(cases[name], count)
    for _ in range(count):
        repository = stage.repository(installed=False)
        simulator.install(repository.owner.login, [repository])
        await stage.open_in(cases["installed"], repository)
    await stage.site.settled(seconds=120)
    for pull in cases["grown"].pulls:
        await simulator.push(pull.repository, "work", stage.heads[1])
    for pull in cases["ended"].pulls:
        await simulator.close(pull, merged=True)
    await stage.site.settled(seconds=120)
    for pull in cases["grown"].pulls:
        stage.press(pull, "mona")
    await stage.site.settled(seconds=120)


async def _lose(site: Site, directory: Path) -> None:
    """The broker loses its disk."""
    await asyncio.to_thread(site.nats.kill)
    shutil.rmtree(directory / "nats" / "jetstream")
    await asyncio.to_thread(site.nats.start)


def _age(simulator: Simulator) -> None:
    """An hour passes: the broker would not take a delivery of then for a duplicate of now."""
    assert LOST.total_seconds() > DUPLICATE_WINDOW
    for delivery in simulator.deliveries:
        delivery.delivered_at -= LOST


async def _rows(site: Site, table: str) -> int:
    counts: dict[str, str] = {
        "webhook_deliveries": "SELECT count(*) FROM webhook_deliveries",
        "intent_spend": "SELECT count(*) FROM intent_spend",
    }
    found: int = await site.pool.fetchval(counts[table])
    return found


async def _all_known(site: Site, known: int) -> bool:
    """Whether as many deliveries have a row as before the loss."""
    return await _rows(site, "webhook_deliveries") >= known


async def _votes(site: Site, cases: dict[str, Case]) -> Votes:
    async def standing(case: Case) -> int:
        found: int = await site.pool.fetchval(
            """
            SELECT count(*) FROM intent_feedback f JOIN changes c ON c.id = f.change_id
             WHERE c.repository_id = ANY($1::bigint[]) AND f.withdrawn_at IS NULL
            """,
            [pull.repository.id for pull in case.pulls],
        )
        return found

    return Votes(known_card=await standing(cases["voted"]), lost_card=await standing(cases["grown"]))


def table(found: Restored) -> Table:
    rows = [
        [
            f"{len(case.pulls)} pull requests {case.say}",
            "; ".join(case.faults) or "the comment of before with the last head, each check run once",
            "the same comment, no second one",
            _verdict(not case.faults),
        ]
        for case in found.cases
    ]
    lost = found.calls[0] - (found.spent[1] - (found.calls[1] - found.calls[0]))
    rows += [
        [
            "deliveries that no row knew any more",
            f"{found.missing}; {found.again} asked for again; all of it done {found.seconds:.0f} s after the start",
            "all, each once; no work dead",
            _verdict(found.missing == found.again and not found.dead),
        ],
        [
            "votes by button in the lost hour",
            f"{found.votes.known_card - found.pressed} of {found.pressed} on cards of the backup;"
            f" {found.votes.lost_card} of {found.pressed} on cards of the lost hour",
            "those on cards of the backup",
            _verdict(found.votes.known_card == 2 * found.pressed),
        ],
        [
            "model calls in the ledger",
            f"{found.spent[1]} of {found.calls[1]}: the {lost} of the lost hour are gone,"
            f" and {found.calls[1] - found.calls[0]} were made to write its cards again",
            "cannot come back: only those rows held it",
            "as said",
        ],
    ]
    return Table(
        name="restore",
        command="make restore",
        columns=["what", "found after the restore", "aim", ""],
        rows=rows,
        conditions={
            "backup": "pg_dump under a running daemon, pg_restore --clean an hour later; the broker's disk empty",
            "hour": "GitHub's log of deliveries is aged by it",
        },
    )


def _verdict(met: bool) -> str:
    return "met" if met else "missed"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="proof restore", description=__doc__)
    parser.add_argument("--count", type=int, default=5, help="pull requests of each kind")
    parser.add_argument("--write", action="store_true", help="put the table into docs/reliability.md")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="graft-restore-") as name:
        found = asyncio.run(play(Path(name), count=chosen.count))
    publish(table(found), write=chosen.write)
    return 1 if found.faults or found.dead else 0
