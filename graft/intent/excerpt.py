"""The part of a diff that a model gets to read, within a budget of tokens, and a list of what it does not.

The weightiest files come first and get the larger share. When not everything fits, every file keeps a part: a
huge one is cut inside instead of pushing the others out, and inside a file context goes first, then added
lines; removed lines are cut only when the removed lines of all files alone are more than the budget. Generated
and binary files are named and not shown. Whatever is not shown is an omission, which the prompt and the card
list and which makes the change at least `logic`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from graft.changes import ChangedFile
from graft.diffs import parse_hunks
from graft.intent.paths import is_generated
from graft.risk import Risk

__all__ = ["DIFF_TOKENS", "Excerpt", "Omission", "cut_to", "fit"]

DIFF_TOKENS = 60_000
"""The default budget. With titles, file list and system prompt it stays below the 100,000 tokens from where
the fast model costs five times as much."""

MOST_FILES_SHOWN = 500
LONGEST_LINE = 2_000
_BYTES_PER_TOKEN = 2.5  # the inverse of graft.llm.estimate_tokens
_SHARES = {Risk.SENSITIVE: 4, Risk.LOGIC: 2, Risk.TRIVIAL: 1}
_EMPTY_BLOBS = frozenset(
    (
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
        "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
    )
)

Counter = Callable[[str], Awaitable[int | None]]


class Omission(msgspec.Struct, frozen=True, order=True):
    """`why`: `binary`, `generated`, `no_patch` (GitHub gave none), `cut` (a part is shown), `too_many_files`."""

    path: str
    why: str


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    omissions: tuple[Omission, ...] = ()

    def __repr__(self) -> str:
        return f"Excerpt({len(self.text)} characters, {len(self.omissions)} omissions)"


async def fit(
    files: Sequence[ChangedFile],
    *,
    risk_of: Callable[[ChangedFile], Risk],
    tokens: int = DIFF_TOKENS,
    count: Counter | None = None,
) -> Excerpt:
    """An excerpt within `tokens`, by the API's own count where `count` gives one, by the estimate otherwise."""
    room = int(tokens * _BYTES_PER_TOKEN)
    made = cut_to(files, risk_of=risk_of, room=room)
    if count is None:
        return made
    for _ in range(3):
        counted = await count(made.text)
        if counted is None or counted <= 0:
            return made
        fits = counted <= tokens
        if fits and (counted > tokens * 0.8 or not any(omission.why == "cut" for omission in made.omissions)):
            return made
        room = int(room * (tokens / counted) * 0.95)
        wider = cut_to(files, risk_of=risk_of, room=room)
        if fits and (await count(wider.text) or tokens + 1) > tokens:
            return made
        made = wider
    return made


def cut_to(files: Sequence[ChangedFile], *, risk_of: Callable[[ChangedFile], Risk], room: int) -> Excerpt:
    """An excerpt of at most about `room` bytes: headers of files come on top when there are very many."""
    risks = [risk_of(file) for file in files]
    order = sorted(range(len(files)), key=lambda index: (-risks[index].rank, index))
    omissions = [Omission(files[index].path, "too_many_files") for index in order[MOST_FILES_SHOWN:]]
    shown: list[tuple[ChangedFile, int]] = []
    headers: list[str] = []
    for index in order[:MOST_FILES_SHOWN]:
        file = files[index]
        why = _why_hidden(file)
        if why is not None:
            omissions.append(Omission(file.path, why))
        headers.append(_header(file, why))
        shown.append((file if why is None else msgspec.structs.replace(file, patch=None), index))
    room -= sum(_size(header) for header in headers)
    rooms = _rooms([file for file, _ in shown], [_SHARES[risks[index]] for _, index in shown], max(room, 0))
    parts: list[str] = []
    for header, (file, _), allotted in zip(headers, shown, rooms, strict=True):
        body, whole = _body(file.patch, allotted)
        if not whole:
            omissions.append(Omission(file.path, "cut"))
        parts.append(header if not body else f"{header}\n{body}")
    return Excerpt(text="\n\n".join(parts), omissions=tuple(omissions))


def _why_hidden(file: ChangedFile) -> str | None:
    if file.binary:
        return "binary"
    if file.status != "removed" and is_generated(file.path):
        return "generated"
    if file.patch is None and (file.additions or file.deletions or not _has_no_content(file)):
        return "no_patch"
    return None


