"""Older texts from git, read only: the text that a receipt judged, or `.intent/` at a commit.

Nothing here touches the network (a partial clone is not completed) or the work tree. A text that is not found
is None, never an error: a shallow clone is normal in CI.
"""

from __future__ import annotations

import os
from pathlib import Path

from . import canonical, process
from .files import MAX_BYTES, MAX_NAMES, MemoryTree, decode

MAX_COMMITS = 300
"""Most commits that are searched for the text a receipt judged."""

TIMEOUT = 30.0
_CAP = 64 * 1024 * 1024


class HistoryError(Exception):
    """The ref does not exist or git cannot be used."""


class History:
    """The git repository that holds a directory. Lookups are cached for the life of the object."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._prefix: str | None = None
        self._versions: dict[str, dict[str, str]] = {}

    def _git(self, *arguments: str, stdin: bytes = b"") -> process.Outcome:
        env = {**os.environ, "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
        argv = ["git", "--no-pager", "-c", "core.quotePath=false", *arguments]
        return process.run(argv, cwd=self.root, timeout=TIMEOUT, cap=_CAP, env=env, stdin=stdin)

    def _rooted(self, path: str) -> str:
        if self._prefix is None:
            outcome = self._git("rev-parse", "--show-prefix")
            self._prefix = outcome.stdout.strip("\n") if outcome.status == 0 else ""
        return self._prefix + path

    def find(self, path: str, sha256: str) -> str | None:
        """The committed text of `path` with this hash, or None."""
        if path not in self._versions:
            self._versions[path] = self._read_versions(path)
        return self._versions[path].get(sha256)

    def _read_versions(self, path: str) -> dict[str, str]:
        shape = ("--format=", "--raw", "--no-abbrev", "--no-renames", "-m")
        listed = self._git("log", f"--max-count={MAX_COMMITS}", *shape, "HEAD", "--", path)
        if listed.failure or listed.status != 0:
            return {}
        blobs: dict[str, None] = {}
        for line in listed.stdout.split("\n"):
            fields = line.lstrip(":").split(" ")
            if line.startswith(":") and len(fields) >= 5:
                blobs.update({blob: None for blob in fields[2:4] if set(blob) != {"0"}})
        texts = [decode(data) for data in self._blobs(list(blobs))]
        return {canonical.sha256(text): text for text in texts}

    def _blobs(self, names: list[str]) -> list[bytes]:
        """The contents of the blobs that exist here, in this order; one `git cat-file` for all of them."""
        outcome = self._git("cat-file", "--batch", stdin="".join([name + "\n" for name in names]).encode())
        contents = []
        position = 0
        while position < len(outcome.out):
            end = outcome.out.find(b"\n", position)
            if end < 0:
                break
            fields = outcome.out[position:end].split(b" ")
            position = end + 1
            if len(fields) == 3 and fields[2].isdigit():
                contents.append(outcome.out[position : position + int(fields[2])])
                position += int(fields[2]) + 1
        return contents

    def tree(self, ref: str) -> MemoryTree:
        """`.intent/` at a commit as a tree. Raises HistoryError when the ref names no commit."""
        named = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", ref + "^{commit}")
        if named.failure or named.status != 0:
            raise HistoryError("the ref names no commit here")
        commit = named.stdout.strip()
        folder = self._rooted(".intent")
        listed = self._git("ls-tree", "-r", "-l", "-z", "--full-tree", commit, "--", folder)
        if listed.failure or listed.status != 0:
            raise HistoryError("git cannot list that commit")
        blobs: dict[str, str] = {}
        for entry in listed.stdout.split("\0"):
            about, _, path = entry.partition("\t")
            fields = about.split()
            wanted = len(fields) == 4 and fields[0].startswith("100") and fields[3].isdigit()
            if wanted and path.endswith((".md", ".bend", ".json", ".sha256")) and int(fields[3]) <= MAX_BYTES:
                blobs[path[len(folder) - len(".intent") :]] = fields[2]
        if len(blobs) > MAX_NAMES:
            raise HistoryError(f"more than {MAX_NAMES} files under .intent/ in that commit")
        contents = self._blobs(list(blobs.values()))
        if len(contents) != len(blobs):
            raise HistoryError("some files of that commit are not here")
        return MemoryTree(dict(zip(blobs, contents)))  # noqa: B905 - the lengths were compared; `strict` needs 3.10
