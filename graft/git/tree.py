"""Reads files and directories as they are at a commit, never from the working tree.

What is found is said by kind: whoever looks for a file wants to tell "not there" from "a directory", "a symbolic
link", "a submodule", "too large" and "there, but git cannot give it".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from graft.git.process import Git

MAX_ENTRIES = 50_000
_BATCH = 1_000  # object names for one `git cat-file`; 64 hex digits each still fit a pipe's buffer
_LISTING_BYTES = 64 << 20
_SURROGATE = re.compile("[\ud800-\udfff]")


class Kind(StrEnum):
    """What stands at a path."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"
    SUBMODULE = "submodule"
    MISSING = "missing"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One path at a commit. `sha` and `size` (bytes, files only) are absent where there is none."""

    path: str
    kind: Kind
    sha: str | None = None
    size: int | None = None
    mode: str | None = None


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A path with its content. `data` is `None` with `problem` saying why: `missing`, `directory`, `symlink`,
    `submodule`, `too_large` or `unreadable` (the object is not in this clone)."""

    path: str
    data: bytes | None = None
    problem: str | None = None
    sha: str | None = None


def entries(git: Git, tree: str, paths: Iterable[str]) -> dict[str, Entry]:
    """What stands at each of these paths, in one git process."""
    wanted = [p for p in dict.fromkeys(paths) if _sane(p)]
    found = {e.path: e for e in _ls_tree(git, tree, wanted, recursive=False)} if wanted else {}
    return {p: found.get(p.rstrip("/"), Entry(path=p, kind=Kind.MISSING)) for p in paths}


def listing(git: Git, tree: str, directory: str, *, recursive: bool) -> tuple[Entry, ...]:
    """What a directory holds, in git's order, at most `MAX_ENTRIES`; empty where there is no such directory.

    `directory` is a path with `/`, or empty for the root. With `recursive`, files at any depth and no directories.
    """
    where = directory.strip("/")
    if where and not _sane(where):
        return ()
    return tuple(_ls_tree(git, tree, [where + "/"] if where else [], recursive=recursive))


def files(git: Git, tree: str, paths: Sequence[str], *, limit: int) -> dict[str, File]:
    """The content of each path, none larger than `limit` bytes, in two git processes."""
    found = entries(git, tree, paths)
    result: dict[str, File] = {}
    readable: list[Entry] = []
    for path, entry in found.items():
        if entry.kind is not Kind.FILE:
            result[path] = File(path=path, problem=str(entry.kind), sha=entry.sha)
        elif entry.size is None:
            result[path] = File(path=path, problem="unreadable", sha=entry.sha)
        elif entry.size > limit:
            result[path] = File(path=path, problem="too_large", sha=entry.sha)
        else:
            readable.append(entry)
    for start in range(0, len(readable), _BATCH):
        batch = readable[start : start + _BATCH]
        blobs = _cat(git, [e.sha or "" for e in batch], limit=limit)
        for entry, data in zip(batch, blobs, strict=True):
            problem = "unreadable" if data is None else None
            result[entry.path] = File(path=entry.path, data=data, problem=problem, sha=entry.sha)
    return {path: result[path] for path in found}


def _sane(path: str) -> bool:
    """Whether a tree can hold this name at all; git refuses some of the others with an error."""
    if "\0" in path or _SURROGATE.search(path):
        return False
    return all(part not in ("", ".", "..") for part in path.removesuffix("/").split("/"))


def _ls_tree(git: Git, tree: str, paths: list[str], *, recursive: bool) -> Iterable[Entry]:
    arguments = [
        "-z",
        "--long",
        "--full-tree",
        *(["-r"] if recursive else []),
        "--end-of-options",
        tree,
        *paths,
    ]
    data, _ = git.read("ls-tree", *arguments, limit=_LISTING_BYTES)
    for row in data.split(b"\0")[:-1][:MAX_ENTRIES]:
        meta, _, raw = row.partition(b"\t")
        mode, kind, sha, size = meta.decode("ascii").split()
        yield Entry(
            path=raw.decode("utf-8", "replace"),
            kind=_kind(mode, kind),
            sha=sha,
            size=int(size) if size.isdigit() and kind == "blob" else None,
            mode=mode,
        )


def _kind(mode: str, kind: str) -> Kind:
    if kind == "tree":
        return Kind.DIRECTORY
    if kind == "commit":
        return Kind.SUBMODULE
    return Kind.SYMLINK if mode == "120000" else Kind.FILE


def _cat(git: Git, shas: list[str], *, limit: int) -> list[bytes | None]:
    """The blobs in order; `None` for one that is not there."""
    ask = "".join(f"{sha}\n" for sha in shas).encode()
    data, _ = git.read("cat-file", "--batch", stdin=ask, limit=len(shas) * (limit + 200))
    blobs: list[bytes | None] = []
    at = 0
    for _sha in shas:
        end = data.find(b"\n", at)
        header = data[at:end].split(b" ")
        if end < 0 or len(header) != 3 or header[1] != b"blob":
            blobs.append(None)
            at = end + 1 if end >= 0 else len(data)
            continue
        size = int(header[2])
        blobs.append(data[end + 1 : end + 1 + size])
        at = end + 1 + size + 1
    return blobs
