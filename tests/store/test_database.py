"""The schema: created once, upgraded in steps, and refused where code and schema do not fit."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg
import pytest

from graft import database
from graft.database import Pool
from graft.errors import ConfigError

# The data model's tables, then what the design adds.
TABLES = {
    *[
        "installations",
        "repositories",
        "tasks",
        "changes",
        "provenance",
        "change_provenance",
        "intent_cards",
        "intent_feedback",
    ],
    *[
        "intent_displays",
        "intent_spend",
        "policy_verdicts",
        "guard_events",
        "webhook_deliveries",
        "pr_reviewers",
    ],
    *[
        "reviewer_check_denials",
        "review_time_runs",
        "review_time_prs",
        "incidents",
        "metrics_daily",
        "pilot_purges",
    ],
    *[
        "work",
        "pending_votes",
        "partitions",
        "replicas",
        "spend_reservations",
        "check_runs",
        "recoveries",
        "api_calls",
        "schema_version",
    ],
}

# Tables that must outlive an installation, or that may name one no row knows.
UNTIED = {
    "webhook_deliveries",
    "pilot_purges",
    "work",
    "pending_votes",
    "partitions",
    "recoveries",
    "replicas",
    "schema_version",
}


async def test_every_table_of_the_data_model_exists(pool: Pool) -> None:
    rows = await pool.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    assert {row["tablename"] for row in rows} == TABLES


async def test_removing_an_installation_cascades_through_every_tied_table(pool: Pool) -> None:
    rows = await pool.fetch(
        """
        SELECT c.conrelid::regclass::text AS child, c.confrelid::regclass::text AS parent
          FROM pg_constraint c WHERE c.contype = 'f' AND c.confdeltype = 'c'
        """
    )
    reached = {"installations"}
    while new := {row["child"] for row in rows if row["parent"] in reached} - reached:
        reached |= new
    assert reached == TABLES - UNTIED


async def test_every_github_id_is_a_bigint(pool: Pool) -> None:
    rows = await pool.fetch(
        """
        SELECT table_name, column_name, data_type FROM information_schema.columns
         WHERE table_schema = 'public' AND column_name ~ '(^id|_id)$'
           AND data_type NOT IN ('uuid', 'bigint', 'text')
        """
    )
    assert [tuple(row) for row in rows] == []


async def test_migrating_twice_and_at_once_changes_nothing(empty_database_url: str) -> None:
    async def migrate() -> int:
        connection = await asyncpg.connect(empty_database_url)
        try:
            return await database.migrate(connection)
        finally:
            await connection.close()

    assert await asyncio.gather(*(migrate() for _ in range(4))) == [database.SCHEMA_VERSION] * 4


async def test_an_upgrade_expands_first_and_contracts_later(pool: Pool, tmp_path: Path) -> None:
    (tmp_path / "0002_expand.sql").write_text(
        "ALTER TABLE tasks ADD COLUMN label text;"
        "INSERT INTO schema_version (version, compatible_from) VALUES (2, 1);"
    )
    async with pool.acquire() as connection:
        assert await database.migrate(connection, migrations=tmp_path) == 2
        await database.check_schema(connection)  # the old release goes on running
        (tmp_path / "0003_contract.sql").write_text(
            "ALTER TABLE tasks DROP COLUMN external_id;"
            "INSERT INTO schema_version (version, compatible_from) VALUES (3, 2);"
        )
        assert await database.migrate(connection, migrations=tmp_path) == 3
        with pytest.raises(ConfigError, match="upgrade this replica"):
            await database.check_schema(connection)


async def test_a_failing_step_is_rolled_back_whole(pool: Pool, tmp_path: Path) -> None:
    (tmp_path / "0002_broken.sql").write_text("ALTER TABLE tasks ADD COLUMN label text; SELECT 1/0;")
    async with pool.acquire() as connection:
        with pytest.raises(asyncpg.DivisionByZeroError):
            await database.migrate(connection, migrations=tmp_path)
        assert await database.installed_version(connection) == database.SCHEMA_VERSION
        assert not await connection.fetchval(
            "SELECT 1 FROM information_schema.columns WHERE table_name = 'tasks' AND column_name = 'label'"
        )


async def test_a_role_that_may_not_create_is_told_the_command(pool: Pool) -> None:
    async with pool.acquire() as connection:
        await connection.execute("DELETE FROM schema_version")
        with pytest.raises(ConfigError, match="graft migrate"):
            await database.check_schema(connection)


async def test_an_unreachable_server_names_the_variable_and_no_password() -> None:
    with pytest.raises(ConfigError, match="DATABASE_URL") as caught:
        await database.open_pool("postgresql://graft:hunter2@127.0.0.1:1/graft")
    assert "hunter2" not in str(caught.value)


async def test_jsonb_keeps_python_values(pool: Pool) -> None:
    assert await pool.fetchval("SELECT $1::jsonb", {"a": [1, None, "é"]}) == {"a": [1, None, "é"]}
