"""An intent record: its metadata lines, its sections, its clauses, and every way in which it is malformed.

Lines end at LF, CRLF, a lone CR, U+2028 and U+2029; line numbers count line feeds, as an editor does. Metadata
lines count over the whole file and headings are matched as text, also inside a code fence. `parse` never raises:
a record carries its own problems.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from . import canonical
from .files import decode
from .report import Problem

FILE_NAME = re.compile(r"[0-9]{4}-[a-z0-9]+(?:-[a-z0-9]+)*\.md\Z")
FOLDER = ".intent/records"
STATUSES = ("descriptive", "draft", "approved")
UNREADABLE = "unreadable"
SECTIONS = (
    "Intent",
    "Vocabulary",
    "Rules",
    "Worked examples",
    "Freedoms",
    "Non-goals",
    "Open questions",
    "Approval",
)
MODULES = "Modules"
MAX_PROBLEMS = 500
"""Most problems of one record that are kept: one is enough to make it malformed."""

_LINE_END = re.compile("\r\n|\n|\r|\u2028|\u2029")
_ODD_LINE_END = re.compile("[\r\u2028\u2029]")
_METADATA = re.compile(r"(id|status|context):[ \t]*(.*)\Z")
_HEADING = re.compile(r"## (.*?)[ \t]*\Z")
_CLAUSE = re.compile(r"R([1-9][0-9]{0,3}):[ \t]*(.*)\Z")
_MOST_CLAUSES = 9_999  # the number has four digits
_CLAUSE_LIKE = re.compile(r"[ \t]*(?:[-*][ \t]+)?R[0-9]+[ \t]*:")
_APPROVED_BY = re.compile(r"approved-by:[ \t]*(.*)\Z")
_PLACEHOLDER = re.compile(
    r"(?:<[^>]*>|none|n/a|tbd|todo|pending|unknown|nobody|human|name|your name|[-–—.…?_*]*)\Z", re.IGNORECASE
)


@dataclass(frozen=True)
class Clause:
    """One rule: `R3` and its text, without its line end."""

    id: str
    text: str
    line: int


@dataclass(frozen=True)
class Section:
    heading: str
    line: int
    lines: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Record:
    """A record as it was read. `sha256` is over the decoded text; problems are those of its own grammar."""

    id: str
    path: str
    text: str
    sha256: str
    status: str
    context: str
    approved_by: str
    clauses: tuple[Clause, ...]
    sections: Mapping[str, Section]
    problems: tuple[Problem, ...]

    @property
    def approved(self) -> bool:
        return self.status == "approved"

    @property
    def has_modules(self) -> bool:
        return MODULES in self.sections

    @property
    def clause_ids(self) -> tuple[str, ...]:
        return tuple(clause.id for clause in self.clauses)

    def clause(self, clause_id: str) -> Clause | None:
        for clause in self.clauses:
            if clause.id == clause_id:
                return clause
        return None


class _Problems(Protocol):
    """Takes a problem of the record that is being parsed."""

    def __call__(self, code: str, message: str, line: int | None = None) -> None: ...


def numbered_lines(text: str) -> list[tuple[int, str]]:
    """Lines as the standard's parser ends them, each with the number an editor shows."""
    plain = text.replace("\r\n", "\n")
    if not _ODD_LINE_END.search(plain):
        return list(enumerate(plain.split("\n"), 1))
    lines = []
    start, number = 0, 1
    for match in _LINE_END.finditer(text):
        lines.append((number, text[start : match.start()]))
        number += match.group().count("\n")
        start = match.end()
    lines.append((number, text[start:]))
    return lines


def is_placeholder(name: str) -> bool:
    """Whether an `approved-by` value names nobody."""
    return _PLACEHOLDER.match(name.strip(" \t")) is not None


