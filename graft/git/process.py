"""Runs git so that neither the user's settings nor the repository's can change what it answers.

Only plumbing is called, on a git directory that was found once. The child gets a fixed environment: no inherited
`GIT_*` variable (a hook sets `GIT_DIR`), no system or user configuration, no pager, no prompt, no replaced objects,
no lazy fetch and no transport at all. Output is read as a stream, so that the reader decides how much to hold.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO

from graft.errors import PermanentError

CHUNK = 1 << 18
TIMEOUT = 120.0  # seconds one git process may take

# What a repository's own configuration could still change in the commands that are used here.
_OVERRIDES = (
    ("core.quotepath", "false"),
    ("core.attributesFile", os.devnull),
    ("core.fsmonitor", "false"),
    ("diff.suppressBlankEmpty", "false"),
    ("log.showSignature", "false"),
    ("protocol.allow", "never"),
)


class GitError(PermanentError):
    """Git cannot answer. The message is one line that says what to do and holds no content of the repository.

    `reason` is one of `git_missing`, `git_failed`, `git_timeout`, `not_a_repository`, `not_trusted`, `bad_range`,
    `unknown_revision`, `not_a_commit`, `no_merge_base`.
    """


class Output:
    """The bytes a git process writes, and whether it came to its end."""

    def __init__(self, pipe: IO[bytes], meter: Meter) -> None:
        self._pipe = pipe
        self._meter = meter
        self.finished = False

    def read(self) -> bytes:
        """The next bytes, at most `CHUNK` of them; empty at the end."""
        with self._meter:
            chunk = self._pipe.read1(CHUNK)  # type: ignore[attr-defined]  # Popen's pipe is a BufferedReader
        self.finished = not chunk
        return bytes(chunk)

    def read_up_to(self, limit: int) -> bytes:
        """Everything, or the first `limit` bytes (then `finished` is false)."""
        parts: list[bytes] = []
        held = 0
        while held < limit and (chunk := self.read()):
            parts.append(chunk)
            held += len(chunk)
        return b"".join(parts)[:limit]


class Meter:
    """Adds up the time spent waiting for git, so that a benchmark can tell it from Graft's own."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.processes = 0
        self._started = 0.0

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._started


def environment(extra: Sequence[tuple[str, str]] = ()) -> dict[str, str]:
    """The child's whole environment. `PATH` and what the platform needs to start a program are passed on."""
    kept = {
        k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP")
    }
    return {
        **kept,
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_PAGER": "cat",
        **dict(extra),
    }


def ask(path: str, *args: str) -> tuple[int, str, str]:
    """Run a small question in a directory under the user's own configuration: status, output, errors.

    Git's rule about repositories owned by somebody else (`safe.directory`) lives in that configuration, so the
    questions where its git directory and its hooks are are asked this way.
    """
    settings = environment()
    del settings["GIT_CONFIG_NOSYSTEM"]
    try:
        done = subprocess.run(
            ["git", "-C", path, *args],
            capture_output=True,
            timeout=TIMEOUT,
            env=settings,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except FileNotFoundError:
        raise GitError("git is not installed or not in PATH: install git", reason="git_missing") from None
    except subprocess.TimeoutExpired:
        raise _timed_out(TIMEOUT) from None
    out, err = (b.decode("utf-8", "surrogateescape") for b in (done.stdout, done.stderr))
    return done.returncode, out, err


class Git:
    """Git on one git directory. Every call is a process of its own; nothing is kept between them."""

    def __init__(self, git_dir: str, *, meter: Meter, timeout: float = TIMEOUT) -> None:
        self.git_dir = git_dir
        self.meter = meter
        self._timeout = timeout
        # With the git directory named and as the current one, no working tree is looked at, so neither an
        # uncommitted .gitattributes nor the checked-out branch has a say in what is binary.
        self._command = ["git", f"--git-dir={git_dir}", "--no-pager"]
        for key, value in _OVERRIDES:
            self._command += ["-c", f"{key}={value}"]
        self._environment = environment([("GIT_CONFIG_GLOBAL", os.devnull)])

    @contextmanager
    def stream(self, *args: str, stdin: bytes = b"") -> Iterator[Output]:
        """Run git and hand out what it writes. Leaving early stops the process and is no error.

        `stdin` must fit a pipe's buffer (64 KiB). Raises `GitError` when git fails or takes longer than the time-out.
        """
        with self.meter:
            try:
                process = subprocess.Popen(
                    [*self._command, *args],
                    stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=self._environment,
                    cwd=self.git_dir,
                )
            except FileNotFoundError:
                raise GitError(
                    "git is not installed or not in PATH: install git", reason="git_missing"
                ) from None
        self.meter.processes += 1
        late = threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        watchdog = threading.Timer(self._timeout, stop)
        watchdog.daemon = True
        watchdog.start()
        assert process.stdout is not None
        output = Output(process.stdout, self.meter)
        try:
            if process.stdin is not None:
                with process.stdin:
                    process.stdin.write(stdin)
            yield output
        finally:
            watchdog.cancel()
            if not output.finished:
                process.kill()
            process.stdout.close()
            with self.meter:
                status = process.wait()
        if late.is_set():
            raise _timed_out(self._timeout)
        if output.finished and status != 0:
            raise GitError(
                f"git {args[0]} failed with status {status}: run `git fsck` in the repository",
                reason="git_failed",
            )

    def read(self, *args: str, stdin: bytes = b"", limit: int) -> tuple[bytes, bool]:
        """The first `limit` bytes git writes, and whether that was everything."""
        with self.stream(*args, stdin=stdin) as output:
            data = output.read_up_to(limit)
        return data, output.finished


def _timed_out(seconds: float) -> GitError:
    return GitError(
        f"git took longer than {seconds:g} seconds and was stopped: try a smaller range",
        reason="git_timeout",
    )
