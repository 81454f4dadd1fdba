"""The real broker with the configuration file that is deployed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
ROLES = ("ingress", "daemon", "operator", "viewer")


class Broker:
    """`deploy/nats.conf`, started as it is; only address, port and directory are given on the command line."""

    def __init__(self, port: int, log: Path) -> None:
        self.port = port
        self._log = log

    def url(self, user: str) -> str:
        return f"nats://{user}:{password(user)}@127.0.0.1:{self.port}"

    def violations(self) -> list[str]:
        """What the server refused so far, as it logs it."""
        return [line for line in self._log.read_text().splitlines() if "Violation" in line]


def password(user: str) -> str:
    return f"secret0of0{user}"


def start_nats(directory: Path) -> subprocess.Popen[bytes]:
    found = Path(sys.executable).with_name("nats-server")
    binary = str(found) if found.exists() else shutil.which("nats-server")
    assert binary is not None
    variables = {f"GRAFT_NATS_{role.upper()}_PASSWORD": password(role) for role in ROLES}
    return subprocess.Popen(
        [
            *(binary, "--config", str(DEPLOY / "nats.conf"), "--addr", "127.0.0.1", "--port", "-1"),
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
    directory = Path(tempfile.mkdtemp(prefix="graft-deploy-"))
    process = start_nats(directory)
    try:
        ports = directory / f"nats-server_{process.pid}.ports"
        deadline = time.monotonic() + 20
        while not ports.exists() or not ports.read_bytes().endswith(b"}"):
            assert process.poll() is None, "the server did not take deploy/nats.conf"
            assert time.monotonic() < deadline
            time.sleep(0.02)
        port = urlsplit(json.loads(ports.read_bytes())["nats"][0]).port
        assert port is not None
        yield Broker(port, directory / "log")
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(directory, ignore_errors=True)
