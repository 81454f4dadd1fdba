"""A local git repository as Graft reads it: a range as a `Snapshot`, files and directories at a commit.

The calls block: each is one or two short git processes. From a coroutine, call them with `asyncio.to_thread`.

    repository = Repository.open("path/to/clone")
    range_ = repository.resolve("main..HEAD")           # both names, and the merge base of the two
    snapshot = repository.snapshot(range_)               # the files and commits of a pull request from HEAD to main
    file = repository.file(range_.base, "graft.yaml")    # as it is on the base, whatever the change does to it
    entries = repository.listing(range_.base, ".intent", recursive=True)

Nothing here reads the working tree, the index or the user's configuration, and nothing reaches the network.
Memory is bounded by the limits in `diff`, `history` and `tree`; what is cut is said in the value.
Every failure is a `GitError` with one line that says what to do.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from graft.changes import Snapshot
from graft.git import diff, history, places, ranges, tree
from graft.git.places import hooks_directory
from graft.git.process import Git, GitError, Meter
from graft.git.ranges import Range
from graft.git.tree import Entry, File, Kind

__all__ = ["Entry", "File", "GitError", "Kind", "Range", "Repository", "hooks_directory"]

MAX_FILE_BYTES = 1 << 20


class Repository:
    """One repository. `meter` counts git processes and the seconds spent waiting for them."""

    def __init__(self, path: str, git_dir: str) -> None:
        self.path = path
        self.meter = Meter()
        self._git = Git(git_dir, meter=self.meter)

    @classmethod
    def open(cls, path: str | os.PathLike[str] = ".") -> Repository:
        """The repository that holds this directory (a clone, a linked worktree or a bare repository).

        Raises `GitError`: `not_a_repository`, or `not_trusted` where it is another user's.
        """
        where = os.fspath(path)
        return cls(where, places.git_directory(where))

    def resolve(self, text: str) -> Range:
        """The commits that `BASE..HEAD` or `BASE...HEAD` names; both mean what a pull request shows.

        BASE may also be a tree (the empty tree compares with nothing). Raises `GitError`: `bad_range`,
        `unknown_revision`, `not_a_commit`, `no_merge_base`.
        """
        return ranges.resolve(self._git, text)

    def commit(self, revision: str) -> str:
        """The SHA of the commit that a branch, tag, or other name stands for. Raises `GitError`."""
        return ranges.commit(self._git, revision)

    def snapshot(self, range_: Range) -> Snapshot:
        """The files between merge base and head, and the commits that head has and base has not."""
        with self._git.stream(*diff.ARGUMENTS, range_.merge_base, range_.head) as output:
            files, incomplete = diff.read(output.read)
        since = [f"^{range_.base}"] if range_.base_is_commit else []
        with self._git.stream(*history.ARGUMENTS, range_.head, *since, "--") as output:
            log = output.read_up_to(history.MAX_MESSAGES_BYTES)
        commits, truncated = history.parse(log, whole=output.finished)
        # A shallow clone hides parents: a commit without any may have ancestors that belong to the range.
        hidden = range_.shallow and any(not c.parents for c in commits)
        return Snapshot(
            base_sha=range_.merge_base,
            head_sha=range_.head,
            files=files,
            commits=commits,
            incomplete=incomplete,
            commits_truncated=truncated or hidden,
        )

    def first_parents(self, revision: str, *, most: int) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """(SHA, parents) of the newest `most` commits on the first-parent line of `revision`, the newest first.

        In a shallow clone the last one has no parents. Raises `GitError`: `unknown_revision`, `not_a_commit`.
        """
        arguments = (*history.FIRST_PARENT_ARGUMENTS, f"--max-count={most}", self.commit(revision), "--")
        data, _ = self._git.read(*arguments, limit=history.MAX_LINE_BYTES)
        return history.parse_line(data)

    def entries(self, commit: str, paths: Iterable[str]) -> dict[str, Entry]:
        """What stands at each path at a commit (or tree), `Kind.MISSING` included."""
        return tree.entries(self._git, commit, list(paths))

    def listing(self, commit: str, directory: str = "", *, recursive: bool = False) -> tuple[Entry, ...]:
        """What a directory holds at a commit; empty where there is none. See `tree.listing`."""
        return tree.listing(self._git, commit, directory, recursive=recursive)

    def file(self, commit: str, path: str, *, limit: int = MAX_FILE_BYTES) -> File:
        """One file at a commit, or why there is no content."""
        return self.files(commit, [path], limit=limit)[path]

    def files(self, commit: str, paths: Sequence[str], *, limit: int = MAX_FILE_BYTES) -> dict[str, File]:
        """Several files at a commit, none larger than `limit` bytes."""
        return tree.files(self._git, commit, paths, limit=limit)
