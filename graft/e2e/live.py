"""The stage on a real GitHub: a sandbox repository, worked in as a person with a token.

Commits are made through the git data API, so no clone is needed. What GitHub offers no API for (pressing a
button), or what needs a second account or the installation's owner, is no ability of this stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

from msgspec import Struct

from graft.e2e.metrics import read_votes
from graft.e2e.stage import BRANCH_PREFIX, Change, Check, Shown
from graft.errors import PermanentError
from graft.github import NotFound
from graft.github.client import Installation
from graft.github.given_token import with_token

_REPO = "repos/{owner}/{repo}"
_REF = f"{_REPO}/git/refs/heads/{{branch}}"


class _Sha(Struct, frozen=True):
    sha: str


class _Ref(Struct, frozen=True):
    ref: str
    object: _Sha


class _Repository(Struct, frozen=True):
    default_branch: str


class _Commit(Struct, frozen=True):
    tree: _Sha


class _Branch(Struct, frozen=True):
    ref: str
    sha: str


class _Pull(Struct, frozen=True):
    number: int
    head: _Branch
    base: _Branch


class _User(Struct, frozen=True):
    login: str


class _Comment(Struct, frozen=True):
    id: int
    body: str
    user: _User | None = None


class _App(Struct, frozen=True):
    slug: str = ""


class _Output(Struct, frozen=True):
    title: str | None = None


class _Run(Struct, frozen=True):
    id: int
    name: str
    conclusion: str | None
    completed_at: str | None
    output: _Output
    app: _App | None = None


class _Runs(Struct, frozen=True):
    check_runs: list[_Run]


class LiveStage:
    """A sandbox repository; `async with` opens the connection. The caller has made sure that it is a sandbox."""

    def __init__(
        self, api_url: str, token: str, repository: str, *, app_slug: str, metrics_url: str | None = None
    ) -> None:
        self._api_url = api_url
        self._token = token
        self._owner, _, self._repo = repository.partition("/")
        self._slug = app_slug
        self._metrics_url = metrics_url
        self._stack = AsyncExitStack()
        self._client: Installation | None = None
        self.abilities = frozenset({"votes"} if metrics_url else ())

    async def __aenter__(self) -> Self:
        self._client = await self._stack.enter_async_context(with_token(self._token, api_url=self._api_url))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def name(self) -> str:
        return f"{self._owner}/{self._repo}"

    @property
    def _api(self) -> Installation:
        if self._client is None:
            raise RuntimeError("the stage is not open")
        return self._client

    @property
    def _where(self) -> dict[str, Any]:
        return {"owner": self._owner, "repo": self._repo}

    async def clear(self) -> None:
        pulls = await self._api.get_all(f"{_REPO}/pulls", _Pull, cached=False, state="open", **self._where)
        for pull in pulls:
            if pull.head.ref.startswith(BRANCH_PREFIX):
                await self._close(pull.number)
        refs = await self._api.get_all(
            f"{_REPO}/git/matching-refs/heads/{{start}}",
            _Ref,
            cached=False,
            start=BRANCH_PREFIX,
            **self._where,
        )
        for ref in refs:
            await self.delete_branch(ref.ref.removeprefix("refs/heads/"))

    async def branch(self, name: str, files: Mapping[str, str], *, start: str | None = None) -> str:
        parent = await self._tip(start or await self._default())
        sha = await self._commit(parent, files)
        await self._api.write(
            "POST", f"{_REPO}/git/refs", {"ref": f"refs/heads/{name}", "sha": sha}, **self._where
        )
        return sha

    async def open(self, branch: str, *, base: str | None = None, fork: bool = False) -> Change:
        if fork:
            raise PermanentError("this stage has no fork", reason="no_fork")
        body = {
            "title": f"Play {branch}",
            "head": branch,
            "base": base or await self._default(),
            "body": "Opened by graft e2e; it closes itself.",
        }
        pull = await self._api.post(f"{_REPO}/pulls", body, _Pull, **self._where)
        return Change(number=pull.number, branch=branch, base=pull.base.ref, head_sha=pull.head.sha)

    async def push(self, change: Change, files: Mapping[str, str], *, force: bool = False) -> None:
        parent = await self._tip(await self._default()) if force else change.head_sha
        sha = await self._commit(parent, files)
        await self._api.write(
            "PATCH", _REF, {"sha": sha, "force": force}, branch=change.branch, **self._where
        )
        change.head_sha = sha

    async def retarget(self, change: Change, base: str) -> None:
        await self._patch_pull(change.number, {"base": base})

    async def rename(self, name: str) -> None:
        await self._api.write("PATCH", _REPO, {"name": name}, **self._where)
        self._repo = name

    async def shown(self, change: Change) -> Shown:
        comments = await self._api.get_all(
            f"{_REPO}/issues/{{number}}/comments", _Comment, cached=False, number=change.number, **self._where
        )
        runs = await self._api.get(
            f"{_REPO}/commits/{{sha}}/check-runs",
            _Runs,
            cached=False,
            sha=change.head_sha,
            per_page=100,
            **self._where,
        )
        login = f"{self._slug}[bot]"
        return Shown(
            comments=tuple((c.id, c.body) for c in comments if c.user is not None and c.user.login == login),
            checks={
                run.name: Check(
                    id=run.id,
                    conclusion=run.conclusion,
                    title=run.output.title or "",
                    stamp=f"{run.id} {run.completed_at}",
                )
                for run in runs.check_runs
                if run.app is not None and run.app.slug == self._slug
            },
        )

    async def react(self, comment_id: int, content: str) -> None:
        await self._api.write(
            "POST",
            f"{_REPO}/issues/comments/{{comment_id}}/reactions",
            {"content": content},
            comment_id=comment_id,
            **self._where,
        )

    async def press(self, check_id: int, button: str) -> None:
        raise PermanentError("GitHub has no API to press a button", reason="no_api")

    async def rerun(self, check_id: int) -> None:
        await self._api.write(
            "POST", f"{_REPO}/check-runs/{{check_id}}/rerequest", {}, check_id=check_id, **self._where
        )

    async def uninstall(self) -> None:
        raise PermanentError("this stage cannot uninstall the App", reason="no_api")

    async def install(self) -> None:
        raise PermanentError("this stage cannot install the App", reason="no_api")

    async def votes(self) -> dict[tuple[str, str], int]:
        if self._metrics_url is None:
            raise PermanentError("the address of the metrics is not known", reason="no_metrics")
        return await read_votes(self._metrics_url)

    async def close(self, change: Change) -> None:
        await self._close(change.number)
        await self.delete_branch(change.branch)

    async def delete_branch(self, branch: str) -> None:
        try:
            await self._api.delete(_REF, branch=branch, **self._where)
        except NotFound:
            return

    # ------------------------------------------------------------------------------------------- requests

    async def _default(self) -> str:
        return (await self._api.get(_REPO, _Repository, **self._where)).default_branch

    async def _tip(self, branch: str) -> str:
        found = await self._api.get(
            f"{_REPO}/git/ref/heads/{{branch}}", _Ref, cached=False, branch=branch, **self._where
        )
        return found.object.sha

    async def _commit(self, parent: str, files: Mapping[str, str]) -> str:
        above = await self._api.get(f"{_REPO}/git/commits/{{sha}}", _Commit, sha=parent, **self._where)
        entries: list[dict[str, Any]] = [
            {"path": path, "mode": "100644", "type": "blob", "content": content}
            for path, content in files.items()
        ]
        tree = await self._api.post(
            f"{_REPO}/git/trees", {"base_tree": above.tree.sha, "tree": entries}, _Sha, **self._where
        )
        body = {"message": "Commit by graft e2e", "tree": tree.sha, "parents": [parent]}
        return (await self._api.post(f"{_REPO}/git/commits", body, _Sha, **self._where)).sha

    async def _patch_pull(self, number: int, changes: Mapping[str, str]) -> None:
        await self._api.write("PATCH", f"{_REPO}/pulls/{{number}}", changes, number=number, **self._where)

    async def _close(self, number: int) -> None:
        await self._patch_pull(number, {"state": "closed"})
