"""Pull requests: always as they are now, apart from an old head that a fault makes GitHub show."""

from __future__ import annotations

from graft.simulator import comparison
from graft.simulator.comparison import FileRow
from graft.simulator.errors import ApiError
from graft.simulator.http import Call, Reply, Route, paginate
from graft.simulator.payloads import commits, pulls
from graft.simulator.payloads.accounts import user
from graft.simulator.server import GitHubServer
from graft.simulator.state import Pull, Repository

MAX_FILES = 3000
MAX_COMMITS = 250


async def pull_json(server: GitHubServer, pull: Pull, head_sha: str) -> dict[str, object]:
    """A pull request as it would be shown with this head."""
    base = await merge_base_of(pull, head_sha)
    rows = await server.comparisons(pull.repository).rows(base, head_sha)
    count = len(await pull.repository.git.commits_between(base, head_sha))
    size = pulls.Size(
        commits=count,
        additions=sum(row.additions for row in rows),
        deletions=sum(row.deletions for row in rows),
        files=len(rows),
    )
    return pulls.pull(pull, head_sha, size, server.urls)


async def merge_base_of(pull: Pull, head_sha: str) -> str:
    """Where the head left the base branch of now; a closed pull request stays with the base it had."""
    tip = pull.base_sha
    if pull.issue.state == "open":
        tip = pull.repository.branches.get(pull.base_ref, tip)
    return await pull.repository.git.merge_base(tip, head_sha) or tip


async def list_pulls(call: Call) -> Reply:
    state = call.query.get("state", "open")
    found = [each for each in call.repository.pulls if state in (each.issue.state, "all")]
    if "base" in call.query:
        found = [each for each in found if each.base_ref == call.query["base"]]
    if "head" in call.query:
        found = [each for each in found if _head_label(each) == call.query["head"]]
    by_update = call.query.get("sort") == "updated"
    oldest_first = call.query.get("direction") == "asc"
    found.sort(
        key=lambda each: (each.issue.updated_at if by_update else each.issue.created_at, each.number),
        reverse=not oldest_first,
    )
    page, headers = paginate(call, found)
    faults, urls = call.server.faults, call.server.urls
    value = [pulls.pull_summary(each, faults.head_shown(each, count=False), urls) for each in page]
    return Reply(value=value, headers=headers)


async def get_pull(call: Call) -> Reply:
    pull = call.pull()
    if call.wants("diff"):
        head = call.server.faults.head_shown(pull, count=False)
        return await _diff(call, pull, await merge_base_of(pull, head), head)
    head = call.server.faults.head_shown(pull, count=True)
    return Reply(value=await pull_json(call.server, pull, head))


async def list_files(call: Call) -> Reply:
    pull = call.pull()
    head = call.server.faults.head_shown(pull, count=False)
    base = await merge_base_of(pull, head)
    rows = (await call.server.comparisons(pull.repository).rows(base, head))[:MAX_FILES]
    page, headers = paginate(call, rows)
    return Reply(value=_rows(list(page), head, pull.repository, call), headers=headers)


async def list_commits(call: Call) -> Reply:
    pull = call.pull()
    head = call.server.faults.head_shown(pull, count=False)
    git = pull.repository.git
    shas = (await git.commits_between(await merge_base_of(pull, head), head))[:MAX_COMMITS]
    page, headers = paginate(call, shas)
    world, urls = call.server.world, call.server.urls
    value = [commits.commit(await git.commit(sha), pull.repository, world, urls) for sha in page]
    return Reply(value=value, headers=headers)


async def list_reviews(call: Call) -> Reply:
    pull = call.pull()
    page, headers = paginate(call, pull.reviews)
    return Reply(value=[pulls.review(each, pull, call.server.urls) for each in page], headers=headers)


async def get_requested_reviewers(call: Call) -> Reply:
    asked = [user(each, call.server.urls) for each in call.pull().requested_reviewers]
    return Reply(value={"users": asked, "teams": []})


def _head_label(pull: Pull) -> str | None:
    return None if pull.head_repository is None else f"{pull.head_repository.owner.login}:{pull.head_ref}"


def _rows(rows: list[FileRow], head: str, repository: Repository, call: Call) -> list[dict[str, object]]:
    return commits.file_rows(rows, head, repository, call.server.urls)


async def _diff(call: Call, pull: Pull, base: str, head: str) -> Reply:
    comparisons = call.server.comparisons(pull.repository)
    diff = await comparisons.diff(base, head)
    refused = comparison.too_large(diff, len(await comparisons.rows(base, head)))
    if refused is not None:
        raise ApiError(
            406, refused, errors=[{"resource": "PullRequest", "field": "diff", "code": "too_large"}]
        )
    return Reply(
        content=diff,
        content_type="application/vnd.github.diff; charset=utf-8",
        media_type="github.v3; param=diff",
    )


_NEEDS = ("pull_requests:read",)
_PULL = "/repos/{owner}/{repo}/pulls/{number}"
ROUTES = (
    Route(method="GET", template="/repos/{owner}/{repo}/pulls", handler=list_pulls, needs=_NEEDS),
    Route(method="GET", template=_PULL, handler=get_pull, needs=_NEEDS),
    Route(method="GET", template=f"{_PULL}/files", handler=list_files, needs=_NEEDS),
    Route(method="GET", template=f"{_PULL}/commits", handler=list_commits, needs=_NEEDS),
    Route(method="GET", template=f"{_PULL}/reviews", handler=list_reviews, needs=_NEEDS),
    Route(
        method="GET", template=f"{_PULL}/requested_reviewers", handler=get_requested_reviewers, needs=_NEEDS
    ),
)
