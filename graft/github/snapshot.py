"""The files and commits of one head against one merge base, read so that they are proven to be of that head.

`compare/BASE...HEAD` is addressed by SHA, so what it returns cannot be of another head; it stops at 300 files.
Beyond them only `pulls/N/files` is left, which serves whatever the head is *now*: there every row must name the
head in its `contents_url`, and a row of another head drops the snapshot. The diff media type of the same
comparison adds what JSON lacks: modes, which files are binary, patches that were left out.

Where the list cannot be trusted to name everything, that is no error but a reason code in
`Snapshot.incomplete`: `too_many_files`, `count_mismatch`, `zero_rows`, `diff_refused`, `unproven_rows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qs, urlsplit

import msgspec

from graft.changes import ChangedFile, Commit, Person, Snapshot
from graft.diffs import parse_diff

from .api import DIFF, Listing, repository
from .client import Installation
from .errors import GitHubUnavailable, ResponseTooLarge, StaleRead, Unprocessable
from .people import Account
from .pulls import Counts

COMPARE_FILES = 300
LIST_FILES = 3_000
LIST_COMMITS = 250
DIFF_BYTES = 8 * 2**20
_SECONDS = 25.0  # GitHub computes a large comparison for a while; never inside the publish lease

_COMPARE = "repos/{owner}/{repo}/compare/{basehead}"
_FILES = "repos/{owner}/{repo}/pulls/{number}/files"


class FileRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a file list as the API returns it."""

    filename: str
    status: str
    additions: int = 0
    deletions: int = 0
    sha: str | None = None
    patch: str | None = None
    previous_filename: str | None = None
    contents_url: str | None = None


class _Signature(msgspec.Struct, frozen=True):
    name: str | None = None
    email: str | None = None


class _GitCommit(msgspec.Struct, frozen=True):
    message: str
    author: _Signature | None = None
    committer: _Signature | None = None


class _Parent(msgspec.Struct, frozen=True):
    sha: str


class _Commit(msgspec.Struct, frozen=True):
    sha: str
    commit: _GitCommit
    author: Account | None = None
    committer: Account | None = None
    parents: tuple[_Parent, ...] = ()


class _Comparison(msgspec.Struct, frozen=True):
    merge_base_commit: _Parent
    total_commits: int
    commits: tuple[_Commit, ...]
    files: tuple[FileRow, ...] = ()


async def read_snapshot(
    installation: Installation,
    full_name: str,
    *,
    base_sha: str,
    head_sha: str,
    number: int | None = None,
    expected: Counts | None = None,
) -> Snapshot:
    """Read the change from `base_sha` (the base branch's commit now) to `head_sha`.

    `number` allows for more than 300 files, `expected` is what the pull request says of itself. Two requests, up
    to thirty more for a large list. Raises `NotFound` when a commit is not there (any more, or yet), and
    `StaleRead` when GitHub shows another head.
    """
    values = repository(full_name)
    basehead = f"{base_sha}...{head_sha}"
    comparison = await installation.get(
        _COMPARE, _Comparison, seconds=_SECONDS, cached=False, basehead=basehead, **values
    )
    commits = tuple(_commit(row) for row in comparison.commits)
    truncated = len(commits) < comparison.total_commits
    if commits and not truncated and all(commit.sha != head_sha for commit in commits):
        raise StaleRead("the comparison does not hold the head that was asked for")

    reasons: list[str] = []
    rows: Sequence[FileRow] = comparison.files
    if len(rows) >= COMPARE_FILES:
        if number is None:
            reasons.append("too_many_files")
        else:
            rows = await installation.get_all(
                _FILES, FileRow, limit=LIST_FILES, cached=False, number=number, **values
            )
            reasons += _prove(rows, head_sha)
            if len(rows) >= LIST_FILES:
                reasons.append("too_many_files")
    diff = await _read_diff(installation, full_name, basehead)
    if diff is None:
        reasons.append("diff_refused")
    files, odd = combine(rows, diff, expected=expected)
    return Snapshot(
        base_sha=comparison.merge_base_commit.sha,
        head_sha=head_sha,
        files=files,
        commits=commits,
        incomplete=tuple(dict.fromkeys((*reasons, *odd))),
        commits_truncated=truncated,
    )


async def list_files(installation: Installation, full_name: str, number: int) -> Listing[ChangedFile]:
    """The files of a pull request as its own list shows them now, without modes: enough for one that is closed,
    whose comparison with the base branch of today would be empty."""
    rows = await installation.get_all(
        _FILES, FileRow, limit=LIST_FILES, cached=False, number=number, **repository(full_name)
    )
    files: Listing[ChangedFile] = Listing(_file(row, ()) for row in rows)
    files.complete = len(rows) < LIST_FILES
    return files


