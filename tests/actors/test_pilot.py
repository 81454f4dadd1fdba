"""The pilot on the whole system: reviewers, incidents, calls, daily numbers, and a purge that leaves nothing."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from actors.calls import CallLedger, working_for
from actors.lead import LeadActor
from graft import database
from graft.cli.purge import purge_everywhere
from graft.database import Pool
from graft.store import installations, purge, rollups
from graft.store.ratings import Scope
from graft.testing import agreeable_model

from .conftest import MakeWorld
from .world import World

CHANGE = {"src/app.py": "def main():\n    return 2\n"}
AGENT = "Return two\n\nGraft-Agent: claude-code\nGraft-Task: #1\n"


async def rows(graft: World, query: str, *arguments: object) -> list[tuple[object, ...]]:
    return [tuple(row) for row in await graft.pool.fetch(query, *arguments)]


# --------------------------------------------------------------------------------------------------- reviewers

REVIEWERS = "SELECT user_login, reason, verified FROM pr_reviewers ORDER BY user_login"
PERMISSION = "GET /repos/{owner}/{repo}/collaborators/{username}/permission"


def permission_reads(graft: World) -> int:
    return sum(PERMISSION.endswith(request.route.split(" ")[-1]) for request in graft.simulator.requests)


async def forget_the_hour(graft: World) -> None:
    """As if an hour had passed since reviewers were read."""
    await graft.pool.execute("UPDATE changes SET reviewers_synced_at = now() - interval '2 hours'")
    await graft.pool.execute("UPDATE work SET due_at = now() WHERE need = 'reviewers'")


async def test_reviewers_are_those_who_reviewed_were_asked_or_voted(make_world: MakeWorld) -> None:
    async with make_world(model=agreeable_model()) as graft:
        graft.commit("feature", CHANGE)
        pull = await graft.open()
        await graft.settled()
        for login, role in (("rev", "write"), ("asked", "maintain"), ("voter", "read"), ("octocat", "admin")):
            graft.simulator.set_permission(graft.repository, login, role)
        pull.requested_reviewers.append(graft.simulator.user("asked"))
        await graft.simulator.review(pull, user="octocat", state="COMMENTED")  # the author
        await graft.settled()
        assert await rows(graft, REVIEWERS) == [("asked", "request", True)]
        [run] = [r for r in graft.repository.runs_at(pull.head_sha) if r.name == "graft/intent"]
        graft.simulator.press_button(run.id, run.actions[0]["identifier"], user="voter")
        await graft.simulator.review(pull, user="rev")
        await graft.simulator.review(pull, user="helper[bot]", state="COMMENTED")
        await graft.settled()
        assert await rows(graft, REVIEWERS) == [("asked", "request", True)], "once an hour"
        await forget_the_hour(graft)
        await graft.settled()
        assert await rows(graft, REVIEWERS) == [
            ("asked", "request", True),
            ("rev", "review", True),
            ("voter", "vote", False),
        ], "whoever came within the hour was kept for the next one"


async def test_a_refusal_is_remembered_and_a_confirmation_too(graft: World) -> None:
    graft.commit("feature", CHANGE)
    pull = await graft.open()
    await graft.settled()
    graft.simulator.set_permission(graft.repository, "rev", "write")
    graft.simulator.faults.fail(PERMISSION, status=404, message="Not Found", times=1)
    await graft.simulator.review(pull, user="gone")
    await graft.settled()
    assert await rows(graft, "SELECT status FROM reviewer_check_denials") == [(404,)]
    before = permission_reads(graft)
    await graft.simulator.review(pull, user="rev")
    for _ in range(3):
        await forget_the_hour(graft)
        await graft.settled()
        await graft.simulator.review(pull, user="rev")
        await graft.settled()
    assert permission_reads(graft) == before + 1, "one question about the new reviewer, none about the others"
    assert await rows(graft, REVIEWERS) == [("rev", "review", True)]


async def test_a_failure_on_the_way_does_not_cost_the_hour(graft: World) -> None:
    graft.commit("feature", CHANGE)
    pull = await graft.open()
    await graft.settled()
    graft.simulator.set_permission(graft.repository, "rev", "write")
    graft.simulator.faults.fail(PERMISSION, status=502, message="Bad Gateway", times=1)
    await graft.simulator.review(pull, user="rev")
    await graft.settled()
    assert await rows(graft, REVIEWERS) == [("rev", "review", True)]


# --------------------------------------------------------------------------------------------------- incidents

INCIDENTS = """
    SELECT issue_number, culprit_pr_number, fix_pr_number FROM incidents WHERE removed_at IS NULL
     ORDER BY issue_number
