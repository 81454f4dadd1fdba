"""Typed reads, against the simulated GitHub and against documents of odd forms."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from graft.changes import Person
from graft.git import Entry, Kind
from graft.git import Repository as LocalRepository
from graft.github import (
    CommitFiles,
    GitHub,
    GitHubRefused,
    GitHubUnavailable,
    Installation,
    NotFound,
    Pace,
    comment,
    installations,
    issues,
    pulls,
    repositories,
)
from graft.simulator import Pull, Repository, Simulator
from graft.simulator.demo_repository import RepositoryBuilder, Special

NAME = "octo/shop"
POLICY = b"version: 1\n"


@pytest.fixture
def builder(tmp_path: Path) -> RepositoryBuilder:
    builder = RepositoryBuilder(path=tmp_path / "r.git")
    base = builder.commit(
        "main",
        {
            "graft.yaml": POLICY,
            "link.yaml": Special(mode="120000", content="graft.yaml"),
            ".github/graft.yml/nested": "x",
            "vendor": Special(mode="160000", content="1" * 40),
            "big.bin": b"x" * 2_000,
            ".intent/a/1.md": "one",
            ".intent/a/b/2.md": "two",
            "odd #?%.txt": "odd",
        },
    )
    builder.commit("feature", {"a.py": "1\n"}, parent=base)
    builder.commit("feat/a#b", {"b.py": "1\n"}, parent=base)
    return builder


@pytest.fixture
async def sim(builder: RepositoryBuilder) -> AsyncIterator[Simulator]:
    async with Simulator() as sim:
        sim.add_repository(NAME, builder.path)
        yield sim


@pytest.fixture
def repository(sim: Simulator) -> Repository:
    return next(iter(sim.world.repositories.values()))


@pytest.fixture
async def hub(sim: Simulator) -> AsyncIterator[GitHub]:
    async with GitHub(
        app_id=sim.app.id, private_key=sim.private_key, api_url=sim.base_url, pace=Pace(interval=0)
    ) as github:
        yield github


@pytest.fixture
def client(hub: GitHub, repository: Repository) -> Installation:
    assert repository.installation is not None
    return hub.installation(repository.installation.id)


@pytest.fixture
async def pull(sim: Simulator, repository: Repository) -> Pull:
    return await sim.open_pull(
        repository, head="feature", base="main", title="T", body="B", labels=["bug"], author="mona"
    )


async def test_a_pull_request(client: Installation, pull: Pull, repository: Repository) -> None:
    found = await pulls.read_pull(client, NAME, pull.issue.number)
    assert found.is_open
    assert not found.is_fork
    assert (found.id, found.repository_id, found.repository_full_name) == (pull.id, repository.id, NAME)
    assert (found.title, found.body, found.labels) == ("T", "B", ("bug",))
    assert (found.head_sha, found.head_ref, found.base_ref) == (pull.head_sha, "feature", "main")
    assert found.counts == pulls.Counts(additions=1, deletions=0, changed_files=1)
    assert isinstance(found.author, Person)
    assert found.author.login == "mona"
    assert not found.author.is_bot


async def test_a_pull_request_from_a_fork(
    sim: Simulator, client: Installation, repository: Repository
) -> None:
    pull = await sim.open_pull(repository, head="feature", base="main", fork="mallory")
    assert (await pulls.read_pull(client, NAME, pull.issue.number)).is_fork


async def test_a_pull_request_that_is_not_there(client: Installation) -> None:
    with pytest.raises(NotFound):
        await pulls.read_pull(client, NAME, 999)


async def test_open_pull_requests_of_a_branch(
    sim: Simulator, client: Installation, repository: Repository, pull: Pull
) -> None:
    closed = await sim.open_pull(repository, head="feature", base="main")
    await sim.close(closed)
    await sim.open_pull(repository, head="feat/a#b", base="feature")
    found = await pulls.list_open_pulls(client, NAME, base="main")
    assert [(p.number, p.head_sha) for p in found] == [(pull.issue.number, pull.head_sha)]
    assert found.complete
    assert len(await pulls.list_open_pulls(client, NAME)) == 2


async def test_reviews_and_requested_reviewers(sim: Simulator, client: Installation, pull: Pull) -> None:
    await sim.review(pull, user="rita")
    (review,) = await pulls.list_reviews(client, NAME, pull.issue.number)
    assert review.user is not None
    assert (review.state, review.user.login, review.commit_id) == ("APPROVED", "rita", pull.head_sha)
    assert await pulls.read_requested_reviewers(client, NAME, pull.issue.number) == pulls.RequestedReviewers()


async def test_a_branch_is_read_as_it_is_now(
    sim: Simulator, client: Installation, repository: Repository, builder: RepositoryBuilder, pull: Pull
) -> None:
    new = builder.commit("main", {"new.txt": "n"})
    await sim.push(repository, "main")
    assert await repositories.read_branch_head(client, NAME, "main") == new
    assert await repositories.read_branch_head(client, NAME, "feat/a#b") == builder.tip("feat/a#b")
    for missing in ("mai", "feat", "main/x"):
        with pytest.raises(NotFound):
            await repositories.read_branch_head(client, NAME, missing)
    with pytest.raises(GitHubRefused):
        await repositories.read_branch_head(client, NAME, "a/../main")


async def test_a_repository_by_its_id_and_by_its_old_name(
    sim: Simulator, client: Installation, repository: Repository, pull: Pull
) -> None:
    found = await repositories.read_repository(client, repository.id)
    assert (found.id, found.full_name, found.default_branch) == (repository.id, NAME, "main")
    sim.rename(repository, "store")
    assert (await repositories.read_repository(client, repository.id)).full_name == "octo/store"
    assert (await pulls.read_pull(client, NAME, pull.issue.number)).repository_full_name == "octo/store"


async def test_a_permission(client: Installation, repository: Repository) -> None:
    found = await repositories.read_permission(client, NAME, "octo")
    assert found is not None
    assert found.permission in ("admin", "write", "read", "none")


async def test_issues_and_reactions(
    sim: Simulator, client: Installation, repository: Repository, pull: Pull
) -> None:
    issue = sim.open_issue(repository, title="I", body=None)
    made = await issues.read_issue(client, NAME, issue.number)
    assert (made.title, made.body, made.state, made.is_pull) == ("I", "", "open", False)
    assert (await issues.read_issue(client, NAME, pull.issue.number)).is_pull
    written = await comment.upsert(
        client,
        NAME,
        pull.issue.number,
        comment.Author(app_id=sim.app.id),
        sections={"intent": "i"},
        footer="f",
    )
    assert written is not None
    sim.react(written.id, "+1", user="rita")
    sim.react(written.id, "heart", user="mona")
    found = await issues.list_comment_reactions(client, NAME, written.id)
    assert [(r.content, r.user.login if r.user else None) for r in found] == [
        ("+1", "rita"),
        ("heart", "mona"),
    ]
    sim.unreact(written.id, "+1", user="rita")
    assert len(await issues.list_comment_reactions(client, NAME, written.id)) == 1


async def test_the_app_and_its_installations(sim: Simulator, hub: GitHub, client: Installation) -> None:
    app = await installations.read_app(hub.app)
    assert (app.id, app.slug) == (sim.app.id, sim.app.slug)
    (listed,) = await installations.list_installations(hub.app)
    found = await installations.read_installation(hub.app, listed.id)
    assert found == listed
    assert found.account is not None
    assert (found.account.login, found.suspended_at) == ("octo", None)
    assert [r.full_name for r in await installations.list_installation_repositories(client)] == [NAME]


async def test_deliveries_are_listed_and_sent_again(
    sim: Simulator, hub: GitHub, repository: Repository
) -> None:
    sim.faults.swallow_deliveries = 9
    sim.app.webhook_url = "http://127.0.0.1:1/"
    await sim.open_pull(repository, head="feature", base="main")
    await sim.drain()
    found = [delivery async for delivery in installations.list_deliveries(hub.app)]
    assert found[0].event == "pull_request"
    await installations.redeliver(hub.app, found[0].id)
    await sim.drain()
    again = [delivery async for delivery in installations.list_deliveries(hub.app)]
    assert [d.redelivery for d in again if d.guid == found[0].guid] == [True, False]


# --- files of a commit -----------------------------------------------------------------------------------


@pytest.fixture
def files(client: Installation, builder: RepositoryBuilder) -> CommitFiles:
    return CommitFiles(client, NAME, builder.tip("main") or "")


PATHS = [
    "graft.yaml",
    "link.yaml",
    ".github",
    ".github/graft.yml",
    ".github/graft.yml/nested",
    "vendor",
    "vendor/inside",
    "graft.yaml/inside",
    "none",
    "none/inside",
    "odd #?%.txt",
]


async def test_it_says_what_git_says(files: CommitFiles, builder: RepositoryBuilder) -> None:
    local, commit = LocalRepository.open(builder.path), builder.tip("main") or ""
    assert await files.entries(PATHS) == {path: local.entries(commit, [path])[path] for path in PATHS}
    for path in PATHS:
        assert await files.file(path) == local.file(commit, path)
    assert (await files.entries(["link.yaml"]))["link.yaml"].kind is Kind.SYMLINK


@pytest.mark.parametrize("directory", ["", ".intent", ".intent/a/", "none", "graft.yaml"])
@pytest.mark.parametrize("recursive", [True, False])
async def test_a_listing_is_gits(
    files: CommitFiles, builder: RepositoryBuilder, directory: str, recursive: bool
) -> None:
    local = LocalRepository.open(builder.path)
    theirs = local.listing(builder.tip("main") or "", directory, recursive=recursive)
    ours = await files.listing(directory, recursive=recursive)
    if directory != "graft.yaml":
        assert {e.path: e for e in ours} == {e.path: e for e in theirs}
    else:
        assert ours == ()


async def test_a_file_has_a_bound(files: CommitFiles) -> None:
    found = await files.file("big.bin", limit=1_999)
    assert (found.problem, found.data) == ("too_large", None)
    assert (await files.files(["big.bin", "graft.yaml"], limit=2_000))["big.bin"].data == b"x" * 2_000


async def test_contents_of_a_listing_are_read_by_name(
    files: CommitFiles, builder: RepositoryBuilder, sim: Simulator
) -> None:
    listed = await files.listing(recursive=True)
    before = len(sim.requests)
    found = await files.contents(listed, limit=1_999)
    local, commit = LocalRepository.open(builder.path), builder.tip("main") or ""
    theirs = local.files(commit, [entry.path for entry in listed], limit=1_999)
    assert found == {file.sha: file.data for file in theirs.values() if file.data is not None}
    assert "big.bin" not in {entry.path for entry in listed if entry.sha in found}
    assert all("git/blobs" in r.route for r in list(sim.requests)[before:])


async def test_a_failure_among_many_reads_stops_the_others(stub: Any, github: GitHub) -> None:
    entries = [
        Entry(path=f"{number}", kind=Kind.FILE, sha=f"{number:040}", size=1, mode="100644")
        for number in range(50)
    ]
    stub.on("GET /repos/octo/shop/git/blobs/" + f"{0:040}", {"status": 403, "json": {}})
    for number in range(1, 50):
        stub.on(f"GET /repos/octo/shop/git/blobs/{number:040}", {"body": "x"})
    with pytest.raises(GitHubRefused):
        await CommitFiles(github.installation(9), NAME, "a" * 40).contents(entries)
    assert len(stub.seen) < 50


async def test_each_directory_is_asked_for_once(files: CommitFiles, sim: Simulator) -> None:
    await files.entries([".intent/a/1.md", ".intent/a/b/2.md", "graft.yaml", ".intent/none", ".intent/a"])
    asked = [r for r in sim.requests if "git/trees" in r.route]
    assert len(asked) == 4


async def test_a_commit_that_is_not_there(client: Installation) -> None:
    with pytest.raises(NotFound):
        await CommitFiles(client, NAME, "0" * 40).file("graft.yaml")


TREE = "GET /repos/octo/shop/git/trees/" + "a" * 40


async def test_a_truncated_directory_is_unreadable_not_empty(stub: Any, github: GitHub) -> None:
    stub.on(TREE, {"json": {"tree": [], "truncated": True}})
    files = CommitFiles(github.installation(9), NAME, "a" * 40)
    assert (await files.file("graft.yaml")).problem == "unreadable"
    with pytest.raises(GitHubRefused) as caught:
        await files.entries(["graft.yaml"])
    assert caught.value.reason == "tree_truncated"


@pytest.mark.parametrize(
    ("status", "problem"), [(404, "unreadable"), (422, "unreadable"), (410, "unreadable")]
)
async def test_a_blob_that_github_does_not_give(stub: Any, github: GitHub, status: int, problem: str) -> None:
    node = {"path": "graft.yaml", "mode": "100644", "type": "blob", "sha": "b" * 40, "size": 5}
    stub.on(TREE, {"json": {"tree": [node]}})
    stub.on("GET /repos/octo/shop/git/blobs/" + "b" * 40, {"status": status, "json": {}})
    found = await CommitFiles(github.installation(9), NAME, "a" * 40).file("graft.yaml")
    assert (found.problem, found.data) == (problem, None)


async def test_a_blob_larger_than_its_tree_says_is_not_kept(stub: Any, github: GitHub) -> None:
    node = {"path": "graft.yaml", "mode": "100644", "type": "blob", "sha": "b" * 40, "size": 5}
    stub.on(TREE, {"json": {"tree": [node]}})
    stub.on("GET /repos/octo/shop/git/blobs/" + "b" * 40, {"body": b"x" * 100_000})
    found = await CommitFiles(github.installation(9), NAME, "a" * 40).file("graft.yaml", limit=50_000)
    assert found.problem == "too_large"


# --- documents of odd forms ------------------------------------------------------------------------------


def pull_document(**fields: Any) -> dict[str, Any]:
    return {
        "id": 1,
        "number": 7,
        "state": "open",
        "title": "t",
        "body": None,
        "user": None,
        "labels": [{"name": "a", "new": 1}, {}],
        "head": {"sha": "a" * 40, "ref": "x", "repo": None},
        "base": {"sha": "b" * 40, "ref": "main", "repo": {"id": 3, "full_name": NAME}},
        "additions": 0,
        "deletions": 0,
        "changed_files": 0,
        "created_at": "2026-12-01T00:00:00Z",
        "updated_at": "2026-12-01T00:00:00Z",
        "merged_at": None,
        **fields,
    }


async def test_a_pull_request_of_a_deleted_fork_and_author(stub: Any, github: GitHub) -> None:
    stub.on("GET /repos/octo/shop/pulls/7", {"json": pull_document()})
    found = await pulls.read_pull(github.installation(9), NAME, 7)
    assert (found.author, found.head_repository_id, found.body, found.labels) == (None, None, "", ("a", ""))
    assert found.is_fork


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("head", {}),
        ("base", {"ref": "main", "repo": None}),
        ("additions", "many"),
        ("updated_at", "yesterday"),
    ],
)
async def test_what_a_pull_request_must_have(stub: Any, github: GitHub, field: str, value: Any) -> None:
    stub.on("GET /repos/octo/shop/pulls/7", {"json": pull_document(**{field: value})})
    with pytest.raises(GitHubUnavailable, match=field) as caught:
        await pulls.read_pull(github.installation(9), NAME, 7)
    assert "many" not in str(caught.value)
    assert "yesterday" not in str(caught.value)


async def test_an_issue_with_labels_of_both_forms_that_was_deleted_later(stub: Any, github: GitHub) -> None:
    document = {
        "id": 1,
        "number": 2,
        "state": "closed",
        "title": "t",
        "labels": ["bug", {"name": "x"}],
        "created_at": "2026-12-01T00:00:00Z",
    }
    stub.on("GET /repos/octo/shop/issues/2", {"json": document}, {"status": 410, "json": {}})
    assert (await issues.read_issue(github.installation(9), NAME, 2)).labels == ("bug", "x")
    with pytest.raises(GitHubRefused) as caught:
        await issues.read_issue(github.installation(9), NAME, 2)
    assert caught.value.reason == "gone"


async def test_a_permission_of_somebody_unknown(stub: Any, github: GitHub) -> None:
    stub.on("GET /repos/octo/shop/collaborators/x/permission", {"status": 404, "json": {}})
    assert await repositories.read_permission(github.installation(9), NAME, "x") is None
