"""`graft serve` processes that start in a tenth of a second: forked from one that has imported everything.

A trial kills and starts hundreds of them, and importing the libraries takes seconds of CPU. Apart from that such a
process is one like any other: its own memory, environment, log and process id, killed by the kernel. Should this
process die, they die with it.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

_START_SECONDS: Final = 60.0
_END_SECONDS: Final = 40.0
_PR_SET_PDEATHSIG: Final = 1

_context = get_context("forkserver")
_context.set_forkserver_preload(["anthropic", "graft.cli.main", "graft.cli.daemon", "actors.daemon"])


class Forked:
    """A running `graft serve`; `url` is where it serves."""

    def __init__(self, process: BaseProcess, url: str, reading: asyncio.Task[None]) -> None:
        self._process = process
        self._reading = reading
        self.url = url

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def freeze(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)

    async def kill(self) -> None:
        await self._end(signal.SIGKILL)

    async def terminate(self) -> int:
        """End it in order; returns the exit code."""
        return await self._end(signal.SIGTERM)

    async def _end(self, how: signal.Signals) -> int:
        self.thaw()
        with suppress(ProcessLookupError):
            os.kill(self.pid, how)
        await asyncio.wait_for(asyncio.to_thread(self._process.join), _END_SECONDS)
        await self._reading
        return self._process.exitcode or 0


async def start(environment: Mapping[str, str], *, log: Path | None = None) -> Forked:
    """Start a daemon and return when it is ready. What it says is added to the file `log`.

    Raises RuntimeError with its last lines when it ends before.
    """
    ours, theirs = _context.Pipe(duplex=False)
    variables = {"PATH": os.environ["PATH"], "GRAFT_LISTEN": "127.0.0.1:0", **environment}
    process = _context.Process(target=_serve, args=(variables, theirs), daemon=True)
    await asyncio.to_thread(process.start)
    theirs.close()
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    reading = asyncio.create_task(_read(ours, ready, log))
    try:
        url = await asyncio.wait_for(ready, _START_SECONDS)
    except (RuntimeError, TimeoutError) as error:
        process.kill()
        await asyncio.gather(asyncio.to_thread(process.join), reading)
        raise RuntimeError(str(error) or "the daemon was not ready in time") from None
    return Forked(process, url, reading)


async def _read(pipe: Connection, ready: asyncio.Future[str], log: Path | None) -> None:
    """Read the log until the process ends; its `ready` line has the address."""
    reader = asyncio.StreamReader()
    file = os.fdopen(os.dup(pipe.fileno()), "rb", buffering=0)
    pipe.close()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    last: list[str] = []
    kept = log.open("ab") if log else open(os.devnull, "wb")  # noqa: SIM115 - closed below
    async for line in reader:
        kept.write(line)
        last = [*last[-4:], line.decode(errors="replace")]
        with suppress(ValueError):
            entry = json.loads(line)
            if entry.get("event") == "ready" and not ready.done():
                ready.set_result(str(entry["listen"]))
    kept.close()
    transport.close()
    if not ready.done():
        ready.set_exception(RuntimeError(f"the daemon ended before it was ready: {''.join(last)}"))


def _serve(variables: Mapping[str, str], log: Connection) -> None:
    """The process itself."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.environ.clear()
    os.environ.update(variables)
    os.dup2(log.fileno(), sys.stderr.fileno())
    log.close()
    from graft.cli.main import main

    main(["serve"], standalone_mode=True)
