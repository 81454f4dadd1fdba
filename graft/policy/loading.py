"""Finds the policy of a commit and reads it, or says in one code why there is none to apply.

The caller binds a `PolicySource` to a commit of the *base* branch: a pull request must not loosen the policy
that judges it. Nothing here follows a link or reads more than the limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Protocol

import msgspec

from graft.errors import PermanentError
from graft.git import Entry, File, Kind
from graft.policy.document import MAX_BYTES
from graft.policy.model import Policy
from graft.policy.parse import parse
from graft.policy.problems import Problem

CANDIDATES = ("graft.yaml", "graft.yml", ".github/graft.yaml", ".github/graft.yml")


# Refusals that say something about the file. Others (no installation, no git) are about the caller.
_UNREADABLE = frozenset(
    ("forbidden", "gone", "not_found", "response_too_large", "tree_truncated", "unprocessable")
)


class PolicySource(Protocol):
    """The files of one commit, as `graft.git` and `graft.github.CommitFiles` describe them."""

    async def entries(self, paths: Iterable[str]) -> Mapping[str, Entry]:
        """What stands at each path, links not followed."""

    async def file(self, path: str, *, limit: int) -> File:
        """One file of at most `limit` bytes, or why there is no content."""


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
    """Read the policy. Raises what the source raises, apart from refusals that concern the file: those make it
    `unreadable`."""
    try:
        entries = await source.entries(CANDIDATES)
        paths = tuple(path for path in CANDIDATES if entries[path].kind is not Kind.MISSING)
        if len(paths) != 1:
            return _without("two_candidates" if paths else "missing", paths)
        file = await source.file(paths[0], limit=MAX_BYTES)
    except PermanentError as error:
        if error.reason not in _UNREADABLE:
            raise
        return _without("unreadable", ())
    if file.data is None:
        reason = file.problem if file.problem in _WHY and file.problem != "missing" else "unreadable"
        return _without(reason, paths)
    return of_bytes(file.data, paths[0])


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
