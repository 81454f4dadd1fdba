"""Commits, comparisons, references and the git database: what is addressed by SHA never changes."""

from __future__ import annotations

import base64

from graft.simulator import comparison
from graft.simulator.errors import ApiError, not_found
from graft.simulator.http import Call, Reply, Route, paginate
from graft.simulator.payloads import commits
from graft.simulator.payloads.accounts import node_id
from graft.simulator.payloads.repositories import api_url, web_url
from graft.simulator.repository_git import FULL_SHA
from graft.simulator.state import Repository

MAX_COMPARED_COMMITS = 250
MAX_COMPARED_FILES = 300
MAX_TREE_ROWS = 100_000


async def resolve(repository: Repository, name: str) -> str | None:
    """The commit behind a branch, `heads/…`, a pull request's ref, a tag or a SHA, as GitHub reads a name."""
    name = name.removeprefix("refs/")
    branch = name.removeprefix("heads/")
    if branch in repository.branches:
        return repository.branches[branch]
    if name.startswith("pull/") and name.endswith("/head"):
        number = name.removeprefix("pull/").removesuffix("/head")
        issue = repository.issues.get(int(number)) if number.isascii() and number.isdigit() else None
        return issue.pull.head_sha if issue is not None and issue.pull is not None else None
    if FULL_SHA.fullmatch(name) or (7 <= len(name) < 40 and all(c in "0123456789abcdef" for c in name)):
        return await repository.git.resolve(name)
    return await repository.git.resolve(f"refs/tags/{name.removeprefix('tags/')}")


async def compare(call: Call) -> Reply:
    repository, urls = call.repository, call.server.urls
    base_name, dots, head_name = call.path["basehead"].partition("...")
    if not dots:
        raise not_found()
    base, head = await _side(call, base_name), await _side(call, head_name)
    git = repository.git
    merge_base = await git.merge_base(base, head)
    if merge_base is None:
        raise ApiError(404, f"No common ancestor between {base_name} and {head_name}.")
    rows = await call.server.comparisons(repository).rows(merge_base, head)
    if call.wants("diff"):
        return await _diff(call, merge_base, head, len(rows))
    ahead, behind = await git.commits_between(base, head), await git.commits_between(head, base)
    # Without a page the newest 250 come; files are on the first page only.
    paged = "page" in call.query or "per_page" in call.query
    shas, headers = paginate(call, ahead) if paged else (ahead[-MAX_COMPARED_COMMITS:], {})
    first = call.query.get("page", "1") in ("", "0", "1")
    status = (
        "identical" if base == head else "diverged" if ahead and behind else "behind" if behind else "ahead"
    )
    api, web = api_url(repository, urls), web_url(repository, urls)
    name = f"{base_name}...{head_name}"
    value = {
        "url": f"{api}/compare/{name}",
        "html_url": f"{web}/compare/{name}",
        "permalink_url": f"{web}/compare/{repository.owner.login}:{base[:7]}...{repository.owner.login}:{head[:7]}",
        "diff_url": f"{web}/compare/{name}.diff",
        "patch_url": f"{web}/compare/{name}.patch",
        "base_commit": await _commit(call, base),
        "merge_base_commit": await _commit(call, merge_base),
        "status": status,
        "ahead_by": len(ahead),
        "behind_by": len(behind),
        "total_commits": len(ahead),
        "commits": [await _commit(call, sha) for sha in shas],
        "files": commits.file_rows(list(rows[:MAX_COMPARED_FILES]) if first else [], head, repository, urls),
    }
    return Reply(value=value, headers=headers)


async def get_commit(call: Call) -> Reply:
    sha = await _named(call, call.path["ref"])
    found = await call.repository.git.commit(sha)
    before = found.parents[0] if found.parents else await _empty_tree(call.repository)
    rows = await call.server.comparisons(call.repository).rows(before, sha)
    additions, deletions = sum(row.additions for row in rows), sum(row.deletions for row in rows)
    page, headers = paginate(call, rows, default=100)
    value = {
        **await _commit(call, sha),
        "stats": {"total": additions + deletions, "additions": additions, "deletions": deletions},
        "files": commits.file_rows(list(page), sha, call.repository, call.server.urls),
    }
    return Reply(value=value, headers=headers)


async def get_reference(call: Call) -> Reply:
    name = call.path["ref"]
    sha = await resolve(call.repository, name) if name.startswith(("heads/", "tags/", "pull/")) else None
    if sha is None:
        raise not_found()
    return Reply(value=commits.reference(name, sha, call.repository, call.server.urls))


async def get_branch(call: Call) -> Reply:
    name = call.path["branch"]
    sha = call.repository.branches.get(name)
    if sha is None:
        raise ApiError(404, "Branch not found")
    return Reply(value=commits.branch(name, await _commit(call, sha), call.repository, call.server.urls))


