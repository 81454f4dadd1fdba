"""Issues, pull requests, comments, reactions and reviews as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from graft.simulator.payloads.accounts import Json, Urls, app, node_id, stamp, user
from graft.simulator.payloads.repositories import api_url, repository, web_url
from graft.simulator.state import AppRecord, Comment, Issue, Label, Pull, Reaction, Repository, Review, User

REACTIONS = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")


@dataclass(frozen=True, kw_only=True)
class Size:
    """What a pull request amounts to."""

    commits: int
    additions: int
    deletions: int
    files: int


def label(record: Label, of: Repository, urls: Urls) -> Json:
    return {
        "id": record.id,
        "node_id": node_id("LA", record.id),
        "url": f"{api_url(of, urls)}/labels/{record.name}",
        "name": record.name,
        "color": record.color,
        "default": False,
        "description": record.description,
        "archived_at": None,
        "archived_by": None,
    }


def association(who: User, where: Repository) -> str:
    """How the author stands to the repository."""
    if who is where.owner:
        return "OWNER"
    held = where.permissions.get(who.login.lower(), "none")
    return "COLLABORATOR" if held not in ("none", "read") else "NONE"


def pull_summary(pull: Pull, head_sha: str, urls: Urls) -> Json:
    """The form in lists."""
    issue, into = pull.issue, pull.repository
    api = f"{api_url(into, urls)}/pulls/{issue.number}"
    on_issue = f"{api_url(into, urls)}/issues/{issue.number}"
    web = f"{web_url(into, urls)}/pull/{issue.number}"
    statuses = f"{api_url(into, urls)}/statuses/{head_sha}"
    from_ = pull.head_repository
    head_owner = None if from_ is None else from_.owner
    label_of_head = "unknown repository" if head_owner is None else f"{head_owner.login}:{pull.head_ref}"
    return {
        "url": api,
        "id": pull.id,
        "node_id": node_id("PR", pull.id),
        "html_url": web,
        "diff_url": f"{web}.diff",
        "patch_url": f"{web}.patch",
        "issue_url": on_issue,
        "commits_url": f"{api}/commits",
        "review_comments_url": f"{api}/comments",
        "review_comment_url": f"{api_url(into, urls)}/pulls/comments{{/number}}",
        "comments_url": f"{on_issue}/comments",
        "statuses_url": statuses,
        "number": issue.number,
        "state": issue.state,
        "locked": issue.locked,
        "active_lock_reason": None,
        "title": issue.title,
        "user": user(issue.user, urls),
        "body": issue.body,
        "labels": [label(each, into, urls) for each in issue.labels],
        "milestone": None,
        "created_at": stamp(issue.created_at),
        "updated_at": stamp(issue.updated_at),
        "closed_at": stamp(issue.closed_at),
        "merged_at": stamp(pull.merged_at),
        "merge_commit_sha": pull.merge_sha,
        "assignee": None,
        "assignees": [],
        "requested_reviewers": [user(each, urls) for each in pull.requested_reviewers],
        "requested_teams": [],
        "draft": pull.draft,
        "head": {
            "label": label_of_head,
            "ref": pull.head_ref,
            "sha": head_sha,
            "user": None if head_owner is None else user(head_owner, urls),
            "repo": None if from_ is None else repository(from_, urls),
        },
        "base": {
            "label": f"{into.owner.login}:{pull.base_ref}",
            "ref": pull.base_ref,
            "sha": pull.base_sha,
            "user": user(into.owner, urls),
            "repo": repository(into, urls),
        },
        "_links": {
            "self": {"href": api},
            "html": {"href": web},
            "issue": {"href": on_issue},
            "comments": {"href": f"{on_issue}/comments"},
            "review_comments": {"href": f"{api}/comments"},
            "review_comment": {"href": f"{api_url(into, urls)}/pulls/comments{{/number}}"},
            "commits": {"href": f"{api}/commits"},
            "statuses": {"href": statuses},
        },
        "author_association": association(issue.user, into),
        "auto_merge": None,
    }


def pull(record: Pull, head_sha: str, size: Size, urls: Urls) -> Json:
    """The form of the pull request's own address and of its events."""
    merged = record.merged_at is not None
    return {
        **pull_summary(record, head_sha, urls),
        "merged": merged,
        "mergeable": None if merged else True,
        "rebaseable": None if merged else True,
        "mergeable_state": "unknown" if merged else "clean",
        "merged_by": None if record.merged_by is None else user(record.merged_by, urls),
        "comments": len(record.issue.comments),
        "review_comments": 0,
        "maintainer_can_modify": record.is_fork,
        "commits": size.commits,
        "additions": size.additions,
        "deletions": size.deletions,
        "changed_files": size.files,
    }


