"""A receiver of deliveries as a process of its own, and what it and its store cost in processor time.

`graft` starts the ingress by its command, as it runs in production, over a broker of its own. Other receivers are
started with `started`, which only wants to know where a process says its port.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil
import uvloop
from msgspec import Struct

from bench.load import Taken
from graft import embedded
from graft.bus import Bus
from graft.streams import StreamSettings

SECRET: Final = "bench"
APP_ID: Final = 1
_STREAM_BYTES: Final = 2 * 1024**3
_START_SECONDS: Final = 30
_STOP_SECONDS: Final = 20


class Receiver(Struct, frozen=True, kw_only=True):
    """Where it listens, how it says that it took a delivery, and which processes it and its store are."""

    name: str
    port: int
    taken: Taken
    pid: int
    store_pid: int | None = None


def processor_seconds(pid: int | None) -> float:
    """What a process and all it started have used so far, in user and kernel; 0 for no process."""
    if pid is None:
        return 0.0
    root = psutil.Process(pid)
    used = 0.0
    for process in (root, *root.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        used += times.user + times.system
        if process == root:
            # Children that ended meanwhile, as Postgres' workers do.
            used += times.children_user + times.children_system
    return used


@contextmanager
def started(
    command: Sequence[str], environment: Mapping[str, str], port: str, log: Path
) -> Iterator[tuple[int, int]]:
    """Port and process id of a server, which ends with the block; the pattern `port` finds the first in what it prints.

    Raises RuntimeError with the end of what it printed when it does not say a port.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env={"PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", ""), **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield _port(process, re.compile(port, re.MULTILINE), log), process.pid
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _port(process: subprocess.Popen[bytes], pattern: re.Pattern[str], log: Path) -> int:
    deadline = time.monotonic() + _START_SECONDS
    while (found := pattern.search(printed := log.read_text(errors="replace"))) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{process.args!r} did not start:\n{printed[-2000:]}")
        time.sleep(0.02)
    return int(found[1])


@contextmanager
def graft(directory: Path, *, sync_always: bool) -> Iterator[Receiver]:
    """The ingress by its command, over a broker in `directory`. Its stream is made here: actors would make it."""
    with embedded.running_nats(directory / "nats", sync_always=sync_always) as broker:
        uvloop.run(_make_stream(broker.url))
        environment = {
            "NATS_URL": broker.url,
            "GITHUB_APP_ID": str(APP_ID),
            "GITHUB_WEBHOOK_SECRET": SECRET,
            "GRAFT_LISTEN": "127.0.0.1:0",
            "GRAFT_LOG_FORMAT": "json",
        }
        command = [sys.executable, "-m", "graft", "ingress"]
        with started(command, environment, r'"http://127\.0\.0\.1:(\d+)"', directory / "ingress.log") as (
            port,
            pid,
        ):
            yield Receiver(
                name="Graft, `sync_interval: always`" if sync_always else "Graft, NATS' default sync (2 min)",
                port=port,
                taken=Taken(status=202, word=b"accepted"),
                pid=pid,
                store_pid=broker.pid,
            )


async def _make_stream(url: str) -> None:
    bus = await Bus.connect(url)
    try:
        await bus.ensure_stream(StreamSettings(max_bytes=_STREAM_BYTES))
    finally:
        await bus.close()
