"""What the actors take for a pool and its connections, on `.memory`.

The stores' own functions run on it unchanged: a connection takes their SQL and looks up what it means by its first
words. A statement that is not known raises, so that a new one cannot be forgotten here. Transactions exclude each
other, which is one of the orders that Postgres allows; the protocol's compare-and-sets are single statements in both.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, Final

from graft.store.cards import CardRow
from graft.store.changes import Change
from proof.interleavings.memory import Memory, Row

_CHANGE: Final = ", ".join(Change.__struct_fields__)
_CARD: Final = ", ".join(CardRow.__struct_fields__)


# (a statement's first words, words further on) -> the memory's method. Of several that fit, the one that says the most.
_STATEMENTS: Final[dict[tuple[str, str], str]] = {
    ("INSERT INTO changes AS c", ""): "put_change",
    (f"SELECT {_CHANGE} FROM changes", ""): "get_change",
    ("UPDATE changes c SET publish_token", ""): "acquire",
    ("UPDATE changes SET section_seq", ""): "commit_publication",
    ("UPDATE changes SET section_seq", "AND publish_token IS NULL"): "confirm",
    ("SELECT publish_token IS NOT NULL FROM changes", ""): "is_abandoned",
    ("SELECT name, check_run_id, external_id", ""): "stored_runs",
    ("INSERT INTO check_runs", ""): "put_runs",
    ("SELECT r.id, r.installation_id, r.full_name", ""): "repository",
    ("INSERT INTO intent_cards", ""): "put_card",
    ("SELECT id FROM intent_cards WHERE change_id", ""): "card_ids",
    ("SELECT id FROM intent_cards WHERE id = ANY", ""): "known",
    ("SELECT count(*) FROM intent_cards", ""): "count_written",
    (f"SELECT {_CARD} FROM intent_cards", "AND head_sha = $2"): "latest_card",
    (f"SELECT {_CARD} FROM intent_cards", "AND head_sha <> $2"): "previous_card",
    (f"SELECT {_CARD} FROM intent_cards", "AND input_hash = $2"): "carriable_card",
    ("INSERT INTO intent_displays", ""): "show",
    ("UPDATE intent_cards SET published_at", ""): "mark_published",
    ("SELECT DISTINCT status IN ('making', 'retrying')", ""): "promises",
    ("INSERT INTO change_provenance", ""): "put_provenance",
    ("INSERT INTO provenance", ""): "nothing",
    ("INSERT INTO policy_verdicts", ""): "put_verdict",
    ("SELECT 1 FROM repositories WHERE id = $1 FOR NO KEY UPDATE", ""): "nothing",
    ("SELECT coalesce((SELECT sum(cost_usd)", ""): "used_today",
    ("INSERT INTO spend_reservations", ""): "reserve",
    ("WITH settled AS", ""): "settle",
    ("SELECT pg_advisory_xact_lock", ""): "nothing",
    ("SELECT 1 FROM partitions WHERE partition", ""): "guard",
    ("SELECT nextval('work_seq')", ""): "begin",
    ("SELECT address, need, ask_seq, partition", ""): "load",
    ("SELECT extract(epoch FROM due_at - now())", ""): "waiting",
    ("SELECT DISTINCT ON (address) address, head_sha FROM work", ""): "newest_heads",
    ("INSERT INTO work AS w", ""): "ask",
    ("INSERT INTO work AS w", "WHERE w.dead_at IS NULL"): "ask_without_reviving",
    ("DELETE FROM work w USING", ""): "finish",
    ("DELETE FROM work WHERE address", ""): "drop",
    ("UPDATE work SET due_at", ""): "postpone",
    ("UPDATE work SET dead_at", ""): "bury",
}


@cache
def _meaning(query: str) -> str:
    text = " ".join(query.split())
    fitting = [key for key in _STATEMENTS if text.startswith(key[0]) and key[1] in text]
    if not fitting:
        raise LookupError(f"the memory does not know this statement: {text[:80]}")
    return _STATEMENTS[max(fitting, key=lambda key: len("".join(key)))]


class Connection:
    """What the stores' functions take for a connection. `step` is awaited before each statement, with its name."""

    def __init__(self, memory: Memory, step: Callable[[str], Awaitable[None]]) -> None:
        self._memory = memory
        self._step = step
        self._inside = False

    async def fetch(self, query: str, *arguments: Any) -> list[Row]:
        does = _meaning(query)
        await self._step(does)
        if self._inside:
            return self._do(does, arguments)
        async with self._memory.lock:
            return self._do(does, arguments)

    def _do(self, does: str, arguments: tuple[Any, ...]) -> list[Row]:
        rows: list[Row] = getattr(self._memory, does)(*arguments)
        return rows

    async def fetchrow(self, query: str, *arguments: Any) -> Row | None:
        rows = await self.fetch(query, *arguments)
        return rows[0] if rows else None

    async def fetchval(self, query: str, *arguments: Any) -> Any:
        row = await self.fetchrow(query, *arguments)
        return None if row is None else next(iter(row.values()))

    async def execute(self, query: str, *arguments: Any) -> None:
        await self.fetch(query, *arguments)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        if self._inside:
            yield
            return
        async with self._memory.lock:
            saved = self._memory.save()
            self._inside = True
            self._memory.began = self._memory.clock()
            try:
                yield
                await self._step("commit")
            except BaseException:
                self._memory.restore(saved)
                raise
            finally:
                self._inside = False
                self._memory.began = None


class Pool:
    """What the actors take for a pool."""

    def __init__(self, memory: Memory, step: Callable[[str], Awaitable[None]]) -> None:
        self._memory = memory
        self._step = step

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[Connection]:
        yield Connection(self._memory, self._step)
