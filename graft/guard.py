"""Ends a server whose starter has died: `guard.py PID SIGNAL`, waiting for its standard input to end.

A program of its own, with the standard library only and nothing of Graft, because it has to outlive the
process that it watches. Works the same on every POSIX system.
"""

from __future__ import annotations

import os
import signal
import sys
import time

_PATIENCE = 10.0


def main(pid: int, how: int) -> None:
    for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)
    sys.stdin.buffer.read()
    try:
        os.kill(pid, how)
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            time.sleep(0.05)
            os.kill(pid, 0)
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
