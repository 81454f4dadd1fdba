"""The three risk classes and their order, shared by the floor, the card and the policy."""

from __future__ import annotations

from enum import StrEnum


class Risk(StrEnum):
    """How closely a person should look, lowest first."""

    TRIVIAL = "trivial"
    LOGIC = "logic"
    SENSITIVE = "sensitive"

    @property
    def rank(self) -> int:
        return _ORDER.index(self)


_ORDER = (Risk.TRIVIAL, Risk.LOGIC, Risk.SENSITIVE)


def highest(*classes: Risk | None) -> Risk:
    """The most severe class given; `None` says nothing. With no class at all: `trivial`."""
    return max((c for c in classes if c is not None), key=lambda c: c.rank, default=Risk.TRIVIAL)
