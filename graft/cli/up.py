"""`graft up`: the daemon with its own NATS and Postgres, for a single machine without either."""

from __future__ import annotations

import os
from pathlib import Path

import click

from graft import embedded, logs
from graft.cli.daemon import fail, run_to_end, stop_on_signals
from graft.config import Settings
from graft.errors import ConfigError


@click.command()
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("var"),
    show_default=True,
    help="Where NATS and Postgres keep their data.",
)
def up(data: Path) -> None:
    """Run NATS, Postgres and the daemon here.

    NATS and Postgres come from the `embedded` extra. The rest of the settings come from the environment, as
    for `graft serve`.
    """
    from actors import daemon

    async def run() -> None:
        async with (
            embedded.nats_server((data / "nats").absolute()) as nats,
            embedded.postgres_server((data / "postgres").absolute()) as postgres,
        ):
            environment = {**os.environ, "NATS_URL": nats.url, "DATABASE_URL": postgres.url()}
            settings = Settings.from_env(environment)
            logs.configure(level=settings.log_level, form=settings.log_format)
            await daemon.serve(settings, stop_on_signals())

    try:
        # What is wrong with the settings shows before two servers start.
        Settings.from_env(
            {**os.environ, "NATS_URL": "nats://localhost", "DATABASE_URL": "postgresql://localhost/x"}
        )
    except ConfigError as error:
        fail(error)
    run_to_end(run())
