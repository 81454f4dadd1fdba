"""What provenance and policy found out about a change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from graft.database import Connection


class CommitRow(msgspec.Struct, frozen=True, kw_only=True):
    """What one commit said about its author."""

    commit_sha: str
    source: str
    author_kind: str
    agent: str | None
    model: str | None
    task: str | None
    session: str | None
    rule: str | None


class ProvenanceRow(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for the whole change, and the commits that gave it."""

    head_sha: str
    author_kind: str
    author_kind_reason: str
    source: str
    agents: tuple[str, ...]
    models: tuple[str, ...]
    deciding_commits: tuple[str, ...]
    hints: tuple[str, ...]


class VerdictRow(msgspec.Struct, frozen=True, kw_only=True):
    """One evaluation of the policy. `rules` holds indices and codes, never names or values of the file."""

    head_sha: str
    base_ref: str
    base_sha: str
    policy_path: str | None
    policy_hash: str | None
    policy_status: str
    outcome: str
    rule_index: int | None
    rules: list[dict[str, Any]]
    guards: tuple[str, ...]
    card_id: UUID | None
    facts_hash: str


async def put_provenance(
    connection: Connection, change_id: UUID, answer: ProvenanceRow, commits: Sequence[CommitRow]
) -> None:
    """Store the answer in place of the last one; commits are added and never removed (a squash drops them
    from the branch, not from history)."""
    await connection.execute(
        """
        INSERT INTO change_provenance (change_id, head_sha, author_kind, author_kind_reason, source, agents,
                                       models, deciding_commits, hints)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (change_id) DO UPDATE SET head_sha = excluded.head_sha,
            author_kind = excluded.author_kind, author_kind_reason = excluded.author_kind_reason,
            source = excluded.source, agents = excluded.agents, models = excluded.models,
            deciding_commits = excluded.deciding_commits, hints = excluded.hints, resolved_at = now()
        """,
        change_id,
        answer.head_sha,
        answer.author_kind,
        answer.author_kind_reason,
        answer.source,
        list(answer.agents),
        list(answer.models),
        list(answer.deciding_commits),
        list(answer.hints),
    )
    await connection.execute(
        """
        INSERT INTO provenance (change_id, commit_sha, source, author_kind, agent, model, task, session, rule)
        SELECT $1, * FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
                                 $8::text[], $9::text[])
        ON CONFLICT (change_id, commit_sha) DO UPDATE SET source = excluded.source,
            author_kind = excluded.author_kind, agent = excluded.agent, model = excluded.model,
            task = excluded.task, session = excluded.session, rule = excluded.rule
        """,
        change_id,
        [c.commit_sha for c in commits],
        [c.source for c in commits],
        [c.author_kind for c in commits],
        [c.agent for c in commits],
        [c.model for c in commits],
        [c.task for c in commits],
        [c.session for c in commits],
        [c.rule for c in commits],
    )


async def link_task(
    connection: Connection, change_id: UUID, repository_id: int, external_id: str, issue_number: int | None
) -> None:
    """Link a change to the task that its commits name, creating the task's row."""
    await connection.execute(
        """
        WITH task AS (
            INSERT INTO tasks (repository_id, external_id, issue_number) VALUES ($2, $3, $4)
            ON CONFLICT (repository_id, external_id) DO UPDATE SET
                issue_number = coalesce(excluded.issue_number, tasks.issue_number)
            RETURNING id
        )
        UPDATE changes SET task_id = task.id FROM task WHERE changes.id = $1
        """,
        change_id,
        repository_id,
        external_id,
        issue_number,
    )


async def put_verdict(connection: Connection, change_id: UUID, verdict: VerdictRow) -> bool:
    """Append a verdict unless the last one is of the same head and rests on the same facts. True where it is
    new."""
    inserted = await connection.fetchval(
        """
        INSERT INTO policy_verdicts (change_id, head_sha, base_ref, base_sha, policy_path, policy_hash,
               policy_status, outcome, rule_index, rules, guards, card_id, facts_hash)
        SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13
         WHERE NOT EXISTS (
            SELECT FROM (SELECT facts_hash, head_sha FROM policy_verdicts WHERE change_id = $1
                          ORDER BY evaluated_at DESC, id LIMIT 1) last
             WHERE last.facts_hash = $13 AND last.head_sha = $2)
        RETURNING 1
        """,
        change_id,
        verdict.head_sha,
        verdict.base_ref,
        verdict.base_sha,
        verdict.policy_path,
        verdict.policy_hash,
        verdict.policy_status,
        verdict.outcome,
        verdict.rule_index,
        verdict.rules,
        list(verdict.guards),
        verdict.card_id,
        verdict.facts_hash,
    )
    return inserted is not None
