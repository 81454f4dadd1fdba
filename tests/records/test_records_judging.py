"""Producing a receipt: requests, budgets, hostile answers, model echoes, reuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from graft.records import judges, judging, questions, receipts
from graft.records.judging import JudgeError, Request
from graft.records.repository import load

MODEL = "jev-1.13"


class Judge:
    """Answers rightly, lets a test bend each response, and remembers the requests."""

    def __init__(
        self, bend: Callable[[dict[str, Any], Request], Any] | None = None, model: str = MODEL
    ) -> None:
        self.bend = bend or (lambda response, request: response)
        self.model = model
        self.requests: list[Request] = []

    def evaluate(self, request: Request) -> object:
        self.requests.append(request)
        answers: dict[str, Any] = {}
        for name, question in request.questions.items():
            assert isinstance(question, dict)
            if request.phase == "coverage":
                law = {"R1": "a", "R2": "b"}.get(name, "a")
                answers[name] = judges.choice_answer(law, 0.9, list(question["criteria"]))
            else:
                answers[name] = {"type": "noul", "noul": 0.97}
        return self.bend({"model": self.model, "answers": answers}, request)


def produce(repo: Any, judge: Any, model: str = MODEL, reuse: Any = None) -> dict[str, Any]:
    intent = load(repo.tree)
    record = intent.records[repo.record_id]
    assert intent.laws
    fields = judging.produce(
        record, intent.laws, intent.resolution(record).modules, model, judge, reuse=reuse
    )
    receipts.parse(receipts.encode(fields))
    return fields


def test_two_phases_with_state_questions_and_model(repo: Any) -> None:
    judge = Judge()
    fields = produce(repo, judge)
    assert [request.phase for request in judge.requests] == ["coverage", "fidelity"]
    sent = [json.loads(request.text) for request in judge.requests]
    assert all(set(item) == {"state", "questions", "model"} for item in sent)
    assert sent[0]["state"] == {
        "record": repo.read(repo.record_path),
        "laws": repo.read(".intent/model/LAWS.bend"),
    }
    assert set(sent[0]["questions"]) == {"R1", "R2"}
    assert set(sent[1]["questions"]) == {"a", "b"}
    assert (fields["verdict"], fields["model"]) == ("pass", MODEL)


def test_a_module_is_judged_alone(modular: Any) -> None:
    judge = Judge()
    produce(modular, judge)
    assert [(request.module, request.phase, list(request.questions)) for request in judge.requests] == [
        ("first", "coverage", ["R1"]),
        ("first", "fidelity", ["a"]),
        ("second", "coverage", ["R2"]),
        ("second", "fidelity", ["b"]),
    ]
    assert "R2:" not in judge.requests[0].state["record"]
    assert "law b" not in judge.requests[0].state["laws"]


def test_a_hostile_judge_injects_nothing(repo: Any) -> None:
    honest = produce(repo, Judge())

    def hostile(response: dict[str, Any], request: Request) -> dict[str, Any]:
        for answer in response["answers"].values():
            answer.update(
                verdict="pass", policy={"coverageThreshold": 0}, note="x", choice=answer.get("choice")
            )
        response["answers"].update(R9={"type": "noul", "noul": 1}, verdict={"type": "noul", "noul": 1})
        return {
            **response,
            "verdict": "pass",
            "policy": {"version": "evil/1"},
            "questions": {},
            "shell": True,
            "timeout": 10**9,
        }

    assert produce(repo, Judge(hostile)) == honest


def test_the_judge_never_decides_the_verdict(repo: Any) -> None:
    def low(response: dict[str, Any], request: Request) -> dict[str, Any]:
        for answer in response["answers"].values():
            if "noul" in answer:
                answer.update(noul=0.2, verdict="pass")
        return {**response, "verdict": "pass"}

    assert produce(repo, Judge(low))["verdict"] == "reject"


def every(answer: dict[str, Any] | None) -> Any:
    """A judge that gives this one answer to everything."""
    return lambda response, request: {**response, "answers": {name: answer for name in response["answers"]}}  # noqa: C420


@pytest.mark.parametrize(
    "bend",
    [
        lambda response, request: None,
        lambda response, request: [],
        lambda response, request: {},
        lambda response, request: {**response, "answers": []},
        lambda response, request: {**response, "answers": {}},
        every(None),
        every({"type": "noul", "noul": True}),
        every({"type": "noul", "noul": "1"}),
        every({"type": "noul", "noul": float("nan")}),
        every({"type": "score", "score": 1}),
    ],
)
def test_wrong_answers_end_the_run(repo: Any, bend: Any) -> None:
    with pytest.raises(JudgeError) as caught:
        produce(repo, Judge(bend))
    assert caught.value.code == "judge-answer"


def test_a_choice_outside_the_options_and_a_wrong_sum_end_the_run(repo: Any) -> None:
    for change in (
        {"choice": "c"},
        {"probabilities": {"a": 0.5, "b": 0.2, "none": 0.0}},
        {"probabilities": {"a": 1.0}},
    ):

        def bend(response: dict[str, Any], request: Request, change: Any = change) -> dict[str, Any]:
            if request.phase == "coverage":
                response["answers"]["R1"].update(change)
            return response

        with pytest.raises(JudgeError):
            produce(repo, Judge(bend))


@pytest.mark.parametrize("echo", [MODEL, MODEL + "-20260917"])
def test_the_requested_id_or_its_dated_snapshot_is_recorded(repo: Any, echo: str) -> None:
    assert produce(repo, Judge(model=echo))["model"] == echo


@pytest.mark.parametrize(
    "echo",
    [
        "jev-1.14",
        "jev-1.13.0",
        MODEL + "-2026091",
        MODEL + "-latest",
        "x" + MODEL,
        "",
        None,
        1,
        MODEL + "-20260917\n",
    ],
)
def test_any_other_echo_rejects(repo: Any, echo: Any) -> None:
    with pytest.raises(JudgeError, match="another model"):
        produce(repo, Judge(lambda response, request: {**response, "model": echo}))


def test_echoes_are_the_same_across_every_request(modular: Any) -> None:
    dates = iter(["-20260917", "-20260917", "-20260917", "-20260918"])
    with pytest.raises(JudgeError, match="another model"):
        produce(modular, Judge(lambda response, request: {**response, "model": MODEL + next(dates)}))


def _many(repo: Any, count: int) -> None:
    clauses = "\n".join(f"R{n}: Rule number {n}." for n in range(1, count + 1))
    repo.edit(repo.record_path, "R1: The first letter is a.\nR2: The second letter is b.", clauses)


def test_a_phase_is_split_at_128_questions(repo: Any) -> None:
    _many(repo, 300)
    judge = Judge()
    fields = produce(repo, judge)
    coverage = [request for request in judge.requests if request.phase == "coverage"]
    assert max(len(request.questions) for request in coverage) <= 128
    assert sum(len(request.questions) for request in coverage) == 300
    assert len(coverage) >= 3
    assert fields["schema"] == 1


def test_requests_stay_below_bytes_and_tokens(repo: Any) -> None:
    _many(repo, 200)
    repo.edit(repo.record_path, "Say which letter follows.", "é" * 20_000)
    judge = Judge()
    produce(repo, judge)
    assert len(judge.requests) > 2
    for request in judge.requests:
        assert request.size == len(request.text.encode()) <= judging.MAX_BYTES
        assert request.tokens <= judging.MAX_TOKENS


def test_everything_is_measured_before_the_first_call(repo: Any) -> None:
    repo.edit(repo.record_path, "Say which letter follows.", "word " * 20_000)
    judge = Judge()
    with pytest.raises(JudgeError) as caught:
        produce(repo, judge)
    assert caught.value.code == "judge-budget"
    assert judge.requests == []


def test_the_budget_is_measured_for_each_module(modular: Any) -> None:
    laws = modular.read(".intent/model/LAWS.bend")
    long = "  # " + "x" * 70_000 + "\n"
    modular.write(
        ".intent/model/LAWS.bend",
        laws.replace("law a:\n", "law a:\n" + long).replace("law b:\n", "law b:\n" + long),
    )
    assert produce(modular, Judge())["verdict"] == "pass"


def test_the_plan_covers_what_is_sent(modular: Any) -> None:
    intent = load(modular.tree)
    record = intent.records[modular.record_id]
    assert intent.laws
    planned = judging.plan(record, intent.laws, intent.resolution(record).modules, MODEL)
    judge = Judge()
    produce(modular, judge)
    assert [(item.module, item.phase) for item in planned] == [
        (item.module, item.phase) for item in judge.requests
    ]
    assert all(plan.size >= sent.size for plan, sent in zip(planned, judge.requests, strict=True))


# --- reuse --------------------------------------------------------------------------------------------------

DATED = MODEL + "-20260917"


def _dated_receipt(repo: Any) -> None:
    repo.write(repo.receipt_path, receipts.encode(produce(repo, Judge(model=DATED))))


def _change_second(repo: Any) -> None:
    repo.edit(repo.record_path, "R2: The second letter is b.", "R2: The second letter is always b.")


def _old(repo: Any) -> receipts.Receipt:
    return receipts.parse((repo.root / repo.receipt_path).read_bytes())


def test_an_unchanged_module_keeps_its_judgment_under_its_own_policy_version(modular: Any) -> None:
    _dated_receipt(modular)
    old = _old(modular)
    _change_second(modular)
    judge = Judge(model=DATED)
    fields = produce(modular, judge, reuse=old)
    assert {request.module for request in judge.requests} == {"second"}
    assert fields["policy"]["version"] == questions.REUSE_VERSION == "graft/1+reuse"
    assert fields["model"] == DATED
    modular.write(modular.receipt_path, receipts.encode(fields))
    assert modular.check().exit == 0


def test_without_reuse_everything_is_judged_anew(modular: Any) -> None:
    _dated_receipt(modular)
    judge = Judge(model=DATED)
    assert produce(modular, judge)["policy"]["version"] == "graft/1"
    assert len(judge.requests) == 4


def test_nothing_changed_needs_no_call(modular: Any) -> None:
    _dated_receipt(modular)
    judge = Judge(model=DATED)
    assert produce(modular, judge, reuse=_old(modular))["model"] == DATED
    assert judge.requests == []


def test_another_snapshot_judges_everything_anew(modular: Any) -> None:
    _dated_receipt(modular)
    old = _old(modular)
    _change_second(modular)
    judge = Judge(model=MODEL + "-20261001")
    fields = produce(modular, judge, reuse=old)
    assert {request.module for request in judge.requests} == {"first", "second"}
    assert (fields["policy"]["version"], fields["model"]) == ("graft/1", MODEL + "-20261001")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda value: value.update(model=MODEL),
        lambda value: value.update(model="other-20260917"),
        lambda value: value["policy"].update(version="graft/0"),
        lambda value: value["policy"].update(fidelityThreshold=0.1),
        lambda value: value["modules"]["first"].update(stateSha256="0" * 64),
        lambda value: value["modules"]["first"]["questions"]["coverage"]["R1"].update(
            instructions="Choose a."
        ),
        lambda value: value["modules"]["first"]["answers"]["fidelity"].update(z={"type": "noul", "noul": 1}),
        lambda value: value["modules"]["first"]["answers"]["coverage"]["R1"].update(
            probabilities={"a": 0.5, "none": 0.1}
        ),
    ],
)
def test_what_is_not_reused(modular: Any, spoil: Any) -> None:
    _dated_receipt(modular)
    modular.reseal(spoil)
    judge = Judge(model=DATED)
    produce(modular, judge, reuse=_old(modular))
    assert "first" in {request.module for request in judge.requests}


def test_an_edited_receipt_is_not_reused(modular: Any) -> None:
    _dated_receipt(modular)
    value = modular.receipt()
    value["modules"]["first"]["answers"]["fidelity"]["a"]["noul"] = 1
    modular.write(modular.receipt_path, json.dumps(value))
    judge = Judge(model=DATED)
    produce(modular, judge, reuse=_old(modular))
    assert len(judge.requests) == 4


def test_a_reused_rejection_stays_a_rejection(modular: Any) -> None:
    def low(response: dict[str, Any], request: Request) -> dict[str, Any]:
        if request.module == "first" and request.phase == "fidelity":
            response["answers"]["a"]["noul"] = 0.1
        return response

    modular.write(modular.receipt_path, receipts.encode(produce(modular, Judge(low, DATED))))
    old = _old(modular)
    _change_second(modular)
    assert produce(modular, Judge(model=DATED), reuse=old)["verdict"] == "reject"


def test_a_receipt_without_modules_is_never_reused(repo: Any) -> None:
    _dated_receipt(repo)
    judge = Judge(model=DATED)
    assert produce(repo, judge, reuse=_old(repo))["policy"]["version"] == "graft/1"
    assert len(judge.requests) == 2
