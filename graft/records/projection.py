"""A law in plain language, so that a person can approve its meaning next to the clauses.

It is a reading aid made by rule from the text of the law: it translates what it knows and quotes the rest, and
it always cites the declaration. It never stands in for reading LAWS.bend.
"""

from __future__ import annotations

import re

from .blocks import Laws
from .scanner import NAME

_BINDER = re.compile(r"for[ \t]+([+\-~]?)[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*:[ \t]*(.+)\Z")
_WITNESS = re.compile(r"exs[ \t]+[+\-~]?[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*:[ \t]*(.+)\Z")
_LET = re.compile(rf"[+\-]?({NAME})[ \t]+=[ \t]+(.+)\Z")
_EQUATION = re.compile(r"\{(.+?)[ \t](==|!=)[ \t](.+)[ \t]:[ \t](.+)\}\Z")


def _line(text: str) -> str:
    """One line of a law's body in words."""
    binder = _BINDER.match(text)
    if binder:
        type_, _, condition = binder.group(3).partition(" where ")
        where = f" with {condition}" if condition else ""
        equation = _EQUATION.match(type_)
        if equation:
            return f"given that {_equation(equation)}{where}"
        return f"for every {binder.group(2)} of type {type_}{where}"
    witness = _WITNESS.match(text)
    if witness:
        return f"there is a {witness.group(1)} of type {witness.group(2)}"
    let = _LET.match(text)
    if let:
        return f"where {let.group(1)} is {let.group(2)}"
    found = _EQUATION.match(text)
    return _equation(found) if found else f"`{text}`"


def _equation(match: re.Match[str]) -> str:
    verb = "equals" if match.group(2) == "==" else "differs from"
    return f"{match.group(1).strip()} {verb} {match.group(3).strip()} (as {match.group(4).strip()})"


def law(laws: Laws, law_id: str) -> str:
    """One law: its words, joined, and the line of its declaration."""
    body = [line.strip(" \t\r") for line in laws.meaning(law_id).split("\n")]
    words = [_line(line) for line in body if line and not line.startswith("law ")]
    return f"{'; '.join(words) or 'claims nothing'} [LAWS.bend:{laws.scan.line_of('law', law_id)}]"
