"""A review as plain text for a terminal: the answers in the first lines, then what they rest on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from graft.policy import CANDIDATES as POLICY_FILES
from graft.policy import Decision, State, Status, why_none
from graft.provenance import AuthorKind, Hint, Provenance, Source
from graft.records import RecordsReview, check_output

if TYPE_CHECKING:
    from graft.cli.review import Review

SHOWN = 8  # rows of one list
_INDENT = " " * 12


def plain(made: Review) -> str:
    """The review in lines of text. Nothing from outside can reach the terminal as a control character."""
    lines = [
        _heading(made),
        "",
        *_risk(made),
        *_author(made.provenance),
        *_policy(made.decision),
        *_rest(made),
    ]
    return "\n".join(visible(line) for line in lines) + "\n"


def visible(text: str) -> str:
    """Text whose control and format characters are written out, so that a terminal does nothing with them."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _heading(made: Review) -> str:
    snapshot = made.snapshot
    files = _count(len(snapshot.files), "file")
    return (
        f"{made.range.base[:10]}..{made.range.head[:10]}  {files} +{snapshot.additions} -{snapshot.deletions}, "
        f"{'more than ' if snapshot.commits_truncated else ''}{_count(len(snapshot.commits), 'commit')}"
    )


def _risk(made: Review) -> Iterable[str]:
    card = made.card
    raised = card.risk is not card.floor.risk
    why = f" (rules: {card.floor.risk}; without a checked card at least logic)" if raised else ""
    yield _row("Risk", f"{card.risk}{why}")
    rows = [
        " ".join(filter(None, (f"{r.risk:<9}", r.code, r.path, _note(r.detail)))) for r in card.floor.reasons
    ]
    yield from _list(rows)


def _note(detail: str | None) -> str:
    return f"({detail})" if detail else ""


def _author(who: Provenance) -> Iterable[str]:
    how = (
        f", {who.source}"
        if who.source is not Source.NONE and who.author_kind is not AuthorKind.AUTOMATION
        else ""
    )
    agents = f": {', '.join(who.agents)}" if who.agents else ""
    yield _row("Author", f"{who.author_kind}{how}{agents}")
    yield _INDENT + who.explanation
    if who.models:
        yield f"{_INDENT}model {', '.join(who.models)}"
    if who.tasks:
        yield f"{_INDENT}task {', '.join(t.text for t in who.tasks)}"
    yield from _list([_hint(h) for h in who.hints])


def _hint(hint: Hint) -> str:
    where = f" in {hint.commit[:10]}" if hint.commit else ""
    if hint.kind == "misplaced_trailer":
        return f"{hint.key}{where}, line {hint.line}, is outside the trailer block: git does not read it"
    if hint.kind == "unusable_trailer":
        return f"Graft trailers{where} name no agent"
    return f"no evidence: {hint.agent} ({hint.kind.replace('_', ' ')}){where}"


def _policy(decision: Decision) -> Iterable[str]:
    loaded, verdict = decision.loaded, decision.verdict
    if verdict is None:
        name = " and ".join(loaded.paths) or POLICY_FILES[0]
        if loaded.status is Status.INVALID:
            yield _row("Policy", f"invalid: {name}")
            yield from _list([f"{name}:{problem}" for problem in loaded.problems])
        else:
            yield _row("Policy", f"{loaded.status}: {name} {why_none(loaded)}")
        return
    people = [*verdict.then.teams, *verdict.then.users]
    whom = f" by {verdict.then.count} of {', '.join(people)}" if people else ""
    rule = "no rule matched" if verdict.rule is None else f"rule {verdict.results[verdict.rule].name}"
    yield _row("Policy", f"would {_OUTCOMES[verdict.outcome]}{whom} ({rule})")
    rows = [f"{_STATES[r.state]} {r.name}{_facts([f.plain() for f in r.facts])}" for r in verdict.results]
    yield from _list(rows)
    if verdict.guards:
        yield from _list([f"never approve: {guard.plain()}" for guard in verdict.guards])


_OUTCOMES = {"approve": "approve", "review": "ask for a review", "block": "block"}
_STATES = {State.MATCHED: "[x]", State.NOT_MATCHED: "[ ]", State.NOT_EVALUATED: "[-]"}


def _facts(facts: Sequence[str]) -> str:
    return f": {'; '.join(facts)}" if facts else ""


def _rest(made: Review) -> Iterable[str]:
    card = "not needed: nothing changed" if made.snapshot.is_empty else "unavailable: no model is used here"
    yield _row("Card", card)
    yield from _records(made.records)


def _records(found: RecordsReview | None) -> Iterable[str]:
    if found is None:
        yield _row("Records", "none")
        return
    title, _ = check_output(found)
    yield _row("Records", f"{title[:1].lower()}{title[1:]}")
    rows = [f"clause {item.record} {item.clause} ({item.change}): {item.text}" for item in found.clauses]
    rows += [f"law {item.law} ({item.change})" for item in found.laws]
    rows += [f"to run again or stale: {item.kind} {item.name}: {item.reason}" for item in found.stale]
    rows += [f"does not hold: {problem}" for problem in found.problems]
    rows += [f"changed evidence: {path}" for path in found.protected]
    rows += [f"not looked at: {what}" for what in found.truncated]
    yield from _list(rows)


def _row(name: str, text: str) -> str:
    return f"{name:<12}{text}"


def _list(rows: Sequence[str]) -> Iterable[str]:
    yield from (_INDENT + row for row in rows[:SHOWN])
    if len(rows) > SHOWN:
        yield f"{_INDENT}and {len(rows) - SHOWN} more (--json lists all)"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
