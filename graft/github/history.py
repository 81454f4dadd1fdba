"""The past of a repository: pull requests of a date range, what happened to one, and issues with a label.

Titles and bodies are text from outside: they are read for references and kept nowhere.
"""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator

import msgspec

from .api import Listing, repository
from .client import Installation
from .issues import Issue, IssueDocument

_MOST_EVENTS = 1_000


class PastPull(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the list of pull requests."""

    number: int
    created_at: datetime.datetime


class _Source(msgspec.Struct, frozen=True):
    issue: IssueDocument | None = None


class _Event(msgspec.Struct, frozen=True, kw_only=True):
    event: str = ""
    created_at: datetime.datetime | None = None
    source: _Source | None = None


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened to an issue or pull request; `kind` is GitHub's word. `source` is the issue or pull
    request that mentioned it, for `cross-referenced`."""

    kind: str
    at: datetime.datetime | None
    source: Issue | None


async def pulls_opened(
    installation: Installation, full_name: str, *, since: datetime.datetime, until: datetime.datetime
) -> AsyncIterator[PastPull]:
    """Pull requests opened in a stretch of time, whatever became of them, newest first. `until` is excluded."""
    pages = installation.pages(
        "repos/{owner}/{repo}/pulls",
        list[PastPull],
        cached=False,
        state="all",
        sort="created",
        direction="desc",
        **repository(full_name),
    )
    async for page in pages:
        for pull in page:
            if since <= pull.created_at < until:
                yield pull
        if page and page[-1].created_at < since:
            return


async def timeline(installation: Installation, full_name: str, number: int) -> Listing[Event]:
    """What happened to an issue or pull request, oldest first, at most a thousand events."""
    rows = await installation.get_all(
        "repos/{owner}/{repo}/issues/{number}/timeline",
        _Event,
        limit=_MOST_EVENTS,
        number=number,
        **repository(full_name),
    )
    events: Listing[Event] = Listing(
        Event(
            kind=row.event,
            at=row.created_at,
            source=None if row.source is None or row.source.issue is None else row.source.issue.issue(),
        )
        for row in rows
    )
    events.complete = rows.complete
    return events


async def labelled(
    installation: Installation, full_name: str, label: str, *, limit: int = 1_000
) -> Listing[Issue]:
    """Issues and pull requests, open or closed, with a label, the newest first."""
    rows = await installation.get_all(
        "repos/{owner}/{repo}/issues",
        IssueDocument,
        limit=limit,
        state="all",
        labels=label,
        **repository(full_name),
    )
    found: Listing[Issue] = Listing(row.issue() for row in rows)
    found.complete = rows.complete
    return found
