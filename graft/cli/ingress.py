"""`graft ingress`: what GitHub posts to, as a process of its own.

It holds the webhook secret and a broker connection, nothing else: no key of the App, no database, no model. It
publishes triggers and does not make the stream; until an actor process has made it, `/readyz` says no and
deliveries are refused with 503.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import click

from graft import __version__, logs
from graft import ingress as doorway
from graft.bus import Bus
from graft.cli.daemon import run_to_end, settings_from_environment, stop_on_signals
from graft.config import IngressSettings
from graft.metrics import Metrics

log = logs.get_logger("cli")


@click.command()
def ingress() -> None:
    """Run the ingress alone until SIGTERM or Ctrl-C.

    Settings come from the environment; see docs/configuration.md.
    """
    settings = settings_from_environment(IngressSettings)

    async def run() -> None:
        await take_in(settings, stop_on_signals())

    run_to_end(run())


async def take_in(settings: IngressSettings, stop: asyncio.Event) -> None:
    """Take deliveries until `stop` is set; what was received is answered before the connection closes.

    Raises ConfigError, naming the variable, when NATS or the address cannot be had.
    """
    async with AsyncExitStack() as stack:
        bus = await Bus.connect(
            settings.nats_url.value, creds=settings.nats_creds, prefix=settings.nats_prefix, role="ingress"
        )
        stack.push_async_callback(bus.close)
        metrics = Metrics()
        app = doorway.create_app(settings, bus, doorway.Readiness(), metrics)
        url = await doorway.listen(stack, app, settings.listen)
        log.info("ready", listen=url, version=__version__)
        await stop.wait()
        log.info("draining")
