"""Numbers about the running system: what models answer, and what is looked up when somebody scrapes."""

from __future__ import annotations

import asyncio
from collections import Counter

import msgspec

from actors.inbox import Inbox
from actors.system import ActorSystem
from graft import tracing
from graft.bus import Bus
from graft.database import Pool
from graft.github import GitHub
from graft.llm import LlmClient, LlmRequest, LlmResult, prices
from graft.metrics import Metrics
from graft.store import overview


class MeteredModel(msgspec.Struct, frozen=True):
    """An `LlmClient` that counts what another one answers."""

    model: LlmClient
    metrics: Metrics

    async def complete(self, request: LlmRequest) -> LlmResult:
        with tracing.span("model", kind="client", purpose=request.purpose, model=request.model) as span:
            result = await self.model.complete(request)
            span.set_attribute("outcome", str(result.outcome))
        names = (request.purpose, request.model)
        self.metrics.model_calls.labels(*names, str(result.outcome)).inc()
        self.metrics.model_seconds.labels(request.purpose).observe(result.seconds)
        for kind, tokens in (
            ("input", result.usage.input_tokens),
            ("output", result.usage.output_tokens),
            ("cache_read", result.usage.cache_read_tokens),
            ("cache_write", result.usage.cache_write_tokens),
        ):
            self.metrics.model_tokens.labels(*names, kind).inc(tokens)
        self.metrics.model_cost.labels(*names).inc(float(prices.cost(result.model, result.usage)))
        return result

    async def count_tokens(self, model: str, text: str) -> int | None:
        return await self.model.count_tokens(model, text)


def sample(
    metrics: Metrics, *, pool: Pool, bus: Bus, system: ActorSystem, inbox: Inbox, github: GitHub
) -> None:
    """Have everything looked up at each scrape that nobody counts as it happens."""
    counted = {"stored": 0, "dead": 0}

    async def broker() -> None:
        backlog = await bus.backlog()
        metrics.backlog_messages.set(backlog.messages)
        metrics.backlog_bytes.set(backlog.bytes)
        metrics.backlog_max_bytes.set(backlog.max_bytes)
        metrics.backlog_oldest_seconds.set(backlog.oldest_seconds or 0)

    async def database() -> None:
        async with pool.acquire() as connection:
            work = await overview.work_counts(connection)
            replicas = await overview.replicas(connection)
            unheld = await overview.unheld(connection)
            _, spent, _ = await overview.spend_today(connection, match=None, limit=1)
            votes = await overview.vote_counts(connection)
        for state in ("due", "waiting", "parked", "dead"):
            metrics.work.labels(state).set(getattr(work, state))
        metrics.work_oldest_due_seconds.set(work.oldest_due_seconds or 0)
        metrics.replicas.set(len(replicas))
        metrics.partitions_unheld.set(len(unheld))
        metrics.spend_today.set(float(spent))
        for verdict in ("accurate", "wrong"):
            for source in ("reaction", "button"):
                metrics.votes.labels(verdict, source).set(votes.get((verdict, source), 0))

    async def process() -> None:
        metrics.tasks.set(len(asyncio.all_tasks()))
        metrics.partitions_held.set(len(system.held))
        metrics.actor_slots.set(system.concurrency)
        metrics.app_refused.set(0 if system.refused is None else 1)
        running = Counter(address.partition(".")[0] for address in system.running)
        for kind in system.actors:
            metrics.actors_running.labels(kind).set(running[kind])
        for outcome, now in (("stored", inbox.taken), ("dead", inbox.dead)):
            metrics.triggers_taken.labels(outcome).inc(now - counted[outcome])
            counted[outcome] = now
        states = [client.limits for client in list(github.installations.values())]
        left = [state.remaining for state in states if state.remaining is not None]
        metrics.github_remaining.set(min(left, default=float("nan")))
        metrics.github_limited.set(sum(state.limited_for > 0 for state in states))

    metrics.sample(
        "broker",
        broker,
        metrics.backlog_messages,
        metrics.backlog_bytes,
        metrics.backlog_max_bytes,
        metrics.backlog_oldest_seconds,
    )
    metrics.sample(
        "database",
        database,
        metrics.work_oldest_due_seconds,
        metrics.replicas,
        metrics.partitions_unheld,
        metrics.spend_today,
    )
    metrics.sample("process", process)
