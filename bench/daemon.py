"""The daemon in a process of its own for a bench: as in production, but with a model that answers at once.

`python -m bench.daemon [--profile FILE]` reads its settings from the environment, prints where it listens, and ends
with standard input. With `--profile` every line on standard input switches the profiler; what it saw is written at
the end.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import os
import pstats
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import psutil
import uvloop
from asyncpg import Connection

from actors.daemon import running
from bench.tables import ROOT
from graft import logs
from graft.config import Settings
from graft.testing import agreeable_model

# What a profile's files are called in a table, by what their paths hold; the first that fits.
_PLACES = (
    ("/graft/intent/", "intent cards: floor, injection markers, rendering"),
    ("/graft/provenance/", "provenance"),
    ("/graft/policy/", "policy"),
    ("/graft/github/", "requests to GitHub"),
    ("/graft/markdown", "making text inert"),
    ("/graft/logs", "logs"),
    ("/structlog/", "logs"),
    ("/graft/store/", "Postgres"),
    ("/asyncpg/", "Postgres"),
    ("/aiohttp/web", "HTTP server (webhooks)"),
    ("/graft/ingress", "HTTP server (webhooks)"),
    ("/aiohttp/", "requests to GitHub"),
    ("/yarl/", "requests to GitHub"),
    ("/uritemplate/", "requests to GitHub"),
    ("/gidgethub/", "requests to GitHub"),
    ("/nats/", "NATS"),
    ("/graft/", "Graft's other modules"),
    ("/actors/", "actors"),
    ("/asyncio/", "asyncio and its waiting"),
)


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """Processor seconds by place, and statements sent to Postgres, of what was profiled."""

    seconds: dict[str, float]
    statements: int


class Served:
    """A daemon that `serving` started; `url` is where it listens."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self._process = process
        self.url = url

    @property
    def cpu_seconds(self) -> float:
        """Processor time it has used so far, in user and kernel."""
        times = psutil.Process(self._process.pid).cpu_times()
        return float(times.user + times.system)

    def switch_profiler(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()


@contextmanager
def serving(
    environment: Mapping[str, str], directory: Path, *, profile: Path | None = None
) -> Iterator[Served]:
    """A daemon for the length of the block, ended in order. What its profiler saw is in `profile` afterwards."""
    with (directory / "daemon.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.daemon", *(["--profile", str(profile)] if profile else [])],
            env={"PATH": os.environ.get("PATH", ""), "GRAFT_LISTEN": "127.0.0.1:0", **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=ROOT,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        if not url:
            raise RuntimeError(f"the daemon did not start:\n{(directory / 'daemon.log').read_text()[-2000:]}")
        yield Served(process, url)
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


def read(profile: Path) -> Profile:
    """What a daemon that has ended wrote."""
    return msgspec.json.decode(profile.read_bytes(), type=Profile)


def places(stats: Mapping[Any, Any]) -> dict[str, float]:
    """Time by place, from pstats' table. What is written in C counts for whoever calls it."""
    found: Counter[str] = Counter()
    for (path, _line, _name), (_, _, own, _, callers) in stats.items():
        if path == "~" and callers:
            for (caller, _, _), (_, _, share, _) in callers.items():
                found[_place(caller)] += share
        else:
            found[_place(path)] += own
    return dict(found)


class Statements:
    """Counts what is sent to Postgres. Whatever asyncpg sends goes through one of these methods."""

    def __init__(self) -> None:
        self.counting = False
        self.count = 0
        for name in ("execute", "_execute", "_executemany"):
            setattr(Connection, name, self._counted(name, getattr(Connection, name)))

    def _counted(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        async def counted(connection: Connection, query: str, *arguments: Any, **options: Any) -> Any:
            # `execute` with arguments calls `_execute`.
            if self.counting and not (name == "execute" and arguments):
                self.count += 1
            return await method(connection, query, *arguments, **options)

        return counted


def _place(path: str) -> str:
    return next((place for part, place in _PLACES if part in path), "the rest")


async def _serve(profile: Path | None) -> None:
    profiler, statements = cProfile.Profile(), Statements()
    async with running(Settings.from_env(os.environ), model=agreeable_model()) as daemon:
        print(daemon.url, flush=True)
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while await reader.readline():
            statements.counting = not statements.counting
            (profiler.enable if statements.counting else profiler.disable)()
    if profile is not None:
        stats = cast(Any, pstats.Stats(profiler)).stats
        profile.write_bytes(msgspec.json.encode(Profile(seconds=places(stats), statements=statements.count)))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.daemon")
    parser.add_argument("--profile", type=Path)
    logs.configure(level="warning")
    uvloop.run(_serve(parser.parse_args(argv).profile))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
