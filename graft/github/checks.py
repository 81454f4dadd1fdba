"""Check runs: built within GitHub's limits, found again, created or updated complete in one request.

Graft reports and does not judge, so every run concludes `neutral`. A run belongs to (change, head, name). Two
pull requests can share a head, and GitHub lists only the latest run of a name, so the second one carries its
number in the name. The limits hold in bytes (github/docs#35252); source: the create schema of GitHub's OpenAPI.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from .api import repository
from .blocks import cut, utf8_length
from .client import Installation
from .errors import GitHubRefused

INTENT = "graft/intent"
PROVENANCE = "graft/provenance"
POLICY = "graft/policy"
RECORDS = "graft/records"
NAMES = (INTENT, PROVENANCE, POLICY, RECORDS)

OUTPUT_LIMIT = 65_535
TITLE_LIMIT = 255
_MAX_ACTIONS = 3

_CREATE = "repos/{owner}/{repo}/check-runs"
_ONE = "repos/{owner}/{repo}/check-runs/{check_run_id}"
_OF_HEAD = "repos/{owner}/{repo}/commits/{head_sha}/check-runs"


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """A button of a check run; `identifier` comes back in the `requested_action` event."""

    label: str
    description: str
    identifier: str

    def __post_init__(self) -> None:
        for field, limit in (("label", 20), ("description", 40), ("identifier", 20)):
            if not 1 <= utf8_length(getattr(self, field)) <= limit:
                raise ValueError(f"an action's {field} has 1 to {limit} bytes")


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """What a check run shows; `text` is the longer part below the summary."""

    title: str
    summary: str
    text: str | None = None


class _App(msgspec.Struct, frozen=True):
    id: int
    slug: str | None = None


class _Shown(msgspec.Struct, frozen=True):
    title: str | None = None
    summary: str | None = None
    text: str | None = None


class CheckRun(msgspec.Struct, frozen=True, kw_only=True):
    """A check run as the API returns it."""

    id: int
    name: str
    head_sha: str
    status: str
    conclusion: str | None = None
    external_id: str | None = None
    completed_at: datetime.datetime | None = None
    app: _App | None = None
    output: _Shown = _Shown()

    def is_of(self, app_id: int) -> bool:
        return self.app is not None and self.app.id == app_id


class _Page(msgspec.Struct, frozen=True):
    check_runs: list[CheckRun]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a check goes: the run to update, or `None` for a new one, and the name to give it."""

    run: CheckRun | None
    name: str


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """A check run after an `upsert`; `written` is false when nothing had changed."""

    run: CheckRun
    written: bool


def payload(
    *, name: str, head_sha: str, external_id: str, output: Output, actions: Sequence[Action] = ()
) -> dict[str, Any]:
    """The whole document of a completed, neutral check run, for create and update alike.

    Title, summary and text are cut to GitHub's limits in bytes. Raises `ValueError` for more than three actions.
    """
    if len(actions) > _MAX_ACTIONS:
        raise ValueError(f"a check run has at most {_MAX_ACTIONS} actions")
    shown = {"title": _title(output.title), "summary": _fitted(output.summary) or "-"}
    if output.text:
        shown["text"] = _fitted(output.text)
    return {
        "name": name,
        "head_sha": head_sha,
        "external_id": external_id,
        "status": "completed",
        "conclusion": "neutral",
        "output": shown,
        "actions": [msgspec.to_builtins(action) for action in actions],
    }


def place(
    runs: Iterable[CheckRun],
    *,
    name: str,
    number: int,
    belongs: Callable[[CheckRun], bool],
    orphan: Callable[[CheckRun], bool] = lambda run: False,
    stored_id: int | None = None,
) -> Place:
    """Decide between updating and creating, among our runs on one head.

    `belongs` says whether a run's `external_id` is of this change, `orphan` whether it is of nobody: a database that
    was restored knows nothing of what it published after its backup. The stored id comes first, then a run of this
    change under either name, then an orphan, the one with this change's number before the plain one, else a new
    one: under the plain name where it is free, apart otherwise.
    """
    apart = f"{name} (#{number})"
    named = [run for run in runs if run.name in (name, apart)]
    mine = [run for run in named if belongs(run)]
    stored = next((run for run in mine if run.id == stored_id), None)
    found = stored or min(mine, key=lambda run: run.id, default=None)
    run = found or min(
        (run for run in named if orphan(run)), key=lambda run: (run.name != apart, run.id), default=None
    )
    if run is not None:
        return Place(run=run, name=run.name)
    taken = any(run.name == name for run in named)
    return Place(run=None, name=apart if taken else name)


async def read_run(installation: Installation, full_name: str, check_run_id: int) -> CheckRun:
    """One check run. Raises `NotFound`."""
    return await installation.get(_ONE, CheckRun, check_run_id=check_run_id, **repository(full_name))


async def list_ours(
    installation: Installation, full_name: str, head_sha: str, *, app_id: int
) -> tuple[CheckRun, ...]:
    """This App's check runs on a head, the latest of each name: one request for all of Graft's checks."""
    ours: list[CheckRun] = []
    pages = installation.pages(
        _OF_HEAD, _Page, head_sha=head_sha, app_id=app_id, filter="latest", **repository(full_name)
    )
    async for page in pages:
        ours += (run for run in page.check_runs if run.is_of(app_id) and run.head_sha == head_sha)
        if len(ours) >= 1_000:  # GitHub keeps a thousand runs of a name
            break
    return tuple(ours)


async def upsert(
    installation: Installation,
    full_name: str,
    document: Mapping[str, Any],
    *,
    run: CheckRun | None,
    guard: Callable[[], None] = lambda: None,
) -> Published:
    """Create the check run, or update `run` where it differs. A run that vanished is created anew.

    `guard` is called before each request and may raise. Raises `AmbiguousWrite` when the outcome is unknown.
    """
    if run is not None:
        if _same(run, document):
            return Published(run=run, written=False)
        guard()
        changes = {key: value for key, value in document.items() if key != "head_sha"}
        try:
            new = await installation.patch(
                _ONE, changes, CheckRun, check_run_id=run.id, **repository(full_name)
            )
            return Published(run=new, written=True)
        except GitHubRefused as error:
            if error.reason not in ("not_found", "gone"):
                raise
    guard()
    new = await installation.post(_CREATE, document, CheckRun, **repository(full_name))
    return Published(run=new, written=True)


def _same(run: CheckRun, document: Mapping[str, Any]) -> bool:
    output = document["output"]
    return (
        (run.name, run.head_sha, run.status, run.conclusion, run.external_id)
        == tuple(document[key] for key in ("name", "head_sha", "status", "conclusion", "external_id"))
        and (run.output.title, run.output.summary) == (output["title"], output["summary"])
        and (run.output.text or None) == output.get("text")
    )


def _fitted(text: str) -> str:
    clean = text.encode("utf-8", "replace").decode().replace("\0", "")
    return cut(clean, OUTPUT_LIMIT, measure=utf8_length)


def _title(title: str) -> str:
    """One line within the limit, cut between characters."""
    line = " ".join(title.encode("utf-8", "replace").decode().replace("\0", "").split()) or "-"
    if utf8_length(line) <= TITLE_LIMIT:
        return line
    return line.encode()[: TITLE_LIMIT - 3].decode("utf-8", "ignore") + "…"
