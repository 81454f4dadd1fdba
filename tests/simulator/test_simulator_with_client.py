"""Graft's own GitHub client against the simulator: what the daemon will do, without the daemon."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from graft.github import (
    AmbiguousWrite,
    CommitFiles,
    GitHub,
    Installation,
    InstallationUnavailable,
    RateLimited,
    checks,
    comment,
    pulls,
    repositories,
    snapshot,
)
from graft.simulator import Pull, Simulator
from graft.simulator.demo_repository import DemoRepository, RepositoryBuilder

SHOP = "octo/shop"


@pytest.fixture
async def pull(real_time: Simulator, demo: DemoRepository) -> Pull:
    repo = real_time.add_repository(SHOP, demo.path)
    return await real_time.open_pull(repo, head="feature", title=demo.title, body=demo.body)


@pytest.fixture
async def installation(real_time: Simulator, pull: Pull) -> AsyncIterator[Installation]:
    assert pull.repository.installation is not None
    async with GitHub(
        app_id=real_time.app.id, private_key=real_time.private_key, api_url=real_time.base_url
    ) as github:
        yield github.installation(pull.repository.installation.id)


async def test_a_change_is_read_and_published(
    real_time: Simulator, pull: Pull, installation: Installation, demo: DemoRepository
) -> None:
    read = await pulls.read_pull(installation, SHOP, pull.number)
    base = await repositories.read_branch_head(installation, SHOP, read.base_ref)
    change = await snapshot.read_snapshot(
        installation, SHOP, base_sha=base, head_sha=read.head_sha, number=read.number, expected=read.counts
    )
    assert (change.base_sha, change.head_sha, change.incomplete) == (demo.base, demo.head, ())
    assert (len(change.files), len(change.commits)) == (4, 3)
    readme = await CommitFiles(installation, SHOP, base).file("README.md")
    assert readme.data is not None
    assert readme.data.startswith(b"# Shop")

    author = comment.Author(app_id=real_time.app.id, slug=real_time.app.slug)
    for text, written in (("one", True), ("two", True), ("two", False)):
        sections = {"intent": f"### Intent\n\n{text}"}
        done = await comment.upsert(
            installation, SHOP, pull.number, author, sections=sections, footer="from a test"
        )
        assert done is not None
        assert done.written is written
    assert len(pull.issue.comments) == 1
    document = checks.payload(
        name="graft/intent",
        head_sha=read.head_sha,
        external_id="card-1",
        output=checks.Output(title="Logic", summary="A card"),
        actions=[checks.Action(label="Accurate", description="It is right", identifier="accurate")],
    )
    run = (await checks.upsert(installation, SHOP, document, run=None)).run
    listed = await checks.list_ours(installation, SHOP, read.head_sha, app_id=real_time.app.id)
    assert [each.id for each in listed] == [run.id]


async def test_a_comment_stored_behind_a_504_is_found_again(
    real_time: Simulator, pull: Pull, installation: Installation
) -> None:
    author = comment.Author(app_id=real_time.app.id, slug=real_time.app.slug)
    real_time.faults.fail_after("POST /repos/{owner}/{repo}/issues/{number}/comments")
    sections = {"intent": "### Intent\n\nonce"}
    with pytest.raises(AmbiguousWrite):
        await comment.upsert(installation, SHOP, pull.number, author, sections=sections, footer="f")
    again = await comment.upsert(installation, SHOP, pull.number, author, sections=sections, footer="f")
    assert again is not None
    assert again.written is False
    assert len(pull.issue.comments) == 1


async def test_limits_and_suspension_are_told_apart(
    real_time: Simulator, pull: Pull, installation: Installation
) -> None:
    assert pull.repository.installation is not None
    real_time.faults.secondary_limit(pull.repository.installation, retry_after="7", status=429)
    with pytest.raises(RateLimited):
        await pulls.read_pull(installation, SHOP, pull.number)
    real_time.suspend(pull.repository.installation)
    async with GitHub(
        app_id=real_time.app.id, private_key=real_time.private_key, api_url=real_time.base_url
    ) as fresh:
        with pytest.raises(InstallationUnavailable):
            await pulls.read_pull(fresh.installation(pull.repository.installation.id), SHOP, pull.number)


async def test_long_lists_and_former_names_are_followed(
    real_time: Simulator, installation: Installation, tmp_path: Path
) -> None:
    builder = RepositoryBuilder(path=tmp_path / "wide.git")
    base = builder.commit("main", {"seed": "a\n"})
    head = builder.commit("wide", {f"f{n:03}": f"{n}\n" for n in range(350)}, parent=base)
    repo = real_time.add_repository("octo/wide", builder.path)
    wide = await real_time.open_pull(repo, head="wide")
    real_time.rename(repo, "broad")
    read = await pulls.read_pull(installation, "octo/wide", wide.number)
    assert read.repository_full_name == "octo/broad"
    change = await snapshot.read_snapshot(
        installation,
        "octo/wide",
        base_sha=base,
        head_sha=head,
        number=wide.number,
        expected=read.counts,
    )
    assert (len(change.files), change.additions) == (350, 350)
