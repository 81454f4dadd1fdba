"""Facts and policies in few words."""

from __future__ import annotations

from typing import Any

import pytest

from graft.changes import ChangedFile
from graft.policy import Card, Facts, Policy, parse
from graft.risk import Risk


def make_facts(*paths: str, **more: Any) -> Facts:
    """A verified, trivial change of these files to `main`; everything can be overridden."""
    files = tuple(ChangedFile(path=path, status="modified", additions=2, deletions=1) for path in paths)
    return Facts(**{"files": files, "base_ref": "main", "card": Card.VERIFIED, "risk": Risk.TRIVIAL, **more})


def make_policy(text: str) -> Policy:
    parsed = parse(f"version: 1\n{text}".encode())
    assert parsed.policy is not None, [str(problem) for problem in parsed.problems]
    return parsed.policy


@pytest.fixture
def facts() -> Any:
    return make_facts


@pytest.fixture
def policy() -> Any:
    return make_policy
