"""Two runs side by side: how much each metric moved, and how sure that is.

The runs are paired by case. The interval of a difference comes from a bootstrap over the cases: the same cases are
drawn with replacement for both runs, some thousand times, and the middle 95 % of the differences are the interval. It
answers whether the difference would still be there with other cases of this kind; it knows nothing of how much the
same model differs from run to run. The draws are seeded, so a comparison always gives the same numbers.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from graft.evaluation.runs import CaseResult, Run
from graft.evaluation.scores import METRICS, Metric, Score, rate, total

__all__ = ["Comparison", "Difference", "compare"]

DRAWS = 2_000
_MIDDLE = 0.95
_SEED = 8


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One metric in both runs. `low` and `high` bound the difference B - A."""

    metric: Metric
    a: float
    b: float
    low: float
    high: float

    @property
    def change(self) -> float:
        return self.b - self.a

    @property
    def worse_by(self) -> float:
        """How much worse B is; negative where it is better."""
        return self.change if self.metric.better == "lower" else -self.change

    @property
    def surely_worse_by(self) -> float:
        """The end of the interval that is kindest to B, on the same scale."""
        return self.low if self.metric.better == "lower" else -self.high

    @property
    def is_sure(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low > 0 or self.high < 0


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """`only_a`, `only_b`: cases that have no pair. `inputs`, `truth`, `prompts`, `cards`, `sections`: cases in which
    that differs; a difference of scores says little about a model where the inputs or the truth are others."""

    differences: tuple[Difference, ...]
    paired: int
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    truth: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()


def compare(a: Run, b: Run) -> Comparison:
    """Compare two runs over the cases that both have."""
    in_a, in_b = ({case.case: case for case in run.cases} for run in (a, b))
    pairs = [(in_a[name], in_b[name]) for name in sorted(in_a.keys() & in_b.keys())]

    def differing(field: str) -> tuple[str, ...]:
        return tuple(x.case for x, y in pairs if getattr(x, field) != getattr(y, field))

    return Comparison(
        differences=_differences(pairs),
        paired=len(pairs),
        only_a=tuple(sorted(in_a.keys() - in_b.keys())),
        only_b=tuple(sorted(in_b.keys() - in_a.keys())),
        inputs=differing("inputs"),
        truth=differing("truth"),
        prompts=differing("prompts"),
        risks=tuple(x.case for x, y in pairs if x.card.risk is not y.card.risk),
        sections=differing("section"),
    )


def _differences(pairs: Sequence[tuple[CaseResult, CaseResult]]) -> tuple[Difference, ...]:
    totals = [total(case.scores for case in side) for side in zip(*pairs, strict=True)] or [{}, {}]
    rng = random.Random(_SEED)  # noqa: S311 - draws cases, guards nothing
    draws = [rng.choices(range(len(pairs)), k=len(pairs)) for _ in range(DRAWS)] if pairs else []
    found = []
    for metric in METRICS:
        a, b = (rate(side.get(metric.name)) for side in totals)
        if a is None or b is None:
            continue
        scores = [(x.scores.get(metric.name, (0, 0)), y.scores.get(metric.name, (0, 0))) for x, y in pairs]
        low, high = (0.0, 0.0) if all(x == y for x, y in scores) else _interval(scores, draws)
        found.append(Difference(metric=metric, a=a, b=b, low=low, high=high))
    return tuple(found)


def _interval(scores: Sequence[tuple[Score, Score]], draws: Sequence[Sequence[int]]) -> tuple[float, float]:
    rows = [(a[0], a[1], b[0], b[1]) for a, b in scores]
    changes = []
    for draw in draws:
        hits_a, of_a, hits_b, of_b = map(sum, zip(*[rows[index] for index in draw], strict=True))
        if of_a and of_b:
            changes.append(hits_b / of_b - hits_a / of_a)
    changes.sort()
    if not changes:
        return 0.0, 0.0
    tail = int(len(changes) * (1 - _MIDDLE) / 2)
    return changes[tail], changes[-tail - 1]
