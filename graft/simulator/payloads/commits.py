"""Commits, references, trees, blobs and file rows as JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import quote

from graft.simulator.comparison import FileRow
from graft.simulator.payloads.accounts import Json, Urls, node_id, stamp, user
from graft.simulator.payloads.repositories import api_url, web_url
from graft.simulator.repository_git import CommitObject, Signature, TreeEntry
from graft.simulator.state import Repository, World

# GitHub gives counts but no hunks for the rows of one answer past this many lines of diff.
MAX_LINES_IN_ANSWER = 20_000


def _time(signature: Signature) -> str | None:
    return stamp(datetime.fromtimestamp(signature.when, UTC))


def _signature(signature: Signature) -> Json:
    return {"name": signature.name, "email": signature.email, "date": _time(signature)}


def _verification(found: CommitObject) -> Json:
    return {
        "verified": False,
        "reason": "unknown_key" if found.signed else "unsigned",
        "signature": None,
        "payload": None,
        "verified_at": None,
    }


def _parents(found: CommitObject, of: Repository, urls: Urls) -> list[Json]:
    return [
        {
            "sha": sha,
            "url": f"{api_url(of, urls)}/commits/{sha}",
            "html_url": f"{web_url(of, urls)}/commit/{sha}",
        }
        for sha in found.parents
    ]


def commit(found: CommitObject, of: Repository, world: World, urls: Urls) -> Json:
    """A commit as lists and comparisons show it, credited to accounts by email."""
    api = api_url(of, urls)
    accounts = (world.user_of_email(found.author.email), world.user_of_email(found.committer.email))
    author, committer = (None if account is None else user(account, urls) for account in accounts)
    return {
        "sha": found.sha,
        "node_id": node_id("C", found.sha),
        "commit": {
            "author": _signature(found.author),
            "committer": _signature(found.committer),
            "message": found.message,
            "tree": {"sha": found.tree, "url": f"{api}/git/trees/{found.tree}"},
            "url": f"{api}/git/commits/{found.sha}",
            "comment_count": 0,
            "verification": _verification(found),
        },
        "url": f"{api}/commits/{found.sha}",
        "html_url": f"{web_url(of, urls)}/commit/{found.sha}",
        "comments_url": f"{api}/commits/{found.sha}/comments",
        "author": author,
        "committer": committer,
        "parents": _parents(found, of, urls),
    }


def git_commit(found: CommitObject, of: Repository, urls: Urls) -> Json:
    """A commit as the git database shows it."""
    api = api_url(of, urls)
    return {
        "sha": found.sha,
        "node_id": node_id("C", found.sha),
        "url": f"{api}/git/commits/{found.sha}",
        "html_url": f"{web_url(of, urls)}/commit/{found.sha}",
        "author": _signature(found.author),
        "committer": _signature(found.committer),
        "tree": {"sha": found.tree, "url": f"{api}/git/trees/{found.tree}"},
        "message": found.message,
        "parents": _parents(found, of, urls),
        "verification": _verification(found),
    }


def simple_commit(found: CommitObject) -> Json:
    """The form inside check suites."""
    return {
        "id": found.sha,
        "tree_id": found.tree,
        "message": found.message,
        "timestamp": _time(found.committer),
        "author": {"name": found.author.name, "email": found.author.email},
        "committer": {"name": found.committer.name, "email": found.committer.email},
    }


def pushed_commit(found: CommitObject, of: Repository, urls: Urls) -> Json:
    """The form inside `push` events. GitHub also lists file names there; Graft must not depend on them."""
    return {
        **simple_commit(found),
        "distinct": True,
        "url": f"{web_url(of, urls)}/commit/{found.sha}",
        "added": [],
        "removed": [],
        "modified": [],
    }


def reference(name: str, sha: str, of: Repository, urls: Urls) -> Json:
    api = api_url(of, urls)
    return {
        "ref": f"refs/{name}",
        "node_id": node_id("REF", f"{of.id}:{name}"),
        "url": f"{api}/git/refs/{quote(name)}",
        "object": {"sha": sha, "type": "commit", "url": f"{api}/git/commits/{sha}"},
    }


def branch(name: str, head: Json, of: Repository, urls: Urls) -> Json:
    api = f"{api_url(of, urls)}/branches/{quote(name)}"
    return {
        "name": name,
        "commit": head,
        "_links": {"self": api, "html": f"{web_url(of, urls)}/tree/{quote(name)}"},
        "protected": False,
        "protection": {"enabled": False, "required_status_checks": {"contexts": [], "checks": []}},
        "protection_url": f"{api}/protection",
    }


def tree_row(entry: TreeEntry, of: Repository, urls: Urls) -> Json:
    row: Json = {"path": entry.path, "mode": entry.mode, "type": entry.kind, "sha": entry.sha}
    if entry.kind != "commit":
        row["url"] = f"{api_url(of, urls)}/git/{entry.kind}s/{entry.sha}"
    if entry.size is not None:
        row["size"] = entry.size
    return row


def file_rows(rows: list[FileRow], head_sha: str, of: Repository, urls: Urls) -> list[Json]:
    """The rows of one answer, the last ones without hunks when there are too many lines before them."""
    shown, lines = [], 0
    for row in rows:
        lines += row.lines
        shown.append(_file_row(row, head_sha, of, urls, with_hunks=lines <= MAX_LINES_IN_ANSWER))
    return shown


def _file_row(row: FileRow, head_sha: str, of: Repository, urls: Urls, *, with_hunks: bool) -> Json:
    path, web = quote(row.path, safe=""), web_url(of, urls)  # GitHub escapes the slashes, too
    additions, deletions = (row.additions, row.deletions) if with_hunks else (0, 0)
    shown: Json = {
        "sha": row.sha,
        "filename": row.path,
        "status": row.status,
        "additions": additions,
        "deletions": deletions,
        "changes": additions + deletions,
        "blob_url": f"{web}/blob/{head_sha}/{path}",
        "raw_url": f"{web}/raw/{head_sha}/{path}",
        "contents_url": f"{api_url(of, urls)}/contents/{path}?ref={head_sha}",
    }
    if row.patch is not None and with_hunks:
        shown["patch"] = row.patch
    if row.previous_path is not None:
        shown["previous_filename"] = row.previous_path
    return shown
