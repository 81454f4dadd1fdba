"""Tells text that reads like plain ASCII from text that is plain ASCII.

A glob with a Cyrillic `а` in `pаyments` protects nothing, and nobody sees it in review. Only what a reader
could not tell apart is refused; words of another script, accents and emoji are not.

Which characters look alike is Unicode's confusables table (UTS #39), as packaged in confusable-homoglyphs.
The table is read when the first text with a non-ASCII character arrives.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# Characters that show as nothing, beside the general category Cf (zero width, direction, soft hyphen):
# combining grapheme joiner, Hangul fillers, Mongolian and general variation selectors.
_INVISIBLE = re.compile("[\u034f\u115f\u1160\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0]")
_WORD = re.compile(r"[^\W_]+")
# Latin letters up to here (Latin-1, Extended-A and -B) are somebody's alphabet; later ones are phonetic
# signs, full-width forms and mathematical letters.
_LAST_LATIN_ALPHABET = 0x024F


def find(text: str) -> tuple[int, str] | None:
    """The first character that deceives, as (index in `text`, why in a few words); `None` when there is none.

    The reason never quotes the text.
    """
    if text.isascii():
        return None
    for index, char in enumerate(text):
        if not char.isascii() and (why := _suspicious_alone(char)):
            return index, why
    for word in _WORD.finditer(text):
        if (offset := _suspicious_in(word.group())) is not None:
            return word.start() + offset, "looks like an ASCII letter and is a letter of another script"
    return None


@lru_cache(4_096)
def _suspicious_alone(char: str) -> str | None:
    category = unicodedata.category(char)
    if category in ("Cf", "Cc", "Zl", "Zp") or _INVISIBLE.match(char):
        return "is invisible"
    if category == "Zs":
        return "is a space other than the ASCII one"
    if category in ("Cs", "Co", "Cn"):
        return "is no assigned Unicode character"
    compatible = unicodedata.normalize("NFKC", char)
    if compatible.isascii() and unicodedata.normalize("NFC", char) != compatible:
        return "is another form of an ASCII character"
    if category[0] in "PS" and _ascii_twins(char):
        return "looks like an ASCII sign and is another one"
    if (
        category[0] == "L"
        and ord(char) > _LAST_LATIN_ALPHABET
        and _script(char) == "LATIN"
        and _ascii_twins(char)
    ):
        return "looks like an ASCII letter and is a phonetic or styled one"
    return None


def _suspicious_in(word: str) -> int | None:
    """Index of a letter of another script that passes for ASCII, in a word that mixes it with Latin or that
    consists of nothing else."""
    foreign = [
        i for i, char in enumerate(word) if char.isalpha() and _script(char) not in ("LATIN", "COMMON")
    ]
    twins = [i for i in foreign if any(twin.isalnum() for twin in _ascii_twins(word[i]))]
    if not twins:
        return None
    has_latin = any(char.isalpha() and _script(char) == "LATIN" for char in word)
    return twins[0] if has_latin or len(twins) == len(foreign) else None


@lru_cache(4_096)
def _script(char: str) -> str:
    from confusable_homoglyphs import categories

    return str(categories.alias(char))


@lru_cache(4_096)
def _ascii_twins(char: str) -> tuple[str, ...]:
    from confusable_homoglyphs import confusables

    found = confusables.is_confusable(char, greedy=True) or []
    return tuple(twin["c"] for entry in found for twin in entry["homoglyphs"] if twin["c"].isascii())
