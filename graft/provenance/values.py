"""Makes text from a commit fit to be kept and shown: one line, bounded, nothing invisible.

Markdown is not its business: whoever renders still passes values through `graft.markdown`.
"""

from __future__ import annotations

import re
import unicodedata

LIMIT = 200  # characters of one value
_BLANKS = re.compile(r"\s+")
# Control characters, lone surrogates, and format characters (which turn the reading direction or hide).
_HIDDEN = frozenset({"Cc", "Cs", "Cf"})


def bounded(text: str, limit: int = LIMIT) -> str:
    """`text` on one line, at most `limit` characters (an ellipsis says that it was cut), `�` for what is hidden."""
    cut = text[: 4 * limit]  # enough to fill the limit after blanks are folded; bounds the work on any input
    line = _BLANKS.sub(" ", cut).strip()
    shown = "".join("\ufffd" if unicodedata.category(c) in _HIDDEN else c for c in line)
    if len(shown) > limit or len(cut) < len(text):
        return shown[: limit - 1] + "…"
    return shown
