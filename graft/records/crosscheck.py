"""Asks Bend which laws LAWS.bend declares and compares with the scanner.

Two questions: how many laws are open for a file that imports LAWS.bend (minus those of the files it imports
itself), and for each scanned law whether Bend resolves a definition to it. The probes are temporary files in the
model directory; they are removed whatever happens, Ctrl-C included.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

from . import bend
from .bend import Bend, Reading
from .blocks import Laws
from .process import terminating
from .report import Report
from .repository import LAWS, MODEL

_BINDER = re.compile(r"[ \t]+for[ \t]+([+\-~]?)[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*:")


@contextlib.contextmanager
def probe(folder: Path, text: str) -> Iterator[str]:
    """A temporary Bend file; yields its name and removes it afterwards."""
    name = f".crosscheck-{secrets.token_hex(8)}.bend"
    path = folder / name
    with terminating():
        try:
            with open(path, "x", encoding="utf-8", newline="") as handle:
                handle.write(text)
            yield name
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def _ask(tool: Bend, folder: Path, env: Mapping[str, str], text: str) -> Reading:
    with probe(folder, text) as name:
        return bend.check(tool, name, folder, env)


def _failure(reading: Reading, report: Report, what: str) -> bool:
    """Whether the run itself did not work out; adds the problem."""
    if reading.outcome.failure:
        report.add(reading.outcome.failure, f"Bend {reading.outcome.detail} ({what})", LAWS)
        return True
    return False


def run(tool: Bend, root: Path, laws: Laws, env: Mapping[str, str], report: Report) -> None:
    """Add a problem when Bend and the scanner see different laws, or Bend's output is not understood."""
    folder = root / MODEL
    try:
        _count(tool, folder, laws, env, report)
        for law in laws.ids:
            _resolve(tool, folder, laws, law, env, report)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        report.add(
            "unreadable", f"the model directory cannot be written for the cross-check: {reason}", MODEL
        )


def _open_laws(tool: Bend, folder: Path, imports: str, env: Mapping[str, str], report: Report) -> int | None:
    reading = _ask(tool, folder, env, imports)
    if _failure(reading, report, "counting open laws"):
        return None
    if reading.open_laws is None:
        report.add("bend-output", f"Bend does not say how many laws are open: {reading.excerpt()}", LAWS)
    return reading.open_laws


def _count(tool: Bend, folder: Path, laws: Laws, env: Mapping[str, str], report: Report) -> None:
    total = _open_laws(tool, folder, "import ./LAWS.bend as M\n", env, report)
    if total is None:
        return
    below = 0
    relative = [item for item in laws.scan.imports if item.name.startswith(("./", "../"))]
    if relative:
        lines = [f"import {item.name} as Probe{index}\n" for index, item in enumerate(relative)]
        counted = _open_laws(tool, folder, "".join(lines), env, report)
        if counted is None:
            return
        below = counted
    closed = {item.name for item in laws.scan.declarations if item.kind == "def"}
    expected = len([law for law in laws.ids if law not in closed])
    if total - below != expected:
        report.add("crosscheck", f"Bend counts {total - below} open laws, the scanner {expected}", LAWS)


def binders(source: str) -> list[str]:
    """The parameters that a definition of a law takes, as they are written in it."""
    found = []
    for line in source.split("\n"):
        match = _BINDER.match(line)
        if match:
            found.append(match.group(1) + match.group(2))
    return found


def _resolve(tool: Bend, folder: Path, laws: Laws, law: str, env: Mapping[str, str], report: Report) -> None:
    line = laws.scan.line_of("law", law)
    parameters = ", ".join(binders(laws.source(law)))
    reading = _ask(tool, folder, env, f"import ./LAWS.bend as M\ndef M.{law}({parameters}):\n  {{==}}\n")
    if _failure(reading, report, f"resolving law {law}"):
        return
    if reading.undeclared("M"):
        report.add("crosscheck", f"Bend knows no law {law}", LAWS, line)
    elif reading.open_laws is None and not (reading.failed and f"M.{law}" in reading.locations):
        report.add(
            "bend-output", f"Bend's answer about law {law} is not understood: {reading.excerpt()}", LAWS, line
        )
