"""A number that may be shown: never without its definition, its sample size and its interval.

With too small a sample there is no value at all, only “not enough data” and how many are needed. Text, HTML,
JSON and CSV are all made from these values, so they cannot say different things.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

Unit = Literal["share", "count", "seconds", "usd", "number"]

# The 97.5th percentile of the normal distribution: 95 % of it lies within this many standard deviations.
Z95: Final = 1.959963984540054
# Below this many, a percentage says more about luck than about Graft.
LEAST_FOR_SHARE: Final = 20
# Below this many, a median has no 95 % interval worth showing.
LEAST_FOR_MEDIAN: Final = 10

WILSON: Final = "95 % Wilson"
RANKS: Final = "95 % by ranks"
BOOTSTRAP: Final = "95 % bootstrap"
COMPLETE: Final = "complete count"


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One number with everything it takes to read it. `value` is `None` where `sample` is below `needed`.

    `interval` says how `low` and `high` were found; a complete count has none, because nothing was sampled.
    `quartiles` are those of the sample, for medians.
    """

    key: str
    name: str
    definition: str
    unit: Unit
    sample: int
    sample_of: str
    needed: int = 0
    value: float | None = None
    low: float | None = None
    high: float | None = None
    interval: str = COMPLETE
    quartiles: tuple[float, float] | None = None

    @property
    def enough(self) -> bool:
        return self.value is not None


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % score interval for a share of `successes` among `n` (Wilson 1927). `n` is at least one."""
    if not 0 <= successes <= n or n < 1:
        raise ValueError("successes out of n, n at least one")
    share, z2 = successes / n, Z95 * Z95
    centre = share + z2 / (2 * n)
    spread = Z95 * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    low = (centre - spread) / (1 + z2 / n)
    high = (centre + spread) / (1 + z2 / n)
    # At the ends the formula gives the end itself, give or take rounding.
    return (0.0 if successes == 0 else max(low, 0.0)), (1.0 if successes == n else min(high, 1.0))


def share(
    *,
    key: str,
    name: str,
    definition: str,
    successes: int,
    sample: int,
    sample_of: str,
    needed: int = LEAST_FOR_SHARE,
) -> Figure:
    """A share with its Wilson interval, or not enough data."""
    figure = Figure(
        key=key,
        name=name,
        definition=definition,
        unit="share",
        sample=sample,
        sample_of=sample_of,
        needed=needed,
        interval=WILSON,
    )
    if sample < max(needed, 1):
        return figure
    low, high = wilson(successes, sample)
    return msgspec.structs.replace(figure, value=successes / sample, low=low, high=high)


def count(
    *, key: str, name: str, definition: str, value: float, sample_of: str, unit: Unit = "count"
) -> Figure:
    """A total over everything there is: exact, so it has no interval."""
    return Figure(
        key=key,
        name=name,
        definition=definition,
        unit=unit,
        value=value,
        sample=int(value),
        sample_of=sample_of,
    )


def total(
    *, key: str, name: str, definition: str, values: Sequence[float], sample_of: str, unit: Unit
) -> Figure:
    """A sum over everything there is; the sample is how many were added up."""
    return Figure(
        key=key,
        name=name,
        definition=definition,
        unit=unit,
        value=math.fsum(values),
        sample=len(values),
        sample_of=sample_of,
    )


def median(
    *,
    key: str,
    name: str,
    definition: str,
    values: Sequence[float],
    sample_of: str,
    unit: Unit,
    needed: int = LEAST_FOR_MEDIAN,
) -> Figure:
    """A median with quartiles and its distribution-free interval, or not enough data."""
    figure = Figure(
        key=key,
        name=name,
        definition=definition,
        unit=unit,
        sample=len(values),
        sample_of=sample_of,
        needed=needed,
        interval=RANKS,
    )
    if len(values) < max(needed, 1):
        return figure
    ordered = sorted(values)
    low, high = _median_ranks(len(ordered))
    return msgspec.structs.replace(
        figure,
        value=quantile(ordered, 0.5),
        low=ordered[low],
        high=ordered[high],
        quartiles=(quantile(ordered, 0.25), quantile(ordered, 0.75)),
    )


def quantile(ordered: Sequence[float], part: float) -> float:
    """The quantile of sorted values, interpolated between neighbours (type 7, as in R and NumPy)."""
    position = part * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def _median_ranks(n: int) -> tuple[int, int]:
    """The two ranks (from 0) between which the median lies with at least 95 %, by the binomial distribution;
    the whole range where even that covers less."""
    # P(fewer than k of n lie below the median) is the binomial distribution with one half.
    term, below, k = 0.5**n if n < 1000 else 0.0, 0.0, 0
    if n >= 1000:
        low = math.floor(n / 2 - Z95 * math.sqrt(n) / 2) - 1
        return low, n - 1 - low
    while below + term <= 0.025:
        below += term
        term *= (n - k) / (k + 1)
        k += 1
    low = max(k - 1, 0)
    return low, n - 1 - low


# ------------------------------------------------------------------------------------------------------- as text


def as_text(figure: Figure) -> str:
    """`93.1 % (88.2 to 96.1 %, 95 % Wilson, n = 130 rated cards)`, or `not enough data (n = 3 …)`."""
    n = f"n = {figure.sample:,} {figure.sample_of}"
    if figure.value is None:
        return f"not enough data ({n}, {figure.needed:,} needed)"
    shown = as_value(figure.value, figure.unit)
    if figure.low is None or figure.high is None:
        if figure.unit == "count":
            return f"{shown} {figure.sample_of} ({figure.interval})"
        return f"{shown} ({figure.interval}, {n})"
    low, high = as_value(figure.low, figure.unit), as_value(figure.high, figure.unit)
    return f"{shown} ({low} to {high}, {figure.interval}, {n})"


def as_value(value: float, unit: Unit) -> str:
    """A number in its unit: `93.1 %`, `4.2 h`, `$0.031`, `1,204`."""
    match unit:
        case "share":
            return f"{value * 100:.1f} %"
        case "seconds":
            return as_duration(value)
        case "usd":
            return f"${value:,.2f}" if abs(value) >= 1 or value == 0 else f"${value:.4f}"
        case "count":
            return f"{value:,.0f}"
        case "number":
            return f"{value:,.1f}"


def as_duration(seconds: float) -> str:
    """`45 s`, `12.5 min`, `4.2 h`, `3.1 d`; a minus sign in front where it is less than nothing."""
    sign, seconds = ("−" if seconds < 0 else ""), abs(seconds)
    for size, name, most in ((1, "s", 60), (60, "min", 3_600), (3_600, "h", 172_800)):
        if seconds < most:
            return f"{sign}{seconds / size:.{0 if size == 1 else 1}f} {name}"
    return f"{sign}{seconds / 86_400:.1f} d"
