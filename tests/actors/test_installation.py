"""Installations and repositories: every event in any order ends with what the API says."""

from __future__ import annotations

from graft.simulator.demo_repository import RepositoryBuilder

from .world import World

CHANGE = {"src/app.py": "def main():\n    return 2\n"}


async def opened(graft: World, branch: str = "feature") -> None:
    graft.commit(branch, CHANGE)
    await graft.open(branch)
    await graft.settled()


async def test_a_pull_request_before_its_installation_creates_what_it_needs(graft: World) -> None:
    await opened(graft)
    row = await graft.pool.fetchrow("SELECT * FROM repositories")
    assert (row["full_name"], row["installation_id"]) == ("octo/demo", graft.repository.installation.id)  # type: ignore[union-attr]


async def test_an_installation_is_described_as_the_api_has_it(graft: World) -> None:
    other = RepositoryBuilder(path=graft.builder.path.parent / "other.git")
    other.commit("main", {"a": "b"})
    second = graft.simulator.add_repository("octo/other", other.path, installed=False)
    installation = graft.repository.installation
    assert installation is not None
    graft.simulator.grant_repositories(installation, [second])
    await graft.settled()
    rows = await graft.pool.fetch("SELECT full_name, removed_at FROM repositories ORDER BY full_name")
    assert [(row["full_name"], row["removed_at"]) for row in rows] == [
        ("octo/demo", None),
        ("octo/other", None),
    ]
    graft.simulator.withdraw_repositories(installation, [second])
    await graft.settled()
    removed = await graft.pool.fetchval("SELECT removed_at FROM repositories WHERE full_name = 'octo/other'")
    assert removed is not None


async def test_a_late_added_after_deleted_does_not_bring_it_back(graft: World) -> None:
    installation = graft.repository.installation
    assert installation is not None
    graft.simulator.grant_repositories(installation, [graft.repository])
    await graft.settled()
    [added] = [d for d in graft.simulator.deliveries if d.event == "installation_repositories"]
    graft.simulator.uninstall(installation)
    await graft.settled()
    graft.simulator.send("installation_repositories", added.payload, installation=installation)
    await graft.settled()
    row = await graft.pool.fetchrow("SELECT * FROM installations")
    assert row["deleted_at"] is not None
    assert await graft.pool.fetchval("SELECT bool_and(removed_at IS NOT NULL) FROM repositories")


async def test_a_suspended_installation_is_parked_and_goes_on_when_it_is_back(graft: World) -> None:
    installation = graft.repository.installation
    assert installation is not None
    graft.simulator.suspend(installation)
    await graft.settled()
    graft.commit("feature", CHANGE)
    pull = await graft.open()
    await graft.simulator.drain()
    left = await graft.pool.fetchval(
        "SELECT count(*) FROM work WHERE address LIKE 'pull.%' AND dead_at IS NOT NULL"
    )
    assert left == 0
    assert graft.comments(pull) == []
    graft.simulator.unsuspend(installation)
    await graft.settled()
    # The simulator tells nobody of a pull request while the App is suspended; the next event does.
    await graft.simulator.edit(pull, title="Another title")
    await graft.settled()
    assert len(graft.comments(pull)) == 1


async def test_a_renamed_repository_keeps_its_row_and_its_comment(graft: World) -> None:
    graft.commit("feature", CHANGE)
    pull = await graft.open()
    await graft.settled()
    graft.simulator.rename(graft.repository, "renamed")
    await graft.settled()
    assert await graft.pool.fetchval("SELECT full_name FROM repositories") == "octo/renamed"
    head = graft.commit("feature", {"src/app.py": "def main():\n    return 3\n"})
    await graft.simulator.synchronize(pull, head)
    await graft.settled()
    assert len(graft.comments(pull)) == 1
    assert head[:7] in graft.comment(pull)


async def test_a_removed_repository_gets_no_more_output(graft: World) -> None:
    graft.commit("feature", CHANGE)
    pull = await graft.open()
    await graft.settled()
    [event] = [d for d in graft.simulator.deliveries if d.event == "pull_request"]
    installation = graft.repository.installation
    assert installation is not None
    graft.simulator.withdraw_repositories(installation, [graft.repository])
    await graft.settled()
    before = len(graft.simulator.requests)
    graft.simulator.send("pull_request", event.payload, installation=installation)
    await graft.settled()
    writes = [r for r in list(graft.simulator.requests)[before:] if r.method in ("PATCH", "DELETE")]
    assert writes == []
    assert len(graft.comments(pull)) == 1


async def test_a_pull_request_of_an_app_installed_again_does_not_wait_for_the_news(graft: World) -> None:
    await opened(graft)
    installation = graft.repository.installation
    assert installation is not None
    graft.simulator.uninstall(installation)
    await graft.settled()
    graft.simulator.faults.swallow_deliveries = 1  # the news of the new installation never comes
    graft.simulator.install("octo", [graft.repository])
    graft.commit("again", {"src/app.py": "def main():\n    return 4\n"})
    pull = await graft.open("again")
    await graft.settled()
    assert len(graft.comments(pull)) == 1
    row = await graft.pool.fetchrow("SELECT * FROM repositories")
    assert graft.repository.installation is not None
    assert (row["installation_id"], row["removed_at"]) == (graft.repository.installation.id, None)
