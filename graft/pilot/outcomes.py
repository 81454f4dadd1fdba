"""Does Graft save review time, what slipped through, and what went wrong?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graft.pilot import incidents
from graft.pilot.bootstrap import difference_of_medians
from graft.pilot.document import Material, Plot, Point, Section, Table
from graft.pilot.figures import Figure, count, median, share
from graft.pilot.review_time import Measured, counted, exclusions
from graft.pilot.rollup import together

_FIRST = (
    "From opening, or from being declared ready for review, to the first submitted review by another person. "
    "Pull requests without a review have none."
)
_MERGE = (
    "From opening, or from being declared ready for review, to the merge. Pull requests not merged have none."
)
RULES = (
    "Left out on both sides: automation and bots that are no coding agents, drafts that were never ready, reverts, "
    "and pull requests that their author merged with no review by anybody else. The risk class is that of the rules "
    "alone, because only that exists before Graft."
)
_KINDS = ("human", "agent", "mixed", "unknown")
_RISKS = ("trivial", "logic", "sensitive")


def review_times(before: Sequence[Measured], after: Sequence[Measured]) -> Section:
    """Review time before Graft and with it, by author kind and risk class."""
    sides = {"before": counted(before), "with Graft": counted(after)}
    figures: list[Figure] = []
    plots, tables = [], []
    for key, name, definition, field in (
        ("first_review", "Time to first review", _FIRST, "first_review_seconds"),
        ("merge", "Time to merge", _MERGE, "merge_seconds"),
    ):
        groups = _groups(sides)
        figures.append(_difference(key, name, definition, field, "all", groups["all"]))
        points = [
            Point(
                label=label,
                series=side,
                figure=median(
                    key=f"review.{key}.{label}.{side.split()[0]}",
                    name=f"{name}, {label}, {side}",
                    definition=definition,
                    values=_values(rows, field),
                    sample_of="pull requests",
                    unit="seconds",
                ),
            )
            for label, group in groups.items()
            for side, rows in group.items()
        ]
        if before or after:
            plots.append(Plot(kind="boxes", title=f"{name}: median and quartiles", points=tuple(points)))
            tables.append(Table(title=name, by="pull requests", rows=tuple(points)))
        if before and after:
            differences = tuple(
                Point(label=label, figure=_difference(key, name, definition, field, label, group))
                for label, group in groups.items()
                if label != "all"
            )
            tables.append(
                Table(title=f"{name}: with Graft minus before", by="pull requests", rows=differences)
            )
    left_out = [
        Point(
            label=reason.replace("_", " "),
            series=side,
            figure=share(
                key=f"review.excluded.{reason}.{side.split()[0]}",
                name=f"Left out {side}: {reason.replace('_', ' ')}",
                definition=RULES,
                successes=number,
                sample=len(rows),
                sample_of="pull requests",
            ),
        )
        for side, rows in (("before", before), ("with Graft", after))
        for reason, number in exclusions(rows).items()
    ]
    if left_out:
        tables.append(Table(title="Left out", by="rule", rows=tuple(left_out)))
    lead = (
        RULES
        if before and after
        else (
            "To compare, both a finished baseline (`graft baseline`) and a finished shadow run (`graft shadow`) "
            "are needed."
        )
    )
    return Section(
        key="review",
        title="Does it save review time?",
        lead=lead,
        figures=tuple(figures),
        plots=tuple(plots),
        tables=tuple(tables),
    )


def _difference(
    key: str, name: str, definition: str, field: str, label: str, group: Mapping[str, Sequence[Measured]]
) -> Figure:
    return difference_of_medians(
        key=f"review.{key}.{label}.difference",
        name=f"{name}, {label}: difference of medians",
        definition=f"{definition} The median with Graft minus the median before; below zero is faster.",
        before=_values(group["before"], field),
        after=_values(group["with Graft"], field),
        unit="seconds",
        sample_of="pull requests on the smaller side",
    )


def _values(rows: Sequence[Measured], field: str) -> list[float]:
    return [value for row in rows if (value := getattr(row, field)) is not None]


def _groups(sides: Mapping[str, Sequence[Measured]]) -> dict[str, dict[str, list[Measured]]]:
    groups: dict[str, dict[str, list[Measured]]] = {"all": {side: list(rows) for side, rows in sides.items()}}
    for kind in _KINDS:
        groups[f"author {kind}"] = {
            s: [r for r in rows if r.author_kind == kind] for s, rows in sides.items()
        }
    for risk in _RISKS:
        groups[f"floor {risk}"] = {s: [r for r in rows if r.risk_class == risk] for s, rows in sides.items()}
    return {name: group for name, group in groups.items() if name == "all" or any(group.values())}


def escapes(material: Material) -> Section:
    rates = incidents.escape_rates(material.merged, material.incidents)
    within = [each for each in material.incidents if each.occurred_at < material.until]
    return Section(
        key="escapes",
        title="What slipped through?",
        lead="If changes called trivial let as many defects escape as others, the classes are worth little.",
        figures=(*incidents.incident_counts(within), *rates),
        plots=(
            Plot(
                kind="intervals",
                title="Merged pull requests that caused an incident, by class, with 95 % intervals",
                points=tuple(Point(label=figure.key.rpartition(".")[2], figure=figure) for figure in rates),
            ),
        )
        if material.merged
        else (),
    )


def troubles(material: Material) -> Section:
    whole = together(material.days.values())
    troubles: dict[str, tuple[int, str]] = {}
    for reason, number in whole.by_reason.items():
        words = reason.replace("_", " ")
        troubles[f"Card: {words}"] = (
            number,
            f"Cards without a text or without a check, because of: {words}.",
        )
    for outcome, number in whole.failed_calls.items():
        words = outcome.replace("_", " ")
        troubles[f"Model call: {words}"] = (number, f"Model calls that ended in: {words}.")
    for need, number in whole.dead_work.items():
        troubles[f"Gave up: {need}"] = (
            number,
            f"Work “{need}” given up in the period and not taken up again since.",
        )
    if whole.check_failed:
        troubles["Check of a card failed"] = (whole.check_failed, "Cards whose verifier call failed.")
    points = tuple(
        Point(
            label=name,
            figure=count(key=f"trouble.{name}", name=name, definition=text, value=number, sample_of="times"),
        )
        for name, (number, text) in sorted(troubles.items(), key=lambda item: (-item[1][0], item[0]))
    )
    return Section(
        key="troubles",
        title="What went wrong?",
        lead="Nothing went wrong in this period."
        if not points
        else "Everything that ended otherwise than it should.",
        figures=(
            share(
                key="trouble.unavailable",
                name="Cards without a text",
                definition="Cards that no model wrote (status unavailable), among all cards made in the period.",
                successes=whole.by_status.get("unavailable", 0),
                sample=whole.cards,
                sample_of="cards",
            ),
            share(
                key="trouble.calls",
                name="Failed model calls",
                definition="Model calls that did not end in a usable answer, among all in the ledger.",
                successes=sum(whole.failed_calls.values()),
                sample=whole.llm_calls,
                sample_of="model calls",
            ),
        ),
        plots=(Plot(kind="ranking", title="How often", points=points),) if points else (),
    )
