"""Prometheus metrics of one process object: names are stable, labels come from closed sets.

Each `Metrics` has a registry of its own, so that two daemons (or tests) in one process do not share numbers.
What has to be looked up is sampled when somebody scrapes; gauges that describe the whole installation and not
this replica say so, and every replica shows the same number: take their `max`.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4

_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SLOW = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)
# A scrape more often than this shows the same sample.
_SAMPLE_SECONDS: Final = 1.0
_SAMPLE_LIMIT: Final = 2.0

Sampler = Callable[[], Awaitable[None]]

# The kind of actor that runs in this task: whose requests to GitHub these are.
actor_kind: Final[ContextVar[str]] = ContextVar("actor_kind", default="none")


class Metrics:
    """The numbers of one daemon."""

    def __init__(self) -> None:
        self.registry: Final = CollectorRegistry()
        self._samplers: dict[str, tuple[Sampler, tuple[Gauge, ...]]] = {}
        self._sampled_at = -math.inf
        self._sampling = asyncio.Lock()
        # ------------------------------------------------------------------------------- the ingress
        self.deliveries: Final = self._counter(
            "graft_deliveries",
            "Webhook deliveries by event (`other` for those not handled) and answer.",
            "event",
            "outcome",
        )
        self.delivery_seconds: Final = self._histogram(
            "graft_delivery_seconds", "Time from a delivery's first byte to its answer.", _FAST
        )
        # -------------------------------------------------------------------------------- the broker
        self.triggers_taken: Final = self._counter(
            "graft_triggers_taken", "Triggers taken from the stream: `stored` or `dead`.", "outcome"
        )
        self.backlog_messages: Final = self._gauge(
            "graft_backlog_messages", "Triggers in the stream (whole installation)."
        )
        self.backlog_bytes: Final = self._gauge(
            "graft_backlog_bytes", "Bytes in the stream (whole installation)."
        )
        self.backlog_max_bytes: Final = self._gauge(
            "graft_backlog_max_bytes", "Size at which the stream refuses triggers (whole installation)."
        )
        self.backlog_oldest_seconds: Final = self._gauge(
            "graft_backlog_oldest_seconds", "Age of the oldest trigger in the stream (whole installation)."
        )
        # ---------------------------------------------------------------------------------- the work
        self.work: Final = self._gauge(
            "graft_work",
            "Rows of work by state: due, waiting, parked (installation suspended), dead (whole installation).",
            "state",
        )
        self.work_oldest_due_seconds: Final = self._gauge(
            "graft_work_oldest_due_seconds", "How long the oldest due work has been due (whole installation)."
        )
        self.replicas: Final = self._gauge("graft_replicas", "Replicas that run (whole installation).")
        self.partitions_unheld: Final = self._gauge(
            "graft_partitions_unheld", "Partitions that no replica holds (whole installation)."
        )
        self.partitions_held: Final = self._gauge(
            "graft_partitions_held", "Partitions that this replica holds."
        )
        self.actors_running: Final = self._gauge(
            "graft_actors_running", "Actors running in this replica, by kind.", "kind"
        )
        self.actor_slots: Final = self._gauge(
            "graft_actor_slots", "Actors that this replica runs at a time at most."
        )
        self.tasks: Final = self._gauge("graft_tasks", "Asyncio tasks of this process.")
        self.app_refused: Final = self._gauge(
            "graft_app_refused", "1 while GitHub refuses the App's key, id or clock to this replica."
        )
        self.actor_runs: Final = self._counter(
            "graft_actor_runs",
            "Runs of actors by kind and end: done, failed, waited (rate limit), lost (partition), refused (App).",
            "kind",
            "outcome",
        )
        self.work_seconds: Final = self._histogram(
            "graft_work_seconds",
            "Time from the first ask for a need until it was done, settling and waiting included.",
            _SLOW,
            "kind",
            "need",
        )
        self.stage_seconds: Final = self._histogram(
            "graft_stage_seconds", "Time that a run spent in one stage.", _SLOW, "kind", "stage"
        )
        self.heads: Final = self._counter("graft_heads", "Times that a head was brought to a finished card.")
        self.actor_calls: Final = self._counter(
            "graft_actor_github_calls", "Requests to GitHub made in runs of actors, by kind.", "kind"
        )
        # ------------------------------------------------------------------------------------ GitHub
        self.github_calls: Final = self._counter(
            "graft_github_calls",
            "Requests to GitHub by route template and status (`none` where no answer came).",
            "method",
            "route",
            "status",
        )
        self.github_seconds: Final = self._histogram(
            "graft_github_seconds", "Time of a request to GitHub.", _FAST
        )
        self.github_remaining: Final = self._gauge(
            "graft_github_remaining",
            "Requests left to the installation that has the fewest, in this replica.",
        )
        self.github_limited: Final = self._gauge(
            "graft_github_limited_installations",
            "Installations that GitHub asked this replica to leave alone.",
        )
        self.recoveries: Final = self._counter(
            "graft_recoveries",
            "Deliveries without a row: asked for again (`asked`, `last_try`), or found to be `ignored` ones.",
            "outcome",
        )
        self.deliveries_missing: Final = self._gauge(
            "graft_deliveries_missing",
            "Deliveries that recovery waits for; only the replica that leads has a number above 0.",
        )
        # ------------------------------------------------------------------------------------ models
        self.model_calls: Final = self._counter(
            "graft_model_calls", "Model calls by purpose, model and outcome.", "purpose", "model", "outcome"
        )
        self.model_tokens: Final = self._counter(
            "graft_model_tokens",
            "Tokens by kind: input, output, cache_read, cache_write.",
            "purpose",
            "model",
            "kind",
        )
        self.model_cost: Final = self._counter(
            "graft_model_cost_usd", "US dollars that model calls cost.", "purpose", "model"
        )
        self.model_seconds: Final = self._histogram(
            "graft_model_seconds", "Time of a model call.", _SLOW, "purpose"
        )
        self.spend_today: Final = self._gauge(
            "graft_spend_today_usd", "US dollars spent since midnight UTC (whole installation)."
        )
        self.votes: Final = self._gauge(
            "graft_votes", "Standing votes on cards (whole installation).", "verdict", "source"
        )
        # -------------------------------------------------------------------------------- this module
        self.sample_failures: Final = self._counter(
            "graft_sample_failures", "Samples that could not be taken, by source.", "source"
        )
        self.log_fields_dropped: Final = self._counter(
            "graft_log_fields_dropped", "Log fields that were not on the allow-list."
        )

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(name, text, labels, buckets=buckets, registry=self.registry)

    def github_call(
        self, route: str, method: str, status: int | None, seconds: float, installation: int | None
    ) -> None:
        """Count one request to GitHub. The installation is no label: there can be thousands."""
        self.github_calls.labels(method, route, str(status or "none")).inc()
        self.github_seconds.observe(seconds)
        self.actor_calls.labels(actor_kind.get()).inc()

    # ----------------------------------------------------------------------------------------- sampling

    def sample(self, source: str, sampler: Sampler, *gauges: Gauge) -> None:
        """Have `sampler` set its gauges at a scrape. When it fails its label-less gauges show no number rather
        than an old one."""
        self._samplers[source] = (sampler, gauges)

    async def scrape(self) -> bytes:
        """All metrics in Prometheus' text format, with fresh samples. Never raises for a source that is away."""
        async with self._sampling:
            if time.monotonic() - self._sampled_at >= _SAMPLE_SECONDS:
                await asyncio.gather(*(self._take(source) for source in self._samplers))
                self._sampled_at = time.monotonic()
        return self.render()

    async def _take(self, source: str) -> None:
        sampler, gauges = self._samplers[source]
        try:
            async with asyncio.timeout(_SAMPLE_LIMIT):
                await sampler()
        except Exception:  # noqa: BLE001 - whatever is broken, the other numbers still count
            self.sample_failures.labels(source).inc()
            for gauge in gauges:
                gauge.set(math.nan)

    def render(self) -> bytes:
        """All metrics in Prometheus' text format, as they stand."""
        return generate_latest(self.registry)
