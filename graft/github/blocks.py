"""Cutting rendered markdown to a limit without breaking what is left.

A cut falls between blocks (at a blank line outside a code fence), or between lines where no block fits, never
inside a line: half a code span would set its content free. What a cut leaves open, a fence or `<details>`, is
closed, and a sentence says how much is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

CUT_NOTE = "_Cut here to fit; the rest is not shown._"

Measure = Callable[[str], int]

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_DETAILS = re.compile(r"<(/?)details\b", re.IGNORECASE)


def utf8_length(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def cut(markdown: str, limit: int, *, measure: Measure = len) -> str:
    """`markdown` itself where it fits into `limit`, else its beginning and a note, together within the limit.

    A limit too small for the note gives an empty text."""
    if measure(markdown) <= limit:
        return markdown
    room = limit - measure(f"\n\n{CUT_NOTE}")
    places = list(_cuts(markdown, room, measure))
    fitting = (place for place in reversed(places) if place.size + measure(place.closing) <= room)
    line = next(fitting, None)
    if line is None:
        return ""
    block = line if line.ends_block else next((place for place in fitting if place.ends_block), line)
    # One block may be most of the text: then its lines are better than nothing of it.
    return _shown(markdown, line if line.end - block.end > limit // 4 else block)


class _Cut(msgspec.Struct, frozen=True, kw_only=True):
    """A place to stop: after `end` characters of the given size, appending `closing`; `ends_block` where a block
    ends there."""

    end: int
    size: int
    closing: str = ""
    ends_block: bool = False


def _cuts(markdown: str, room: int, measure: Measure) -> Iterator[_Cut]:
    """The start and every end of a line while there is room, with what is open there."""
    yield _Cut(end=0, size=0, ends_block=True)
    at = size = 0
    fence = ""
    details = 0
    for line in lines_of(markdown):
        if line.strip() == "" and not fence:
            yield _Cut(end=at, size=size, closing=_closing("", details), ends_block=True)
        at += len(line)
        size += measure(line)
        if size > room:
            return
        opened = _FENCE.match(line)
        if fence:
            if opened and opened[1].startswith(fence) and not line[opened.end() :].strip():
                fence = ""
        elif opened:
            fence = opened[1]
        else:
            for tag in _DETAILS.finditer(line):
                details = max(0, details + (-1 if tag[1] else 1))
        yield _Cut(end=at, size=size, closing=_closing(fence, details))


def lines_of(text: str) -> list[str]:
    """Lines with their `\\n`, split there and nowhere else: U+2028 is content."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _closing(fence: str, details: int) -> str:
    return (f"\n{fence}\n" if fence else "") + "\n\n</details>" * details


def _shown(markdown: str, place: _Cut) -> str:
    kept = markdown[: place.end].rstrip() + place.closing
    return f"{kept}\n\n{CUT_NOTE}" if kept else CUT_NOTE
