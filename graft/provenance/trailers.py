"""Reads the trailers of a commit message exactly as git does, without git.

The rules are those of `git interpret-trailers --parse --no-divider` with no configuration (git's `trailer.c`), which
is also how `git log --format='%(trailers)'` reads a commit. A trailer block is the last paragraph that is not the
first, where every line is a trailer, or where a line git writes itself (`Signed-off-by: `, `(cherry picked from
commit `) stands and at most three lines in four are something else. Spaces and letters are ASCII here, as in git.

`parse` takes any text, in time linear in its length. Values are git's, byte for byte; `graft.provenance.values`
makes them fit for storing and showing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

_SPACE = " \t\n\r"
_COMMENT = "#"
_SCISSORS = "# ------------------------ >8 ------------------------\n"
_GENERATED = ("Signed-off-by: ", "(cherry picked from commit ")
_KEY = re.compile(r"[A-Za-z0-9-]++[ \t]*+:")


class Trailer(msgspec.Struct, frozen=True, kw_only=True):
    """One trailer as git reads it: continuation lines folded into one, white space trimmed."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}: {self.value}"

    def is_named(self, key: str) -> bool:
        """Keys are compared as git compares them, without regard to (ASCII) case."""
        return self.key.lower() == key.lower()


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """Where the trailers stand: line numbers from 0, `end` excluded; empty when `start == end`."""

    trailers: tuple[Trailer, ...]
    lines: tuple[str, ...]
    start: int
    end: int


def parse(message: str) -> tuple[Trailer, ...]:
    """The trailers of a message, in order."""
    return read(message).trailers


def read(message: str) -> Block:
    """The trailers together with the lines they were found in."""
    lines = _lines(message.split("\0", 1)[0])  # a commit ends at its first NUL
    end = _end(lines)
    start = _start(lines, end)
    return Block(trailers=tuple(_trailers(lines[start:end])), lines=tuple(lines), start=start, end=end)


def _lines(text: str) -> list[str]:
    """Lines with their `\\n`; git completes the last one before it looks."""
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last + "\n"] if last else [])


def _end(lines: Sequence[str]) -> int:
    """The line after the last one that counts: git leaves out what `git commit` would have cut off, that is
    everything from the scissors line on, then trailing empty and comment lines and an old `Conflicts:` list."""
    cutoff = next((i for i, line in enumerate(lines) if line == _SCISSORS), len(lines))
    beginning = 0  # as in git, 0 is "nowhere": what begins at the very start is no trailing part
    conflicts = False
    for i in range(cutoff):
        line = lines[i]
        if line[0] == _COMMENT or line == "\n":
            beginning = beginning or i
        elif line == "Conflicts:\n":
            conflicts = True
            beginning = beginning or i
        elif conflicts and line[0] == "\t":
            pass
        elif beginning:
            beginning, conflicts = 0, False
    return beginning or cutoff


def _start(lines: Sequence[str], end: int) -> int:
    """The first line of the trailer block, `end` where there is none."""
    title_end = 0
    for title_end in range(end):
        line = lines[title_end]
        if line[0] != _COMMENT and _is_blank(line):
            break
    else:
        return end
    only_blank = True
    generated = False
    trailers = others = continuations = 0
    for i in range(end - 1, title_end - 1, -1):
        line = lines[i]
        if line[0] == _COMMENT:
            others += continuations
            continuations = 0
            continue
        if _is_blank(line):
            if only_blank:
                continue
            others += continuations
            if (generated and trailers * 3 >= others) or (trailers and not others):
                return i + 1
            return end
        only_blank = False
        if line.startswith(_GENERATED):
            trailers += 1
            continuations = 0
            generated = True
        elif line[0] in _SPACE:
            continuations += 1
        elif _separator(line) > 0:
            trailers += 1
            continuations = 0
        else:
            others += 1 + continuations
            continuations = 0
    return end


def _is_blank(line: str) -> bool:
    return not line.strip(_SPACE)


def _separator(line: str) -> int:
    """Where the colon after a key is (letters, digits and dashes, then perhaps blanks), -1 where there is none."""
    found = _KEY.match(line)
    return found.end() - 1 if found else -1


def _trailers(block: Sequence[str]) -> list[Trailer]:
    found: list[Trailer] = []
    parts: list[str] | None = None  # of the trailer that a line starting with white space continues
    joined: list[str] = []
    for line in block:
        if parts is not None and line[0] in _SPACE:
            parts.append(line)
            continue
        if parts is not None:
            joined.append("".join(parts))
        parts = [line] if _separator(line) > 0 else None
    if parts is not None:
        joined.append("".join(parts))
    for text in joined:
        at = _separator(text)
        found.append(Trailer(key=text[:at].strip(_SPACE), value=_unfold(text[at + 1 :].strip(_SPACE))))
    return found


def _unfold(value: str) -> str:
    """Continuation lines become one, joined by a single space."""
    first, *rest = value.split("\n")
    # A line of white space only vanishes with the space before it: git skips all of it at the first break.
    folded = [first]
    folded += [line.lstrip(_SPACE) for line in rest if line.strip(_SPACE)]
    return " ".join(folded).strip(_SPACE)
