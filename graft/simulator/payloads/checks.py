"""Check runs and check suites as JSON."""

from __future__ import annotations

from graft.simulator.payloads.accounts import Json, Urls, app, node_id, stamp
from graft.simulator.payloads.commits import simple_commit
from graft.simulator.payloads.pulls import minimal_pull
from graft.simulator.payloads.repositories import api_url, repository, web_url
from graft.simulator.repository_git import CommitObject
from graft.simulator.state import AppRecord, CheckRun, CheckSuite


def pulls_of(suite: CheckSuite, urls: Urls) -> list[Json]:
    """The open pull requests from a branch of the same repository; forks are never named."""
    return [
        minimal_pull(pull, urls)
        for pull in suite.repository.pulls_at.get(suite.head_sha, ())
        if pull.issue.state == "open" and not pull.is_fork
    ]


def check_run(run: CheckRun, by: AppRecord, urls: Urls) -> Json:
    into = run.suite.repository
    api = f"{api_url(into, urls)}/check-runs/{run.id}"
    return {
        "id": run.id,
        "name": run.name,
        "node_id": node_id("CR", run.id),
        "head_sha": run.suite.head_sha,
        "external_id": run.external_id,
        "url": api,
        "html_url": f"{web_url(into, urls)}/runs/{run.id}",
        "details_url": run.details_url or urls.web,
        "status": run.status,
        "conclusion": run.conclusion,
        "started_at": stamp(run.started_at),
        "completed_at": stamp(run.completed_at),
        "output": {
            "title": run.output.get("title"),
            "summary": run.output.get("summary"),
            "text": run.output.get("text"),
            "annotations_count": run.annotations,
            "annotations_url": f"{api}/annotations",
        },
        "check_suite": {"id": run.suite.id},
        "app": app(by, urls),
        "pull_requests": pulls_of(run.suite, urls),
    }


def check_run_in_event(run: CheckRun, by: AppRecord, urls: Urls) -> Json:
    """Events carry more of the suite than the API does."""
    suite = run.suite
    status, conclusion = _state(suite)
    return {
        **check_run(run, by, urls),
        "check_suite": {
            "id": suite.id,
            "node_id": node_id("CS", suite.id),
            "head_branch": suite.head_branch,
            "head_sha": suite.head_sha,
            "status": status,
            "conclusion": conclusion,
            "url": f"{api_url(suite.repository, urls)}/check-suites/{suite.id}",
            "before": suite.before,
            "after": suite.head_sha,
            "pull_requests": pulls_of(suite, urls),
            "app": app(by, urls),
            "created_at": stamp(suite.created_at),
            "updated_at": stamp(suite.updated_at),
        },
    }


def check_suite(suite: CheckSuite, head: CommitObject, by: AppRecord, urls: Urls) -> Json:
    status, conclusion = _state(suite)
    api = f"{api_url(suite.repository, urls)}/check-suites/{suite.id}"
    return {
        "id": suite.id,
        "node_id": node_id("CS", suite.id),
        "head_branch": suite.head_branch,
        "head_sha": suite.head_sha,
        "status": status,
        "conclusion": conclusion,
        "url": api,
        "before": suite.before,
        "after": suite.head_sha,
        "pull_requests": pulls_of(suite, urls),
        "app": app(by, urls),
        "repository": repository(suite.repository, urls),
        "created_at": stamp(suite.created_at),
        "updated_at": stamp(suite.updated_at),
        "head_commit": simple_commit(head),
        "latest_check_runs_count": len(suite.repository.runs_at(suite.head_sha)),
        "check_runs_url": f"{api}/check-runs",
        "rerequestable": True,
        "runs_rerequestable": True,
    }


def _state(suite: CheckSuite) -> tuple[str, str | None]:
    runs = suite.repository.runs_at(suite.head_sha)
    if suite.requeued or not runs:
        return "queued", None
    if any(run.status != "completed" for run in runs):
        return "in_progress", None
    conclusions = {run.conclusion for run in runs}
    return "completed", next((c for c in ("failure", "success") if c in conclusions), runs[0].conclusion)
