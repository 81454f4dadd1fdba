"""Issues that a pull request refers to, and the reactions on Graft's comment."""

from __future__ import annotations

import datetime

import msgspec

from .api import Listing, repository
from .client import Installation
from .people import Account


class _Label(msgspec.Struct, frozen=True):
    name: str = ""


class _Empty(msgspec.Struct, frozen=True):
    pass


class IssueDocument(msgspec.Struct, frozen=True, kw_only=True):
    """An issue or pull request as the API answers; it becomes an `Issue`."""

    id: int
    number: int
    state: str
    title: str
    body: str | None = None
    user: Account | None = None
    labels: tuple[_Label | str, ...] = ()
    created_at: datetime.datetime
    closed_at: datetime.datetime | None = None
    repository_url: str = ""
    pull_request: _Empty | None = None

    def issue(self) -> Issue:
        return Issue(
            id=self.id,
            number=self.number,
            state=self.state,
            title=self.title,
            body=self.body or "",
            author=self.user,
            labels=tuple(label if isinstance(label, str) else label.name for label in self.labels),
            created_at=self.created_at,
            closed_at=self.closed_at,
            is_pull=self.pull_request is not None,
            repository=self.repository_url.lower().partition("/repos/")[2],
        )


class Issue(msgspec.Struct, frozen=True, kw_only=True):
    """An issue; `is_pull` for a number that is a pull request. Title and body are text from outside. `repository` is
    `owner/name` in small letters where the answer says it."""

    id: int
    number: int
    state: str
    title: str
    body: str
    author: Account | None
    labels: tuple[str, ...]
    created_at: datetime.datetime
    closed_at: datetime.datetime | None
    is_pull: bool
    repository: str = ""


class Reaction(msgspec.Struct, frozen=True, kw_only=True):
    """A reaction; `content` is GitHub's word (`+1`, `-1`, `heart`, …). `user` is `None` for a deleted account."""

    id: int
    content: str
    created_at: datetime.datetime
    user: Account | None = None


async def read_issue(installation: Installation, full_name: str, number: int) -> Issue:
    """An issue or pull request by its number. Raises `NotFound`, and `GitHubRefused` (`gone`) for a deleted one."""
    document = await installation.get(
        "repos/{owner}/{repo}/issues/{number}", IssueDocument, number=number, **repository(full_name)
    )
    return document.issue()


async def list_comment_reactions(
    installation: Installation, full_name: str, comment_id: int
) -> Listing[Reaction]:
    """The reactions on a comment now; one that was taken back is simply not there. Raises `NotFound`."""
    return await installation.get_all(
        "repos/{owner}/{repo}/issues/comments/{comment_id}/reactions",
        Reaction,
        comment_id=comment_id,
        **repository(full_name),
    )
