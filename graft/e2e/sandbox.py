"""Which repositories may be played with. A play renames its repository and rewrites branches: never a real one."""

from __future__ import annotations

import re
from pathlib import Path

from graft.errors import ConfigError

_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}\Z")


def require_sandbox(path: Path, repository: str) -> None:
    """Raise ConfigError unless the file lists the repository: a full name a line, `#` begins a comment."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"--sandboxes: {path} cannot be read ({type(error).__name__})"]) from None
    listed = set()
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if text and not _NAME.match(text):
            raise ConfigError([f"--sandboxes: line {number} is not OWNER/REPOSITORY; nothing was touched"])
        listed.add(text.lower())
    if not _NAME.match(repository) or repository.lower() not in listed:
        raise ConfigError([f"--repository: {repository} is not on the list in {path}; nothing was touched"])
