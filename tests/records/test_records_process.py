"""Programs: an argv without a shell, caps, time limits that end the whole process group."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from graft.records import process
from graft.records.process import Outcome


def run(
    tmp_path: Path, code: str, *arguments: str, timeout: float = 20.0, cap: int = process.MAX_STREAM
) -> Outcome:
    return process.run([sys.executable, "-c", code, *arguments], cwd=tmp_path, timeout=timeout, cap=cap)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().split(")")[1].split()[0] != "Z"


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


def test_streams_status_and_input(tmp_path: Path) -> None:
    code = "import sys; print(sys.stdin.read()); print('err', file=sys.stderr); sys.exit(3)"
    done = process.run([sys.executable, "-c", code], cwd=tmp_path, timeout=20, stdin=b"given")
    assert (done.status, done.stdout, done.stderr, done.failure) == (3, "given\n", "err\n", "")


def test_arguments_are_never_shell_syntax(tmp_path: Path) -> None:
    hostile = [
        "; touch owned",
        "$(touch owned)",
        "`touch owned`",
        "| touch owned",
        "&& touch owned",
        "*",
        "> owned",
    ]
    done = run(tmp_path, "import sys; print(sys.argv[1:])", *hostile)
    assert done.stdout.strip() == str(hostile)
    assert list(tmp_path.iterdir()) == []


def test_an_invalid_byte_is_replaced(tmp_path: Path) -> None:
    assert run(tmp_path, "import os; os.write(1, b'a\\xff')").stdout == "a\ufffd"


@pytest.mark.parametrize("descriptor", [1, 2])
def test_a_stream_above_the_cap_ends_the_program(tmp_path: Path, descriptor: int) -> None:
    started = time.monotonic()
    done = run(tmp_path, f"import os\nwhile True: os.write({descriptor}, b'x' * 65536)")
    assert done.failure == "output-cap"
    assert time.monotonic() - started < 10


def test_a_stream_of_exactly_the_cap_is_fine(tmp_path: Path) -> None:
    assert run(tmp_path, "import os; os.write(1, b'x' * 1000)", cap=1000).failure == ""
    assert run(tmp_path, "import os; os.write(1, b'x' * 1001)", cap=1000).failure == "output-cap"


GRANDCHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
"""


def test_a_timeout_ends_grandchildren(tmp_path: Path) -> None:
    done = run(tmp_path, GRANDCHILD + "time.sleep(60)", timeout=1.0)
    assert done.failure == "timeout"
    assert "1 s" in done.detail
    assert gone(int(done.stdout))


def test_a_grandchild_does_not_outlive_its_parent_or_hold_the_pipe(tmp_path: Path) -> None:
    started = time.monotonic()
    done = run(tmp_path, GRANDCHILD)
    assert (done.failure, done.status) == ("", 0)
    assert time.monotonic() - started < 10
    assert gone(int(done.stdout))


def test_stop_ends_a_running_program(tmp_path: Path) -> None:
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    started = time.monotonic()
    done = process.run(
        [sys.executable, "-c", "import time; time.sleep(60)"], cwd=tmp_path, timeout=60, stop=stop
    )
    assert (done.failure, done.detail) == ("timeout", "was stopped")
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("argv", [["./no-such-program"], ["a\0b"], ["."]])
def test_what_cannot_be_started(tmp_path: Path, argv: list[str]) -> None:
    done = process.run(argv, cwd=tmp_path, timeout=5)
    assert done.failure == "not-started"
    assert done.detail


def test_a_missing_directory_cannot_be_started_in(tmp_path: Path) -> None:
    assert process.run([sys.executable, "-c", ""], cwd=tmp_path / "gone", timeout=5).failure == "not-started"


def test_terminating_turns_sigterm_into_an_interrupt_and_restores_the_handler() -> None:
    before = signal.getsignal(signal.SIGTERM)

    def wait() -> None:
        with process.terminating():
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)

    with pytest.raises(KeyboardInterrupt):
        wait()
    assert signal.getsignal(signal.SIGTERM) is before


def test_side_by_side_keeps_the_order_and_stops_on_a_failure() -> None:
    stop = threading.Event()
    assert process.side_by_side(lambda item: item * 2, [3, 1, 2], stop) == [6, 2, 4]
    assert not stop.is_set()
    with pytest.raises(ZeroDivisionError):
        process.side_by_side(lambda item: 1 // item, [1, 0, 1], stop)
    assert stop.is_set()
