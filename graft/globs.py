"""One meaning of a glob, for the risk floor, GRAFT_INTENT_SENSITIVE_PATHS and graft.yaml.

A glob is compared with the path of a file from the repository's root, `/` between its segments.

- Upper and lower case are the same, and so are composed and decomposed accents (NFC).
- Without a slash a glob is compared with the file's name, at any depth: `*.sql`.
- With a slash, leading or in the middle, it starts at the root: `/Makefile`, `services/billing/**`.
- `**` is a whole segment and stands for any number of directories, also none; at the end, for everything
  inside. `*` and `?` stand for any characters and for one, never for `/`, and take in a leading dot.
- `[a-z]` is one character of a class, `[!a-z]` and `[^a-z]` one outside of it; `app/[id]/x` therefore needs
  escapes: `app/\\[id\\]/x`. `\\` takes the special meaning from the sign after it.

What could only be a mistake is refused with a hint: braces and `!` (no alternation, no negation), `./` and
`..`, `//`, a trailing `/`, blanks at either end (`compile_list` trims them), `**` beside other characters, a
reversed range, an open class, `\\` before a letter or digit, control characters, characters that look like
ASCII and are not (`graft.lookalikes`).

Matching takes time proportional to len(glob) × len(path) at worst: a glob becomes one regular expression in
which every `*` and `**` takes the first place where what follows fits, atomically, and never tries another.
That is exact, because between two stars the pattern has a fixed number of characters, or of segments.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from graft import lookalikes

MAX_GLOB_LENGTH = 500
MAX_LIST_LENGTH = 65_536
MAX_LIST_GLOBS = 500

_ESCAPABLE = frozenset("*?[]{}!\\^-# ,'\"")
_DEEP = "**"


class GlobError(ValueError):
    """The glob is refused. `reason` says why and what to write instead; it never quotes the glob."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class GlobListError(ValueError):
    """Globs of a list are refused. `problems` holds (position in the list from 1, reason), never a value."""

    def __init__(self, problems: Iterable[tuple[int, str]]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"glob {position}: {reason}" for position, reason in self.problems))


class Glob:
    """A compiled glob; `pattern` is how it was written. Two are equal when they were written the same."""

    __slots__ = ("_key", "_regex", "_source", "pattern")

    def __init__(self, pattern: str, segments: list[list[str] | None]) -> None:
        self.pattern = pattern
        self._source = _regex_of(segments)
        self._regex = re.compile(self._source, re.DOTALL)
        self._key = _key_of(segments)

    def matches(self, path: str) -> bool:
        return self._regex.match(_fold(path)) is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Glob) and other.pattern == self.pattern

    def __hash__(self) -> int:
        return hash(self.pattern)

    def __repr__(self) -> str:
        return f"Glob({self.pattern!r})"


class GlobSet:
    """Many globs, asked at once: a path is compared only with those whose plain segment, file extension or
    longest plain text it has, and with the few that have none of these."""

    __slots__ = ("_by_extension", "_by_segment", "_by_text", "_others", "globs")

    def __init__(self, globs: Iterable[Glob]) -> None:
        self.globs = tuple(globs)
        self._by_segment: dict[str, list[int]] = {}
        self._by_extension: dict[str, list[int]] = {}
        self._by_text: dict[str, list[int]] = {}
        tables = {"segment": self._by_segment, "extension": self._by_extension, "text": self._by_text}
        others: list[int] = []
        for index, glob in enumerate(self.globs):
            kind, key = glob._key
            if kind in tables:
                tables[kind].setdefault(key, []).append(index)
            else:
                others.append(index)
        sources = "|".join(self.globs[i]._source for i in others)
        self._others = (others, re.compile(sources, re.DOTALL)) if others else None

    def __bool__(self) -> bool:
        return bool(self.globs)

    def first(self, path: str) -> Glob | None:
        """The first glob, in the order given, that matches."""
        folded = _fold(path)
        candidates: list[int] = []
        if self._by_segment:
            for segment in folded.split("/"):
                if segment in self._by_segment:
                    candidates += self._by_segment[segment]
        if self._by_extension:
            candidates += self._by_extension.get(folded.rpartition(".")[2], ())
        for text, indices in self._by_text.items():
            if text in folded:
                candidates += indices
        if self._others is not None and self._others[1].match(folded):
            candidates += self._others[0]
        for index in sorted(candidates):
            if self.globs[index]._regex.match(folded):
                return self.globs[index]
        return None

    def matches(self, path: str) -> bool:
        return self.first(path) is not None


def compile_glob(pattern: str, *, anchored: bool = False) -> Glob:
    """Compile one glob. Raises `GlobError` for what the module's docstring calls a mistake.

    `anchored` starts a glob without a slash at the root, too: for branch names, where `main` is not `fix/main`.
    """
    return _compile(pattern, anchored)


