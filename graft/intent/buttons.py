"""The buttons of the `graft/intent` check run, with which reviewers rate a card."""

from __future__ import annotations

from typing import Final

__all__ = ["BUTTONS", "BUTTON_TEXTS"]

# (identifier, label, description): GitHub allows 20, 20 and 40 characters (checks, create).
BUTTON_TEXTS: Final = (
    ("card-accurate", "Card is accurate", "The card says what the change does"),
    ("card-wrong", "Card is wrong", "The card misses or misstates something"),
)

# What a press of each of them means, as votes are stored.
BUTTONS: Final = {"card-accurate": "accurate", "card-wrong": "wrong"}
