"""What Graft needs for few and for very many repositories: arithmetic over measured unit costs.

The costs are measured first (`bench/costs.py`), then multiplied by a load. Every number that was not measured is an
assumption with a name in `Assumed`, and stands under the table. The same arithmetic predicts what two replicas do on
this machine from what one did, and the prediction is compared with the run.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from typing import Final

import uvloop
from msgspec import Struct

from bench.costs import Costs, measure
from bench.tables import Table, publish
from graft.llm.prices import AS_OF, cost

_HOUR: Final = 3600
_DAY: Final = 24 * _HOUR
_STRONG: Final = "claude-opus-5-5"
_FAST: Final = "claude-haiku-5-5"


class Assumed(Struct, frozen=True, kw_only=True):
    """What was not measured. Change a number and the table changes with it."""

    pulls_per_repository_day: float = 2.0
    heads_per_pull: float = 2.5
    # The busiest hour against the mean of the day.
    peak: float = 5.0
    # How busy a core may be at the peak.
    busy: float = 0.5
    repositories_per_installation: int = 10
    # What the stream has to hold while no actor runs.
    outage_hours: float = 4.0
    kept_days: int = 365
    # Heads that settle and get a model's card, and how many of those have a trivial floor (the fast writer).
    carded: float = 0.6
    trivial: float = 0.3
    # The evaluation's changes are small ones.
    tokens_times: float = 4.0
    # GitHub's least quota of an installation; it grows with repositories and users up to 12,500, or 15,000 on
    # Enterprise Cloud (docs.github.com, rate limits of the REST API).
    quota_per_hour: int = 5_000
    postgres_cores: int = 64
    github_pulls_per_day: float = 2_000_000.0


class Need(Struct, frozen=True, kw_only=True):
    """What a load needs. Rates are those of the peak; sizes in bytes; money in US dollars a day."""

    repositories: float
    heads_per_second: float
    deliveries_per_second: float
    daemon_cores: float
    broker_cores: float
    postgres_cores: float
    stream_bytes: float
    database_bytes: float
    requests_per_hour: float
    quota_used: float
    dollars_per_day: float
    saturation: dict[str, float]

    @property
    def replicas(self) -> int:
        """A replica is one process and uses one core; never fewer than two, so that one may die."""
        return max(2, math.ceil(self.daemon_cores))

    @property
    def first(self) -> str:
        """The part that is nearest to its limit."""
        return max(self.saturation, key=lambda part: self.saturation[part])


def need(repositories: float, costs: Costs, assumed: Assumed) -> Need:
    """What so many repositories need."""
    pulls = repositories * assumed.pulls_per_repository_day
    heads = pulls * assumed.heads_per_pull
    peak = heads / _DAY * assumed.peak
    deliveries = peak * costs.deliveries
    triggers = peak * costs.triggers
    per_installation = heads / max(1.0, repositories / assumed.repositories_per_installation)
    requests = per_installation / 24 * assumed.peak * (costs.reads + costs.writes)
    postgres = peak * costs.one.postgres / assumed.busy
    stored = pulls * costs.change_bytes + (heads - pulls) * costs.head_bytes
    return Need(
        repositories=repositories,
        heads_per_second=peak,
        deliveries_per_second=deliveries,
        daemon_cores=peak * costs.one.daemon / assumed.busy,
        broker_cores=peak * costs.one.broker / assumed.busy,
        postgres_cores=postgres,
        stream_bytes=triggers * _HOUR * assumed.outage_hours * costs.trigger_bytes,
        database_bytes=stored * assumed.kept_days,
        requests_per_hour=requests,
        quota_used=requests / assumed.quota_per_hour,
        dollars_per_day=heads * assumed.carded * card_dollars(costs, assumed),
        saturation={
            "GitHub's quota of an installation": requests / assumed.quota_per_hour,
            "one Postgres primary": postgres / assumed.postgres_cores,
            "one stream": triggers / (assumed.busy * costs.publish_rate),
        },
    )


def card_dollars(costs: Costs, assumed: Assumed) -> float:
    """What one card costs: a writer, fast where the floor is trivial, and a strong verifier."""

    def dollars(model: str, purpose: str) -> float:
        return (
            float(cost(model, costs.writer if purpose == "writer" else costs.verifier)) * assumed.tokens_times
        )

    writer = assumed.trivial * dollars(_FAST, "writer") + (1 - assumed.trivial) * dollars(_STRONG, "writer")
    return writer + dollars(_STRONG, "verifier")


def predicted_rate(costs: Costs) -> float:
    """Heads a second that two replicas do on this machine, from what one did: they have two cores between them at
    most, and whatever they do the machine's cores are shared by all parts."""
    everything = costs.cores / costs.one.together
    return min(2 / costs.one.daemon, everything)


# ------------------------------------------------------------------------------------------------- the tables


