"""Tables of results in the documents: printed by every bench and proof, and with `--write` put into their page.

A page of `docs/` keeps a place for each table between two comments that name it, so a figure there was always
written by the command that measured it, with the conditions it was measured under.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec import Struct

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = ("reliability", "security", "performance", "scaling")


class Table(Struct, frozen=True, kw_only=True):
    """What one command found out. `name` is its place in a page; `command` repeats it.

    `conditions` says under what it holds: a seed, sizes, how long, what else was real.
    """

    name: str
    command: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    conditions: Mapping[str, str] = {}


def machine() -> str:
    """The machine and the code that a figure was measured with, on one line."""
    commit = _git("rev-parse", "--short=10", "HEAD") or "an unknown commit"
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs")
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {commit}{' with changes' if changed else ''},"
        f" {os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()},"
        f" load {os.getloadavg()[0]:.1f}"
    )


def render(table: Table) -> str:
    """The table as markdown, its command and conditions under it."""
    lines = [
        _row(table.columns),
        _row(["---"] * len(table.columns)),
        *(_row(row) for row in table.rows),
        "",
        f"Printed by `{table.command}`; {machine()}."
        + "".join(f" {name.capitalize()}: {value}." for name, value in table.conditions.items()),
    ]
    return "\n".join(lines)


def publish(table: Table, *, write: bool) -> None:
    """Print the table; with `write` also put it into the page that keeps a place for it.

    Raises LookupError when no page has a place of that name.
    """
    text = render(table)
    print(text, flush=True)
    if not write:
        return
    for page in PAGES:
        path = ROOT / "docs" / f"{page}.md"
        before = path.read_text()
        after, places = place(table.name).subn(lambda found: f"{found[1]}\n\n{text}\n\n{found[2]}", before)
        if places:
            path.write_text(after)
            return
    raise LookupError(f"no page of docs/ has a place for the table {table.name!r}")


def place(name: str) -> re.Pattern[str]:
    """Where a page keeps the table of this name."""
    escaped = re.escape(name)
    return re.compile(rf"(<!-- table:{escaped} -->)\n.*?(<!-- /table:{escaped} -->)", re.DOTALL)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
