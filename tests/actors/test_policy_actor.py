"""Provenance and policy through the actor: triggers, storage, and nothing published that has not changed."""

from __future__ import annotations

import json

from graft.testing import agreeable_model

from .conftest import MakeWorld
from .world import World

CHANGE = {"src/app.py": "def main():\n    return 2\n"}
POLICY = """\
version: 1
rules:
  - name: docs only
    when: {paths: {only: ["**/*.md"]}}
    then: approve
  - name: labelled
    when: {labels: {any: [careful]}}
    then: block
"""


async def verdicts(graft: World) -> list[tuple[str, str]]:
    rows = await graft.pool.fetch("SELECT policy_status, outcome FROM policy_verdicts ORDER BY evaluated_at")
    return [tuple(row) for row in rows]


async def push_main(graft: World, files: dict[str, str | None]) -> None:
    graft.builder.commit("main", files)
    await graft.simulator.push(graft.repository, "main")
    await graft.settled()


async def test_a_push_that_touches_the_policy_evaluates_open_pull_requests_again(graft: World) -> None:
    graft.commit("feature", CHANGE)
    pull = await graft.open()
    await graft.settled()
    assert await verdicts(graft) == [("none", "none")]
    await push_main(graft, {"graft.yaml": POLICY})
    assert await verdicts(graft) == [("none", "none"), ("valid", "review")]
    assert "docs only" in graft.comment(pull)


async def test_a_push_that_does_not_touch_it_asks_nobody(graft: World) -> None:
    graft.commit("feature", CHANGE)
    await graft.open()
    await graft.settled()
    await push_main(graft, {"README.md": "# One\n"})  # the first push only takes note of what is there
    before = len(graft.simulator.requests)
    await push_main(graft, {"README.md": "# Two\n"})
    routes = [r.route for r in list(graft.simulator.requests)[before:]]
    assert not any("/pulls/" in route or "comments" in route for route in routes)


async def test_labels_matter_where_a_rule_uses_them(graft: World) -> None:
    graft.builder.commit("main", {"graft.yaml": POLICY})
    await graft.simulator.push(graft.repository, "main")
    graft.commit("feature", CHANGE)
    pull = await graft.open()
    await graft.settled()
    await graft.simulator.label(pull, "careful")
    await graft.settled()
    await graft.simulator.unlabel(pull, "careful")
    await graft.settled()
    assert [outcome for _, outcome in await verdicts(graft)] == ["review", "block", "review"]
    before = len(graft.simulator.requests)
    await graft.simulator.label(pull, "unused")
    await graft.settled()
    assert all(r.method == "GET" for r in list(graft.simulator.requests)[before:])


async def test_a_retarget_is_judged_by_the_new_bases_policy(graft: World) -> None:
    main = graft.builder.tip("main")
    graft.builder.commit("release", {"graft.yaml": "version: 1\ndefault: block\n"}, parent=main)
    await graft.simulator.push(graft.repository, "release")
    graft.commit("feature", CHANGE)
    pull = await graft.open()
    await graft.settled()
    await graft.simulator.retarget(pull, "release")
    await graft.settled()
    assert (await verdicts(graft))[-1] == ("valid", "block")


async def test_the_pull_requests_own_policy_has_no_say(graft: World) -> None:
    graft.builder.commit("main", {"graft.yaml": "version: 1\ndefault: review\n"})
    await graft.simulator.push(graft.repository, "main")
    graft.commit("feature", {"graft.yaml": "version: 1\ndefault: approve\n"})
    pull = await graft.open()
    await graft.settled()
    assert (await verdicts(graft))[-1] == ("valid", "review")
    row = await graft.pool.fetchrow("SELECT * FROM policy_verdicts")
    assert "policy_touched" in row["guards"]
    assert graft.checks(pull)["graft/intent"].startswith("Risk sensitive")


async def test_an_invalid_policy_is_published_as_the_command_line_says_it(graft: World) -> None:
    from graft.policy import parse

    text = "version: 1\nrules: 7\n"
    graft.builder.commit("main", {"graft.yaml": text})
    await graft.simulator.push(graft.repository, "main")
    graft.commit("feature", CHANGE)
    pull = await graft.open()
    await graft.settled()
    [problem] = parse(text.encode()).problems
    assert str(problem) in graft.comment(pull)
    assert (await verdicts(graft))[-1] == ("invalid", "none")


async def test_nothing_of_the_file_is_stored_but_hash_and_codes(graft: World) -> None:
    graft.builder.commit("main", {"graft.yaml": POLICY})
    await graft.simulator.push(graft.repository, "main")
    graft.commit("feature", CHANGE)
    await graft.open()
    await graft.settled()
    row = dict(await graft.pool.fetchrow("SELECT * FROM policy_verdicts"))
    assert row["policy_hash"]
    assert "docs only" not in json.dumps(row, default=str)
    assert [rule["code"] for rule in row["rules"]] == ["paths_only", "labels_any"]


async def test_a_verified_trivial_card_of_documentation_would_be_approved(make_world: MakeWorld) -> None:
    model = agreeable_model(risk="trivial", changes=())
    async with make_world(model=model) as graft:
        graft.builder.commit("main", {"graft.yaml": POLICY})
        await graft.simulator.push(graft.repository, "main")
        graft.commit("feature", {"docs/a.md": "Words.\n"})
        pull = await graft.open()
        await graft.settled()
        assert (await verdicts(graft))[-1] == ("valid", "approve")
        runs = graft.repository.runs_at(pull.head_sha)
        assert {run.conclusion for run in runs} == {"neutral"}


async def test_a_task_is_linked_and_provenance_is_stored_per_commit(graft: World) -> None:
    message = "Return two\n\nGraft-Agent: claude-code\nGraft-Model: m-1\nGraft-Task: SHOP-17\n"
    first = graft.commit("feature", CHANGE, message=message)
    second = graft.commit("feature", {"src/app.py": "def main():\n    return 3\n"}, message="By hand")
    pull = await graft.open()
    await graft.settled()
    task = await graft.pool.fetchrow("SELECT t.external_id FROM changes c JOIN tasks t ON t.id = c.task_id")
    assert task["external_id"] == "SHOP-17"
    rows = await graft.pool.fetch("SELECT commit_sha, source, agent, model FROM provenance")
    assert {tuple(row) for row in rows} == {
        (first, "declared", "claude-code", "m-1"),
        (second, "none", None, None),
    }
    answer = await graft.pool.fetchrow("SELECT * FROM change_provenance")
    assert (answer["author_kind"], answer["deciding_commits"]) == ("mixed", [first, second])
    # A squash takes the commits off the branch; what they said stays.
    base = graft.builder.tip("main")
    squashed = graft.builder.commit("feature", {"src/app.py": "def main():\n    return 3\n"}, parent=base)
    await graft.simulator.synchronize(pull, squashed)
    await graft.settled()
    assert await graft.pool.fetchval("SELECT count(*) FROM provenance WHERE agent = 'claude-code'") == 1
    assert await graft.pool.fetchval("SELECT task_id IS NOT NULL FROM changes")
