"""`metrics_daily`: a repository's days in numbers, recomputed from the rows they are about."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import msgspec

from graft.database import Connection
from graft.pilot import rollup
from graft.pilot.feedback import Vote
from graft.pilot.rollup import CardRow, Day, DayFacts, SpendRow
from graft.store.ratings import Scope


class StoredDay(msgspec.Struct, frozen=True, kw_only=True):
    """One day of one repository, and when it was computed."""

    repository: str
    day: date
    counts: Day
    computed_at: datetime


async def refresh(connection: Connection, scope: Scope) -> int:
    """Compute every day of the scope anew, for each repository that the day has something of or had a row for;
    how many rows that were."""
    written = 0
    day = scope.since.astimezone(UTC).date()
    while (begins := datetime(day.year, day.month, day.day, tzinfo=UTC)) < scope.until:
        window = Scope(since=begins, until=begins + timedelta(days=1), repositories=scope.repositories)
        for repository_id, facts in sorted((await _facts(connection, window, day)).items()):
            await _put(connection, repository_id, day, rollup.compute(facts))
            written += 1
        day += timedelta(days=1)
    return written


async def _put(connection: Connection, repository_id: int, day: date, counts: Day) -> None:
    await connection.execute(
        """
        INSERT INTO metrics_daily (repository_id, day, rollup_version, counts) VALUES ($1, $2, $3, $4)
        ON CONFLICT (repository_id, day, rollup_version) DO UPDATE SET counts = excluded.counts, computed_at = now()
        """,
        repository_id,
        day,
        rollup.VERSION,
        msgspec.to_builtins(counts),
    )


async def find(connection: Connection, scope: Scope) -> list[StoredDay]:
    """The stored days of a scope, in this version's meaning, by day and repository."""
    rows = await connection.fetch(
        """
        SELECT r.full_name AS repository, m.day, m.counts, m.computed_at
          FROM metrics_daily m JOIN repositories r ON r.id = m.repository_id
         WHERE m.rollup_version = $4 AND m.day >= ($1::timestamptz AT TIME ZONE 'UTC')::date
           AND m.day < ($2::timestamptz AT TIME ZONE 'UTC')::date
           AND ($3::bigint[] IS NULL OR m.repository_id = ANY($3))
         ORDER BY m.day, r.full_name
        """,
        scope.since,
        scope.until,
        scope.ids,
        rollup.VERSION,
    )
    return [
        StoredDay(
            repository=row["repository"],
            day=row["day"],
            counts=rollup.read(row["counts"]),
            computed_at=row["computed_at"],
        )
        for row in rows
    ]


async def _facts(connection: Connection, window: Scope, day: date) -> dict[int, DayFacts]:
    arguments = (window.since, window.until, window.ids)
    found: dict[int, dict[str, list[object]]] = {}

    def rows_of(repository_id: int, name: str) -> list[object]:
        return found.setdefault(repository_id, {}).setdefault(name, [])

    for row in await connection.fetch(_CARDS, *arguments):
        facts = dict(row)
        rows_of(facts.pop("repository_id"), "cards").append(CardRow(**facts))
    for row in await connection.fetch(_SPEND, *arguments):
        facts = dict(row)
        rows_of(facts.pop("repository_id"), "spend").append(SpendRow(**facts))
    for row in await connection.fetch(_VOTES, *arguments):
        facts = dict(row)
        rows_of(facts.pop("repository_id"), "votes").append(Vote(**facts))
    for name, query in _ONE_COLUMN.items():
        for row in await connection.fetch(query, *arguments):
            rows_of(row["repository_id"], name).append(row["value"])
    for row in await connection.fetch(_STORED, *arguments):
        found.setdefault(row["repository_id"], {})
    return {repository_id: _day_facts(day, each) for repository_id, each in found.items()}


def _day_facts(day: date, rows: dict[str, list[object]]) -> DayFacts:
    numbers = {name: sum(rows.pop(name, [])) for name in ("heads", "api_calls")}  # type: ignore[arg-type]
    return msgspec.structs.replace(DayFacts(day=day), **rows, **numbers)


