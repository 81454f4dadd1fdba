"""The tables of a database in memory, and what the statements of a pull request's actor do to them.

Rows are replaced and never changed in place, so that a transaction can go back. `.database` finds the function of a
statement; `tests/proof/test_interleavings_memory.py` has Postgres and this answer the same questions.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID, uuid5

from graft.store.cards import CardRow
from graft.store.changes import Change

Row = dict[str, Any]

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_NAMES: Final = UUID("5c1f1b0e-8a5e-4b5b-9a54-6a1f7b0d3c11")
_CHANGE: Final = Change.__struct_fields__
_CARD: Final = CardRow.__struct_fields__


class Memory:
    """The tables. `clock` is the database's, in seconds; while a transaction runs, `now` is when it began."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.began: float | None = None
        self.lock = asyncio.Lock()
        self.sequence = 0
        self.changes: dict[tuple[int, int], Row] = {}
        self.check_runs: dict[tuple[UUID, str, str], Row] = {}
        self.work: dict[tuple[str, str], Row] = {}
        self.partitions: dict[int, Row] = {}
        self.repositories: dict[int, Row] = {}
        self.cards: dict[UUID, Row] = {}
        self.displays: tuple[Row, ...] = ()
        self.verdicts: tuple[Row, ...] = ()
        self.provenance: dict[UUID, Row] = {}
        self.reservations: dict[UUID, Row] = {}
        self.spent: tuple[Row, ...] = ()

    @property
    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.clock() if self.began is None else self.began)

    def next(self) -> int:
        """The next number of `work_seq`."""
        self.sequence += 1
        return self.sequence

    def save(self) -> tuple[Any, ...]:
        """What a transaction goes back to. Rows are replaced and never changed in place."""
        return tuple(copy.copy(getattr(self, name)) for name in _TABLES)

    def restore(self, saved: tuple[Any, ...]) -> None:
        for name, table in zip(_TABLES, saved, strict=True):
            setattr(self, name, table)

    def change_by_id(self, change_id: UUID) -> Row | None:
        return next((row for row in self.changes.values() if row["id"] == change_id), None)

    def nothing(self, *_arguments: Any) -> list[Row]:
        """A lock, which transactions that exclude each other do not need, or rows that nobody here reads again."""
        return []

    # ------------------------------------------------------------------------------------------ changes

    def put_change(self, *facts: Any) -> list[Row]:
        repository_id, number, head, _, base, author, _, _, state, *_, updated = facts
        key = (repository_id, number)
        old = self.changes.get(key)
        if old is not None and updated < old["pr_updated_at"]:
            return []
        new = old or {
            "id": uuid5(_NAMES, f"{repository_id}/{number}"),
            "repository_id": repository_id,
            "pr_number": number,
            "graft_comment_id": None,
            "section_seq": 0,
            "publish_token": None,
            "publish_until": None,
        }
        self.changes[key] = {
            **new,
            "head_sha": head,
            "base_ref": base,
            "author_id": author,
            "state": state,
            "pr_updated_at": updated,
        }
        return [_columns(self.changes[key])]

    def get_change(self, repository_id: int, number: int) -> list[Row]:
        found = self.changes.get((repository_id, number))
        return [] if found is None else [_columns(found)]

    def acquire(
        self,
        change_id: UUID,
        token: UUID,
        seconds: float,
        seq: int,
        partition: int,
        epoch: int,
        holder: str,
        head: str,
    ) -> list[Row]:
        row = self.change_by_id(change_id)
        if row is None or row["section_seq"] > seq or row["repository_id"] not in self.repositories:
            return []
        if row["publish_until"] is not None and row["publish_until"] >= self.now:
            return []
        for other in self.changes.values():
            on_head = (other["repository_id"], other["head_sha"]) == (row["repository_id"], head)
            if on_head and other["id"] != change_id and (other["publish_until"] or EPOCH) >= self.now:
                return []
        if not self.guard(partition, epoch, holder):
            return []
        abandoned = row["publish_token"] is not None
        self._update(row, publish_token=token, publish_until=self.now + timedelta(seconds=seconds))
        return [{**_columns(row), "abandoned": abandoned}]

    def commit_publication(self, change_id: UUID, token: UUID, seq: int, comment_id: int | None) -> list[Row]:
        row = self.change_by_id(change_id)
        if row is None or row["publish_token"] != token or row["section_seq"] > seq:
            return []
        self._update(
            row, section_seq=seq, graft_comment_id=comment_id, publish_token=None, publish_until=None
        )
        return [{"?column?": 1}]

    def _update(self, row: Row, **changed: Any) -> None:
        self.changes[row["repository_id"], row["pr_number"]] = {**row, **changed}

    # --------------------------------------------------------------------------------------- check runs

    def stored_runs(self, change_id: UUID, head: str) -> list[Row]:
        return [
            {"name": name, **row}
            for (of, sha, name), row in self.check_runs.items()
            if (of, sha) == (change_id, head)
        ]

    def put_runs(
        self,
        change_id: UUID,
        head: str,
        names: list[str],
        ids: list[int],
        external: list[str],
        hashes: list[str],
    ) -> list[Row]:
        for name, run_id, external_id, content in zip(names, ids, external, hashes, strict=True):
            self.check_runs[change_id, head, name] = {
                "check_run_id": run_id,
                "external_id": external_id,
                "content_hash": content,
            }
        return []

    def confirm(self, change_id: UUID, shown_seq: int, seq: int) -> list[Row]:
        row = self.change_by_id(change_id)
        if row is None or row["publish_token"] is not None or not row["section_seq"] == shown_seq <= seq:
            return []
        self._update(row, section_seq=seq)
        return [{"?column?": 1}]

    def is_abandoned(self, change_id: UUID) -> list[Row]:
        row = self.change_by_id(change_id)
        return [] if row is None else [{"abandoned": row["publish_token"] is not None}]

    def known(self, asked: list[UUID]) -> list[Row]:
        rows = (*self.cards.values(), *self.changes.values())
        return [{"id": row["id"]} for row in rows if row["id"] in asked]

    # -------------------------------------------------------------------- what was found out and what was shown

    def repository(self, repository_id: int) -> list[Row]:
        found = self.repositories.get(repository_id)
        return [] if found is None else [found]

    def put_card(self, *values: Any) -> list[Row]:
        row = dict(zip(_CARD, (*values, self.now, None), strict=True))
        self.cards[row["id"]] = row
        return []

    def card_ids(self, change_id: UUID) -> list[Row]:
        return [{"id": row["id"]} for row in self.cards.values() if row["change_id"] == change_id]

    def latest_card(self, change_id: UUID, head: str) -> list[Row]:
        return self._newest_card(change_id, lambda row: row["head_sha"] == head)

    def previous_card(self, change_id: UUID, head: str) -> list[Row]:
        return self._newest_card(change_id, lambda row: row["head_sha"] != head and row["status"] == "ready")

    def carriable_card(self, change_id: UUID, wanted: str, fingerprint: str, version: str) -> list[Row]:
        same = ("ready", wanted, fingerprint, version)
        facts = ("status", "input_hash", "diff_fingerprint", "prompt_version")
        return self._newest_card(change_id, lambda row: tuple(row[fact] for fact in facts) == same)

    def _newest_card(self, change_id: UUID, fits: Callable[[Row], bool]) -> list[Row]:
        rows = [row for row in self.cards.values() if row["change_id"] == change_id and fits(row)]
        rows.sort(key=lambda row: row["id"])
        return sorted(rows, key=lambda row: row["created_at"], reverse=True)[:1]

    def count_written(self, change_id: UUID, head: str) -> list[Row]:
        rows = (
            row for row in self.cards.values() if (row["change_id"], row["head_sha"]) == (change_id, head)
        )
        return [{"count": sum(row["llm_calls"] > 0 for row in rows)}]

    def show(self, change_id: UUID, card_id: UUID | None, status: str, at: datetime) -> list[Row]:
        mine = [row for row in self.displays if row["change_id"] == change_id]
        last = max(mine, key=lambda row: row["shown_at"], default=None)
        if last is None or (last["card_id"], last["status"]) != (card_id, status):
            new = {"change_id": change_id, "card_id": card_id, "status": status, "shown_at": at}
            self.displays = (*self.displays, new)
        return []

    def mark_published(self, card_id: UUID, at: datetime) -> list[Row]:
        row = self.cards[card_id]
        self.cards[card_id] = {**row, "published_at": row["published_at"] or at}
        return []

    def promises(self, change_id: UUID) -> list[Row]:
        mine = [row for row in self.displays if row["change_id"] == change_id]
        last = max((row["shown_at"] for row in mine), default=None)
        kept = {row["status"] in ("making", "retrying") for row in mine if row["shown_at"] == last}
        return [{"promised": promised} for promised in sorted(kept)]

    def put_provenance(self, change_id: UUID, head: str, *answer: Any) -> list[Row]:
        self.provenance[change_id] = {"head_sha": head, "answer": answer}
        return []

    def put_verdict(self, change_id: UUID, head: str, *facts: Any) -> list[Row]:
        mine = [row for row in self.verdicts if row["change_id"] == change_id]
        new = {"change_id": change_id, "head_sha": head, "facts_hash": facts[-1]}
        if mine and mine[-1] == new:
            return []
        self.verdicts = (*self.verdicts, new)
        return [{"?column?": 1}]

    # ----------------------------------------------------------------------------------------- spending

    def used_today(self, repository_id: int) -> list[Row]:
        """Everything is of one day here."""
        rows = (*self.spent, *self.reservations.values())
        used = sum((row["usd"] for row in rows if row["repository_id"] == repository_id), Decimal(0))
        return [{"used": used}]

    def reserve(
        self, repository_id: int, _change_id: UUID, _purpose: str, _model: str, usd: Decimal
    ) -> list[Row]:
        name = uuid5(_NAMES, f"reservation {len(self.reservations)} {len(self.spent)}")
        self.reservations[name] = {"repository_id": repository_id, "usd": usd}
        return [{"id": name}]

    def settle(self, reservation: UUID, _outcome: str, _tokens: int, usd: Decimal) -> list[Row]:
        if (promised := self.reservations.pop(reservation, None)) is not None:
            self.spent = (*self.spent, {**promised, "usd": usd})
        return []

    # -------------------------------------------------------------------------------------- partitions

    def guard(self, partition: int, epoch: int, holder: str) -> list[Row]:
        row = self.partitions.get(partition)
        stands = row is not None and (row["epoch"], row["holder"]) == (epoch, holder)
        return [{"?column?": 1}] if stands else []

    # -------------------------------------------------------------------------------------------- work

    def begin(self) -> list[Row]:
        return [{"nextval": self.next()}]

    def load(self, address: str) -> list[Row]:
        now = self.now
        return [
            {
                **{name: row[name] for name in _WORK},
                "first_asked": (now - row["first_asked_at"]).total_seconds(),
                "last_asked": (now - row["last_asked_at"]).total_seconds(),
            }
            for (of, _), row in sorted(self.work.items())
            if of == address and row["dead_at"] is None and row["due_at"] <= now
        ]

    def ask(self, *columns: list[Any]) -> list[Row]:
        return self._ask(columns, revive=True)

    def ask_without_reviving(self, *columns: list[Any]) -> list[Row]:
        return self._ask(columns, revive=False)

    def _ask(self, columns: tuple[list[Any], ...], *, revive: bool) -> list[Row]:
        now = self.now
        for address, need, partition, installation, repository, head, asked, delay, forced, trace in zip(
            *columns, strict=True
        ):
            due, old = now + timedelta(seconds=delay), self.work.get((address, need))
            new = {
                "address": address,
                "need": need,
                "ask_seq": self.next(),
                "partition": partition,
                "installation_id": installation,
                "repository_id": repository,
                "head_sha": head,
                "asked_at": asked,
                "first_asked_at": now,
                "last_asked_at": now,
                "due_at": due,
                "forced": forced,
                "attempts": 0,
                "dead_at": None,
                "trace": trace,
            }
            if old is not None:
                if old["dead_at"] is not None and not revive:
                    continue
                # The sequence is drawn for the row that is not inserted, and again for the update.
                new["ask_seq"] = self.next()
                alive = old["dead_at"] is None
                newer = old["head_sha"] is None or (head is not None and asked >= old["asked_at"])
                same = head is None or head == old["head_sha"]
                new |= {
                    "partition": old["partition"],
                    "installation_id": installation or old["installation_id"],
                    "repository_id": repository if repository is not None else old["repository_id"],
                    "head_sha": head if newer else old["head_sha"],
                    "asked_at": asked if newer else old["asked_at"],
                    "first_asked_at": old["first_asked_at"] if alive else now,
                    "due_at": min(old["due_at"], due) if alive else due,
                    "forced": old["forced"] or forced,
                    "attempts": old["attempts"] if alive and same else 0,
                    "trace": trace if trace is not None else old["trace"],
                }
            self.work[address, need] = new
        return []

    def waiting(self, address: str, need: str) -> list[Row]:
        row = self.work.get((address, need))
        if row is None or (row["dead_at"] is None and row["due_at"] <= self.now):
            return []
        seconds = (row["due_at"] - self.now).total_seconds()
        return [{"seconds": seconds, "dead": row["dead_at"] is not None, "attempts": row["attempts"]}]

    def newest_heads(self, addresses: list[str]) -> list[Row]:
        newest: dict[str, Row] = {}
        for (address, _), row in self.work.items():
            if address in addresses and row["head_sha"] is not None and row["dead_at"] is None:
                old = newest.get(address)
                if old is None or row["asked_at"] > old["asked_at"]:
                    newest[address] = row
        return [{"address": address, "head_sha": row["head_sha"]} for address, row in newest.items()]

    def drop(self, address: str, needs: list[str], before: int) -> list[Row]:
        for need in needs:
            row = self.work.get((address, need))
            if row is not None and row["ask_seq"] < before:
                del self.work[address, need]
        return []

    def finish(self, addresses: list[str], needs: list[str], seqs: list[int]) -> list[Row]:
        for address, need, seq in zip(addresses, needs, seqs, strict=True):
            row = self.work.get((address, need))
            if row is not None and row["ask_seq"] == seq:
                del self.work[address, need]
        return []

    def postpone(
        self, address: str, need: str, seq: int, seconds: float, failure: object, most: int
    ) -> list[Row]:
        row = self.work.get((address, need))
        if row is None or row["ask_seq"] != seq:
            return []
        failed = failure is not None
        self.work[address, need] = {
            **row,
            "due_at": self.now + timedelta(seconds=seconds),
            "attempts": row["attempts"] + failed,
            "forced": row["forced"] and not failed,
            "dead_at": self.now if failed and row["attempts"] + 1 >= most else None,
        }
        return []

    def bury(self, address: str, need: str, seq: int, _failure: object) -> list[Row]:
        row = self.work.get((address, need))
        if row is not None and row["ask_seq"] == seq:
            self.work[address, need] = {**row, "dead_at": self.now, "attempts": row["attempts"] + 1}
        return []


_TABLES: Final = (
    *("changes", "check_runs", "work", "partitions", "cards", "displays", "verdicts", "provenance"),
    *("reservations", "spent"),
)
_WORK: Final = (
    *("address", "need", "ask_seq", "partition", "installation_id", "repository_id", "head_sha", "asked_at"),
    *("forced", "attempts", "trace"),
)


def _columns(row: Row) -> Row:
    return {name: row[name] for name in _CHANGE}
