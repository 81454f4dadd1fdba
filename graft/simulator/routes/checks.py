"""Check runs and suites. Sizes are limited in bytes, as GitHub enforces them (github/docs#35252)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from graft.simulator.errors import ApiError, invalid, malformed, not_found
from graft.simulator.http import Call, Reply, Route, paginate, text_of
from graft.simulator.payloads import checks, events
from graft.simulator.repository_git import FULL_SHA
from graft.simulator.routes.commits import resolve
from graft.simulator.state import CheckRun, CheckSuite, Repository, World

MAX_TEXT = 65_535
MAX_ANNOTATIONS = 50
MAX_ACTIONS = 3
_ACTION_LIMITS = {"label": 20, "description": 40, "identifier": 20}
_STATUSES = ("queued", "in_progress", "completed", "waiting", "requested", "pending")
_CONCLUSIONS = (
    "action_required",
    "cancelled",
    "failure",
    "neutral",
    "success",
    "skipped",
    "stale",
    "timed_out",
)


async def create_run(call: Call) -> Reply:
    document = call.document()
    name, sha = text_of(document, "name"), text_of(document, "head_sha")
    if not name or not sha:
        missing = "name" if not name else "head_sha"
        raise malformed(f'"{missing}" wasn\'t supplied.')
    commit = await call.repository.git.read(sha) if FULL_SHA.fullmatch(sha) else None
    if commit is None or commit[0] != "commit":
        raise ApiError(422, f"No commit found for SHA: {sha}")
    world = call.server.world
    suite = suite_at(world, call.repository, sha)
    run = CheckRun(
        id=world.next_id(),
        suite=suite,
        name=name,
        status="queued",
        conclusion=None,
        external_id="",
        details_url=None,
        started_at=world.time(),
        completed_at=None,
    )
    _apply(world, run, document)
    call.repository.runs[run.id] = run
    suite.runs.append(run)
    suite.requeued = False
    _tell(call, "created", run)
    if run.status == "completed":
        _tell(call, "completed", run)
    return Reply(value=_shown(call, run), status=201)


async def update_run(call: Call) -> Reply:
    run = _run(call)
    was = run.status
    _apply(call.server.world, run, call.document())
    if run.status == "completed" and was != "completed":
        _tell(call, "completed", run)
    return Reply(value=_shown(call, run))


async def get_run(call: Call) -> Reply:
    return Reply(value=_shown(call, _run(call)))


async def list_runs(call: Call) -> Reply:
    sha = await resolve(call.repository, call.path["ref"])
    if sha is None:
        raise ApiError(422, f"No commit found for SHA: {call.path['ref']}")
    return _listed(call, call.repository.runs_at(sha))


async def list_suite_runs(call: Call) -> Reply:
    return _listed(call, call.repository.runs_at(_suite(call).head_sha))


async def get_suite(call: Call) -> Reply:
    return Reply(value=await _shown_suite(call, _suite(call)))


async def list_suites(call: Call) -> Reply:
    sha = await resolve(call.repository, call.path["ref"])
    suite = None if sha is None else call.repository.suites.get(sha)
    found = [] if suite is None else [suite]
    page, headers = paginate(call, found)
    value = {"total_count": len(found), "check_suites": [await _shown_suite(call, each) for each in page]}
    return Reply(value=value, headers=headers)


def suite_at(world: World, repository: Repository, sha: str) -> CheckSuite:
    """The suite of a commit, made when it is the first time. Only a branch of the repository gives it a name."""
    found = repository.suites.get(sha)
    if found is None:
        now = world.time()
        branch = next((name for name, tip in repository.branches.items() if tip == sha), None)
        found = CheckSuite(
            id=world.next_id(),
            repository=repository,
            head_sha=sha,
            head_branch=branch,
            created_at=now,
            updated_at=now,
        )
        repository.suites[sha] = found
    return found


def _listed(call: Call, found: list[CheckRun]) -> Reply:
    if call.query.get("filter", "latest") == "latest":
        latest: dict[str, CheckRun] = {}
        for run in found:
            latest.setdefault(run.name, run)
        found = list(latest.values())
    if "check_name" in call.query:
        found = [run for run in found if run.name == call.query["check_name"]]
    if "status" in call.query:
        found = [run for run in found if run.status == call.query["status"]]
    if call.query.get("app_id", str(call.server.app.id)) != str(call.server.app.id):
        found = []
    page, headers = paginate(call, found)
    value = {"total_count": len(found), "check_runs": [_shown(call, run) for run in page]}
    return Reply(value=value, headers=headers)


def _apply(world: World, run: CheckRun, document: dict[str, Any]) -> None:
    """Check everything first, then change the run."""
    status, conclusion = text_of(document, "status"), text_of(document, "conclusion")
    if status is not None and status not in _STATUSES:
        raise malformed(f"For 'properties/status', {status} is not a member of {list(_STATUSES)}.")
    if conclusion is not None and conclusion not in _CONCLUSIONS:
        raise malformed(f"For 'properties/conclusion', {conclusion} is not a member of {list(_CONCLUSIONS)}.")
    if status == "completed" and conclusion is None and run.conclusion is None:
        raise malformed('"conclusion" wasn\'t supplied.')
    output, actions = _output(document.get("output")), _actions(document.get("actions"))
    started = _moment(document, "started_at") or run.started_at
    completed = _moment(document, "completed_at")
    run.name = text_of(document, "name") or run.name
    run.details_url = text_of(document, "details_url") or run.details_url
    run.external_id = text_of(document, "external_id") or run.external_id
    run.started_at = started
    if conclusion is not None or status == "completed":
        run.status, run.conclusion = "completed", conclusion or run.conclusion
        run.completed_at = completed or world.time()
    elif status is not None:
        run.status, run.conclusion, run.completed_at = status, None, None
    if output is not None:
        run.annotations += len(output.pop("annotations", []))
        run.output = {**run.output, **output}
    if actions is not None:
        run.actions = actions
    run.suite.updated_at = world.time()


def _output(value: object) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise malformed("For 'properties/output', the value is not an object.")
    for name in ("title", "summary"):
        if not value.get(name):
            raise malformed(f'"{name}" wasn\'t supplied.')
    for name in ("title", "summary", "text"):
        text = text_of(value, name)
        size = 0 if text is None else len(text.encode())
        if size > MAX_TEXT:
            raise malformed(f"Only {MAX_TEXT} characters are allowed; {size} were supplied.")
    annotations = value.get("annotations") or []
    if len(annotations) > MAX_ANNOTATIONS:
        raise malformed(
            f"No more than {MAX_ANNOTATIONS} items are allowed; {len(annotations)} were supplied."
        )
    return {**value, "annotations": annotations}


def _actions(value: object) -> list[dict[str, str]] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise malformed("For 'properties/actions', the value is not an array of objects.")
    if len(value) > MAX_ACTIONS:
        raise malformed(f"No more than {MAX_ACTIONS} items are allowed; {len(value)} were supplied.")
    for action in value:
        for name, limit in _ACTION_LIMITS.items():
            text = text_of(action, name)
            if not text:
                raise malformed(f'"{name}" wasn\'t supplied.')
            if len(text) > limit:
                raise malformed(f"Only {limit} characters are allowed; {len(text)} were supplied.")
    return value


def _moment(document: dict[str, Any], name: str) -> datetime | None:
    text = text_of(document, name)
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        raise invalid("CheckRun", name, "invalid") from None


def _run(call: Call) -> CheckRun:
    found = call.repository.runs.get(call.number("check_run_id"))
    if found is None:
        raise not_found()
    return found


def _suite(call: Call) -> CheckSuite:
    wanted = call.number("check_suite_id")
    found = next((each for each in call.repository.suites.values() if each.id == wanted), None)
    if found is None:
        raise not_found()
    return found


def _shown(call: Call, run: CheckRun) -> dict[str, Any]:
    return checks.check_run(run, call.server.app, call.server.urls)


async def _shown_suite(call: Call, suite: CheckSuite) -> dict[str, Any]:
    head = await suite.repository.git.commit(suite.head_sha)
    return checks.check_suite(suite, head, call.server.app, call.server.urls)


def _tell(call: Call, action: str, run: CheckRun) -> None:
    """The App hears of its own runs, too."""
    server, repository = call.server, call.repository
    if "check_run" not in server.app.events:
        return
    envelope = events.Envelope(
        sender=server.world.user(server.app.bot_login, type="Bot"),
        urls=server.urls,
        repository=repository,
        installation=repository.installation,
    )
    payload = envelope.wrap(action, check_run=checks.check_run_in_event(run, server.app, server.urls))
    server.webhooks.emit("check_run", payload, repository.installation, repository.id)


_READ, _WRITE = ("checks:read",), ("checks:write",)
_REPO = "/repos/{owner}/{repo}"
_RUN = f"{_REPO}/check-runs/{{check_run_id}}"
_SUITE = f"{_REPO}/check-suites/{{check_suite_id}}"
ROUTES = (
    Route(method="POST", template=f"{_REPO}/check-runs", handler=create_run, needs=_WRITE),
    Route(method="GET", template=_RUN, handler=get_run, needs=_READ),
    Route(method="PATCH", template=_RUN, handler=update_run, needs=_WRITE),
    Route(method="GET", template=_SUITE, handler=get_suite, needs=_READ),
    Route(method="GET", template=f"{_SUITE}/check-runs", handler=list_suite_runs, needs=_READ),
    Route(method="GET", template=f"{_REPO}/commits/{{ref}}/check-runs", handler=list_runs, needs=_READ),
    Route(method="GET", template=f"{_REPO}/commits/{{ref}}/check-suites", handler=list_suites, needs=_READ),
)
