"""The parts of GitHub's webhook payloads that Graft reads: strictly typed, bounded, and nothing else.

A field that is not named here is skipped while decoding and never becomes a Python value. Shapes follow the
payload examples and schemas of GitHub's webhook documentation.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

Id = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Number = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Sha = Annotated[str, Meta(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?\Z")]
FullName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}\Z")]
Login = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,100}(\[bot\])?\Z")]
RefName = Annotated[str, Meta(min_length=1, max_length=1024)]
Word = Annotated[str, Meta(pattern=r"^[a-z_]{1,50}\Z")]
Time = Annotated[datetime, Meta(tz=True)]


class Installation(Struct):
    id: Id


class Repository(Struct):
    id: Id
    full_name: FullName


class Sender(Struct):
    id: Id
    login: Login
    type: Annotated[str, Meta(max_length=50)] = "User"


class Head(Struct):
    sha: Sha


class Base(Struct):
    ref: RefName


class Label(Struct):
    name: Annotated[str, Meta(max_length=300)]


class Pull(Struct):
    number: Number
    head: Head
    base: Base
    updated_at: Time


class Edits(Struct):
    title: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    body: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    base: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class App(Struct):
    id: Id


class NumberOnly(Struct):
    number: Number


class CheckRun(Struct):
    id: Id
    head_sha: Sha
    name: Annotated[str, Meta(max_length=1024)]
    app: App | None
    pull_requests: list[NumberOnly] = []


class CheckSuite(Struct):
    head_sha: Sha
    app: App | None
    pull_requests: list[NumberOnly] = []


class Button(Struct):
    identifier: Annotated[str, Meta(max_length=20)]


class Issue(Struct):
    number: Number
    updated_at: Time
    labels: list[Label] = []


class Review(Struct):
    submitted_at: Time | None = None


class ReviewedPull(Struct):
    number: Number
    head: Head
    base: Base


class Payload(Struct):
    """What every payload of an App has, and every other field not."""

    installation: Installation
    sender: Sender


class PullRequestEvent(Payload):
    action: Word
    number: Number
    repository: Repository
    pull_request: Pull
    changes: Edits = msgspec.field(default_factory=Edits)
    label: Label | None = None


class ReviewEvent(Payload):
    action: Word
    repository: Repository
    pull_request: ReviewedPull
    review: Review


class CheckRunEvent(Payload):
    action: Word
    repository: Repository
    check_run: CheckRun
    requested_action: Button | None = None


class CheckSuiteEvent(Payload):
    action: Word
    repository: Repository
    check_suite: CheckSuite


class PushEvent(Payload):
    ref: RefName
    before: Sha
    after: Sha
    repository: Repository
    deleted: bool = False


class IssuesEvent(Payload):
    action: Word
    repository: Repository
    issue: Issue
    label: Label | None = None


class RepositoryEvent(Payload):
    action: Word
    repository: Repository


class InstallationEvent(Payload):
    action: Word


class ActionOnly(Struct):
    action: str | None = None
