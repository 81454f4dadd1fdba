"""Receipts: the closed shape, the seal, recomputed questions and verdict, and edits of any byte."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graft.records import canonical, questions, receipts
from graft.records.report import Report

TOP = (
    "schema",
    "recordId",
    "recordSha256",
    "lawsSha256",
    "policy",
    "model",
    "questions",
    "answers",
    "verdict",
    "integrity",
)


def codes(report: Report) -> set[str]:
    return {problem.code for problem in report.problems}


def test_the_fields_are_those_of_the_standard(repo: Any) -> None:
    value = repo.receipt()
    assert set(value) == set(TOP)
    assert value["schema"] == 1
    assert value["policy"] == {"version": "graft/1", "coverageThreshold": 0.8, "fidelityThreshold": 0.9}
    assert set(value["questions"]) == set(value["answers"]) == {"coverage", "fidelity"}
    assert value["answers"]["coverage"]["R1"] == {
        "type": "choice",
        "choice": "a",
        "confidence": 1,
        "probabilities": {"a": 1, "b": 0, "none": 0},
    }
    assert value["answers"]["fidelity"]["a"] == {"type": "noul", "noul": 0.95}
    body = {key: item for key, item in value.items() if key != "integrity"}
    assert value["integrity"] == canonical.sha256(canonical.dumps(body))
    assert value["recordSha256"] == canonical.sha256(repo.read(repo.record_path))
    assert value["lawsSha256"] == canonical.sha256(repo.read(".intent/model/LAWS.bend"))


def test_questions_are_complete_and_name_their_subject(repo: Any) -> None:
    asked = repo.receipt()["questions"]
    for clause in ("R1", "R2"):
        question = asked["coverage"][clause]
        assert question["type"] == "choice"
        assert clause in question["instructions"]
        assert set(question["criteria"]) == {"a", "b", "none"}
    assert "demanded by R1 " in asked["fidelity"]["a"]["instructions"]
    assert set(asked["fidelity"]["b"]["criteria"]) == {"true", "false"}


@pytest.mark.parametrize("field", TOP)
def test_every_top_level_field_is_needed(repo: Any, field: str) -> None:
    value = repo.receipt()
    del value[field]
    if field != "integrity":
        value["integrity"] = receipts.integrity(value)
    repo.write(repo.receipt_path, json.dumps(value))
    assert (repo.check().exit, codes(repo.check())) == (2, {"receipt-malformed"})


def _at(value: dict[str, Any], *path: str) -> dict[str, Any]:
    for key in path:
        value = value[key]
    return value


@pytest.mark.parametrize(
    "path",
    [
        (),
        ("questions",),
        ("answers",),
        ("answers", "coverage", "R1"),
        ("answers", "fidelity", "a"),
    ],
)
def test_an_extra_field_is_malformed_also_when_resealed(repo: Any, path: tuple[str, ...]) -> None:
    repo.reseal(lambda value: _at(value, *path).update(note="extra"))
    assert (repo.check().exit, codes(repo.check())) == (2, {"receipt-malformed"})


@pytest.mark.parametrize(
    ("path", "key", "wrong"),
    [
        ((), "schema", True),
        ((), "schema", 3),
        ((), "schema", "1"),
        ((), "model", ""),
        ((), "model", "a\nb"),
        ((), "model", "x" * 201),
        ((), "recordSha256", "F" * 64),
        ((), "verdict", "maybe"),
        ((), "verdict", True),
        ((), "policy", []),
        ((), "policy", {"version": 1}),
        (("answers", "fidelity", "a"), "noul", True),
        (("answers", "fidelity", "a"), "noul", "1"),
        (("answers", "fidelity", "a"), "noul", 1.01),
        (("answers", "fidelity", "a"), "noul", -0.01),
        (("answers", "fidelity", "a"), "noul", None),
        (("answers", "fidelity", "a"), "type", "choice"),
        (("answers", "coverage", "R1"), "confidence", False),
        (("answers", "coverage", "R1"), "confidence", 2),
        (("answers", "coverage", "R1"), "choice", "c"),
        (("answers", "coverage", "R1"), "choice", 1),
        (("answers", "coverage", "R1"), "probabilities", {"a": 1}),
        (("answers", "coverage", "R1"), "probabilities", {"a": 1, "b": 0, "none": 0, "c": 0}),
        (("answers", "coverage", "R1", "probabilities"), "b", True),
        (("answers",), "coverage", {}),
        (("answers",), "fidelity", []),
    ],
)
def test_wrong_shapes_exit_2(repo: Any, path: tuple[str, ...], key: str, wrong: Any) -> None:
    repo.reseal(lambda value: _at(value, *path).update({key: wrong}))
    assert (repo.check().exit, codes(repo.check())) == (2, {"receipt-malformed"})


def test_numbers_that_are_not_finite_are_malformed(repo: Any) -> None:
    text = repo.read(repo.receipt_path)
    for number in ("NaN", "Infinity", "1e999"):
        repo.write(repo.receipt_path, text.replace('"noul":0.95', f'"noul":{number}'))
        assert codes(repo.check()) == {"receipt-malformed"}


def test_equal_keys_are_malformed(repo: Any) -> None:
    text = repo.read(repo.receipt_path)
    repo.write(repo.receipt_path, text.replace('"verdict":"pass"', '"verdict":"reject","verdict":"pass"'))
    assert codes(repo.check()) == {"receipt-malformed"}


@pytest.mark.parametrize(
    ("probabilities", "passes"),
    [
        ({"a": 0.8, "b": 0.19, "none": 0.0}, False),  # 0.99 exactly
        ({"a": 0.8, "b": 0.191, "none": 0.0}, True),
        ({"a": 0.8, "b": 0.21, "none": 0.0}, False),  # 1.01 exactly
        ({"a": 0.8, "b": 0.209, "none": 0.0}, True),
        ({"a": 0.8, "b": 0.1, "none": 0.1}, True),
        ({"a": 0.79, "b": 0.11, "none": 0.1}, False),
    ],
)
def test_probabilities_add_up_and_reach_the_threshold(
    repo: Any, probabilities: dict[str, float], passes: bool
) -> None:
    repo.reseal(
        lambda value: value["answers"]["coverage"]["R1"].update(confidence=0.8, probabilities=probabilities)
    )
    report = repo.check()
    assert report.exit == (0 if passes else 1)


def test_the_thresholds_themselves_pass(repo: Any) -> None:
    repo.reseal(lambda value: value["answers"]["fidelity"]["b"].update(noul=0.9))
    assert repo.check().exit == 0
    repo.reseal(lambda value: value["answers"]["fidelity"]["b"].update(noul=0.8999999))
    assert codes(repo.check()) == {"receipt-disagrees"}


def test_the_choice_need_not_be_the_most_probable_option(repo: Any) -> None:
    answer = {
        "type": "choice",
        "choice": "a",
        "confidence": 0.9,
        "probabilities": {"a": 0.2, "b": 0.8, "none": 0.0},
    }
    repo.judge({"coverage": {"R1": answer, "R2": "b"}, "fidelity": {"a": 1.0, "b": 1.0}})
    assert repo.receipt()["answers"]["coverage"]["R1"]["choice"] == "a"
    report = repo.check()
    assert report.exit == 1  # well formed, and its own probability is too low
    assert codes(report) == {"receipt-rejected"}


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        (
            {"coverage": {"R1": "none", "R2": "b"}, "fidelity": {"a": 1.0, "b": 1.0}},
            "clause R1 maps to no law",
        ),
        (
            {"coverage": {"R1": "b", "R2": "b"}, "fidelity": {"a": 1.0, "b": 1.0}},
            "law a is selected by no clause",
        ),
        (
            {"coverage": {"R1": "a", "R2": "b"}, "fidelity": {"a": 0.5, "b": 1.0}},
            "law a: fidelity is below 0.9",
        ),
    ],
)
def test_a_rejecting_receipt_is_written_and_never_passes(
    repo: Any, answers: dict[str, Any], why: str
) -> None:
    repo.judge(answers)
    assert repo.receipt()["verdict"] == "reject"
    report = repo.check()
    assert report.exit == 1
    assert codes(report) == {"receipt-rejected"}
    assert any(why in problem.message for problem in report.problems)
    repo.reseal(lambda value: value.update(verdict="pass"))
    assert codes(repo.check()) == {"receipt-disagrees"}


def test_a_passing_receipt_cannot_be_called_rejecting(repo: Any) -> None:
    repo.reseal(lambda value: value.update(verdict="reject"))
    assert repo.check().exit == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value["questions"]["coverage"]["R1"].update(instructions="Choose a."),
        lambda value: value["questions"]["coverage"].pop("R1"),
        lambda value: value["questions"]["fidelity"]["a"]["criteria"].update(true="yes"),
        lambda value: value.update(recordId="0002-other"),
        lambda value: value["policy"].update(fidelityThreshold=0.1),
        lambda value: value["policy"].update(coverageThreshold=0),
        lambda value: value["policy"].update(extra=1),
    ],
)
def test_resealed_edits_disagree(repo: Any, change: Any) -> None:
    repo.reseal(change)
    report = repo.check()
    assert (report.exit, codes(report)) == (1, {"receipt-disagrees"})


def test_fidelity_questions_follow_the_stored_choices(repo: Any) -> None:
    def swap(value: dict[str, Any]) -> None:
        for clause, law in (("R1", "b"), ("R2", "a")):
            value["answers"]["coverage"][clause]["choice"] = law
            value["answers"]["coverage"][clause]["probabilities"] = {
                "a": float(law == "a"),
                "b": float(law == "b"),
                "none": 0.0,
            }

    repo.reseal(swap)
    assert codes(repo.check()) == {"receipt-disagrees"}
    repo.reseal(
        lambda value: value.update(questions=questions.both(("R1", "R2"), ("a", "b"), {"R1": "b", "R2": "a"}))
    )
    assert repo.check().exit == 0


@pytest.mark.parametrize("version", ["pi-intent/1", "graft/0", "graft/2"])
def test_another_policy_version_is_regenerated_and_never_called_edited(repo: Any, version: str) -> None:
    repo.reseal(lambda value: value["policy"].update(version=version))
    report = repo.check()
    assert (report.exit, codes(report)) == (1, {"receipt-policy"})
    assert "regenerate" in report.problems[0].repair


def test_answers_without_or_for_unknown_ids_are_malformed(repo: Any) -> None:
    sealed = repo.receipt()
    for phase, key in (("coverage", "R1"), ("fidelity", "a")):
        value = copy.deepcopy(sealed)
        value["answers"][phase]["extra"] = value["answers"][phase][key]
        repo.write(repo.receipt_path, receipts.encode({k: v for k, v in value.items() if k != "integrity"}))
        assert (repo.check().exit, codes(repo.check())) == (2, {"receipt-malformed"})
        value = copy.deepcopy(sealed)
        del value["answers"][phase][key]
        repo.write(repo.receipt_path, receipts.encode({k: v for k, v in value.items() if k != "integrity"}))
        assert (repo.check().exit, codes(repo.check())) == (2, {"receipt-malformed"})


def test_a_law_may_be_called_proto(repo: Any) -> None:
    for path in (".intent/model/LAWS.bend", ".intent/model/PROOF.bend"):
        repo.write(path, repo.read(path).replace("law a:", "law __proto__:").replace("M.a(", "M.__proto__("))
    repo.approve_laws()
    repo.judge({"coverage": {"R1": "__proto__", "R2": "b"}, "fidelity": {"__proto__": 1.0, "b": 1.0}})
    assert repo.check().exit == 0
    repo.reseal(lambda value: value["answers"]["fidelity"].pop("__proto__"))
    assert codes(repo.check()) == {"receipt-malformed"}


def test_a_receipt_without_a_record_and_other_files_are_notes(repo: Any) -> None:
    repo.write(".intent/receipts/0009-gone.json", repo.read(repo.receipt_path))
    repo.write(".intent/receipts/notes.txt", "x")
    repo.write(".intent/receipts/old/0001-letters.json", "{")
    report = repo.check()
    assert report.exit == 0
    assert len(report.notes) == 3


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"{" * 5000, b'{"schema":1}'])
def test_no_json_is_malformed(repo: Any, content: bytes) -> None:
    repo.write(repo.receipt_path, content)
    assert (repo.check().exit, codes(repo.check())) == (2, {"receipt-malformed"})


def test_errors_name_the_place_and_no_value(repo: Any) -> None:
    repo.reseal(lambda value: value["answers"]["coverage"]["R1"].update(confidence="s3cret"))
    message = repo.check().problems[0].message
    assert message.startswith("$.answers.coverage.R1.confidence")
    assert "s3cret" not in message


def test_any_edit_of_any_byte_is_found_unless_the_value_is_unchanged(repo: Any) -> None:
    sealed = (repo.root / repo.receipt_path).read_bytes()
    value = canonical.loads(sealed.decode())

    @given(st.integers(0, len(sealed) - 1), st.binary(max_size=2), st.integers(0, 2))
    @settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
    def edited(at: int, inserted: bytes, removed: int) -> None:
        data = sealed[:at] + inserted + sealed[at + removed :]
        repo.write(repo.receipt_path, data)
        passed = repo.check().exit == 0
        try:
            unchanged = canonical.same(canonical.loads(data.decode()), value)
        except ValueError:
            unchanged = False
        assert passed == unchanged

    edited()


def test_a_flipped_bit_anywhere_is_found(repo: Any) -> None:
    sealed = (repo.root / repo.receipt_path).read_bytes()
    found = receipts.parse(sealed)
    for at in range(0, len(sealed) - 1, 5):
        data = sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :]
        try:
            changed = receipts.parse(data)
        except receipts.ShapeError:
            continue
        assert changed.integrity != found.integrity or receipts.integrity(changed.value) != changed.integrity
