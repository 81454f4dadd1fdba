"""Finding, writing and tidying the managed comment through the API.

Ours is a comment whose first line is the marker and that GitHub says was made by this App; a person who pastes
the marker is never adopted. The stored id wins while it exists and is ours, else the first of ours, else a new
comment is made. Where an old crash left two, the lowest id stays and the rest are reported for deletion.
`.comment_body` decides what the text is; the caller holds the publish lease.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping

import msgspec

from . import comment_body
from .api import repository
from .client import Installation
from .errors import GitHubRefused
from .people import Account

_LIST = "repos/{owner}/{repo}/issues/{number}/comments"
_ONE = "repos/{owner}/{repo}/issues/comments/{comment_id}"
_MAX_COMMENTS = 3_000

Guard = Callable[[], None]
"""Called before each request; raises when no further one may be begun (the lease is running out)."""


class _App(msgspec.Struct, frozen=True):
    id: int


class Comment(msgspec.Struct, frozen=True, kw_only=True):
    """A comment of an issue or pull request, as the API returns it."""

    id: int
    created_at: datetime.datetime
    updated_at: datetime.datetime
    issue_url: str = ""
    body: str | None = None
    user: Account | None = None
    performed_via_github_app: _App | None = None


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Our comment, if there is one, and later ones of ours that should not be there."""

    comment: Comment | None
    duplicates: tuple[int, ...] = ()


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """The managed comment after an `upsert`; `written` is false when nothing had changed."""

    comment: Comment
    written: bool
    duplicates: tuple[int, ...] = ()

    @property
    def id(self) -> int:
        return self.comment.id

    @property
    def updated_at(self) -> datetime.datetime:
        """By GitHub's clock."""
        return self.comment.updated_at


class Author(msgspec.Struct, frozen=True, kw_only=True):
    """Who we are: the App's id and, as a fallback for answers without `performed_via_github_app`, its slug."""

    app_id: int
    slug: str | None = None


def is_ours(comment: Comment, author: Author) -> bool:
    """Whether this App wrote the comment as its managed one. Where GitHub names an App, its word is final."""
    if not comment_body.has_marker(comment.body or ""):
        return False
    if comment.performed_via_github_app is not None:
        return comment.performed_via_github_app.id == author.app_id
    user = comment.user
    return (
        author.slug is not None
        and user is not None
        and user.type == "Bot"
        and user.login.lower() == f"{author.slug.lower()}[bot]"
    )


def choose(comments: Iterable[Comment], author: Author) -> Found:
    """Of the comments of one pull request: the first that is ours, the others of ours as duplicates."""
    ours = sorted((c for c in comments if is_ours(c, author)), key=lambda c: c.id)
    return Found(comment=ours[0] if ours else None, duplicates=tuple(c.id for c in ours[1:]))


async def find(
    installation: Installation,
    full_name: str,
    number: int,
    author: Author,
    *,
    stored_id: int | None = None,
    thorough: bool = False,
    guard: Guard = lambda: None,
) -> Found:
    """Our comment on a pull request. `thorough` looks for duplicates even when the stored one is fine: due
    after a create whose outcome was unknown, when the list has had time to catch up. The stored one is found in any
    case, also where the list lags and does not show it yet."""
    if stored_id is not None and not thorough:
        comment = await _stored(installation, full_name, number, author, stored_id, guard)
        if comment is not None:
            return Found(comment=comment)
    guard()
    comments: list[Comment] = []
    async for page in installation.pages(_LIST, list[Comment], number=number, **repository(full_name)):
        comments += page
        if len(comments) >= _MAX_COMMENTS:
            break
        guard()
    if thorough and stored_id is not None and all(comment.id != stored_id for comment in comments):
        comment = await _stored(installation, full_name, number, author, stored_id, guard)
        comments += [] if comment is None else [comment]
    return choose(comments, author)


async def _stored(
    installation: Installation, full_name: str, number: int, author: Author, comment_id: int, guard: Guard
) -> Comment | None:
    """The comment of that id, if it is there, of this pull request and ours."""
    guard()
    comment = await _read(installation, full_name, comment_id)
    if comment is None or not comment.issue_url.endswith(f"/issues/{number}") or not is_ours(comment, author):
        return None
    return comment


async def upsert(
    installation: Installation,
    full_name: str,
    number: int,
    author: Author,
    *,
    sections: Mapping[str, str | None],
    footer: str,
    stored_id: int | None = None,
    thorough: bool = False,
    last: Comment | None = None,
    guard: Guard = lambda: None,
) -> Written | None:
    """Bring the managed comment to hold these sections: read, compose, then create, update or leave it.

    `last` is the comment as the caller left it a moment ago, which is not read again. `None` when there is no comment
    and no section to show. Raises `AmbiguousWrite` when the outcome of a create
    or update is unknown: look again, `thorough`, before the next write.
    """
    if last is not None:
        found = Found(comment=last)
    else:
        found = await find(
            installation, full_name, number, author, stored_id=stored_id, thorough=thorough, guard=guard
        )
    old = found.comment
    body = comment_body.compose(old.body if old else None, sections, footer=footer)
    if old is not None:
        if _same(old.body or "", body):
            return Written(comment=old, written=False, duplicates=found.duplicates)
        guard()
        try:
            new = await installation.patch(
                _ONE, {"body": body}, Comment, comment_id=old.id, **repository(full_name)
            )
            return Written(comment=new, written=True, duplicates=found.duplicates)
        except GitHubRefused as error:
            if error.reason not in ("not_found", "gone"):
                raise
        body = comment_body.compose(old.body, sections, footer=footer)
    elif not any(sections.values()):
        return None
    guard()
    new = await installation.post(_LIST, {"body": body}, Comment, number=number, **repository(full_name))
    return Written(comment=new, written=True, duplicates=found.duplicates)


async def delete_duplicates(
    installation: Installation,
    full_name: str,
    ids: Iterable[int],
    *,
    guard: Guard = lambda: None,
) -> None:
    """Delete later comments of ours; one that is gone already is fine."""
    for comment_id in ids:
        guard()
        try:
            await installation.delete(_ONE, comment_id=comment_id, **repository(full_name))
        except GitHubRefused as error:
            if error.reason not in ("not_found", "gone"):
                raise


async def _read(installation: Installation, full_name: str, comment_id: int) -> Comment | None:
    try:
        return await installation.get(_ONE, Comment, comment_id=comment_id, **repository(full_name))
    except GitHubRefused as error:
        if error.reason in ("not_found", "gone"):
            return None
        raise


def _same(old: str, new: str) -> bool:
    """Equal but for line ends, which GitHub's web editor changes."""
    return old.replace("\r\n", "\n") == new.replace("\r\n", "\n")
