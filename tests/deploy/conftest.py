"""The real broker with the configuration file that is deployed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
ROLES = ("ingress", "daemon", "operator", "viewer")


class Broker:
    """`deploy/nats.conf`, started as it is; only address, port and directory are given on the command line."""

    def __init__(self, port: int, log: Path, pid: int) -> None:
        self.port = port
        self._log = log
        self._pid = pid

    def url(self, user: str) -> str:
        return f"nats://{user}:{password(user)}@127.0.0.1:{self.port}"

    def traced(self) -> str:
        """Everything that clients and the server said, as far as it runs with `trace`."""
        return self._log.read_text(errors="replace")

    def reload(self) -> None:
        """Have the server read its file again; returns when it has."""
        before = self.traced().count("Reloaded server configuration")
        os.kill(self._pid, signal.SIGHUP)
        deadline = time.monotonic() + 10
        while self.traced().count("Reloaded server configuration") == before:
            assert time.monotonic() < deadline, self.traced()[-500:]
            time.sleep(0.01)

    def violations(self) -> list[str]:
        """What the server refused so far, as it logs it."""
        return [line for line in self._log.read_text().splitlines() if "Violation" in line]


def password(user: str) -> str:
    return f"secret0of0{user}"


def start_nats(directory: Path, *more: str, config: Path = DEPLOY / "nats.conf") -> subprocess.Popen[bytes]:
    found = Path(sys.executable).with_name("nats-server")
    binary = str(found) if found.exists() else shutil.which("nats-server")
    assert binary is not None
    variables = {f"GRAFT_NATS_{role.upper()}_PASSWORD": password(role) for role in ROLES}
    return subprocess.Popen(
        [
            *(binary, "--config", str(config), "--addr", "127.0.0.1", "--port", "-1", *more),
            *("--http_port", "-1", "--log", str(directory / "log")),
            *("--ports_file_dir", str(directory)),
        ],
        env={"PATH": os.environ["PATH"], "GRAFT_NATS_DATA": str(directory / "data"), **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker of this test's own: its stream has the deployed name."""
    with running() as broker:
        yield broker


@contextmanager
def running(*more: str, config: Path = DEPLOY / "nats.conf") -> Iterator[Broker]:
    """A broker for the length of the block, started with `more` arguments."""
    directory = Path(tempfile.mkdtemp(prefix="graft-deploy-"))
    process = start_nats(directory, *more, config=config)
    try:
        ports = directory / f"nats-server_{process.pid}.ports"
        deadline = time.monotonic() + 20
        while not ports.exists() or not ports.read_bytes().endswith(b"}"):
            assert process.poll() is None, "the server did not take deploy/nats.conf"
            assert time.monotonic() < deadline
            time.sleep(0.02)
        port = urlsplit(json.loads(ports.read_bytes())["nats"][0]).port
        assert port is not None
        yield Broker(port, directory / "log", process.pid)
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(directory, ignore_errors=True)
