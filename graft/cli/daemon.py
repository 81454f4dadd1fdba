"""`graft serve`, `graft actors` and `graft migrate`: the daemon with settings from the environment."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn, TypeVar

import asyncpg
import click
import uvloop

from graft import config, database, logs, tracing
from graft.config import ActorSettings, DatabaseSettings, IngressSettings, Settings
from graft.errors import ConfigError

log = logs.get_logger("cli")


@click.command()
def serve() -> None:
    """Run ingress and actors until SIGTERM or Ctrl-C.

    Settings come from the environment; see docs/configuration.md.
    """
    run_daemon(Settings)


@click.command()
def actors() -> None:
    """Run the actors without the ingress until SIGTERM or Ctrl-C.

    Needs no webhook secret. Health and metrics are served on GRAFT_LISTEN. Settings come from the environment;
    see docs/configuration.md.
    """
    run_daemon(ActorSettings)


def run_daemon(kind: type[ActorSettings]) -> None:
    """Run what these settings are for until a signal comes."""
    from actors import daemon

    settings = settings_from_environment(kind)

    async def run() -> None:
        await daemon.serve(settings, stop_on_signals())

    run_to_end(run())


S = TypeVar("S", ActorSettings, IngressSettings)


def settings_from_environment(kind: type[S]) -> S:
    """The settings of a long-running process; logging is set up from them, too."""
    try:
        settings = kind.from_env(os.environ)
        tracing.configure(os.environ, service=settings.nats_prefix)
    except ConfigError as error:
        fail(error)
    logs.configure(level=settings.log_level, form=settings.log_format)
    for warning in config.warnings(os.environ, settings):
        log.warning("setting", warning=warning)
    return settings


@click.command()
def migrate() -> None:
    """Create or upgrade the schema in DATABASE_URL, and say which version it has."""
    try:
        settings = DatabaseSettings.from_env(os.environ)
    except ConfigError as error:
        fail(error)

    async def run() -> int:
        pool = await database.open_pool(settings.database_url.value, size=1)
        try:
            async with pool.acquire() as connection:
                return await database.migrate(connection)
        finally:
            await pool.close()

    try:
        version = uvloop.run(run())
    except ConfigError as error:
        fail(error)
    except asyncpg.InsufficientPrivilegeError:
        fail(
            ConfigError(["DATABASE_URL: this role may not create tables; use the one that owns the database"])
        )
    click.echo(f"schema version {version}")


def stop_on_signals() -> asyncio.Event:
    """An event that SIGTERM and Ctrl-C set. A second signal ends the process the hard way."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def ask_to_stop(number: signal.Signals) -> None:
        loop.remove_signal_handler(number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask_to_stop, number)
    return stop


def run_to_end(work: Coroutine[Any, Any, None]) -> None:
    """Run a program; a problem of its settings ends it with one line per problem."""
    try:
        uvloop.run(work)
    except ConfigError as error:
        fail(error)
    except database.UNAVAILABLE as error:
        fail(
            ConfigError(
                [
                    f"a server went away while Graft started or stopped ({type(error).__name__}); start it again"
                ]
            )
        )
    except KeyboardInterrupt:
        sys.exit(130)


def fail(error: ConfigError) -> NoReturn:
    """Say what has to be changed, one line a problem, and exit with 2."""
    for problem in error.problems:
        click.echo(f"graft: {problem}", err=True)
    sys.exit(2)