# The same policy is read for every event of a repository.
@lru_cache(4_096)
def _compile(pattern: str, anchored: bool) -> Glob:
    _refuse_mistakes(pattern)
    raw = _segments(pattern)
    if raw[0] == "" and len(raw) > 1:
        raw, anchored = raw[1:], True
    segments: list[list[str] | None] = [] if anchored or len(raw) > 1 else [None]
    for part in raw:
        if part == "":
            raise GlobError("has an empty segment: write one `/` between names, and `dir/**` for a directory")
        if part in (".", ".."):
            raise GlobError(
                "has a `.` or `..` segment: paths start at the root of the repository, without `./`"
            )
        if part != _DEEP:
            segments.append(_atoms(part))
        elif not segments or segments[-1] is not None:
            segments.append(None)
    return Glob(pattern, segments)


def compile_list(value: str) -> tuple[Glob, ...]:
    """Compile the comma-separated globs of an environment variable; blanks around a glob and empty items are
    ignored. A comma cannot be part of a glob here (`?` matches one).

    Raises `GlobListError` with every refused position.
    """
    if len(value) > MAX_LIST_LENGTH:
        raise GlobListError([(1, f"the list is longer than {MAX_LIST_LENGTH:,} characters")])
    globs: list[Glob] = []
    problems: list[tuple[int, str]] = []
    for position, item in enumerate(value.split(","), start=1):
        if not (text := item.strip(" \t\r\n")):
            continue
        if len(globs) == MAX_LIST_GLOBS:
            problems.append((position, f"more than {MAX_LIST_GLOBS} globs"))
            break
        try:
            globs.append(compile_glob(text))
        except GlobError as error:
            problems.append((position, error.reason))
    if problems:
        raise GlobListError(problems)
    return tuple(globs)


# ------------------------------------------------------------------------------------------------- refusing


def _refuse_mistakes(pattern: str) -> None:
    if not pattern:
        raise GlobError("is empty: write `**` for every file")
    if len(pattern) > MAX_GLOB_LENGTH:
        raise GlobError(f"is longer than {MAX_GLOB_LENGTH:,} characters")
    if pattern != pattern.strip():
        raise GlobError("has blanks at its start or end: remove them")
    if any(unicodedata.category(char) == "Cc" for char in pattern):
        raise GlobError("has a control character")
    if pattern.startswith("!"):
        raise GlobError("starts with `!`: there is no negation; write `\\!` for a name that starts with it")
    if (found := lookalikes.find(pattern)) is not None:
        index, why = found
        raise GlobError(
            f"character {index + 1} {why}: type it again, or write `?` in its place if it is meant"
        )


def _segments(pattern: str) -> list[str]:
    """Split at slashes outside classes; refuse what has no meaning inside a segment."""
    parts, start, index = [], 0, 0
    while index < len(pattern):
        char = pattern[index]
        if char == "\\":
            following = pattern[index + 1 : index + 2]
            if following == "/":
                raise GlobError("has `\\/`: write `/` between two names")
            if following not in _ESCAPABLE or not following:
                raise GlobError(
                    "has a `\\` that escapes nothing: write `/` between names, `\\\\` for a backslash"
                )
            index += 2
        elif char == "[":
            index = _class_end(pattern, index)
        elif char in "{}":
            raise GlobError("has a brace: write one glob for each alternative, `\\{` and `\\}` for the signs")
        elif char == "/":
            parts.append(pattern[start:index])
            index += 1
            start = index
        else:
            index += 1
    parts.append(pattern[start:])
    return parts


def _class_end(pattern: str, start: int) -> int:
    """The index after the `]` that closes the class opened at `start`."""
    index = start + 1
    if pattern[index : index + 1] in ("!", "^"):
        index += 1
    first = index
    while index < len(pattern):
        char = pattern[index]
        if char == "]" and index > first:
            return index + 1
        if char == "/":
            break
        if char == "[" and pattern[index + 1 : index + 2] in (":", ".", "="):
            raise GlobError("has a POSIX class such as `[:alpha:]`: write the range, for example `[a-z]`")
        index += 2 if char == "\\" else 1
    raise GlobError(
        "has a `[` without its `]`: close the class within the segment, or write `\\[` for the sign"
    )


# ------------------------------------------------------------------------------------------------ compiling
# A segment is a list of atoms: a folded literal character as it is, or one of these, told by its first
# character, which no literal has (control characters are refused).

_STAR, _ANY, _CLASS = "\x01", "\x02", "\x03"


