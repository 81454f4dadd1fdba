"""Modules of a record: which clauses are judged with which laws, and the slice of the record that a judge sees.

Each clause and each law belongs to exactly one module. A module's state is the record without the Modules
section and without the rule lines of other modules; a line is shared, a rule line, or part of that section.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .record import MODULES, Record
from .report import Problem
from .scanner import NAME

_BULLET = re.compile(r"- ([a-z][a-z0-9-]{0,63}): ([^;]+); laws: (.+)\Z")
_CLAUSES = re.compile(r"R([1-9][0-9]{0,3})(?:-R([1-9][0-9]{0,3}))?\Z")
_PATTERN = re.compile(rf"(?:{NAME}\*?|[A-Za-z_][A-Za-z0-9_.]*\*|\*)\Z")
_RULE_LINE = re.compile(r"R([1-9][0-9]{0,3}):[ \t]*(.*)\Z")
_HEADING = re.compile(r"## (.*?)[ \t]*\Z")
_OTHER_LINE_END = re.compile("\r(?!\n)|\u2028|\u2029")


@dataclass(frozen=True)
class Module:
    """A resolved module: clause ids as written, law ids pattern by pattern in LAWS order."""

    name: str
    clauses: tuple[str, ...]
    laws: tuple[str, ...]


@dataclass(frozen=True)
class Resolution:
    modules: tuple[Module, ...]
    problems: tuple[Problem, ...]


def _split(text: str) -> list[str]:
    return [part.strip(" \t") for part in text.split(",")]


def resolve(record: Record, law_ids: Sequence[str]) -> Resolution:
    """The modules of a record that declares some, against the laws there are now."""
    problems: list[Problem] = []

    def problem(code: str, message: str, line: int | None) -> None:
        problems.append(Problem(code, message, record.path, line, record.id))

    modules: list[Module] = []
    owners: dict[str, str] = {}
    section = record.sections[MODULES]
    for number, line in section.lines:
        if not line.strip(" \t"):
            continue
        match = _BULLET.match(line.rstrip(" \t"))
        if match is None:
            problem("modules-syntax", "not a module line", number)
            continue
        name = match.group(1)
        if any(module.name == name for module in modules):
            problem("modules-syntax", f"a second module `{name}`", number)
        clauses, bad = _clause_ids(match.group(2))
        laws, unmatched = _law_ids(match.group(3), law_ids)
        for text in bad:
            problem("modules-syntax", f"`{text}` is neither a clause nor a range of clauses", number)
        for text in unmatched:
            code = "modules-assignment" if _PATTERN.match(text) else "modules-syntax"
            problem(code, f"`{text}` matches no law of LAWS.bend", number)
        for clause in clauses:
            if clause not in record.clause_ids:
                problem("modules-assignment", f"clause {clause} does not exist", number)
        for item in [*clauses, *[f"law {law}" for law in laws]]:
            if item in owners:
                problem(
                    "modules-assignment", f"{item} is already assigned to module `{owners[item]}`", number
                )
            owners.setdefault(item, name)
        modules.append(Module(name, tuple(clauses), tuple(laws)))
    if not modules and not problems:
        problem("modules-syntax", "the Modules section declares no module", section.line)
    for item in [*record.clause_ids, *[f"law {law}" for law in law_ids]]:
        if item not in owners:
            problem("modules-assignment", f"{item} belongs to no module", section.line)
    problems += _slicing_problems(record)
    return Resolution(tuple(modules), tuple(problems))


def _clause_ids(text: str) -> tuple[list[str], list[str]]:
    found: list[str] = []
    bad: list[str] = []
    for part in _split(text):
        match = _CLAUSES.match(part)
        first = int(match.group(1)) if match else 0
        last = int(match.group(2) or first) if match else 0
        if match is None or last < first or (match.group(2) and last == first):
            bad.append(part)
        else:
            found += [f"R{number}" for number in range(first, last + 1)]
    return found, bad


def _law_ids(text: str, law_ids: Sequence[str]) -> tuple[list[str], list[str]]:
    found: list[str] = []
    unmatched: list[str] = []
    for pattern in _split(text):
        if pattern.endswith("*"):
            matching = [law for law in law_ids if law.startswith(pattern[:-1])]
        else:
            matching = [law for law in law_ids if law == pattern]
        if not matching or not _PATTERN.match(pattern):
            unmatched.append(pattern)
        else:
            found += matching
    return found, unmatched


@dataclass(frozen=True)
class _Line:
    """One LF-separated line: `rule` is a clause id, or empty; `kept` is false inside the Modules section."""

    text: str
    number: int
    rule: str
    kept: bool
    in_rules: bool


def _classify(record: Record) -> list[_Line]:
    heading = ""
    lines = []
    for number, raw in enumerate(record.text.split("\n"), 1):
        line = raw[:-1] if raw.endswith("\r") else raw
        match = _HEADING.match(line)
        if match:
            heading = match.group(1)
        rule = _RULE_LINE.match(line) if heading == "Rules" and not match else None
        lines.append(
            _Line(
                text=raw,
                number=number,
                rule=f"R{rule.group(1)}" if rule else "",
                kept=heading != MODULES,
                in_rules=heading == "Rules" and not match,
            )
        )
    return lines


def _slicing_problems(record: Record) -> list[Problem]:
    """What would make the slices of a record say something else than the whole record does."""
    problems = []
    for match in _OTHER_LINE_END.finditer(record.text):
        number = record.text.count("\n", 0, match.start()) + 1
        problems.append(
            Problem(
                "modules-lines", "a line break that is neither LF nor CRLF", record.path, number, record.id
            )
        )
    lines = _classify(record)
    begun = False
    for line in lines:
        begun = begun or bool(line.rule)
        if line.in_rules and begun and not line.rule and line.text.strip(" \t\r"):
            message = "text between or after the rules would be given to the wrong module"
            problems.append(Problem("modules-rules", message, record.path, line.number, record.id))
    sliced = tuple(line.rule for line in lines if line.rule)
    if sliced != record.clause_ids and not problems:
        message = "the rule lines differ from the clauses"
        problems.append(
            Problem("modules-rules", message, record.path, record.sections["Rules"].line, record.id)
        )
    return problems


def state(record: Record, module: Module) -> str:
    """The record as the judge of one module sees it: kept lines joined with LF."""
    kept = [
        line.text
        for line in _classify(record)
        if line.kept and (not line.rule or line.rule in module.clauses)
    ]
    return "\n".join(kept)
