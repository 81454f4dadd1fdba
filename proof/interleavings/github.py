"""A GitHub for one pull request, in memory: what the actor reads and writes, and how it goes wrong.

A request takes a while, its effect comes somewhere in between, and its answer may be lost after it (`AmbiguousWrite`,
as the real client says it). Times have whole seconds; a new comment may be missing from the list, and an older head
shown, for some seconds.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from random import Random
from typing import Any, Final

import msgspec

from graft.github import AmbiguousWrite, GitHubUnavailable, NotFound
from graft.github.api import Api
from graft.github.errors import Call
from graft.github.transport import Reply, Request, Transport, Value
from proof.interleavings.memory import EPOCH

APP_ID: Final = 7
REPOSITORY_ID: Final = 11
INSTALLATION_ID: Final = 9
FULL_NAME: Final = "octo/demo"
NUMBER: Final = 5
BASE_SHA: Final = "0" * 39 + "1"
# The list of comments catches up within this; the publisher looks again after 20 s where it matters.
LAG_SECONDS: Final = 8.0


class _Addresses(Transport):
    """The real one's URLs, each made once: there are a dozen, and making one takes longer than answering it here."""

    def __init__(self) -> None:
        super().__init__("https://api.github.test", http=None, timeout=8.0, max_bytes=1 << 20)
        self._made: dict[tuple[Any, ...], str] = {}

    def url(self, route: str, values: Mapping[str, Value]) -> str:
        key = (route, *(tuple(v) if isinstance(v, list) else v for v in values.values()))
        if key not in self._made:
            self._made[key] = super().url(route, values)
        return self._made[key]


_TRANSPORT: Final = _Addresses()
_APP: Final = {"id": APP_ID, "slug": "graft"}
_ROOT: Final = f"https://api.github.test/repos/{FULL_NAME}"

Step = Callable[[str], Awaitable[None]]


def head_sha(name: str) -> str:
    """A commit of that name."""
    return f"{ord(name):02x}" * 20


class Forge:
    """GitHub's side. `clock` gives seconds, `random` decides what lags and what is lost, `faults` how often at most:
    a need that fails again and again is given up for good, which is not what is looked at here."""

    def __init__(self, clock: Callable[[], float], random: Random, *, faults: int) -> None:
        self.clock = clock
        self.random = random
        self.faults = faults
        self.lags = random.random() < 0.3
        self.head = "A"
        self.state = "open"
        self.updated = 0.0
        self.shown_before: tuple[str, float] | None = None
        self.comments: dict[int, dict[str, Any]] = {}
        self.runs: dict[int, dict[str, Any]] = {}
        self._listed_from: dict[int, float] = {}
        self._next = 100

    def push(self, name: str) -> None:
        """Move the pull request's head."""
        self.shown_before = (self.head, self.updated)
        self.head, self.updated = name, self.clock()

    def close(self) -> None:
        self.state, self.updated = "closed", self.clock()

    def at(self, seconds: float) -> str:
        """A time as GitHub writes it."""
        return (EPOCH + timedelta(seconds=int(seconds))).isoformat()

    def fault(self) -> str | None:
        """What goes wrong with this request: nothing, or it is not acted on, or its answer is lost."""
        if not self.faults or self.random.random() >= 0.1:
            return None
        self.faults -= 1
        return self.random.choice(("refused", "lost", "lost"))

    # ---------------------------------------------------------------------------------------- answers

    def answer(self, request: Request) -> tuple[int, Any]:
        """(status, document) of a request, with its effect."""
        method = request.call.method
        path, _, query = request.url.removeprefix(_ROOT).partition("?")
        body = msgspec.json.decode(request.body) if request.body else {}
        for pattern, does in _ROUTES:
            if (found := pattern.fullmatch(f"{method} {path}")) is not None:
                return does(self, *found.groups(), query=query, body=body)
        raise LookupError(f"the GitHub in memory does not know {method} {path}")

    def pull(self, *, query: str, body: Any) -> tuple[int, Any]:
        head, updated = self.head, self.updated
        # Of two heads of one second nobody can tell which is the later, so an older one is of an earlier second.
        before = self.shown_before
        behind = self.lags and before is not None and int(before[1]) < int(updated)
        if before is not None and behind and self.clock() - updated < self.random.random() * 2.0:
            head, updated = before
        sha = head_sha(head)
        repository = {"id": REPOSITORY_ID, "full_name": FULL_NAME}
        return 200, {
            "id": 1,
            "number": NUMBER,
            "state": self.state,
            "title": "Change the limit",
            "body": "",
            "head": {"sha": sha, "ref": "feature", "repo": repository},
            "base": {"ref": "main", "repo": repository},
            "user": {"login": "ada", "id": 3, "type": "User"},
            "created_at": self.at(0),
            "updated_at": self.at(updated),
            "closed_at": self.at(updated) if self.state == "closed" else None,
            "additions": 1,
            "deletions": 1,
            "changed_files": 1,
        }

    def branch(self, *, query: str, body: Any) -> tuple[int, Any]:
        return 200, {"object": {"sha": BASE_SHA}}

    def comparison(self, sha: str, *, query: str, body: Any) -> tuple[int, Any]:
        message = f"Set the limit to {chr(int(sha[:2], 16))}"
        commit = {"message": message, "author": {"name": "Ada", "email": "ada@example.org"}}
        file = {"filename": "src/limit.py", "status": "modified", "sha": sha, "patch": _patch(sha)}
        return 200, {
            "merge_base_commit": {"sha": BASE_SHA},
            "total_commits": 1,
            "commits": [{"sha": sha, "commit": commit, "parents": [{"sha": BASE_SHA}]}],
            "files": [{**file, "additions": 1, "deletions": 1}],
        }

    def tree(self, *, query: str, body: Any) -> tuple[int, Any]:
        return 200, {"tree": []}

    def list_comments(self, *, query: str, body: Any) -> tuple[int, Any]:
        return 200, [
            row for number, row in self.comments.items() if self.clock() >= self._listed_from[number]
        ]

    def get_comment(self, number: str, *, query: str, body: Any) -> tuple[int, Any]:
        found = self.comments.get(int(number))
        return (404, {}) if found is None else (200, found)

    def create_comment(self, *, query: str, body: Any) -> tuple[int, Any]:
        now, number = self.at(self.clock()), self._new()
        behind = self.random.random() * LAG_SECONDS if self.lags else 0.0
        self._listed_from[number] = self.clock() + behind
        self.comments[number] = {
            "id": number,
            "created_at": now,
            "updated_at": now,
            "issue_url": f"{_ROOT}/issues/{NUMBER}",
            "body": body["body"],
            "user": {"login": "graft[bot]", "id": 8, "type": "Bot"},
            "performed_via_github_app": _APP,
        }
        return 201, self.comments[number]

    def update_comment(self, number: str, *, query: str, body: Any) -> tuple[int, Any]:
        if int(number) not in self.comments:
            return 404, {}
        row = {**self.comments[int(number)], **body, "updated_at": self.at(self.clock())}
        self.comments[int(number)] = row
        return 200, row

    def delete_comment(self, number: str, *, query: str, body: Any) -> tuple[int, Any]:
        return (404, {}) if self.comments.pop(int(number), None) is None else (204, {})

    def list_runs(self, sha: str, *, query: str, body: Any) -> tuple[int, Any]:
        """The latest of each name, as with `filter=latest`."""
        latest = {}
        for row in self.runs.values():
            if row["head_sha"] == sha:
                latest[row["name"]] = row
        return 200, {"check_runs": list(latest.values())}

    def create_run(self, *, query: str, body: Any) -> tuple[int, Any]:
        number = self._new()
        self.runs[number] = {**body, "id": number, "app": _APP}
        return 201, self.runs[number]

    def update_run(self, number: str, *, query: str, body: Any) -> tuple[int, Any]:
        if int(number) not in self.runs:
            return 404, {}
        self.runs[int(number)] |= body
        return 200, self.runs[int(number)]

    def _new(self) -> int:
        self._next += 1
        return self._next


