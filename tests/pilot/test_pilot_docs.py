"""docs/pilot.md says what the code does, where the two could drift apart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graft import grants
from graft.cli.main import COMMANDS
from graft.pilot import bootstrap, feedback, figures, gate
from graft.pilot.incidents import references
from graft.pilot.review_time import AUTOMATION, DRAFT, REVERT, SELF_MERGED

TEXT = (Path(__file__).parents[2] / "docs" / "pilot.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name", ["gate", "incident", "baseline", "shadow", "metrics", "report", "doctor", "purge"]
)
def test_every_command_is_there_and_described(name: str) -> None:
    assert name in COMMANDS
    assert f"graft {name}" in TEXT


def test_the_numbers_are_those_of_the_code() -> None:
    assert f"`--minimum` rated cards ({gate.MINIMUM})" in TEXT
    assert f"(`--threshold`, {gate.THRESHOLD})" in TEXT
    assert f"({gate.least_that_can_pass(gate.THRESHOLD)} for 90 %)" in TEXT
    assert f"(from {figures.LEAST_FOR_MEDIAN} on)" in TEXT
    assert f"{bootstrap.RESAMPLES:,} resamples" in TEXT
    assert f"(from {bootstrap.LEAST_FOR_DIFFERENCE} on each side)" in TEXT
    assert f"`--by {'|'.join(feedback.SPLITS)}`" in TEXT


def test_every_rule_that_leaves_out_is_named() -> None:
    for rule in (AUTOMATION, DRAFT, REVERT, SELF_MERGED):
        assert f"| `{rule}` |" in TEXT


def test_permissions_are_those_of_the_doctor() -> None:
    for name, grant in grants.PERMISSIONS.items():
        assert f"| {name} | {grant.level} | {grant.without} |" in TEXT


def test_the_phrases_for_a_culprit_are_understood() -> None:
    phrases = re.findall(r"`([A-Z][a-z :]+#12)`", TEXT)
    assert len(phrases) >= 7
    for phrase in phrases:
        assert references(phrase, repository="octo/demo")[0] == (12,), phrase
