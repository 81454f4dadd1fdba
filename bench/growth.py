"""A plot of how figures grow with the size of something: logarithmic on both sides, as an SVG that stands alone.

It is read on light and on dark pages, so everything is drawn on a ground of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Final

import msgspec

WIDTH: Final = 720
HEIGHT: Final = 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 190, 40, 48
_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One figure: its values above zero at each size, and what it must not pass, in the unit of the plot."""

    name: str
    values: Sequence[float]


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """Lines over the same sizes. `limits` are (value, what it is) that are drawn across."""

    title: str
    sizes: Sequence[int]
    lines: Sequence[Line]
    across: str
    limits: Sequence[tuple[float, str]] = ()


def svg(growth: Growth) -> str:
    """The drawing."""
    values = [value for line in growth.lines for value in line.values] + [value for value, _ in growth.limits]
    low, high = 10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values) * 1.01))
    left, right = math.log10(growth.sizes[0]), math.log10(growth.sizes[-1])

    def x(size: float) -> float:
        return _LEFT + (math.log10(size) - left) / ((right - left) or 1.0) * (WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        part = math.log10(value / low) / math.log10(high / low)
        return HEIGHT - _BOTTOM - part * (HEIGHT - _TOP - _BOTTOM)

    end = WIDTH - _RIGHT
    parts = [
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#ffffff"/>',
        _text(_LEFT, 22, growth.title, anchor="start", weight="600"),
        _text((_LEFT + end) / 2, HEIGHT - 10, growth.across),
    ]
    mark: float = low
    while mark <= high * 1.001:
        parts += [
            _rule(_LEFT, y(mark), end, "#dddddd"),
            _text(_LEFT - 8, y(mark) + 4, f"{mark:,g}", anchor="end"),
        ]
        mark *= 10
    parts += [_text(x(size), HEIGHT - _BOTTOM + 18, f"{size:,}") for size in growth.sizes]
    names = [(y(value), name, "#888888") for value, name in growth.limits]
    parts += [_rule(_LEFT, y(value), end, "#888888", dashed=True) for value, _ in growth.limits]
    for number, line in enumerate(growth.lines):
        colour = _COLOURS[number % len(_COLOURS)]
        points = [(x(size), y(value)) for size, value in zip(growth.sizes, line.values, strict=True)]
        joined = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        parts.append(f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3.5" fill="{colour}"/>' for px, py in points]
        names.append((points[-1][1], f"{line.name}: {line.values[-1]:,.3g}", colour))
    parts += [
        _text(end + 10, at + 4, name, anchor="start", fill=colour) for at, name, colour in _apart(names)
    ]
    inner = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" aria-label="{escape(growth.title)}" font-family="system-ui, sans-serif" font-size="12">\n'
        f"{inner}\n</svg>\n"
    )


def _apart(names: list[tuple[float, str, str]], *, gap: float = 15) -> list[tuple[float, str, str]]:
    """Labels moved down until none covers another, and up again where that led out of the drawing."""
    found: list[tuple[float, str, str]] = []
    for at, name, colour in sorted(names):
        found.append((max(at, found[-1][0] + gap) if found else at, name, colour))
    lift = max(0.0, found[-1][0] - (HEIGHT - _BOTTOM)) if found else 0.0
    return [(at - lift, name, colour) for at, name, colour in found]


def _text(
    x: float, y: float, text: str, *, anchor: str = "middle", fill: str = "#333333", weight: str = "400"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" font-weight="{weight}">'
        f"{escape(text)}</text>"
    )


def _rule(x1: float, y: float, x2: float, colour: str, *, dashed: bool = False) -> str:
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<line x1="{x1:.1f}" y1="{y:.1f}" x2="{x2:.1f}" y2="{y:.1f}" stroke="{colour}"{dash}/>'