def _has_no_content(file: ChangedFile) -> bool:
    """Nothing is missing: a rename, a mode change, an empty file. The API gives no modes; it also gives no patch
    for a binary file and calls nothing binary, so an unexplained row counts as one with content."""
    if file.status in ("renamed", "copied", "unchanged"):
        return True
    return file.old_mode is not None or file.new_mode is not None or file.blob_sha in _EMPTY_BLOBS


def _header(file: ChangedFile, hidden: str | None) -> str:
    facts = [file.status, f"+{file.additions} -{file.deletions}"]
    if len(file.paths) > 1:
        facts.insert(1, f"from {file.previous_path}")
    if file.old_mode and file.new_mode and file.old_mode != file.new_mode:
        facts.append(f"mode {file.old_mode} to {file.new_mode}")
    if hidden is not None:
        facts.append(f"content not shown: {hidden}")
    return f"=== {file.path} ({', '.join(facts)})"


def _rooms(files: Sequence[ChangedFile], shares: Sequence[int], room: int) -> list[int]:
    """Bytes for each file: first what its removed lines need, then by share, small files in full."""
    full = [0 if file.patch is None else _size(file.patch) for file in files]
    if sum(full) <= room:
        return full
    removed = [_removed_size(file.patch) for file in files]
    base = _filled(removed, shares, room)
    rest = _filled([f - b for f, b in zip(full, base, strict=True)], shares, room - sum(base))
    return [b + r for b, r in zip(base, rest, strict=True)]


def _filled(wanted: Sequence[int], shares: Sequence[int], room: int) -> list[int]:
    """`room` dealt out by share; whoever wants less than its share leaves the rest to the others."""
    if sum(wanted) <= room:
        return list(wanted)
    given = [0] * len(wanted)
    left = sum(shares)
    for index in sorted(range(len(wanted)), key=lambda i: wanted[i] / shares[i]):
        given[index] = min(wanted[index], room * shares[index] // left)
        room -= given[index]
        left -= shares[index]
    return given


def _removed_size(patch: str | None) -> int:
    if patch is None:
        return 0
    return sum(
        _size(_clipped(line)) + 1 if line.startswith("-") else _NOTE if line.startswith("@@") else 0
        for line in patch.split("\n")
    )


_NOTE = 70  # room for a hunk's header and a note


def _body(patch: str | None, room: int) -> tuple[str, bool]:
    """(the patch within `room` bytes, whether it is whole)."""
    if patch is None:
        return "", True
    lines = patch.split("\n")
    clipped = [_clipped(line) for line in lines]
    if _size(patch) <= room:
        return "\n".join(clipped), clipped == lines
    hunks = parse_hunks(patch)
    removed = [[_clipped(line) for line in hunk.lines if line.startswith("-")] for hunk in hunks]
    added = [[_clipped(line) for line in hunk.lines if line.startswith("+")] for hunk in hunks]
    room -= _NOTE * len(hunks)
    ones = [1] * len(hunks)
    for_removed = _filled([_lines_size(each) for each in removed], ones, max(room, 0))
    for_added = _filled([_lines_size(each) for each in added], ones, max(room - sum(for_removed), 0))
    parts: list[str] = []
    for hunk, minus, plus, minus_room, plus_room in zip(
        hunks, removed, added, for_removed, for_added, strict=True
    ):
        kept_minus, kept_plus = _first(minus, minus_room), _first(plus, plus_room)
        if not kept_minus and not kept_plus:
            continue
        parts.append(f"@@ -{hunk.old_start} +{hunk.new_start} @@")
        parts += kept_minus + kept_plus
        if missing := len(minus) + len(plus) - len(kept_minus) - len(kept_plus):
            parts.append(f"[{missing} changed lines not shown]")
    return "\n".join([*parts, "[context and the rest of this file not shown]"]), False


def _first(lines: Sequence[str], room: int) -> list[str]:
    kept: list[str] = []
    for line in lines:
        room -= _size(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept


def _clipped(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} [line cut]"


def _lines_size(lines: Sequence[str]) -> int:
    return sum(_size(line) + 1 for line in lines)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
