"""The referee: `githubkit`, generated from GitHub's OpenAPI description, must accept every answer as typed data."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from githubkit import AppAuthStrategy, GitHub, Response, TokenAuthStrategy
from githubkit.exception import RequestFailed
from githubkit_schemas.latest import models
from yarl import URL

from graft.simulator import Pull, Repository, Simulator
from graft.simulator.demo_repository import DemoRepository, RepositoryBuilder, Special

from .conftest import Api

Kit = GitHub[TokenAuthStrategy]
OWNER, REPO = "octo", "shop"


def rows(answer: Response[Any, Any]) -> list[Any]:
    """A typed list, for a type checker that cannot read the client's own annotation of one."""
    return list(answer.parsed_data)


async def test_the_app_and_its_installations(
    real_time: Simulator, app_kit: GitHub[AppAuthStrategy], demo: DemoRepository
) -> None:
    repo = real_time.add_repository("octo/shop", demo.path)
    assert repo.installation is not None
    app = (await app_kit.rest.apps.async_get_authenticated()).parsed_data
    assert app is not None
    assert (app.id, app.slug) == (real_time.app.id, "graft")
    listed = (await app_kit.rest.apps.async_list_installations()).parsed_data
    assert [each.id for each in listed] == [repo.installation.id]
    one = (await app_kit.rest.apps.async_get_installation(repo.installation.id)).parsed_data
    assert one.app_id == app.id
    assert one.permissions.checks == "write"
    found = (await app_kit.rest.apps.async_get_repo_installation(OWNER, REPO)).parsed_data
    assert found.id == one.id
    made = (await app_kit.rest.apps.async_create_installation_access_token(one.id)).parsed_data
    assert made.token.startswith(f"ghs_{app.id}_")
    assert len(made.token) > 40
    # The typed client gets and uses an installation token of its own.
    installed = app_kit.with_auth(app_kit.auth.as_installation(one.id))
    repositories = (await installed.rest.apps.async_list_repos_accessible_to_installation()).parsed_data
    assert [each.full_name for each in repositories.repositories] == ["octo/shop"]
    limits = (await installed.rest.rate_limit.async_get()).parsed_data
    assert limits.resources.core.limit == 5000


async def test_the_hook_log(
    real_time: Simulator, app_kit: GitHub[AppAuthStrategy], demo: DemoRepository
) -> None:
    real_time.app.webhook_url = "http://127.0.0.1:9/closed"
    repo = real_time.add_repository("octo/shop", demo.path)
    await real_time.open_pull(repo, head="feature")
    await real_time.drain()
    listed = (await app_kit.rest.apps.async_list_webhook_deliveries()).parsed_data
    assert [(each.event, each.action, each.status_code) for each in listed] == [("pull_request", "opened", 0)]
    one = (await app_kit.rest.apps.async_get_webhook_delivery(listed[0].id)).parsed_data
    assert one.guid == listed[0].guid
    assert one.request.payload is not None
    asked = await app_kit.rest.apps.async_redeliver_webhook_delivery(listed[0].id)
    assert asked.status_code == 202
    config = (await app_kit.rest.apps.async_get_webhook_config_for_app()).parsed_data
    assert config.url == "http://127.0.0.1:9/closed"


async def test_repositories(kit: Kit, repo: Repository, sim: Simulator) -> None:
    found = (await kit.rest.repos.async_get(OWNER, REPO)).parsed_data
    assert (found.id, found.default_branch) == (repo.id, "main")
    sim.set_permission(repo, "mona", "maintain")
    held = (await kit.rest.repos.async_get_collaborator_permission_level(OWNER, REPO, "mona")).parsed_data
    assert (held.permission, held.role_name) == ("write", "maintain")
    branch = (await kit.rest.repos.async_get_branch(OWNER, REPO, "main")).parsed_data
    assert branch.commit.sha == repo.branches["main"]
    reference = (await kit.rest.git.async_get_ref(OWNER, REPO, "heads/main")).parsed_data
    assert reference.object_.sha == repo.branches["main"]


async def test_pull_requests(kit: Kit, repo: Repository, pull: Pull, demo: DemoRepository) -> None:
    one = (await kit.rest.pulls.async_get(OWNER, REPO, pull.number)).parsed_data
    assert (one.head.sha, one.base.sha, one.base.ref) == (demo.head, demo.base, "main")
    assert (one.commits, one.changed_files) == (3, 4)
    assert (one.title, one.body, one.user.login) == (demo.title, demo.body, "mona")
    listed = rows(await kit.rest.pulls.async_list(OWNER, REPO, base="main"))
    assert [each.number for each in listed] == [pull.number]
    assert (await kit.rest.pulls.async_list(OWNER, REPO, base="other")).parsed_data == []
    files = rows(await kit.rest.pulls.async_list_files(OWNER, REPO, pull.number))
    assert sum(each.additions for each in files) == one.additions
    assert all(each.contents_url.endswith(f"?ref={demo.head}") for each in files)
    commits = rows(await kit.rest.pulls.async_list_commits(OWNER, REPO, pull.number))
    assert len(commits) == 3
    assert commits[-1].sha == demo.head
    assert "Graft-Agent: claude-code" in commits[0].commit.message


