"""Real servers for the tests: one NATS and one Postgres per test process, a fresh database per test.

`GRAFT_TEST_NATS_URL` and `GRAFT_TEST_DATABASE_URL` name servers to use instead of the embedded ones.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from graft import database, embedded
from graft.config import Settings

# The same examples in every run, and no verdict by the clock of a busy machine.
hypothesis_settings.register_profile(
    "graft", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.load_profile("graft")


@pytest.fixture(scope="session")
def servers_directory() -> Iterator[Path]:
    # Not pytest's own directory: its name can be too long for a Unix socket, and it keeps old ones.
    directory = Path(tempfile.mkdtemp(prefix="graft-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def nats_url(servers_directory: Path) -> Iterator[str]:
    """A NATS server with JetStream that all tests of this process share."""
    if url := os.environ.get("GRAFT_TEST_NATS_URL"):
        yield url
        return
    with embedded.running_nats(servers_directory / "nats", sync_always=False) as server:
        yield server.url


@pytest.fixture
def bus_prefix() -> str:
    """A NATS prefix, and with it a stream, that no other test has."""
    return f"t{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="session")
def postgres_url(servers_directory: Path) -> Iterator[str]:
    """The maintenance database of a Postgres server that all tests of this process share."""
    if url := os.environ.get("GRAFT_TEST_DATABASE_URL"):
        yield url
        return
    with embedded.running_postgres(servers_directory / "postgres", durable=False) as server:
        yield server.url()


def _database(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


@pytest.fixture(scope="session")
def template_database(postgres_url: str) -> Iterator[str]:
    """The name of a database with Graft's schema, to be copied."""
    name = f"graft_template_{uuid.uuid4().hex[:12]}"

    async def create() -> None:
        await _execute(postgres_url, f'CREATE DATABASE "{name}"')
        connection = await asyncpg.connect(_database(postgres_url, name))
        try:
            await database.migrate(connection)
        finally:
            await connection.close()

    asyncio.run(create())
    yield name
    asyncio.run(_execute(postgres_url, f'DROP DATABASE "{name}" WITH (FORCE)'))


@pytest.fixture
async def empty_database_url(postgres_url: str) -> AsyncIterator[str]:
    """A fresh database without tables, dropped after the test."""
    name = f"graft_{uuid.uuid4().hex[:16]}"
    await _execute(postgres_url, f'CREATE DATABASE "{name}"')
    yield _database(postgres_url, name)
    await _execute(postgres_url, f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
async def database_url(postgres_url: str, template_database: str) -> AsyncIterator[str]:
    """A fresh database with Graft's schema, dropped after the test."""
    name = f"graft_{uuid.uuid4().hex[:16]}"
    await _execute(
        postgres_url, f'CREATE DATABASE "{name}" TEMPLATE "{template_database}" STRATEGY file_copy'
    )
    yield _database(postgres_url, name)
    await _execute(postgres_url, f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[database.Pool]:
    """Connections to the test's own database."""
    opened = await database.open_pool(database_url, size=8)
    yield opened
    await opened.close()


@pytest.fixture(scope="session")
def app_private_key() -> str:
    """An RSA key in PEM, as GitHub gives one out for an App."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()


@pytest.fixture
def settings(app_private_key: str) -> Callable[..., Settings]:
    """`settings(NATS_URL=..., ...)`: complete settings, with the given variables over the usual ones."""

    def make(**variables: str) -> Settings:
        return Settings.from_env(
            {
                "DATABASE_URL": "postgresql://nobody@localhost/nowhere",
                "NATS_URL": "nats://localhost:4222",
                "GITHUB_APP_ID": "4242",
                "GITHUB_APP_SLUG": "graft-test",
                "GITHUB_APP_PRIVATE_KEY": app_private_key,
                "GITHUB_WEBHOOK_SECRET": "a webhook secret",
                "GITHUB_API_URL": "http://127.0.0.1:1",
                "GRAFT_LISTEN": "127.0.0.1:0",
                **variables,
            }
        )

    return make
