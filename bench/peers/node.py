"""The receivers that run on Node: installed from npm by the lock, and started as a careful team would run them.

Production mode, no log lines, statements prepared, a pool of the size that was the fastest here.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import asyncpg
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from msgspec import Struct

from bench.load import Taken
from bench.receivers import SECRET, Receiver, started
from bench.tables import ROOT
from graft.embedded import PostgresServer

HERE: Final = Path(__file__).parent
# pg-boss asks for it.
OLDEST: Final = (22, 12)
POOL: Final = 16
_INSTALL_SECONDS: Final = 300
_PORT: Final = r"^(\d+)$"


class NoNode(Exception):
    """npm or a Node that is new enough is missing, or the registry could not be reached."""


class Installed(Struct, frozen=True, kw_only=True):
    """The packages of the lock in `directory`, the Node to run them, and what they are."""

    directory: Path
    node: str
    versions: tuple[str, ...]

    @property
    def examples(self) -> Path:
        return self.directory / "node_modules/@octokit/webhooks-examples/api.github.com/index.json"


def install(directory: Path = ROOT / "var" / "peers") -> Installed:
    """Put the lock's packages and the servers into a directory that git ignores; nothing is fetched twice.

    No package's scripts are run. Raises NoNode.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for source in (*HERE.glob("*.js"), *HERE.glob("*.json")):
        shutil.copy(source, directory)
    lock = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    stamp = directory / ".installed"
    if not stamp.exists() or stamp.read_text() != lock:
        stamp.unlink(missing_ok=True)
        _npm(directory)
        stamp.write_text(lock)
    node = _node(directory)
    asked = json.loads((HERE / "package.json").read_bytes())["dependencies"]
    found = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if tuple(int(part) for part in found.removeprefix("v").split(".")[:2]) < OLDEST:
        raise NoNode(f"Node {found} is too old for pg-boss, which needs {'.'.join(map(str, OLDEST))}")
    versions = (f"Node {found.removeprefix('v')}", *(f"{name} {version}" for name, version in asked.items()))
    return Installed(directory=directory, node=node, versions=versions)


def _npm(directory: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NoNode("npm is not installed; the receivers beside Graft's come from it")
    done = subprocess.run(
        [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=_INSTALL_SECONDS,
        check=False,
    )
    if done.returncode:
        raise NoNode(f"npm ci failed:\n{done.stderr[-2000:]}")


def _node(directory: Path) -> str:
    """The lock's own Node where it has one for this machine, else the machine's."""
    locked = [*directory.glob("node_modules/node-*/bin/node")]
    node = str(locked[0]) if locked else shutil.which("node")
    if node is None:
        raise NoNode("Node is not installed, and the lock has none for this machine")
    return node


@contextmanager
def fastify_pgboss(
    installed: Installed, postgres: PostgresServer, directory: Path, *, commit: str, pool: int = POOL
) -> Iterator[Receiver]:
    """Fastify and pg-boss over a database of their own with this `synchronous_commit`."""
    name = f"peer_{commit}"
    asyncio.run(_make_database(postgres, name, commit))
    environment = {
        "DATABASE_URL": postgres.url(name),
        "GITHUB_WEBHOOK_SECRET": SECRET,
        "POOL": str(pool),
    }
    with _running(installed, "fastify-pgboss.js", environment, directory) as (port, pid):
        yield Receiver(
            name=f"Fastify + pg-boss, synchronous_commit={commit}",
            port=port,
            taken=Taken(status=202, word=b"enqueued"),
            pid=pid,
            store_pid=postgres.pid,
        )


async def _make_database(postgres: PostgresServer, name: str, commit: str) -> None:
    connection = await asyncpg.connect(postgres.url())
    try:
        await connection.execute(f"CREATE DATABASE {name}")
        await connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = {commit}")
    finally:
        await connection.close()


@contextmanager
def probot(installed: Installed, directory: Path) -> Iterator[Receiver]:
    """Probot with an App's key that GitHub does not know; it never calls GitHub."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    environment = {"GITHUB_APP_PRIVATE_KEY": pem, "GITHUB_WEBHOOK_SECRET": SECRET}
    with _running(installed, "probot.js", environment, directory) as (port, pid):
        yield Receiver(name="Probot", port=port, taken=Taken(status=200, word=b"\r\n\r\nok"), pid=pid)


@contextmanager
def _running(
    installed: Installed, script: str, environment: dict[str, str], directory: Path
) -> Iterator[tuple[int, int]]:
    directory.mkdir(parents=True, exist_ok=True)
    command = [installed.node, str(installed.directory / script)]
    with started(command, {"NODE_ENV": "production", **environment}, _PORT, directory / "log") as found:
        yield found
