"""How long an operator waits: graftctl's questions to two replicas that know 10,000 pull requests.

Postgres holds 100 repositories with 100 pull requests each, every one with provenance, a card, a verdict and a
row of work. Each question is asked one after the other over one connection, as `graftctl` does, and timed from
the request to the decoded answer; either replica answers. `graftctl` itself, a fresh process each time, is timed
beside it: most of that is Python's start.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import uvloop

from actors.daemon import Daemon, running
from graft import control, embedded
from graft.cli.asking import Asker, asking
from graft.cli.broker import Broker
from graft.cli.demo import settings_for
from graft.simulator import Simulator

REPOSITORIES, PULLS = 100, 100
LIMIT_SECONDS = 0.1

FILL = """
INSERT INTO installations (id, account_login) SELECT n, 'octo' || n FROM generate_series(1, 10) n;
INSERT INTO repositories (id, installation_id, full_name)
SELECT n, 1 + n % 10, 'octo' || (1 + n % 10) || '/repo' || n FROM generate_series(1, {repositories}) n;
INSERT INTO changes (repository_id, pr_number, head_sha, base_ref, author_login, state, pr_updated_at)
SELECT r, n, md5(r || '-' || n) || '00000000', 'main', 'ann', CASE WHEN n % 3 = 0 THEN 'open' ELSE 'merged' END,
       now() - n * interval '1 hour'
  FROM generate_series(1, {repositories}) r, generate_series(1, {pulls}) n;
INSERT INTO change_provenance (change_id, head_sha, author_kind, author_kind_reason, source, agents)
SELECT id, head_sha, 'agent', 'declared', 'declared', ARRAY['claude-code'] FROM changes;
INSERT INTO provenance (change_id, commit_sha, source, author_kind, agent)
SELECT id, md5(id || '-' || n), 'declared', 'agent', 'claude-code' FROM changes, generate_series(1, 5) n;
INSERT INTO intent_cards (change_id, head_sha, base_sha, status, risk_class, risk_floor, verifier_status, card,
                          prompt_version, input_hash, published_at)
SELECT id, head_sha, head_sha, 'ready', 'logic', 'trivial', 'agrees',
       jsonb_build_object('goal', jsonb_build_object('text', repeat('Retries the payment. ', 10)),
                          'changes', jsonb_agg(jsonb_build_object('text', repeat('It tries again. ', 8)))),
       '1', 'x', now()
  FROM changes, generate_series(1, 5) GROUP BY id, head_sha;
INSERT INTO policy_verdicts (change_id, head_sha, base_ref, base_sha, policy_status, outcome, facts_hash)
SELECT id, head_sha, 'main', head_sha, 'none', 'none', 'x' FROM changes;
INSERT INTO intent_displays (change_id, card_id, status, shown_at)
SELECT change_id, id, 'ready', now() FROM intent_cards;
INSERT INTO check_runs (change_id, head_sha, name, check_run_id, external_id, content_hash)
SELECT id, head_sha, name, 1, 'x', 'x'
  FROM changes, unnest('{{graft/intent,graft/policy,graft/provenance}}'::text[]) name;
INSERT INTO intent_spend (repository_id, change_id, purpose, model, outcome, tokens, cost_usd, spent_at)
SELECT repository_id, id, purpose, 'claude-opus-5-5', 'ok', 9000, 0.05, now() - pr_number * interval '4 hours'
  FROM changes, unnest(ARRAY['writer', 'verifier']) purpose;
INSERT INTO work (address, need, partition, installation_id, repository_id, asked_at, due_at)
SELECT 'pull.' || repository_id || '.' || pr_number, 'reactions', (pr_number + repository_id) % 32,
       1 + repository_id % 10, repository_id, now(), now() + interval '1 day'
  FROM changes;
