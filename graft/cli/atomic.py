"""A file that is there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from graft.errors import ConfigError


def write_atomically(path: Path, data: bytes) -> None:
    """Write beside the path, then move over it: a reader never sees half a file, and a crash leaves the old one.

    Raises ConfigError naming the path when it cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent or Path("."))
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError([f"{path}: cannot be written ({error.strerror or type(error).__name__})"]) from None
