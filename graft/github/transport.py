"""One HTTP exchange with GitHub: bounded in time and size, redirects followed on the same host only.

The edge of the package: URLs are built from route templates, aiohttp does the talking, and every way an
exchange can fail comes out as an error of `.errors` without a request or a response in it. No proxy from the
environment is used, no cookie is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import lru_cache
from urllib.parse import urlencode, urljoin, urlsplit

import aiohttp
import msgspec
import uritemplate
import yarl

from .errors import AmbiguousWrite, Call, GitHubRefused, GitHubUnavailable, ResponseTooLarge

Value = str | int | bool | None | Sequence[str]

_REDIRECTS = (301, 302, 307, 308)
_MAX_REDIRECTS = 5
_CONNECTIONS = 64  # GitHub bears 100 requests at a time, of all clients of an App together
_CONNECT_SECONDS = 5.0


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What to ask: `seconds` and `max_bytes` bound this one exchange, `None` means the client's own bounds;
    `cached` makes it conditional; `lasting`, of what is named by its SHA, spares even that while the token that read
    it lives."""

    call: Call
    url: str
    accept: str
    body: bytes | None = None
    seconds: float | None = None
    max_bytes: int | None = None
    cached: bool = False
    lasting: bool = False


@lru_cache(maxsize=256)
def _template(route: str) -> uritemplate.URITemplate:
    """A route as it is written in the code: there are some dozens, and parsing one takes as long as a small request."""
    return uritemplate.URITemplate(route)


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as it came: `headers` with keys in lower case, the whole body, the next page's URL if any."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    next_url: str | None = None


class Transport:
    """Requests to one API root, with GitHub Enterprise's path prefix where there is one."""

    def __init__(
        self, api_url: str, *, http: aiohttp.ClientSession | None, timeout: float, max_bytes: int
    ) -> None:
        self._root = api_url.rstrip("/") + "/"
        self._origin = _origin(self._root)
        self._http = http
        self._owns_http = http is None
        self.timeout = timeout
        self._max_bytes = max_bytes

    def url(self, route: str, values: Mapping[str, Value]) -> str:
        """Expand a route template (RFC 6570); values that it does not name become the query.

        Everything is percent-encoded. A path value that would climb (`..`), vanish (`.`) or be empty is refused:
        `GitHubRefused`, reason `bad_path`.
        """
        template = _template(route)
        names = set(template.variable_names)
        for name in names:
            value = values.get(name)
            for part in value if isinstance(value, (list, tuple)) else (str(value),):
                if value is None or part in ("", ".", ".."):
                    raise GitHubRefused(
                        Call(method="GET", route=route), reason="bad_path", hint=f"{name} is no path segment"
                    )
        path = template.expand({name: _text(values[name]) for name in names})
        query = {key: _text(value) for key, value in values.items() if key not in names and value is not None}
        return self._root + path + (f"?{urlencode(query, doseq=True)}" if query else "")

    async def send(self, request: Request, headers: Mapping[str, str]) -> Reply:
        """Make the request and read the answer, whatever its status.

        Raises `GitHubUnavailable` when no answer was had and the request cannot have been acted on,
        `AmbiguousWrite` when a write may have been, `ResponseTooLarge`, and `GitHubRefused` (`bad_redirect`)
        for a redirect that leads to another host or in circles: a token is sent to one host only.
        """
        call, url = request.call, request.url
        seconds = request.seconds or self.timeout
        try:
            async with asyncio.timeout(seconds):
                for _ in range(_MAX_REDIRECTS + 1):
                    async with self._session().request(
                        call.method,
                        yarl.URL(url, encoded=True),
                        headers=headers,
                        data=request.body,
                        timeout=aiohttp.ClientTimeout(
                            total=None, sock_connect=min(seconds, _CONNECT_SECONDS)
                        ),
                        allow_redirects=False,
                    ) as response:
                        if response.status not in _REDIRECTS:
                            return await self._reply(call, response, request.max_bytes or self._max_bytes)
                        url = self._redirected(
                            call, response.status, url, response.headers.get("location", "")
                        )
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            raise GitHubUnavailable(call, reason="unreachable", hint="no connection to the API") from None
        except TimeoutError:
            raise _lost(call, "timeout", f"no answer within {seconds:g} s") from None
        except (aiohttp.ClientError, OSError):
            raise _lost(call, "connection_lost", "the connection broke before the answer was read") from None
        raise GitHubRefused(call, reason="bad_redirect", hint=f"more than {_MAX_REDIRECTS} redirects")

    async def close(self) -> None:
        """Close the session, unless it was given by the caller."""
        if self._owns_http and self._http is not None:
            await self._http.close()

    def _session(self) -> aiohttp.ClientSession:
        if self._http is None:
            self._http = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=_CONNECTIONS),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        return self._http

    async def _reply(self, call: Call, response: aiohttp.ClientResponse, limit: int) -> Reply:
        return Reply(
            status=response.status,
            headers={key.lower(): value for key, value in response.headers.items()},
            body=await _read(call, response, limit),
            next_url=self._next(response),
        )

    def _redirected(self, call: Call, status: int, url: str, location: str) -> str:
        try:
            target = urljoin(url, location)
            same_host = bool(location) and _origin(target) == self._origin
            target = str(yarl.URL(target))  # quotes what a header may hold and a request line may not
        except ValueError:
            same_host = False
        if not same_host:
            answered = call.answered(status, {})
            raise GitHubRefused(answered, reason="bad_redirect", hint="the redirect leaves the API's host")
        return target

    def _next(self, response: aiohttp.ClientResponse) -> str | None:
        """The next page by the `Link` header; a link to another host is no next page."""
        try:
            link = response.links.get("next")
            url = None if link is None else str(link["url"])
            return url if url is not None and _origin(url) == self._origin else None
        except (KeyError, ValueError):
            return None


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    if parts.username is not None:
        raise ValueError("credentials in a URL")
    return parts.scheme, (parts.hostname or "").lower(), port


def _text(value: Value) -> str | list[str]:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return [str(part) for part in value]
    return str(value)


async def _read(call: Call, response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The body after decompression, never more than `limit` bytes of it."""
    chunks = bytearray()
    async for chunk in response.content.iter_chunked(65_536):
        chunks += chunk
        if len(chunks) > limit:
            response.close()
            raise ResponseTooLarge(call.answered(response.status, {}), limit=limit)
    return bytes(chunks)


def _lost(call: Call, reason: str, hint: str) -> GitHubUnavailable:
    if call.is_write:
        return AmbiguousWrite(call, reason=reason, hint=f"{hint}; the write may have been stored")
    return GitHubUnavailable(call, reason=reason, hint=hint)