def _patch(sha: str) -> str:
    return f"@@ -1 +1 @@\n-LIMIT = 0\n+LIMIT = {int(sha[:2], 16)}\n"


def _diff(sha: str) -> bytes:
    name = "src/limit.py"
    lines = (f"diff --git a/{name} b/{name}", f"--- a/{name}", f"+++ b/{name}", _patch(sha))
    return "\n".join(lines).encode()


_ROUTES: Final[tuple[tuple[re.Pattern[str], Callable[..., tuple[int, Any]]], ...]] = tuple(
    (re.compile(pattern), does)
    for pattern, does in (
        (rf"GET /pulls/{NUMBER}", Forge.pull),
        ("GET /git/ref/heads/main", Forge.branch),
        (r"GET /compare/[0-9a-f]+\.\.\.([0-9a-f]+)", Forge.comparison),
        ("GET /git/trees/[0-9a-f]+", Forge.tree),
        (rf"GET /issues/{NUMBER}/comments", Forge.list_comments),
        (rf"POST /issues/{NUMBER}/comments", Forge.create_comment),
        (r"GET /issues/comments/(\d+)", Forge.get_comment),
        (r"PATCH /issues/comments/(\d+)", Forge.update_comment),
        (r"DELETE /issues/comments/(\d+)", Forge.delete_comment),
        ("GET /commits/([0-9a-f]+)/check-runs", Forge.list_runs),
        ("POST /check-runs", Forge.create_run),
        (r"PATCH /check-runs/(\d+)", Forge.update_run),
    )
)


class Client(Api):
    """One replica's client of that GitHub: the real one's verbs, and errors, without a network."""

    def __init__(self, forge: Forge, step: Step) -> None:
        super().__init__(_TRANSPORT, INSTALLATION_ID)
        self._forge = forge
        self._step = step

    def installation(self, _installation_id: int) -> Client:
        return self

    def check_pace(self, _n: int) -> None:
        """There is no pace here."""

    async def write_permit(self, n: int = 1, *, max_wait: float = 30.0) -> None:
        """There is no pace here."""
        await self._step("permit")

    async def exchange(self, request: Request) -> Reply:
        call, forge = request.call, self._forge
        await self._step(f"{call.method} {call.route}")
        fault = forge.fault()
        if fault == "refused":
            raise GitHubUnavailable(call, reason="server_error", hint="5xx before anything was done")
        if "diff" in request.accept:
            return Reply(status=200, headers={}, body=_diff(request.url.rpartition("...")[2]))
        status, document = forge.answer(request)
        await self._step("answered")
        if fault == "lost":
            if call.is_write:
                raise AmbiguousWrite(call, reason="server_error", hint="5xx after it was stored")
            raise GitHubUnavailable(call, reason="timeout", hint="the answer was lost")
        if status == 404:
            raise NotFound(_answered(call, status), reason="not_found", hint="it is not there")
        return Reply(status=status, headers={}, body=msgspec.json.encode(document))


def _answered(call: Call, status: int) -> Call:
    return call.answered(status, {})
