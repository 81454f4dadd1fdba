"""With every file system read-only, as in the deployed containers: who writes where, and that it is enough."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest
import yaml

from graft.simulator import Simulator
from graft.simulator.demo_repository import build_demo_repository
from tests.actors.world import environment

from .conftest import DEPLOY, ROLES, ROOT, password

# A mount namespace of its own, in which all but the kernel's file systems and the given directories are read-only.
_LOCK = """
set -e
mount --make-rprivate /
for writable in $WRITABLE; do mount --bind "$writable" "$writable"; done
while read -r _ place _; do
  case " /proc /sys /dev $WRITABLE " in *" $place "*) continue ;; esac
  case "$place" in /proc/*|/sys/*|/dev/*) continue ;; esac
  mount -o remount,bind,ro "$place"
done < /proc/self/mounts
unset WRITABLE
exec "$@"
"""


def locked(*command: str) -> list[str]:
    return ["unshare", "--mount", "sh", "-c", _LOCK, "sh", *command]


def can_lock() -> bool:
    if shutil.which("unshare") is None:
        return False
    tried = subprocess.run(
        locked("true"), env={**os.environ, "WRITABLE": ""}, capture_output=True, check=False
    )
    return tried.returncode == 0


pytestmark = pytest.mark.skipif(not can_lock(), reason="mounts cannot be made here: needs root and unshare")


def test_what_is_locked_is_locked(tmp_path: Path) -> None:
    """A directory that was given can be written to, everything around it cannot."""
    open_one, other = tmp_path / "open", tmp_path / "other"
    open_one.mkdir()
    other.mkdir()
    for place, code in ((open_one, 0), (other, 1), (ROOT, 1), (Path("/tmp"), 1)):
        tried = subprocess.run(
            locked("touch", str(place / "written")),
            env={**os.environ, "WRITABLE": str(open_one)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert tried.returncode == code, tried.stderr
        assert ("Read-only file system" in tried.stderr) is bool(code)


@asynccontextmanager
async def daemon(variables: Mapping[str, str]) -> AsyncIterator[str]:
    """`graft serve` that can write nowhere; its URL."""
    process = await asyncio.create_subprocess_exec(
        *locked(sys.executable, "-m", "graft", "serve"),
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "WRITABLE": "", "GRAFT_LISTEN": "127.0.0.1:0", **variables},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    said: list[str] = []
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def read(lines: asyncio.StreamReader) -> None:
        async for line in lines:
            said.append(line.decode())
            if '"event": "ready"' in said[-1] and not ready.done():
                ready.set_result(json.loads(said[-1])["listen"])

    reading = asyncio.create_task(read(process.stderr))
    try:
        waited: set[asyncio.Future[str] | asyncio.Task[None]] = {ready, reading}
        await asyncio.wait(waited, timeout=60, return_when=asyncio.FIRST_COMPLETED)
        assert ready.done(), "".join(said)
        yield ready.result()
    finally:
        if process.returncode is None:
            process.terminate()
        code = await asyncio.wait_for(process.wait(), 30)
        await reading
    assert code == 0
    assert "Read-only" not in "".join(said)
    assert '"level": "error"' not in "".join(said)


async def test_the_daemon_writes_no_file_at_all(
    tmp_path: Path, database_url: str, nats_url: str, bus_prefix: str
) -> None:
    made = build_demo_repository(tmp_path / "demo.git")
    async with Simulator() as simulator:
        repository = simulator.add_repository("octo/demo", made.path)
        async with daemon(environment(simulator, database_url, nats_url, bus_prefix)) as url:
            simulator.app.webhook_url = f"{url}/webhooks/github"
            pull = await simulator.open_pull(
                repository, head=made.head_branch, title=made.title, body=made.body
            )
            connection = await asyncpg.connect(database_url)
            try:
                async with asyncio.timeout(40):
                    while not await connection.fetchval(
                        "SELECT count(*) FROM changes WHERE graft_comment_id IS NOT NULL"
                    ) or await connection.fetchval("SELECT count(*) FROM work WHERE address LIKE 'pull.%'"):
                        await asyncio.sleep(0.05)
            finally:
                await connection.close()
            assert len(pull.issue.comments) == 1


def test_the_broker_writes_its_data_and_nothing_else() -> None:
    nats = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["nats"]
    assert nats["read_only"] is True
    assert "tmpfs" not in nats
    assert [volume for volume in nats["volumes"] if not volume.endswith(":ro")] == [
        f"nats:{nats['environment']['GRAFT_NATS_DATA']}"
    ]
    binary = Path(sys.executable).with_name("nats-server")
    program = str(binary) if binary.exists() else shutil.which("nats-server")
    assert program is not None
    directory = Path(tempfile.mkdtemp(prefix="graft-locked-"))
    variables = {f"GRAFT_NATS_{role.upper()}_PASSWORD": password(role) for role in ROLES}
    process = subprocess.Popen(
        locked(
            *(program, "--config", str(DEPLOY / "nats.conf"), "--addr", "127.0.0.1", "--port", "-1"),
            *("--http_port", "-1", "--ports_file_dir", str(directory)),
        ),
        env={
            "PATH": os.environ["PATH"],
            "WRITABLE": str(directory),
            "GRAFT_NATS_DATA": str(directory),
            **variables,
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        deadline = time.monotonic() + 20
        while not list(directory.glob("*.ports")):
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        process.terminate()
        process.communicate(timeout=10)
        shutil.rmtree(directory, ignore_errors=True)


def _tmpfs(service: Mapping[str, Sequence[str]]) -> set[str]:
    return set(service.get("tmpfs", ()))


def test_only_what_has_to_be_is_writable() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    assert {name: _tmpfs(service) for name, service in services.items() if _tmpfs(service)} == {
        "postgres": {"/tmp", "/var/run/postgresql"}
    }
    for name in ("actors", "ingress"):
        [deployment] = [
            each
            for each in yaml.safe_load_all((DEPLOY / "kubernetes" / f"{name}.yaml").read_text())
            if each["kind"] == "Deployment"
        ]
        pod = deployment["spec"]["template"]["spec"]
        assert "volumes" not in pod
        assert all("volumeMounts" not in container for container in pod["containers"])
