"""Repositories as JSON: the short form inside other answers, the full one, and the one of webhooks."""

from __future__ import annotations

from typing import Any

from graft.simulator.payloads.accounts import Json, Urls, node_id, stamp, user
from graft.simulator.state import Repository

# Members whose address is the repository's own plus a suffix, as in GitHub's documentation.
_LINKS = {
    "archive_url": "/{archive_format}{/ref}",
    "assignees_url": "/assignees{/user}",
    "blobs_url": "/git/blobs{/sha}",
    "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}",
    "comments_url": "/comments{/number}",
    "commits_url": "/commits{/sha}",
    "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}",
    "contributors_url": "/contributors",
    "deployments_url": "/deployments",
    "downloads_url": "/downloads",
    "events_url": "/events",
    "forks_url": "/forks",
    "git_commits_url": "/git/commits{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "hooks_url": "/hooks",
    "issue_comment_url": "/issues/comments{/number}",
    "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}",
    "keys_url": "/keys{/key_id}",
    "labels_url": "/labels{/name}",
    "languages_url": "/languages",
    "merges_url": "/merges",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}",
    "stargazers_url": "/stargazers",
    "statuses_url": "/statuses/{sha}",
    "subscribers_url": "/subscribers",
    "subscription_url": "/subscription",
    "tags_url": "/tags",
    "teams_url": "/teams",
    "trees_url": "/git/trees{/sha}",
}


def api_url(record: Repository, urls: Urls) -> str:
    return f"{urls.api}/repos/{record.full_name}"


def web_url(record: Repository, urls: Urls) -> str:
    return f"{urls.web}/{record.full_name}"


def repository(record: Repository, urls: Urls) -> Json:
    """The form inside pull requests, lists and webhooks. Shared until it changes: do not write to it."""
    key = (
        urls.api,
        record.full_name,
        record.default_branch,
        record.private,
        record.archived,
        record.open_issues,
        record.updated_at,
        record.pushed_at,
    )
    if record.shown is None or record.shown[0] != key:
        record.shown = (key, _repository(record, urls))
    return record.shown[1]


def _repository(record: Repository, urls: Urls) -> Json:
    api, web = api_url(record, urls), web_url(record, urls)
    host = urls.web.partition("://")[2]
    counts: dict[str, Any] = {
        "forks": 0,
        "forks_count": 0,
        "stargazers_count": 0,
        "watchers": 0,
        "watchers_count": 0,
        "open_issues": record.open_issues,
        "open_issues_count": record.open_issues,
        "size": 1,
    }
    return {
        "id": record.id,
        "node_id": node_id("R", record.id),
        "name": record.name,
        "full_name": record.full_name,
        "private": record.private,
        "owner": user(record.owner, urls),
        "html_url": web,
        "description": None,
        "fork": record.fork_of is not None,
        "url": api,
        **{name: api + suffix for name, suffix in _LINKS.items()},
        "created_at": stamp(record.created_at),
        "updated_at": stamp(record.updated_at),
        "pushed_at": stamp(record.pushed_at),
        "git_url": f"git://{host}/{record.full_name}.git",
        "ssh_url": f"git@{host}:{record.full_name}.git",
        "clone_url": f"{web}.git",
        "svn_url": web,
        "mirror_url": None,
        "homepage": None,
        "language": None,
        "has_issues": True,
        "has_projects": True,
        "has_downloads": True,
        "has_wiki": True,
        "has_pages": False,
        "has_discussions": False,
        **counts,
        "archived": record.archived,
        "disabled": False,
        "license": None,
        "allow_forking": True,
        "is_template": False,
        "web_commit_signoff_required": False,
        "topics": [],
        "visibility": "private" if record.private else "public",
        "default_branch": record.default_branch,
    }


def full_repository(record: Repository, urls: Urls) -> Json:
    """What the repository's own address answers."""
    return {
        **repository(record, urls),
        "permissions": {"admin": False, "maintain": False, "push": False, "triage": False, "pull": True},
        "allow_squash_merge": True,
        "allow_merge_commit": True,
        "allow_rebase_merge": True,
        "allow_auto_merge": False,
        "delete_branch_on_merge": False,
        "network_count": 0,
        "subscribers_count": 0,
        **({} if record.fork_of is None else {"parent": repository(record.fork_of, urls)}),
    }


def pushed_repository(record: Repository, urls: Urls) -> Json:
    """The odd form inside `push` events, with times as numbers."""
    return {
        **repository(record, urls),
        "created_at": int(record.created_at.timestamp()),
        "pushed_at": int(record.pushed_at.timestamp()),
        "stargazers": 0,
        "master_branch": record.default_branch,
    }


def short_repository(record: Repository) -> Json:
    """The form inside installation events."""
    return {
        "id": record.id,
        "node_id": node_id("R", record.id),
        "name": record.name,
        "full_name": record.full_name,
        "private": record.private,
    }
