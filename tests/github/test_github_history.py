"""The past of a repository as the simulated GitHub tells it through the real client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from graft.github import GitHub, Installation, history, hook, snapshot
from graft.simulator import Repository, Simulator
from graft.simulator.demo_repository import RepositoryBuilder


class Clock:
    def __init__(self) -> None:
        self.now = datetime.now(UTC).replace(microsecond=0)

    def __call__(self) -> float:
        return self.now.timestamp()


Place = tuple[Simulator, Repository, Installation, RepositoryBuilder, Clock]


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    clock = Clock()
    async with Simulator(now=clock) as simulator:
        builder = RepositoryBuilder(path=tmp_path / "r.git")
        builder.commit("main", {"a.py": "1\n"}, message="Start")
        repository = simulator.add_repository("octo/demo", builder.path)
        assert repository.installation is not None
        async with GitHub(
            app_id=simulator.app.id, private_key=simulator.private_key, api_url=simulator.base_url
        ) as github:
            yield simulator, repository, github.installation(repository.installation.id), builder, clock


async def opened(place: Place, number: int, **fields: object) -> object:
    simulator, repository, _, builder, _ = place
    sha = builder.commit(
        f"b{number}", {f"f{number}.py": "x\n"}, message=f"Add f{number}", parent=builder.tip("main")
    )
    return await simulator.open_pull(repository, head=sha, head_ref=f"b{number}", **fields)  # type: ignore[arg-type]


async def test_pulls_of_a_range_whatever_became_of_them(place: Place) -> None:
    simulator, repository, client, _, clock = place
    first = clock.now
    for number in range(1, 6):
        await opened(place, number)
        clock.now += timedelta(days=1)
    clock.now = first
    for number in (2, 3):
        pull = repository.issues[number].pull
        assert pull is not None
        await simulator.close(pull, merged=number == 3)
    found = [
        each.number
        async for each in history.pulls_opened(
            client, "octo/demo", since=first + timedelta(days=1), until=first + timedelta(days=4)
        )
    ]
    assert found == [4, 3, 2]


async def test_reading_stops_where_the_range_begins(place: Place) -> None:
    simulator, _, client, _, clock = place
    first = clock.now
    for number in range(1, 131):
        if number <= 125:
            await opened(place, number)
    clock.now = first + timedelta(seconds=1)
    await opened(place, 126)
    before = len(simulator.requests)
    since = first + timedelta(seconds=1)
    found = [
        p.number
        async for p in history.pulls_opened(client, "octo/demo", since=since, until=since + timedelta(days=1))
    ]
    assert found == [126]
    listed = [r for r in list(simulator.requests)[before:] if r.route.endswith("/pulls")]
    assert len(listed) == 1, "the second page is older than the range"


async def test_a_timeline_tells_drafts_and_mentions(place: Place) -> None:
    simulator, repository, client, _, clock = place
    clock.now -= timedelta(hours=2)  # tokens are judged by this clock when they are used, at the end
    issue = simulator.open_issue(repository, title="Down", body="Caused by #2")
    pull = await opened(place, 2, draft=True, body=f"Fixes #{issue.number}")
    clock.now += timedelta(hours=1)
    await simulator.set_draft(pull, False)  # type: ignore[arg-type]
    clock.now += timedelta(hours=1)
    await simulator.set_draft(pull, True)  # type: ignore[arg-type]
    events = await history.timeline(client, "octo/demo", 2)
    assert [event.kind for event in events] == ["cross-referenced", "ready_for_review", "convert_to_draft"]
    assert [event.at for event in events if event.at] == sorted(event.at for event in events if event.at)
    [mention] = await history.timeline(client, "octo/demo", issue.number)
    assert mention.source is not None
    assert (mention.source.number, mention.source.is_pull, mention.source.repository) == (
        2,
        True,
        "octo/demo",
    )


async def test_labelled_issues_and_pull_requests_open_or_closed(place: Place) -> None:
    simulator, repository, client, _, _ = place
    issue, other = simulator.open_issue(repository), simulator.open_issue(repository)
    pull = await opened(place, 3)
    await simulator.label(issue, "Incident")
    await simulator.label(other, "bug")
    await simulator.label(pull, "incident")  # type: ignore[arg-type]
    simulator.close_issue(issue)
    found = await history.labelled(client, "octo/demo", "incident")
    assert [(each.number, each.is_pull) for each in found] == [(3, True), (1, False)]
    assert found.complete
    cut = await history.labelled(client, "octo/demo", "incident", limit=1)
    assert not cut.complete


async def test_files_and_commits_of_a_merged_pull_request(place: Place) -> None:
    """A comparison with the base branch of today would be empty."""
    simulator, _, client, _, _ = place
    pull = await opened(place, 1)
    await simulator.close(pull, merged=True)  # type: ignore[arg-type]
    files = await snapshot.list_files(client, "octo/demo", 1)
    assert [(f.path, f.status, f.additions) for f in files] == [("f1.py", "added", 1)]
    assert files.complete
    commits = await snapshot.list_commits(client, "octo/demo", 1)
    assert [c.message.strip() for c in commits] == ["Add f1"]


async def test_the_apps_webhook_and_githubs_clock(place: Place) -> None:
    simulator, _, _, _, clock = place
    simulator.app.webhook_url = "https://graft.example/webhooks/github"
    async with GitHub(
        app_id=simulator.app.id, private_key=simulator.private_key, api_url=simulator.base_url
    ) as github:
        config = await hook.read_hook_config(github.app)
        assert (config.url, config.verifies) == ("https://graft.example/webhooks/github", True)
        skew = await hook.clock_skew(github.app, now=clock() + 7)
        assert skew is not None
        assert 6 <= skew <= 8
