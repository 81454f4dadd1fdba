"""The body of the one comment that Graft keeps on a pull request, as text in and text out.

    <!-- graft:managed-comment v1 -->
    ## Graft

    <!-- graft:section:intent:start -->
    …
    <!-- graft:section:intent:end -->

    <sub>footer</sub>

Sections stand in the order intent, provenance, policy, records; any other section found in a body comes after
them. Composing replaces the sections it is given and keeps every other one byte for byte; only where the whole
would pass GitHub's limit is the longest cut, at a block boundary, with a note. Composing twice changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from .blocks import cut, lines_of

MARKER = "<!-- graft:managed-comment v1 -->"
SECTIONS = ("intent", "provenance", "policy", "records")

SECTION_LIMIT = 20_000
BODY_LIMIT = 65_536  # characters; GitHub answers 422 "maximum is 65536 characters"
_SHORT = 1_000

_RESERVED = re.compile(r"<!--\s*graft:", re.IGNORECASE)
_START = re.compile(r"<!-- graft:section:([a-z][a-z0-9-]{0,39}):start -->[ \t\r]*\n?")
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """One section as it stands in a body: `text` between the marker lines, `block` with them."""

    name: str
    text: str
    block: str


def has_marker(body: str) -> bool:
    """Whether the body's first line is Graft's marker; a marker anywhere else is a quotation."""
    return body.partition("\n")[0].rstrip(" \t\r") == MARKER


def parse(body: str) -> dict[str, Section]:
    """The sections of a body, in its order, byte for byte; of two with one name the first. CRLF is tolerated,
    a section without an end is none. Never raises."""
    found: dict[str, Section] = {}
    if not has_marker(body):
        return found
    lines = lines_of(body)
    at = 0
    while at < len(lines):
        start = _START.fullmatch(lines[at])
        end = _end(lines, at, start[1]) if start else None
        if start is None or end is None:
            at += 1
            continue
        text = "".join(lines[at + 1 : end])
        block = "".join(lines[at : end + 1]).rstrip(" \t\r\n")
        found.setdefault(start[1], Section(name=start[1], text=text, block=block))
        at = end + 1
    return found


def compose(existing: str | None, sections: Mapping[str, str | None], *, footer: str) -> str:
    """The new body: `sections` replaced (or removed, for `None`), all others as in `existing`.

    A section is cut to 20,000 characters. Raises `ValueError` for a programming error: a section or footer
    that contains a Graft marker, a section name that is none, a footer of more than one line.
    """
    if _RESERVED.search(footer) or "\n" in footer:
        raise ValueError("the footer is one line without Graft markers")
    parts = {section.name: section for section in parse(existing or "").values()}
    given = {name: cut(_checked(name, text), SECTION_LIMIT) for name, text in sections.items() if text}
    for name in sections:
        parts.pop(name, None)
    parts |= {name: _section(name, text) for name, text in given.items()}
    order = [*(name for name in SECTIONS if name in parts), *(name for name in parts if name not in SECTIONS)]
    fitted = _fit([parts[name] for name in order], frozenset(given), room=BODY_LIMIT - len(_join([], footer)))
    return _join([section.block for section in fitted], footer)


def _join(blocks: list[str], footer: str) -> str:
    return "\n\n".join([f"{MARKER}\n## Graft", *blocks, f"<sub>{footer}</sub>"])


def _section(name: str, text: str) -> Section:
    markers = (f"<!-- graft:section:{name}:{edge} -->" for edge in ("start", "end"))
    return Section(name=name, text=f"{text}\n", block=f"\n{text}\n".join(markers))


def _checked(name: str, text: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"not a section name: {name!r}")
    # Neither survives the way to GitHub and back: lone surrogates have no UTF-8, NUL is refused.
    clean = text.encode("utf-8", "replace").decode().replace("\0", "").strip("\r\n")
    if _RESERVED.search(clean):
        raise ValueError(f"the section {name} contains a Graft marker")
    return clean


def _fit(sections: list[Section], given: frozenset[str], *, room: int) -> list[Section]:
    """Cut the longest sections until all fit into `room` characters.

    Those that were there before are cut first, to the level that all share, then the given ones to what is
    left: so the same sections given again come out the same. Other people's sections are cut only when Graft's
    own have become very short.
    """
    ours = frozenset(section.name for section in sections if section.name in SECTIONS) | given
    everybody = frozenset(section.name for section in sections)
    for cuttable in (ours, everybody):
        level = _level(sections, cuttable, room)
        if level >= _SHORT:
            break
    sections = [_cut(section, level, section.name in cuttable - given) for section in sections]
    level = _level(sections, given, room)
    return [_cut(section, level, section.name in given) for section in sections]


def _level(sections: list[Section], cuttable: frozenset[str], room: int) -> int:
    """The largest length to which the cuttable sections can be cut so that all sections fit."""
    for section in sections:
        room -= len(section.block) + 2
    lengths = sorted(len(section.text) for section in sections if section.name in cuttable)
    room += sum(lengths)
    for done, length in enumerate(lengths):
        share = room // (len(lengths) - done)
        if length > share:
            return max(share, 0)
        room -= length
    return BODY_LIMIT


def _cut(section: Section, level: int, cuttable: bool) -> Section:
    if not cuttable or len(section.text) <= level:
        return section
    return _section(section.name, cut(section.text, max(level - 1, 0)).rstrip("\r\n"))


def _end(lines: list[str], start: int, name: str) -> int | None:
    """The line with the end marker of the section that starts at `start`; none if another section starts first."""
    for at in range(start + 1, len(lines)):
        if lines[at].rstrip(" \t\r\n") == f"<!-- graft:section:{name}:end -->":
            return at
        if _START.fullmatch(lines[at]):
            return None
    return None
