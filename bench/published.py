"""From the webhook to the final comment: a simulated GitHub without latency, a model that answers at once.

Everything else is real: NATS with `sync_interval: always`, Postgres, the daemon with ingress and actors. Each
sample is a new pull request; the time runs from the first byte of the webhook to the commit that follows the
last write to GitHub. One process plays GitHub and daemon, so the figures include the simulator's own work.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import uvloop

from actors.daemon import running
from graft import embedded
from graft.cli.demo import settings_for
from graft.simulator import Simulator
from graft.simulator.demo_repository import build_demo_repository
from graft.testing import agreeable_model

WARM_UP = 4
PER_INSTALLATION = 4


async def measure(samples: int) -> None:
    """Print the figures."""
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="graft-bench-")))
        nats = await stack.enter_async_context(embedded.nats_server(directory / "nats"))
        postgres = await stack.enter_async_context(embedded.postgres_server(directory / "postgres"))
        simulator = await stack.enter_async_context(Simulator())
        settings = settings_for(simulator, nats.url, postgres.url())
        daemon = await stack.enter_async_context(running(settings, model=agreeable_model()))
        simulator.app.webhook_url = f"{daemon.url}/webhooks/github"
        made = build_demo_repository(directory / "demo.git")
        # GitHub's limit on writes is kept per installation; a few pull requests each stay within its burst.
        repositories = [
            simulator.add_repository(f"octo{index}/demo", made.path)
            for index in range((samples + WARM_UP) // PER_INSTALLATION + 1)
        ]
        published: asyncio.Queue[tuple[int, float]] = asyncio.Queue()

        def hear(name: str, payload: dict[str, object]) -> None:
            if name == "published" and payload.get("final"):
                published.put_nowait((int(str(payload["number"])), time.perf_counter()))

        await daemon.services.bus.subscribe_signals(hear)
        seconds: list[float] = []
        calls: Counter[str] = Counter()
        for index in range(samples + WARM_UP):
            before = len(simulator.requests)
            began = time.perf_counter()
            await simulator.open_pull(
                repositories[index // PER_INSTALLATION],
                head=made.head,
                head_ref=f"feature-{index}",
                title=made.title,
                body=made.body,
            )
            _, ended = await asyncio.wait_for(published.get(), 60)
            if index >= WARM_UP:  # the first ones warm up caches and connections
                seconds.append(ended - began)
                for record in list(simulator.requests)[before:]:
                    calls["writes" if record.method != "GET" else "reads"] += 1
        await simulator.drain()
        quantiles = statistics.quantiles(seconds, n=100)
        print(f"webhook to published: {samples} new pull requests, one after the other")
        print(f"  p50 {quantiles[49] * 1e3:.1f} ms   p99 {quantiles[98] * 1e3:.1f} ms")
        print(
            f"  GitHub calls per head: {calls['reads'] / samples:.1f} reads, {calls['writes'] / samples:.1f} writes"
        )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench published", description=__doc__)
    parser.add_argument("--samples", type=int, default=50)
    uvloop.run(measure(parser.parse_args(arguments).samples))
    return 0