async def get_git_commit(call: Call) -> Reply:
    sha = await _object(call, "sha", "commit")
    found = await call.repository.git.commit(sha)
    return Reply(value=commits.git_commit(found, call.repository, call.server.urls))


async def get_tree(call: Call) -> Reply:
    repository, name = call.repository, call.path["tree_sha"]
    sha = name if FULL_SHA.fullmatch(name) else await _named(call, name)
    found = await repository.git.read(sha)
    if found is not None and found[0] == "commit":
        sha = (await repository.git.commit(sha)).tree
    elif found is None or found[0] != "tree":
        raise not_found()
    # Any value makes it recursive, even 0 (REST docs).
    rows = await repository.git.tree(sha, recursive="recursive" in call.query)
    value = {
        "sha": sha,
        "url": f"{api_url(repository, call.server.urls)}/git/trees/{sha}",
        "tree": [commits.tree_row(row, repository, call.server.urls) for row in rows[:MAX_TREE_ROWS]],
        "truncated": len(rows) > MAX_TREE_ROWS,
    }
    return Reply(value=value)


async def get_blob(call: Call) -> Reply:
    sha = await _object(call, "sha", "blob")
    found = await call.repository.git.read(sha)
    content = b"" if found is None else found[1]
    if call.wants("raw"):
        return Reply(content=content, content_type="application/vnd.github.raw; charset=utf-8")
    value = {
        "sha": sha,
        "node_id": node_id("B", sha),
        "size": len(content),
        "url": f"{api_url(call.repository, call.server.urls)}/git/blobs/{sha}",
        "content": base64.encodebytes(content).decode(),
        "encoding": "base64",
    }
    return Reply(value=value)


async def _commit(call: Call, sha: str) -> dict[str, object]:
    found = await call.repository.git.commit(sha)
    return commits.commit(found, call.repository, call.server.world, call.server.urls)


async def _named(call: Call, name: str) -> str:
    sha = await resolve(call.repository, name)
    if sha is None:
        raise ApiError(422, f"No commit found for SHA: {name}")
    return sha


async def _side(call: Call, name: str) -> str:
    """One side of a comparison; `owner:branch` names a fork's branch."""
    owner, colon, branch = name.partition(":")
    repository = call.repository
    if colon and owner.lower() != repository.owner.login.lower():
        forks = (each for each in call.server.world.repositories.values() if each.fork_of is repository)
        fork = next((each for each in forks if each.owner.login.lower() == owner.lower()), None)
        sha = None if fork is None else await resolve(fork, branch)
    else:
        sha = await resolve(repository, branch if colon else name)
    if sha is None:
        raise not_found()
    return sha


async def _object(call: Call, name: str, kind: str) -> str:
    sha = call.path[name]
    found = await call.repository.git.read(sha)
    if found is None or found[0] != kind:
        raise not_found()
    return sha


async def _empty_tree(repository: Repository) -> str:
    return (await repository.git.run("hash-object", "-t", "tree", "--stdin")).decode().strip()


async def _diff(call: Call, base: str, head: str, files: int) -> Reply:
    diff = await call.server.comparisons(call.repository).diff(base, head)
    refused = comparison.too_large(diff, files)
    if refused is not None:
        raise ApiError(
            406, refused, errors=[{"resource": "Comparison", "field": "diff", "code": "too_large"}]
        )
    return Reply(
        content=diff,
        content_type="application/vnd.github.diff; charset=utf-8",
        media_type="github.v3; param=diff",
    )


_NEEDS = ("contents:read",)
_REPO = "/repos/{owner}/{repo}"
ROUTES = (
    Route(method="GET", template=f"{_REPO}/compare/{{basehead}}", handler=compare, needs=_NEEDS),
    Route(method="GET", template=f"{_REPO}/git/ref/{{ref}}", handler=get_reference, needs=_NEEDS),
    Route(method="GET", template=f"{_REPO}/branches/{{branch}}", handler=get_branch, needs=_NEEDS),
    Route(method="GET", template=f"{_REPO}/git/commits/{{sha}}", handler=get_git_commit, needs=_NEEDS),
    Route(method="GET", template=f"{_REPO}/git/trees/{{tree_sha}}", handler=get_tree, needs=_NEEDS),
    Route(method="GET", template=f"{_REPO}/git/blobs/{{sha}}", handler=get_blob, needs=_NEEDS),
)
# After all others: a ref may hold slashes, and `/commits/{ref}/check-runs` is somebody else's.
LAST_ROUTES = (Route(method="GET", template=f"{_REPO}/commits/{{ref}}", handler=get_commit, needs=_NEEDS),)
