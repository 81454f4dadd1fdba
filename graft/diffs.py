"""Unified diffs as git and GitHub write them, read without ever being fooled by what the files contain.

A line of content can look like any header (`--- a/x`, `@@ -1 +1 @@`, `diff --git …`), so hunks are read by
the counts in their `@@` line and nothing inside one is looked at as a header. Lines end at `\\n` and nowhere
else: a carriage return, a form feed or U+2028 is content. Time and memory are linear in the text, and no text
raises: what cannot be read is left out, which the caller sees by comparing counts with GitHub's.

Format: git's `diff-generate-patch` documentation. Expects the prefixes `a/` and `b/`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from graft.changes import ChangedFile

__all__ = ["SUBMODULE_MODE", "Hunk", "parse_diff", "parse_hunks"]

SUBMODULE_MODE = "160000"

_GIT = "diff --git "
_HUNK = re.compile(r"@@ -(\d{1,10})(?:,(\d{1,10}))? \+(\d{1,10})(?:,(\d{1,10}))? @@")
_INDEX = re.compile(r"index [0-9a-f]+\.\.([0-9a-f]+)(?: (\d{6}))?$")
_ESCAPED = re.compile(r"\\([0-7]{1,3}|.)|([^\\]+)", re.DOTALL)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_FULL_SHA = (40, 64)
# A path has at most 4,096 bytes (PATH_MAX), and each is written as four characters at most.
_LONGEST_NAME = 4 * 4_096


class Hunk(msgspec.Struct, frozen=True, kw_only=True):
    """One hunk. `lines` keep their first character (space, `+`, `-`, or `\\` for git's note)."""

    old_start: int
    new_start: int
    lines: tuple[str, ...]


def parse_diff(text: str) -> tuple[ChangedFile, ...]:
    """Every file of a `git diff` (or GitHub's diff media type), in its order.

    A pure mode change has the status `changed`, a submodule's new commit is an ordinary two-line patch with
    the mode `160000`, and a changed file type is a removed and an added row, as git writes it. A patch cut
    off in the middle of a hunk keeps the lines it has.
    """
    start = 0 if text.startswith(_GIT) else text.find(f"\n{_GIT}") + 1
    if not text.startswith(_GIT, start):
        return ()
    lines = text[start:].split("\n")
    if lines[-1] == "":
        lines.pop()
    files: list[ChangedFile] = []
    at = 0
    while at < len(lines):
        if lines[at].startswith(_GIT):
            file, at = _parse_file(lines, at)
            if file is not None:
                files.append(file)
        else:
            at += 1
    return tuple(files)


def parse_hunks(patch: str) -> tuple[Hunk, ...]:
    """The hunks of one file's `patch`; whatever follows the first line that fits no hunk is left out."""
    lines = patch.split("\n")
    hunks: list[Hunk] = []
    at = 0
    while at < len(lines) and (header := _HUNK.match(lines[at])):
        end = _hunk_end(lines, at, header)
        hunks.append(
            Hunk(old_start=int(header[1]), new_start=int(header[3]), lines=tuple(lines[at + 1 : end]))
        )
        at = end
    return tuple(hunks)


class _Header(msgspec.Struct):
    """What the lines between `diff --git` and the first hunk say."""

    named: str | None
    old: str | None = None
    new: str | None = None
    old_mode: str | None = None
    new_mode: str | None = None
    blob_sha: str | None = None
    status: str = "modified"
    binary: bool = False

    def read(self, line: str) -> None:
        keyword, _, rest = line.partition(" ")
        if keyword == "---":
            self.old = self.old or _side(rest, "a/")
        elif keyword == "+++":
            self.new = self.new or _side(rest, "b/")
        elif keyword in ("rename", "copy"):
            which, _, name = rest.partition(" ")
            self.status = "renamed" if keyword == "rename" else "copied"
            if which == "from":
                self.old = _name(name)
            elif which == "to":
                self.new = _name(name)
        elif keyword in ("old", "new", "deleted"):
            self._read_mode(keyword, rest)
        elif match := _INDEX.match(line):
            self.old_mode = self.old_mode or match[2]
            self.new_mode = self.new_mode or match[2]
            self.blob_sha = match[1] if len(match[1]) in _FULL_SHA and match[1].strip("0") else None
        elif line == "GIT binary patch" or (line.startswith("Binary files ") and line.endswith(" differ")):
            self.binary = True

    def _read_mode(self, keyword: str, rest: str) -> None:
        mode = rest[-6:]
        if rest.startswith("file mode "):
            self.status = "added" if keyword == "new" else "removed"
        elif not rest.startswith("mode "):
            return
        if keyword == "new":
            self.new_mode = mode
        else:
            self.old_mode = mode


def _parse_file(lines: Sequence[str], at: int) -> tuple[ChangedFile | None, int]:
    header = _Header(named=_named(lines[at].removeprefix(_GIT)))
    at += 1
    while at < len(lines) and not lines[at].startswith((_GIT, "@@ ")):
        header.read(lines[at])
        at += 1
    first, additions, deletions = at, 0, 0
    while at < len(lines) and (hunk := _HUNK.match(lines[at])):
        end = _hunk_end(lines, at, hunk)
        for line in lines[at + 1 : end]:
            additions += line.startswith("+")
            deletions += line.startswith("-")
        at = end
    patch = "\n".join(lines[first:at]) if at > first else None

    path = (header.old if header.status == "removed" else header.new) or header.named or header.old
    if not path:
        return None, at
    status = header.status
    if status == "modified" and patch is None and not header.binary and header.old_mode != header.new_mode:
        status = "changed"
    return (
        ChangedFile(
            path=path,
            previous_path=header.old if status in ("renamed", "copied") else None,
            status=status,
            additions=additions,
            deletions=deletions,
            patch=patch,
            binary=header.binary,
            old_mode=None if status == "added" else header.old_mode,
            new_mode=None if status == "removed" else header.new_mode,
            blob_sha=header.blob_sha,
        ),
        at,
    )


def _hunk_end(lines: Sequence[str], at: int, header: re.Match[str]) -> int:
    """The index after the hunk that starts at `at`, found by its counts."""
    old = int(header[2] if header[2] is not None else 1)
    new = int(header[4] if header[4] is not None else 1)
    at += 1
    while at < len(lines):
        kind = lines[at][:1]
        if kind == "\\":
            pass
        elif old <= 0 and new <= 0:
            break
        elif kind == "+" and new > 0:
            new -= 1
        elif kind == "-" and old > 0:
            old -= 1
        elif kind in (" ", ""):  # some tools strip the space of an empty context line
            old -= 1
            new -= 1
        else:
            break
        at += 1
    return at


def _side(name: str, prefix: str) -> str | None:
    """The path in a `---` or `+++` line. Git ends it with a tab where the path holds a space."""
    path = _name(name if name.startswith('"') else name.split("\t", 1)[0])
    return None if path == "/dev/null" else path.removeprefix(prefix)


def _named(rest: str) -> str | None:
    """The path in `diff --git a/P b/P`, which has no separator: without quotes both halves must be equal."""
    if quoted := _QUOTED.match(rest, 0, _LONGEST_NAME):
        return _unquote(quoted[1]).removeprefix("a/")
    middle = len(rest) // 2
    if rest[middle : middle + 1] == " " and rest[2:middle] == rest[middle + 3 :]:
        return rest[2:middle]
    _, found, path = rest.rpartition(" b/")
    return path if found else None


def _name(name: str) -> str:
    quoted = _QUOTED.match(name, 0, _LONGEST_NAME)
    return _unquote(quoted[1]) if quoted else name


def _unquote(body: str) -> str:
    """Git's C-style quoting (`core.quotePath`): octal bytes of UTF-8, and the usual escapes."""
    data = bytearray()
    for match in _ESCAPED.finditer(body):
        escaped, plain = match[1], match[2]
        if plain is not None:
            data += plain.encode("utf-8", "replace")
        elif escaped[0] in "01234567":
            data.append(int(escaped, 8) & 0xFF)
        elif escaped in _ESCAPES:
            data.append(_ESCAPES[escaped])
        else:
            data += escaped.encode("utf-8", "replace")
    return data.decode("utf-8", "replace")
