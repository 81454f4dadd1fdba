"""What goes wrong in a trial, and when: drawn from a seed before it begins, so that a trial can be repeated.

`schedule` is pure. A kill of both replicas counts as two.
"""

from __future__ import annotations

import random
from typing import Final

import msgspec

from proof.links import Direction

KILLS: Final = {"kill one replica": 50, "kill both replicas": 10, "kill NATS": 20, "kill Postgres": 20}
OTHERS: Final = {
    "freeze a replica": 12,
    "drain a replica": 10,
    "cut a connection": 24,
    "GitHub answers 502": 8,
    "GitHub hangs after storing": 8,
    "GitHub drops after storing": 8,
    "GitHub limits an installation (secondary)": 7,
    "GitHub limits an installation (primary)": 7,
    "GitHub serves an old head": 8,
    "GitHub's list of comments lags": 6,
    "the stream is full": 8,
    "poison in the stream": 8,
}
LINKS: Final = ("nats", "postgres", "github", "model", "webhooks")
WRITES: Final = (
    "POST /repos/{owner}/{repo}/issues/{number}/comments",
    "PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}",
    "POST /repos/{owner}/{repo}/check-runs",
    "PATCH /repos/{owner}/{repo}/check-runs/{check_run_id}",
)
POISONS: Final = ("no JSON", "no trigger", "a time that no column holds")


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """One fault, `at` so many seconds after the start. `pick` chooses among what is there at that time, `for_`
    is how long it lasts or how long a killed server stays away, in seconds."""

    at: float
    kind: str
    pick: int
    for_: float
    link: str = ""
    direction: Direction = "out"
    target: str = ""

    def __str__(self) -> str:
        more = " ".join(part for part in (self.link and f"{self.link} {self.direction}", self.target) if part)
        return f"{self.at:5.2f} s  {self.kind} (pick {self.pick}, {self.for_:.2f} s) {more}".rstrip()


def schedule(seed: int, *, seconds: float, kills: int, others: int) -> list[Planned]:
    """The faults of one trial in the order of time; exactly so many processes are killed."""
    draw = random.Random(f"{seed}/faults")
    kinds: list[str] = []
    left = kills
    while left > 0:
        kind = draw.choices(list(KILLS), list(KILLS.values()))[0]
        weight = 2 if kind == "kill both replicas" else 1
        if weight <= left:
            kinds.append(kind)
            left -= weight
    kinds += draw.choices(list(OTHERS), list(OTHERS.values()), k=others)
    return sorted((_planned(kind, draw, seconds) for kind in kinds), key=lambda planned: planned.at)


def _planned(kind: str, draw: random.Random, seconds: float) -> Planned:
    return Planned(
        at=round(draw.uniform(0.3, seconds), 2),
        kind=kind,
        pick=draw.randrange(1000),
        for_=round(draw.uniform(0.1, 1.2), 2),
        link=draw.choice(LINKS) if kind == "cut a connection" else "",
        direction=draw.choice(("out", "back")) if kind == "cut a connection" else "out",
        target=draw.choice(WRITES)
        if "storing" in kind
        else draw.choice(POISONS)
        if kind == "poison in the stream"
        else "",
    )
