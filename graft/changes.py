"""What a change consists of, however it was read: from the GitHub API or from a local git repository.

Everything here is data about one pair of commits (a merge base and a head). It lives in memory for the length
of one analysis; patches, messages and descriptions are never stored or logged.
"""

from __future__ import annotations

import msgspec


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """An author or committer. `name` and `email` are git's, unauthenticated; `login`, `id` and `is_bot` are
    GitHub's and absent in a local repository."""

    name: str = ""
    email: str = ""
    login: str | None = None
    id: int | None = None
    is_bot: bool = False


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """One commit of the change, with its whole message (text from outside)."""

    sha: str
    message: str
    author: Person
    committer: Person
    parents: tuple[str, ...] = ()


class ChangedFile(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the file list.

    `status` is GitHub's word (`added`, `removed`, `modified`, `renamed`, `copied`, `changed`, `unchanged`) or
    whatever else was given. `patch` holds the hunks, from the first `@@` on, without file headers, lines split
    by `\\n`; `None` where there is none to show (binary, too large, withheld, pure rename or mode change).
    Modes are git's octal text (`100644`), `None` where not known.
    """

    path: str
    status: str
    previous_path: str | None = None
    additions: int = 0
    deletions: int = 0
    patch: str | None = None
    binary: bool = False
    old_mode: str | None = None
    new_mode: str | None = None
    blob_sha: str | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The path and, for a rename or copy, the one it came from."""
        if self.previous_path is None or self.previous_path == self.path:
            return (self.path,)
        return (self.path, self.previous_path)


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The files and commits of exactly one head against one merge base.

    `incomplete` holds reason codes (`too_many_files`, `count_mismatch`, `diff_refused`, …): when it is not
    empty, the file list cannot be trusted to name everything. `commits_truncated` says the same of commits.
    """

    base_sha: str
    head_sha: str
    files: tuple[ChangedFile, ...]
    commits: tuple[Commit, ...]
    incomplete: tuple[str, ...] = ()
    commits_truncated: bool = False

    @property
    def additions(self) -> int:
        return sum(f.additions for f in self.files)

    @property
    def deletions(self) -> int:
        return sum(f.deletions for f in self.files)

    @property
    def is_empty(self) -> bool:
        """No file changed, and the list is known to be whole."""
        return not self.files and not self.incomplete