INSERT INTO webhook_deliveries (delivery_id, event, status, received_at)
SELECT 'delivery-' || n, 'pull_request', 'accepted', now() FROM generate_series(1, 30000) n;
ANALYZE;
"""


def figures(seconds: list[float]) -> tuple[float, float]:
    cuts = statistics.quantiles(seconds, n=100)
    return cuts[49], cuts[98]


async def timed(rounds: int, ask: Callable[[int], Awaitable[object]]) -> list[float]:
    seconds = []
    for number in range(rounds + 20):
        began = time.perf_counter()
        await ask(number)
        if number >= 20:
            seconds.append(time.perf_counter() - began)
    return seconds


def questions(asker: Asker) -> dict[str, Callable[[int], Awaitable[object]]]:
    """What is asked, by the command that asks it."""

    def pull(number: int) -> control.ChangeName:
        repository = 1 + number * 7 % REPOSITORIES
        name = f"octo{1 + repository % 10}/repo{repository}"
        return control.ChangeName(repository=name, number=1 + number * 13 % PULLS)

    return {
        "status": lambda _: asker.ask(control.STATUS, control.Nothing()),
        "ls": lambda _: asker.ask(control.ACTORS, control.ListActors()),
        "ls repo7 --sort age": lambda _: asker.ask(
            control.ACTORS, control.ListActors(match="repo7", sort="age")
        ),
        "show": lambda number: asker.ask(control.SHOW, pull(number)),
        "why": lambda number: asker.ask(control.WHY, pull(number)),
        "dead ls": lambda _: asker.ask(control.DEAD, control.ListDead()),
        "budget": lambda _: asker.ask(control.BUDGET, control.BudgetQuestion()),
        "config": lambda _: asker.ask(control.CONFIG, control.Nothing()),
    }


async def measure(rounds: int, processes: int) -> bool:
    """Print the figures; whether every question was answered fast enough."""
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="graft-bench-")))
        nats = await stack.enter_async_context(embedded.nats_server(directory / "nats"))
        postgres = await stack.enter_async_context(embedded.postgres_server(directory / "postgres"))
        simulator = await stack.enter_async_context(Simulator())
        settings = settings_for(simulator, nats.url, postgres.url())
        replicas: list[Daemon] = [await stack.enter_async_context(running(settings)) for _ in range(2)]
        await replicas[0].services.pool.execute(
            FILL.format(repositories=REPOSITORIES, pulls=PULLS), timeout=120
        )
        while any(len(one.system.held) != 16 for one in replicas):
            await asyncio.sleep(0.1)
        broker = Broker(url=nats.url, prefix=settings.nats_prefix, origin="bench")
        print(f"graftctl, two replicas, {REPOSITORIES * PULLS:,} pull requests, {rounds} questions each")
        good = True
        async with asking(broker) as asker:
            for name, ask in questions(asker).items():
                p50, p99 = figures(await timed(rounds, ask))
                good = good and p99 < LIMIT_SECONDS
                print(f"  {name:20} p50 {p50 * 1000:6.2f} ms, p99 {p99 * 1000:6.2f} ms")
        started = await asyncio.to_thread(process_times, nats.url, processes)
        print(
            f"  {'graftctl status':20} p50 {statistics.median(started) * 1000:6.0f} ms as a process of its own"
        )
        return good


def process_times(nats_url: str, count: int) -> list[float]:
    """Seconds that `graftctl status --json` takes from its start to its end."""
    command = [str(Path(sys.executable).with_name("graftctl")), "--server", nats_url, "status", "--json"]
    seconds = []
    for _ in range(count):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ})
        seconds.append(time.perf_counter() - began)
    return seconds


def main(argv: list[str]) -> int:
    """1 when a p99 is 100 ms or more."""
    parser = argparse.ArgumentParser(prog="python -m bench control", description=__doc__)
    parser.add_argument("--rounds", type=int, default=500, help="questions of each kind")
    parser.add_argument("--processes", type=int, default=20, help="times that graftctl itself is started")
    arguments = parser.parse_args(argv)
    return 0 if uvloop.run(measure(arguments.rounds, arguments.processes)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
