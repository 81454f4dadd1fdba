"""The difference of two commits as the rows of GitHub's file lists, and as one unified diff.

Renames are found as git finds them at 50 %, copies are not, as on GitHub. A change of a file's type is
`changed` and comes without a patch; a change of its mode alone is `modified` with nothing added or removed.
"""

from __future__ import annotations

from dataclasses import dataclass

from graft.simulator.memo import Memo
from graft.simulator.repository_git import GitRepository

# GitHub's limits: github/docs, repository-limits.
MAX_PATCH_LINES = 20_000
MAX_PATCH_BYTES = 500_000
MAX_DIFF_LINES = 20_000
MAX_DIFF_BYTES = 1_000_000
MAX_DIFF_FILES = 300

_STATUS = {"A": "added", "D": "removed", "M": "modified", "R": "renamed", "C": "copied", "T": "changed"}
_DIFF = ("diff-tree", "-r", "-M50%", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index")


@dataclass(frozen=True, kw_only=True)
class FileRow:
    """One changed file. `patch` starts at the first `@@`; `None` where GitHub shows none."""

    path: str
    previous_path: str | None
    status: str
    sha: str
    additions: int
    deletions: int
    patch: str | None

    @property
    def lines(self) -> int:
        return 0 if self.patch is None else self.patch.count("\n") + 1


class Comparisons:
    """Differences of one repository, remembered per pair of commits."""

    def __init__(self, git: GitRepository) -> None:
        self._git = git
        self._rows: Memo[tuple[FileRow, ...]] = Memo(256)
        self._diffs: Memo[bytes] = Memo(64)

    async def rows(self, base: str, head: str) -> tuple[FileRow, ...]:
        """The files between two commits or trees, in git's order."""
        return await self._rows.get((base, head), lambda: self._read_rows(base, head))

    async def diff(self, base: str, head: str) -> bytes:
        """The unified diff between two commits."""

        async def read() -> bytes:
            return await self._git.run(*_DIFF[:-1], "-p", base, head)

        return await self._diffs.get((base, head), read)

    async def _read_rows(self, base: str, head: str) -> tuple[FileRow, ...]:
        listing = await self._git.run(*_DIFF, "-z", "--raw", "--numstat", base, head)
        sections = iter(_sections(await self._git.run(*_DIFF, "-p", base, head)))
        rows = []
        for raw, counts in _listed(listing):
            section = next(sections, b"")
            if raw.status == "changed" and raw.retyped:
                next(sections, b"")
                section = b""
            rows.append(
                FileRow(
                    path=raw.path,
                    previous_path=raw.previous_path,
                    status=raw.status,
                    sha=raw.sha,
                    additions=counts[0],
                    deletions=counts[1],
                    patch=_patch(section),
                )
            )
        return tuple(rows)


def too_large(diff: bytes, files: int) -> str | None:
    """GitHub's sentence for a diff that it refuses to send, or `None`."""
    if files > MAX_DIFF_FILES:
        return (
            f"Sorry, the diff exceeded the maximum number of files ({MAX_DIFF_FILES}). Consider using "
            "'List pull requests files' API or locally cloning the repository instead."
        )
    if diff.count(b"\n") > MAX_DIFF_LINES or len(diff) > MAX_DIFF_BYTES:
        return f"Sorry, the diff exceeded the maximum number of lines ({MAX_DIFF_LINES})"
    return None


@dataclass(frozen=True, kw_only=True)
class _Raw:
    path: str
    previous_path: str | None
    status: str
    sha: str
    retyped: bool


def _listed(listing: bytes) -> list[tuple[_Raw, tuple[int, int]]]:
    """Take apart `--raw --numstat -z`: first all raw rows, then all counts, both in the same order."""
    fields = iter(listing.split(b"\0")[:-1])
    raws: list[_Raw] = []
    counts: list[tuple[int, int]] = []
    for field in fields:
        if field.startswith(b":"):
            old_mode, new_mode, old_sha, new_sha, status = field[1:].decode().split(" ")
            first = next(fields).decode("utf-8", "replace")
            moved = status[0] in "RC"
            path = next(fields).decode("utf-8", "replace") if moved else first
            raws.append(
                _Raw(
                    path=path,
                    previous_path=first if moved else None,
                    status=_STATUS.get(status[0], "changed"),
                    sha=old_sha if status[0] == "D" else new_sha,
                    retyped=old_mode[:3] != new_mode[:3],
                )
            )
        else:
            added, deleted, path_bytes = field.split(b"\t", 2)
            if not path_bytes:  # a rename gives its two paths in fields of their own
                next(fields)
                next(fields)
            counts.append((int(added) if added.isdigit() else 0, int(deleted) if deleted.isdigit() else 0))
    return list(zip(raws, counts, strict=True))


def _sections(diff: bytes) -> list[bytes]:
    """One piece per `diff --git`. No line of content can start with that: each has its sign first."""
    pieces = (b"\n" + diff).split(b"\ndiff --git ")
    return pieces[1:]


def _patch(section: bytes) -> str | None:
    start = section.find(b"\n@@ ")
    if start < 0:
        return None
    patch = section[start + 1 :].removesuffix(b"\n")
    if len(patch) > MAX_PATCH_BYTES or patch.count(b"\n") >= MAX_PATCH_LINES:
        return None
    return patch.decode("utf-8", "replace")
