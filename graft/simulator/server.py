"""The simulated GitHub as an aiohttp application: who is let in, what goes wrong, and the headers around answers.

Every request passes the same steps: latency and faults, identity, rate limit, repository (a former name
leads on with 301), permission, the route itself, then the `ETag`, which belongs to the caller's token.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from email.utils import formatdate

from aiohttp import web
from yarl import URL

from graft.simulator import identity
from graft.simulator.comparison import Comparisons
from graft.simulator.errors import DOCUMENTATION, ApiError, not_found
from graft.simulator.faults import Faults, Rule
from graft.simulator.http import JSON, Call, Reply, Route
from graft.simulator.payloads.accounts import Urls
from graft.simulator.repository_git import GitRepository
from graft.simulator.state import AppRecord, Installation, Repository, World
from graft.simulator.webhooks import Webhooks

MAX_BODY = 10 * 1024 * 1024
LOG_SIZE = 200_000
_NO_AGENT = (
    "Request forbidden by administrative rules. Please make sure your request has a User-Agent header."
)
_LEVELS = {"read": 1, "write": 2, "admin": 3}


@dataclass(frozen=True, kw_only=True)
class RequestRecord:
    """One answered request. `route` is the template (`/repos/{owner}/{repo}`), `path` what was asked for.
    `status` is 0 for a request that got no answer."""

    method: str
    route: str
    path: str
    status: int
    installation_id: int | None
    request_id: str
    at: float
    seconds: float


class RequestLog(deque[RequestRecord]):
    """The latest requests, oldest first."""

    def count(  # type: ignore[override]  # a deque's own count() of equal records would serve nobody
        self, *, method: str | None = None, route: str | None = None, status: int | None = None
    ) -> int:
        """How many requests fit everything that is given."""
        return sum(
            (method is None or each.method == method)
            and (route is None or each.route == route)
            and (status is None or each.status == status)
            for each in self
        )


class GitHubServer:
    """State, faults and webhooks, and the application that serves them under `prefix`."""

    def __init__(
        self, world: World, app: AppRecord, private_key: str, *, prefix: str, routes: Iterable[Route]
    ) -> None:
        self.world = world
        self.app = app
        self.private_key = private_key
        self.public_key = identity.public_key(private_key)
        self.tokens = identity.Tokens()
        routes = tuple(routes)
        self.faults = Faults({route.target for route in routes})
        self.webhooks = Webhooks(world, app, self.faults)
        self.requests = RequestLog(maxlen=LOG_SIZE)
        self.urls = Urls("", "")
        self.manifest_codes: set[str] = set()
        self.prefix = prefix
        self._comparisons: dict[GitRepository, Comparisons] = {}
        self.application = web.Application(client_max_size=MAX_BODY)
        for route in routes:
            self._add_route(route)
        nowhere = Route(method="*", template="*", handler=_nothing_here, caller="anyone")
        self.application.router.add_route("*", "/{anything:.*}", self._endpoint(nowhere))

    def comparisons(self, repository: Repository) -> Comparisons:
        """The differences of a repository; forks share those of their common git repository."""
        return self._comparisons.setdefault(repository.git, Comparisons(repository.git))

    def _add_route(self, route: Route) -> None:
        add = self.application.router.add_route
        handler = self._endpoint(route)
        add(route.method, ("" if route.page else self.prefix) + route.pattern, handler)
        if route.template.startswith("/repos/{owner}/{repo}"):
            by_id = route.pattern.replace("/repos/{owner}/{repo}", "/repositories/{repository_id}", 1)
            add(route.method, self.prefix + by_id, handler)

    def _endpoint(self, route: Route) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def endpoint(request: web.Request) -> web.StreamResponse:
            return await self._handle(request, route)

        return endpoint

    async def _handle(self, request: web.Request, route: Route) -> web.StreamResponse:
        began = time.perf_counter()
        request_id = _request_id()
        token = _token(request)
        grant = self.tokens.grants.get(token)
        installation = None if grant is None else grant.installation
        status = 0
        try:
            await self.faults.delay(route.target, installation)
            rule = self.faults.take(route.target, installation, "before")
            if rule is not None:
                reply = await self._strike(request, rule)
            else:
                reply = await self._answer(request, route, token)
                after = self.faults.take(route.target, installation, "after")
                if after is not None:
                    reply = await self._strike(request, after)
            response = self._finish(request, reply, token, installation, request_id)
            if request.transport is not None and not request.transport.is_closing():
                status = response.status
            return response
        finally:
            self.requests.append(
                RequestRecord(
                    method=request.method,
                    route=route.template,
                    path=request.raw_path,
                    status=status,
                    installation_id=None if installation is None else installation.id,
                    request_id=request_id,
                    at=self.world.now(),
                    seconds=time.perf_counter() - began,
                )
            )

    async def _strike(self, request: web.Request, rule: Rule) -> Reply:
        if rule.outcome == "drop" and request.transport is not None:
            request.transport.abort()
        if rule.outcome == "hang":
            await self.faults.wait()
        return _refusal(ApiError(rule.status, rule.message, headers=rule.headers))

    async def _answer(self, request: web.Request, route: Route, token: str) -> Reply:
        try:
            if not request.headers.get("User-Agent"):
                raise ApiError(403, _NO_AGENT)
            grant = self._let_in(route, token)
            call = Call(
                server=self,
                url=URL(self.urls.api + request.raw_path[len(self.prefix) :], encoded=True),
                accept=request.headers.get("Accept", ""),
                path=request.match_info,
                query=request.query,
                content=await request.read() if request.can_read_body else b"",
                grant=grant,
            )
            if "{owner}/{repo}" in route.template:
                call.repository_or_none = self._repository(call, request.method)
            self._permit(route, call)
            return await route.handler(call)
        except ApiError as error:
            return _refusal(error)

    def _let_in(self, route: Route, token: str) -> identity.Grant | None:
        now = self.world.now()
        if route.caller == "anyone":
            return None
        if token.startswith("ghs_"):
            if route.caller == "app":
                raise ApiError(401, "A JSON web token could not be decoded")
            grant = self.tokens.check(token, now)
            self._count(grant.installation, now)
            return grant
        if route.caller == "installation":
            raise ApiError(401, "Bad credentials" if token else "Requires authentication")
        if self.faults.refuse_app_key:
            raise ApiError(401, "A JSON web token could not be decoded")
        identity.check_app_token(token, self.app, self.public_key, now)
        return None

    def _count(self, installation: Installation, now: float) -> None:
        if now >= installation.reset_at:
            installation.used, installation.reset_at = 0, int(now) + 3600
        if installation.used >= installation.hourly_limit:
            raise ApiError(
                403,
                f"API rate limit exceeded for installation ID {installation.id}.",
                documentation=f"{DOCUMENTATION}/using-the-rest-api/rate-limits-for-the-rest-api",
            )
        installation.used += 1

    def _repository(self, call: Call, method: str) -> Repository:
        by_id = "repository_id" in call.path
        if by_id:
            found = self.world.repositories.get(call.number("repository_id"))
        else:
            found = self.world.repository_named(call.path["owner"], call.path["repo"])
        if found is None or found.deleted:
            raise not_found()
        if call.grant is not None and not _covers(call.grant, found):
            raise not_found()
        asked = None if by_id else f"{call.path['owner']}/{call.path['repo']}"
        if asked is not None and asked.lower() != found.full_name.lower():
            rest = call.url.raw_path_qs.partition(f"/repos/{asked}")[2]
            location = f"{self.urls.api}/repositories/{found.id}{rest}"
            raise _Moved(location, status=301 if method in ("GET", "HEAD") else 307)
        if found.archived and method not in ("GET", "HEAD"):
            raise ApiError(403, "Repository was archived so is read-only.")
        return found

    def _permit(self, route: Route, call: Call) -> None:
        if call.grant is None or not route.needs:
            return
        held = call.grant.permissions
        for need in route.needs:
            name, _, level = need.partition(":")
            if _LEVELS.get(held.get(name, ""), 0) >= _LEVELS[level]:
                return
        accepted = "; ".join(need.replace(":", "=") for need in route.needs)
        raise ApiError(
            403,
            "Resource not accessible by integration",
            headers={"X-Accepted-GitHub-Permissions": accepted},
        )

    def _finish(
        self,
        request: web.Request,
        reply: Reply,
        token: str,
        installation: Installation | None,
        request_id: str,
    ) -> web.Response:
        now = self.world.now()
        headers = {
            "Server": "github.com",
            "Date": formatdate(now, usegmt=True),
            "X-GitHub-Media-Type": reply.media_type,
            "X-GitHub-Request-Id": request_id,
            "x-github-api-version-selected": request.headers.get("X-GitHub-Api-Version", "2022-11-28"),
            "Cache-Control": "private, max-age=60, s-maxage=60",
            "Vary": "Accept, Authorization, Cookie, X-GitHub-OTP, Accept-Encoding, X-Requested-With",
            **reply.headers,
        }
        status, content = reply.status, reply.encoded()
        if request.method in ("GET", "HEAD") and status == 200:
            headers["ETag"] = _etag(token, reply.content_type, content)
            if headers["ETag"].removeprefix("W/") in _tags(request.headers.get("If-None-Match", "")):
                status, content = 304, b""
                if installation is not None and installation.used > 0:
                    installation.used -= 1  # a 304 is free
        if installation is not None:
            headers.update(_limits(installation))
        if status not in (204, 304):
            headers["Content-Type"] = reply.content_type
        return web.Response(status=status, body=content, headers=headers)


class _Moved(ApiError):
    def __init__(self, location: str, *, status: int) -> None:
        word = "Moved Permanently" if status == 301 else "Temporary Redirect"
        super().__init__(status, word, headers={"Location": location})
        self.location = location

    def body(self) -> dict[str, object]:
        return {"message": self.message, "url": self.location, "documentation_url": self.documentation}


def _refusal(error: ApiError) -> Reply:
    return Reply(value=error.body(), status=error.status, content_type=JSON, headers=error.headers)


async def _nothing_here(call: Call) -> Reply:
    raise not_found()


def _covers(grant: identity.Grant, repository: Repository) -> bool:
    if repository.installation is not grant.installation:
        return False
    return grant.repository_ids is None or repository.id in grant.repository_ids


def _token(request: web.Request) -> str:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() in ("bearer", "token") else ""


def _request_id() -> str:
    word = secrets.token_hex(14).upper()
    return f"{word[:4]}:{word[4:10]}:{word[10:17]}:{word[17:24]}:{word[20:28]}"


def _etag(token: str, kind: str, content: bytes) -> str:
    digest = hashlib.blake2b(f"{token}\n{kind}\n".encode() + content, digest_size=32).hexdigest()
    return f'W/"{digest}"'


def _tags(header: str) -> set[str]:
    return {tag.strip().removeprefix("W/") for tag in header.split(",")}


def _limits(installation: Installation) -> dict[str, str]:
    return {
        "X-RateLimit-Limit": str(installation.hourly_limit),
        "X-RateLimit-Remaining": str(max(0, installation.hourly_limit - installation.used)),
        "X-RateLimit-Used": str(installation.used),
        "X-RateLimit-Reset": str(int(installation.reset_at)),
        "X-RateLimit-Resource": "core",
    }
