"""The shapes between aiohttp and the routes: a call, a reply, a route, and how lists are cut into pages."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec
from yarl import URL

from graft.simulator.errors import ApiError, malformed, not_found
from graft.simulator.identity import Grant
from graft.simulator.state import Installation, Issue, Pull, Repository

if TYPE_CHECKING:
    from graft.simulator.server import GitHubServer

T = TypeVar("T")
JSON = "application/json; charset=utf-8"
_SLASHED = re.compile(r"\{(basehead|branch|path|ref|tree_sha)\}")


@dataclass(kw_only=True)
class Call:
    """One request, after the caller was let in."""

    server: GitHubServer
    url: URL
    accept: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    content: bytes
    grant: Grant | None
    repository_or_none: Repository | None = None

    @property
    def repository(self) -> Repository:
        if self.repository_or_none is None:
            raise not_found()
        return self.repository_or_none

    @property
    def installation(self) -> Installation:
        if self.grant is None:
            raise not_found()
        return self.grant.installation

    def number(self, name: str) -> int:
        """A number from the path; anything else is not there."""
        text = self.path[name]
        if not text.isascii() or not text.isdigit() or len(text) > 18:
            raise not_found()
        return int(text)

    def issue(self) -> Issue:
        found = self.repository.issues.get(self.number("number"))
        if found is None:
            raise not_found()
        return found

    def pull(self) -> Pull:
        pull = self.issue().pull
        if pull is None:
            raise not_found()
        return pull

    def wants(self, *formats: str) -> bool:
        """Whether the caller accepts one of GitHub's own media types (`diff`, `raw`)."""
        return any(
            f"application/vnd.github.{form}" in self.accept
            or f"application/vnd.github.v3.{form}" in self.accept
            for form in formats
        )

    def document(self) -> dict[str, Any]:
        """The request's JSON object; an absent body is an empty one."""
        if not self.content.strip():
            return {}
        try:
            document = msgspec.json.decode(self.content)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise ApiError(400, "Problems parsing JSON") from None
        if not isinstance(document, dict):
            raise ApiError(400, "Body should be a JSON object")
        return document


def text_of(document: Mapping[str, Any], name: str, default: str | None = None) -> str | None:
    """A string member, or 422 when it is something else."""
    value = document.get(name, default)
    if value is not None and not isinstance(value, str):
        raise malformed(f"For 'properties/{name}', {value.__class__.__name__} is not a string.")
    return value


@dataclass(kw_only=True)
class Reply:
    """An answer: a JSON `value`, or `content` of another type."""

    value: Any = None
    status: int = 200
    content: bytes | None = None
    content_type: str = JSON
    media_type: str = "github.v3; format=json"
    headers: dict[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        if self.content is not None:
            return self.content
        return b"" if self.status in (204, 304) else msgspec.json.encode(self.value)


Handler = Callable[[Call], Awaitable[Reply]]


@dataclass(frozen=True, kw_only=True)
class Route:
    """One operation. `needs` are the permissions of which the caller must have one (`name:level`).

    `template` is for people; `pattern` lets the parameters that may hold slashes do so. A `page` is a part of the
    web interface and not of the API: it is never below the API's prefix.
    """

    method: str
    template: str
    handler: Handler
    caller: Literal["installation", "app", "either", "anyone"] = "installation"
    needs: tuple[str, ...] = ()
    page: bool = False

    @property
    def target(self) -> str:
        """The name by which logs and faults know this operation."""
        return f"{self.method} {self.template}"

    @property
    def pattern(self) -> str:
        return _SLASHED.sub(
            lambda match: f"{{{match[1]}:.{'*' if match[1] == 'path' else '+'}}}", self.template
        )


def page_size(query: Mapping[str, str], default: int = 30) -> int:
    """`per_page`, brought into GitHub's bounds."""
    return min(_positive(query.get("per_page"), default), 100)


def paginate(call: Call, items: Sequence[T], *, default: int = 30) -> tuple[Sequence[T], dict[str, str]]:
    """One page of a list and the `Link` header that leads to the others, by repository id as GitHub does."""
    size, page = page_size(call.query, default), _positive(call.query.get("page"), 1)
    last = max(1, -(-len(items) // size))
    wanted: list[tuple[str, int]] = []
    if page > 1:
        wanted.append(("prev", page - 1))
    if page < last:
        wanted += [("next", page + 1), ("last", last)]
    if page > 1:
        wanted.append(("first", 1))
    links = ", ".join(f'<{_page_url(call, number)}>; rel="{rel}"' for rel, number in wanted)
    return items[(page - 1) * size : page * size], {"Link": links} if links else {}


def _page_url(call: Call, page: int) -> str:
    url = call.url.update_query(page=str(page))
    if call.repository_or_none is None or "owner" not in call.path:
        return str(url)
    repository = call.repository_or_none
    named = f"/repos/{call.path['owner']}/{call.path['repo']}"
    return str(url).replace(named, f"/repositories/{repository.id}", 1)


def _positive(text: str | None, default: int) -> int:
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 9:
        return default
    return int(text) or default
