"""What the simulated GitHub knows: accounts, repositories, pull requests and everything hung on them.

Plain mutable records without behaviour beyond looking each other up; the routes and the scenario actions change
them, `payloads` turns them into GitHub's JSON. Times are kept as GitHub shows them: whole seconds, UTC.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from graft.simulator.repository_git import GitRepository

DEFAULT_PERMISSIONS = {
    "metadata": "read",
    "contents": "read",
    "pull_requests": "write",
    "checks": "write",
    "issues": "read",
}
DEFAULT_EVENTS = [
    "check_run",
    "check_suite",
    "issues",
    "pull_request",
    "pull_request_review",
    "push",
    "repository",
]


@dataclass(kw_only=True, eq=False)
class User:
    """A person, a bot or an organization."""

    id: int
    login: str
    type: str = "User"


@dataclass(kw_only=True, eq=False)
class AppRecord:
    """The one App that this GitHub has."""

    id: int
    slug: str
    name: str
    owner: User
    client_id: str
    webhook_secret: str
    webhook_url: str | None
    created_at: datetime
    permissions: dict[str, str] = field(default_factory=lambda: dict(DEFAULT_PERMISSIONS))
    events: list[str] = field(default_factory=lambda: list(DEFAULT_EVENTS))

    @property
    def bot_login(self) -> str:
        return f"{self.slug}[bot]"


@dataclass(kw_only=True, eq=False)
class Installation:
    """The App on one account. `selection` is `all` or `selected`; `deleted` ones answer 404."""

    id: int
    account: User
    created_at: datetime
    permissions: dict[str, str]
    selection: str = "selected"
    suspended_at: datetime | None = None
    suspended_by: User | None = None
    deleted: bool = False
    hourly_limit: int = 5000
    used: int = 0
    reset_at: float = 0.0


@dataclass(kw_only=True, eq=False)
class Label:
    id: int
    name: str
    color: str = "ededed"
    description: str | None = None


@dataclass(kw_only=True, eq=False)
class Reaction:
    id: int
    user: User
    content: str
    created_at: datetime


@dataclass(kw_only=True, eq=False)
class Comment:
    """A comment on an issue or pull request. `via_app` says whether the App wrote it."""

    id: int
    issue: Issue
    user: User
    body: str
    created_at: datetime
    updated_at: datetime
    via_app: bool
    reactions: list[Reaction] = field(default_factory=list)


@dataclass(kw_only=True, eq=False)
class Issue:
    """An issue, or the issue side of a pull request: number, text, labels and comments live here for both."""

    id: int
    number: int
    repository: Repository
    user: User
    title: str
    body: str | None
    created_at: datetime
    updated_at: datetime
    state: str = "open"
    locked: bool = False
    closed_at: datetime | None = None
    labels: list[Label] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    pull: Pull | None = None


@dataclass(kw_only=True, eq=False)
class Review:
    id: int
    user: User
    state: str
    body: str
    commit_id: str
    submitted_at: datetime


@dataclass(kw_only=True, eq=False)
class Pull:
    """What a pull request has beyond its issue. `head_repository` is `None` once a fork was deleted.

    `base_sha` is what GitHub shows: the tip of the base branch when the pull request was last pushed to or
    retargeted, not the tip of now.
    """

    id: int
    issue: Issue
    base_ref: str
    base_sha: str
    head_ref: str
    head_sha: str
    head_repository: Repository | None
    draft: bool = False
    merged_at: datetime | None = None
    merged_by: User | None = None
    merge_sha: str | None = None
    reviews: list[Review] = field(default_factory=list)
    requested_reviewers: list[User] = field(default_factory=list)
    previous_head_sha: str | None = None
    drafted: list[tuple[datetime, bool]] = field(default_factory=list)

    @property
    def repository(self) -> Repository:
        return self.issue.repository

    @property
    def number(self) -> int:
        return self.issue.number

    @property
    def is_fork(self) -> bool:
        return self.head_repository is not self.repository


@dataclass(kw_only=True, eq=False)
class CheckSuite:
    """All runs of the App on one commit of one repository. A fork's push has no branch here."""

    id: int
    repository: Repository
    head_sha: str
    head_branch: str | None
    created_at: datetime
    updated_at: datetime
    before: str | None = None
    requeued: bool = False
    runs: list[CheckRun] = field(default_factory=list)


@dataclass(kw_only=True, eq=False)
class CheckRun:
    id: int
    suite: CheckSuite
    name: str
    status: str
    conclusion: str | None
    external_id: str
    details_url: str | None
    started_at: datetime | None
    completed_at: datetime | None
    output: dict[str, Any] = field(default_factory=dict)
    annotations: int = 0
    actions: list[dict[str, str]] = field(default_factory=list)


