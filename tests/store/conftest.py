"""Rows that most tests of the store begin with."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from graft.database import Pool
from graft.store import cards, changes, installations
from graft.store.cards import CardRow
from graft.store.changes import Change, PullFacts

T0 = datetime(2026, 12, 1, 12, tzinfo=UTC)


def pull_facts(**fields: object) -> PullFacts:
    """The facts of pull request 1 of repository 70 in installation 7."""
    facts: dict[str, object] = {
        "repository_id": 70,
        "pr_number": 1,
        "head_sha": "a" * 40,
        "head_repository_id": 70,
        "base_ref": "main",
        "author_id": 5,
        "author_login": "ann",
        "author_is_bot": False,
        "state": "open",
        "draft": False,
        "opened_at": T0,
        "closed_at": None,
        "merged_at": None,
        "merge_commit_sha": None,
        "pr_updated_at": T0,
        **fields,
    }
    return PullFacts(**facts)  # type: ignore[arg-type]


def card_row(change_id: UUID, **fields: object) -> CardRow:
    """A finished card of head aaaa…."""
    facts: dict[str, object] = {
        "id": uuid4(),
        "change_id": change_id,
        "head_sha": "a" * 40,
        "base_sha": "b" * 40,
        "status": "ready",
        "reason": None,
        "risk_class": "logic",
        "risk_floor": "trivial",
        "risk_writer": "logic",
        "risk_first_pass": None,
        "risk_verifier": "trivial",
        "verifier_status": "agrees",
        "injection_suspected": False,
        "card": {"goal": "x"},
        "writer_model": "m",
        "verifier_model": "m",
        "prompt_version": "1",
        "input_hash": "i",
        "diff_fingerprint": "d",
        "llm_calls": 2,
        **fields,
    }
    return CardRow(**facts)  # type: ignore[arg-type]


@pytest.fixture
async def change(pool: Pool) -> Change:
    """Pull request 1 of repository 70, stored."""
    async with pool.acquire() as connection:
        await installations.ensure(connection, 7, 70, "octo/demo")
        stored = await changes.put(connection, pull_facts())
    assert stored is not None
    return stored


@pytest.fixture
async def card(pool: Pool, change: Change) -> CardRow:
    """A card of that change."""
    row = card_row(change.id)
    async with pool.acquire() as connection:
        await cards.put(connection, row)
    return row
