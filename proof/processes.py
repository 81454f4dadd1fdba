"""`graft serve`, `graft ingress` and `graft actors` as processes, to be killed, frozen and restarted."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]


class Process:
    """A running daemon; `url` is where it serves what it serves."""

    def __init__(self, process: asyncio.subprocess.Process, url: str, reading: asyncio.Task[None]) -> None:
        self._process = process
        self._reading = reading
        self.url = url

    @property
    def pid(self) -> int:
        return self._process.pid

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    async def kill(self) -> None:
        await self._end(signal.SIGKILL)

    async def terminate(self) -> int:
        """End it in order; returns the exit code."""
        return await self._end(signal.SIGTERM)

    async def _end(self, how: signal.Signals) -> int:
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(how)
        code = await asyncio.wait_for(self._process.wait(), 30)
        await self._reading
        return code


async def start(
    environment: Mapping[str, str], *, command: str = "serve", log: list[dict[str, object]] | None = None
) -> Process:
    """Start a daemon and return when it is ready. Its log lines go to `log`."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "graft",
        command,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "GRAFT_LISTEN": "127.0.0.1:0", **environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    lines: list[str] = []

    async def read() -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            lines.append(line.decode(errors="replace"))
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if log is not None:
                log.append(entry)
            if entry.get("event") == "ready" and not ready.done():
                ready.set_result(str(entry["listen"]))
        if not ready.done():
            ready.set_exception(RuntimeError(f"the daemon ended before it was ready: {''.join(lines[-5:])}"))

    reading = asyncio.create_task(read())
    url = await asyncio.wait_for(ready, 60)
    return Process(process, url, reading)


@asynccontextmanager
async def serving(environment: Mapping[str, str], *, command: str = "serve") -> AsyncIterator[Process]:
    """A daemon for the length of the block; killed at the end if it still runs."""
    process = await start(environment, command=command)
    try:
        yield process
    finally:
        await process.kill()
