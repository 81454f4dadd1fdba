"""`vendor`: writes each command as one dependency-free script to `.intent/tools/`.

A script holds the sources of the modules that its command needs, word for word, and a small importer for them: one
file, because `python -I` hides sibling modules. It runs on Python 3.9 and later. Files that are not ours are never
touched.
"""

from __future__ import annotations

import ast
import functools
import importlib.abc
import importlib.util
from collections.abc import Sequence
from pathlib import Path

from . import arguments, headers
from .files import DiskTree, FileRefusedError, replace_file
from .report import Report

SUMMARY = "Write the commands as single-file scripts to .intent/tools/."

_QUOTES = "'" * 3

_HEAD = """#!/usr/bin/env python3
# graft records {command}: {summary}
#
# One file without dependencies, for Python 3.9 and later. Made by `graft records vendor`, which replaces it: edit
# nothing here. The header line holds the version and the SHA-256 of all other lines.

import importlib.abc
import importlib.util
import sys

_PACKAGE = "graft_records"
_SOURCES = {{
"""

_TAIL = """}


class _Importer(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    # Finds and loads the modules above.

    def find_spec(self, fullname, path=None, target=None):
        name = fullname.partition(".")[2]
        if fullname == _PACKAGE or (fullname == _PACKAGE + "." + name and name in _SOURCES):
            return importlib.util.spec_from_loader(fullname, self, is_package=not name)
        return None

    def is_package(self, fullname):
        return fullname == _PACKAGE

    def get_source(self, fullname):
        return _SOURCES.get(fullname.partition(".")[2], "")

    def get_code(self, fullname):
        return compile(self.get_source(fullname), __file__ + ":" + fullname, "exec", dont_inherit=True)


if __name__ == "__main__":
    sys.meta_path.insert(0, _Importer())
    importlib.import_module(_PACKAGE).SCRIPT = __file__
    command = importlib.import_module(_PACKAGE + ".{module}")
    sys.exit(importlib.import_module(_PACKAGE + ".entry").run(command.main, sys.argv[1:]))
"""


@functools.cache
def source(name: str) -> str:
    """The source of a module of this package, installed or itself vendored."""
    full = f"{__package__}.{name}"
    spec = importlib.util.find_spec(full)
    loader = spec.loader if spec else None
    text = loader.get_source(full) if isinstance(loader, importlib.abc.InspectLoader) else None
    if text is None:
        raise RuntimeError(f"the source of {name} is not available")
    return text


@functools.cache
def needs(name: str) -> tuple[str, ...]:
    """The modules of this package that one module imports, directly."""
    found = []
    for node in ast.walk(ast.parse(source(name))):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            found += [node.module] if node.module else [alias.name for alias in node.names]
    return tuple(found)


def closure(names: Sequence[str]) -> list[str]:
    """These modules and everything they import, sorted."""
    seen: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += needs(name)
    return sorted(seen)


def build(command: str) -> bytes:
    """The script of one command, with its header."""
    module = headers.COMMANDS[command]
    roots = list(headers.COMMANDS.values()) if command == "vendor" else [module]
    parts = [_HEAD.format(command=command, summary=_summary(module))]
    for name in closure([*roots, "entry"]):
        text = source(name)
        if _QUOTES in text:
            raise RuntimeError(f"{name} contains three quotes in a row and cannot be embedded")
        parts.append(f"    {name!r}: r{_QUOTES}{text}{_QUOTES},\n")
    parts.append(_TAIL.replace("{module}", module))
    return headers.seal("".join(parts).encode(), headers.VERSION)


def _summary(module: str) -> str:
    for node in ast.parse(source(module)).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SUMMARY":
            return str(ast.literal_eval(node.value))
    return ""


def run(root: Path) -> Report:
    """Write all scripts; refuse symlinks and files of our names that are not ours."""
    report = Report("vendor")
    tree = DiskTree(root)
    for folder in (".intent", headers.FOLDER):
        if tree.kind(folder) not in ("dir", "missing"):
            report.add("symlink", "is not a plain directory; nothing is written through it", folder)
            return report
    (root / headers.FOLDER).mkdir(parents=True, exist_ok=True)
    written = []
    for command in headers.COMMANDS:
        path = f"{headers.FOLDER}/{headers.script_name(command)}"
        if tree.kind(path) != "missing":
            try:
                old = headers.read(tree.read(path))
            except FileRefusedError as error:
                report.add(error.code, error.message, path)
                continue
            if old is None:
                report.add("exists", "has the name of a script and no header of ours; it is left alone", path)
                continue
            if not old[1]:
                report.note("vendored-drift", "had local edits, which were replaced", path)
        replace_file(root / path, build(command), executable=True)
        written.append(path)
    report.lines += [f"wrote {path}" for path in written]
    report.data["written"] = written
    return report


def main(argv: Sequence[str]) -> int:
    options = arguments.parse(arguments.parser("vendor", SUMMARY, record=False), argv)
    return arguments.run("vendor", options, run)
