"""A steady, seeded load of pull request events on the simulated GitHub, and an operator who sees to failed ones.

Each pull request has a repository and an installation of its own. A delivery that was not answered 202 is sent
again under its id until it is, as GitHub's own button, an operator's script or Graft's recovery would.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from pathlib import Path

import msgspec

from graft.simulator import Comment, Delivery, Pull, Repository, Simulator
from graft.simulator.demo_repository import RepositoryBuilder
from graft.simulator.repository_git import GitRepository

SLOTS, HEADS = 8, 6
BASES = ("main", "release")
HOLD = "hold"
_RETRY_SECONDS = 0.2
_POLICY = """\
version: 1
rules:
  - name: held back on {base}
    when: {{labels: {{any: [hold]}}}}
    then: block
"""
_ACTS = {
    "push": 24,
    "back": 6,
    "title": 14,
    "body": 8,
    "label": 10,
    "retarget": 8,
    "reopen": 8,
    "vote": 14,
    "again": 8,
}


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """Commits that every trial uses: head `h` of slot `p` adds the mark `mark-p<p>h<h>` to one file."""

    path: Path
    heads: tuple[tuple[str, ...], ...]

    def mark(self, slot: int, sha: str) -> str:
        return f"mark-p{slot}h{self.heads[slot].index(sha)}"


def build(path: Path) -> Material:
    """Make the repository at a path that does not exist yet."""
    builder = RepositoryBuilder(path=path)
    start = {f"src/part{slot}.py": 'MARK = "start"\n' for slot in range(SLOTS)}
    base = builder.commit("main", start | {"graft.yaml": _POLICY.format(base="main")}, message="Start")
    builder.commit("release", {"graft.yaml": _POLICY.format(base="release")}, parent=base)
    heads = []
    for slot in range(SLOTS):
        made = []
        for number in range(HEADS):
            files = {f"src/part{slot}.py": f'MARK = "mark-p{slot}h{number}"\n'}
            made.append(
                builder.commit(f"slot{slot}", files, parent=base if number == 0 else None, message="Mark it")
            )
        heads.append(tuple(made))
    return Material(path=path, heads=tuple(heads))


class Press(msgspec.Struct, frozen=True, kw_only=True):
    """A button that somebody pressed; nobody presses twice."""

    login: str
    verdict: str
    repository_id: int


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """A pull request of this trial and the slot its commits come from."""

    pull: Pull
    slot: int


def ours(pull: Pull) -> list[Comment]:
    """The comments that Graft left."""
    return [c for c in pull.issue.comments if c.via_app and c.body.startswith("<!-- graft:managed-comment")]


def refused(deliveries: Iterable[Delivery]) -> list[Delivery]:
    """The last attempt of every delivery that was never answered 202 and is not on its way."""
    last: dict[str, Delivery] = {}
    done: set[str] = set()
    for delivery in deliveries:
        last[delivery.guid] = delivery
        if delivery.status_code == 202 or delivery.status == "pending":
            done.add(delivery.guid)
    return [delivery for guid, delivery in last.items() if guid not in done]


class Load:
    """The events of one trial. `name` tells its repositories from those of other trials."""

    def __init__(self, simulator: Simulator, material: Material, git: GitRepository, *, name: str) -> None:
        self.simulator = simulator
        self.material = material
        self.name = name
        self.random = random.Random(f"{name}/load")
        self.opened: list[Opened] = []
        self.presses: list[Press] = []
        self._git = git

    @property
    def repositories(self) -> list[int]:
        return [opened.pull.repository.id for opened in self.opened]

    async def run(self, *, seconds: float, events: int) -> None:
        """Open every pull request, then act on them at random until the time is over."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number in range(events):
            wait = began + seconds * number / events - loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            if len(self.opened) < SLOTS and (number % 3 == 0 or not self.opened):
                await self._open(len(self.opened))
            else:
                await self._act()

    async def redeliver(self) -> None:
        """Send what was refused again, for ever."""
        while True:
            await asyncio.sleep(_RETRY_SECONDS)
            for delivery in refused(self.simulator.deliveries):
                self.simulator.redeliver(delivery.guid)

    def _repository(self, slot: int) -> Repository:
        made = self.simulator.add_repository(f"{self.name}-{slot}/shop", self.material.path)
        # One git process for all of them.
        made.git = self._git
        return made

    async def _open(self, slot: int) -> None:
        pull = await self.simulator.open_pull(
            self._repository(slot),
            head=self.material.heads[slot][0],
            head_ref=f"work-{slot}",
            title=f"Mark part {slot}",
            body="Another mark.",
        )
        self.opened.append(Opened(pull=pull, slot=slot))

    async def _act(self) -> None:
        opened = self.random.choice(self.opened)
        pull = opened.pull
        act = self.random.choices(list(_ACTS), list(_ACTS.values()))[0]
        number = self.random.randrange(10**6)
        if act == "again":
            await self._again()
        elif act == "vote":
            self._vote(pull, accurate=number % 2 == 0)
        elif act == "reopen" and pull.issue.state == "closed":
            await self.simulator.reopen(pull)
        elif act == "reopen":
            await self.simulator.close(pull)
        elif act == "label" and any(label.name == HOLD for label in pull.issue.labels):
            await self.simulator.unlabel(pull, HOLD)
        elif act == "label":
            await self.simulator.label(pull, HOLD)
        elif act == "retarget":
            await self.simulator.retarget(pull, BASES[1 - BASES.index(pull.base_ref)])
        elif act == "title":
            await self.simulator.edit(pull, title=f"Mark part {opened.slot}, again {number}")
        elif act == "body":
            await self.simulator.edit(pull, body=f"Another mark, {number}.")
        else:
            await self._push(opened, back=act == "back")

    async def _push(self, opened: Opened, *, back: bool) -> None:
        heads = self.material.heads[opened.slot]
        at = heads.index(opened.pull.head_sha)
        to = at - 1 if (back and at) or at + 1 == len(heads) else at + 1
        await self.simulator.synchronize(opened.pull, heads[to])

    async def _again(self) -> None:
        taken = [d for d in self.simulator.deliveries if d.status_code == 202]
        if taken:
            self.simulator.redeliver(self.random.choice(taken).guid)

    def _vote(self, pull: Pull, *, accurate: bool) -> None:
        shown = [run for run in pull.repository.runs_at(pull.head_sha) if run.actions]
        if not shown:
            return
        verdict = "accurate" if accurate else "wrong"
        [action] = [a for a in shown[0].actions if verdict in a["identifier"]]
        login = f"{self.name}-voter-{len(self.presses)}"
        self.simulator.press_button(shown[0].id, action["identifier"], user=login)
        self.presses.append(Press(login=login, verdict=verdict, repository_id=pull.repository.id))
