"""Reads one `git diff-tree --raw --numstat --patch -z` stream into file rows, holding only what fits the budget.

The stream is the raw rows, the counts, and then the patches. Rows and counts are NUL-separated and come first, so
that files and numbers are whole whatever happens to the patches. A patch over its own or the total limit is
dropped (`patch=None`, counts kept), and once the total is used up git is stopped: a diff of any size is read in
bounded memory.

A file's text cannot forge a row: inside hunks each line starts with a space, `+`, `-` or a backslash, and git
quotes line breaks in the paths of patch headers, so `diff --git ` at the start of a line is always git's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from graft.changes import ChangedFile

# Myers, three lines of context and rename detection at 50 % without copies: what GitHub shows.
ARGUMENTS = (
    "diff-tree", "-r", "-z", "--raw", "--numstat", "--patch", "--no-commit-id", "--no-abbrev", "--full-index",
    "--find-renames=50%", "-l1000", "--unified=3", "--inter-hunk-context=0", "--diff-algorithm=myers",
    "--indent-heuristic", "--submodule=short", "--ignore-submodules=none", "--src-prefix=a/", "--dst-prefix=b/",
    "--no-color", "--no-ext-diff", "--no-textconv", "--no-relative",
)  # fmt: skip

MAX_FILES = 20_000
MAX_ROWS_BYTES = 64 << 20  # of raw rows together
MAX_PATH_BYTES = 1 << 20  # no system can check out a path that long
MAX_PATCH_BYTES = 1 << 20  # of one file; GitHub shows 500 KB
MAX_PATCHES_BYTES = 32 << 20  # of all files together

_STATUS = {"A": "added", "D": "removed", "M": "modified", "R": "renamed", "C": "copied", "T": "changed"}
_SECTION = b"diff --git "


class Row(msgspec.Struct, kw_only=True):
    """One raw row with its counts, before its patch is known."""

    status: str
    old_mode: str
    new_mode: str
    old_blob: str
    new_blob: str
    path: str
    previous_path: str | None
    additions: int = 0
    deletions: int = 0
    binary: bool = False
    patch: str | None = None

    def file(self) -> ChangedFile:
        zeros = self.new_blob.strip("0") == ""
        return ChangedFile(
            path=self.path,
            status=_STATUS.get(self.status, "changed"),
            previous_path=self.previous_path,
            additions=self.additions,
            deletions=self.deletions,
            patch=self.patch,
            binary=self.binary,
            old_mode=None if self.status == "A" else self.old_mode,
            new_mode=None if self.status == "D" else self.new_mode,
            blob_sha=None if zeros else self.new_blob,
        )


Read = Callable[[], bytes]  # the next bytes of the stream, empty at its end


def read(more: Read) -> tuple[tuple[ChangedFile, ...], tuple[str, ...]]:
    """The files of a diff and the reasons why the list is incomplete (`too_many_files`, `diff_refused`)."""
    tokens = _Tokens(more)
    rows: list[Row] = []
    token = tokens.next()
    while token is not None and token.startswith(b":"):
        rows.append(_raw_row(token, tokens))
        token = tokens.next()
        if len(rows) > MAX_FILES or tokens.taken > MAX_ROWS_BYTES:
            return tuple(r.file() for r in rows[:MAX_FILES]), ("too_many_files",)
    for row in rows:
        if token is None or not _count_row(row, token, tokens):
            return tuple(r.file() for r in rows), ("diff_refused",)
        token = tokens.next()
    _attach_patches(rows, _sections(tokens.rest(), more))
    return tuple(r.file() for r in rows), ()


class _Tokens:
    """NUL-terminated tokens at the front of a stream."""

    def __init__(self, more: Read) -> None:
        self._more = more
        self._buffer = bytearray()
        self._at = 0
        self.taken = 0

    def next(self) -> bytes | None:
        """The next token, or `None` at the end of the stream and where none ends within a sane length."""
        searched = self._at
        while (end := self._buffer.find(b"\0", searched)) < 0:
            del self._buffer[: self._at]
            self._at = 0
            searched = len(self._buffer)
            chunk = self._more() if searched <= MAX_PATH_BYTES else b""
            if not chunk:
                return None
            self._buffer += chunk
        token = bytes(self._buffer[self._at : end])
        self._at = end + 1
        self.taken += len(token) + 1
        return token

    def rest(self) -> bytes:
        """What was read beyond the last token."""
        return bytes(self._buffer[self._at :])


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _raw_row(token: bytes, tokens: _Tokens) -> Row:
    old_mode, new_mode, old_blob, new_blob, status = token[1:].decode("ascii").split(" ")
    first = _text(tokens.next() or b"")
    moved = status[0] in "RC"
    return Row(
        status=status[0],
        old_mode=old_mode,
        new_mode=new_mode,
        old_blob=old_blob,
        new_blob=new_blob,
        path=_text(tokens.next() or b"") if moved else first,
        previous_path=first if moved else None,
    )


def _count_row(row: Row, token: bytes, tokens: _Tokens) -> bool:
    """Fill in the counts; false when the token is no row of counts."""
    fields = token.split(b"\t", 2)
    if len(fields) != 3:
        return False
    if not fields[2]:  # a rename: both paths follow as tokens of their own
        tokens.next()
        tokens.next()
    if fields[0] == b"-":
        row.binary = True
    else:
        row.additions, row.deletions = int(fields[0]), int(fields[1])
    return True


def _sections(start: bytes, more: Read) -> Iterator[bytes | None]:
    """Each file's part of the patch text, `None` in place of one over `MAX_PATCH_BYTES`."""
    buffer = bytearray(start)
    boundary = b"\n" + _SECTION
    searched, over, total = 1, False, 0
    while True:
        end = buffer.find(boundary, searched)
        if end >= 0:
            yield None if over or end + 1 > MAX_PATCH_BYTES else bytes(buffer[: end + 1])
            del buffer[: end + 1]
            searched, over = 1, False
            continue
        if len(buffer) > MAX_PATCH_BYTES:
            over = True
        if over:  # keep only what the next boundary may begin in
            del buffer[: -len(boundary)]
        searched = max(1, len(buffer) - len(boundary))
        chunk = more()
        if not chunk:
            if buffer.startswith(_SECTION) or over:
                yield None if over else bytes(buffer)
            return
        total += len(chunk)
        if total > 8 * MAX_PATCHES_BYTES:
            return  # nothing that still fits is worth waiting for
        buffer += chunk