_CARDS = """
    SELECT c.repository_id, k.status, k.reason, k.risk_class AS risk, k.risk_floor AS floor,
           k.verifier_status AS verifier, k.injection_suspected AS injection, k.carried_from IS NOT NULL AS carried,
           k.input_tokens + k.output_tokens + k.cache_read_tokens + k.cache_write_tokens AS tokens, k.llm_calls
      FROM intent_cards k JOIN changes c ON c.id = k.change_id
     WHERE k.created_at >= $1 AND k.created_at < $2 AND ($3::bigint[] IS NULL OR c.repository_id = ANY($3))
     ORDER BY k.created_at, k.id
"""
_SPEND = """
    SELECT repository_id, model, outcome, tokens, cost_usd::float8 FROM intent_spend
     WHERE spent_at >= $1 AND spent_at < $2 AND ($3::bigint[] IS NULL OR repository_id = ANY($3))
     ORDER BY spent_at, id
"""
# All votes on every card that somebody voted on in the window: which of them counts depends on all of them.
_VOTES = """
    SELECT c.repository_id, f.card_id::text, f.user_id, f.user_login, f.verdict, f.source, f.is_pr_author,
           f.voted_at, f.withdrawn_at IS NOT NULL AS withdrawn
      FROM intent_feedback f JOIN changes c ON c.id = f.change_id
     WHERE f.card_id IN (SELECT v.card_id FROM intent_feedback v WHERE v.voted_at >= $1 AND v.voted_at < $2)
       AND ($3::bigint[] IS NULL OR c.repository_id = ANY($3))
"""
_ONE_COLUMN = {
    "verdicts": """
        SELECT c.repository_id, v.outcome AS value FROM policy_verdicts v JOIN changes c ON c.id = v.change_id
         WHERE v.evaluated_at >= $1 AND v.evaluated_at < $2
           AND ($3::bigint[] IS NULL OR c.repository_id = ANY($3))
    """,
    "dead_needs": """
        SELECT w.repository_id, split_part(w.need, ':', 1) AS value FROM work w
          JOIN repositories r ON r.id = w.repository_id
         WHERE w.dead_at >= $1 AND w.dead_at < $2 AND ($3::bigint[] IS NULL OR w.repository_id = ANY($3))
    """,
    "latencies": """
        SELECT c.repository_id, extract(epoch FROM min(k.published_at) - c.opened_at)::float8 AS value
          FROM changes c JOIN intent_cards k ON k.change_id = c.id
         WHERE c.opened_at IS NOT NULL AND k.published_at IS NOT NULL
           AND ($3::bigint[] IS NULL OR c.repository_id = ANY($3))
           AND EXISTS (SELECT FROM intent_cards d WHERE d.change_id = c.id
                          AND d.published_at >= $1 AND d.published_at < $2)
         GROUP BY c.id HAVING min(k.published_at) >= $1 AND min(k.published_at) < $2
    """,
    "heads": """
        SELECT c.repository_id, count(DISTINCT (s.change_id, s.head_sha)) AS value
          FROM check_runs s JOIN changes c ON c.id = s.change_id
         WHERE s.published_at >= $1 AND s.published_at < $2
           AND ($3::bigint[] IS NULL OR c.repository_id = ANY($3))
         GROUP BY c.repository_id
    """,
    "api_calls": """
        SELECT repository_id, calls AS value FROM api_calls
         WHERE day = ($1::timestamptz AT TIME ZONE 'UTC')::date AND $2::timestamptz IS NOT NULL
           AND ($3::bigint[] IS NULL OR repository_id = ANY($3))
    """,
}
_STORED = """
    SELECT repository_id FROM metrics_daily
     WHERE day = ($1::timestamptz AT TIME ZONE 'UTC')::date AND $2::timestamptz IS NOT NULL
       AND ($3::bigint[] IS NULL OR repository_id = ANY($3))
     GROUP BY repository_id
"""
