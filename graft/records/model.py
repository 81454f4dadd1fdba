"""The Bend files of a model, scanned, and how names in them lead to the laws of LAWS.bend.

A definition counts as a proof of a law only when its alias is an import of LAWS.bend: a helper with the same
alias or the same name proves nothing.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass

from . import scanner
from .files import FileRefusedError, Tree, decode, walk
from .report import Problem
from .repository import LAWS, MODEL, NEGATIVES, PROOF
from .scanner import NAME, Scan

PROBE = re.compile(r"\.crosscheck-[0-9a-f]{16}\.bend\Z")
"""The name of a cross-check probe; a forgotten one is ignored unless a file imports it."""

_EXPECT = re.compile(r"#[ \t]*expect-failure:[ \t]*(.*?)[ \t\r]*\Z")
_TARGET = re.compile(rf"({NAME})\Z")


@dataclass(frozen=True)
class Model:
    """Every authored `.bend` file by repository path, and what is wrong with their form."""

    files: Mapping[str, Scan]
    problems: tuple[Problem, ...]

    @property
    def outside(self) -> list[Problem]:
        """Imports that lead out of the model: what they name is checked by Bend and not scanned."""
        return [
            Problem(
                "layout",
                f"imports {item.name}, which is outside of the model and not scanned",
                path,
                item.line,
            )
            for path, scan in self.files.items()
            for item in scan.imports
            if item.name != "Base" and not _inside(path, item.name)
        ]

    @property
    def others(self) -> list[str]:
        """Modules besides LAWS, PROOF and the negatives that declare laws of their own."""
        skipped = (LAWS, PROOF)
        return [
            path
            for path, scan in self.files.items()
            if path not in skipped and not path.startswith(NEGATIVES + "/") and scan.laws
        ]

    @property
    def negatives(self) -> list[str]:
        return [path for path in self.files if path.startswith(NEGATIVES + "/")]


def read(tree: Tree) -> Model:
    """Scan the model. Layout, unreadable files and symlinks are problems; so are forbidden constructs."""
    problems: list[Problem] = []
    files: dict[str, Scan] = {}
    try:
        paths = walk(tree, MODEL, ".bend")
    except FileRefusedError as error:
        return Model({}, (Problem(error.code, error.message, error.path),))
    for path in paths:
        if tree.kind(path) == "symlink" and not path.endswith(".bend"):
            problems.append(Problem("symlink", "is a symlink; model files are regular files", path))
            continue
        try:
            text = decode(tree.read(path))
        except FileRefusedError as error:
            problems.append(Problem(error.code, error.message, path))
            continue
        files[path] = scanner.scan(text, laws=path == LAWS)
    imported = {target for path, scan in files.items() for target in aliases(path, scan).values()}
    files = {path: scan for path, scan in files.items() if not is_probe(path) or path in imported}
    for path, scan in files.items():
        name = path[len(MODEL) + 1 :]
        for item in scan.refusals:
            message = f"{name}: unsupported layout at line {item.line}: {item.text}"
            problems.append(Problem("layout", message, path, item.line))
        for item in scanner.forbidden(scan):
            problems.append(Problem("forbidden", f"{item.text} is not allowed in a model", path, item.line))
    return Model(files, tuple(problems))


def _inside(path: str, target: str) -> bool:
    """Whether an import names a file that `read` scans."""
    resolved = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return (
        target.startswith(("./", "../")) and resolved.startswith(MODEL + "/") and resolved.endswith(".bend")
    )


def is_probe(path: str) -> bool:
    return PROBE.match(path.rsplit("/", 1)[-1]) is not None


def aliases(path: str, scan: Scan) -> dict[str, str]:
    """Alias to the repository path that it imports, for relative imports of a file."""
    found = {}
    for item in scan.imports:
        if item.alias and item.name.startswith(("./", "../")):
            found[item.alias] = posixpath.normpath(posixpath.join(posixpath.dirname(path), item.name))
    return found


def proofs(path: str, scan: Scan) -> dict[str, int]:
    """Law id to the line of its definition, for total definitions whose alias imports LAWS.bend."""
    law_aliases = [alias for alias, target in aliases(path, scan).items() if target == LAWS]
    found: dict[str, int] = {}
    for item in scan.declarations:
        if item.kind != "def" or item.partial:
            continue
        for alias in law_aliases:
            if item.name.startswith(alias + "."):
                found.setdefault(item.name[len(alias) + 1 :], item.line)
    return found


@dataclass(frozen=True)
class Negative:
    """A control that has to fail: `location` is what Bend must print, `law` the law it is about."""

    path: str
    location: str
    law: str


def negative(path: str, scan: Scan, declared: tuple[str, ...]) -> Negative | Problem:
    """Read one negative control."""
    expected: list[tuple[int, str]] = []
    for number, text in enumerate(scan.text.split("\n"), 1):
        match = _EXPECT.match(text)
        if match:
            expected.append((number, match.group(1)))
    if len(expected) != 1 or not _TARGET.match(expected[0][1]):
        line = expected[1][0] if len(expected) > 1 else 1
        return Problem(
            "negative-malformed", "does not have exactly one `# expect-failure: M.law` line", path, line
        )
    at, location = expected[0]
    for alias, target in aliases(path, scan).items():
        law = location[len(alias) + 1 :] if location.startswith(alias + ".") else ""
        if target == LAWS and law in declared and law in proofs(path, scan):
            return Negative(path, location, law)
    return Problem(
        "negative-unbound", f"`{location}` is no definition of a declared law in this file", path, at
    )
