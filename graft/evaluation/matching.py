"""Whether a sentence says what a case's truth says, by keywords, so that anybody can see why.

A pattern is written as a few words, all of which have to occur in the sentence, in any order:

    retry upload            both words, in any inflection
    retry/attempt upload    one of the first two, and the third
    no-longer check         the hyphen joins words that stand side by side

Words are compared without case, punctuation, articles and English endings; identifiers are split at underscores and
capitals. Nothing is learned and nothing is random: the same sentence always gets the same answer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

__all__ = ["first_match", "matches", "missing", "words"]

_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ARTICLES = frozenset(("a", "an", "the"))


@lru_cache(maxsize=4_096)
def words(text: str) -> tuple[str, ...]:
    """The words of a text as they are compared."""
    spaced = _HUMP.sub(" ", unicodedata.normalize("NFKC", text).replace("'", "").replace("’", ""))
    found = (match.group().casefold() for match in _WORD.finditer(spaced))
    return tuple(_stem(word) for word in found if word not in _ARTICLES)


def matches(pattern: str, sentence: str) -> bool:
    """Whether every word of the pattern occurs in the sentence."""
    return not missing(pattern, sentence)


def missing(pattern: str, sentence: str) -> tuple[str, ...]:
    """The words of the pattern that the sentence lacks, as they were written: the explanation of a failed match."""
    said = words(sentence)
    return tuple(
        term for term in pattern.split() if not any(_occurs(option, said) for option in _options(term))
    )


def first_match(patterns: Iterable[str], sentences: Sequence[str]) -> tuple[str, int] | None:
    """The first pattern that fits a sentence, and the sentence's index."""
    for pattern in patterns:
        for index, sentence in enumerate(sentences):
            if matches(pattern, sentence):
                return pattern, index
    return None


@lru_cache(maxsize=4_096)
def _options(term: str) -> tuple[tuple[str, ...], ...]:
    return tuple(words(option.replace("-", " ")) for option in term.split("/"))


def _occurs(wanted: tuple[str, ...], said: tuple[str, ...]) -> bool:
    width = len(wanted)
    return width > 0 and any(said[at : at + width] == wanted for at in range(len(said) - width + 1))


def _stem(word: str) -> str:
    """A word without the endings of number and tense. Crude, and the same for both sides of a comparison."""
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if len(word) > len(ending) + 2 and word.endswith(ending):
            word = word[: -len(ending)]
            break
    if (len(word) > 3 and word[-1] == word[-2]) or (len(word) > 3 and word.endswith("e")):
        word = word[:-1]
    return word[:-1] + "i" if len(word) > 2 and word.endswith("y") else word