def capacity_table(costs: Costs, assumed: Assumed, command: str) -> Table:
    github = assumed.github_pulls_per_day / assumed.pulls_per_repository_day
    needs = [need(count, costs, assumed) for count in (10, 1_000, 100_000, github)]

    def row(what: str, show: Callable[[Need], str]) -> list[str]:
        return [what, *(show(one) for one in needs)]

    return Table(
        name="capacity",
        command=command,
        columns=["what", "10 repositories", "1,000", "100,000", "all of GitHub"],
        rows=[
            row("heads a second at the peak", lambda n: _number(n.heads_per_second)),
            row("deliveries a second at the peak", lambda n: _number(n.deliveries_per_second)),
            row("cores of daemons", lambda n: _number(n.daemon_cores)),
            row("replicas (a core each, two at least)", lambda n: f"{n.replicas:,}"),
            row("cores of NATS", lambda n: _number(n.broker_cores)),
            row("cores of Postgres", lambda n: _number(n.postgres_cores)),
            row(
                f"NATS storage for {assumed.outage_hours:g} h without actors",
                lambda n: _bytes(n.stream_bytes),
            ),
            row(f"Postgres after {assumed.kept_days} days", lambda n: _bytes(n.database_bytes)),
            row("GitHub requests an hour of an installation, peak", lambda n: _number(n.requests_per_hour)),
            row("of its quota", lambda n: f"{n.quota_used:.0%}"),
            row("models, dollars a day", lambda n: f"{n.dollars_per_day:,.0f}"),
            row(
                "saturates first",
                lambda n: f"{n.first}, at {n.saturation[n.first]:.0%} of one",
            ),
        ],
        conditions={
            "load": f"{assumed.pulls_per_repository_day:g} pull requests a repository and day,"
            f" {assumed.heads_per_pull:g} heads each, {assumed.peak:g} times the mean at the peak, cores"
            f" {assumed.busy:.0%} busy then, {assumed.repositories_per_installation} repositories an installation"
            f" with a quota of {assumed.quota_per_hour:,} requests an hour",
            "models": f"{assumed.carded:.0%} of the heads get a card, {assumed.trivial:.0%} of those by the fast"
            f" writer; {assumed.tokens_times:g} times the tokens of the evaluation's small changes; prices of {AS_OF}",
            "all of GitHub": f"assumed to be {assumed.github_pulls_per_day:,.0f} pull requests a day",
            "one Postgres primary": f"assumed to have {assumed.postgres_cores} cores",
        },
    )


def costs_table(costs: Costs, command: str) -> Table:
    one = costs.one
    return Table(
        name="costs",
        command=command,
        columns=["one head costs", "measured"],
        rows=[
            ["a daemon's core", f"{one.daemon * 1e3:.1f} ms"],
            ["NATS", f"{one.broker * 1e3:.1f} ms"],
            ["Postgres", f"{one.postgres * 1e3:.1f} ms"],
            ["GitHub, reads and writes", f"{costs.reads:.1f} + {costs.writes:.1f}"],
            ["deliveries, of which are stored", f"{costs.deliveries:.1f}, {costs.triggers:.1f}"],
            ["transactions", f"{costs.transactions:.0f}"],
            ["rows of a pull request and its first head", _bytes(costs.change_bytes)],
            ["rows of each further head", _bytes(costs.head_bytes)],
            ["a trigger in the stream", _bytes(costs.trigger_bytes)],
            ["triggers one stream stores a second, synced", f"{costs.publish_rate:,.0f}"],
        ],
        conditions={"heads": f"{one.heads}, by one replica"},
    )


def prediction_table(costs: Costs, command: str) -> Table:
    expected, found = predicted_rate(costs), costs.two.rate
    return Table(
        name="prediction",
        command=command,
        columns=["two replicas on this machine", "heads a second"],
        rows=[
            ["predicted from the run of one", f"{expected:.1f}"],
            ["measured", f"{found:.1f}"],
            ["measured against predicted", f"{found / expected:.0%}"],
            ["one replica, measured", f"{costs.one.rate:.1f}"],
        ],
        conditions={
            "cores": f"{costs.cores}, shared by daemons, NATS, Postgres and the simulated GitHub, which alone takes"
            f" {costs.one.simulated * 1e3:.0f} ms a head"
        },
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _bytes(value: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if value >= 10 or unit == "bytes" else f"{value:.1f} {unit}"


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench capacity", description=__doc__)
    parser.add_argument("--pulls", type=int, default=120, help="pull requests to measure the costs with")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/scaling.md")
    given = parser.parse_args(argv)
    costs = uvloop.run(measure(given.pulls))
    command = f"python -m bench capacity --pulls {given.pulls}"
    for table in (
        capacity_table(costs, Assumed(), command),
        costs_table(costs, command),
        prediction_table(costs, command),
    ):
        publish(table, write=given.write)
    return 0
