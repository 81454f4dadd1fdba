"""Webhook payloads in the shape GitHub sends them, cut to a few more fields than Graft reads."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

HEAD = "a" * 40
BASE = "b" * 40

REPOSITORY = {
    "id": 70,
    "full_name": "octo/demo",
    "name": "demo",
    "private": False,
    "default_branch": "main",
    "pushed_at": "2026-12-01T11:58:00Z",
}
SENDER = {"id": 5, "login": "ann", "type": "User", "node_id": "U_5"}
INSTALLATION = {"id": 7, "node_id": "I_7"}

PULL = {
    "id": 900,
    "number": 12,
    "title": "SECRET TITLE",
    "body": "SECRET BODY",
    "state": "open",
    "draft": False,
    "updated_at": "2026-12-01T12:00:00Z",
    "head": {"sha": HEAD, "ref": "feature", "repo": REPOSITORY},
    "base": {"sha": BASE, "ref": "main", "repo": REPOSITORY},
    "labels": [],
}

BODIES: dict[str, dict[str, Any]] = {
    "pull_request": {"action": "opened", "number": 12, "pull_request": PULL},
    "pull_request_review": {
        "action": "submitted",
        "review": {
            "id": 3,
            "body": "SECRET REVIEW",
            "state": "approved",
            "submitted_at": "2026-12-01T12:01:00Z",
        },
        "pull_request": PULL,
    },
    "check_run": {
        "action": "requested_action",
        "requested_action": {"identifier": "accurate"},
        "check_run": {
            "id": 81,
            "name": "graft/intent",
            "head_sha": HEAD,
            "external_id": "x",
            "app": {"id": 4242, "slug": "graft-test"},
            "pull_requests": [{"number": 12, "id": 900}],
        },
    },
    "check_suite": {
        "action": "rerequested",
        "check_suite": {"id": 82, "head_sha": HEAD, "app": {"id": 4242}, "pull_requests": [{"number": 12}]},
    },
    "push": {
        "ref": "refs/heads/main",
        "before": BASE,
        "after": HEAD,
        "deleted": False,
        "head_commit": {"message": "SECRET COMMIT"},
    },
    "issues": {
        "action": "labeled",
        "label": {"name": "incident"},
        "issue": {
            "number": 31,
            "title": "SECRET ISSUE",
            "updated_at": "2026-12-01T12:02:00Z",
            "labels": [{"name": "incident"}],
        },
    },
    "repository": {"action": "renamed", "changes": {"repository": {"name": {"from": "old"}}}},
    "installation": {"action": "created", "repositories": [{"id": 70, "full_name": "octo/demo"}]},
    "installation_repositories": {"action": "added", "repositories_added": [{"id": 71}]},
}

Payloads = Callable[..., dict[str, Any]]


@pytest.fixture
def payload() -> Payloads:
    """`payload(event, **top_level_fields)`: a fresh payload of that event."""

    def make(event: str, **fields: Any) -> dict[str, Any]:
        made = {"repository": REPOSITORY, "sender": SENDER, "installation": INSTALLATION, **BODIES[event]}
        if event.startswith("installation"):
            del made["repository"]
        return copy.deepcopy({**made, **fields})

    return make


@pytest.fixture
def run_python() -> Callable[[str], str]:
    """Runs a program in an interpreter of its own; returns all that it printed."""

    def run(program: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
        )
        return done.stdout + done.stderr

    return run
