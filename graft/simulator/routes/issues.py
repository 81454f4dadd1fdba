"""Issues, their comments and reactions. A pull request's comments are its issue's."""

from __future__ import annotations

import re
from datetime import datetime

from graft.simulator.errors import ApiError, invalid, not_found
from graft.simulator.http import Call, Reply, Route, paginate, text_of
from graft.simulator.payloads import pulls
from graft.simulator.payloads.accounts import stamp, user
from graft.simulator.state import Comment, Issue, Reaction, User, World

MAX_BODY = 65_536


async def get_issue(call: Call) -> Reply:
    return Reply(value=pulls.issue(_issue(call), call.server.urls))


async def list_issues(call: Call) -> Reply:
    """Issues and pull requests alike, the newest first; `labels` names those that all must be there. What the
    caller may not read is left out."""
    state = call.query.get("state", "open")
    wanted = [name.lower() for name in call.query.get("labels", "").split(",") if name]
    found = [each for each in call.repository.issues.values() if state in (each.state, "all")]
    found = [each for each in found if _may(call, each, "read")]
    for name in wanted:
        found = [each for each in found if any(label.name.lower() == name for label in each.labels)]
    found.sort(key=lambda each: each.number, reverse=True)
    page, headers = paginate(call, found)
    return Reply(value=[pulls.issue(each, call.server.urls) for each in page], headers=headers)


async def list_timeline(call: Call) -> Reply:
    """Becoming a draft or ready, and being mentioned by other issues and pull requests, oldest first."""
    issue, urls = _issue(call), call.server.urls
    events: list[tuple[datetime, dict[str, object]]] = []
    for at, draft in issue.pull.drafted if issue.pull is not None else ():
        events.append((at, {"event": "convert_to_draft" if draft else "ready_for_review"}))
    mention = re.compile(rf"(?<![\w/])#{issue.number}(?!\w)")
    for other in issue.repository.issues.values():
        if other is not issue and mention.search(f"{other.title}\n{other.body or ''}"):
            source = {"type": "issue", "issue": pulls.issue(other, urls)}
            events.append((other.created_at, {"event": "cross-referenced", "source": source}))
    events.sort(key=lambda each: each[0])
    page, headers = paginate(call, events)
    value = [{**event, "actor": user(issue.user, urls), "created_at": stamp(at)} for at, event in page]
    return Reply(value=value, headers=headers)


async def list_labels(call: Call) -> Reply:
    issue = _issue(call)
    page, headers = paginate(call, issue.labels)
    value = [pulls.label(each, issue.repository, call.server.urls) for each in page]
    return Reply(value=value, headers=headers)


async def list_comments(call: Call) -> Reply:
    found = call.server.faults.comments_shown(_issue(call))
    since = call.query.get("since")
    if since:
        try:
            earliest = datetime.fromisoformat(since)
        except ValueError:
            raise invalid("IssueComment", "since", "invalid") from None
        found = [each for each in found if stamp(each.updated_at) >= stamp(earliest)]  # type: ignore[operator]
    page, headers = paginate(call, found)
    return Reply(value=[_shown(call, each) for each in page], headers=headers)


async def create_comment(call: Call) -> Reply:
    issue = call.issue()
    _permit_write(call, issue)
    body = _body(call)
    server = call.server
    author = server.world.user(server.app.bot_login, type="Bot")
    made = add_comment(server.world, issue, author, body, via_app=True)
    server.faults.comment_made(made)
    shown = _shown(call, made)
    return Reply(value=shown, status=201, headers={"Location": str(shown["url"])})


async def get_comment(call: Call) -> Reply:
    return Reply(value=_shown(call, _comment(call)))


async def update_comment(call: Call) -> Reply:
    comment = _comment(call)
    _permit_write(call, comment.issue)
    comment.body = _body(call)
    comment.updated_at = comment.issue.updated_at = call.server.world.time()
    return Reply(value=_shown(call, comment))


async def delete_comment(call: Call) -> Reply:
    comment = _comment(call)
    _permit_write(call, comment.issue)
    remove_comment(call.server.world, comment)
    return Reply(status=204)


async def list_reactions(call: Call) -> Reply:
    found = _comment(call).reactions
    if "content" in call.query:
        found = [each for each in found if each.content == call.query["content"]]
    page, headers = paginate(call, found)
    return Reply(value=[pulls.reaction(each, call.server.urls) for each in page], headers=headers)


