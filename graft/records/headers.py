"""The header line of a vendored script, and what it reveals: local drift, not malicious replacement.

The line stands after the shebang and holds the version and the SHA-256 of the rest of the file. A file is ours by
its name (`graft_<command>.py`) or by its header; everything else in `.intent/tools/` is left alone.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterator

from .files import FileRefusedError, Tree
from .report import Problem

FOLDER = ".intent/tools"
VERSION = "0.1.0"
"""Version of the tools; the same as that of Graft."""

COMMANDS = {
    "init": "scaffold",
    "vendor": "vendor",
    "check": "check",
    "gate": "gate",
    "conform": "conform",
    "receipt": "receipt_command",
    "impact": "impact_command",
    "inventory": "inventory",
    "enums": "enums",
}
"""Command to the module whose `main` it is; each is vendored as one script."""

_HEADER = re.compile(rb"# graft-records v([0-9A-Za-z.+-]{1,40}) sha256=([0-9a-f]{64})\r?\Z")


def script_name(command: str) -> str:
    return f"graft_{command}.py"


NAMES = tuple(script_name(command) for command in COMMANDS)


def seal(body: bytes, version: str) -> bytes:
    """The script with its header; `body` starts with a shebang line."""
    shebang, _, rest = body.partition(b"\n")
    header = f"# graft-records v{version} sha256={hashlib.sha256(body).hexdigest()}"
    return shebang + b"\n" + header.encode() + b"\n" + rest


def read(data: bytes) -> tuple[str, bool] | None:
    """(version, whether the body fits the hash) of a script with our header; None without one."""
    lines = data.split(b"\n", 2)
    index = 1 if lines[0].startswith(b"#!") else 0
    match = _HEADER.match(lines[index]) if len(lines) > index else None
    if match is None:
        return None
    body = b"\n".join(lines[:index] + lines[index + 1 :])
    return match.group(1).decode(), hashlib.sha256(body).hexdigest() == match.group(2).decode()


def own_script() -> str:
    """The path of the vendored script that is running; empty in an installed Graft."""
    return str(getattr(sys.modules.get(__package__ or ""), "SCRIPT", ""))


def drift(tree: Tree) -> Iterator[Problem]:
    """Problems of the vendored scripts: edited, without a header, or of different versions."""
    script = own_script()
    if script:
        with open(script, "rb") as handle:
            header = read(handle.read())
        if header is None or not header[1]:
            yield Problem(
                "vendored-drift",
                "the running script differs from what was vendored",
                os.path.basename(script),
            )
    versions: dict[str, str] = {}
    try:
        names = tree.names(FOLDER)
    except FileRefusedError as error:
        yield Problem(error.code, error.message, error.path)
        return
    for name in names:
        path = f"{FOLDER}/{name}"
        try:
            data = tree.read(path) if name in NAMES or name.endswith(".py") else b""
        except FileRefusedError as error:
            if name in NAMES:
                yield Problem(error.code, error.message, path)
            continue
        header = read(data)
        if header is None:
            if name in NAMES:
                yield Problem("vendored-drift", "has the name of a vendored script and no header", path, 1)
            continue
        version, fits = header
        versions.setdefault(version, path)
        if not fits:
            yield Problem("vendored-drift", "differs from what was vendored", path, 2)
    if len(versions) > 1:
        listed = ", ".join(sorted(versions))
        yield Problem("vendored-drift", f"scripts of different versions: {listed}", FOLDER)
