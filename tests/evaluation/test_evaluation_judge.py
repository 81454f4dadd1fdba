"""The optional second opinion on matching: it can add a match and never take one away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from graft.evaluation import Case, Judge, Scripted, run
from graft.evaluation.subjects import Live
from graft.intent import Models
from graft.llm import Outcome
from graft.testing.model import FakeModel

MODELS = Models(fast="m", strong="m")


def writer(*changes: str, goal: str = "The archive gets more chances.") -> FakeModel:
    answer = {
        "goal": goal,
        "behavior_changes": list(changes),
        "out_of_scope": [],
        "risk": "logic",
        "risk_reason": "",
    }
    return FakeModel().says("writer", answer).fails("verifier", Outcome.REFUSED)


async def scores(case: Case, model: FakeModel, judge: Judge | None) -> dict[str, Any]:
    made = await run([case], Live("x", model, MODELS), judge=judge)
    return dict(made.run.cases[0].scores)


@pytest.fixture
def case(case_of: Mapping[str, Case]) -> Case:
    return case_of["upload-retries"]


async def test_a_judged_match_counts_and_the_run_names_the_judge(case: Case) -> None:
    model = writer("A lost line is redialled twice.")
    assert (await scores(case, model, None))["behaviour_recall"] == (0, 2)
    asked = FakeModel().says("judge", {"same": [{"claim": 2, "fact": 2}]})
    made = await run([case], Live("x", model, MODELS), judge=Judge(asked, "j"))
    assert made.run.judge == "j"
    assert made.run.cases[0].scores["behaviour_recall"] == (1.0, 2.0)
    assert made.run.cases[0].scores["behaviour_precision"] == (1.0, 1.0)
    assert made.run.cases[0].explained[1].startswith("change 1: said by claim 1")
    told = asked.requests[0].turns[0].text
    assert "1. Retry an upload" in told
    assert "2. A lost line is redialled twice." in told


async def test_a_claim_that_must_not_be_made_is_never_put_before_the_judge(case: Case) -> None:
    asked = FakeModel().says("judge", {"same": [{"claim": n, "fact": n} for n in range(-3, 9)]})
    found = await scores(case, writer("Any error is retried forever."), Judge(asked, "j"))
    assert "forever" not in asked.requests[0].turns[0].text
    assert found["behaviour_precision"] == (0, 1)


async def test_no_question_is_asked_where_the_keywords_suffice(case: Case) -> None:
    asked = FakeModel()
    await run([case], Scripted(), judge=Judge(asked, "j"))
    assert asked.requests == []


@pytest.mark.parametrize("answer", ["no JSON", {"same": "all"}, {"same": [{"claim": 99, "fact": 0}]}])
async def test_an_odd_answer_adds_nothing(case: Case, answer: Any) -> None:
    asked = FakeModel().says("judge", answer).says("judge_repair", answer)
    model = writer("A lost line is redialled twice.")
    assert await scores(case, model, Judge(asked, "j")) == await scores(case, model, None)
