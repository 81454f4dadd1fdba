"""Generated enums: plain Bend with a round-trip law, checked like authored code."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graft.records import enums, gate, scanner
from graft.records.enums import SpecificationError
from graft.records.repository import load

SPEC = {
    "schema": 1,
    "enums": [{"name": "Risk", "members": {"Trivial": "trivial", "Logic": "logic", "Sensitive": "sen-si"}}],
}


def data(value: Any) -> bytes:
    return json.dumps(value).encode()


def test_the_text() -> None:
    text = enums.generate(enums.parse(data(SPEC)))
    assert text.startswith(enums.HEADER)
    for line in (
        "type Risk is Data:",
        "  Trivial{}",
        "def Risk.code(value: Risk) -> Nat:",
        "      2n",
        "def Risk.of_code(code: Nat) -> Maybe<&2, Risk>:",
        "    Some{Trivial{}}",
        '      "sen-si"',
        "law risk_round_trip:",
        "  {Risk.of_code(Risk.code(value)) == Some{value} : Maybe<&2, Risk>}",
        "def risk_round_trip(value):",
    ):
        assert line in text.split("\n") or f"  {line}" in text, line
    found = scanner.scan(text, laws=True)
    assert found.refusals == ()
    assert scanner.forbidden(found) == []
    assert found.laws == ("risk_round_trip",)


def test_the_decoder_has_one_case_a_member_and_none_beyond() -> None:
    text = enums.generate(enums.parse(data(SPEC)))
    decoder = text[text.index("def Risk.of_code") : text.index("def Risk.key")]
    assert decoder.count("Some{") == 3
    assert decoder.rstrip().endswith("None{}")


def test_the_gate_checks_generated_code_like_authored_code(repo: Any, bend_env: dict[str, str]) -> None:
    repo.write("spec.json", data({"schema": 1, "enums": [{"name": "T", "members": {"A": "a"}}]}))
    report, _ = enums.run(repo.root, "spec.json", ".intent/model/Enums.bend", check=False)
    assert report.exit == 0
    if "BEND_BIN" in bend_env:  # the stand-in accepts only `{==}` as a body
        assert gate.run(repo.root, bend_env).exit == 0
    else:
        assert ".intent/model/Enums.bend" in gate.static(repo.tree, load(repo.tree), report)[0].others


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ([], "$"),
        ({"schema": 2, "enums": []}, "$"),
        ({"schema": 1, "enums": [], "x": 1}, "$"),
        ({"schema": True, "enums": [1]}, "$.enums"),
        ({"schema": 1, "enums": []}, "$.enums"),
        ({"schema": 1, "enums": [1]}, "$.enums[0]"),
        ({"schema": 1, "enums": [{"name": "risk", "members": {"A": "a"}}]}, "$.enums[0].name"),
        ({"schema": 1, "enums": [{"name": "Risk", "members": {}}]}, "$.enums[0].members"),
        ({"schema": 1, "enums": [{"name": "Risk", "members": {"Law": "a"}}]}, "$.enums[0].members"),
        ({"schema": 1, "enums": [{"name": "Risk", "members": {"A{}": "a"}}]}, "$.enums[0].members"),
        ({"schema": 1, "enums": [{"name": "Risk", "members": {"A": 'x"\nlaw y:'}}]}, "$.enums[0].members.A"),
        ({"schema": 1, "enums": [{"name": "Risk", "members": {"A": "a", "B": "a"}}]}, "$.enums[0].members"),
        ({"schema": 1, "enums": [{"name": "A", "members": {"A": "a"}}]}, "$.enums"),
        (
            {"schema": 1, "enums": [{"name": "R", "members": {f"M{n}": str(n) for n in range(201)}}]},
            "$.enums[0].members",
        ),
    ],
)
def test_refused_specifications(value: Any, place: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        enums.parse(data(value))
    assert str(caught.value).startswith(place + ":")


def test_what_is_no_json() -> None:
    for content in (b"", b"{", b"\xff"):
        with pytest.raises(SpecificationError):
            enums.parse(content)


def test_writing_checking_and_drift(repo: Any, capsys: pytest.CaptureFixture[str]) -> None:
    repo.write(".intent/model/enums.json", data(SPEC))
    root, output = str(repo.root), ".intent/model/Enums.bend"
    assert enums.main([root, "--output", output, "--check"]) == 1
    assert enums.main([root, "--output", output]) == 0
    assert enums.main([root, "--output", output, "--check"]) == 0
    repo.edit(output, "0n", "1n")
    assert enums.main([root, "--output", output, "--check"]) == 1
    assert enums.main([root, "--output", output]) == 0
    capsys.readouterr()
    assert enums.main([root]) == 0
    assert capsys.readouterr().out.startswith(repo.read(output))


@pytest.mark.parametrize(
    "output", ["Enums.bend", ".intent/../Enums.bend", "/tmp/Enums.bend", ".intent/model/LAWS.bend"]
)
def test_it_writes_only_its_own_files_below_the_hidden_folder(repo: Any, output: str) -> None:
    repo.write(".intent/model/enums.json", data(SPEC))
    before = repo.files()
    report, _ = enums.run(repo.root, ".intent/model/enums.json", output, check=False)
    assert report.exit == 2
    assert repo.files() == before


def test_a_missing_or_bad_specification(repo: Any) -> None:
    assert enums.main([str(repo.root)]) == 2
    repo.write(".intent/model/enums.json", "{")
    assert enums.main([str(repo.root)]) == 2
    with pytest.raises(SystemExit):
        enums.main([str(repo.root), "--check"])