async def create_reaction(call: Call) -> Reply:
    comment = _comment(call)
    _permit_write(call, comment.issue)
    content = text_of(call.document(), "content")
    if content not in pulls.REACTIONS:
        raise invalid("Reaction", "content", "invalid")
    world = call.server.world
    made, new = add_reaction(world, comment, world.user(call.server.app.bot_login, type="Bot"), content)
    return Reply(value=pulls.reaction(made, call.server.urls), status=201 if new else 200)


def add_comment(world: World, issue: Issue, author: User, body: str, *, via_app: bool) -> Comment:
    """A new comment; it moves the time of the issue, as any comment does."""
    now = world.time()
    made = Comment(
        id=world.next_id(),
        issue=issue,
        user=author,
        body=body,
        created_at=now,
        updated_at=now,
        via_app=via_app,
    )
    issue.comments.append(made)
    issue.updated_at = now
    world.comments[made.id] = made
    return made


def remove_comment(world: World, comment: Comment) -> None:
    comment.issue.comments.remove(comment)
    comment.issue.updated_at = world.time()
    del world.comments[comment.id]


def add_reaction(world: World, comment: Comment, user: User, content: str) -> tuple[Reaction, bool]:
    """The user's reaction of this kind, and whether it is new. A reaction moves no time and sends no event."""
    for each in comment.reactions:
        if each.user is user and each.content == content:
            return each, False
    made = Reaction(id=world.next_id(), user=user, content=content, created_at=world.time())
    comment.reactions.append(made)
    return made, True


def _comment(call: Call) -> Comment:
    found = call.server.world.comments.get(call.number("comment_id"))
    if found is None or found.issue.repository is not call.repository:
        raise not_found()
    _permit(call, found.issue, "read")
    return found


def _shown(call: Call, comment: Comment) -> dict[str, object]:
    return pulls.comment(comment, call.server.app, call.server.urls)


def _body(call: Call) -> str:
    body = text_of(call.document(), "body")
    if body is None or not body.strip():
        raise invalid("IssueComment", "body", "missing_field")
    if len(body) > MAX_BODY:
        raise invalid(
            "IssueComment", "data", "unprocessable", f"Body is too long (maximum is {MAX_BODY} characters)"
        )
    return body


def _issue(call: Call) -> Issue:
    """The issue that is asked for, which the caller may read."""
    found = call.issue()
    _permit(call, found, "read")
    return found


def _names(issue: Issue) -> list[str]:
    """The permissions of which one is enough: `issues`, or for a pull request `pull_requests`."""
    return ["issues", "pull_requests"] if issue.pull is not None else ["issues"]


def _may(call: Call, issue: Issue, level: str) -> bool:
    held = {} if call.grant is None else call.grant.permissions
    enough = ("read", "write") if level == "read" else ("write",)
    return any(held.get(name) in enough for name in _names(issue))


def _permit(call: Call, issue: Issue, level: str) -> None:
    if not _may(call, issue, level):
        accepted = "; ".join(f"{name}={level}" for name in _names(issue))
        raise ApiError(
            403,
            "Resource not accessible by integration",
            headers={"X-Accepted-GitHub-Permissions": accepted},
        )


def _permit_write(call: Call, issue: Issue) -> None:
    _permit(call, issue, "write")
    if issue.locked:
        raise ApiError(403, "Unable to create comment because issue is locked.")


_NEEDS = ("issues:read", "pull_requests:read")
_ISSUE = "/repos/{owner}/{repo}/issues/{number}"
_COMMENT = "/repos/{owner}/{repo}/issues/comments/{comment_id}"
ROUTES = (
    Route(method="GET", template=_COMMENT, handler=get_comment, needs=_NEEDS),
    Route(method="PATCH", template=_COMMENT, handler=update_comment, needs=_NEEDS),
    Route(method="DELETE", template=_COMMENT, handler=delete_comment, needs=_NEEDS),
    Route(method="GET", template=f"{_COMMENT}/reactions", handler=list_reactions, needs=_NEEDS),
    Route(method="POST", template=f"{_COMMENT}/reactions", handler=create_reaction, needs=_NEEDS),
    Route(method="GET", template="/repos/{owner}/{repo}/issues", handler=list_issues, needs=_NEEDS),
    Route(method="GET", template=f"{_ISSUE}/timeline", handler=list_timeline, needs=_NEEDS),
    Route(method="GET", template=_ISSUE, handler=get_issue, needs=_NEEDS),
    Route(method="GET", template=f"{_ISSUE}/labels", handler=list_labels, needs=_NEEDS),
    Route(method="GET", template=f"{_ISSUE}/comments", handler=list_comments, needs=_NEEDS),
    Route(method="POST", template=f"{_ISSUE}/comments", handler=create_comment, needs=_NEEDS),
)
