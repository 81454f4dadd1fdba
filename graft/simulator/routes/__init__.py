"""The operations this GitHub offers, one module a resource."""

from __future__ import annotations

from graft.simulator.http import Route
from graft.simulator.routes import apps, checks, commits, contents, deliveries, issues, pulls, repositories

ROUTES: tuple[Route, ...] = (
    *apps.ROUTES,
    *deliveries.ROUTES,
    *repositories.ROUTES,
    *pulls.ROUTES,
    *commits.ROUTES,
    *contents.ROUTES,
    *issues.ROUTES,
    *checks.ROUTES,
    *commits.LAST_ROUTES,
)