async def test_reviews(kit: Kit, sim: Simulator, pull: Pull) -> None:
    review = await sim.review(pull, user="hubot", body="Fine")
    await sim.dismiss_review(pull, review)
    listed = rows(await kit.rest.pulls.async_list_reviews(OWNER, REPO, pull.number))
    assert [(each.state, each.commit_id) for each in listed] == [("DISMISSED", pull.head_sha)]
    pull.requested_reviewers.append(sim.user("mona"))
    asked = (await kit.rest.pulls.async_list_requested_reviewers(OWNER, REPO, pull.number)).parsed_data
    assert [each.login for each in asked.users] == ["mona"]


async def test_comparisons_and_commits(kit: Kit, pull: Pull, demo: DemoRepository) -> None:
    basehead = f"{demo.base}...{demo.head}"
    compared = (await kit.rest.repos.async_compare_commits(OWNER, REPO, basehead)).parsed_data
    assert compared.merge_base_commit.sha == demo.base
    assert (compared.status, compared.ahead_by, compared.total_commits) == ("ahead", 3, 3)
    assert isinstance(compared.files, list)
    assert len(compared.files) == 4
    one = (await kit.rest.repos.async_get_commit(OWNER, REPO, demo.head)).parsed_data
    assert isinstance(one.files, list)
    assert [each.filename for each in one.files] == ["docs/coupons.md"]


async def test_the_git_database(kit: Kit, repo: Repository, demo: DemoRepository) -> None:
    commit = (await kit.rest.git.async_get_commit(OWNER, REPO, demo.head)).parsed_data
    tree = (await kit.rest.git.async_get_tree(OWNER, REPO, commit.tree.sha, recursive="1")).parsed_data
    assert tree.truncated is False
    row = next(each for each in tree.tree if each.path == "shop/auth.py")
    blob = (await kit.rest.git.async_get_blob(OWNER, REPO, row.sha)).parsed_data
    assert blob.size == row.size


async def test_issues_comments_and_reactions(kit: Kit, sim: Simulator, pull: Pull) -> None:
    issues, reactions = kit.rest.issues, kit.rest.reactions
    issue = (await issues.async_get(OWNER, REPO, pull.number)).parsed_data
    assert issue.pull_request
    await sim.label(pull, "needs care")
    labels = rows(await issues.async_list_labels_on_issue(OWNER, REPO, pull.number))
    assert [each.name for each in labels] == ["needs care"]
    made = (await issues.async_create_comment(OWNER, REPO, pull.number, body="## Graft")).parsed_data
    assert made.performed_via_github_app
    assert made.performed_via_github_app.id == sim.app.id
    assert made.user is not None
    assert (made.user.login, made.user.type) == ("graft[bot]", "Bot")
    by_person = sim.comment(pull, "Thanks", user="mona")
    listed = rows(await issues.async_list_comments(OWNER, REPO, pull.number))
    assert [(each.id, each.performed_via_github_app is None) for each in listed] == [
        (made.id, False),
        (by_person.id, True),
    ]
    changed = (await issues.async_update_comment(OWNER, REPO, made.id, body="## Graft 2")).parsed_data
    assert changed.body == "## Graft 2"
    assert (await issues.async_get_comment(OWNER, REPO, made.id)).parsed_data.body == "## Graft 2"
    sim.react(made.id, "+1", user="mona")
    own = await reactions.async_create_for_issue_comment(OWNER, REPO, made.id, content="eyes")
    assert own.parsed_data.content == "eyes"
    found = (await reactions.async_list_for_issue_comment(OWNER, REPO, made.id)).parsed_data
    assert [(each.content, each.user.login) for each in found if each.user] == [
        ("+1", "mona"),
        ("eyes", "graft[bot]"),
    ]
    assert (await issues.async_delete_comment(OWNER, REPO, made.id)).status_code == 204
    with pytest.raises(RequestFailed) as refused:
        await issues.async_get_comment(OWNER, REPO, made.id)
    assert refused.value.response.status_code == 404


