"""Accepted deliveries per second, and how long one takes, at 1, 16 and 64 connections.

Three processes: a freshly started NATS server, `graft ingress`, and this one, which posts a signed `pull_request`
payload of about 12 KB over keep-alive connections, each delivery under an id of its own. A delivery counts when its
answer is 202 and the broker has acknowledged it. It is run once against a broker with `sync_interval: always` and
once with NATS' default, which syncs every two minutes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from bench import load, receivers

# ----------------------------------------------------------------------------------------------- what is posted


def _account(number: int, login: str) -> dict[str, Any]:
    root = f"https://api.github.com/users/{login}"
    names = ("followers", "following", "gists", "starred", "subscriptions", "orgs", "repos", "events")
    return {
        "login": login,
        "id": number,
        "node_id": f"U_{number}",
        "type": "User",
        "site_admin": False,
        "url": root,
        **{f"{name}_url": f"{root}/{name}" for name in names},
    }


def _repository(number: int) -> dict[str, Any]:
    root = f"https://api.github.com/repos/octo/demo{number}"
    names = (
        *("forks", "keys", "collaborators", "teams", "hooks", "events", "assignees", "branches", "tags"),
        *("blobs", "statuses", "languages", "stargazers", "contributors", "subscribers", "commits", "issues"),
    )
    return {
        "id": number,
        "name": f"demo{number}",
        "full_name": f"octo/demo{number}",
        "private": False,
        "owner": _account(1, "octo"),
        "default_branch": "main",
        "pushed_at": "2026-12-01T11:58:00Z",
        **{f"{name}_url": f"{root}/{name}{{/sha}}" for name in names},
    }


def payload() -> bytes:
    """A `pull_request` payload with the fields and about the size of GitHub's."""
    repository, author = _repository(70), _account(5, "ann")
    return json.dumps(
        {
            "action": "synchronize",
            "number": 12,
            "pull_request": {
                "id": 900,
                "number": 12,
                "state": "open",
                "title": "Retry the payment when the gateway times out",
                "body": "The gateway answers 504 now and then.\n\n" + "It is safe to try again. " * 40,
                "user": author,
                "created_at": "2026-12-01T09:00:00Z",
                "updated_at": "2026-12-01T12:00:00Z",
                "head": {"ref": "retry", "sha": "a" * 40, "user": author, "repo": repository},
                "base": {"ref": "main", "sha": "b" * 40, "user": author, "repo": repository},
                "labels": [{"id": 1, "name": "bug", "color": "ff0000"}],
                "requested_reviewers": [_account(6, "bob"), _account(8, "eve")],
                "additions": 40,
                "deletions": 3,
                "changed_files": 4,
            },
            "repository": repository,
            "installation": {"id": 7, "node_id": "I_7"},
            "sender": author,
        }
    ).encode()


def measure(*, sync_always: bool, seconds: float) -> bool:
    """Print the figures for one kind of broker; whether every delivery was accepted."""
    body = payload()
    name = "sync_interval: always" if sync_always else "sync_interval: 2m (the default)"
    print(f"ingress, {name}, pull_request payload of {len(body):,} bytes, {seconds:g} s each")
    good = True
    with (
        tempfile.TemporaryDirectory(prefix="graft-bench-") as directory,
        receivers.graft(Path(directory), sync_always=sync_always) as receiver,
    ):
        delivery = load.Delivery(event="pull_request", body=body)
        source = load.requests([delivery], port=receiver.port, secret=receivers.SECRET)

        def post(connections: int, seconds: float) -> load.Load:
            return load.post(
                source, port=receiver.port, taken=receiver.taken, connections=connections, seconds=seconds
            )

        post(4, 0.5)  # warm up
        for connections in load.CONNECTIONS:
            found = post(connections, seconds)
            good = good and not found.refused
            print(
                f"  {connections:3} connections: {found.rate:7,.0f}/s accepted, p50"
                f" {found.percentile(50) * 1000:6.2f} ms, p99 {found.percentile(99) * 1000:6.2f} ms,"
                f" {found.refused} refused"
            )
    return good


def main(argv: list[str]) -> int:
    """Run both kinds; 1 when a delivery was refused."""
    parser = argparse.ArgumentParser(prog="python -m bench ingress", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each measurement")
    arguments = parser.parse_args(argv)
    results = [measure(sync_always=always, seconds=arguments.seconds) for always in (True, False)]
    return 0 if all(results) else 1