def minimal_pull(record: Pull, urls: Urls) -> Json:
    """The form inside check runs and suites."""
    into = record.repository
    repo = {"id": into.id, "url": api_url(into, urls), "name": into.name}
    return {
        "id": record.id,
        "number": record.number,
        "url": f"{api_url(into, urls)}/pulls/{record.number}",
        "head": {"ref": record.head_ref, "sha": record.head_sha, "repo": repo},
        "base": {"ref": record.base_ref, "sha": record.base_sha, "repo": repo},
    }


def issue(record: Issue, urls: Urls) -> Json:
    api = f"{api_url(record.repository, urls)}/issues/{record.number}"
    page = "pull" if record.pull else "issues"
    body: Json = {
        "url": api,
        "repository_url": api_url(record.repository, urls),
        "labels_url": f"{api}/labels{{/name}}",
        "comments_url": f"{api}/comments",
        "events_url": f"{api}/events",
        "html_url": f"{web_url(record.repository, urls)}/{page}/{record.number}",
        "id": record.id,
        "node_id": node_id("I", record.id),
        "number": record.number,
        "title": record.title,
        "user": user(record.user, urls),
        "labels": [label(each, record.repository, urls) for each in record.labels],
        "state": record.state,
        "state_reason": "completed" if record.state == "closed" else None,
        "locked": record.locked,
        "active_lock_reason": None,
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "comments": len(record.comments),
        "created_at": stamp(record.created_at),
        "updated_at": stamp(record.updated_at),
        "closed_at": stamp(record.closed_at),
        "closed_by": None,
        "author_association": association(record.user, record.repository),
        "body": record.body,
        "reactions": reaction_rollup([], f"{api}/reactions"),
        "timeline_url": f"{api}/timeline",
        "performed_via_github_app": None,
    }
    if record.pull is not None:
        web = body["html_url"]
        body["draft"] = record.pull.draft
        body["pull_request"] = {
            "url": f"{api_url(record.repository, urls)}/pulls/{record.number}",
            "html_url": web,
            "diff_url": f"{web}.diff",
            "patch_url": f"{web}.patch",
            "merged_at": stamp(record.pull.merged_at),
        }
    return body


def comment(record: Comment, author_app: AppRecord, urls: Urls) -> Json:
    into = record.issue.repository
    api = f"{api_url(into, urls)}/issues/comments/{record.id}"
    page = "pull" if record.issue.pull else "issues"
    return {
        "url": api,
        "html_url": f"{web_url(into, urls)}/{page}/{record.issue.number}#issuecomment-{record.id}",
        "issue_url": f"{api_url(into, urls)}/issues/{record.issue.number}",
        "id": record.id,
        "node_id": node_id("IC", record.id),
        "user": user(record.user, urls),
        "created_at": stamp(record.created_at),
        "updated_at": stamp(record.updated_at),
        "author_association": association(record.user, into),
        "body": record.body,
        "reactions": reaction_rollup(record.reactions, f"{api}/reactions"),
        "performed_via_github_app": app(author_app, urls) if record.via_app else None,
    }


def reaction(record: Reaction, urls: Urls) -> Json:
    return {
        "id": record.id,
        "node_id": node_id("REA", record.id),
        "user": user(record.user, urls),
        "content": record.content,
        "created_at": stamp(record.created_at),
    }


def reaction_rollup(reactions: list[Reaction], url: str) -> Json:
    counted = Counter(each.content for each in reactions)
    return {"url": url, "total_count": len(reactions), **{name: counted[name] for name in REACTIONS}}


def review(record: Review, of: Pull, urls: Urls, *, in_event: bool = False) -> Json:
    """A review. Events write its state in small letters, the API in capitals."""
    api = f"{api_url(of.repository, urls)}/pulls/{of.number}"
    web = f"{web_url(of.repository, urls)}/pull/{of.number}#pullrequestreview-{record.id}"
    return {
        "id": record.id,
        "node_id": node_id("PRR", record.id),
        "user": user(record.user, urls),
        "body": record.body,
        "state": record.state.lower() if in_event else record.state,
        "html_url": web,
        "pull_request_url": api,
        "author_association": association(record.user, of.repository),
        "_links": {"html": {"href": web}, "pull_request": {"href": api}},
        "submitted_at": stamp(record.submitted_at),
        "commit_id": record.commit_id,
    }
