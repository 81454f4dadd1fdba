"""What a person can do over GitHub's REST API, in front of the simulator: as much as the live stage uses."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from graft.simulator import Pull, Repository, Simulator
from graft.simulator.demo_repository import RepositoryBuilder

TOKEN = "github_pat_of_a_person"


class Front:
    """Turns requests of a person into acts of the simulator."""

    def __init__(self, simulator: Simulator, builder: RepositoryBuilder, repository: Repository) -> None:
        self.simulator = simulator
        self.builder = builder
        self.repository = repository
        self.url = ""
        self._trees: dict[str, dict[str, str]] = {}
        self._numbers = itertools.count(1)

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        at = "/repos/{owner}/{repo}"
        app.router.add_get(at, self._repository)
        app.router.add_patch(at, self._rename)
        app.router.add_get(f"{at}/git/ref/heads/{{branch}}", self._ref)
        app.router.add_get(f"{at}/git/matching-refs/heads/{{start}}", self._refs)
        app.router.add_get(f"{at}/git/commits/{{sha}}", self._read_commit)
        app.router.add_post(f"{at}/git/trees", self._tree)
        app.router.add_post(f"{at}/git/commits", self._commit)
        app.router.add_post(f"{at}/git/refs", self._create_ref)
        app.router.add_patch(f"{at}/git/refs/heads/{{branch}}", self._move_ref)
        app.router.add_delete(f"{at}/git/refs/heads/{{branch}}", self._delete_ref)
        app.router.add_get(f"{at}/pulls", self._pulls)
        app.router.add_post(f"{at}/pulls", self._open)
        app.router.add_patch(f"{at}/pulls/{{number}}", self._edit)
        app.router.add_get(f"{at}/issues/{{number}}/comments", self._comments)
        app.router.add_post(f"{at}/issues/comments/{{id}}/reactions", self._react)
        app.router.add_get(f"{at}/commits/{{sha}}/check-runs", self._runs)
        app.router.add_post(f"{at}/check-runs/{{id}}/rerequest", self._rerun)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if request.headers.get("Authorization", "").rpartition(" ")[2] != TOKEN:
            return web.json_response({"message": "Bad credentials"}, status=401)
        if request.match_info["repo"] != self.repository.name:
            return web.json_response({"message": "Not Found"}, status=404)
        found: web.StreamResponse = await handler(request)
        return found

    def _pull(self, request: web.Request) -> Pull:
        pull = self.repository.issues[int(request.match_info["number"])].pull
        assert pull is not None
        return pull

    def _shown(self, pull: Pull) -> dict[str, Any]:
        return {
            "number": pull.number,
            "head": {"ref": pull.head_ref, "sha": pull.head_sha},
            "base": {"ref": pull.base_ref, "sha": pull.base_sha},
        }

    async def _repository(self, _: web.Request) -> web.Response:
        return web.json_response({"default_branch": self.repository.default_branch})

    async def _rename(self, request: web.Request) -> web.Response:
        self.simulator.rename(self.repository, (await request.json())["name"])
        return web.json_response({})

    async def _ref(self, request: web.Request) -> web.Response:
        name = request.match_info["branch"]
        return web.json_response(
            {"ref": f"refs/heads/{name}", "object": {"sha": self.repository.branches[name]}}
        )

    async def _refs(self, request: web.Request) -> web.Response:
        start = request.match_info["start"]
        return web.json_response(
            [
                {"ref": f"refs/heads/{name}", "object": {"sha": sha}}
                for name, sha in self.repository.branches.items()
                if name.startswith(start)
            ]
        )

    async def _read_commit(self, request: web.Request) -> web.Response:
        return web.json_response({"tree": {"sha": f"tree-of-{request.match_info['sha']}"}})

    async def _tree(self, request: web.Request) -> web.Response:
        name = f"tree-{next(self._numbers)}"
        self._trees[name] = {each["path"]: each["content"] for each in (await request.json())["tree"]}
        return web.json_response({"sha": name}, status=201)

    async def _commit(self, request: web.Request) -> web.Response:
        body = await request.json()
        sha = self.builder.commit(
            f"made-{next(self._numbers)}",
            self._trees[body["tree"]],
            message=body["message"],
            parent=body["parents"][0],
        )
        return web.json_response({"sha": sha}, status=201)

    async def _create_ref(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.repository.branches[body["ref"].removeprefix("refs/heads/")] = body["sha"]
        return web.json_response({}, status=201)

    async def _move_ref(self, request: web.Request) -> web.Response:
        body = await request.json()
        await self.simulator.push(self.repository, request.match_info["branch"], body["sha"])
        return web.json_response({})

    async def _delete_ref(self, request: web.Request) -> web.Response:
        if self.repository.branches.pop(request.match_info["branch"], None) is None:
            return web.json_response({"message": "Not Found"}, status=404)
        return web.Response(status=204)

    async def _pulls(self, request: web.Request) -> web.Response:
        assert request.query["state"] == "open"
        return web.json_response(
            [self._shown(pull) for pull in self.repository.pulls if pull.issue.state == "open"]
        )

    async def _open(self, request: web.Request) -> web.Response:
        body = await request.json()
        pull = await self.simulator.open_pull(
            self.repository,
            head=self.repository.branches[body["head"]],
            head_ref=body["head"],
            base=body["base"],
            title=body["title"],
            body=body["body"],
        )
        return web.json_response(self._shown(pull), status=201)

    async def _edit(self, request: web.Request) -> web.Response:
        body = await request.json()
        if "base" in body:
            await self.simulator.retarget(self._pull(request), body["base"])
        if body.get("state") == "closed":
            await self.simulator.close(self._pull(request))
        return web.json_response({})

    async def _comments(self, request: web.Request) -> web.Response:
        return web.json_response(
            [
                {"id": each.id, "body": each.body, "user": {"login": each.user.login}}
                for each in self._pull(request).issue.comments
            ]
        )

    async def _react(self, request: web.Request) -> web.Response:
        self.simulator.react(int(request.match_info["id"]), (await request.json())["content"], user="person")
        return web.json_response({}, status=201)

    async def _runs(self, request: web.Request) -> web.Response:
        runs = [
            {
                "id": run.id,
                "name": run.name,
                "conclusion": run.conclusion,
                "completed_at": str(run.completed_at),
                "output": {"title": run.output.get("title")},
                "app": {"slug": self.simulator.app.slug},
            }
            for run in self.repository.runs_at(request.match_info["sha"])
        ]
        others = {**(runs[0] if runs else {}), "id": 1, "name": "graft/intent", "app": {"slug": "another"}}
        return web.json_response({"check_runs": [*runs, others] if runs else []})

    async def _rerun(self, request: web.Request) -> web.Response:
        self.simulator.rerequest_run(int(request.match_info["id"]))
        return web.json_response({}, status=201)


@asynccontextmanager
async def serving(front: Front) -> AsyncIterator[str]:
    """The URL of the API while it is served."""
    runner = web.AppRunner(front.application())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
