"""A card as the section of Graft's comment and as the output of its check run.

The risk stands first and the warnings second, so that whatever a hostile text does to the length of the rest, these two
stay. Every text from a model or from the change goes through `escape_prose` or `code_span`; all else here is Graft's
own. A card that was not written, or not checked, says so before it says anything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from graft.intent.card import Card, Statement, Status, VerifierStatus
from graft.intent.floor import CHANGE_RULES, FILE_RULES, INTENT_RECORD, PATH_ROWS, Floor
from graft.markdown import code_span, escape_prose
from graft.risk import Risk

__all__ = ["check_output", "render_section"]

_SENTENCE = 400
_PATH = 160
_MOST_PATHS = 5
_MOST_OMISSIONS = 20
_MOST_SUSPICIONS = 12

_RULES = {
    **dict((*PATH_ROWS, INTENT_RECORD)),
    **{rule.code: rule.says for rule in FILE_RULES},
    **{rule.code: rule.says for rule in CHANGE_RULES},
    "incomplete": "the list of files is not complete",
    "not_shown": "part of the diff was not shown to the model",
    "injection": "text that looks meant for a model",
}
_INCOMPLETE = {
    "too_many_files": "there are more files than GitHub lists",
    "count_mismatch": "GitHub's counts do not match the files it listed",
    "diff_refused": "GitHub refused to give the diff",
}
_OMITTED = {
    "binary": "binary",
    "generated": "written by a tool",
    "no_patch": "GitHub gave no diff",
    "cut": "shown in part",
    "too_many_files": "too many files",
}
_REASONS = {
    "no_model": "no model is configured",
    "budget": "the budget of this repository is used up for today (UTC)",
    "timeout": "the model did not answer in time",
    "connection": "the model could not be reached",
    "rate_limited": "the model service asked to be called less often",
    "overloaded": "the model service is overloaded",
    "server_error": "the model service had an error",
    "unauthorized": "the model service refused the credentials",
    "billing": "the model service refused for billing reasons",
    "unknown_model": "the model service does not know the configured model",
    "invalid_request": "the model service did not accept the request",
    "too_long": "the change is too long for the model",
    "refused": "the model declined to answer",
    "max_tokens": "the model's answer was too long",
    "empty": "the model's answer was empty",
    "bad_json": "the model's answer could not be read",
    "bad_response": "the model service answered with something else than an answer",
    "superseded": "a newer state of this pull request took its place",
    "closed": "the pull request was closed",
    "gave_up": "Graft stopped trying after repeated failures",
}
_RATE = (
    "Is this card right? React to this comment with 👍 or 👎, or use the buttons of the `graft/intent` check."
)


def render_section(
    card: Card, *, pending: bool = False, older: Card | None = None, retry_at: datetime | None = None
) -> str:
    """The `### Intent` section.

    `pending`: a model is about to be asked; `card` then says what is known without one, and `older`, the last card of
    an earlier head, is shown below it as such. `retry_at`: when a failed call is made again by itself.
    """
    return "\n\n".join(["### Intent", *_blocks(card, pending, older, retry_at)])


def check_output(
    card: Card, *, pending: bool = False, older: Card | None = None, retry_at: datetime | None = None
) -> tuple[str, str]:
    """(title, summary) of the check run, with the same content as the section."""
    return _title(card, pending), "\n\n".join(_blocks(card, pending, older, retry_at))


def _title(card: Card, pending: bool) -> str:
    if card.status is Status.EMPTY:
        return "Nothing changed"
    if pending:
        return f"Risk at least {card.risk}, card in the making"
    if card.status is Status.UNAVAILABLE:
        return f"Risk {card.risk}, no card"
    if card.status is Status.UNVERIFIED:
        return f"Risk {card.risk}, card not verified"
    if card.verifier is VerifierStatus.DISAGREES:
        return f"Risk {card.risk}, the verifier disagrees with the card"
    return f"Risk {card.risk}"


def _blocks(card: Card, pending: bool, older: Card | None, retry_at: datetime | None) -> Iterable[str]:
    if card.status is Status.EMPTY:
        yield f"**Risk: {card.risk}**"
        yield "This pull request changes nothing, so there is no card."
        yield from _warnings(card)
        yield _sources(card)
        return
    yield f"**Risk: {'at least ' if pending else ''}{card.risk}**"
    yield from _state(card, pending, retry_at)
    yield from _warnings(card)
    yield from _content(card)
    yield _sources(card)
    if pending and older is not None and older.goal is not None:
        yield f"#### Card of {_sha(older.head_sha)}, an earlier state of this pull request"
        yield f"It does not describe {_sha(card.head_sha)}. Its risk was {older.risk}."
        yield from _warnings(older, disagreement_only=True)
        yield from _content(older)
    yield _footnote(card)


def _state(card: Card, pending: bool, retry_at: datetime | None) -> Iterable[str]:
    if pending:
        yield f"⏳ The card for {_sha(card.head_sha)} is in the making."
        return
    if card.status is Status.UNAVAILABLE:
        yield f"⚠️ **No card**{_because(card)}. No model has described or checked this change.{_again(retry_at)}"
    elif card.status is Status.UNVERIFIED:
        yield f"⚠️ **Not verified**{_because(card)}. Nobody has checked the claims below.{_again(retry_at)}"


def _because(card: Card) -> str:
    return f": {_REASONS.get(card.reason, code_span(card.reason, limit=40))}" if card.reason else ""


def _again(retry_at: datetime | None) -> str:
    if retry_at is None:
        return ""
    # Rounded up, so that it is never earlier than promised.
    minute = (retry_at + timedelta(seconds=59)).astimezone(UTC)
    return f" Graft tries again at {minute:%Y-%m-%d %H:%M} UTC."


def _warnings(card: Card, *, disagreement_only: bool = False) -> Iterable[str]:
    if card.verifier is VerifierStatus.DISAGREES:
        lines = [f"- {claim.verdict}: {_prose(claim.text)}{_why(claim.reason)}" for claim in card.doubts]
        lines += [f"- not on the card: {_prose(text)}" for text in card.missed]
        yield "\n".join(["⚠️ **The verifier disagrees** with this card:", "", *lines])
    if disagreement_only:
        return
    if card.suspicions:
        shown = card.suspicions[:_MOST_SUSPICIONS]
        lines = [
            f"- {s.text}{f' ({code_span(s.path, limit=_PATH)})' if s.path else _commit(s.sha)}" for s in shown
        ]
        lines += _and_more(len(card.suspicions) - len(shown))
        yield "\n".join(["⚠️ **Text that looks meant for a model** was found:", "", *lines])
    if card.incomplete:
        whys = (_INCOMPLETE.get(code, code_span(code, limit=60)) for code in card.incomplete)
        yield f"⚠️ **The list of files is not complete**: {'; '.join(whys)}."


def _content(card: Card) -> Iterable[str]:
    if card.goal is None:
        return
    yield f"**Goal:** {_claim(card.goal)}"
    if card.changes:
        lines = (f"{number}. {_claim(change)}" for number, change in enumerate(card.changes, 1))
        yield "\n".join(["**Behaviour changes**, most important first:", "", *lines])
    else:
        yield "**Behaviour changes:** none named."
    if card.out_of_scope:
        lines = (
            f"- {code_span(item.path, limit=_PATH)}{_why(item.why.text)}"
            f"{' (found by the verifier)' if item.by == 'verifier' else _doubt(item.why)}"
            for item in card.out_of_scope
        )
        yield "\n".join(["**Out of scope**, not explained by the goal:", "", *lines])
    if card.touches:
        pointers: dict[int, list[str]] = {}
        for touch in card.touches:
            pointers.setdefault(touch.change, []).append(
                code_span(f"{touch.record} {touch.clause}", limit=_PATH)
            )
        lines = (f"- change {number}: {', '.join(found)}" for number, found in pointers.items())
        yield "\n".join(
            ["**Compare with approved intent** (the writer's pointers; nothing checks them):", "", *lines]
        )


def _claim(statement: Statement) -> str:
    return f"{_prose(statement.text)}{_doubt(statement)}"


def _doubt(statement: Statement) -> str:
    return f" ⚠️ *{statement.verdict}*" if statement.is_doubted else ""


def _sources(card: Card) -> str:
    lines = [f"- rules: {card.floor.risk}{_floor_reasons(card.floor)}"]
    if card.risk_first_pass is not None:
        lines.append(f"- first pass: {card.risk_first_pass}")
    if card.risk_writer is not None:
        lines.append(f"- writer: {card.risk_writer}{_why(card.risk_reason_writer)}")
    if card.risk_verifier is not None:
        lines.append(f"- verifier: {card.risk_verifier}{_why(card.risk_reason_verifier)}")
    if card.verifier is VerifierStatus.DISAGREES:
        lines.append(f"- the verifier disagrees: at least {Risk.LOGIC}")
    elif card.verifier is not VerifierStatus.AGREES and card.status is not Status.EMPTY:
        lines.append(f"- no checked card: at least {Risk.LOGIC}")
    parts = ["Where the risk comes from (the highest counts):", "", *lines]
    if card.omissions:
        shown = card.omissions[:_MOST_OMISSIONS]
        listed = [f"- {code_span(o.path, limit=_PATH)}: {_OMITTED.get(o.why, 'not shown')}" for o in shown]
        listed += _and_more(len(card.omissions) - len(shown))
        parts += [
            "",
            f"{'Cannot be shown to a' if card.goal is None else 'Not read by the'} model:",
            "",
            *listed,
        ]
    if card.dropped_paths:
        parts += [
            "",
            f"Paths that a model named and this change does not have: {card.dropped_paths}, left out.",
        ]
    return "\n".join(parts)


def _floor_reasons(floor: Floor) -> str:
    """The rules that applied, in their own words, each with the first few paths."""
    by_code: dict[str, list[str]] = {}
    for reason in floor.reasons:
        found = by_code.setdefault(reason.code, [])
        if reason.path is not None and reason.code != "not_shown":
            found.append(code_span(reason.path, limit=_PATH))
        elif reason.code in ("very_large", "very_many_files", "large", "many_files") and reason.detail:
            found.append(escape_prose(reason.detail, limit=60))
    words: list[str] = []
    for code, found in by_code.items():
        more = f" and {len(found) - _MOST_PATHS} more" if len(found) > _MOST_PATHS else ""
        paths = f" ({', '.join(found[:_MOST_PATHS])}{more})" if found else ""
        words.append(f"{_RULES.get(code, code_span(code, limit=40))}{paths}")
    return f" ({'; '.join(words)})" if words else ""


def _footnote(card: Card) -> str:
    parts: list[str] = []
    if card.writer_model is not None:
        parts.append(f"Written by {code_span(card.writer_model, limit=80)}")
    if card.verifier_model is not None and card.status is Status.READY:
        parts.append(f"checked by {code_span(card.verifier_model, limit=80)}")
    parts.append(f"prompt {code_span(card.prompt_version, limit=20)}")
    parts += [f"base {_sha(card.base_sha)}", f"head {_sha(card.head_sha)}"]
    rate = f" {_RATE}" if card.goal is not None else ""
    return f"<sub>{_capital(', '.join(parts))}.{rate}</sub>"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _prose(text: str) -> str:
    return escape_prose(text, limit=_SENTENCE)


def _why(text: str) -> str:
    prose = _prose(text)
    return f" ({prose.rstrip('.')})" if prose else ""


def _commit(sha: str | None) -> str:
    return f" ({_sha(sha)})" if sha else ""


def _sha(sha: str) -> str:
    return code_span(sha[:10], limit=10)


def _and_more(count: int) -> Sequence[str]:
    return [f"- and {count} more"] if count > 0 else []