def _attach_patches(rows: list[Row], sections: Iterator[bytes | None]) -> None:
    """Give each row its hunks. A row whose section is not provably its own goes without."""
    budget = MAX_PATCHES_BYTES
    for row in rows:
        # A change of type (a file becomes a symbolic link) is shown as a removal and an addition.
        parts = [next(sections, None) for _ in range(2 if row.status == "T" else 1)]
        hunks: list[bytes] = []
        for part in parts:
            if part is None:
                break
            header, mark, body = part.partition(b"\n@@ ")
            if not _is_of(row, header):
                return
            if mark:
                hunks.append(b"@@ " + body)
        else:
            size = sum(map(len, hunks))
            budget -= size
            if budget < 0:
                return
            if hunks and not row.binary:
                row.patch = _text(b"".join(hunks)).removesuffix("\n")


def _is_of(row: Row, header: bytes) -> bool:
    """Whether a section's `index` line names the row's blobs; a pure rename or mode change has no such line."""
    at = header.find(b"\nindex ")
    if at < 0:
        return row.old_blob == row.new_blob
    old, _, rest = header[at + 7 :].partition(b"..")
    new = rest.split(b"\n", 1)[0].split(b" ", 1)[0]
    pair = (old.decode("ascii", "replace"), new.decode("ascii", "replace"))
    if row.status == "T":
        return row.old_blob == pair[0] or row.new_blob == pair[1]
    return pair == (row.old_blob, row.new_blob)
