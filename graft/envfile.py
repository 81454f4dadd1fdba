"""Writing credentials to an environment file that Docker, systemd and a shell read alike.

The file is complete or not there, readable by its owner only, and never replaces another one unless asked to.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from graft.errors import ConfigError

# Each reader has quotes and escapes of its own; these need none in any of them.
_PLAIN = re.compile(r"[A-Za-z0-9_.,:/@%+=~-]*\Z")


def is_plain(text: str) -> bool:
    """Whether a value means the same to every reader of such files."""
    return _PLAIN.match(text) is not None


def refuse_existing(path: Path) -> None:
    """Raise ConfigError when there is something at `path` already, or no directory to write it in."""
    if path.exists() or path.is_symlink():
        raise ConfigError(
            [f"{path} exists; give another --output, or --replace to keep it as {path.name}.old"]
        )
    if not path.parent.is_dir():
        raise ConfigError([f"{path.parent} is no directory; make it first"])


def write(path: Path, variables: Mapping[str, str], *, comment: str, replace: bool = False) -> None:
    """Write the file with mode 0600. With `replace` what was there is kept beside it as `.old`.

    Raises FileExistsError without `replace`, OSError when it cannot be written, ValueError for a value that
    readers would take differently; the text names the variable.
    """
    lines = [f"# {line}" for line in comment.splitlines()]
    for name, text in variables.items():
        if not is_plain(text):
            raise ValueError(f"{name} has characters that environment files do not agree on")
        lines.append(f"{name}={text}")
    # Made by mkstemp: nobody else can read it at any moment.
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            os.fsync(file.fileno())
        if replace:
            with contextlib.suppress(FileNotFoundError):
                os.replace(path, path.with_name(f"{path.name}.old"))
        # Unlike a rename, a link fails where there is a file already.
        os.link(temporary, path)
    finally:
        os.unlink(temporary)
