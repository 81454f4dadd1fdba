"""Where the bytes of a repository come from: a directory on disk, or a mapping of paths.

Every reader promises the same: paths are relative with `/`, nothing outside the tree is read, a symlink is
never followed, and no file above `MAX_BYTES` and no directory above `MAX_NAMES` entries is taken in.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

MAX_BYTES = 2 * 1024 * 1024
"""Largest file that is read: a record, LAWS.bend or a receipt is a few kilobytes."""

MAX_NAMES = 5_000
"""Most entries of one directory that are looked at."""


class FileRefusedError(Exception):
    """A path cannot be read safely. `code` is a key of `report.REPAIRS`."""

    def __init__(self, code: str, path: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.path = path
        self.message = message


class Tree(Protocol):
    """What the tools need of a repository."""

    def kind(self, path: str) -> str:
        """`file`, `dir`, `symlink`, `other` or `missing`; a path below a symlink is a `symlink`."""
        ...

    def read(self, path: str) -> bytes:
        """The bytes of a regular file. Raises FileRefusedError."""
        ...

    def names(self, path: str) -> list[str]:
        """The sorted entry names of a directory; none when it is missing. Raises FileRefusedError."""
        ...


def decode(data: bytes) -> str:
    """Text as the standard hashes it: UTF-8 where an invalid byte counts as U+FFFD; line ends are kept."""
    return data.decode("utf-8", "replace")


def read_text(tree: Tree, path: str) -> str:
    return decode(tree.read(path))


def walk(tree: Tree, path: str, suffix: str, *, depth: int = 6) -> list[str]:
    """Paths below a directory whose name ends in `suffix`, symlinks included, in a stable order.

    Raises FileRefusedError when there are more than MAX_NAMES of them, a directory is refused or nested too deeply.
    """
    found: list[str] = []
    for name in tree.names(path):
        inner = f"{path}/{name}"
        kind = tree.kind(inner)
        if kind == "dir":
            if depth == 0:
                raise FileRefusedError("too-large", inner, "is nested too deeply to be looked at")
            found += walk(tree, inner, suffix, depth=depth - 1)
        elif name.endswith(suffix) or kind == "symlink":
            found.append(inner)
    if len(found) > MAX_NAMES:
        raise FileRefusedError("too-large", path, f"more than {MAX_NAMES} files")
    return found


class DiskTree:
    """A directory. The directory itself may be reached through a symlink, nothing below it may."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def kind(self, path: str) -> str:
        parts = path.split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in parts):
            return "missing"
        current = self.root
        for index, part in enumerate(parts):
            current = current / part
            try:
                mode = os.lstat(current).st_mode
            except (OSError, ValueError):
                return "missing"
            if stat.S_ISLNK(mode):
                return "symlink"
            last = index == len(parts) - 1
            if last and stat.S_ISREG(mode):
                return "file"
            if last and not stat.S_ISDIR(mode):
                return "other"
            if not last and not stat.S_ISDIR(mode):
                return "missing"
        return "dir"

    def read(self, path: str) -> bytes:
        _require_file(self.kind(path), path)
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        try:
            with os.fdopen(os.open(self.root / path, flags), "rb") as handle:
                data = handle.read(MAX_BYTES + 1)
        except OSError as error:
            raise FileRefusedError("unreadable", path, f"cannot be read: {error.strerror}") from None
        return _require_size(data, path)

    def names(self, path: str) -> list[str]:
        kind = self.kind(path)
        if kind == "missing":
            return []
        if kind != "dir":
            raise FileRefusedError(
                "symlink" if kind == "symlink" else "unreadable", path, f"is a {kind}, not a directory"
            )
        try:
            names = sorted(os.listdir(self.root / path))
        except OSError as error:
            raise FileRefusedError("unreadable", path, f"cannot be listed: {error.strerror}") from None
        if len(names) > MAX_NAMES:
            raise FileRefusedError("too-large", path, f"more than {MAX_NAMES} entries")
        return names


class MemoryTree:
    """A mapping of relative paths to bytes, as it was read at one commit. `refused` says why the content of a path
    is not there: `symlink`, `too-large` or `unreadable`."""

    def __init__(self, files: Mapping[str, bytes], refused: Mapping[str, str] | None = None) -> None:
        self.files = files
        self.refused = refused or {}
        self._entries: dict[str, set[str]] = {}
        for path in files:
            parts = path.split("/")
            for index in range(len(parts)):
                self._entries.setdefault("/".join(parts[:index]), set()).add(parts[index])

    def kind(self, path: str) -> str:
        if path in self.files:
            return "symlink" if self.refused.get(path) == "symlink" else "file"
        return "dir" if path in self._entries else "missing"

    def read(self, path: str) -> bytes:
        _require_file(self.kind(path), path)
        if path in self.refused:
            raise FileRefusedError(self.refused[path], path, "was not read: it is too large, or no file")
        return _require_size(self.files[path], path)

    def names(self, path: str) -> list[str]:
        return sorted(self._entries.get(path, ()))[:MAX_NAMES]


def _require_file(kind: str, path: str) -> None:
    if kind == "missing":
        raise FileRefusedError("missing", path, "does not exist")
    if kind == "symlink":
        raise FileRefusedError("symlink", path, "is a symlink or lies below one")
    if kind != "file":
        raise FileRefusedError("unreadable", path, "is not a regular file")


def _require_size(data: bytes, path: str) -> bytes:
    if len(data) > MAX_BYTES:
        raise FileRefusedError("too-large", path, f"is larger than {MAX_BYTES} bytes")
    return data


def replace_file(path: Path, data: bytes, *, executable: bool = False) -> None:
    """Replace a file in one step, so that an interrupt leaves the old one or the new one."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".graft-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(temporary, 0o755 if executable else 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