async def test_checks(kit: Kit, repo: Repository, pull: Pull) -> None:
    checks = kit.rest.checks
    made = (
        await checks.async_create(
            OWNER,
            REPO,
            data={
                "name": "graft/intent",
                "head_sha": pull.head_sha,
                "status": "completed",
                "conclusion": "neutral",
                "completed_at": datetime(2026, 11, 1, tzinfo=UTC),
                "external_id": "card-1",
                "output": {"title": "Logic", "summary": "A card", "text": "More"},
                "actions": [{"label": "Accurate", "description": "It is right", "identifier": "accurate"}],
            },
        )
    ).parsed_data
    assert (made.external_id, made.conclusion, made.output.title) == ("card-1", "neutral", "Logic")
    assert [each.number for each in made.pull_requests] == [pull.number]
    changed = (
        await checks.async_update(OWNER, REPO, made.id, data={"output": {"title": "New", "summary": "s"}})
    ).parsed_data
    assert (changed.output.title, changed.output.text) == ("New", "More")
    assert (await checks.async_get(OWNER, REPO, made.id)).parsed_data.id == made.id
    listed = (await checks.async_list_for_ref(OWNER, REPO, pull.head_sha)).parsed_data
    assert [each.id for each in listed.check_runs] == [made.id]
    assert made.check_suite is not None
    suite = (await checks.async_get_suite(OWNER, REPO, made.check_suite.id)).parsed_data
    assert (suite.head_sha, suite.head_branch, suite.latest_check_runs_count) == (pull.head_sha, "feature", 1)
    in_suite = (await checks.async_list_for_suite(OWNER, REPO, suite.id)).parsed_data
    assert in_suite.total_count == 1
    suites = (await checks.async_list_suites_for_ref(OWNER, REPO, "feature")).parsed_data
    assert suites.total_count == 1


async def test_contents(kit: Kit, repo: Repository) -> None:
    repos = kit.rest.repos
    file = (await repos.async_get_content(OWNER, REPO, "shop/auth.py", ref="feature")).parsed_data
    assert isinstance(file, models.ContentFile)
    assert b"login.lower()" in base64.b64decode(file.content)
    directory = (await repos.async_get_content(OWNER, REPO, "shop")).parsed_data
    assert isinstance(directory, list)
    assert [each.path for each in directory] == [
        "shop/__init__.py",
        "shop/auth.py",
        "shop/basket.py",
        "shop/coupons.py",
    ]


async def test_links_and_submodules(sim: Simulator, api: Api, tmp_path: Path) -> None:
    builder = RepositoryBuilder(path=tmp_path / "odd.git")
    builder.commit(
        "main",
        {
            "there.txt": "here",
            "nowhere": Special(mode="120000", content="missing.txt"),
            "link": Special(mode="120000", content="there.txt"),
            "lib": Special(mode="160000", content="1" * 40),
            ".gitmodules": '[submodule "lib"]\n\tpath = lib\n\turl = https://example.com/lib.git\n',
        },
    )
    odd = sim.add_repository("octo/odd", builder.path)
    assert odd.installation is not None
    token = await api.token(odd.installation.id)
    async with GitHub(token, base_url=sim.base_url, http_cache=False, trust_env=False) as kit:
        repos = kit.rest.repos
        dangling = (await repos.async_get_content(OWNER, "odd", "nowhere")).parsed_data
        assert isinstance(dangling, models.ContentSymlink)
        assert dangling.target == "missing.txt"
        followed = (await repos.async_get_content(OWNER, "odd", "link")).parsed_data
        assert isinstance(followed, models.ContentFile)
        assert base64.b64decode(followed.content) == b"here"
        submodule = (await repos.async_get_content(OWNER, "odd", "lib")).parsed_data
        assert isinstance(submodule, models.ContentSubmodule)
        assert submodule.submodule_git_url == "https://example.com/lib.git"


async def test_a_manifest_becomes_credentials(sim: Simulator, api: Api) -> None:
    manifest = {
        "name": "Graft here",
        "url": "https://graft.example",
        "redirect_url": "http://127.0.0.1:1/back",
        "hook_attributes": {"url": "http://127.0.0.1:1/hook"},
        "default_permissions": {"checks": "write"},
        "default_events": ["pull_request"],
    }
    form = urlencode({"manifest": json.dumps(manifest)})
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    page = f"{sim.base_url}/settings/apps/new?state=abc"
    async with api.session.post(page, data=form, headers=headers, allow_redirects=False) as answer:
        assert answer.status == 302
        back = URL(answer.headers["Location"])
    assert back.query["state"] == "abc"
    async with GitHub(base_url=sim.base_url, http_cache=False, auto_retry=False, trust_env=False) as kit:
        made = (await kit.rest.apps.async_create_from_manifest(back.query["code"])).parsed_data
        assert (made.id, made.pem, made.webhook_secret) == (
            sim.app.id,
            sim.private_key,
            sim.app.webhook_secret,
        )
        assert (made.name, made.events) == ("Graft here", ["pull_request"])
        with pytest.raises(RequestFailed):
            await kit.rest.apps.async_create_from_manifest(back.query["code"])
