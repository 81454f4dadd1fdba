"""The conformance manifest, `.intent/conform.json`: read whole and checked whole before anything runs.

Only the fields named here reach a subprocess. Whatever else a manifest holds is reported and dropped, so that
no manifest can ask for a shell, an environment or another limit.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from . import canonical
from .report import Problem
from .scanner import IDENTIFIER

PATH = ".intent/conform.json"
DEFAULT_TIMEOUT_MS = 30_000
MAX_TIMEOUT_MS = 600_000
MAX_CHECKS = 1_000
PROGRAMS = ("model", "real", "broken")
_FIELDS = ("name", "laws", *PROGRAMS, "cwd", "timeoutMs")


@dataclass(frozen=True)
class Check:
    """One row of the manifest: three argv lists that are compared."""

    name: str
    laws: tuple[str, ...]
    model: tuple[str, ...]
    real: tuple[str, ...]
    broken: tuple[str, ...]
    cwd: str
    timeout_ms: int

    def argv(self, program: str) -> tuple[str, ...]:
        return {"model": self.model, "real": self.real, "broken": self.broken}[program]


@dataclass(frozen=True)
class Manifest:
    """`checks` is complete only when there is no problem."""

    checks: tuple[Check, ...]
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]

    def naming(self, law: str) -> list[Check]:
        return [check for check in self.checks if law in check.laws]


class _Collector:
    """Collects what is wrong while the manifest is read on."""

    def __init__(self, data: bytes) -> None:
        self.text = data.decode("utf-8", "replace")
        self.problems: list[Problem] = []
        self.notes: list[Problem] = []

    def bad(self, place: str, message: str, code: str = "manifest-malformed", key: str = "") -> None:
        self.problems.append(Problem(code, f"{place}: {message}", PATH, self._line(key)))

    def ignored(self, place: str, fields: Collection[str]) -> None:
        count = len(fields)
        message = f"{place}: {count} unknown field{'s' * (count != 1)} ignored"
        self.notes.append(Problem("manifest-malformed", message, PATH))

    def _line(self, key: str) -> int | None:
        """The line of the first occurrence of a string value; the best guess a JSON reader without positions has."""
        at = self.text.find(canonical.string(key)) if key else -1
        return self.text.count("\n", 0, at) + 1 if at >= 0 else None


def parse(data: bytes, declared: Collection[str] | None) -> Manifest:
    """Read a manifest. `declared` are the laws of LAWS.bend; None leaves names unchecked (for impact)."""
    collector = _Collector(data)
    try:
        value = canonical.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, canonical.JsonError) as error:
        reason = str(error) if isinstance(error, canonical.JsonError) else "not UTF-8"
        collector.bad("$", reason)
        return Manifest((), tuple(collector.problems), ())
    checks = _checks(value, declared, collector)
    return Manifest(tuple(checks), tuple(collector.problems), tuple(collector.notes))


def _checks(value: object, declared: Collection[str] | None, collector: _Collector) -> list[Check]:
    if not isinstance(value, dict):
        collector.bad("$", "not an object")
        return []
    if isinstance(value.get("schema"), bool) or value.get("schema") != 1:
        collector.bad("$.schema", "not 1")
    unknown = [key for key in value if key not in ("schema", "checks")]
    if unknown:
        collector.ignored("$", unknown)
    raw = value.get("checks")
    if not isinstance(raw, list) or not raw or len(raw) > MAX_CHECKS:
        collector.bad("$.checks", f"not a list of 1 to {MAX_CHECKS} checks")
        return []
    checks: list[Check] = []
    names: set[str] = set()
    for index, item in enumerate(raw):
        place = f"$.checks[{index}]"
        if not isinstance(item, dict):
            collector.bad(place, "not an object")
            continue
        check = _check(item, place, declared, collector)
        if check.name in names:
            collector.bad(place + ".name", "the name is used twice", key=check.name)
        names.add(check.name)
        checks.append(check)
    return checks


def _check(
    item: Mapping[str, object], place: str, declared: Collection[str] | None, collector: _Collector
) -> Check:
    unknown = [key for key in item if key not in _FIELDS]
    if unknown:
        collector.ignored(place, unknown)
    name = item.get("name")
    if not isinstance(name, str) or not name.strip():
        collector.bad(place + ".name", "not a nonempty text")
        name = ""
    programs = [_argv(item.get(program), f"{place}.{program}", collector) for program in PROGRAMS]
    cwd = item.get("cwd", ".")
    if not isinstance(cwd, str) or not cwd or "\0" in cwd:
        collector.bad(place + ".cwd", "not a path")
        cwd = "."
    return Check(
        name=name,
        laws=_laws(item.get("laws"), place + ".laws", declared, collector),
        model=programs[0],
        real=programs[1],
        broken=programs[2],
        cwd=cwd,
        timeout_ms=_timeout(item.get("timeoutMs", DEFAULT_TIMEOUT_MS), place + ".timeoutMs", collector),
    )


def _laws(
    value: object, place: str, declared: Collection[str] | None, collector: _Collector
) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        collector.bad(place, "not a nonempty list of laws")
        return ()
    laws = []
    for index, law in enumerate(value):
        if not isinstance(law, str) or not IDENTIFIER.match(law):
            collector.bad(f"{place}[{index}]", "not a law id")
        elif declared is not None and law not in declared:
            collector.bad(f"{place}[{index}]", f"`{law}` is no law of LAWS.bend", "manifest-law", law)
        else:
            laws.append(law)
    return tuple(laws)


def _argv(value: object, place: str, collector: _Collector) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        collector.bad(place, "not a nonempty list of texts")
        return ()
    if not all(isinstance(part, str) and "\0" not in part for part in value) or not value[0]:
        collector.bad(place, "not a list of texts without NUL, the first one nonempty")
        return ()
    return tuple(value)


def _timeout(value: object, place: str, collector: _Collector) -> int:
    number = not isinstance(value, bool) and isinstance(value, (int, float))
    if not number or not 1 <= float(str(value)) <= MAX_TIMEOUT_MS or float(str(value)) % 1:
        collector.bad(place, f"not a whole number of milliseconds from 1 to {MAX_TIMEOUT_MS}")
        return DEFAULT_TIMEOUT_MS
    return int(float(str(value)))


def inside(check: Check, argument: str) -> str:
    """The repository path that an argument of a check names, or nothing when it leads outside."""
    if not argument or argument.startswith("/") or check.cwd.startswith("/") or "\\" in argument:
        return ""
    path = posixpath.normpath(posixpath.join(check.cwd, argument))
    return "" if path == "." or path.split("/")[0] == ".." else path
