"""The scenarios. Each opens pull requests of its own, acts as people do, and waits for what people would see."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from msgspec import Struct

from graft.e2e.stage import BRANCH_PREFIX, Change, Shown, Stage

CHECKS: Final = frozenset({"graft/intent", "graft/provenance", "graft/policy"})
LOOK_SECONDS: Final = 0.5
# How long nothing must happen where nothing should.
QUIET_SECONDS: Final = 3.0


class Disagreed(Exception):
    """What was seen is not what should be; the text says what was missing."""


class Play:
    """One scenario being played: the stage, a name for its branches, and how long to wait for anything."""

    def __init__(self, stage: Stage, name: str, *, patience: float, look: float = LOOK_SECONDS) -> None:
        self.stage = stage
        self.prefix = f"{BRANCH_PREFIX}{name}"
        self.patience = patience
        self.look = look

    async def until(self, what: str, condition: Callable[[], Awaitable[bool]]) -> None:
        """Look until the condition holds. Raises Disagreed naming what never came."""
        try:
            async with asyncio.timeout(self.patience):
                while not await condition():  # noqa: ASYNC110 - GitHub tells nobody when a page changes
                    await asyncio.sleep(self.look)
        except TimeoutError:
            raise Disagreed(f"{what}, not within {self.patience:g} s") from None

    @contextlib.asynccontextmanager
    async def change(self, *, fork: bool = False, suffix: str = "") -> AsyncIterator[Change]:
        """A pull request with one commit, closed again at the end."""
        branch = f"{self.prefix}{suffix}"
        await self.stage.branch(branch, {f"e2e/{branch}.py": "VALUE = 1\n"})
        opened = await self.stage.open(branch, fork=fork)
        try:
            yield opened
        finally:
            await self.stage.close(opened)

    async def complete(self, change: Change) -> Shown:
        """What is shown once it is complete for the head: one comment that names it, and every check."""
        found: list[Shown] = []

        async def is_complete() -> bool:
            found[:] = [await self.stage.shown(change)]
            return _complete(found[0], change)

        await self.until(f"one comment and {len(CHECKS)} neutral checks for the head", is_complete)
        return found[0]


def _complete(shown: Shown, change: Change) -> bool:
    if len(shown.comments) != 1 or not shown.checks.keys() >= CHECKS:
        return False
    [(_, body)] = shown.comments
    finished = "in the making" not in body and change.head_sha[:7] in body
    return finished and all(shown.checks[name].conclusion == "neutral" for name in CHECKS)


# ------------------------------------------------------------------------------------------------ the scenarios


async def opened(play: Play) -> None:
    async with play.change() as change:
        await play.complete(change)


async def pushed(play: Play) -> None:
    async with play.change() as change:
        before = await play.complete(change)
        await play.stage.push(change, {f"e2e/{change.branch}.py": "VALUE = 2\n"})
        after = await play.complete(change)
        if before.comments[0][0] != after.comments[0][0]:
            raise Disagreed("the push made another comment instead of updating the first")


async def force_pushed(play: Play) -> None:
    async with play.change() as change:
        await play.complete(change)
        await play.stage.push(change, {f"e2e/{change.branch}-other.py": "VALUE = 3\n"}, force=True)
        await play.complete(change)


async def retargeted(play: Play) -> None:
    base = f"{play.prefix}-base"
    tip = await play.stage.branch(base, {f"e2e/{base}.py": "BASE = 1\n"})
    head = f"{play.prefix}-head"
    await play.stage.branch(head, {f"e2e/{head}.py": "VALUE = 4\n"}, start=base)
    change = await play.stage.open(head)
    try:
        await play.complete(change)
        await play.stage.retarget(change, base)

        async def names_base() -> bool:
            shown = await play.stage.shown(change)
            return _complete(shown, change) and tip[:7] in shown.comments[0][1]

        await play.until("a comment about the new base", names_base)
    finally:
        await play.stage.close(change)
        await play.stage.delete_branch(base)


async def forked(play: Play) -> None:
    async with play.change(fork=True) as change:
        await play.complete(change)


async def voted_by_reaction(play: Play) -> None:
    async with play.change() as change:
        shown = await play.complete(change)
        before = await play.stage.votes()
        await play.stage.react(shown.comments[0][0], "+1")
        await _counted(play, ("accurate", "reaction"), before)


async def voted_by_button(play: Play) -> None:
    async with play.change() as change:
        shown = await play.complete(change)
        check = shown.checks["graft/intent"]
        if "card-wrong" not in check.buttons:
            raise Disagreed("the intent check shows no button: is a model configured?")
        before = await play.stage.votes()
        await play.stage.press(check.id, "card-wrong")
        await _counted(play, ("wrong", "button"), before)


async def _counted(play: Play, kind: tuple[str, str], before: dict[tuple[str, str], int]) -> None:
    async def more() -> bool:
        return (await play.stage.votes()).get(kind, 0) > before.get(kind, 0)

    await play.until(f"a vote by {kind[1]} in the metrics", more)


async def run_again(play: Play) -> None:
    async with play.change() as change:
        before = (await play.complete(change)).checks["graft/intent"]
        await play.stage.rerun(before.id)

        async def anew() -> bool:
            shown = await play.stage.shown(change)
            return _complete(shown, change) and shown.checks["graft/intent"].stamp != before.stamp

        await play.until("the check published anew", anew)


async def renamed(play: Play) -> None:
    name = play.stage.name.partition("/")[2]
    async with play.change() as change:
        await play.complete(change)
        await play.stage.rename(f"{name}-renamed")
        try:
            await play.stage.push(change, {f"e2e/{change.branch}.py": "VALUE = 5\n"})
            await play.complete(change)
        finally:
            await play.stage.rename(name)


async def uninstalled(play: Play) -> None:
    await play.stage.uninstall()
    try:
        async with play.change(suffix="-without") as change:
            await asyncio.sleep(QUIET_SECONDS)
            if (await play.stage.shown(change)).comments:
                raise Disagreed("a comment on a repository that the App was taken from")
    finally:
        await play.stage.install()
    async with play.change(suffix="-again") as change:
        await play.complete(change)


class Scenario(Struct, frozen=True, kw_only=True):
    """`needs` are abilities of the stage. One that is `alone` changes the repository for all of them."""

    name: str
    what: str
    run: Callable[[Play], Awaitable[None]]
    needs: frozenset[str] = frozenset()
    alone: bool = False


SCENARIOS: Final = (
    Scenario(name="open", what="A new pull request gets one comment and its checks.", run=opened),
    Scenario(name="push", what="A push updates the same comment.", run=pushed),
    Scenario(name="force-push", what="A rewritten branch is read anew.", run=force_pushed),
    Scenario(name="retarget", what="Another base branch is compared with.", run=retargeted),
    Scenario(
        name="fork", what="A pull request from a fork is served too.", run=forked, needs=frozenset({"fork"})
    ),
    Scenario(
        name="vote-reaction",
        what="A reaction on the comment counts as a vote.",
        run=voted_by_reaction,
        needs=frozenset({"votes"}),
    ),
    Scenario(
        name="vote-button",
        what="A press of a check's button counts as a vote.",
        run=voted_by_button,
        needs=frozenset({"votes", "button"}),
    ),
    Scenario(name="rerun", what="“Re-run” publishes the check anew.", run=run_again),
    Scenario(name="rename", what="A renamed repository goes on being served.", run=renamed, alone=True),
    Scenario(
        name="uninstall",
        what="Without the App nothing is said; with it again, it is.",
        run=uninstalled,
        needs=frozenset({"uninstall"}),
        alone=True,
    ),
)
