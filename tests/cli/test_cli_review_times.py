"""Baseline and shadow against a simulated GitHub: what is measured, resumed, waited out and written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from graft.cli import review_times as commands
from graft.cli.main import main
from graft.cli.measuring import Measuring, Told
from graft.cli.review_times import read_calendar
from graft.config import AppSettings
from graft.database import Connection, Pool
from graft.errors import ConfigError, TransientError
from graft.github import GitHub, GitHubUnavailable
from graft.pilot.review_time import Calendar, Measured
from graft.simulator import Pull, Repository, Simulator
from graft.simulator.demo_repository import RepositoryBuilder
from graft.store import installations, review_times

T0 = datetime(2026, 11, 2, 9, tzinfo=UTC)
FIRST, LAST = date(2026, 11, 2), date(2026, 11, 30)


Measure = Callable[..., Awaitable[dict[int, Measured]]]


class Clock:
    def __init__(self) -> None:
        self.now = T0

    def at(self, hours: float) -> None:
        self.now = T0 + timedelta(hours=hours)


class Stage:
    """A repository whose history is made by moving the clock."""

    def __init__(
        self, simulator: Simulator, repository: Repository, builder: RepositoryBuilder, clock: Clock
    ):
        self.simulator, self.repository, self.builder, self.clock = simulator, repository, builder, clock

    async def open(
        self, number: int, *, files: dict[str, str] | None = None, message: str = "x", **fields: object
    ) -> Pull:
        sha = self.builder.commit(
            f"b{number}",
            dict(files or {f"f{number}.py": "x\n"}),
            message=message,
            parent=self.builder.tip("main"),
        )
        return await self.simulator.open_pull(self.repository, head=sha, head_ref=f"b{number}", **fields)  # type: ignore[arg-type]


@pytest.fixture
async def stage(tmp_path: Path, pool: Pool) -> AsyncIterator[Stage]:
    clock = Clock()
    async with Simulator(now=lambda: clock.now.timestamp()) as simulator:
        builder = RepositoryBuilder(path=tmp_path / "r.git")
        builder.commit("main", {"a.py": "1\n"}, message="Start")
        repository = simulator.add_repository("octo/demo", builder.path)
        assert repository.installation is not None
        async with pool.acquire() as connection:
            await installations.ensure(connection, repository.installation.id, repository.id, "octo/demo")
        yield Stage(simulator, repository, builder, clock)


async def history(stage: Stage) -> None:
    """Five pull requests, each of its own kind."""
    simulator, clock = stage.simulator, stage.clock
    plain = await stage.open(1, author="ann")
    draft = await stage.open(2, author="ann", draft=True)
    agent = await stage.open(
        3, author="ann", message="x\n\nGraft-Agent: claude-code\n", files={"package.json": "{}\n"}
    )
    bot = await stage.open(4, author="dependabot[bot]")
    revert = await stage.open(5, author="ann", title='Revert "Add x"')
    clock.at(4)
    await simulator.review(plain, user="ben")
    await simulator.review(draft, user="ben")  # too early
    clock.at(10)
    await simulator.set_draft(draft, False)
    clock.at(12)
    await simulator.review(draft, user="cat")
    await simulator.review(agent, user="ann")  # the author's own
    await simulator.close(plain, merged=True, sender="ben")
    clock.at(20)
    await simulator.close(agent, merged=True, sender="ann")
    await simulator.close(revert)
    assert bot.issue.state == "open"


def app_settings(simulator: Simulator, url: str) -> AppSettings:
    return AppSettings.from_env(
        {
            "DATABASE_URL": url,
            "GITHUB_APP_ID": str(simulator.app.id),
            "GITHUB_APP_PRIVATE_KEY": simulator.private_key,
            "GITHUB_API_URL": simulator.base_url,
        }
    )


@pytest.fixture
def measure(stage: Stage, pool: Pool, database_url: str) -> Measure:
    async def run(**options: object) -> dict[int, Measured]:
        chosen: dict[str, object] = {"calendar": Calendar(), "period": "baseline", **options}
        # The App's tokens are checked against the simulated clock.
        stage.clock.now = datetime.now(UTC)
        async with pool.acquire() as connection:
            rows = await commands.run(
                connection,
                app_settings(stage.simulator, database_url),
                str(chosen.pop("period")),
                "octo/demo",
                FIRST,
                LAST,
                chosen.pop("calendar"),  # type: ignore[arg-type]
                **chosen,  # type: ignore[arg-type]
            )
        return {row.pr_number: row for row in rows}

    return run


HOUR = 3_600


async def test_each_pull_request_is_measured_by_the_rules(stage: Stage, measure: Measure) -> None:
    await history(stage)
    rows: dict[int, Measured] = await measure()
    told = {
        n: (r.author_kind, r.risk_class, r.start_basis, r.first_review_seconds, r.merge_seconds, r.excluded)
        for n, r in rows.items()
    }
    assert told == {
        1: ("human", "trivial", "opened", 4 * HOUR, 12 * HOUR, None),
        2: ("human", "trivial", "ready_for_review", 2 * HOUR, None, None),
        3: ("agent", "sensitive", "opened", None, 20 * HOUR, "self_merged"),
        4: ("human", "trivial", "opened", None, None, "automation"),  # a bot with a person's commits
        5: ("human", "trivial", "opened", None, None, "revert"),
    }
    assert rows[3].changed_files == 1


async def test_only_those_opened_in_the_range_are_measured(stage: Stage, measure: Measure) -> None:
    stage.clock.now = datetime(2026, 11, 1, 23, 59, tzinfo=UTC)
    await stage.open(1)
    stage.clock.now = datetime(2026, 11, 2, tzinfo=UTC)
    await stage.open(2)
    stage.clock.now = datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC)
    await stage.open(3)
    stage.clock.now = datetime(2026, 12, 1, tzinfo=UTC)
    await stage.open(4)
    assert set(await measure()) == {2, 3}
    # In Zurich, the first was opened on the second already, and the third in December.
    zurich = Calendar(zone="Europe/Zurich")
    assert set(await measure(period="shadow", calendar=zurich)) == {1, 2}


async def test_an_interrupted_run_goes_on_where_it_stopped(
    stage: Stage, measure: Measure, pool: Pool
) -> None:
    await history(stage)
    # All tries for the third pull request fail.
    stage.simulator.faults.fail(
        "GET /repos/{owner}/{repo}/pulls/{number}/reviews", status=500, message="x", times=1
    )
    heard: list[Told] = []
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    settings = app_settings(stage.simulator, "postgresql://a@b/c")
    stage.clock.now = datetime.now(UTC)

    async def go(connection: Connection) -> list[Measured]:
        row = await review_times.begin(connection, stage.repository.id, "baseline", FIRST, LAST, {})
        assert stage.repository.installation is not None
        async with GitHub(
            app_id=settings.github_app_id,
            private_key=settings.github_app_private_key.value,
            api_url=settings.github_api_url,
        ) as github:
            measuring = Measuring(
                client=github.installation(stage.repository.installation.id),
                full_name="octo/demo",
                repository_id=stage.repository.id,
                connection=connection,
                calendar=Calendar(),
                tell=heard.append,
                sleep=sleep,
            )
            return await measuring.run(
                row, since=datetime(2026, 11, 2, tzinfo=UTC), until=datetime(2026, 12, 1, tzinfo=UTC)
            )

    async with pool.acquire() as connection:
        assert len(await go(connection)) == 5
        assert len(waited) == 1, "one failure was waited out"
        await connection.execute("UPDATE review_time_runs SET finished_at = NULL")
        await connection.execute("DELETE FROM review_time_prs WHERE pr_number > 2")
        stage.simulator.faults.fail(
            "GET /repos/{owner}/{repo}/pulls/{number}", status=500, message="x", times=20
        )
        with pytest.raises(GitHubUnavailable):
            await go(connection)
        stage.simulator.faults.clear()
        before = len(stage.simulator.requests)
        assert len(await go(connection)) == 5
    asked = [r for r in list(stage.simulator.requests)[before:] if r.route.endswith("/pulls/{number}")]
    assert len(asked) == 3, "the two that were measured are not read again"
    assert heard[-1].done == heard[-1].total == 5
    assert all(not told.waiting for told in heard[-3:])


async def test_a_limit_is_waited_out_and_a_reserve_is_left(stage: Stage, pool: Pool) -> None:
    await history(stage)
    installation = stage.repository.installation
    assert installation is not None
    stage.clock.now = datetime.now(UTC)
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        installation.used = 0

    installation.hourly_limit, installation.used = 600, 98
    installation.reset_at = int(stage.clock.now.timestamp()) + 900
    settings = app_settings(stage.simulator, "postgresql://a@b/c")
    async with (
        pool.acquire() as connection,
        GitHub(
            app_id=settings.github_app_id,
            private_key=settings.github_app_private_key.value,
            api_url=settings.github_api_url,
        ) as github,
    ):
        row = await review_times.begin(connection, stage.repository.id, "baseline", FIRST, LAST, {})
        measuring = Measuring(
            client=github.installation(installation.id),
            full_name="octo/demo",
            repository_id=stage.repository.id,
            connection=connection,
            calendar=Calendar(),
            sleep=sleep,
        )
        rows = await measuring.run(
            row, since=datetime(2026, 11, 2, tzinfo=UTC), until=datetime(2026, 12, 1, tzinfo=UTC)
        )
    assert len(rows) == 5
    assert waited
    assert all(800 < seconds <= 905 for seconds in waited)


async def test_the_calendar_of_a_run_cannot_change_half_way(
    stage: Stage, measure: Measure, pool: Pool
) -> None:
    await history(stage)
    await measure()
    await pool.execute("UPDATE review_time_runs SET finished_at = NULL")
    other = Calendar(zone="Europe/Zurich", first_hour=9, last_hour=17)
    with pytest.raises(ConfigError, match="--restart"):
        await measure(calendar=other)
    rows: dict[int, Measured] = await measure(calendar=other, restart=True)
    # Monday 9:00 UTC is 10:00 in Zurich; twelve hours later the day's seven working hours are over.
    assert (rows[1].first_review_seconds, rows[1].merge_seconds) == (4 * HOUR, 7 * HOUR)


async def test_a_finished_run_is_measured_afresh(stage: Stage, measure: Measure) -> None:
    pull = await stage.open(1, author="ann")
    first: dict[int, Measured] = await measure()
    assert first[1].first_review_seconds is None
    stage.clock.at(5)
    await stage.simulator.review(pull, user="ben")
    second: dict[int, Measured] = await measure()
    assert second[1].first_review_seconds == 5 * HOUR


async def test_a_repository_nobody_knows(measure: Measure, pool: Pool) -> None:
    await pool.execute("DELETE FROM installations")
    with pytest.raises(ConfigError, match="octo/demo"):
        await measure()


@pytest.mark.parametrize(
    ("zone", "hours", "weekdays", "calendar"),
    [
        ("UTC", None, "mon-fri", Calendar()),
        ("Europe/Zurich", "9-17", "mon-fri", Calendar(zone="Europe/Zurich", first_hour=9, last_hour=17)),
        ("UTC", "0-24", "sun-tue, thu", Calendar(first_hour=0, last_hour=24, weekdays=(0, 1, 3, 6))),
        ("UTC", None, "SAT", Calendar(weekdays=(5,))),
    ],
)
def test_calendars(zone: str, hours: str | None, weekdays: str, calendar: Calendar) -> None:
    assert read_calendar(zone, hours, weekdays) == calendar


@pytest.mark.parametrize(
    ("zone", "hours", "weekdays", "option"),
    [
        ("Mars/Base", None, "mon-fri", "--time-zone"),
        ("../../etc/passwd", None, "mon-fri", "--time-zone"),
        ("UTC", "17-9", "mon-fri", "--hours"),
        ("UTC", "9-25", "mon-fri", "--hours"),
        ("UTC", "nine", "mon-fri", "--hours"),
        ("UTC", None, "mo-fr", "--weekdays"),
        ("UTC", None, "", "--weekdays"),
    ],
)
def test_bad_calendars_name_the_option(zone: str, hours: str | None, weekdays: str, option: str) -> None:
    with pytest.raises(click.UsageError, match=option):
        read_calendar(zone, hours, weekdays)


def test_the_file_names_rules_and_settings() -> None:
    document = json.loads(commands._document("shadow", "octo/demo", FIRST, LAST, Calendar(), []))
    assert document["from"] == "2026-11-02"
    assert "Left out" in document["rules"]
    assert document["calendar"]["zone"] == "UTC"
    assert document["pull_requests"] == []


def test_transient_is_what_the_command_catches() -> None:
    assert issubclass(GitHubUnavailable, TransientError)


async def test_the_command_writes_a_file_and_says_what_it_found(
    stage: Stage, database_url: str, tmp_path: Path
) -> None:
    await history(stage)
    stage.clock.now = datetime.now(UTC)
    out = tmp_path / "out" / "baseline.json"
    out.parent.mkdir()
    settings = {
        "DATABASE_URL": database_url,
        "GITHUB_APP_ID": str(stage.simulator.app.id),
        "GITHUB_APP_PRIVATE_KEY": stage.simulator.private_key,
        "GITHUB_API_URL": stage.simulator.base_url,
    }
    arguments = ["baseline", "octo/demo", "--from", str(FIRST), "--to", str(LAST), "--out", str(out)]
    result = await asyncio.to_thread(CliRunner().invoke, main, arguments, env=settings)
    assert result.exit_code == 0, result.output
    assert "5 pull requests measured" in result.output
    assert "all · before: not enough data (n = 2 pull requests, 10 needed)" in result.output
    document = json.loads(out.read_text(encoding="utf-8"))
    assert [row["pr_number"] for row in document["pull_requests"]] == [1, 2, 3, 4, 5]
    assert [path.name for path in out.parent.iterdir()] == ["baseline.json"]
    refused = await asyncio.to_thread(
        CliRunner().invoke, main, [*arguments, "--hours", "9-17", "--time-zone", "Asia/Tokyo"], env=settings
    )
    assert refused.exit_code == 2
    assert "--restart" in refused.output
    stage.simulator.faults.refuse_app_key = True
    failed = await asyncio.to_thread(CliRunner().invoke, main, arguments, env=settings)
    assert failed.exit_code == 2
    assert "GITHUB_APP_PRIVATE_KEY" in failed.output
    assert stage.simulator.private_key[40:80] not in failed.output
