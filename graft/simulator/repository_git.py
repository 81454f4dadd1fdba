"""Read a local git repository, bare or not, the way GitHub's answers need it. Never writes to it.

Objects come from one long-lived `git cat-file --batch`, ranges and diffs from short `git` runs; whatever is
addressed by SHA is remembered. Hooks, filters, external diff programs and the user's configuration are left
out, so that the same repository gives the same answers everywhere.
"""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass
from pathlib import Path

from graft.simulator.memo import Memo

FULL_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_OPTIONS = (
    "--no-replace-objects",
    "-c",
    "safe.directory=*",
    "-c",
    "core.quotePath=true",
    "-c",
    "diff.renames=true",
    "-c",
    "diff.algorithm=default",
)


class GitError(Exception):
    """git refused a command; the message names the subcommand and its exit status only."""


@dataclass(frozen=True, kw_only=True)
class Signature:
    """Who and when, as a commit says it; `when` is in seconds since 1970."""

    name: str
    email: str
    when: int


@dataclass(frozen=True, kw_only=True)
class CommitObject:
    sha: str
    tree: str
    parents: tuple[str, ...]
    author: Signature
    committer: Signature
    message: str
    signed: bool


@dataclass(frozen=True, kw_only=True)
class TreeEntry:
    """One row of a tree. `kind` is git's word: `blob`, `tree`, or `commit` for a submodule."""

    path: str
    mode: str
    kind: str
    sha: str
    size: int | None = None


class GitRepository:
    """One repository on disk. Belongs to the event loop that uses it first; `close()` ends its git process."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._batch: asyncio.subprocess.Process | None = None
        self._batch_lock = asyncio.Lock()
        self._objects: Memo[tuple[str, bytes] | None] = Memo(4096)
        self._trees: Memo[tuple[TreeEntry, ...]] = Memo(512)
        self._ranges: Memo[tuple[str, ...]] = Memo(1024)
        self._bases: Memo[str | None] = Memo(4096)

    async def run(self, *arguments: str) -> bytes:
        """The output of one git command; raises `GitError` when it fails."""
        code, output = await self._run(*arguments)
        if code != 0:
            raise GitError(f"git {arguments[0]} ended with status {code}")
        return output

    async def resolve(self, revision: str) -> str | None:
        """The commit that a revision names, or `None`. A leading dash is never read as an option."""
        if not revision or revision.startswith("-") or "\0" in revision:
            return None
        if FULL_SHA.fullmatch(revision):
            found = await self.read(revision)
            if found is not None and found[0] == "commit":
                return revision
        code, output = await self._run("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        return output.decode().strip() if code == 0 else None

    async def branches(self) -> dict[str, str]:
        """Every local branch and its tip."""
        output = await self.run("for-each-ref", "--format=%(refname:strip=2) %(objectname)", "refs/heads")
        rows = (line.rpartition(" ") for line in output.decode("utf-8", "replace").splitlines())
        return {name: sha for name, _, sha in rows}

    async def read(self, sha: str) -> tuple[str, bytes] | None:
        """Kind and content of an object, or `None` when there is none."""
        return await self._objects.get(sha, lambda: self._read(sha))

    async def commit(self, sha: str) -> CommitObject:
        """A commit that is known to be there; raises `GitError` for anything else."""
        found = await self.read(sha)
        if found is None or found[0] != "commit":
            raise GitError("no such commit")
        return _parse_commit(sha, found[1])

    async def entry(self, commit_sha: str, path: str) -> TreeEntry | None:
        """What stands at a path in a commit; the root is a tree with an empty path."""
        entry = TreeEntry(path="", mode="040000", kind="tree", sha=(await self.commit(commit_sha)).tree)
        for name in path.split("/") if path else ():
            found = await self.read(entry.sha) if entry.kind == "tree" else None
            if found is None:
                return None
            below = next(
                (row for row in _parse_tree(found[1], len(entry.sha) // 2) if row.path == name), None
            )
            if below is None:
                return None
            entry = below
        return TreeEntry(path=path, mode=entry.mode, kind=entry.kind, sha=entry.sha)

    async def tree(self, sha: str, *, recursive: bool = False) -> tuple[TreeEntry, ...]:
        """The rows of a tree with sizes, in git's order; recursive ones name the trees in between, too."""

        async def read() -> tuple[TreeEntry, ...]:
            flags = ("-r", "-t") if recursive else ()
            return tuple(_parse_listing(await self.run("ls-tree", "-l", "-z", *flags, sha)))

        return await self._trees.get((sha, recursive), read)

    async def merge_base(self, one: str, other: str) -> str | None:
        """The best common ancestor, or `None` for histories that never met."""

        async def read() -> str | None:
            code, output = await self._run("merge-base", one, other)
            return output.decode().split("\n", 1)[0] if code == 0 else None

        return await self._bases.get((one, other), read)

    async def commits_between(self, base: str, head: str) -> tuple[str, ...]:
        """The commits of `head` that `base` has not, oldest first."""

        async def read() -> tuple[str, ...]:
            output = await self.run("rev-list", "--topo-order", "--reverse", f"^{base}", head)
            return tuple(output.decode().split())

        return await self._ranges.get((base, head), read)

    async def close(self) -> None:
        """End the batch process; the repository can be used again afterwards."""
        process, self._batch = self._batch, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.communicate()

    async def _run(self, *arguments: str) -> tuple[int, bytes]:
        process = await self._start(*arguments, stdin=asyncio.subprocess.DEVNULL)
        output, _ = await process.communicate()
        return process.returncode or 0, output

    async def _start(self, *arguments: str, stdin: int) -> asyncio.subprocess.Process:
        kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "HOME") if name in os.environ}
        settings = {
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_OPTIONAL_LOCKS": "0",
            "LC_ALL": "C",
        }
        return await asyncio.create_subprocess_exec(
            "git",
            *_OPTIONS,
            "-C",
            str(self.path),
            *arguments,
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={**kept, **settings},
        )

    async def _read(self, sha: str) -> tuple[str, bytes] | None:
        if not FULL_SHA.fullmatch(sha):
            return None
        async with self._batch_lock:
            if self._batch is None or self._batch.returncode is not None:
                self._batch = await self._start("cat-file", "--batch", stdin=asyncio.subprocess.PIPE)
            sink, source = self._batch.stdin, self._batch.stdout
            if sink is None or source is None:
                raise GitError("git cat-file has no pipes")
            sink.write(sha.encode() + b"\n")
            header = (await source.readline()).split()
            if len(header) != 3:
                return None
            content = await source.readexactly(int(header[2]) + 1)
            return header[1].decode(), content[:-1]


