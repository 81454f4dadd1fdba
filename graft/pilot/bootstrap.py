"""How sure is a difference of two medians? Efron's percentile bootstrap, repeatable to the last digit."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from typing import Final

from graft.pilot.figures import BOOTSTRAP, Figure, Unit, quantile

RESAMPLES: Final = 2_000
# Per side: below this, resampling a sample mostly shows that sample.
LEAST_FOR_DIFFERENCE: Final = 20
_SEED: Final = 20_261_201


def difference_of_medians(
    *,
    key: str,
    name: str,
    definition: str,
    before: Sequence[float],
    after: Sequence[float],
    unit: Unit,
    sample_of: str,
) -> Figure:
    """The median after minus the median before, with its 95 % interval, or not enough data.

    The sample size is that of the smaller side. The same values give the same interval, in whatever order.
    """
    figure = Figure(
        key=key,
        name=name,
        definition=definition,
        unit=unit,
        sample=min(len(before), len(after)),
        sample_of=sample_of,
        needed=LEAST_FOR_DIFFERENCE,
        interval=BOOTSTRAP,
    )
    if figure.sample < LEAST_FOR_DIFFERENCE:
        return figure
    first, second = sorted(before), sorted(after)
    dice = random.Random(_SEED)  # noqa: S311 - statistics, not secrets
    found = sorted(
        statistics.median(dice.choices(second, k=len(second)))
        - statistics.median(dice.choices(first, k=len(first)))
        for _ in range(RESAMPLES)
    )
    return Figure(
        key=key,
        name=name,
        definition=definition,
        unit=unit,
        sample=figure.sample,
        sample_of=sample_of,
        needed=LEAST_FOR_DIFFERENCE,
        interval=BOOTSTRAP,
        value=statistics.median(second) - statistics.median(first),
        low=quantile(found, 0.025),
        high=quantile(found, 0.975),
    )
