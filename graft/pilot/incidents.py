"""Escaped defects: reading who caused and who fixed one, and counting each of them once.

An incident is an issue or pull request with the configured label, or an entry made by hand.

- A labelled issue names its culprit in its text (`Caused by #12`, `Regression from #12`, `Culprit: #12` …) and
  its fix either there (`Fixed by #15`) or as a pull request that closes it.
- A labelled pull request that names a culprit or reverts one (`Reverts #12`) is the fix; one that does neither
  is itself the culprit.
- A labelled pull request that closes a labelled issue is the fix of that issue, not a second incident.
- Incidents with the same culprit and the same fix are one defect that was reported more than once.

Text is read here and forgotten; numbers are what is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from graft.pilot.figures import Figure, count, share

_LONGEST: Final = 65_536
_LARGEST: Final = 2**31 - 1

_NUMBER = (
    r"(?:(?:PR|pull request|commit)\s{1,3})?"
    r"(?:(?P<repository>[\w.-]{1,100}/[\w.-]{1,100})?#"
    r"|https://[\w.-]{1,100}/(?P<url>[\w.-]{1,100}/[\w.-]{1,100})/(?:pull|issues)/)"
    r"(?P<number>[1-9]\d{0,9})(?!\w)"
)
_LINK = r"\s{0,3}(?::|-|–|\bis\b|\bwas\b)?\s{0,3}"
_CULPRIT = re.compile(
    r"(?<!\w)(?:caused\s+by|culprit|regression\s+(?:from|of|in|since)|regressed\s+(?:by|in|since)|"
    r"introduced\s+(?:by|in|with)|broken\s+(?:by|in|since)|bisected\s+to|reverts?)" + _LINK + _NUMBER,
    re.IGNORECASE,
)
_FIXED = re.compile(
    r"(?<!\w)(?:fix(?:ed)?|resolved|repaired)(?:\s+(?:by|in|with))?" + _LINK + _NUMBER, re.IGNORECASE
)
_CLOSES = re.compile(r"(?<![\w-])(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)" + _LINK + _NUMBER, re.IGNORECASE)


class Labelled(msgspec.Struct, frozen=True, kw_only=True):
    """A labelled issue or pull request as read from the API, reduced to numbers."""

    number: int
    is_pull: bool
    opened_at: datetime
    culprits: tuple[int, ...] = ()
    fixes: tuple[int, ...] = ()
    closes: tuple[int, ...] = ()


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """An incident that the label stands for."""

    issue_number: int
    occurred_at: datetime
    culprit: int | None = None
    fix: int | None = None


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """An incident as it is stored. `culprit_risk` is the class that the culprit's card showed when it was
    merged, `None` where Graft does not know the culprit or it had no card."""

    id: str
    repository: str
    issue_number: int | None
    culprit: int | None
    fix: int | None
    source: str
    occurred_at: datetime
    culprit_risk: str | None = None


def references(text: str, *, repository: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """(culprits, fixes, closes) that a text names, in its order; only numbers of the same repository."""
    prose = _without_comments(text[:_LONGEST])
    return (
        _numbers(_CULPRIT, prose, repository),
        _numbers(_FIXED, prose, repository),
        _numbers(_CLOSES, prose, repository),
    )


def _without_comments(text: str) -> str:
    """The text without HTML comments, which hold a template's examples."""
    parts: list[str] = []
    while True:
        before, opened, rest = text.partition("<!--")
        parts.append(before)
        _, closed, text = rest.partition("-->")
        if not (opened and closed):
            return " ".join(parts)


def _numbers(pattern: re.Pattern[str], text: str, repository: str) -> tuple[int, ...]:
    found: dict[int, None] = {}
    for match in pattern.finditer(text):
        named = match["repository"] or match["url"]
        if (named is None or named.lower() == repository.lower()) and int(match["number"]) <= _LARGEST:
            found[int(match["number"])] = None
    return tuple(found)


def interpret(labelled: Iterable[Labelled]) -> list[Found]:
    """The incidents that these labels stand for, by number; the order of the input does not matter."""
    items = {item.number: item for item in labelled}
    fixes: dict[int, int] = {}
    for item in sorted(items.values(), key=lambda each: each.number):
        if item.is_pull:
            for issue in item.closes:
                if issue in items and not items[issue].is_pull:
                    fixes.setdefault(issue, item.number)
    attached = {item.number for item in items.values() if item.is_pull and set(item.closes) & fixes.keys()}
    return [
        _incident(item, fixes.get(item.number))
        for number, item in sorted(items.items())
        if number not in attached
    ]


def _incident(item: Labelled, fixed_by: int | None) -> Found:
    culprits = [number for number in item.culprits if number != item.number]
    culprit = culprits[0] if culprits else None
    if item.is_pull:
        return Found(
            issue_number=item.number,
            occurred_at=item.opened_at,
            culprit=culprit or item.number,
            fix=item.number if culprit else None,
        )
    own = [number for number in item.fixes if number not in (item.number, culprit)]
    return Found(
        issue_number=item.number,
        occurred_at=item.opened_at,
        culprit=culprit,
        fix=fixed_by or (own[0] if own else None),
    )


def distinct(incidents: Iterable[Incident]) -> list[Incident]:
    """Each defect once, as its earliest report, in the order of time."""
    first: dict[tuple[str, str], Incident] = {}
    for incident in sorted(incidents, key=lambda each: (each.occurred_at, each.id)):
        both = incident.culprit is not None and incident.fix is not None
        key = f"{incident.culprit}/{incident.fix}" if both else incident.id
        first.setdefault((incident.repository, key), incident)
    return list(first.values())


# ------------------------------------------------------------------------------------------------------- rates

ESCAPED: Final = (
    "Merged pull requests that at least one incident names as its culprit, among the pull requests merged in the "
    "period, by the risk class that their card showed last. A pull request counts once, however many incidents "
    "name it, and whenever they were reported."
)


class MergedChange(msgspec.Struct, frozen=True, kw_only=True):
    """A merged pull request with the class that its last card showed (`None` without a card)."""

    repository: str
    number: int
    risk: str | None


def escape_rates(merged: Sequence[MergedChange], incidents: Iterable[Incident]) -> list[Figure]:
    """For each risk class, the share of merged changes that let a defect escape."""
    guilty = {(each.repository, each.culprit) for each in incidents if each.culprit is not None}
    figures = []
    for risk in ("trivial", "logic", "sensitive"):
        of_class = [each for each in merged if each.risk == risk]
        figures.append(
            share(
                key=f"escaped.{risk}",
                name=f"Escaped defects, {risk}",
                definition=ESCAPED,
                successes=sum((each.repository, each.number) in guilty for each in of_class),
                sample=len(of_class),
                sample_of=f"merged {risk} pull requests",
            )
        )
    return figures


def incident_counts(incidents: Sequence[Incident]) -> list[Figure]:
    """How many defects escaped, and how many of them can be put down to a pull request."""
    once = distinct(incidents)
    return [
        count(
            key="incidents",
            name="Incidents",
            definition="Escaped defects by label or entered by hand; the same culprit and fix count once.",
            value=len(once),
            sample_of="incidents",
        ),
        count(
            key="incidents.linked",
            name="Incidents with a known culprit",
            definition="Incidents that name the pull request that caused them; only these enter the rates.",
            value=sum(each.culprit is not None for each in once),
            sample_of="incidents",
        ),
    ]
