"""Are the cards right, and what do they say?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta

from graft.pilot import feedback
from graft.pilot.document import Material, Plot, Point, Section, Table
from graft.pilot.feedback import Rating
from graft.pilot.figures import Figure, count, share
from graft.pilot.rollup import Day, together


def accuracy(material: Material) -> Section:
    ratings = material.ratings
    weekly = _every_week(material, feedback.split(ratings, "week"))
    rated, eligible = material.participation
    votes = sum(rating.accurate + rating.wrong for rating in ratings)
    return Section(
        key="accuracy",
        title="Are the cards right?",
        lead="Reviewers rate the card that stood in the comment. The gate asks whether the record would be "
        "surprising if the cards were any worse than its threshold.",
        figures=(
            material.gate.accuracy,
            count(
                key="accuracy.votes",
                name="Votes that count",
                definition="One per reviewer and rated card, the latest; votes taken back do not count.",
                value=votes,
                sample_of="votes",
            ),
            share(
                key="accuracy.participation",
                name="Reviewers who rated",
                definition="Pairs of a pull request with a card and a reviewer who may write to the repository, in "
                "which that reviewer rated one of its cards. Says how far the ratings speak for all reviewers.",
                successes=rated,
                sample=eligible,
                sample_of="reviewers of pull requests",
            ),
        ),
        plots=(
            Plot(
                kind="intervals",
                title="Accuracy of all cards shown so far, by the end of each week, with 95 % intervals",
                points=tuple(
                    Point(
                        label=week,
                        figure=feedback.accuracy(group, key=f"accuracy.by.{week}", name="Accuracy so far"),
                    )
                    for week, group in _so_far(weekly).items()
                ),
                threshold=material.gate.threshold,
                least=0.5,
            ),
            Plot(
                kind="intervals",
                title="Accuracy of the cards shown in each week, with 95 % intervals",
                points=tuple(
                    Point(
                        label=week,
                        figure=feedback.accuracy(group, key=f"accuracy.in.{week}", name="Accuracy"),
                    )
                    for week, group in weekly.items()
                ),
                threshold=material.gate.threshold,
                least=0.5,
            ),
        ),
        tables=tuple(
            Table(
                title=f"Accuracy by {title}",
                by=title,
                rows=tuple(
                    Point(
                        label=name,
                        figure=feedback.accuracy(
                            group, key=f"accuracy.{by}.{name}", name=f"Accuracy, {name}"
                        ),
                    )
                    for name, group in feedback.split(ratings, by).items()
                ),
            )
            for by, title in (
                ("repository", "repository"),
                ("risk", "risk class"),
                ("model", "model"),
                ("prompt", "prompt version"),
            )
        ),
    )


def _every_week(material: Material, weekly: Mapping[str, list[Rating]]) -> dict[str, list[Rating]]:
    """The weeks from the first rated card on, in order, those without ratings too: a gap is to be seen."""
    weeks: dict[str, list[Rating]] = {}
    day = min((rating.card.shown_at for rating in material.ratings), default=material.until)
    while day < material.until:
        week = feedback.week_of(day)
        weeks[week] = weekly.get(week, [])
        day += timedelta(days=1)
    return weeks


def _so_far(weekly: Mapping[str, list[Rating]]) -> dict[str, list[Rating]]:
    """For each week, the ratings of it and of all before."""
    together: list[Rating] = []
    found = {}
    for week, ratings in weekly.items():
        together = [*together, *ratings]
        found[week] = together
    return found


def _weeks(days: Mapping[date, Day]) -> dict[str, Day]:
    groups: dict[str, list[Day]] = {}
    for day, numbers in sorted(days.items()):
        year, week, _ = day.isocalendar()
        groups.setdefault(f"{year}-W{week:02d}", []).append(numbers)
    return {week: together(group) for week, group in groups.items()}


def risk(material: Material) -> Section:
    whole, weeks = together(material.days.values()), _weeks(material.days)
    mix = tuple(
        Point(
            label=week,
            series=risk,
            figure=count(
                key=f"risk.{risk}.{week}",
                name=f"Cards, {risk}",
                definition=f"Cards made in the week whose final class is {risk}.",
                value=numbers.by_risk.get(risk, 0),
                sample_of="cards",
            ),
        )
        for week, numbers in weeks.items()
        for risk in ("trivial", "logic", "sensitive")
    )
    return Section(
        key="risk",
        title="What do the cards say?",
        lead="The final class is never below what the rules found in the files; a model can only raise it.",
        figures=(
            count(
                key="risk.cards",
                name="Cards",
                definition="Cards made in the period, carried over to a rebased head and unavailable ones included.",
                value=whole.cards,
                sample_of="cards",
            ),
            *(
                share(
                    key=f"risk.{risk}",
                    name=f"Class {risk}",
                    definition=f"Cards whose final class is {risk}, among all cards made in the period.",
                    successes=whole.by_risk.get(risk, 0),
                    sample=whole.cards,
                    sample_of="cards",
                )
                for risk in ("trivial", "logic", "sensitive")
            ),
            share(
                key="risk.raised",
                name="Raised above the rules",
                definition="Cards whose final class is higher than the rules alone gave, by a model's class, a "
                "disagreement, a failure or suspected injection.",
                successes=whole.raised,
                sample=whole.cards,
                sample_of="cards",
            ),
            _disagreement("risk.disagreement", whole),
            share(
                key="risk.injections",
                name="Suspected injection",
                definition="Cards of changes whose text or diff speaks to AI reviewers.",
                successes=whole.injections,
                sample=whole.cards,
                sample_of="cards",
            ),
        ),
        plots=(
            Plot(kind="stack", title="Cards by final risk class, per week", points=mix),
            Plot(
                kind="intervals",
                title="How often the second model disagrees, per week, with 95 % intervals",
                points=tuple(
                    Point(label=week, figure=_disagreement(f"risk.disagreement.{week}", numbers))
                    for week, numbers in weeks.items()
                ),
            ),
        ),
    )


def _disagreement(key: str, numbers: Day) -> Figure:
    return share(
        key=key,
        name="Disagreement",
        definition="Checked cards on which the verifier found a claim that the diff does not support, or a "
        "behaviour change that the card does not mention. Cards whose check failed are left out.",
        successes=numbers.disagreed,
        sample=numbers.checked,
        sample_of="checked cards",
    )
