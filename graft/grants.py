"""What the App asks GitHub for: each permission and event with the reason, and with what goes wrong without it.

The set-up page, the manifest and `graft doctor` all speak from this one list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

LEVELS: Final[Mapping[str, int]] = {"read": 1, "write": 2, "admin": 3}


class Grant(msgspec.Struct, frozen=True):
    """`level` is `read` or `write` (an event has none); `why` it is asked for; what is missing `without` it."""

    level: str
    why: str
    without: str


PERMISSIONS: Final[Mapping[str, Grant]] = {
    "metadata": Grant(
        "read",
        "GitHub gives it with every other one: names and ids of repositories.",
        "nothing can be read at all",
    ),
    "contents": Grant(
        "read",
        "Reads diffs, commits, graft.yaml and intent records. Nothing is ever pushed.",
        "nothing on pull requests: no diff, no commits, no graft.yaml, no records",
    ),
    "pull_requests": Grant(
        "write",
        "Writes one comment on each pull request and keeps it up to date.",
        "no comment on pull requests, and no card",
    ),
    "checks": Grant(
        "write",
        "Shows neutral check runs, with buttons to rate the card.",
        "no check runs, no buttons to rate a card, and no card in the comment",
    ),
    "issues": Grant(
        "read",
        "Reads the issue that a pull request links to, and incident labels.",
        "no linked issue on cards, and no incidents by label",
    ),
}

EVENTS: Final[Mapping[str, Grant]] = {
    "pull_request": Grant(
        "", "a pull request was opened, pushed to, or changed", "pull requests are not noticed"
    ),
    "check_run": Grant(
        "", "a button or “Re-run” was pressed", "the buttons of the card and “Re-run” do nothing"
    ),
    "check_suite": Grant("", "“Re-run all checks” was pressed", "“Re-run all checks” does nothing"),
    "push": Grant(
        "",
        "graft.yaml or an intent record changed on a branch",
        "a new graft.yaml is not applied to open pull requests",
    ),
    "repository": Grant(
        "", "a repository was renamed, moved or archived", "renames and transfers are noticed late"
    ),
    "pull_request_review": Grant(
        "", "somebody reviewed, who may then rate", "who could have rated a card is known late"
    ),
    "issues": Grant("", "an incident label was set", "incidents by label are noticed late"),
}
