"""Finds Bend, asks for its version, and reads what it prints.

Looked up through BEND_BIN, then PATH, then the installer's usual place. What counts as passing, as a failed
judgment and as open laws is settled here for Bend 2.0.28 and later; other output is unknown, never a pass.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import process
from .process import Outcome

TESTED = (2, 0, 35)
"""The version that the standard names; older ones are used with a note."""

TIMEOUT = 120.0
"""Seconds for one Bend run."""

_VERSION = re.compile(r"([0-9]+)\.([0-9]+)\.([0-9]+)")
_PASSED = ("All terms check.", "ALL PROOFS CHECK")
_FAILED = "SOME PROOFS FAIL"
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_LOCATION = re.compile(r"Location:[ \t]*(.*?)[ \t]*\Z")
_TODOS = re.compile(r"(?:([0-9]{1,6}) TODO\(s\)|(1) TODO) found\.\Z")


@dataclass(frozen=True)
class Bend:
    """One Bend and its version, as it printed it."""

    path: str
    version: tuple[int, int, int]

    @property
    def label(self) -> str:
        return f"Bend {'.'.join([str(part) for part in self.version])} ({self.path})"


class BendUnavailableError(Exception):
    """There is no usable Bend 2; the message says where it was looked for."""


def find(env: Mapping[str, str], cwd: Path) -> Bend:
    """The Bend to use. Raises BendUnavailableError."""
    path = locate(env)
    if not path:
        raise BendUnavailableError("not found through BEND_BIN, PATH or ~/.bend/bin")
    for arguments in (("version",), ("--version",)):
        outcome = process.run([path, *arguments], cwd=cwd, timeout=20.0, env=_quiet(env))
        match = _VERSION.search(outcome.stdout) if not outcome.failure and outcome.status == 0 else None
        if match:
            version = (int(match.group(1)), int(match.group(2)), int(match.group(3)))
            if version[0] != 2:
                raise BendUnavailableError(f"{path} is Bend {match.group()}, and Bend 2 is needed")
            return Bend(path, version)
    raise BendUnavailableError(f"{path} does not print a version")


def locate(env: Mapping[str, str]) -> str:
    """The path of a `bend` program, or nothing."""
    named = env.get("BEND_BIN", "")
    if named:
        return shutil.which(named, path=env.get("PATH")) or ""
    usual = Path(env.get("HOME") or os.path.expanduser("~")) / ".bend" / "bin" / "bend"
    return shutil.which("bend", path=env.get("PATH", os.defpath)) or (
        str(usual) if os.access(usual, os.X_OK) else ""
    )


def _quiet(env: Mapping[str, str]) -> dict[str, str]:
    return {**env, "NO_COLOR": "1"}


def check(
    bend: Bend, path: str, cwd: Path, env: Mapping[str, str], stop: threading.Event | None = None
) -> Reading:
    """Run `bend PATH --check-only` in `cwd` and read the outcome."""
    argv = [bend.path, path, "--check-only"]
    return Reading(process.run(argv, cwd=cwd, timeout=TIMEOUT, env=_quiet(env), stop=stop))


@dataclass(frozen=True)
class Reading:
    """What one Bend run says. Both streams count: which one a line is on has changed between versions."""

    outcome: Outcome

    @property
    def lines(self) -> list[str]:
        text = self.outcome.stdout + "\n" + self.outcome.stderr
        return [_ANSI.sub("", line).rstrip(" \t\r") for line in text.split("\n")]

    @property
    def passed(self) -> bool:
        """Exit 0, a full line of success on stdout, and on neither stream one of failure."""
        good = any(_ANSI.sub("", line).rstrip(" \t\r") in _PASSED for line in self.outcome.stdout.split("\n"))
        return self.outcome.status == 0 and good and not self.failed

    @property
    def failed(self) -> bool:
        """A full line says that a proof failed. A parse error says so as well."""
        return _FAILED in self.lines

    @property
    def locations(self) -> list[str]:
        """What follows `Location:`; an empty one belongs to a parse error."""
        matches = [_LOCATION.match(line) for line in self.lines]
        return [match.group(1) for match in matches if match]

    @property
    def open_laws(self) -> int | None:
        """The number of open laws, 0 for a pass, None when Bend does not say."""
        for line in self.lines:
            match = _TODOS.match(line)
            if match:
                return int(match.group(1) or match.group(2))
        return 0 if self.passed else None

    def undeclared(self, alias: str) -> bool:
        """Whether Bend refused a definition because the alias's file declares no such law."""
        expected = [
            line.lower() for line in self.lines if "expected" in line.lower() and "fresh name" in line.lower()
        ]
        return self.failed and any(alias.lower() in line for line in expected)

    def excerpt(self) -> str:
        """The first lines of what it printed, for a message."""
        kept = [line for line in self.lines if line.strip()][:4]
        return " / ".join([line[:120] for line in kept])