def parse(path: str, data: bytes) -> Record:
    """Read the record at `path`, whose last component is a valid record file name."""
    text = decode(data)
    record_id = path.rsplit("/", 1)[-1][: -len(".md")]
    lines = numbered_lines(text)
    problems: list[Problem] = []

    def problem(code: str, message: str, line: int | None = None) -> None:
        if len(problems) < MAX_PROBLEMS:
            problems.append(Problem(code, message, path, line, record_id))

    metadata = _metadata(lines, problem)
    status = metadata.get("status", "")
    if status not in STATUSES:
        if "status" in metadata:
            problem(
                "record-status", "the status is not descriptive, draft or approved", _line_of(lines, "status")
            )
        status = UNREADABLE
    if "id" in metadata and metadata["id"] != record_id:
        problem("record-id", "the `id:` line differs from the file name", _line_of(lines, "id"))
    context = metadata.get("context", "")
    if "context" in metadata and not _good_context(context):
        problem(
            "record-context",
            "`context:` does not name a CONTEXT.md inside the repository",
            _line_of(lines, "context"),
        )

    sections = _sections(lines, problem)
    rules = sections.get("Rules")
    clauses = _clauses(rules, problem) if rules else ()
    approved_by = _approved_by(sections.get("Approval"))
    if status == "approved":
        _check_approved(sections, clauses, approved_by, problem)
    return Record(
        id=record_id,
        path=path,
        text=text,
        sha256=canonical.sha256(text),
        status=status,
        context=context,
        approved_by=approved_by,
        clauses=clauses,
        sections=sections,
        problems=tuple(problems),
    )


def _metadata(lines: list[tuple[int, str]], problem: _Problems) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in lines:
        match = _METADATA.match(line)
        if match is None:
            continue
        key = match.group(1)
        if key in found:
            code = "record-status" if key == "status" else "record-metadata"
            problem(code, f"a second `{key}:` line; every line of the file counts, also in the body", number)
            if key == "status":
                found[key] = ""
        else:
            found[key] = match.group(2).rstrip(" \t")
    for key in ("id", "status", "context"):
        if key not in found:
            problem(
                "record-status" if key == "status" else "record-metadata", f"there is no `{key}:` line", 1
            )
    return found


def _line_of(lines: list[tuple[int, str]], key: str) -> int | None:
    for number, line in lines:
        if line.startswith(key + ":"):
            return number
    return None


def _good_context(value: str) -> bool:
    parts = value.split("/")
    return parts[-1] == "CONTEXT.md" and ".." not in parts and not value.startswith("/") and "\\" not in value


def _sections(lines: list[tuple[int, str]], problem: _Problems) -> dict[str, Section]:
    found: dict[str, tuple[int, list[tuple[int, str]]]] = {}
    body: list[tuple[int, str]] | None = None
    for number, line in lines:
        match = _HEADING.match(line)
        if match is None:
            if body is not None:
                body.append((number, line))
            continue
        heading = match.group(1)
        body = []
        if heading not in found:
            found[heading] = (number, body)
        elif heading in SECTIONS or heading == MODULES:
            problem("record-section", f"a second `## {heading}` section", number)
    for heading in SECTIONS:
        if heading not in found:
            problem("record-section", f"there is no `## {heading}` section", 1)
        elif not any(line.strip(" \t") for _, line in found[heading][1]):
            problem("record-section", f"the section `## {heading}` is empty", found[heading][0])
    return {heading: Section(heading, line, tuple(body)) for heading, (line, body) in found.items()}


def _clauses(rules: Section, problem: _Problems) -> tuple[Clause, ...]:
    clauses: list[Clause] = []
    for number, line in rules.lines:
        match = _CLAUSE.match(line)
        if match is None:
            if _CLAUSE_LIKE.match(line):
                problem("record-clause", "a line that looks like a clause and is none", number)
            continue
        expected = len(clauses) + 1
        if expected > _MOST_CLAUSES:
            problem("record-clause", f"more than {_MOST_CLAUSES} clauses", number)
            break
        text = match.group(2).rstrip(" \t")
        if int(match.group(1)) != expected:
            problem("record-clause", f"R{match.group(1)} stands where R{expected} is expected", number)
        if not text:
            problem("record-clause", f"R{match.group(1)} has no text", number)
        clauses.append(Clause(f"R{match.group(1)}", text, number))
    return tuple(clauses)


def _approved_by(approval: Section | None) -> str:
    for _, line in approval.lines if approval else ():
        match = _APPROVED_BY.match(line)
        if match:
            return match.group(1).strip(" \t")
    return ""


def _check_approved(
    sections: Mapping[str, Section], clauses: tuple[Clause, ...], approved_by: str, problem: _Problems
) -> None:
    approval, rules = sections.get("Approval"), sections.get("Rules")
    if is_placeholder(approved_by):
        line = approval.line if approval else 1
        problem("record-unsigned", "the record is approved, but `approved-by:` names nobody", line)
    if not clauses and rules:
        problem("record-clause", "an approved record has no clause", rules.line)
