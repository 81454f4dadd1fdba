"""The verbs that every GitHub client offers: one request, typed answers, all pages, writes.

A route is a template (`repos/{owner}/{repo}/pulls/{number}`); it names the operation in errors and metrics, and
the values that it does not use become the query. Answers are decoded into the caller's struct: unknown fields
are ignored, a missing or wrong one is an error that names its path and never its value.
"""

from __future__ import annotations

import abc
from collections.abc import AsyncIterator, Mapping
from typing import Any, TypedDict, TypeVar

import msgspec

from .errors import Call, GitHubUnavailable
from .transport import Reply, Request, Transport, Value

T = TypeVar("T")

JSON = "application/vnd.github+json"
RAW = "application/vnd.github.raw+json"
DIFF = "application/vnd.github.diff"

PAGE = 100


class Listing(list[T]):
    """All items of a paginated answer; `complete` is false when the caller's bound cut it."""

    complete: bool = True


class Api(abc.ABC):
    """Requests with one kind of authorization. The subclass says how a request is authorized and judged."""

    def __init__(self, transport: Transport, installation_id: int | None) -> None:
        self._transport = transport
        self.installation_id = installation_id

    @abc.abstractmethod
    async def exchange(self, request: Request) -> Reply:
        """An answer below 300, or one of the errors of `graft.github.errors`."""

    async def fetch(
        self,
        route: str,
        *,
        accept: str = JSON,
        seconds: float | None = None,
        max_bytes: int | None = None,
        cached: bool = False,
        lasting: bool = False,
        **values: Value,
    ) -> Reply:
        """GET, undecoded; for bodies that are no JSON."""
        request = Request(
            call=Call(method="GET", route=route, installation=self.installation_id),
            url=self._transport.url(route, values),
            accept=accept,
            seconds=seconds,
            max_bytes=max_bytes,
            cached=cached,
            lasting=lasting,
        )
        return await self.exchange(request)

    async def get(
        self,
        route: str,
        into: type[T],
        *,
        seconds: float | None = None,
        max_bytes: int | None = None,
        cached: bool = True,
        lasting: bool = False,
        **values: Value,
    ) -> T:
        """GET one document. Conditional (a 304 is free) unless `cached` is false; not asked for again where it is
        `lasting` and still in memory."""
        reply = await self.fetch(
            route,
            accept=JSON,
            seconds=seconds,
            max_bytes=max_bytes,
            cached=cached,
            lasting=lasting,
            **values,
        )
        return self._decode("GET", route, reply, into)

    async def pages(
        self, route: str, into: type[T], *, cached: bool = True, **values: Value
    ) -> AsyncIterator[T]:
        """GET page after page, following `Link` to its end; each page decoded into `into`."""
        call = Call(method="GET", route=route, installation=self.installation_id)
        url: str | None = self._transport.url(route, {"per_page": PAGE, **values})
        seen: set[str] = set()
        while url is not None and url not in seen:
            seen.add(url)
            reply = await self.exchange(Request(call=call, url=url, accept=JSON, cached=cached))
            yield self._decode("GET", route, reply, into)
            url = reply.next_url

    async def get_all(
        self, route: str, into: type[T], *, limit: int = 3_000, cached: bool = True, **values: Value
    ) -> Listing[T]:
        """GET every item of a list, at most `limit` of them."""
        items: Listing[T] = Listing()
        async for page in self.pages(route, list[into], cached=cached, **values):  # type: ignore[valid-type]
            items.extend(page)
            if len(items) > limit:
                del items[limit:]
                items.complete = False
                break
        return items

    async def post(self, route: str, body: Mapping[str, Any], into: type[T], **values: Value) -> T:
        """POST a document. A failure that may have come after the effect is `AmbiguousWrite`."""
        return self._decode("POST", route, await self.write("POST", route, body, **values), into)

    async def patch(self, route: str, body: Mapping[str, Any], into: type[T], **values: Value) -> T:
        """PATCH a document, as `post`."""
        return self._decode("PATCH", route, await self.write("PATCH", route, body, **values), into)

    async def delete(self, route: str, **values: Value) -> None:
        """DELETE what the route names, as `post`."""
        await self.write("DELETE", route, None, **values)

    async def write(self, method: str, route: str, body: Mapping[str, Any] | None, **values: Value) -> Reply:
        """Any write, undecoded; for answers without a document."""
        call = Call(method=method, route=route, installation=self.installation_id)
        url = self._transport.url(route, values)
        data = None if body is None else msgspec.json.encode(body)
        return await self.exchange(Request(call=call, url=url, accept=JSON, body=data))

    def _decode(self, method: str, route: str, reply: Reply, into: type[T]) -> T:
        call = Call(method=method, route=route, installation=self.installation_id)
        return decode(call.answered(reply.status, reply.headers), reply.body, into)


def decode(call: Call, body: bytes, into: type[T]) -> T:
    """Decode an answer; `GitHubUnavailable` (`unexpected_answer`) names what is wrong and where, not the value."""
    try:
        return msgspec.json.decode(body, type=into)
    except msgspec.ValidationError as error:
        hint = f"not the expected document: {error}"
    except (msgspec.DecodeError, RecursionError):
        hint = "not JSON; is GITHUB_API_URL the API's root?"
    raise GitHubUnavailable(call, reason="unexpected_answer", hint=hint)


class RepositoryValues(TypedDict):
    owner: str
    repo: str


def repository(full_name: str) -> RepositoryValues:
    """`owner/name` as the values of a route; anything else is a `ValueError`."""
    owner, slash, name = full_name.partition("/")
    if not (owner and slash and name) or "/" in name:
        raise ValueError("a repository's full name is owner/name")
    return {"owner": owner, "repo": name}
