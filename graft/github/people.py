"""Accounts as GitHub names them in its answers."""

from __future__ import annotations

import msgspec

from graft.changes import Person


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """A user, organization or bot. A deleted account is `None` or an empty object in GitHub's answers, so every
    field may be missing; `type` is GitHub's word (`User`, `Bot`, `Organization`, `Mannequin`)."""

    login: str = ""
    id: int | None = None
    type: str = "User"

    @property
    def is_bot(self) -> bool:
        return self.type == "Bot"

    def person(self, *, name: str = "", email: str = "") -> Person:
        """This account with git's name and address of the same person, where they are known."""
        return Person(name=name, email=email, login=self.login or None, id=self.id, is_bot=self.is_bot)
