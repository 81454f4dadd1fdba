"""Reads the commits of a range from one `git log -z` stream, at most as many as GitHub lists for a pull request."""

from __future__ import annotations

from graft.changes import Commit, Person

MAX_COMMITS = 250  # GitHub's limit for a pull request's commits
MAX_MESSAGES_BYTES = 16 << 20  # of all commits together

_FIELDS = ("%H", "%P", "%an", "%ae", "%cn", "%ce", "%B")

# One commit more than the limit tells a full list from a cut one.
ARGUMENTS = (
    "log", "-z", f"--max-count={MAX_COMMITS + 1}", "--format=tformat:" + "%x00".join(_FIELDS),
    "--encoding=UTF-8", "--no-show-signature", "--no-notes", "--no-patch", "--no-color", "--no-decorate",
)  # fmt: skip

# A branch's own line: the merges and commits that landed on it, without what came in through the merges.
FIRST_PARENT_ARGUMENTS = ("rev-list", "--first-parent", "--parents")
MAX_LINE_BYTES = 256 << 20


def parse_line(data: bytes) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Each commit's SHA with its parents, as `rev-list --parents` prints them, the newest first."""
    lines = (line.split() for line in data.decode("ascii", "replace").splitlines())
    return tuple((fields[0], tuple(fields[1:])) for fields in lines if fields)


def parse(data: bytes, *, whole: bool) -> tuple[tuple[Commit, ...], bool]:
    """The commits, oldest first, and whether there are more. `whole` is false for a stream that was cut.

    No field can hold a NUL (git ends a message at the first one), so NULs alone separate fields and commits.
    """
    truncated = not whole
    fields = data.decode("utf-8", "replace").split("\0")
    step = len(_FIELDS)
    commits = [_commit(fields[i * step : (i + 1) * step]) for i in range(len(fields) // step)]
    if len(commits) > MAX_COMMITS:
        commits, truncated = commits[:MAX_COMMITS], True
    return tuple(reversed(commits)), truncated


def _commit(fields: list[str]) -> Commit:
    sha, parents, author, author_email, committer, committer_email, message = fields
    return Commit(
        sha=sha,
        message=message,
        author=Person(name=author, email=author_email),
        committer=Person(name=committer, email=committer_email),
        parents=tuple(parents.split()),
    )
