"""Runs one program: an argv, never a shell, with a time limit and a cap on each stream.

The program gets a process group of its own. When it is done, runs out of time, prints too much or is
interrupted, the whole group is killed, so that no grandchild outlives it or keeps a pipe open.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

MAX_STREAM = 1024 * 1024
"""Cap of each output stream in bytes; fixed by the standard."""

WORKERS = 4
"""Most programs that run at the same time."""

_In = TypeVar("_In")
_Out = TypeVar("_Out")


@dataclass(frozen=True)
class Outcome:
    """What a program did. `failure` is empty or a problem code: `timeout`, `output-cap` or `not-started`."""

    status: int
    out: bytes = b""
    err: bytes = b""
    failure: str = ""
    detail: str = ""

    @property
    def stdout(self) -> str:
        """Standard output as UTF-8, an invalid byte as U+FFFD."""
        return self.out.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        return self.err.decode("utf-8", "replace")


class _Reader(threading.Thread):
    """Collects one stream up to the cap and reports when it is passed."""

    def __init__(self, stream: IO[bytes], cap: int, on_cap: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self.stream = stream
        self.cap = cap
        self.on_cap = on_cap
        self.data = b""
        self.start()

    def run(self) -> None:
        parts = []
        size = 0
        with contextlib.suppress(OSError, ValueError):
            while True:
                part = os.read(self.stream.fileno(), 65536)
                if not part:
                    break
                size += len(part)
                if size > self.cap:
                    self.on_cap()
                    break
                parts.append(part)
        self.data = b"".join(parts)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    timeout: float,
    cap: int = MAX_STREAM,
    env: Mapping[str, str] | None = None,
    stop: threading.Event | None = None,
    stdin: bytes = b"",
) -> Outcome:
    """Run to the end. `stop` ends it early, as a timeout does."""
    try:
        process = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(env) if env is not None else None,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            shell=False,
            start_new_session=os.name == "posix",
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        return Outcome(-1, b"", b"", "not-started", f"cannot be started: {reason}")
    over = threading.Event()
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise RuntimeError("pipes were asked for")
    try:
        readers = [_Reader(stream, cap, over.set) for stream in (process.stdout, process.stderr)]
        feeder = threading.Thread(target=_feed, args=(process.stdin, stdin), daemon=True)
        feeder.start()
        failure, detail = _wait(process, timeout, over, stop)
    finally:
        _kill(process)
        process.wait()
    for reader in readers:
        reader.join(1.0)  # a process that left the group may still hold the pipe; it is not waited for
    if over.is_set() and not failure:
        failure, detail = "output-cap", f"printed more than {cap} bytes on one stream"
    for stream in (process.stdin, process.stdout, process.stderr):
        if not any(reader.is_alive() and reader.stream is stream for reader in readers):
            with contextlib.suppress(OSError):
                stream.close()
    return Outcome(process.returncode, readers[0].data, readers[1].data, failure, detail)


def _feed(stream: IO[bytes], data: bytes) -> None:
    with contextlib.suppress(OSError, ValueError):
        stream.write(data)
        stream.close()


def _wait(
    process: subprocess.Popen[bytes], timeout: float, over: threading.Event, stop: threading.Event | None
) -> tuple[str, str]:
    deadline = time.monotonic() + timeout
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(min(0.05, max(0.0, deadline - time.monotonic())))
            return "", ""
        if over.is_set():
            return "", ""
        if stop is not None and stop.is_set():
            return "timeout", "was stopped"
        if time.monotonic() >= deadline:
            return "timeout", f"ran longer than {timeout:g} s"


@contextlib.contextmanager
def terminating() -> Iterator[None]:
    """SIGTERM and SIGHUP end the block as Ctrl-C does, so that everything temporary is removed."""

    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {name: signal.signal(getattr(signal, name), interrupt) for name in names}
    try:
        yield
    finally:
        for name, handler in previous.items():
            signal.signal(getattr(signal, name), handler)


def side_by_side(function: Callable[[_In], _Out], items: Sequence[_In], stop: threading.Event) -> list[_Out]:
    """The results in order. An interrupt sets `stop`, waits until every worker has cleaned up, and goes on."""
    with terminating(), ThreadPoolExecutor(max_workers=min(WORKERS, (os.cpu_count() or 1) + 1)) as pool:
        futures = [pool.submit(function, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            stop.set()
            for future in futures:
                future.cancel()
            raise
