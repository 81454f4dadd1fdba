"""What do the cards cost, in money, time and requests?"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from graft.pilot.document import Material, Plot, Point, Section
from graft.pilot.figures import Figure, count, median, total
from graft.pilot.rollup import Day, together


def section(material: Material) -> Section:
    whole = together(material.days.values())
    daily = [numbers.cost_usd for numbers in material.days.values()]
    return Section(
        key="cost",
        title="What does it cost?",
        lead="Model calls at their list price, as the ledger holds them; days are UTC.",
        figures=(
            total(
                key="cost.total",
                name="Cost",
                definition="The price of every model call in the period, failed ones included.",
                values=daily,
                sample_of="days",
                unit="usd",
            ),
            median(
                key="cost.change",
                name="Cost per pull request",
                definition="All model calls for one pull request, over its whole life; pull requests that a model "
                "was first asked about in the period.",
                values=material.change_costs,
                sample_of="pull requests",
                unit="usd",
            ),
            count(
                key="cost.tokens",
                name="Tokens",
                definition="Tokens read and written by models, cached ones included.",
                value=whole.tokens,
                sample_of="tokens",
            ),
            median(
                key="cost.latency",
                name="Time to the first card",
                definition="From opening the pull request to the first card in its comment, by GitHub's clock. The "
                "wait for pushes to settle is part of it.",
                values=whole.latencies,
                sample_of="pull requests",
                unit="seconds",
            ),
            _calls_per_head(whole),
        ),
        plots=(
            Plot(
                kind="bars",
                title="Cost per day",
                points=tuple(
                    Point(
                        label=day.isoformat(),
                        figure=total(
                            key=f"cost.day.{day.isoformat()}",
                            name="Cost of the day",
                            definition="The price of every model call of the day (UTC).",
                            values=[numbers.cost_usd],
                            sample_of="day",
                            unit="usd",
                        ),
                    )
                    for day, numbers in sorted(material.days.items())
                ),
            ),
            Plot(
                kind="bars",
                title="Pull requests by what they cost",
                points=_cost_histogram(material.change_costs),
            ),
        ),
    )


def _calls_per_head(whole: Day) -> Figure:
    """A ratio of two complete counts: there is nothing to be unsure of, but it needs heads."""
    return Figure(
        key="cost.calls",
        name="GitHub requests per head",
        definition="Requests to GitHub made for pull requests, divided by the heads that check runs were published "
        "for; polling for reactions is included.",
        unit="number",
        sample=whole.heads,
        sample_of="heads",
        needed=1,
        value=whole.api_calls / whole.heads if whole.heads and whole.api_calls else None,
    )


_COST_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def _cost_histogram(costs: Sequence[float]) -> tuple[Point, ...]:
    if not costs:
        return ()
    bounds = (0.0, *_COST_STEPS, float("inf"))
    points = []
    for low, high in itertools.pairwise(bounds):
        label = f"${low:.2f} to ${high:.2f}"
        if low == 0 or high == bounds[-1]:
            label = f"under ${high:.2f}" if low == 0 else f"${low:.2f} or more"
        points.append(
            Point(
                label=label,
                figure=count(
                    key=f"cost.histogram.{low:g}",
                    name="Pull requests",
                    definition=f"Pull requests whose model calls cost {label}; the lower bound is included.",
                    value=sum(low <= cost < high for cost in costs),
                    sample_of="pull requests",
                ),
            )
        )
    return tuple(points)
