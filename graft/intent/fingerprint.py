"""Two fingerprints that say whether a card written for one head still holds for another.

A rebase moves hunks and changes nothing in them: the fingerprint of a diff leaves the line numbers out. What
else the writer read (title, description, issue, models, prompts) is one keyed hash, so that nobody who sees it in
the database can try out guesses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from graft.changes import ChangedFile, Snapshot
from graft.diffs import parse_hunks

__all__ = ["diff_fingerprint", "keyed_hash"]


def diff_fingerprint(snapshot: Snapshot) -> str | None:
    """The same for the same paths, statuses, modes and hunks, wherever in the files these stand.

    `None` where equality cannot be known: the list is incomplete, or content was withheld and has no blob id.
    """
    if snapshot.incomplete:
        return None
    digest = hashlib.sha256()
    for file in sorted(snapshot.files, key=lambda f: (f.path, f.status, f.previous_path or "")):
        content = _content(file)
        if content is None:
            return None
        facts = (file.path, file.previous_path or "", file.status, file.old_mode or "", file.new_mode or "")
        _feed(digest, (*facts, *content))
        digest.update(b"\x02")
    return digest.hexdigest()


def keyed_hash(key: bytes, parts: Iterable[str | None]) -> str:
    """A hash over texts that cannot be tried out without `key`. `None` differs from the empty text."""
    digest = hashlib.blake2b(key=key[:64], digest_size=32)
    _feed(digest, ("\x00" if part is None else f"\x01{part}" for part in parts))
    return digest.hexdigest()


def _content(file: ChangedFile) -> tuple[str, ...] | None:
    if file.patch is not None:
        return tuple("\n".join(hunk.lines) for hunk in parse_hunks(file.patch))
    if file.blob_sha is not None:
        return (file.blob_sha,)
    if file.binary or file.additions or file.deletions:
        return None
    # A rename, a deletion or a mode change without content; an API row without a blob id says nothing.
    return () if file.old_mode or file.new_mode or file.status == "renamed" else None


def _feed(digest: hashlib._Hash | hashlib.blake2b, parts: Iterable[str]) -> None:
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