"""


async def test_a_labelled_issue_is_an_incident_with_culprit_and_fix(graft: World) -> None:
    graft.commit("feature", CHANGE)
    culprit = await graft.open()
    issue = graft.simulator.open_issue(
        graft.repository, body=f"The shop is down. Caused by #{culprit.number}."
    )
    await graft.simulator.label(issue, "Incident")
    await graft.settled()
    assert await rows(graft, INCIDENTS) == [(issue.number, culprit.number, None)]
    graft.commit("fix", {"src/app.py": "def main():\n    return 1\n"})
    fix = await graft.open("fix", body=f"Fixes #{issue.number}")
    graft.simulator.close_issue(issue)
    await graft.settled()
    assert await rows(graft, INCIDENTS) == [(issue.number, culprit.number, fix.number)]
    await graft.simulator.label(fix, "incident")
    await graft.settled()
    assert await rows(graft, INCIDENTS) == [(issue.number, culprit.number, fix.number)], "never counted twice"
    await graft.simulator.unlabel(issue, "Incident")
    await graft.simulator.unlabel(fix, "incident")
    await graft.settled()
    assert await rows(graft, INCIDENTS) == []


async def test_no_text_of_an_issue_is_kept(graft: World) -> None:
    issue = graft.simulator.open_issue(graft.repository, title="Secret words", body="Caused by #1, zanzibar")
    await graft.simulator.label(issue, "incident")
    await graft.settled()
    [row] = await graft.pool.fetch("SELECT incidents::text AS everything FROM incidents")
    assert "zanzibar" not in row["everything"]
    assert "Secret" not in row["everything"]


# ------------------------------------------------------------------------------------------ calls, daily numbers


async def test_requests_are_counted_for_the_pull_requests_repository(make_world: MakeWorld) -> None:
    async with make_world(model=agreeable_model()) as graft:
        graft.commit("feature", CHANGE)
        await graft.open()
        await graft.settled()
        sent = len([r for r in graft.simulator.requests if "/pulls/" in r.route or "/check-runs" in r.route])
        repository = graft.repository.id
        services = graft.daemon.services
        now = datetime.now(UTC)
        scope = Scope(since=now - timedelta(days=1), until=now + timedelta(days=1))
        await LeadActor(services).sweeps["rollup"][1]()
        async with graft.pool.acquire() as connection:
            days = await rollups.find(connection, scope)
        assert sum(day.counts.cards for day in days) == 1
        assert sum(day.counts.heads for day in days) == 1
        assert sum(len(day.counts.latencies) for day in days) == 1
        assert sum(day.counts.llm_calls for day in days) == 3
        url = services.settings.database_url.value
    # Counts are written down when the daemon stops.
    reader = await database.open_pool(url, size=1)
    try:
        calls = await reader.fetch("SELECT repository_id, calls FROM api_calls")
    finally:
        await reader.close()
    assert {row["repository_id"] for row in calls} == {repository}
    assert sum(row["calls"] for row in calls) >= sent


async def test_the_ledger_counts_pull_requests_only_and_keeps_what_it_could_not_write(pool: Pool) -> None:
    async with pool.acquire() as connection:
        await installations.ensure(connection, 7, 70, "octo/demo")
    now = datetime(2026, 12, 1, 23, 59, tzinfo=UTC)
    ledger = CallLedger(pool, now=lambda: now)

    async def work(address: str, times: int) -> None:
        working_for.set(address)
        for _ in range(times):
            # In a task of its own, as a request in a gather is.
            await asyncio.create_task(ask())

    async def ask() -> None:
        ledger.count("repos", "GET", 200, 0.1, 7)

    await asyncio.gather(
        asyncio.create_task(work("pull.70.1", 3)),
        asyncio.create_task(work("pull.70.2", 2)),
        asyncio.create_task(work("repository.70", 5)),
        asyncio.create_task(work("installation.7", 5)),
    )
    await ask()
    await pool.execute("ALTER TABLE api_calls RENAME TO elsewhere")
    await ledger.flush()
    await pool.execute("ALTER TABLE elsewhere RENAME TO api_calls")
    await ledger.flush()
    await ledger.flush()
    assert [tuple(r) for r in await pool.fetch("SELECT repository_id, day, calls FROM api_calls")] == [
        (70, now.date(), 5)
    ]


# -------------------------------------------------------------------------------------------------- offboarding


async def fill(graft: World) -> None:
    """Give every table that the pipeline writes something of this installation."""
    issue = graft.simulator.open_issue(graft.repository)
    graft.commit("feature", CHANGE, message=AGENT)
    pull = await graft.open()
    await graft.settled()
    for login in ("rev", "gone"):
        graft.simulator.set_permission(graft.repository, login, "write")
    graft.simulator.faults.fail(PERMISSION, status=404, message="Not Found", times=1)
    await graft.simulator.review(pull, user="gone")
    await graft.settled()
    [run] = [r for r in graft.repository.runs_at(pull.head_sha) if r.name == "graft/intent"]
    graft.simulator.press_button(run.id, run.actions[0]["identifier"], user="rev")
    await graft.simulator.label(issue, "incident")
    await graft.settled()
    await forget_the_hour(graft)
    await graft.settled()
    await LeadActor(graft.daemon.services).sweeps["rollup"][1]()


# What no webhook makes: by commands, by a later phase, only for moments, or only at a failure.
NOT_BY_THE_PIPELINE = {
    "review_time_runs",
    "review_time_prs",
    "guard_events",
    "spend_reservations",
    "pending_votes",
    "recoveries",
    "api_calls",
}


async def fill_the_rest(graft: World) -> None:
    repository = graft.repository
    assert repository.installation is not None
    await graft.pool.execute(
        """
        INSERT INTO review_time_runs (id, repository_id, period, from_date, to_date)
        VALUES ('00000000-0000-0000-0000-000000000001', $1, 'baseline', '2026-01-01', '2026-02-01')
        """,
        repository.id,
    )
    await graft.pool.execute(
        """
        INSERT INTO review_time_prs (run_id, pr_number, author_kind, start_basis, started_at)
        VALUES ('00000000-0000-0000-0000-000000000001', 1, 'human', 'opened', now())
        """
    )
    await graft.pool.execute(
        "INSERT INTO guard_events (repository_id, status) VALUES ($1, 'x')", repository.id
    )
    await graft.pool.execute(
        "INSERT INTO spend_reservations (repository_id, purpose, model, estimate_usd) VALUES ($1, 'w', 'm', 1)",
        repository.id,
    )
    await graft.pool.execute(
        """
        INSERT INTO pending_votes (delivery_id, installation_id, repository_id, check_run_id, user_id, user_login,
                                   user_is_bot, verdict, voted_at)
        VALUES ('x', $1, $2, 1, 1, 'a', false, 'wrong', now())
        """,
        repository.installation.id,
        repository.id,
    )
    await graft.pool.execute(
        "INSERT INTO recoveries (delivery_id, tries) SELECT delivery_id, 1 FROM webhook_deliveries LIMIT 1"
    )
    await graft.pool.execute(
        "INSERT INTO api_calls (repository_id, day, calls) VALUES ($1, now(), 1)", repository.id
    )


async def everything_left(pool: Pool, ids: set[int]) -> dict[str, int]:
    """{table: rows} of whatever names one of these ids in any bigint column, looked up in the catalogue: not the way
    in which the purge itself looks."""
    columns = await pool.fetch(
        """
        SELECT table_name, column_name FROM information_schema.columns
         WHERE table_schema = current_schema() AND column_name IN ('installation_id', 'repository_id')
           AND table_name NOT IN ('pilot_purges')
        """
    )
    found = {}
    for row in columns:
        count = await pool.fetchval(
            f"SELECT count(*) FROM {row['table_name']} WHERE {row['column_name']} = ANY($1::bigint[])",
            list(ids),
        )
        if count:
            found[row["table_name"]] = count
    for table in await pool.fetch("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"):
        name = table["tablename"]
        if name in {"partitions", "replicas", "schema_version", "pilot_purges", "work"}:
            continue
        if count := await pool.fetchval(f"SELECT count(*) FROM {name}"):
            found[name] = count
    return found


async def test_a_purge_leaves_nothing_of_a_database_filled_by_the_pipeline(make_world: MakeWorld) -> None:
    async with make_world(model=agreeable_model()) as graft:
        installation = graft.repository.installation
        assert installation is not None
        await fill(graft)
        async with graft.pool.acquire() as connection:
            filled = await purge.count(connection, installation.id)
        assert set(filled) | NOT_BY_THE_PIPELINE >= set(purge.COVERED) - {"work"}, "every table had something"
        await fill_the_rest(graft)
        async with graft.pool.acquire() as connection:
            assert set(await purge.count(connection, installation.id)) >= set(purge.COVERED) - {"work"}
        outcome = await purge_everywhere(
            graft.pool, graft.daemon.services.bus, installation.id, reason="test"
        )
        assert outcome.rows_left == {}
        assert outcome.rows_deleted["intent_cards"] == 1
        assert await everything_left(graft.pool, {installation.id, graft.repository.id}) == {}
        records = await rows(graft, "SELECT installation_id, reason FROM pilot_purges")
        assert records == [(installation.id, "test")]


async def test_a_late_trigger_of_a_purged_installation_makes_no_work(make_world: MakeWorld) -> None:
    async with make_world() as graft:
        installation = graft.repository.installation
        assert installation is not None
        graft.commit("feature", CHANGE)
        pull = await graft.open()
        await graft.settled()
        await purge_everywhere(graft.pool, graft.daemon.services.bus, installation.id, reason="test")
        await graft.simulator.edit(pull, title="Late")
        await graft.settled()
        assert await rows(graft, "SELECT status, reason FROM webhook_deliveries") == [("ignored", "purged")]
        assert await rows(graft, "SELECT count(*) FROM installations") == [(0,)]
        # The hourly sweep notices, and the installation's actor removes that, too.
        graft.simulator.uninstall(installation)
        await graft.settled()
        await LeadActor(graft.daemon.services).sweeps["purge"][1]()
        await graft.settled()
        assert await everything_left(graft.pool, {installation.id, graft.repository.id}) == {}


@pytest.mark.parametrize(("days", "left"), [("0", 0), ("30", 1)])
async def test_a_deleted_installation_is_purged_after_its_grace_period(
    make_world: MakeWorld, days: str, left: int
) -> None:
    async with make_world(GRAFT_PURGE_AFTER_DAYS=days) as graft:
        installation = graft.repository.installation
        assert installation is not None
        graft.commit("feature", CHANGE)
        await graft.open()
        await graft.settled()
        graft.simulator.uninstall(installation)
        await graft.settled()
        assert await graft.pool.fetchval("SELECT count(*) FROM installations") == left
        if left:
            sweep = LeadActor(graft.daemon.services).sweeps["purge"][1]
            await sweep()
            await graft.settled()
            assert await graft.pool.fetchval("SELECT count(*) FROM installations") == 1, "not yet"
            await graft.pool.execute("UPDATE installations SET deleted_at = now() - interval '31 days'")
            await sweep()
            await graft.settled()
        assert await everything_left(graft.pool, {installation.id, graft.repository.id}) == {}
        assert await rows(graft, "SELECT reason FROM pilot_purges") == [("installation_deleted",)]


async def test_an_installation_that_is_back_is_not_purged(make_world: MakeWorld) -> None:
    """The row says deleted for long, the API says otherwise: nothing is removed on the row's word alone."""
    async with make_world() as graft:
        installation = graft.repository.installation
        assert installation is not None
        graft.commit("feature", CHANGE)
        await graft.open()
        await graft.settled()
        await graft.pool.execute("UPDATE installations SET deleted_at = now() - interval '90 days'")
        await LeadActor(graft.daemon.services).sweeps["purge"][1]()
        await graft.settled()
        assert await graft.pool.fetchval("SELECT count(*) FROM changes") == 1


async def test_a_purge_while_a_card_is_being_written_leaves_nothing(make_world: MakeWorld) -> None:
    """The actor holds an answer for an installation that is gone: it must not bring rows back."""
    model = agreeable_model().hold()
    async with make_world(model=model) as graft:
        installation = graft.repository.installation
        assert installation is not None
        graft.commit("feature", CHANGE)
        await graft.open()
        await asyncio.wait_for(model.started.wait(), 20)
        await purge_everywhere(graft.pool, graft.daemon.services.bus, installation.id, reason="test")
        model.release()
        await graft.settled()
        assert await everything_left(graft.pool, {installation.id, graft.repository.id}) == {}


async def test_an_incident_whose_text_was_edited_is_linked_by_the_daily_sweep(graft: World) -> None:
    issue = graft.simulator.open_issue(graft.repository)
    await graft.simulator.label(issue, "incident")
    await graft.settled()
    assert await rows(graft, INCIDENTS) == [(issue.number, None, None)]
    issue.body = "Caused by #12"  # an edit sends nothing that Graft listens to
    await LeadActor(graft.daemon.services).sweeps["rollup"][1]()
    await graft.settled()
    assert await rows(graft, INCIDENTS) == [(issue.number, 12, None)]