def _atoms(segment: str) -> list[str]:
    if "**" in _without_escapes(segment):
        raise GlobError(
            "has `**` beside other characters: it must be a whole segment; `*` matches within one"
        )
    atoms, index = [], 0
    while index < len(segment):
        char = segment[index]
        if char == "[":
            end = _class_end(segment, index)
            atoms.append(_CLASS + _class_regex(segment[index + 1 : end - 1]))
            index = end
            continue
        if char == "\\":
            index += 1
            atoms.extend(_fold(segment[index]))
        elif char in "*?":
            atoms.append(_STAR if char == "*" else _ANY)
        else:
            atoms.append(char)
        index += 1
    return _fold_literals(atoms)


def _without_escapes(segment: str) -> str:
    return re.sub(r"\\.|\[[!^]?\]?(?:\\.|[^\]])*\]", "_", segment)


def _fold_literals(atoms: list[str]) -> list[str]:
    """Fold runs of literals, so that a letter and its combining accent compose as they do in a path."""
    folded: list[str] = []
    run = ""
    for atom in [*atoms, _STAR]:
        if atom[0] > _CLASS:
            run += atom
            continue
        folded += _fold(run)
        run = ""
        folded.append(atom)
    return folded[:-1]


def _class_regex(body: str) -> str:
    negated = body[0] in "!^"
    members, index = [], 1 if negated else 0
    while index < len(body):
        low, index = _member(body, index)
        high = low
        if body[index : index + 1] == "-" and index + 1 < len(body):
            high, index = _member(body, index + 1)
            if high < low:
                raise GlobError("has a class whose range runs backwards: write the lower end first")
        members.append(re.escape(low) if low == high else f"{re.escape(low)}-{re.escape(high)}")
    # Paths are folded, class members are not: case is left to the regular expression.
    return f"(?i:[^/{''.join(members)}])" if negated else f"(?!/)(?i:[{''.join(members)}])"


def _member(body: str, index: int) -> tuple[str, int]:
    if body[index] == "\\" and index + 1 < len(body):
        index += 1
    composed = unicodedata.normalize("NFC", body[index])
    return composed if len(composed) == 1 else body[index], index + 1


def _regex_of(segments: list[list[str] | None]) -> str:
    """`None` is `**`. Segments between two `**` form a group that is found leftmost and kept."""
    groups: list[list[str]] = [[]]
    for atoms in segments:
        if atoms is None:
            groups.append([])
        else:
            groups[-1].append(_segment_regex(atoms))
    if len(groups) == 1:
        return "/".join(groups[0]) + r"\Z"
    first, *middle, last = groups
    source = "".join(segment + "/" for segment in first)
    for group in middle:
        source += "(?>(?:[^/]++/)*?" + "".join(segment + "/" for segment in group) + ")"
    return source + ("(?:[^/]++/)*" + "/".join(last) + r"\Z" if last else r".+\Z")


def _segment_regex(atoms: list[str]) -> str:
    """One whole segment; the caller puts `/` or the end of the path behind it."""
    chunks: list[str] = [""]
    for atom in atoms:
        if atom == _STAR:
            chunks.append("")
        else:
            chunks[-1] += "[^/]" if atom == _ANY else atom[1:] if atom[0] == _CLASS else re.escape(atom)
    first, *middle, last = chunks[0], *chunks[1:-1], chunks[-1]
    if len(chunks) == 1:
        return first
    if not any(chunks):
        return "[^/]++"
    return first + "".join(f"(?>[^/]*?{chunk})" for chunk in middle if chunk) + f"[^/]*{last}"


def _key_of(segments: list[list[str] | None]) -> tuple[str, str]:
    """What every matching path must have: ("segment", a plain segment), ("extension", text after the last dot
    of the name), ("text", a run of plain characters), or ("", "")."""
    runs = [_plain_runs(atoms) for atoms in segments if atoms]
    whole = [pieces[0] for pieces in runs if len(pieces) == 1]
    if whole:
        return "segment", max(whole, key=len)
    if segments[-1] and "." in runs[-1][-1]:
        return "extension", runs[-1][-1].rpartition(".")[2]
    longest = max((piece for pieces in runs for piece in pieces), key=len, default="")
    return ("text", longest) if longest else ("", "")


def _plain_runs(atoms: list[str]) -> list[str]:
    """The literal text between the other atoms, empty pieces included."""
    return "".join(atom if atom[0] > _CLASS else "\x00" for atom in atoms).split("\x00")


def _fold(text: str) -> str:
    """Lower case and NFC; a character that would become several when folded is only lowered."""
    if text.isascii():
        return text.lower()
    return "".join(map(_fold_char, unicodedata.normalize("NFC", text)))


def _fold_char(char: str) -> str:
    folded = char.casefold()
    if len(folded) == 1:
        return folded
    lowered = char.lower()
    return lowered if len(lowered) == 1 else char
