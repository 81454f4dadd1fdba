"""Reads `.intent/` of both sides of a change for `review`, from the GitHub API or from a local clone.

The base side is the base branch as it is now. The head side is what the base would hold after the change: files
that the change names are HEAD's, all others the base's, so that a branch that lags behind is not blamed for what
happened on the base since. Where the list of changed files is not whole, all of HEAD counts.

Nothing is read beyond one look at the base's root where neither side has records. A blob is read once, whichever
side holds it and however often it is asked for; the same pair of sides is reviewed once. What does not fit the
bounds is said in the review and makes it `stale`.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from graft.changes import Snapshot
from graft.errors import PermanentError
from graft.git import Entry, Kind

from .files import MAX_BYTES
from .manifest import PATH as MANIFEST
from .record import FOLDER as RECORDS
from .repository import APPROVAL, LAWS
from .review import MAX_FILES, MAX_TOTAL_BYTES, RecordsReview, relevant, review, unreadable

FOLDER = ".intent"
MAX_READ = 600
"""Most files of both sides whose content is read for one review."""

MAX_REMEMBERED_BYTES = 32 * 2**20
MAX_REMEMBERED_REVIEWS = 64

# Refusals that say something about the files; others are about the caller.
_UNREADABLE = frozenset(
    ("forbidden", "gone", "not_found", "response_too_large", "tree_truncated", "unprocessable")
)
_FIRST = (LAWS, APPROVAL, MANIFEST)


class Source(Protocol):
    """The files of one commit, as `graft.git` and `graft.github.CommitFiles` describe them."""

    async def entries(self, paths: Iterable[str]) -> Mapping[str, Entry]:
        """What stands at each path, links not followed."""

    async def listing(self, directory: str, *, recursive: bool) -> tuple[Entry, ...]:
        """The files at any depth below a directory; empty where there is none."""

    async def contents(self, entries: Sequence[Entry], *, limit: int) -> Mapping[str, bytes]:
        """{SHA: content} of the entries that can be read."""


class Memory:
    """Blobs and reviews that were read lately; both are named by what they are made of, so none goes stale."""

    def __init__(self) -> None:
        self.reviews: OrderedDict[str, RecordsReview] = OrderedDict()
        self.blobs: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0

    def put(self, blobs: Mapping[str, bytes]) -> None:
        """Keep blobs, and forget the oldest ones beyond the bound."""
        for sha, data in blobs.items():
            if sha not in self.blobs:
                self.blobs[sha] = data
                self._size += len(data)
        while self._size > MAX_REMEMBERED_BYTES:
            _, dropped = self.blobs.popitem(last=False)
            self._size -= len(dropped)

    def put_review(self, key: str, found: RecordsReview) -> None:
        """Keep a review, and forget the oldest one beyond the bound."""
        self.reviews[key] = found
        if len(self.reviews) > MAX_REMEMBERED_REVIEWS:
            self.reviews.popitem(last=False)


async def read(base: Source, head: Source, snapshot: Snapshot, memory: Memory) -> RecordsReview | None:
    """Review what a change does to approved intent; `None` where neither side has `.intent/`.

    Raises what the sources raise, apart from refusals that concern the files: those make the review `stale`.
    """
    changed = frozenset(path for file in snapshot.files for path in file.paths if _inside(path))
    try:
        sides = await _survey(base, head, snapshot, changed)
        if not sides.base and not sides.head:
            return None
        key = sides.key()
        if key in memory.reviews:
            memory.reviews.move_to_end(key)
            return memory.reviews[key]
        blobs = await _collect(sides, base, head, memory)
    except PermanentError as error:
        if error.reason not in _UNREADABLE:
            raise
        return unreadable(changed, error.reason)
    found = await asyncio.to_thread(sides.review, blobs)
    memory.put_review(key, found)
    return found


@dataclass(frozen=True)
class _Sides:
    """What stands at each path of `.intent/`, before and after the change, and what did not fit the bounds."""

    base: Mapping[str, Entry]
    head: Mapping[str, Entry]
    cut: tuple[str, ...]

    def key(self) -> str:
        """Names the pair: the same paths, kinds and blobs on both sides give the same review."""
        digest = hashlib.sha256()
        for side in (self.base, self.head):
            for path in sorted(side):
                entry = side[path]
                digest.update(f"{path}\0{entry.kind}\0{entry.sha}\0".encode("utf-8", "surrogatepass"))
            digest.update(b"\1")
        digest.update("\0".join(self.cut).encode())
        return digest.hexdigest()

    def wanted(self) -> list[Entry]:
        """The blobs to read, each once, the ones that decide most first."""
        found = {
            entry.sha: entry
            for side in (self.base, self.head)
            for entry in side.values()
            if entry.kind is Kind.FILE
            and entry.sha
            and relevant(entry.path)
            and (entry.size or 0) <= MAX_BYTES
        }
        return sorted(found.values(), key=lambda entry: (_rank(entry.path), entry.path))

    def review(self, blobs: Mapping[str, bytes]) -> RecordsReview:
        unread = [entry for entry in self.wanted() if entry.sha not in blobs]
        cut = (*self.cut, *([f"the content of {len(unread)} files"] if unread else []))
        base, base_refused = _files(self.base, blobs)
        head, head_refused = _files(self.head, blobs)
        return review(base, head, base_refused=base_refused, head_refused=head_refused, cut=cut)


def _inside(path: str) -> bool:
    return path == FOLDER or path.startswith(f"{FOLDER}/")


def _rank(path: str) -> int:
    if path in _FIRST:
        return 0
    return 1 if path.startswith(f"{RECORDS}/") else 2


async def _survey(base: Source, head: Source, snapshot: Snapshot, changed: frozenset[str]) -> _Sides:
    cut: list[str] = []
    before: dict[str, Entry] = {}
    if (await base.entries([FOLDER]))[FOLDER].kind is Kind.DIRECTORY:
        before = _bounded(await base.listing(FOLDER, recursive=True), "base", cut)
    if not changed and not snapshot.incomplete:
        return _Sides(before, before, tuple(cut))
    after = _bounded(await head.listing(FOLDER, recursive=True), "head", cut)
    if not snapshot.incomplete:
        unchanged = {path: entry for path, entry in before.items() if path not in changed}
        after = unchanged | {path: after[path] for path in changed if path in after}
    return _Sides(before, after, tuple(cut))


def _bounded(listed: Sequence[Entry], side: str, cut: list[str]) -> dict[str, Entry]:
    if len(listed) > MAX_FILES:
        cut.append(f"{len(listed) - MAX_FILES} of {len(listed)} files of {side}")
    return {entry.path: entry for entry in sorted(listed, key=lambda e: (_rank(e.path), e.path))[:MAX_FILES]}


async def _collect(sides: _Sides, base: Source, head: Source, memory: Memory) -> dict[str, bytes]:
    """The contents that fit the bounds, by SHA."""
    known: dict[str, bytes] = {}
    missing: list[Entry] = []
    total = 0
    for entry in sides.wanted()[:MAX_READ]:
        sha = entry.sha or ""
        total += entry.size or 0
        if total > MAX_TOTAL_BYTES:
            break
        if sha in memory.blobs:
            memory.blobs.move_to_end(sha)
            known[sha] = memory.blobs[sha]
        else:
            missing.append(entry)
    before = {entry.sha for entry in sides.base.values()}
    for source, asked in (
        (base, [entry for entry in missing if entry.sha in before]),
        (head, [entry for entry in missing if entry.sha not in before]),
    ):
        if asked:
            found = await source.contents(asked, limit=MAX_BYTES)
            memory.put(found)
            known |= found
    return known


def _files(side: Mapping[str, Entry], blobs: Mapping[str, bytes]) -> tuple[dict[str, bytes], dict[str, str]]:
    """(content, refusals) of one side. A blob's name stands for a content that nobody looks at."""
    files: dict[str, bytes] = {}
    refused: dict[str, str] = {}
    for path, entry in side.items():
        name = f"{entry.kind} {entry.sha}".encode()
        files[path] = blobs.get(entry.sha or "", name) if entry.kind is Kind.FILE else name
        if entry.kind is Kind.SYMLINK:
            refused[path] = "symlink"
        elif entry.kind is not Kind.FILE:
            refused[path] = "unreadable"
        elif relevant(path) and entry.sha not in blobs:
            refused[path] = "too-large" if entry.size is not None else "unreadable"
    return files, refused
