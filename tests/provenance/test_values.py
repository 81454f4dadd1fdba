from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft.provenance.values import bounded


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("claude-code", "claude-code"),
        ("  two \t\n blanks ", "two blanks"),
        ("a\u2028b", "a b"),
        ("\x1b[31mred\x00", "�[31mred�"),
        ("\ud800", "�"),
        ("safe\u202etxt.exe", "safe�txt.exe"),
        ("zero\u200bwidth", "zero�width"),
        ("x" * 201, "x" * 199 + "…"),
        ("x" * 200, "x" * 200),
        (" " * 900 + "x", "…"),
    ],
)
def test_values(text: str, kept: str) -> None:
    assert bounded(text) == kept


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_what_is_kept_is_one_bounded_visible_line(text: str, limit: int) -> None:
    kept = bounded(text, limit)
    assert len(kept) <= limit
    assert not any(c.isspace() and c != " " for c in kept)
    kept.encode()
