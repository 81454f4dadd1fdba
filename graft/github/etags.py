"""Answers kept for conditional requests: a 304 costs nothing of the rate limit.

An ETag belongs to the token that got it (github/docs#34689), so entries are keyed by the token's generation and
die with it. The memory is bounded in entries and bytes, and holds only answers small enough to be worth it.
"""

from __future__ import annotations

from collections import OrderedDict

import msgspec

Key = tuple[int, str, str]  # token generation, URL, media type


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    etag: str
    body: bytes
    next_url: str | None


class EtagCache:
    """A least-recently-used memory of `max_entries` answers and `max_bytes` of bodies, for all installations."""

    def __init__(self, *, max_entries: int = 4_096, max_bytes: int = 16 * 2**20) -> None:
        self._entries: OrderedDict[Key, Kept] = OrderedDict()
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """Bytes of bodies held."""
        return self._bytes

    def get(self, key: Key) -> Kept | None:
        kept = self._entries.get(key)
        if kept is not None:
            self._entries.move_to_end(key)
        return kept

    def put(self, key: Key, kept: Kept) -> None:
        """Keep an answer; one that would take more than a sixteenth of the memory is not kept."""
        self._drop(key)
        if len(kept.body) > self._max_bytes // 16 or len(kept.etag) > 256:
            return
        self._entries[key] = kept
        self._bytes += len(kept.body)
        while len(self._entries) > self._max_entries or self._bytes > self._max_bytes:
            self._drop(next(iter(self._entries)))

    def forget(self, generation: int) -> None:
        """Drop everything that a replaced token had got."""
        for key in [key for key in self._entries if key[0] == generation]:
            self._drop(key)

    def _drop(self, key: Key) -> None:
        old = self._entries.pop(key, None)
        if old is not None:
            self._bytes -= len(old.body)
