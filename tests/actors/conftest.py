"""A whole Graft as a fixture."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

import pytest

from graft.config import Settings
from graft.llm import LlmClient

from .world import World, world


class MakeWorld(Protocol):
    def __call__(
        self, *, model: LlmClient | None = None, **variables: str
    ) -> AbstractAsyncContextManager[World]: ...


@pytest.fixture
def make_world(
    tmp_path: Path,
    settings: Callable[..., Settings],
    database_url: str,
    nats_url: str,
    bus_prefix: str,
) -> MakeWorld:
    """`async with make_world(model=…, GRAFT_…="…") as world`: one daemon on this test's own database and stream."""

    def make(*, model: LlmClient | None = None, **variables: str) -> AbstractAsyncContextManager[World]:
        return world(
            tmp_path,
            settings,
            database_url=database_url,
            nats_url=nats_url,
            prefix=bus_prefix,
            model=model,
            **variables,
        )

    return make


@pytest.fixture
async def graft(make_world: MakeWorld) -> AsyncIterator[World]:
    """A Graft without a model."""
    async with make_world() as made:
        yield made