async def list_commits(installation: Installation, full_name: str, number: int) -> Listing[Commit]:
    """The commits of a pull request, oldest first; GitHub lists 250."""
    rows = await installation.get_all(
        "repos/{owner}/{repo}/pulls/{number}/commits",
        _Commit,
        limit=LIST_COMMITS,
        cached=False,
        number=number,
        **repository(full_name),
    )
    commits: Listing[Commit] = Listing(_commit(row) for row in rows)
    commits.complete = len(rows) < LIST_COMMITS
    return commits


def combine(
    rows: Sequence[FileRow], diff: Sequence[ChangedFile] | None, *, expected: Counts | None
) -> tuple[tuple[ChangedFile, ...], tuple[str, ...]]:
    """The list's rows with what only the diff knows, and the reasons why the list may not be whole."""
    by_path: dict[str, list[ChangedFile]] = {}
    for file in diff or ():
        by_path.setdefault(file.path, []).append(file)
    files = tuple(_file(row, by_path.get(row.filename, ())) for row in rows)
    reasons = []
    if any(_is_zero(file, by_path.get(file.path, ())) for file in files):
        reasons.append("zero_rows")
    listed = Counts(
        additions=sum(file.additions for file in files),
        deletions=sum(file.deletions for file in files),
        changed_files=len(files),
    )
    if (expected is not None and listed != expected) or len(by_path) > len(files):
        reasons.append("count_mismatch")
    return files, tuple(reasons)


def _file(row: FileRow, parsed: Sequence[ChangedFile]) -> ChangedFile:
    """One row; git writes a changed file type as a removed and an added file of the same path."""
    first, last = (parsed[0], parsed[-1]) if parsed else (None, None)
    patch = row.patch
    if patch is None and len(parsed) == 1:
        patch = parsed[0].patch
    return ChangedFile(
        path=row.filename,
        status=row.status,
        previous_path=row.previous_filename,
        additions=row.additions,
        deletions=row.deletions,
        patch=patch,
        binary=any(file.binary for file in parsed),
        old_mode=None if first is None else first.old_mode,
        new_mode=None if last is None else last.new_mode,
        blob_sha=row.sha,
    )


def _is_zero(file: ChangedFile, parsed: Sequence[ChangedFile]) -> bool:
    """A row without counts or patch that the diff does not explain: GitHub leaves out content late in a page."""
    if file.additions or file.deletions:
        return False
    if parsed:
        return any(one.additions or one.deletions for one in parsed)
    return file.status not in ("renamed", "copied", "unchanged")


def _prove(rows: Sequence[FileRow], head_sha: str) -> list[str]:
    """Check that each row is of this head. Rows of removed files are left out: their link may name the base."""
    reasons: list[str] = []
    for row in rows:
        if row.status == "removed":
            continue
        ref = _ref(row.contents_url)
        if ref is None:
            reasons = ["unproven_rows"]
        elif ref != head_sha:
            raise StaleRead("the file list is of another head than the one asked for")
    return reasons


def _ref(contents_url: str | None) -> str | None:
    if contents_url is None:
        return None
    try:
        values = parse_qs(urlsplit(contents_url).query, max_num_fields=20).get("ref")
    except ValueError:
        return None
    return values[0] if values else None


async def _read_diff(
    installation: Installation, full_name: str, basehead: str
) -> tuple[ChangedFile, ...] | None:
    """The comparison as a unified diff, or `None` where GitHub refuses it for its size (406, 422, or 5xx with
    the code `not_available`) or it is larger than Graft reads."""
    try:
        reply = await installation.fetch(
            _COMPARE,
            accept=DIFF,
            seconds=_SECONDS,
            max_bytes=DIFF_BYTES,
            basehead=basehead,
            **repository(full_name),
        )
    except (Unprocessable, ResponseTooLarge):
        return None
    except GitHubUnavailable as error:
        if "not_available" in error.call.codes:
            return None
        raise
    return parse_diff(reply.body.decode("utf-8", "replace"))


def _commit(row: _Commit) -> Commit:
    return Commit(
        sha=row.sha,
        message=row.commit.message,
        author=_person(row.commit.author, row.author),
        committer=_person(row.commit.committer, row.committer),
        parents=tuple(parent.sha for parent in row.parents),
    )


def _person(signature: _Signature | None, account: Account | None) -> Person:
    name = (signature.name if signature else None) or ""
    email = (signature.email if signature else None) or ""
    return (account or Account()).person(name=name, email=email)
