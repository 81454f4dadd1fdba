"""The report as a value: sections of figures, the series that are drawn from them, and what they are made from.

Page, JSON and CSV are three ways to write the same value down, so they always give the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Literal

import msgspec

from graft.pilot.feedback import Rating
from graft.pilot.figures import Figure
from graft.pilot.gate import Gate
from graft.pilot.incidents import Incident, MergedChange
from graft.pilot.review_time import Measured
from graft.pilot.rollup import Day

Kind = Literal["intervals", "stack", "bars", "boxes", "ranking"]


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One figure at its place in a plot: `label` on the axis, `series` where there are several."""

    label: str
    figure: Figure
    series: str = ""

    @property
    def name(self) -> str:
        """Label and series together."""
        return f"{self.label} · {self.series}" if self.series else self.label


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """What to draw. `threshold` is a line across it; `least` the lower end of the scale."""

    kind: Kind
    title: str
    points: tuple[Point, ...]
    threshold: float | None = None
    least: float = 0.0


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of the same kind, one a row, split by `by`."""

    title: str
    by: str
    rows: tuple[Point, ...]


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """One question with its answer: a sentence, the figures, the plots."""

    key: str
    title: str
    lead: str
    figures: tuple[Figure, ...] = ()
    plots: tuple[Plot, ...] = ()
    tables: tuple[Table, ...] = ()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is shown. `until` is the first instant that is not part of it."""

    generated_at: datetime
    since: datetime
    until: datetime
    repositories: tuple[str, ...]
    gate: Gate
    sections: tuple[Section, ...]


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """What the report is made from. `incidents` are those since the period began, also such as were reported after
    it: a defect shows later than it was merged."""

    generated_at: datetime
    since: datetime
    until: datetime
    repositories: tuple[str, ...]
    gate: Gate
    ratings: Sequence[Rating] = ()
    participation: tuple[int, int] = (0, 0)
    days: Mapping[date, Day] = {}
    change_costs: Sequence[float] = ()
    merged: Sequence[MergedChange] = ()
    incidents: Sequence[Incident] = ()
    before: Sequence[Measured] = ()
    after: Sequence[Measured] = ()
