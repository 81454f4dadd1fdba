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
from threading import Event

from . import bend, process
from .bend import Bend, Reading
from .blocks import Laws
from .report import Report
from .repository import LAWS, MODEL

_IMPORT = "import ./LAWS.bend as M\n"
_BINDER = re.compile(r"[ \t]+for[ \t]+([+\-~]?)[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*:")


@contextlib.contextmanager
def probe(folder: Path, text: str) -> Iterator[str]:
    """A temporary Bend file; yields its name and removes it afterwards."""
    name = f".crosscheck-{secrets.token_hex(8)}.bend"
    path = folder / name
    try:
        with open(path, "x", encoding="utf-8", newline="") as handle:
            handle.write(text)
        yield name
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def run(tool: Bend, root: Path, laws: Laws, env: Mapping[str, str], report: Report) -> None:
    """Add a problem when Bend and the scanner see different laws, or Bend's output is not understood."""
    folder = root / MODEL
    stop = Event()
    relative = [item for item in laws.scan.imports if item.name.startswith(("./", "../"))]
    closed = {item.name for item in laws.scan.declarations if item.kind == "def"}
    open_ids = [law for law in laws.ids if law not in closed]
    below = "".join([f"import {item.name} as Probe{index}\n" for index, item in enumerate(relative)])
    counting = [_IMPORT, below] if below else [_IMPORT]
    texts = counting + [_definition(laws, law) for law in open_ids]

    def ask(text: str) -> Reading:
        with probe(folder, text) as name:
            return bend.check(tool, name, folder, env, stop)

    try:
        readings = process.side_by_side(ask, texts, stop)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        message = f"the model directory cannot be written for the cross-check: {reason}"
        report.add("unreadable", message, MODEL)
        return
    counts = [_open_laws(reading, report) for reading in readings[: len(counting)]]
    known = [count for count in counts if count is not None]
    if len(known) == len(counts):
        own = known[0] - sum(known[1:])  # laws of the files that LAWS.bend imports are not its own
        if own != len(open_ids):
            report.add("crosscheck", f"Bend counts {own} open laws, the scanner {len(open_ids)}", LAWS)
    for index, law in enumerate(open_ids):
        _resolved(readings[len(counting) + index], law, laws.scan.line_of("law", law), report)


def _open_laws(reading: Reading, report: Report) -> int | None:
    if reading.outcome.failure:
        report.add(reading.outcome.failure, f"Bend {reading.outcome.detail} (counting open laws)", LAWS)
        return None
    if reading.open_laws is None:
        report.add("bend-output", f"Bend does not say how many laws are open: {reading.excerpt()}", LAWS)
    return reading.open_laws


def binders(source: str) -> list[str]:
    """The parameters that a definition of a law takes, as they are written in it."""
    found = []
    for line in source.split("\n"):
        match = _BINDER.match(line)
        if match:
            found.append(match.group(1) + match.group(2))
    return found


def _definition(laws: Laws, law: str) -> str:
    """A definition of one law. It may be wrong: that Bend judges it as this law's is what is asked."""
    parameters = ", ".join(binders(laws.source(law)))
    return f"{_IMPORT}def M.{law}({parameters}):\n  {{==}}\n"


def _resolved(reading: Reading, law: str, line: int | None, report: Report) -> None:
    if reading.outcome.failure:
        report.add(
            reading.outcome.failure, f"Bend {reading.outcome.detail} (resolving law {law})", LAWS, line
        )
    elif reading.undeclared("M"):
        report.add("crosscheck", f"Bend knows no law {law}", LAWS, line)
    elif reading.open_laws is None and not (reading.failed and f"M.{law}" in reading.locations):
        message = f"Bend's answer about law {law} is not understood: {reading.excerpt()}"
        report.add("bend-output", message, LAWS, line)
