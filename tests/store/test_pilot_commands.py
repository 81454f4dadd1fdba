"""The pilot's commands on a real database: exit codes, one number in every form, and files that are whole."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from graft.bus import Bus
from graft.cli.main import main
from graft.database import Pool
from graft.store import cards, changes, installations, votes
from graft.store.votes import Vote
from graft.streams import StreamSettings

from .conftest import T0, card_row, pull_facts

PERIOD = ["--from", "2026-11-30", "--to", "2026-12-07"]


async def call(url: str, *arguments: str, **variables: str) -> Result:
    """Run a command as from a shell, in a thread of its own because it has a loop of its own."""
    environment = {"DATABASE_URL": url, "COLUMNS": "200", **variables}
    return await asyncio.to_thread(CliRunner().invoke, main, list(arguments), env=environment)


async def rated(pool: Pool, accurate: int, wrong: int) -> None:
    """That many rated cards, a change each."""
    async with pool.acquire() as connection:
        await installations.ensure(connection, 7, 70, "octo/demo")
        for number in range(1, accurate + wrong + 1):
            change = await changes.put(connection, pull_facts(pr_number=number, head_sha=f"{number:040x}"))
            assert change is not None
            card = card_row(change.id, risk_class="logic" if number % 2 else "trivial")
            await cards.put(connection, card)
            await cards.shown(connection, change.id, card.id, "ready", T0 + timedelta(minutes=number))
            await votes.record(
                connection,
                Vote(
                    card_id=card.id,
                    change_id=change.id,
                    user_id=11,
                    user_login="rev",
                    verdict="accurate" if number <= accurate else "wrong",
                    source="reaction",
                    is_pr_author=False,
                    voted_at=T0 + timedelta(hours=1),
                ),
            )
        await connection.execute("UPDATE intent_cards SET created_at = published_at")


@pytest.mark.parametrize(
    ("accurate", "wrong", "code", "said"),
    [(50, 0, 0, "PASS"), (40, 12, 1, "FAIL"), (9, 0, 2, "NOT ENOUGH DATA")],
)
async def test_the_gate_exits_with_its_answer(
    pool: Pool, database_url: str, accurate: int, wrong: int, code: int, said: str
) -> None:
    await rated(pool, accurate, wrong)
    result = await call(database_url, "gate", *PERIOD, "--by", "risk")
    assert result.exit_code == code, result.output
    assert result.output.startswith(said)
    assert f"n = {accurate + wrong} rated cards" in result.output
    assert "by risk" in result.output
    document = json.loads((await call(database_url, "gate", *PERIOD, "--json")).output)
    assert document["gate"]["accuracy"]["sample"] == accurate + wrong
    assert (document["gate"]["accuracy"]["value"] is None) is (code == 2)


async def test_a_question_that_was_not_answered_is_none_of_the_answers(database_url: str) -> None:
    for arguments in (("--threshold", "2"), ("--minimum", "x"), ("--repo", "octo/none"), ("--nonsense",)):
        assert (await call(database_url, "gate", *arguments)).exit_code == 3, arguments
    assert (await call("postgresql://nobody@127.0.0.1:1/nowhere", "gate")).exit_code == 3
    assert (await call("", "gate")).exit_code == 3
    assert (await call(database_url, "gate", "--from", "2026-02-01", "--to", "2026-01-01")).exit_code == 3


async def test_a_scope_is_days_both_included(pool: Pool, database_url: str) -> None:
    await rated(pool, 3, 0)
    for first, last, n in (
        ("2026-12-01", "2026-12-01", 3),
        ("2026-12-02", "2026-12-09", 0),
        ("2026-11-01", "2026-11-30", 0),
    ):
        document = json.loads(
            (await call(database_url, "gate", "--from", first, "--to", last, "--json")).output
        )
        assert document["gate"]["accuracy"]["sample"] == n


async def test_report_json_csv_and_page(pool: Pool, database_url: str, tmp_path: Path) -> None:
    await rated(pool, 55, 1)
    out = tmp_path / "report.html"
    result = await call(database_url, "report", *PERIOD, "--out", str(out))
    assert result.exit_code == 0, result.output
    text = out.read_text(encoding="utf-8")
    assert 'data-outcome="pass"' in text
    assert "octo/demo" in text
    document = json.loads((await call(database_url, "report", *PERIOD, "--json")).output)
    figures = {f["key"]: f for section in document["sections"] for f in section["figures"]}
    assert figures["accuracy"]["value"] == 55 / 56
    assert figures["risk.cards"]["value"] == 56
    assert figures["risk.trivial"]["value"] == 28 / 56
    rows = (await call(database_url, "report", *PERIOD, "--csv")).output.splitlines()
    assert any(row.startswith("accuracy,accuracy,") and str(55 / 56) in row for row in rows)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html"], "nothing half-written is left"


async def test_report_needs_somewhere_to_go(database_url: str, tmp_path: Path) -> None:
    assert (await call(database_url, "report")).exit_code == 2
    result = await call(database_url, "report", "--out", str(tmp_path / "none" / "report.html"))
    assert result.exit_code == 2
    assert "cannot be written" in result.output


async def test_metrics(pool: Pool, database_url: str) -> None:
    await rated(pool, 4, 2)
    assert "no days yet" in (await call(database_url, "metrics", *PERIOD)).output
    result = await call(database_url, "metrics", *PERIOD, "--recompute")
    assert result.exit_code == 0, result.output
    assert "2026-12-01" in result.output
    assert "3/3/0" in result.output
    assert "4/2" in result.output
    document = json.loads((await call(database_url, "metrics", *PERIOD, "--json")).output)
    [day] = document["days"]
    assert (day["repository"], day["counts"]["cards"], day["counts"]["votes"]) == (
        "octo/demo",
        6,
        {"accurate": 4, "wrong": 2},
    )


async def test_incidents_by_hand(pool: Pool, database_url: str) -> None:
    await rated(pool, 2, 0)
    added = await call(database_url, "incident", "add", "octo/demo", "--culprit", "1", "--issue", "20")
    assert added.exit_code == 0, added.output
    again = await call(database_url, "incident", "add", "octo/demo", "--issue", "20", "--fix", "9")
    assert again.output == added.output
    listed = await call(database_url, "incident", "list")
    assert "issue #20  culprit #1 (logic)  fix #9  manual" in listed.output
    assert "not enough data" in listed.output
    document = json.loads((await call(database_url, "incident", "list", "--json")).output)
    assert [(each["culprit"], each["fix"]) for each in document["incidents"]] == [(1, 9)]
    number = added.output.strip()
    assert (await call(database_url, "incident", "remove", number)).exit_code == 0
    assert (await call(database_url, "incident", "remove", number)).exit_code == 1
    assert "culprit #1" not in (await call(database_url, "incident", "list")).output


@pytest.mark.parametrize(
    "arguments",
    [
        ("octo/demo",),
        ("octo/demo", "--culprit", "3", "--fix", "3"),
        ("octo/demo", "--culprit", "0"),
        ("octo/x", "--issue", "1"),
    ],
)
async def test_incidents_that_make_no_sense(
    pool: Pool, database_url: str, arguments: tuple[str, ...]
) -> None:
    await rated(pool, 1, 0)
    assert (await call(database_url, "incident", "add", *arguments)).exit_code == 2


async def test_purge(pool: Pool, database_url: str, nats_url: str, bus_prefix: str) -> None:
    await rated(pool, 2, 0)
    bus = await Bus.connect(nats_url, prefix=bus_prefix)
    await bus.ensure_stream(StreamSettings(max_bytes=1_000_000))
    await bus.close()
    broker = {"NATS_URL": nats_url, "GRAFT_NATS_PREFIX": bus_prefix}
    dry = await call(database_url, "purge", "--installation", "7", "--dry-run", **broker)
    assert "would be removed" in dry.output
    refused = await call(database_url, "purge", "--installation", "7", **broker)
    assert refused.exit_code == 1, "nobody said yes"
    assert await pool.fetchval("SELECT count(*) FROM intent_cards") == 2
    result = await call(database_url, "purge", "--installation", "7", "--yes", "--json", **broker)
    assert result.exit_code == 0, result.output
    document = json.loads(result.output)
    assert document["rows_left"] == {}
    assert document["rows_deleted"]["intent_feedback"] == 2
    assert await pool.fetchval("SELECT count(*) FROM installations") == 0
    assert await pool.fetchval("SELECT reason FROM pilot_purges") == "operator"


async def test_purge_says_when_the_broker_cannot_be_cleaned(pool: Pool, database_url: str) -> None:
    await rated(pool, 1, 0)
    result = await call(database_url, "purge", "--installation", "7", "--yes", NATS_URL="nats://127.0.0.1:1")
    assert result.exit_code == 2
    assert "NATS_URL" in result.output
    assert await pool.fetchval("SELECT count(*) FROM installations") == 1, "all or nothing"
