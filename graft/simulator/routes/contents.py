"""What stands at a path of a commit: file, directory, symbolic link or submodule."""

from __future__ import annotations

from dataclasses import replace

from graft.simulator.errors import ApiError, not_found
from graft.simulator.http import Call, Reply, Route
from graft.simulator.payloads import contents
from graft.simulator.repository_git import GitRepository, TreeEntry
from graft.simulator.routes.commits import resolve


async def get_contents(call: Call) -> Reply:
    repository, urls = call.repository, call.server.urls
    ref = call.query.get("ref") or repository.default_branch
    path = call.path.get("path", "").strip("/")
    sha = await resolve(repository, ref)
    if sha is None:
        raise ApiError(404, f"No commit found for the ref {ref}")
    entry = await repository.git.entry(sha, path)
    if entry is None:
        raise not_found()
    kind = contents.kind(entry)
    if kind == "dir":
        rows = await repository.git.tree(entry.sha)
        return Reply(value=[contents.listed(row, path, ref, repository, urls) for row in rows])
    if kind == "submodule":
        source = await _submodule_source(repository.git, sha, path)
        return Reply(value=contents.submodule(entry, source, ref, repository, urls))
    content = await _content(repository.git, entry)
    if kind == "symlink":
        followed = await _follow(repository.git, sha, path, content)
        if followed is None:
            return Reply(value=contents.symlink(entry, content, ref, repository, urls))
        entry = replace(followed, path=path)
        content = await _content(repository.git, entry)
    if len(content) > contents.MAX_RAW:
        raise ApiError(
            403,
            "This API returns blobs up to 100 MB in size. The requested blob is too large to fetch via the API.",
            errors=[{"resource": "Blob", "field": "data", "code": "too_large"}],
        )
    if call.wants("raw"):
        return Reply(
            content=content,
            content_type="application/vnd.github.raw+json; charset=utf-8",
            media_type="github.v3; param=raw; format=json",
        )
    return Reply(value=contents.file(entry, content, ref, repository, urls))


async def _content(git: GitRepository, entry: TreeEntry) -> bytes:
    found = await git.read(entry.sha)
    return b"" if found is None else found[1]


async def _follow(git: GitRepository, commit: str, path: str, target: bytes) -> TreeEntry | None:
    """The regular file a link leads to inside the repository (REST docs: then its content is returned)."""
    parts = path.split("/")[:-1]
    text = target.decode("utf-8", "replace")
    if text.startswith("/"):
        return None
    for part in text.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    entry = await git.entry(commit, "/".join(parts))
    return entry if entry is not None and contents.kind(entry) == "file" else None


async def _submodule_source(git: GitRepository, commit: str, path: str) -> str | None:
    """The `url` that `.gitmodules` gives for a path."""
    entry = await git.entry(commit, ".gitmodules")
    if entry is None:
        return None
    here = False
    for line in (await _content(git, entry)).decode("utf-8", "replace").splitlines():
        key, equals, value = (part.strip() for part in line.partition("="))
        if line.startswith("["):
            here = False
        elif equals and key == "path":
            here = value == path
        elif equals and key == "url" and here:
            return value
    return None


_NEEDS = ("contents:read",)
ROUTES = (
    Route(method="GET", template="/repos/{owner}/{repo}/contents", handler=get_contents, needs=_NEEDS),
    Route(method="GET", template="/repos/{owner}/{repo}/contents/{path}", handler=get_contents, needs=_NEEDS),
)
