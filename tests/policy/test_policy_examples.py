"""The examples and the reference are valid, and the JSON Schema agrees with the parser about them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from graft.policy import json_schema, parse
from graft.policy.model import Labels, Matcher, Policy, Then, When

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "docs" / "examples" / "policies").glob("*.yaml"))
REFERENCE = (ROOT / "docs" / "graft-yaml.md").read_text()
BLOCKS = re.findall(r"```yaml\n(version: 1\n.*?)```", REFERENCE, re.DOTALL)


def in_schema(text: str) -> bool:
    return bool(jsonschema.Draft7Validator(json_schema()).is_valid(yaml.safe_load(text)))


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 4
    assert BLOCKS


@pytest.mark.parametrize("text", [*(path.read_text() for path in EXAMPLES), *BLOCKS])
def test_example_is_valid(text: str) -> None:
    assert [str(problem) for problem in parse(text.encode()).problems] == []
    assert in_schema(text)


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft7Validator.check_schema(json_schema())


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "version: 2",
        "version: 1\nfoo: 1",
        "version: 1\nrules: [{name: a, when: {}}]",
        "version: 1\nrules: [{name: a, when: {max_lines: -1}, then: approve}]",
        "version: 1\nrules: [{name: a, when: {paths: 'x'}, then: approve}]",
        "version: 1\nrules: [{name: a, when: {paths: {}}, then: approve}]",
        "version: 1\nrules: [{name: a, when: {author: me}, then: approve}]",
        "version: 1\nrules: [{name: a, when: {labels: []}, then: approve}]",
        "version: 1\ndefault: {approve: {users: [a]}}",
        "version: 1\ndefault: {approve: {}, review: {}}",
        "version: 1\ndefault: {}",
        "version: 1\ndefault: merge",
    ],
)
def test_schema_and_parser_refuse_the_same(text: str) -> None:
    assert parse(text.encode()).policy is None
    assert not in_schema(text)


def properties(schema: dict[str, Any]) -> set[str]:
    return set(schema["properties"])


def test_the_schema_knows_every_key() -> None:
    schema = json_schema()
    rule = schema["properties"]["rules"]["items"]
    when = rule["properties"]["when"]["properties"]
    assert properties(schema) == set(Policy.__struct_fields__)
    assert set(when) == set(When.__struct_fields__)
    assert properties(when["paths"]) == set(Matcher.__struct_fields__)
    assert properties(when["labels"]["anyOf"][1]) == set(Labels.__struct_fields__)
    review = rule["properties"]["then"]["anyOf"][1]["properties"]["review"]
    assert properties(review) == set(Then.__struct_fields__) - {"outcome"}


def test_the_reference_names_every_condition() -> None:
    for name in When.__struct_fields__:
        assert f"`{name}`" in REFERENCE, name