def _parse_commit(sha: str, content: bytes) -> CommitObject:
    head, _, message = content.partition(b"\n\n")
    tree, parents, signed = "", [], False
    author = committer = Signature(name="", email="", when=0)
    for line in head.split(b"\n"):
        key, _, value = line.partition(b" ")
        if key == b"tree":
            tree = value.decode()
        elif key == b"parent":
            parents.append(value.decode())
        elif key == b"author":
            author = _parse_signature(value)
        elif key == b"committer":
            committer = _parse_signature(value)
        elif key in (b"gpgsig", b"gpgsig-sha256"):
            signed = True
    return CommitObject(
        sha=sha,
        tree=tree,
        parents=tuple(parents),
        author=author,
        committer=committer,
        message=message.decode("utf-8", "replace").rstrip("\n"),
        signed=signed,
    )


def _parse_signature(value: bytes) -> Signature:
    who, _, rest = value.decode("utf-8", "replace").rpartition(">")
    name, _, email = who.partition("<")
    seconds = rest.split()[:1]
    when = int(seconds[0]) if seconds and seconds[0].lstrip("-").isdigit() else 0
    # A date that no calendar holds is shown as the epoch.
    return Signature(name=name.strip(), email=email, when=when if 0 <= when < 253_402_300_800 else 0)


def _parse_tree(content: bytes, id_length: int) -> list[TreeEntry]:
    rows, at = [], 0
    while at < len(content):
        space = content.index(b" ", at)
        end = content.index(b"\0", space)
        mode = content[at:space].decode().rjust(6, "0")
        kind = {"040000": "tree", "160000": "commit"}.get(mode, "blob")
        sha = content[end + 1 : end + 1 + id_length].hex()
        rows.append(
            TreeEntry(path=content[space + 1 : end].decode("utf-8", "replace"), mode=mode, kind=kind, sha=sha)
        )
        at = end + 1 + id_length
    return rows


def _parse_listing(output: bytes) -> list[TreeEntry]:
    rows = []
    for line in output.split(b"\0")[:-1]:
        meta, _, path = line.partition(b"\t")
        mode, kind, sha, size = meta.decode().split()
        rows.append(
            TreeEntry(
                path=path.decode("utf-8", "replace"),
                mode=mode,
                kind=kind,
                sha=sha,
                size=int(size) if size.isdigit() else None,
            )
        )
    return rows
