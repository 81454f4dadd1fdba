"""What a scenario can do and see: a GitHub with one repository that belongs to the tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from msgspec import Struct

# What not every GitHub lets a program do; a scenario that needs it is skipped there, with this reason.
ABILITIES: Final[Mapping[str, str]] = {
    "fork": "needs a second account that has a fork",
    "button": "GitHub has no API to press a check run's button",
    "uninstall": "needs a classic token of the installation's owner",
    "votes": "needs the address of the daemon's metrics (--metrics)",
}

BRANCH_PREFIX: Final = "graft-e2e-"


class Change(Struct, kw_only=True):
    """A pull request that a scenario has opened; `head_sha` follows its pushes."""

    number: int
    branch: str
    base: str
    head_sha: str


class Check(Struct, frozen=True, kw_only=True):
    """A check run of the App on the head; `stamp` is another one once it was published anew."""

    id: int
    conclusion: str | None
    title: str
    stamp: str
    buttons: tuple[str, ...] = ()


class Shown(Struct, frozen=True, kw_only=True):
    """What a reader of the pull request sees of Graft."""

    comments: tuple[tuple[int, str], ...]
    checks: dict[str, Check]


class Stage(Protocol):
    """One repository on one GitHub. Raises GraftError when GitHub does not do what it is asked to."""

    abilities: frozenset[str]

    @property
    def name(self) -> str: ...

    async def clear(self) -> None:
        """Close and delete whatever earlier plays left behind."""

    async def branch(self, name: str, files: Mapping[str, str], *, start: str | None = None) -> str:
        """A branch with a commit on top of `start` (by default the default branch); its SHA."""

    async def open(self, branch: str, *, base: str | None = None, fork: bool = False) -> Change: ...

    async def push(self, change: Change, files: Mapping[str, str], *, force: bool = False) -> None:
        """A commit on top; with `force`, in place of what the branch had."""

    async def retarget(self, change: Change, base: str) -> None: ...

    async def rename(self, name: str) -> None:
        """Rename the repository; `name` without the owner."""

    async def shown(self, change: Change) -> Shown: ...

    async def react(self, comment_id: int, content: str) -> None: ...

    async def press(self, check_id: int, button: str) -> None: ...

    async def rerun(self, check_id: int) -> None: ...

    async def uninstall(self) -> None: ...

    async def install(self) -> None: ...

    async def votes(self) -> dict[tuple[str, str], int]:
        """Standing votes by (verdict, source)."""

    async def close(self, change: Change) -> None:
        """Close it and delete its branch."""

    async def delete_branch(self, branch: str) -> None: ...
