"""The one place where a GitHub client is built.

    github = GitHub(app_id=1, private_key=PEM, api_url="https://api.github.com")
    pull = await pulls.read_pull(github.installation(9), "octo/repo", 7)
    await github.close()

`github.app` speaks as the App (JWT), `github.installation(id)` as one installation (token). Both know their rate
limits and stay silent while one is reached. A write whose outcome is unknown is never repeated here.
"""

from __future__ import annotations

import asyncio
import datetime
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Self

import aiohttp
import msgspec

from . import limits
from .api import JSON, Api, decode
from .errors import (
    AmbiguousWrite,
    AppRefused,
    Call,
    GitHubRefused,
    GitHubUnavailable,
    InstallationUnavailable,
    read_error_body,
)
from .etags import Kept
from .pacing import Pace, WritePacer
from .tokens import AppToken, SharedToken, Token
from .transport import Reply, Request, Transport
from .wire import OnCall, Wire

GITHUB_API_URL = "https://api.github.com"


class _TokenAnswer(msgspec.Struct, frozen=True):
    token: str
    expires_at: datetime.datetime


class GitHub:
    """The App at one GitHub. `timeout` bounds a request unless the call says otherwise and stays under the
    publish lease's ten seconds; `now` is a monotonic clock, `wall` only stands in for a missing `Date`."""

    def __init__(
        self,
        *,
        app_id: int,
        private_key: str,
        api_url: str = GITHUB_API_URL,
        http: aiohttp.ClientSession | None = None,
        user_agent: str = "graft",
        timeout: float = 8.0,
        max_bytes: int = 32 * 2**20,
        pace: Pace | None = None,
        on_call: OnCall | None = None,
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._wire = Wire(
            Transport(api_url, http=http, timeout=timeout, max_bytes=max_bytes),
            user_agent=user_agent,
            on_call=on_call,
            now=now,
            wall=wall,
        )
        self._pace = pace or Pace()
        self._installations: dict[int, Installation] = {}
        self.app_id = app_id
        self.app = App(self._wire, AppToken(app_id, private_key, now=now))

    def installation(self, installation_id: int) -> Installation:
        """The client of one installation: always the same object, so limits, pace and token are shared."""
        found = self._installations.get(installation_id)
        if found is None:
            found = Installation(
                self._wire, lambda: self.app.installation_token(installation_id), installation_id, self._pace
            )
            self._installations[installation_id] = found
        return found

    @property
    def installations(self) -> Mapping[int, Installation]:
        """The clients in use, by installation."""
        return self._installations

    async def forget(self, installation_id: int) -> None:
        """Drop what is known of a deleted installation."""
        gone = self._installations.pop(installation_id, None)
        if gone is not None:
            await gone.close()

    async def close(self) -> None:
        for installation in self._installations.values():
            await installation.close()
        await self._wire.transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class App(Api):
    """Calls as the App itself."""

    def __init__(self, wire: Wire, token: AppToken) -> None:
        super().__init__(wire.transport, None)
        self._wire = wire
        self._token = token
        self._gate = limits.Gate(wire.now)

    @property
    def limits(self) -> limits.GateState:
        return self._gate.state()

    async def exchange(self, request: Request) -> Reply:
        """As `Api.exchange`; `AppRefused` when a freshly signed token is refused, too."""
        for fresh in (False, True):
            headers = self._wire.headers(request.accept, jwt=self._token.value(fresh=fresh))
            reply = await self._wire.send(request, headers, self._gate)
            if reply.status != 401:
                break
        answered = request.call.answered(reply.status, reply.headers)
        message, _ = read_error_body(reply.body) if reply.status in (401, 404) else ("", ())
        if reply.status == 401 or "integration not found" in message:
            sent_at = limits.http_date(reply.headers.get("date"))
            raise AppRefused(answered, clock_skew=None if sent_at is None else self._wire.wall() - sent_at)
        return self._wire.judge(request, reply, self._gate)

    async def installation_token(self, installation_id: int) -> Token:
        """Ask for an installation's token. Raises `InstallationUnavailable` for a suspended or deleted one."""
        route = "app/installations/{installation_id}/access_tokens"
        call = Call(method="POST", route=route, installation=installation_id)
        url = self._transport.url(route, {"installation_id": installation_id})
        try:
            reply = await self.exchange(
                Request(call=call, url=url, accept=JSON, body=b"", max_bytes=1_000_000)
            )
        except GitHubRefused as error:
            reasons = {
                403: "installation_suspended",
                404: "installation_not_found",
                410: "installation_not_found",
            }
            reason = reasons.get(error.call.status or 0)
            if reason is None:
                raise
            hint = "the installation gives no token; it was suspended or removed"
            raise InstallationUnavailable(error.call, reason=reason, hint=hint) from None
        except AmbiguousWrite as error:  # one token too many does no harm
            raise GitHubUnavailable(error.call, reason=error.reason, hint="no token came") from None
        answer = decode(call.answered(reply.status, reply.headers), reply.body, _TokenAnswer)
        sent_at = limits.http_date(reply.headers.get("date")) or self._wire.wall()
        expires_at = answer.expires_at
        if expires_at.tzinfo is None:
            expires_at = expires_at.replace(tzinfo=datetime.UTC)
        return Token(answer.token, lifetime=expires_at.timestamp() - sent_at, now=self._wire.now())


class Installation(Api):
    """Calls for one installation."""

    def __init__(
        self, wire: Wire, token: Callable[[], Awaitable[Token]], installation_id: int, pace: Pace
    ) -> None:
        super().__init__(wire.transport, installation_id)
        self._wire = wire
        self._gate = limits.Gate(wire.now)
        self._pacer = WritePacer(pace, now=wire.now)
        self._token = SharedToken(
            token,
            now=wire.now,
            replaced=lambda token: wire.etags.forget(token.generation),
        )

    @property
    def limits(self) -> limits.GateState:
        """What this installation's rate limit looks like now."""
        return self._gate.state()

    async def write_permit(self, n: int = 1, *, max_wait: float = 30.0) -> None:
        """Wait until `n` writes fit the pace. Take it before the publish lease, never inside.

        Raises `WritePaceExceeded` when the wait would pass `max_wait` seconds, `RateLimited` while the
        installation is limited."""
        self._gate.check(Call(method="POST", route="write_permit", installation=self.installation_id))
        await self._pacer.permit(n, max_wait=max_wait)

    def check_pace(self, n: int) -> None:
        """Raises what `write_permit` would raise now, reserving nothing: whoever could not write anyway need not read
        first, and use up the hour's requests."""
        self._pacer.check(n)

    async def exchange(self, request: Request) -> Reply:
        """As `Api.exchange`; a token refused with 401 is replaced and the request made once more. All of that
        together stays within the request's time."""
        self._gate.check(request.call)
        time = asyncio.get_running_loop().time
        deadline = time() + (request.seconds or self._transport.timeout)
        for _ in range(2):
            token = await self._current_token(request.call, deadline)
            key = (token.generation, request.url, request.accept)
            kept = self._wire.etags.get(key) if request.cached else None
            if kept is not None and request.lasting:
                return Reply(status=200, headers={}, body=kept.body, next_url=kept.next_url)
            headers = self._wire.headers(request.accept, token=token.value, etag=kept.etag if kept else None)
            request = msgspec.structs.replace(request, seconds=max(deadline - time(), 0.01))
            reply = await self._wire.send(request, headers, self._gate)
            if reply.status != 401:
                break
            self._token.refused(token)
        if reply.status == 304 and kept is not None:
            self._wire.noted(reply, self._gate)
            return Reply(status=200, headers=reply.headers, body=kept.body, next_url=kept.next_url)
        judged = self._wire.judge(request, reply, self._gate)
        etag = judged.headers.get("etag")
        if request.cached and etag and judged.status == 200 and self._token.is_current(token):
            self._wire.etags.put(key, Kept(etag=etag, body=judged.body, next_url=judged.next_url))
        return judged

    async def _current_token(self, call: Call, deadline: float) -> Token:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._token.get()
        except TimeoutError:
            hint = "no installation token came in time"
            raise GitHubUnavailable(call, reason="timeout", hint=hint) from None

    async def close(self) -> None:
        await self._token.close()