@dataclass(kw_only=True, eq=False)
class Repository:
    """A repository. `branches` are the simulated tips: they start as git's own and only move here, so that
    the git repository underneath is never written to. `pulls_at` finds pull requests into here by head."""

    id: int
    owner: User
    name: str
    git: GitRepository
    default_branch: str
    created_at: datetime
    updated_at: datetime
    pushed_at: datetime
    branches: dict[str, str] = field(default_factory=dict)
    installation: Installation | None = None
    fork_of: Repository | None = None
    private: bool = False
    archived: bool = False
    deleted: bool = False
    open_issues: int = 0
    issues: dict[int, Issue] = field(default_factory=dict)
    pulls_at: dict[str, list[Pull]] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    permissions: dict[str, str] = field(default_factory=dict)
    suites: dict[str, CheckSuite] = field(default_factory=dict)
    runs: dict[int, CheckRun] = field(default_factory=dict)
    shown: tuple[object, dict[str, Any]] | None = None  # its JSON, remembered by `payloads`

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"

    @property
    def pulls(self) -> Iterator[Pull]:
        return (issue.pull for issue in self.issues.values() if issue.pull is not None)

    def runs_at(self, sha: str) -> list[CheckRun]:
        """The runs on one commit, newest first."""
        suite = self.suites.get(sha)
        return [] if suite is None else suite.runs[::-1]

    def add_issue(self, issue: Issue) -> None:
        """Take in an open issue or pull request."""
        self.issues[issue.number] = issue
        self.open_issues += 1
        if issue.pull is not None:
            self.pulls_at.setdefault(issue.pull.head_sha, []).append(issue.pull)

    def move_head(self, pull: Pull, sha: str) -> None:
        """Give a pull request another head."""
        self.pulls_at[pull.head_sha].remove(pull)
        pull.previous_head_sha, pull.head_sha = pull.head_sha, sha
        self.pulls_at.setdefault(sha, []).append(pull)

    def next_number(self) -> int:
        """Numbers are given in order and never again; issues and pull requests share them."""
        return next(reversed(self.issues), 0) + 1


class World:
    """Everything, with the indexes to find it, the clock, and one counter for all ids.

    `emails` says whose commits those of an address are; `pulls_from` finds pull requests by the repository id
    and the branch they come from.
    """

    def __init__(self, *, now: Callable[[], float] = time.time, first_id: int = 1001) -> None:
        self.now = now
        self._ids = itertools.count(first_id)
        self.users: dict[str, User] = {}
        self.installations: dict[int, Installation] = {}
        self.repositories: dict[int, Repository] = {}
        self.comments: dict[int, Comment] = {}
        self.names: dict[str, Repository] = {}
        self.emails: dict[str, User] = {}
        self.pulls_from: dict[tuple[int, str], list[Pull]] = {}

    def next_id(self) -> int:
        return next(self._ids)

    def time(self) -> datetime:
        """Now, in the whole seconds that GitHub shows."""
        return datetime.fromtimestamp(int(self.now()), UTC)

    def user(self, login: str, *, type: str | None = None, id: int | None = None) -> User:
        """The account of this login, made up when it is new. Case does not tell logins apart.

        A bot's login ends in `[bot]`, apart from Copilot's.
        """
        found = self.users.get(login.lower())
        if found is None:
            kind = type or ("Bot" if login.endswith("[bot]") or login == "Copilot" else "User")
            found = User(id=id if id is not None else self.next_id(), login=login, type=kind)
            self.users[login.lower()] = found
        return found

    def user_of_email(self, email: str) -> User | None:
        """Whose commits these are: a noreply address names its account, any other has to be known."""
        local, _, domain = email.partition("@")
        if domain == "users.noreply.github.com":
            number, plus, login = local.partition("+")
            if plus and number.isdigit() and login:
                return self.user(login, id=int(number))
            return self.users.get(local.lower())
        return self.emails.get(email)

    def add_name(self, repository: Repository) -> None:
        """Let the repository be found under its present name; names it had before go on leading to it."""
        self.names[repository.full_name.lower()] = repository

    def repository_named(self, owner: str, name: str) -> Repository | None:
        """The living repository of this name or former name, in any case."""
        found = self.names.get(f"{owner}/{name}".lower())
        return None if found is None or found.deleted else found

    def repositories_of(self, installation: Installation) -> list[Repository]:
        return [r for r in self.repositories.values() if r.installation is installation and not r.deleted]
