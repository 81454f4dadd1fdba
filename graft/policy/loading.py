"""Finds the policy of a commit and reads it, or says in one code why there is none to apply.

The caller binds a `PolicySource` to a commit of the *base* branch: a pull request must not loosen the policy
that judges it. Loading never follows a link and never reads more than the limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from graft.errors import PermanentError
from graft.policy.document import MAX_BYTES
from graft.policy.model import Policy
from graft.policy.parse import parse
from graft.policy.problems import Problem

CANDIDATES = ("graft.yaml", "graft.yml", ".github/graft.yaml", ".github/graft.yml")


class Kind(StrEnum):
    """What stands at a path in a git tree."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"
    SUBMODULE = "submodule"


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """`size` in bytes, of a file and where it is known."""

    kind: Kind
    size: int | None = None


class PolicySource(Protocol):
    """One commit of one repository.

    Both methods raise `PermanentError` where the answer is refused (the policy is then `unreadable`), and
    `TransientError` where asking again may help (it goes through to the caller).
    """

    async def look(self, paths: Sequence[str]) -> Mapping[str, Found]:
        """What stands at each path, links not followed; a path with nothing there is left out."""

    async def read(self, path: str, *, limit: int) -> bytes:
        """The content of a file, or its first `limit` + 1 bytes at least, if it has as many."""


class Status(StrEnum):
    """As `policy_verdicts.policy_status` stores it."""

    NONE = "none"
    VALID = "valid"
    INVALID = "invalid"
    UNREADABLE = "unreadable"


class LoadedPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """`reason` is `ok`, `missing`, `two_candidates`, `directory`, `symlink`, `submodule`, `too_large`,
    `unreadable` or `invalid`; `paths` the candidates that exist; `policy` is there exactly when `VALID`."""

    status: Status
    reason: str
    paths: tuple[str, ...] = ()
    policy: Policy | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def path(self) -> str | None:
        return self.paths[0] if len(self.paths) == 1 else None


async def load(source: PolicySource) -> LoadedPolicy:
    """Read the policy. Raises only what the source raises as `TransientError`."""
    try:
        found = await source.look(CANDIDATES)
        paths = tuple(path for path in CANDIDATES if path in found)
        if len(paths) != 1:
            return _without("two_candidates" if paths else "missing", paths)
        there = found[paths[0]]
        if there.kind is not Kind.FILE:
            return _without(str(there.kind), paths)
        if there.size is not None and there.size > MAX_BYTES:
            return _without("too_large", paths)
        data = await source.read(paths[0], limit=MAX_BYTES)
    except PermanentError:
        return _without("unreadable", ())
    if len(data) > MAX_BYTES:
        return _without("too_large", paths)
    return of_bytes(data, paths[0])


def of_bytes(data: bytes, path: str) -> LoadedPolicy:
    """The policy in a file's content, however it was read."""
    parsed = parse(data)
    if parsed.policy is None:
        return LoadedPolicy(status=Status.INVALID, reason="invalid", paths=(path,), problems=parsed.problems)
    return LoadedPolicy(status=Status.VALID, reason="ok", paths=(path,), policy=parsed.policy)


def _without(reason: str, paths: tuple[str, ...]) -> LoadedPolicy:
    status = Status.NONE if reason == "missing" else Status.UNREADABLE
    return LoadedPolicy(status=status, reason=reason, paths=paths)


def why_none(loaded: LoadedPolicy) -> str:
    """Why there is no policy to apply and what to do, in one sentence that follows the name of the file; the
    same in a published section and on the command line. Empty for a valid or an invalid file."""
    return _WHY.get(loaded.reason, "")


_WHY = {
    "missing": "does not exist: `version: 1` alone makes a policy",
    "two_candidates": "stand beside each other: keep one of them",
    "directory": "is a directory: a policy is one file",
    "symlink": "is a symbolic link, which is not followed: put the file itself there",
    "submodule": "is a submodule: put a file there",
    "too_large": f"is larger than {MAX_BYTES // 1_000_000} MB",
    "unreadable": "cannot be read: check that Graft may read the contents of this repository",
}
