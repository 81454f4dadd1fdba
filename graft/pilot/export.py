"""The report as JSON and as CSV: every figure with its definition, sample size and interval."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import msgspec

from graft.pilot.document import Report
from graft.pilot.figures import Figure

COLUMNS = (
    "section",
    "key",
    "name",
    "group",
    "value",
    "low",
    "high",
    "quartile_low",
    "quartile_high",
    "unit",
    "interval",
    "sample",
    "sample_of",
    "needed",
    "definition",
)


def figures(report: Report) -> Iterator[tuple[str, str, Figure]]:
    """(section, group, figure) of everything in the report, each figure once."""
    seen: set[tuple[str, str]] = set()
    for section in report.sections:
        points = [("", figure) for figure in section.figures]
        for holder in (
            *((plot.points) for plot in section.plots),
            *((table.rows) for table in section.tables),
        ):
            points += [(point.name, point.figure) for point in holder]
        for group, figure in points:
            if (section.key, figure.key) not in seen:
                seen.add((section.key, figure.key))
                yield section.key, group, figure


def as_json(report: Report) -> bytes:
    """The whole report, indented. A value that there is not enough data for is null."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def as_csv(report: Report) -> str:
    """One row per figure. Values are written in full, so that a spreadsheet gives the page's numbers; a text that
    a spreadsheet would take for a formula is quoted with an apostrophe."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for section, group, figure in figures(report):
        low, high = figure.quartiles or (None, None)
        row = (
            section,
            figure.key,
            figure.name,
            group,
            figure.value,
            figure.low,
            figure.high,
            low,
            high,
            figure.unit,
            figure.interval,
            figure.sample,
            figure.sample_of,
            figure.needed,
            figure.definition,
        )
        writer.writerow(["" if cell is None else _harmless(cell) for cell in row])
    return stream.getvalue()


def _harmless(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
