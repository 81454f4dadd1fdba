"""Each condition of a rule: whether it holds for the facts, and the fact that decided it.

What cannot be established does not hold: `only`, `none` and the upper limits never hold over a file list that
may be incomplete, `max_risk` never without a risk. A rename counts with both its paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from graft.globs import GlobSet
from graft.policy.facts import Card, Fact, Facts
from graft.policy.model import SOURCES, Labels, Matcher, When
from graft.risk import Risk

Answer = tuple[bool, Fact]


def answers(when: When, facts: Facts) -> Iterable[Answer]:
    """One answer for each condition that is set (three for a matcher with three lists), cheapest first."""
    names = set(when.conditions())
    for name in _CONDITIONS:
        if name in names:
            yield from _CONDITIONS[name](getattr(when, name), facts)


def _one(code: str, holds: bool, text: str, *subjects: str) -> Iterable[Answer]:
    return ((holds, Fact(code=code, text=text, subjects=subjects)),)


def _author(wanted: tuple[str, ...], facts: Facts) -> Iterable[Answer]:
    return _one("author", facts.author_kind in wanted, "the author is {}", facts.author_kind)


def _source(wanted: tuple[str, ...], facts: Facts) -> Iterable[Answer]:
    text = (
        f"the author is {facts.source}"
        if facts.source in SOURCES
        else "the author is neither declared nor detected"
    )
    return _one("source", facts.source in wanted, text)


def _max_risk(limit: Risk, facts: Facts) -> Iterable[Answer]:
    if facts.risk is None:
        return _one("max_risk", False, "the risk is not known")
    return _one("max_risk", facts.risk.rank <= limit.rank, f"the risk is {facts.risk}, the limit {limit}")


def _card_verified(wanted: bool, facts: Facts) -> Iterable[Answer]:
    says = {Card.VERIFIED: "verified", Card.UNVERIFIED: "not verified", Card.MISSING: "missing"}
    return _one("card_verified", (facts.card is Card.VERIFIED) == wanted, f"the card is {says[facts.card]}")


def _draft(wanted: bool, facts: Facts) -> Iterable[Answer]:
    return _one("draft", facts.draft == wanted, "it is a draft" if facts.draft else "it is no draft")


def _task_linked(wanted: bool, facts: Facts) -> Iterable[Answer]:
    text = "a task is linked" if facts.task_linked else "no task is linked"
    return _one("task_linked", facts.task_linked == wanted, text)


def _records(wanted: tuple[str, ...], facts: Facts) -> Iterable[Answer]:
    says = {
        "fresh": "the intent records are fresh",
        "stale": "the change makes intent records stale",
        "none": "there are no intent records",
    }
    return _one(
        "records", facts.records in wanted, says.get(facts.records, "the intent records are not known")
    )


def _base(wanted: GlobSet, facts: Facts) -> Iterable[Answer]:
    return _one("base", wanted.matches(facts.base_ref), "the base branch is {}", facts.base_ref)


def _at_most(code: str, unit: str, count: Callable[[Facts], int]) -> Callable[[int, Facts], Iterable[Answer]]:
    def condition(limit: int, facts: Facts) -> Iterable[Answer]:
        if facts.incomplete:
            return _one(code, False, _INCOMPLETE)
        return _one(code, count(facts) <= limit, f"{count(facts):,} {unit}, at most {limit:,} are allowed")

    return condition


def _at_least(
    code: str, unit: str, count: Callable[[Facts], int]
) -> Callable[[int, Facts], Iterable[Answer]]:
    def condition(limit: int, facts: Facts) -> Iterable[Answer]:
        holds = count(facts) >= limit
        if facts.incomplete and not holds:
            return _one(code, False, _INCOMPLETE)
        return _one(code, holds, f"{count(facts):,} {unit}, at least {limit:,} are needed")

    return condition


def _labels(wanted: Labels, facts: Facts) -> Iterable[Answer]:
    has = {label.casefold() for label in facts.labels}
    if wanted.all is not None:
        missing = [label for label in wanted.all if label.casefold() not in has]
        text = "the label {} is missing" if missing else "every label asked for is there"
        yield not missing, Fact(code="labels_all", text=text, subjects=tuple(missing[:1]))
    if wanted.any is not None:
        found = [label for label in wanted.any if label.casefold() in has]
        text = "it has the label {}" if found else "it has no label that is asked for"
        yield bool(found), Fact(code="labels_any", text=text, subjects=tuple(found[:1]))
    if wanted.none is not None:
        found = [label for label in wanted.none if label.casefold() in has]
        text = "it has the label {}" if found else "it has no label that is ruled out"
        yield not found, Fact(code="labels_none", text=text, subjects=tuple(found[:1]))


def _named(kind: str) -> Callable[[Matcher, Facts], Iterable[Answer]]:
    """Agents and models: each thing has one name, and the list is never incomplete, only empty."""

    def condition(wanted: Matcher, facts: Facts) -> Iterable[Answer]:
        names = [(name,) for name in getattr(facts, kind)]
        return _matcher(
            kind, wanted, names, complete=True, thing=f"{kind[:-1]}", nothing=f"no {kind[:-1]} is known"
        )

    return condition


def _paths(wanted: Matcher, facts: Facts) -> Iterable[Answer]:
    files = [file.paths for file in facts.files]
    return _matcher(
        "paths", wanted, files, complete=not facts.incomplete, thing="file", nothing="no file is changed"
    )


def _matcher(
    code: str, wanted: Matcher, things: list[Any], *, complete: bool, thing: str, nothing: str
) -> Iterable[Answer]:
    """`things` are tuples of the names that one thing has."""
    if wanted.any is not None:
        hit = _first_hit(wanted.any, things)
        text = f"the {thing} {{}} matches {{}}" if hit else f"no {thing} matches" if things else nothing
        if not hit and not complete:
            text = f"{text}, and {_INCOMPLETE}"
        yield hit is not None, Fact(code=f"{code}_any", text=text, subjects=hit or ())
    if wanted.none is not None:
        hit = _first_hit(wanted.none, things)
        text = f"the {thing} {{}} matches {{}}" if hit else f"no {thing} matches what is ruled out"
        if not hit and not complete:
            text = _INCOMPLETE
        yield hit is None and complete, Fact(code=f"{code}_none", text=text, subjects=hit or ())
    if wanted.only is not None:
        miss = next((name for names in things for name in names if not wanted.only.matches(name)), None)
        holds = miss is None and complete and bool(things)
        if miss is not None:
            text = f"the {thing} {{}} matches nothing under `only`"
        elif not complete:
            text = _INCOMPLETE
        else:
            text = f"every {thing} matches ({len(things):,})" if things else nothing
        yield holds, Fact(code=f"{code}_only", text=text, subjects=() if miss is None else (miss,))


def _first_hit(globs: GlobSet, things: Iterable[tuple[str, ...]]) -> tuple[str, str] | None:
    for names in things:
        for name in names:
            if (glob := globs.first(name)) is not None:
                return name, glob.pattern
    return None


_INCOMPLETE = "the list of files may be incomplete"

# In the order in which they are asked: files against globs last.
_CONDITIONS: dict[str, Callable[[Any, Facts], Iterable[Answer]]] = {
    "author": _author,
    "source": _source,
    "agents": _named("agents"),
    "models": _named("models"),
    "base": _base,
    "draft": _draft,
    "task_linked": _task_linked,
    "labels": _labels,
    "records": _records,
    "max_risk": _max_risk,
    "card_verified": _card_verified,
    "min_files": _at_least("min_files", "files", lambda facts: len(facts.files)),
    "max_files": _at_most("max_files", "files", lambda facts: len(facts.files)),
    "min_lines": _at_least("min_lines", "changed lines", lambda facts: facts.lines),
    "max_lines": _at_most("max_lines", "changed lines", lambda facts: facts.lines),
    "paths": _paths,
}
