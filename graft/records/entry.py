"""The last step of every program: run `main`, turn an interrupt into an exit code, survive a closed pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from .process import terminating

INTERRUPTED = 130


def run(main: Callable[[Sequence[str]], int], argv: Sequence[str]) -> int:
    """The exit code of a command. SIGTERM counts as Ctrl-C, so that temporary files are removed."""
    with terminating():
        try:
            return main(argv)
        except KeyboardInterrupt:
            sys.stderr.write("interrupted\n")
            return INTERRUPTED
        except BrokenPipeError:
            # Whoever read our output has gone; closing stdout quietly needs a place to flush to.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return INTERRUPTED
