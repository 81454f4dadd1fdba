"""Pull requests and what hangs on them, as typed values.

A payload is only a trigger; what Graft acts on is read here. Unknown fields are ignored and unknown words kept
as they are. Title and body are text from outside: they live in memory only.
"""

from __future__ import annotations

import datetime

import msgspec

from graft.changes import Person

from .api import Listing, repository
from .client import Installation
from .people import Account

_PULL = "repos/{owner}/{repo}/pulls/{number}"
_PULLS = "repos/{owner}/{repo}/pulls"


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What the pull request says of its own size."""

    additions: int
    deletions: int
    changed_files: int


class Pull(msgspec.Struct, frozen=True, kw_only=True):
    """A pull request as the API shows it now. `repository_id` is the base repository's; `head_repository_id` is
    `None` when the fork is gone. `base_sha` is not here on purpose: it is stale by nature, read the branch."""

    id: int
    number: int
    repository_id: int
    repository_full_name: str
    state: str
    draft: bool
    merged: bool
    title: str
    body: str
    head_sha: str
    head_ref: str
    head_repository_id: int | None
    base_ref: str
    labels: tuple[str, ...]
    author: Person | None
    counts: Counts
    created_at: datetime.datetime
    updated_at: datetime.datetime
    closed_at: datetime.datetime | None
    merged_at: datetime.datetime | None
    merge_commit_sha: str | None
    merged_by: Account | None = None

    @property
    def is_open(self) -> bool:
        return self.state == "open"

    @property
    def is_fork(self) -> bool:
        return self.head_repository_id != self.repository_id


class OpenPull(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the list of open pull requests."""

    id: int
    number: int
    head_sha: str
    base_ref: str
    draft: bool
    updated_at: datetime.datetime


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """A submitted review; `state` is GitHub's word (`APPROVED`, `CHANGES_REQUESTED`, `COMMENTED`, `DISMISSED`)."""

    id: int
    state: str
    user: Account | None = None
    submitted_at: datetime.datetime | None = None
    commit_id: str | None = None


class Team(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    slug: str


class RequestedReviewers(msgspec.Struct, frozen=True, kw_only=True):
    """Who was asked for a review and has not given one."""

    users: tuple[Account, ...] = ()
    teams: tuple[Team, ...] = ()


class _Repository(msgspec.Struct, frozen=True):
    id: int
    full_name: str


class _Side(msgspec.Struct, frozen=True):
    sha: str
    ref: str
    repo: _Repository | None = None


class _Base(msgspec.Struct, frozen=True):
    ref: str
    repo: _Repository


class _Label(msgspec.Struct, frozen=True):
    name: str = ""


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    number: int
    state: str
    head: _Side
    base: _Base
    updated_at: datetime.datetime
    draft: bool = False


class _Document(_Row, frozen=True, kw_only=True):
    title: str
    additions: int
    deletions: int
    changed_files: int
    created_at: datetime.datetime
    body: str | None = None
    merged: bool = False
    user: Account | None = None
    labels: tuple[_Label, ...] = ()
    closed_at: datetime.datetime | None = None
    merged_at: datetime.datetime | None = None
    merge_commit_sha: str | None = None
    merged_by: Account | None = None


async def read_pull(installation: Installation, full_name: str, number: int) -> Pull:
    """The pull request now. Raises `NotFound`, which right after `opened` may mean “not yet”."""
    document = await installation.get(_PULL, _Document, number=number, **repository(full_name))
    head_repository = document.head.repo
    return Pull(
        id=document.id,
        number=document.number,
        repository_id=document.base.repo.id,
        repository_full_name=document.base.repo.full_name,
        state=document.state,
        draft=document.draft,
        merged=document.merged,
        title=document.title,
        body=document.body or "",
        head_sha=document.head.sha,
        head_ref=document.head.ref,
        head_repository_id=None if head_repository is None else head_repository.id,
        base_ref=document.base.ref,
        labels=tuple(label.name for label in document.labels),
        author=None if document.user is None else document.user.person(),
        counts=Counts(
            additions=document.additions,
            deletions=document.deletions,
            changed_files=document.changed_files,
        ),
        created_at=document.created_at,
        updated_at=document.updated_at,
        closed_at=document.closed_at,
        merged_at=document.merged_at,
        merge_commit_sha=document.merge_commit_sha,
        merged_by=document.merged_by,
    )


async def list_open_pulls(
    installation: Installation, full_name: str, *, base: str | None = None, limit: int = 1_000
) -> Listing[OpenPull]:
    """Open pull requests, the most recently updated first; `base` names a branch."""
    rows = await installation.get_all(
        _PULLS,
        _Row,
        limit=limit,
        state="open",
        sort="updated",
        direction="desc",
        base=base,
        **repository(full_name),
    )
    pulls: Listing[OpenPull] = Listing(
        OpenPull(
            id=row.id,
            number=row.number,
            head_sha=row.head.sha,
            base_ref=row.base.ref,
            draft=row.draft,
            updated_at=row.updated_at,
        )
        for row in rows
    )
    pulls.complete = rows.complete
    return pulls


async def list_reviews(installation: Installation, full_name: str, number: int) -> Listing[Review]:
    """The reviews of a pull request, oldest first."""
    return await installation.get_all(f"{_PULL}/reviews", Review, number=number, **repository(full_name))


async def read_requested_reviewers(
    installation: Installation, full_name: str, number: int
) -> RequestedReviewers:
    return await installation.get(
        f"{_PULL}/requested_reviewers", RequestedReviewers, number=number, **repository(full_name)
    )
