"""Files and directories of one commit, read through the API, in the words of `graft.git`.

Trees are asked, not the contents API: that one follows symbolic links without saying so and lists at most a
thousand names of a directory. Everything is addressed by SHA, so it cannot change between two reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import msgspec

from graft.git import Entry, File, Kind

from .api import RAW, repository
from .client import Installation
from .errors import Call, GitHubRefused, ResponseTooLarge

MAX_FILE_BYTES = 1 << 20
_AT_ONCE = 8

_TREE = "repos/{owner}/{repo}/git/trees/{tree_sha}"
_BLOB = "repos/{owner}/{repo}/git/blobs/{file_sha}"


class _Node(msgspec.Struct, frozen=True):
    path: str
    mode: str
    type: str
    sha: str
    size: int | None = None


class _Tree(msgspec.Struct, frozen=True):
    tree: tuple[_Node, ...]
    truncated: bool = False


class CommitFiles:
    """The files of one commit (`commit` is a SHA, also a tree's). Each directory is asked for once."""

    def __init__(self, installation: Installation, full_name: str, commit: str) -> None:
        self._installation = installation
        self._values = repository(full_name)
        self._commit = commit
        self._trees: dict[str, dict[str, Entry]] = {}

    async def entries(self, paths: Iterable[str]) -> dict[str, Entry]:
        """What stands at each path, `Kind.MISSING` included. Raises `NotFound` where the commit is not there,
        and `GitHubRefused` (`tree_truncated`) where a directory is too large for GitHub to list."""
        return {path: await self._entry(path) for path in paths}

    async def listing(self, directory: str = "", *, recursive: bool = False) -> tuple[Entry, ...]:
        """What a directory holds, with full paths; with `recursive`, files at any depth and no directories.
        Empty where there is no such directory. Raises as `entries`."""
        where = directory.strip("/")
        sha = self._commit
        if where:
            entry = await self._entry(where)
            if entry.kind is not Kind.DIRECTORY or entry.sha is None:
                return ()
            sha = entry.sha
        if not recursive:
            return tuple((await self._read(sha, where)).values())
        deep = await self._fetch(sha, recursive=True)
        return tuple(entry for node in deep if (entry := _entry(node, where)).kind is not Kind.DIRECTORY)

    async def file(self, path: str, *, limit: int = MAX_FILE_BYTES) -> File:
        """One file of at most `limit` bytes, or why there is no content, in `File.problem`."""
        try:
            entry = await self._entry(path)
        except GitHubRefused as error:
            if error.reason != "tree_truncated":
                raise
            return File(path=path, problem="unreadable")
        return await self._content(entry, limit=limit)

    async def contents(self, entries: Sequence[Entry], *, limit: int = MAX_FILE_BYTES) -> dict[str, bytes]:
        """{SHA: content} of the entries that are files of at most `limit` bytes and can be read; a few are under
        way at a time."""
        gate = asyncio.Semaphore(_AT_ONCE)

        async def one(entry: Entry) -> File:
            async with gate:
                return await self._content(entry, limit=limit)

        reads = [asyncio.ensure_future(one(entry)) for entry in entries]
        try:
            found = await asyncio.gather(*reads)
        finally:
            for read in reads:
                read.cancel()
            await asyncio.gather(*reads, return_exceptions=True)
        return {file.sha: file.data for file in found if file.sha is not None and file.data is not None}

    async def _content(self, entry: Entry, *, limit: int) -> File:
        path = entry.path
        if entry.kind is not Kind.FILE or entry.sha is None:
            return File(path=path, problem=str(entry.kind), sha=entry.sha)
        if entry.size is not None and entry.size > limit:
            return File(path=path, problem="too_large", sha=entry.sha)
        try:
            reply = await self._installation.fetch(
                _BLOB, accept=RAW, max_bytes=limit, file_sha=entry.sha, **self._values
            )
        except ResponseTooLarge:
            return File(path=path, problem="too_large", sha=entry.sha)
        except GitHubRefused as error:
            if error.reason not in ("not_found", "unprocessable", "gone"):
                raise
            return File(path=path, problem="unreadable", sha=entry.sha)
        return File(path=path, data=reply.body, sha=entry.sha)

    async def files(self, paths: Sequence[str], *, limit: int = MAX_FILE_BYTES) -> dict[str, File]:
        """Several files, one after another."""
        return {path: await self.file(path, limit=limit) for path in paths}

    async def _entry(self, path: str) -> Entry:
        *parents, name = path.strip("/").split("/")
        sha, where = self._commit, ""
        for parent in parents:
            child = (await self._read(sha, where)).get(parent)
            if child is None or child.kind is not Kind.DIRECTORY or child.sha is None:
                return Entry(path=path, kind=Kind.MISSING)
            sha, where = child.sha, child.path
        return (await self._read(sha, where)).get(name) or Entry(path=path, kind=Kind.MISSING)

    async def _read(self, sha: str, where: str) -> dict[str, Entry]:
        known = self._trees.get(sha)
        if known is None:
            known = {node.path: _entry(node, where) for node in await self._fetch(sha, recursive=False)}
            self._trees[sha] = known
        return known

    async def _fetch(self, sha: str, *, recursive: bool) -> tuple[_Node, ...]:
        tree = await self._installation.get(
            _TREE, _Tree, lasting=True, tree_sha=sha, recursive="1" if recursive else None, **self._values
        )
        if tree.truncated:
            call = Call(method="GET", route=_TREE, installation=self._installation.installation_id)
            raise GitHubRefused(
                call, reason="tree_truncated", hint="GitHub lists a part of this directory only"
            )
        return tree.tree


def _entry(node: _Node, where: str) -> Entry:
    return Entry(
        path=f"{where}/{node.path}" if where else node.path,
        kind=_kind(node),
        sha=node.sha,
        size=node.size,
        mode=node.mode,
    )


def _kind(node: _Node) -> Kind:
    if node.type == "tree":
        return Kind.DIRECTORY
    if node.type == "commit":
        return Kind.SUBMODULE
    return Kind.SYMLINK if node.mode == "120000" else Kind.FILE
