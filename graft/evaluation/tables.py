"""Numbers as Markdown tables, aligned so that they read as well in a terminal as in a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from graft.evaluation.cases import Case, Kind
from graft.evaluation.comparing import Comparison
from graft.evaluation.mined_report import Report
from graft.evaluation.scores import METRICS, Metric, Scores, rate

__all__ = ["case_table", "comparison_text", "definition_table", "mined_text", "score_table", "table"]

_MOST_NAMED = 12


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; every column but the first is aligned to the right if it holds numbers."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    numeric = [
        column > 0 and all(line[column][:1] in "0123456789-+$–" for line in lines[1:])
        for column in range(len(head))
    ]

    def cells(line: Sequence[str]) -> str:
        padded = (
            text.rjust(width) if number else text.ljust(width)
            for text, width, number in zip(line, widths, numeric, strict=True)
        )
        return f"| {' | '.join(padded)} |"

    rule = (
        f"{'-' * (width - 1)}:" if number else "-" * width
        for width, number in zip(widths, numeric, strict=True)
    )
    return "\n".join([cells(lines[0]), f"| {' | '.join(rule)} |", *map(cells, lines[1:])])


def score_table(columns: Mapping[str, Scores]) -> str:
    """A row for each metric that one of the columns has."""
    rows = [
        [metric.title, *(_number(metric, rate(scores.get(metric.name))) for scores in columns.values())]
        for metric in METRICS
        if any(metric.name in scores for scores in columns.values())
    ]
    return table(["metric", *columns], rows)


def definition_table() -> str:
    """Every metric with its name in files, its direction and its definition."""
    rows = [
        [f"`{metric.name}`", "↑" if metric.better == "higher" else "↓", metric.says] for metric in METRICS
    ]
    return table(["metric", "better", "what it counts"], rows)


def case_table(cases: Sequence[Case]) -> str:
    """Kinds with how many cases they have and in which languages."""
    rows = []
    for kind in Kind:
        of_kind = [case for case in cases if case.kind is kind]
        languages = Counter(case.language for case in of_kind)
        rows.append([kind.replace("_", " "), str(len(of_kind)), ", ".join(sorted(languages))])
    return table(["kind", "cases", "languages"], rows)


def comparison_text(comparison: Comparison) -> str:
    """What differs between two runs: a table of the metrics that moved, and the cases in which something else did."""
    moved = [d for d in comparison.differences if d.change or d.low or d.high]
    parts = [
        f"{comparison.paired} cases are in both runs, {len(moved)} of {len(comparison.differences)} metrics differ."
    ]
    if moved:
        rows = [
            [
                d.metric.title,
                _number(d.metric, d.a),
                _number(d.metric, d.b),
                _change(d.metric, d.change),
                f"{_change(d.metric, d.low)} to {_change(d.metric, d.high)}",
                ("worse" if d.worse_by > 0 else "better") + ("" if d.is_sure else "?"),
            ]
            for d in moved
        ]
        parts.append(table(["metric", "A", "B", "B - A", "95 % interval", "B is"], rows))
        parts.append("A question mark: the interval holds zero, so other cases might show no difference.")
    for says, names in (
        ("only in A", comparison.only_a),
        ("only in B", comparison.only_b),
        ("other inputs, scores cannot be compared", comparison.inputs),
        ("another truth, scores cannot be compared", comparison.truth),
        ("other prompts", comparison.prompts),
        ("another risk", comparison.risks),
        ("another text on the card", comparison.sections),
    ):
        if names:
            more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
            parts.append(f"{says}: {', '.join(names[:_MOST_NAMED])}{more}")
    return "\n\n".join(parts)


def mined_text(report: Report) -> str:
    """A mined history in words and tables."""
    of = max(report.changes, 1)
    parts = [
        f"{report.changes:,} changes, {report.merges:,} of them merges.",
        table(
            ["floor", "changes", "share"],
            [[str(risk), f"{count:,}", _share(count / of)] for risk, count in report.classes.items()],
        ),
        table(
            ["why", "changes", "share", "decides alone"],
            [
                [row.code, f"{row.changes:,}", _share(row.changes / of), f"{row.decisive:,}"]
                for row in report.reasons
            ],
        ),
        table(
            ["of a change", "median", "nine of ten up to", "largest"],
            [
                [name, *(f"{x * scale:,.0f}" for x in (spread.median, spread.most_of_ten, spread.largest))]
                for name, spread, scale in (
                    ("files", report.files, 1),
                    ("lines", report.lines, 1),
                    ("milliseconds", report.seconds, 1_000),
                )
            ],
        ),
    ]
    for says, counts in (
        ("not shown to a model", report.omitted),
        ("text that looks meant for a model", report.suspicions),
        ("could not be read", report.errors),
    ):
        if counts:
            parts.append(table([says, "changes"], [[code, f"{count:,}"] for code, count in counts.items()]))
    return "\n\n".join(parts)


def _number(metric: Metric, value: float | None) -> str:
    if value is None:
        return "–"
    match metric.shown:
        case "share":
            return _share(value)
        case "dollars":
            return f"${value:.4f}"
        case "seconds":
            return f"{value:.1f} s"
        case "number":
            return f"{value:,.1f}"


def _change(metric: Metric, value: float) -> str:
    text = _number(metric, abs(value))
    return f"{'-' if value < 0 else '+'}{text}"


def _share(value: float) -> str:
    return f"{value * 100:.1f} %"
