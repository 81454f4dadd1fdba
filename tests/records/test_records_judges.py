"""Judges without a network, and which judge a model id asks for."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from graft.records import judges, judging, receipt_command
from graft.records.judging import JudgeError, Request
from graft.records.repository import load


@pytest.mark.parametrize(
    ("model", "route"),
    [
        ("jev-1.13", "typesafe"),
        ("jev-latest", "typesafe"),
        ("typesafe/jev-1.13", "openrouter"),
        ("~typesafe/jev-latest", "openrouter"),
        ("typesafe-ai/jev", "vercel"),
        ("claude-opus-5-5", "anthropic"),
        ("human/Ada", "human"),
        ("scripted/x", "scripted"),
        ("gpt-9", ""),
        ("", ""),
        ("typesafe/", ""),
    ],
)
def test_the_model_id_chooses_the_judge(model: str, route: str) -> None:
    assert judges.route(model) == route


def _human(typed: list[str]) -> tuple[judges.HumanJudge, list[str]]:
    shown: list[str] = []
    lines = iter(typed)
    return judges.HumanJudge(ask=lambda prompt: next(lines), show=shown.append), shown


def test_a_person_answers_in_turn_and_mistakes_are_asked_again(repo: Any) -> None:
    judge, shown = _human(["c", "a", "1.5", "0.9", " b ", "1", "yes", "0.95", "1.0"])
    intent = load(repo.tree)
    assert intent.laws
    fields = judging.produce(intent.records[repo.record_id], intent.laws, (), "human/Ada/2026-11-30", judge)
    assert fields["model"] == "human/Ada/2026-11-30"
    answers: Any = fields["answers"]
    assert answers["coverage"]["R1"] == {
        "type": "choice",
        "choice": "a",
        "confidence": 0.9,
        "probabilities": {"a": 0.9, "b": pytest.approx(0.05), "none": pytest.approx(0.05)},
    }
    assert answers["fidelity"] == {"a": {"type": "noul", "noul": 0.95}, "b": {"type": "noul", "noul": 1.0}}
    assert any("R1: The first letter is a." in text for text in shown)
    assert any("options: a, b, none" in text for text in shown)


def test_a_person_who_never_answers_ends_the_run() -> None:
    judge, _ = _human(["?"] * 10)
    question = {"type": "choice", "instructions": "?", "criteria": {"a": "", "none": ""}}
    with pytest.raises(JudgeError):
        judge.evaluate(Request("human/Ada", {"record": "", "laws": ""}, {"R1": question}, "", "coverage"))


def test_a_human_judgment_carries_name_and_date() -> None:
    assert judges.human_model("human/Ada Lovelace", "2026-11-30") == "human/Ada Lovelace/2026-11-30"
    assert judges.human_model("human/Ada/2026-11-30", "2026-11-30") == "human/Ada/2026-11-30"
    for wrong in ("human/", "human/ ", "human/Ada/2026-11-29", "human/a/b/c", "human/a\nb"):
        with pytest.raises(JudgeError):
            judges.human_model(wrong, "2026-11-30")


def test_network_judges_are_named_with_what_they_need() -> None:
    for model, named in (
        ("jev-1.13", "typesafe-sdk and TYPESAFE_API_KEY"),
        ("typesafe/jev-1.13", "OPENROUTER_API_KEY"),
        ("typesafe-ai/jev", "AI_GATEWAY_API_KEY"),
        ("claude-opus-5-5", "ANTHROPIC_API_KEY"),
        ("gpt-9", "no judge has this model id"),
    ):
        with pytest.raises(JudgeError) as caught:
            judges.networked(model, judges.route(model), {}, {})
        assert caught.value.code == "judge-unavailable"
        assert named in str(caught.value)


@pytest.mark.parametrize(
    "content", [None, "", "{", "[]", '{"coverage": {}}', '{"coverage": [], "fidelity": {}}']
)
def test_a_script_of_answers_is_read_strictly(repo: Any, content: str | None) -> None:
    if content is not None:
        repo.write("answers.json", content)
    with pytest.raises(JudgeError):
        judges.ScriptedJudge.read(repo.tree, "answers.json")


def receipt(repo: Any, model: str, **options: Any) -> Any:
    settings = {"answers": "", "dry_run": False, "reuse": False, "routes": {}, **options}
    return receipt_command.run(repo.root, repo.record_id, model, **settings)


ANSWERS = '{"coverage": {"R1": "a", "R2": "b"}, "fidelity": {"a": 1.0, "b": 0.95}}'


def test_a_scripted_receipt_is_a_fixture_and_says_so(repo: Any) -> None:
    repo.write("answers.json", ANSWERS)
    repo.remove(repo.receipt_path)
    report = receipt(repo, "scripted/fixture", answers="answers.json")
    assert report.exit == 0
    assert repo.receipt()["model"] == "scripted/fixture"
    assert any("fixture" in line for line in report.lines)
    assert repo.check().exit == 0


def test_a_rejecting_run_writes_the_receipt_and_exits_1(repo: Any) -> None:
    repo.write("answers.json", ANSWERS.replace("0.95", "0.5"))
    assert receipt(repo, "scripted/fixture", answers="answers.json").exit == 1
    assert repo.receipt()["verdict"] == "reject"


def test_a_failed_run_leaves_the_old_receipt(repo: Any) -> None:
    before = repo.read(repo.receipt_path)
    repo.write("answers.json", ANSWERS.replace('"R2": "b"', '"R2": "c"'))
    report = receipt(repo, "scripted/fixture", answers="answers.json")
    assert (report.exit, [problem.code for problem in report.problems]) == (2, ["judge-answer"])
    assert repo.read(repo.receipt_path) == before


@pytest.mark.parametrize("status", ["draft", "descriptive"])
def test_no_receipt_before_the_record_is_approved(repo: Any, status: str) -> None:
    repo.edit(repo.record_path, "status: approved", f"status: {status}")
    repo.remove(repo.receipt_path)
    report = receipt(repo, "scripted/fixture", answers="answers.json")
    assert [problem.code for problem in report.problems] == ["draft"]
    assert not (repo.root / repo.receipt_path).exists()


def test_no_receipt_before_the_laws_are_approved(repo: Any) -> None:
    repo.write("answers.json", ANSWERS)
    repo.edit(".intent/model/LAWS.bend", "2n == 2n", "3n == 3n")
    before = repo.read(repo.receipt_path)
    report = receipt(repo, "scripted/fixture", answers="answers.json")
    assert [problem.code for problem in report.problems] == ["approval-stale"]
    repo.remove(".intent/model/laws.sha256")
    assert receipt(repo, "scripted/fixture", answers="answers.json").exit == 2
    assert repo.read(repo.receipt_path) == before


def test_a_dry_run_shows_questions_sizes_and_cost_and_sends_nothing(modular: Any) -> None:
    before = modular.read(modular.receipt_path)
    report = receipt(modular, "jev-1.13", dry_run=True)
    assert report.exit == 0
    text = report.text()
    assert "coverage of module first: 1 questions" in text
    assert "R1: Read clause R1 under Rules" in text
    assert "nothing was sent" in text
    assert "$0.0" in text
    assert [item["phase"] for item in report.data["requests"]] == ["coverage", "fidelity"] * 2
    assert report.data["costUsd"] == pytest.approx(report.data["tokens"] * 0.042 / 1e6, abs=1e-6)
    assert modular.read(modular.receipt_path) == before


def test_a_dry_run_of_a_judge_without_a_known_price(repo: Any) -> None:
    report = receipt(repo, "human/Ada", dry_run=True)
    assert report.data["costUsd"] is None
    assert "is not known" in report.text()


def test_a_human_judgment_needs_a_terminal(repo: Any) -> None:
    report = receipt(repo, f"human/Ada/{time.strftime('%Y-%m-%d', time.gmtime())}")
    assert [problem.code for problem in report.problems] == ["judge-unavailable"]


def test_a_scripted_judge_needs_its_script(repo: Any) -> None:
    assert [problem.code for problem in receipt(repo, "scripted/x").problems] == ["judge-unavailable"]


def test_an_injected_route_is_used(repo: Any) -> None:
    made: list[str] = []

    def route(model: str, env: Any) -> Any:
        assert env is os.environ
        made.append(model)
        return judges.ScriptedJudge({"R1": "a", "R2": "b"}, {"a": 1.0, "b": 1.0})

    assert receipt(repo, "jev-1.13", routes={"typesafe": route}).exit == 0
    assert made == ["jev-1.13"]


def test_nothing_is_written_through_a_symlink(repo: Any) -> None:
    repo.write("answers.json", ANSWERS)
    target = repo.root / "target.json"
    target.write_text(repo.read(repo.receipt_path))
    repo.remove(repo.receipt_path)
    (repo.root / repo.receipt_path).symlink_to(target)
    before = target.read_text()
    report = receipt(repo, "scripted/fixture", answers="answers.json")
    assert report.exit == 2
    assert target.read_text() == before
