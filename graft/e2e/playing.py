"""Playing scenarios on a stage: side by side where they may, one after the other where they may not."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from graft.e2e.scenarios import LOOK_SECONDS, Disagreed, Play, Scenario
from graft.e2e.stage import ABILITIES, Stage
from graft.errors import GraftError


class Outcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class Played(Struct, frozen=True, kw_only=True):
    """What became of one scenario; `detail` says why it failed or was skipped."""

    name: str
    what: str
    outcome: Outcome
    seconds: float
    detail: str = ""


async def play(
    stage: Stage, scenarios: Sequence[Scenario], *, patience: float = 120.0, look: float = LOOK_SECONDS
) -> list[Played]:
    """Play them all, whatever becomes of each. Raises only what `stage.clear` raises, before anything is done."""
    await stage.clear()
    run = secrets.token_hex(3)

    async def one(scenario: Scenario) -> Played:
        return await _play(
            stage, scenario, Play(stage, f"{run}-{scenario.name}", patience=patience, look=look)
        )

    together = await asyncio.gather(*(one(each) for each in scenarios if not each.alone))
    alone = [await one(each) for each in scenarios if each.alone]
    found = {played.name: played for played in (*together, *alone)}
    return [found[each.name] for each in scenarios]


async def _play(stage: Stage, scenario: Scenario, played: Play) -> Played:
    began = time.monotonic()
    lacking = sorted(scenario.needs - stage.abilities)
    outcome, detail = Outcome.PASSED, ""
    if lacking:
        outcome, detail = Outcome.SKIPPED, "; ".join(ABILITIES[ability] for ability in lacking)
    else:
        try:
            await scenario.run(played)
        except Disagreed as disagreed:
            outcome, detail = Outcome.FAILED, str(disagreed)
        except GraftError as error:
            outcome, detail = Outcome.FAILED, f"GitHub: {error}"
    return Played(
        name=scenario.name,
        what=scenario.what,
        outcome=outcome,
        seconds=round(time.monotonic() - began, 1),
        detail=detail,
    )
