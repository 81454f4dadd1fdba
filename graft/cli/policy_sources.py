"""Policies from a working directory, from one file, and from a local git repository."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from graft.git import Entry, File, Kind, Repository
from graft.policy import CANDIDATES, MAX_BYTES, LoadedPolicy, Status, load, of_bytes


class LocalCommit:
    """A commit of a local repository, as a source of policy and records."""

    def __init__(self, repository: Repository, commit: str) -> None:
        self._repository = repository
        self._commit = commit

    async def entries(self, paths: Iterable[str]) -> Mapping[str, Entry]:
        return await asyncio.to_thread(self._repository.entries, self._commit, paths)

    async def file(self, path: str, *, limit: int) -> File:
        return await asyncio.to_thread(self._repository.file, self._commit, path, limit=limit)

    async def listing(self, directory: str, *, recursive: bool) -> tuple[Entry, ...]:
        return await asyncio.to_thread(self._repository.listing, self._commit, directory, recursive=recursive)

    async def contents(self, entries: Sequence[Entry], *, limit: int) -> dict[str, bytes]:
        paths = [entry.path for entry in entries]
        found = await asyncio.to_thread(self._repository.files, self._commit, paths, limit=limit)
        return {
            file.sha: file.data for file in found.values() if file.sha is not None and file.data is not None
        }


class WorkingDirectory:
    """Files as they are on disk, as a `PolicySource`: what git would make of them. A directory with a `.git` of
    its own counts as a directory."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def entries(self, paths: Iterable[str]) -> Mapping[str, Entry]:
        return {path: Entry(path=path, kind=_kind(self._root / path, follow=False)) for path in paths}

    async def file(self, path: str, *, limit: int) -> File:
        return _file(self._root / path, path, limit=limit, follow=False)


def read_directory(root: Path) -> LoadedPolicy:
    """The policy that a commit of this directory would have."""
    return asyncio.run(load(WorkingDirectory(root)))


def read_file(name: str) -> LoadedPolicy:
    """The policy in one file, whatever its name; `-` is standard input. Here links are followed."""
    if name == "-":
        return of_bytes(sys.stdin.buffer.read(MAX_BYTES + 1), "-")
    file = _file(Path(name), name, limit=MAX_BYTES, follow=True)
    if file.data is None:
        status = Status.NONE if file.problem == "missing" else Status.UNREADABLE
        return LoadedPolicy(status=status, reason=file.problem or "unreadable", paths=(name,))
    return of_bytes(file.data, name)


def _kind(path: Path, *, follow: bool) -> Kind:
    try:
        mode = os.stat(path, follow_symlinks=follow).st_mode
    except (OSError, ValueError):
        return Kind.MISSING
    if stat.S_ISLNK(mode):
        return Kind.SYMLINK
    return Kind.DIRECTORY if stat.S_ISDIR(mode) else Kind.FILE


def _file(path: Path, name: str, *, limit: int, follow: bool) -> File:
    kind = _kind(path, follow=follow)
    if kind is not Kind.FILE:
        return File(path=name, problem=str(kind))
    try:
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except OSError:
        return File(path=name, problem="unreadable")
    return File(path=name, data=data) if len(data) <= limit else File(path=name, problem="too_large")


def named(loaded: LoadedPolicy) -> str:
    """The file or files that a message is about."""
    return " and ".join(loaded.paths) or CANDIDATES[0]
