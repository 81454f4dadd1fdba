from __future__ import annotations

from pathlib import Path

import pytest

from graft.simulator.demo_repository import RepositoryBuilder


@pytest.fixture
def builder(tmp_path: Path) -> RepositoryBuilder:
    """An empty bare repository to commit into."""
    return RepositoryBuilder(path=tmp_path / "repository.git")
