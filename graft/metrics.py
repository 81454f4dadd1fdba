"""Prometheus metrics of one process object: names are stable, labels come from closed sets.

Each `Metrics` has a registry of its own, so that two daemons (or tests) in one process do not share numbers.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4

_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """The numbers of one daemon."""

    def __init__(self) -> None:
        self.registry: Final = CollectorRegistry()
        self.deliveries: Final = Counter(
            "graft_deliveries",
            "Webhook deliveries by event (`other` for those not handled) and answer.",
            ["event", "outcome"],
            registry=self.registry,
        )
        self.delivery_seconds: Final = Histogram(
            "graft_delivery_seconds",
            "Time from a delivery's first byte to its answer.",
            buckets=_FAST,
            registry=self.registry,
        )
        self.github_calls: Final = Counter(
            "graft_github_calls",
            "Requests to GitHub by route template and status (`none` where no answer came).",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.github_seconds: Final = Histogram(
            "graft_github_seconds",
            "Time of a request to GitHub.",
            buckets=_FAST,
            registry=self.registry,
        )
        self.log_fields_dropped: Final = Counter(
            "graft_log_fields_dropped",
            "Log fields that were not on the allow-list.",
            registry=self.registry,
        )

    def github_call(
        self, route: str, method: str, status: int | None, seconds: float, installation: int | None
    ) -> None:
        """Count one request to GitHub. The installation is no label: there can be thousands."""
        self.github_calls.labels(method, route, str(status or "none")).inc()
        self.github_seconds.observe(seconds)

    def render(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)
