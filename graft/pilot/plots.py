"""Plots as inline SVG: no script, no font, no request. Colours are the page's variables, so that light, dark and
print are one drawing.

What there is not enough data for is drawn as a hollow mark with its sample size, never as a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from graft.pilot.document import Plot, Point
from graft.pilot.figures import Unit, as_duration, as_text, as_value

WIDTH = 760
HEIGHT = 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 16, 14, 42
_CLASSES = {
    "trivial": "c1",
    "logic": "c2",
    "sensitive": "c3",
    "before": "c0",
    "with Graft": "c2",
}


def draw(plot: Plot) -> str:
    """The SVG of a plot; a sentence where there is nothing to draw."""
    if not any(point.figure.enough for point in plot.points):
        most = max((point.figure.sample for point in plot.points), default=0)
        needed = max((point.figure.needed for point in plot.points), default=0)
        said = f" (n = {most:,} at most, {needed:,} needed)" if needed else ""
        return f'<p class="none">Not enough data to draw this{said}.</p>'
    match plot.kind:
        case "intervals":
            return _intervals(plot)
        case "stack":
            return _stack(plot)
        case "bars":
            return _bars(plot)
        case "boxes":
            return _boxes(plot)
        case "ranking":
            return _ranking(plot)


# ------------------------------------------------------------------------------------------------------ pieces


def _svg(plot: Plot, parts: Iterable[str], *, height: float = HEIGHT) -> str:
    name = escape(plot.title, quote=True)
    inner = "\n".join(parts)
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{name}" '
        f'preserveAspectRatio="xMidYMid meet">\n{inner}\n</svg>'
    )


def _text(x: float, y: float, text: str, *, anchor: str = "middle", kind: str = "tick") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _tip(point: Point) -> str:
    return f"<title>{escape(f'{point.name}: {as_text(point.figure)}')}</title>"


def _bar(x: float, y: float, width: float, height: float, point: Point, *, kind: str | None = None) -> str:
    colour = kind or _CLASSES.get(point.series, "c2")
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{max(height, 0):.1f}" class="bar {colour}">'
        f"{_tip(point)}</rect>"
    )


def ticks(low: float, high: float, *, most: int = 5) -> list[float]:
    """Round numbers from at or below `low` to at or above `high`."""
    span = (high - low) or 1.0
    step = 10.0 ** math.floor(math.log10(span / most))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= most)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [round(step * k, 10) for k in range(first, last + 1)]


_DURATIONS = (
    *(60.0 * each for each in (1, 2, 5, 10, 15, 30)),
    *(3_600.0 * each for each in (1, 2, 4, 8, 12)),
    *(86_400.0 * each for each in (1, 2, 5, 7, 14, 30, 60)),
)


def duration_ticks(high: float, *, most: int = 5) -> list[float]:
    """Steps of whole minutes, hours or days from zero to at or above `high`."""
    step = next((each for each in _DURATIONS if high / each <= most), None)
    if step is None or high < 60:
        return ticks(0, high)
    return [step * k for k in range(math.ceil(high / step) + 1)]


class _Frame:
    """The vertical scale with its grid, and where each label stands."""

    def __init__(
        self, marks: Sequence[float], labels: Sequence[str], unit: Unit, *, right: float = _RIGHT
    ) -> None:
        self.low, self.high = marks[0], marks[-1]
        self.marks, self.labels, self.unit = marks, labels, unit
        self.end = WIDTH - right
        self.step = (self.end - _LEFT) / max(len(labels), 1)

    def y(self, value: float) -> float:
        part = (value - self.low) / ((self.high - self.low) or 1.0)
        return HEIGHT - _BOTTOM - part * (HEIGHT - _TOP - _BOTTOM)

    def x(self, place: int) -> float:
        return _LEFT + self.step * (place + 0.5)

    def grid(self) -> list[str]:
        parts = []
        for mark in self.marks:
            y = self.y(mark)
            parts.append(_line(_LEFT, y, self.end, y, "axis" if mark == self.low else "grid"))
            parts.append(_text(_LEFT - 8, y + 4, self._mark(mark), anchor="end"))
        return parts

    def _mark(self, value: float) -> str:
        match self.unit:
            case "share":
                return f"{value * 100:.0f} %"
            case "seconds":
                return as_duration(value).replace(".0 ", " ")
            case "usd":
                return f"${value:,.2f}" if self.high < 10 else f"${value:,.0f}"
            case _:
                return f"{value:,.0f}"

    def names(self, below: Sequence[str] = ()) -> list[str]:
        """The labels under the axis; every second, third … where they would run into each other."""
        widest = max((len(label) for label in self.labels), default=1)
        every = max(1, math.ceil(widest * 6.4 / self.step))
        parts = []
        for place, label in enumerate(self.labels):
            if place % every == 0:
                parts.append(_text(self.x(place), HEIGHT - _BOTTOM + 17, label))
                if below:
                    parts.append(_text(self.x(place), HEIGHT - _BOTTOM + 31, below[place], kind="tick small"))
        return parts


def _short(label: str) -> str:
    """`W49` for `2026-W49`, `12-01` for `2026-12-01`: the year stands above the page."""
    return label[5:] if label[:4].isdigit() and label[4:5] == "-" else label


# -------------------------------------------------------------------------------------------------------- kinds


def _intervals(plot: Plot) -> str:
    shown = [point for point in plot.points if point.figure.enough]
    lows = [point.figure.low for point in shown if point.figure.low is not None]
    highs = [point.figure.high for point in shown if point.figure.high is not None]
    least = min(plot.least, *lows) if lows else plot.least
    most = max(highs, default=1.0)
    if plot.threshold is not None:
        most = 1.0
    frame = _Frame(
        ticks(math.floor(least * 20) / 20, min(most * 1.05, 1.0)),
        [_short(p.label) for p in plot.points],
        "share",
        right=_RIGHT if plot.threshold is None else 44,
    )
    parts = frame.grid() + frame.names([f"n={point.figure.sample}" for point in plot.points])
    if plot.threshold is not None:
        y = frame.y(plot.threshold)
        parts.append(_line(_LEFT, y, frame.end, y, "gate"))
        parts.append(_text(frame.end + 5, y + 4, "gate", anchor="start", kind="tick gate-name"))
    previous: tuple[float, float] | None = None
    marks = []
    for place, point in enumerate(plot.points):
        figure, x = point.figure, frame.x(place)
        if figure.value is None or figure.low is None or figure.high is None:
            marks.append(
                f'<circle cx="{x:.1f}" cy="{frame.y(frame.low) - 6:.1f}" r="3.5" class="hollow">{_tip(point)}</circle>'
            )
            previous = None
            continue
        y = frame.y(figure.value)
        if previous is not None and plot.threshold is not None:
            parts.append(_line(*previous, x, y, "join"))
        previous = (x, y)
        marks.append(
            f'<g class="c2">{_tip(point)}{_line(x, frame.y(figure.low), x, frame.y(figure.high), "whisker")}'
            f"{_line(x - 5, frame.y(figure.low), x + 5, frame.y(figure.low), 'whisker')}"
            f"{_line(x - 5, frame.y(figure.high), x + 5, frame.y(figure.high), 'whisker')}"
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" class="dot"/></g>'
        )
    return _svg(plot, parts + marks)


def _stack(plot: Plot) -> str:
    labels = list(dict.fromkeys(point.label for point in plot.points))
    series = list(dict.fromkeys(point.series for point in plot.points))
    columns = {label: [p for p in plot.points if p.label == label] for label in labels}
    tallest = max(sum(p.figure.value or 0 for p in column) for column in columns.values())
    frame = _Frame(ticks(0, max(tallest, 1)), [_short(label) for label in labels], "count")
    parts = frame.grid() + frame.names()
    width = min(frame.step * 0.62, 56)
    for place, column in enumerate(columns.values()):
        base = 0.0
        for point in column:
            value = point.figure.value or 0
            top, bottom = frame.y(base + value), frame.y(base)
            base += value
            parts.append(_bar(frame.x(place) - width / 2, top, width, bottom - top, point))
    return _legend(series) + _svg(plot, parts)


def _bars(plot: Plot) -> str:
    unit = plot.points[0].figure.unit
    highest = max(point.figure.value or 0 for point in plot.points)
    frame = _Frame(ticks(0, highest or 1), [_short(point.label) for point in plot.points], unit)
    parts = frame.grid() + frame.names()
    width = min(frame.step * 0.66, 56)
    for place, point in enumerate(plot.points):
        top = frame.y(point.figure.value or 0)
        parts.append(_bar(frame.x(place) - width / 2, top, width, frame.y(0) - top, point))
    return _svg(plot, parts)


def _boxes(plot: Plot) -> str:
    labels = list(dict.fromkeys(point.label for point in plot.points))
    series = list(dict.fromkeys(point.series for point in plot.points))
    tops = [p.figure.quartiles[1] for p in plot.points if p.figure.quartiles is not None]
    frame = _Frame(duration_ticks(max(tops, default=3_600)), labels, plot.points[0].figure.unit)
    parts = frame.grid() + frame.names()
    width = min(frame.step / (len(series) + 1), 34)
    for point in plot.points:
        side = series.index(point.series) - (len(series) - 1) / 2
        x = frame.x(labels.index(point.label)) + side * (width + 6)
        kind, figure = _CLASSES.get(point.series, "c2"), point.figure
        if figure.value is None or figure.quartiles is None:
            parts.append(
                f'<circle cx="{x:.1f}" cy="{frame.y(0) - 6:.1f}" r="3.5" class="hollow">{_tip(point)}</circle>'
            )
            continue
        low, high = figure.quartiles
        parts.append(
            f'<g class="{kind}">{_tip(point)}<rect x="{x - width / 2:.1f}" y="{frame.y(high):.1f}" width="{width:.1f}" '
            f'height="{max(frame.y(low) - frame.y(high), 1):.1f}" class="box"/>'
            f"{_line(x - width / 2, frame.y(figure.value), x + width / 2, frame.y(figure.value), 'median')}</g>"
        )
        parts.append(_text(x, frame.y(high) - 5, f"n={figure.sample}", kind="tick small"))
    return _legend(series) + _svg(plot, parts)


def _ranking(plot: Plot) -> str:
    row, left = 26, 250
    height = row * len(plot.points) + 8
    highest = max(point.figure.value or 0 for point in plot.points) or 1
    parts = []
    for place, point in enumerate(plot.points):
        y, value = 4 + row * place, point.figure.value or 0
        width = (WIDTH - left - 70) * value / highest
        parts.append(_text(left - 10, y + 16, point.label[:40], anchor="end", kind="tick name"))
        parts.append(_bar(left, y + 3, max(width, 1), row - 8, point, kind="c3"))
        parts.append(_text(left + width + 8, y + 16, as_value(value, point.figure.unit), anchor="start"))
    return _svg(plot, parts, height=height)


def _legend(series: Sequence[str]) -> str:
    keys = "".join(
        f'<span><i class="key {_CLASSES.get(name, "c2")}"></i>{escape(name)}</span>' for name in series
    )
    return f'<p class="legend">{keys}</p>'
