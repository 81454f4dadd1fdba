"""Looks signatures up: a person, a trailer or a text in, the row of the table that it bears out.

Addresses are compared whole and in lower case, bot ids only in GitHub's own noreply form or as GitHub reports
them, logins only where GitHub says it is a bot: nothing here matches by likeness. Every input is text from
outside; any text is taken, and the work is linear in its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from graft.changes import Person
from graft.provenance.table import ROWS, Kind, Row
from graft.provenance.trailers import Trailer

TEXT_LIMIT = 1 << 18  # characters of a message or description that are looked through

# Trailers that name somebody as `Name <address>`, and those that name a tool.
_PEOPLE = ("co-authored-by", "co-developed-by")
_TOOLS = ("assisted-by", "generated-by")
_SESSIONS = ("claude-session", "agent-logs-url", "amp-thread-id", "replit-commit-session-id")

_NOREPLY = re.compile(r"([0-9]{1,20})\+[^@\s]+@users\.noreply\.github\.com")
_BOT_ADDRESS = re.compile(r"(?:[0-9]{1,20}\+)?[^@\s]+\[bot\]@users\.noreply\.[^@\s]+")


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """A row, and the model where the signature names one."""

    row: Row
    model: str | None = None


def _by(kind: Kind) -> dict[str, list[Row]]:
    index: dict[str, list[Row]] = {}
    for row in ROWS:
        if row.kind is kind:
            index.setdefault(row.literal.lower(), []).append(row)
    return index


_ADDRESSES, _IDS, _LOGINS = _by(Kind.ADDRESS), _by(Kind.BOT_ID), _by(Kind.LOGIN)
_TRAILERS, _NAMES = _by(Kind.TRAILER), _by(Kind.TOOL)
_SUFFIXES = [r for r in ROWS if r.kind is Kind.AUTHOR_NAME]
_BRANCHES = [(re.compile(r.literal), r) for r in ROWS if r.kind is Kind.BRANCH]
_FOOTERS = [r for r in ROWS if r.kind is Kind.FOOTER]
_SUBJECTS = [r for r in ROWS if r.kind is Kind.SUBJECT]


def of_author(person: Person) -> Match | None:
    """Who a commit's author, or the account that opened a pull request, is known to be."""
    found = _identity(person)
    if found is None:
        row = next((r for r in _SUFFIXES if person.name.endswith(r.literal)), None)
        found = Match(row=row) if row else None
    return found


def of_trailer(trailer: Trailer) -> Match | None:
    """What a trailer says by itself. A name without an address says nothing in Co-authored-by."""
    key = trailer.key.lower()
    for row in _TRAILERS.get(key, ()):
        whole = trailer.value == row.value
        if whole or (row.value.startswith("https://") and trailer.value.startswith(row.value)):
            return Match(row=row)
    if key in _PEOPLE or key in _TOOLS:
        person = _person(trailer.value)
        if person is not None:
            found = _identity(person)
            return Match(row=found.row, model=_model_in_name(person.name)) if found else None
    if key in _TOOLS:
        name, model = _tool(trailer.value)
        rows = _NAMES.get(name)
        return Match(row=rows[0], model=model) if rows else None
    return None


def is_identity(trailer: Trailer) -> bool:
    """Whether the trailer names a person, so that accepting their suggestion writes it."""
    return trailer.key.lower() in _PEOPLE


def session(trailer: Trailer) -> str | None:
    """The session or thread that a tool's own trailer names."""
    return trailer.value if trailer.key.lower() in _SESSIONS and trailer.value else None


def is_bot(person: Person) -> bool:
    """Whether this is some bot's account: GitHub says so, or name or address have the form of one."""
    return (
        person.is_bot
        or person.name.endswith("[bot]")
        or bool(_BOT_ADDRESS.fullmatch(person.email.lower()[:400]))
    )


def in_message(message: str) -> Iterator[Row]:
    """Weak signs in a commit message."""
    text = message[:TEXT_LIMIT]
    yield from (r for r in _FOOTERS if r.literal in text)
    yield from (r for r in _SUBJECTS if text.startswith(r.literal))


def in_description(body: str) -> Iterator[Row]:
    """Weak signs in the description of a pull request."""
    text = body[:TEXT_LIMIT]
    return (r for r in _FOOTERS if r.literal in text)


def in_branch(branch: str) -> Iterator[Row]:
    """Weak signs in the name of the head branch."""
    name = branch[:1000]
    return (row for pattern, row in _BRANCHES if pattern.match(name))


def _identity(person: Person) -> Match | None:
    address = person.email.strip().lower()
    name = person.name.strip().lower()
    for row in _ADDRESSES.get(address, ()):
        if name.startswith(row.name):
            return Match(row=row)
    noreply = _NOREPLY.fullmatch(address) if len(address) <= 400 else None
    account = str(person.id) if person.is_bot and person.id is not None else noreply and noreply[1]
    if account and (rows := _IDS.get(account)):
        return Match(row=rows[0])
    # Last: two accounts share the login Copilot, and ids differ on GitHub Enterprise Server.
    if person.is_bot and person.login is not None and (rows := _LOGINS.get(person.login.lower())):
        return Match(row=rows[0])
    return None


def _person(value: str) -> Person | None:
    """`Name <address>`; the last pair of brackets counts, as it does for git and GitHub."""
    name, opened, rest = value.rpartition("<")
    address, closed, _ = rest.partition(">")
    if not opened or not closed:
        return None
    return Person(name=name.strip(), email=address.strip())


def _model_in_name(name: str) -> str | None:
    """The model in a co-author's name: `aider (gpt-5)` or `Claude Opus 4.6`."""
    head, opened, rest = name.partition(" (")
    if opened and head.lower() == "aider" and rest.endswith(")"):
        return rest[:-1].strip() or None
    product = name.lower()
    if product.startswith("claude ") and not product.startswith("claude code"):
        return name
    return None


def _tool(value: str) -> tuple[str, str | None]:
    """`NAME`, `NAME:MODEL [TOOLS]`, `NAME / MODEL` or `NAME (MODEL)`: the name in lower case, the model."""
    for mark, end in ((" (", ")"), (" / ", ""), (":", " ")):
        name, found, rest = value.partition(mark)
        if found:
            return name.strip().lower(), (rest.partition(end)[0] if end else rest).strip() or None
    return value.strip().lower(), None
