"""What the App and its installations share on the way to GitHub: headers, one exchange, and what its answer means.

This is where a status becomes an error of `.errors`, and where a rate limit closes the caller's gate.
"""

from __future__ import annotations

from collections.abc import Callable

from gidgethub import sansio

from . import limits
from .errors import (
    AmbiguousWrite,
    GitHubUnavailable,
    InstallationUnavailable,
    RateLimited,
    read_error_body,
    refusal,
)
from .etags import EtagCache
from .transport import Reply, Request, Transport

API_VERSION = "2022-11-28"

OnCall = Callable[[str, str, int | None, float, int | None], None]
"""Told of every request: route, method, status (`None` without an answer), seconds, installation."""


class Wire:
    """The transport with the ETags, the clocks, the metrics hook and the judgement of an answer."""

    def __init__(
        self,
        transport: Transport,
        *,
        user_agent: str,
        on_call: OnCall | None,
        now: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self.transport = transport
        self.etags = EtagCache()
        self.now = now
        self.wall = wall
        self._user_agent = user_agent
        self._on_call = on_call

    def headers(
        self, accept: str, *, token: str | None = None, jwt: str | None = None, etag: str | None = None
    ) -> dict[str, str]:
        headers = sansio.create_headers(self._user_agent, accept=accept, oauth_token=token, jwt=jwt)
        headers["x-github-api-version"] = API_VERSION
        if etag is not None:
            headers["if-none-match"] = etag
        return headers

    async def send(self, request: Request, headers: dict[str, str], gate: limits.Gate) -> Reply:
        """The answer, whatever its status. Nothing is sent while the gate is closed (`RateLimited`)."""
        call = request.call
        gate.check(call)
        if request.body:
            headers = {**headers, "content-type": "application/json"}
        started = self.now()
        status: int | None = None
        try:
            reply = await self.transport.send(request, headers)
            status = reply.status
            return reply
        finally:
            if self._on_call is not None:
                self._on_call(call.route, call.method, status, self.now() - started, call.installation)

    def noted(self, reply: Reply, gate: limits.Gate) -> limits.RateInfo:
        """Read the rate limit of an answer that was no refusal, and tell the gate."""
        rate = limits.read(reply.headers, wall=self.wall())
        gate.passed(rate)
        return rate

    def judge(self, request: Request, reply: Reply, gate: limits.Gate) -> Reply:
        """The answer if it is a good one; otherwise its error, with the gate told of a rate limit."""
        if reply.status < 300:
            self.noted(reply, gate)
            return reply
        call = request.call
        rate = limits.read(reply.headers, wall=self.wall())
        message, codes = read_error_body(reply.body)
        answered = call.answered(reply.status, reply.headers, codes)
        kind = limits.kind_of(reply.status, rate, message)
        if kind is not None:
            raise RateLimited(answered, reason=kind, retry_after=gate.refused(kind, rate))
        gate.passed(rate)
        if reply.status == 403 and "installation has been suspended" in message:
            hint = "the installation was suspended"
            raise InstallationUnavailable(answered, reason="installation_suspended", hint=hint)
        if reply.status >= 500 or reply.status == 408:
            retry_after = limits.bounded_retry_after(rate)
            if call.is_write:
                hint = "GitHub failed; the write may have been stored"
                raise AmbiguousWrite(answered, reason="server_error", hint=hint, retry_after=retry_after)
            raise GitHubUnavailable(
                answered, reason="server_error", hint="GitHub failed", retry_after=retry_after
            )
        if reply.status < 400:
            raise GitHubUnavailable(answered, reason="unexpected_answer", hint="an unexpected kind of answer")
        raise refusal(answered)
