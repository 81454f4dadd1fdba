"""What webhooks carry. `Envelope` adds the members that nearly all events share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graft.simulator.payloads.accounts import Json, Urls, installation, node_id, user
from graft.simulator.payloads.commits import pushed_commit
from graft.simulator.payloads.repositories import pushed_repository, repository, short_repository, web_url
from graft.simulator.repository_git import CommitObject
from graft.simulator.state import AppRecord, Installation, Repository, User

NO_COMMIT = "0" * 40


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """Who did something where."""

    sender: User
    urls: Urls
    repository: Repository | None = None
    installation: Installation | None = None

    def wrap(self, action: str | None, **members: Any) -> Json:
        """An event's payload in GitHub's usual order: action, subject, repository, organization, sender."""
        payload: Json = {} if action is None else {"action": action}
        payload.update(members)
        if self.repository is not None:
            payload.setdefault("repository", repository(self.repository, self.urls))
            if self.repository.owner.type == "Organization":
                payload["organization"] = _organization(self.repository.owner, self.urls)
        payload["sender"] = user(self.sender, self.urls)
        if self.installation is not None:
            payload.setdefault(
                "installation",
                {"id": self.installation.id, "node_id": node_id("MDI", self.installation.id)},
            )
        return payload


def _organization(account: User, urls: Urls) -> Json:
    api = f"{urls.api}/orgs/{account.login}"
    return {
        "login": account.login,
        "id": account.id,
        "node_id": node_id("O", account.id),
        "url": api,
        "repos_url": f"{api}/repos",
        "events_url": f"{api}/events",
        "hooks_url": f"{api}/hooks",
        "issues_url": f"{api}/issues",
        "members_url": f"{api}/members{{/member}}",
        "public_members_url": f"{api}/public_members{{/member}}",
        "avatar_url": f"{urls.web}/avatars/{account.id}",
        "description": None,
    }


def push(
    envelope: Envelope,
    branch: str,
    before: str | None,
    after: str | None,
    commits: list[CommitObject],
    forced: bool,
) -> Json:
    """A branch moved, appeared (`before` is `None`) or went away (`after` is `None`)."""
    into = envelope.repository
    if into is None:
        raise ValueError("a push happens in a repository")
    listed = [pushed_commit(each, into, envelope.urls) for each in commits[-20:]]
    web = web_url(into, envelope.urls)
    return envelope.wrap(
        None,
        ref=f"refs/heads/{branch}",
        before=before or NO_COMMIT,
        after=after or NO_COMMIT,
        repository=pushed_repository(into, envelope.urls),
        pusher={"name": envelope.sender.login, "email": None},
        created=before is None,
        deleted=after is None,
        forced=forced,
        base_ref=None,
        compare=f"{web}/compare/{(before or NO_COMMIT)[:12]}...{(after or NO_COMMIT)[:12]}",
        commits=listed,
        head_commit=listed[-1] if listed else None,
    )


def installation_event(
    envelope: Envelope, action: str, of: Installation, app: AppRecord, repositories: list[Repository]
) -> Json:
    return envelope.wrap(
        action,
        installation=installation(of, app, envelope.urls),
        repositories=[short_repository(each) for each in repositories],
        requester=None,
    )


def installation_repositories_event(
    envelope: Envelope,
    of: Installation,
    app: AppRecord,
    *,
    added: list[Repository],
    removed: list[Repository],
) -> Json:
    return envelope.wrap(
        "added" if added else "removed",
        installation=installation(of, app, envelope.urls),
        repository_selection=of.selection,
        repositories_added=[short_repository(each) for each in added],
        repositories_removed=[short_repository(each) for each in removed],
        requester=None,
    )
