"""The App's permissions are the least that do: without any one of them something breaks, and this says what."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from graft.grants import PERMISSIONS
from graft.simulator.state import DEFAULT_PERMISSIONS
from graft.testing import agreeable_model

from .conftest import MakeWorld
from .world import World

# What a pull request gets where everything is granted.
WORKS = frozenset({"comment", "check runs", "card", "linked issue", "policy", "incident"})

# What is missing without a permission, or with reading in the place of writing. Work that GitHub refuses stops there
# and says so to operators: what is shown early has to be shown before a model is asked.
BREAKS: Mapping[tuple[str, str], frozenset[str]] = {
    ("metadata", ""): WORKS,
    ("contents", ""): WORKS - {"incident"},
    ("pull_requests", ""): WORKS - {"incident"},
    ("pull_requests", "read"): WORKS - {"incident"},
    ("checks", ""): frozenset({"check runs", "card", "linked issue"}),
    ("checks", "read"): frozenset({"check runs", "card", "linked issue"}),
    ("issues", ""): frozenset({"linked issue", "incident"}),
}


def test_every_permission_and_level_is_taken_away_once() -> None:
    lower = {(name, "") for name in PERMISSIONS} | {
        (name, "read") for name, grant in PERMISSIONS.items() if grant.level == "write"
    }
    assert set(BREAKS) == lower
    assert {name: grant.level for name, grant in PERMISSIONS.items()} == DEFAULT_PERMISSIONS


@pytest.mark.parametrize(("name", "level"), [("", ""), *BREAKS], ids=lambda part: part or "none")
async def test_without_it_this_breaks(make_world: MakeWorld, name: str, level: str) -> None:
    model = agreeable_model()
    async with make_world(model=model) as graft:
        graft.builder.commit("main", {"graft.yaml": "version: 1\ndefault: block\n"}, message="Policy")
        installation = graft.repository.installation
        assert installation is not None
        if name:
            del installation.permissions[name]
            if level:
                installation.permissions[name] = level
        issue = graft.simulator.open_issue(graft.repository, title="Pears", body="We sell pears.")
        graft.commit("feature", {"src/app.py": "def main():\n    return 'plums'\n"})
        pull = await graft.open(body=f"Fixes #{issue.number}")
        await graft.simulator.label(issue, "incident")
        await _quiet(graft)
        seen = "".join(turn.text for request in model.requests for turn in request.turns)
        comments = graft.comments(pull)
        runs = graft.checks(pull)
        shown = (comments[0].body if comments else "") + " ".join(runs.values())
        works = {
            "comment": len(comments) == 1,
            "check runs": bool(runs),
            "card": "plums" in seen,
            "linked issue": "We sell pears." in seen,
            "policy": "block" in shown.lower(),
            "incident": bool(await graft.pool.fetchval("SELECT count(*) FROM incidents")),
        }
        assert WORKS - {what for what, does in works.items() if does} == BREAKS.get(
            (name, level), frozenset()
        )


async def _quiet(graft: World) -> None:
    """Until nothing is due within the next seconds and nobody works."""
    async with asyncio.timeout(40):
        await graft.simulator.drain()
        while (
            (await graft.daemon.services.bus.backlog()).messages
            or graft.daemon.system.running
            or await graft.pool.fetchval(
                "SELECT count(*) FROM work WHERE dead_at IS NULL AND address <> 'lead'"
                " AND due_at < now() + interval '5 seconds'"
            )
        ):
            await asyncio.sleep(0.05)
