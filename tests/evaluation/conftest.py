from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from graft.evaluation import Case, Made, Scripted, load_cases, run

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def all_cases() -> tuple[Case, ...]:
    return load_cases(ROOT / "eval/cases")


@pytest.fixture(scope="session")
def case_of(all_cases: tuple[Case, ...]) -> Mapping[str, Case]:
    return {case.slug: case for case in all_cases}


@pytest.fixture(scope="session")
def scripted(all_cases: tuple[Case, ...]) -> Callable[[str], Made]:
    """A run of a scripted pair, made once: `scripted("lazy+trusting")`."""
    import asyncio

    made: dict[str, Made] = {}

    def of(name: str) -> Made:
        if name not in made:
            writer, _, verifier = name.partition("+")
            made[name] = asyncio.run(run(all_cases, Scripted(writer, verifier or "honest")))
        return made[name]

    return of
