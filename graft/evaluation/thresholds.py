"""What a run must reach, and how much worse than another one it may be: a file that a CI job goes by.

    limits:                      # of a run by itself
      under_rating: {at_most: 0.02}
    changes:                     # from the first run of a comparison to the second, in the worse direction
      behaviour_recall: {surely_worse_by: 0.05}
      below_floor: {worse_by: 0}

`worse_by` looks at the difference itself, right for replays, where nothing is left to chance. `surely_worse_by` looks
at the end of the confidence interval that is kindest to the second run, right for models whose answers vary.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from graft.errors import PermanentError
from graft.evaluation.comparing import Comparison
from graft.evaluation.runs import Run
from graft.evaluation.scores import METRICS, rate

__all__ = ["Thresholds", "load", "schema"]

_ROUNDING = 1e-9


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the file."""


class Limit(Strict, frozen=True, kw_only=True):
    at_least: float | None = None
    at_most: float | None = None


class Change(Strict, frozen=True, kw_only=True):
    worse_by: float | None = None
    surely_worse_by: float | None = None


class Thresholds(Strict, frozen=True, kw_only=True):
    limits: dict[str, Limit] = {}
    changes: dict[str, Change] = {}

    def of_run(self, run: Run) -> Iterator[str]:
        """The limits that a run passes, in words. A metric that has no value breaks every limit on it."""
        totals = run.totals
        for name, limit in self.limits.items():
            value = rate(totals.get(name))
            if value is None:
                yield f"{name}: no case gave a value"
            elif limit.at_least is not None and value < limit.at_least - _ROUNDING:
                yield f"{name}: {value:.4g} is below {limit.at_least:g}"
            elif limit.at_most is not None and value > limit.at_most + _ROUNDING:
                yield f"{name}: {value:.4g} is above {limit.at_most:g}"

    def of_comparison(self, comparison: Comparison) -> Iterator[str]:
        """The changes for the worse that go beyond what is allowed, in words."""
        found = {difference.metric.name: difference for difference in comparison.differences}
        for name, change in self.changes.items():
            if (difference := found.get(name)) is None:
                continue
            sides = f"from {difference.a:.4g} to {difference.b:.4g}"
            if change.worse_by is not None and difference.worse_by > change.worse_by + _ROUNDING:
                yield f"{name}: {sides} is worse by more than {change.worse_by:g}"
            elif (
                change.surely_worse_by is not None
                and difference.surely_worse_by > change.surely_worse_by + _ROUNDING
            ):
                yield f"{name}: {sides} is surely worse by more than {change.surely_worse_by:g}"


def load(path: Path) -> Thresholds:
    """Read a file of thresholds. Raises `PermanentError` with the place that is wrong."""
    try:
        plain: Any = yaml.safe_load(path.read_bytes())
        read = msgspec.convert(plain, Thresholds)
    except OSError as error:
        raise PermanentError(
            f"{path}: {error.strerror or 'cannot be read'}", reason="bad_thresholds"
        ) from None
    except yaml.YAMLError:
        raise PermanentError(f"{path}: not YAML", reason="bad_thresholds") from None
    except msgspec.ValidationError as error:
        raise PermanentError(f"{path}: {error}", reason="bad_thresholds") from None
    known = {metric.name for metric in METRICS}
    for field, given in (("limits", read.limits), ("changes", read.changes)):
        if unknown := sorted(given.keys() - known):
            raise PermanentError(
                f"{path}: $.{field} names no metric: {', '.join(unknown)}; docs/evaluation.md lists them",
                reason="bad_thresholds",
            )
    return read


def schema() -> dict[str, Any]:
    """The JSON Schema of the file."""
    return msgspec.json.schema(Thresholds)
