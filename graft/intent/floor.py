"""The risk floor: the class that a change has by fixed rules, before any model is asked.

No model answer can lower it. Every rule that applied is a reason with the path or the number that decided, so
a reader can check the class without trusting Graft. A rename or move counts with both its paths, as one file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from graft.changes import ChangedFile, Snapshot
from graft.globs import Glob, GlobSet
from graft.intent import paths
from graft.risk import Risk, highest

__all__ = [
    "CHANGE_RULES",
    "FILE_RULES",
    "INTENT_RECORD",
    "PATH_ROWS",
    "Floor",
    "Reason",
    "assess",
    "file_risk",
]

KNOWN_STATUSES = frozenset(("added", "removed", "modified", "renamed", "copied", "changed", "unchanged"))
LOST_TEST_LINES = 10


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """One rule that applied. `path` is a path of the change, `detail` Graft's own short words or numbers."""

    code: str
    risk: Risk
    path: str | None = None
    detail: str | None = None


class Floor(msgspec.Struct, frozen=True, kw_only=True):
    """The class, and everything that led to it: the gravest reasons first, then in the order of the files."""

    risk: Risk
    reasons: tuple[Reason, ...]


class FileRule(msgspec.Struct, frozen=True):
    code: str
    risk: Risk
    says: str
    applies: Callable[[ChangedFile], bool]


class ChangeRule(msgspec.Struct, frozen=True):
    code: str
    risk: Risk
    says: str
    applies: Callable[[int, int], bool]
    """Given the changed lines and the number of files."""


def _is_test(path: str | None) -> bool:
    return path is not None and paths.is_test(path)


def _deleted_test(file: ChangedFile) -> bool:
    """Removed, or renamed to where no test runner finds it."""
    if file.status == "removed":
        return _is_test(file.path)
    return file.status == "renamed" and _is_test(file.previous_path) and not _is_test(file.path)


def _shrunk_test(file: ChangedFile) -> bool:
    return file.status != "removed" and file.deletions >= LOST_TEST_LINES and any(map(_is_test, file.paths))


# Rows over the paths of a file, old and new; the first that fits names the file. Globs in graft.intent.paths.
PATH_ROWS: tuple[tuple[str, str], ...] = (
    ("graft_policy", "Graft's own policy file"),
    ("ci_config", "CI or repository configuration"),
    ("dependency", "a dependency manifest or lockfile"),
    ("infrastructure", "an infrastructure or deployment file"),
    ("security", "an auth, security, crypto or secrets path"),
    ("migration", "a migration or schema file"),
    ("sensitive_path", "a path this installation or repository calls sensitive"),
)

INTENT_RECORD = ("intent_record", "an approved intent record or its evidence")

FILE_RULES: tuple[FileRule, ...] = (
    FileRule("test_deleted", Risk.SENSITIVE, "a deleted test", _deleted_test),
    FileRule("test_shrunk", Risk.LOGIC, f"a test that lost {LOST_TEST_LINES} or more lines", _shrunk_test),
    FileRule(
        "binary_added",
        Risk.LOGIC,
        "an added binary file",
        lambda f: f.binary and f.status in ("added", "copied"),
    ),
    FileRule(
        "unknown_status",
        Risk.LOGIC,
        "a kind of change that Graft does not know",
        lambda f: f.status not in KNOWN_STATUSES,
    ),
)

CHANGE_RULES: tuple[ChangeRule, ...] = (
    ChangeRule("very_large", Risk.SENSITIVE, "more than 1,500 changed lines", lambda lines, _: lines > 1_500),
    ChangeRule("very_many_files", Risk.SENSITIVE, "more than 50 files", lambda _, files: files > 50),
    ChangeRule("large", Risk.LOGIC, "more than 300 changed lines", lambda lines, _: 300 < lines <= 1_500),
    ChangeRule("many_files", Risk.LOGIC, "more than 15 files", lambda _, files: 15 < files <= 50),
)


def assess(
    snapshot: Snapshot,
    *,
    sensitive: Sequence[Glob] = (),
    omissions: Iterable[tuple[str, str]] = (),
    injection: Iterable[str] = (),
    records: Iterable[str] = (),
) -> Floor:
    """The floor of one change.

    `sensitive` are the globs of the installation and of the base branch's graft.yaml. `omissions` are
    (path, why) of what the model is not shown, `injection` the names of markers found in text of the pull
    request; both make the change at least `logic`. `records` are the paths of approved intent and of its evidence that
    the change edits, which makes it `sensitive`. A change without files whose list is whole is `trivial`.
    """
    extra = GlobSet(sensitive)
    reasons: list[Reason] = [
        Reason(code="incomplete", risk=Risk.SENSITIVE, detail=code) for code in snapshot.incomplete
    ]
    reasons += [reason for file in snapshot.files for reason in _of_file(file, extra)]
    reasons += [Reason(code=INTENT_RECORD[0], risk=Risk.SENSITIVE, path=path) for path in records]
    reasons += _of_size(snapshot)
    reasons += [Reason(code="not_shown", risk=Risk.LOGIC, path=path, detail=why) for path, why in omissions]
    reasons += [Reason(code="injection", risk=Risk.LOGIC, detail=marker) for marker in injection]
    return Floor(
        risk=highest(*(reason.risk for reason in reasons)),
        reasons=tuple(sorted(reasons, key=lambda reason: -reason.risk.rank)),
    )


def file_risk(file: ChangedFile, *, sensitive: Sequence[Glob] = ()) -> Risk:
    """The class of one file alone, used to put the weightiest part of a diff first."""
    return highest(*(reason.risk for reason in _of_file(file, GlobSet(sensitive))))


def _of_file(file: ChangedFile, extra: GlobSet) -> Iterable[Reason]:
    found: dict[str, Reason] = {}
    for path in file.paths:
        for code in _path_rows(path, extra):
            found.setdefault(code, Reason(code=code, risk=Risk.SENSITIVE, path=path))
    for rule in FILE_RULES:
        if rule.applies(file):
            detail = f"-{file.deletions} lines" if rule.code == "test_shrunk" else None
            found[rule.code] = Reason(code=rule.code, risk=rule.risk, path=file.path, detail=detail)
    return found.values()


def _path_rows(path: str, extra: GlobSet) -> Iterable[str]:
    table, code_of = paths.sensitive_rows()
    if (glob := table.first(path)) is not None:
        yield code_of[glob.pattern]
    elif paths.has_security_word(path):
        yield "security"
    if extra and extra.matches(path):
        yield "sensitive_path"


def _of_size(snapshot: Snapshot) -> Iterable[Reason]:
    lines, files = snapshot.additions + snapshot.deletions, len(snapshot.files)
    for rule in CHANGE_RULES:
        if rule.applies(lines, files):
            detail = f"{files:,} files" if "files" in rule.code else f"{lines:,} changed lines"
            yield Reason(code=rule.code, risk=rule.risk, detail=detail)
