"""The report of a play, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from graft.e2e.playing import Outcome, Played
from graft.markdown import escape_prose


def to_markdown(played: Sequence[Played], *, repository: str, github: str, at: datetime) -> str:
    """A table with one row a scenario, and a line that sums up."""
    count = {outcome: sum(each.outcome is outcome for each in played) for outcome in Outcome}
    lines = [
        "# Graft, seen from outside",
        "",
        f"{repository} on {github}, {at:%Y-%m-%d %H:%M} UTC: "
        + ", ".join(f"{number} {outcome}" for outcome, number in count.items())
        + ".",
        "",
        "| scenario | outcome | seconds | |",
        "| --- | --- | --- | --- |",
    ]
    for each in played:
        text = escape_prose(each.detail or each.what).replace("|", "\\|")
        lines.append(f"| {each.name} | {each.outcome} | {each.seconds:.1f} | {text} |")
    return "\n".join(lines) + "\n"


def to_json(played: Sequence[Played], *, repository: str, github: str, at: datetime) -> bytes:
    """One document with everything."""
    document = {"repository": repository, "github": github, "at": at, "scenarios": list(played)}
    return msgspec.json.format(msgspec.json.encode(document), indent=2)
