"""Canonical JSON: what JavaScript prints, compared with Node where it is installed."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graft.records import canonical

_NODE = shutil.which("node")
_PROGRAM = """
const sort = (v) => Array.isArray(v) ? v.map(sort) : v && typeof v === "object"
  ? "{" + Object.keys(v).sort().map((k) => JSON.stringify(k) + ":" + text(v[k])).join(",") + "}" : v;
const text = (v) => Array.isArray(v) ? "[" + v.map(text).join(",") + "]"
  : v && typeof v === "object" ? sort(v) : JSON.stringify(v);
const crypto = require("crypto");
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const value = JSON.parse(line);
  const out = text(value);
  const sha = crypto.createHash("sha256").update(Array.isArray(value) ? value[0] + "" : "", "utf8").digest("hex");
  process.stdout.write(JSON.stringify([out, sha]) + "\\n");
});
"""


@pytest.fixture(scope="module")
def node() -> Any:
    """Sends a JSON text to Node and returns its canonical text and the hash of the first element as a string."""
    if _NODE is None:
        pytest.skip("node is not installed")
    process = subprocess.Popen(
        [_NODE, "-e", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    assert process.stdin
    assert process.stdout

    def ask(text: str) -> tuple[str, str]:
        assert process.stdin
        assert process.stdout
        process.stdin.write(text + "\n")
        process.stdin.flush()
        out, sha = json.loads(process.stdout.readline())
        return out, sha

    yield ask
    process.stdin.close()
    process.wait(10)
    process.stdout.close()


_TEXT = st.text(st.characters(blacklist_categories=())) | st.sampled_from(
    [
        "__proto__",
        "\ud83d\ude00",
        "\ud83d",
        "\ude00",
        "\uffff",
        "\u2028",
        "\x7f",
        "/",
        "\x1b",
        "10",
        "9",
        "\U0001f600",
    ]
)
_NUMBER = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**22), 10**22).map(float)
_VALUE = st.recursive(
    st.none() | st.booleans() | _NUMBER | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=5),
    max_leaves=12,
)


def _joined(value: Any) -> bool:
    """Whether no two keys of one object are the same once surrogates are paired."""
    if isinstance(value, dict):
        keys = {canonical.string(key) for key in value}
        return len(keys) == len(value) and all(_joined(item) for item in value.values())
    return all(_joined(item) for item in value) if isinstance(value, list) else True


@given(_VALUE.filter(_joined))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_text_is_the_one_node_prints(node: Any, value: Any) -> None:
    assert canonical.dumps(value) == node(json.dumps(value))[0]


@given(_TEXT)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_hash_is_the_one_node_makes(node: Any, text: str) -> None:
    assert canonical.sha256(text) == node(json.dumps([text]))[1]


@given(_VALUE.filter(_joined))
@settings(max_examples=200, deadline=None)
def test_reading_the_text_gives_the_same_text(value: Any) -> None:
    text = canonical.dumps(value)
    assert canonical.dumps(canonical.loads(text)) == text
    assert canonical.same(canonical.loads(text), value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (1e-7, "1e-7"),
        (1e-6, "0.000001"),
        (1.5e-7, "1.5e-7"),
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (123456789012345680000.0, "123456789012345680000"),
        (0.1, "0.1"),
        (-123.456, "-123.456"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (True, "true"),
        (None, "null"),
        ('\b\t\n\f\r\x1b"\\/', '"\\b\\t\\n\\f\\r\\u001b\\"\\\\/"'),
        ("\u2028\x7fé", '"\u2028\x7fé"'),
        ("\ud800", '"\\ud800"'),
        ({"\uffff": 1, "\U0001f600": 2}, '{"\U0001f600":2,"\uffff":1}'),
        ({"b": [1, {"d": 1, "c": 2}], "a": {}}, '{"a":{},"b":[1,{"c":2,"d":1}]}'),
    ],
)
def test_known_texts(value: Any, text: str) -> None:
    assert canonical.dumps(value) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "NaN",
        "[Infinity]",
        "[-Infinity]",
        "1e999",
        '{"a":1,"a":1}',
        '{"a":1,"\\u0061":2}',
        "[" * 100 + "]" * 100,
        "[" * 200_000,
        "\ufeff{}",
        "[1,]",
        "{'a':1}",
        '"\x01"',
        "01",
        "1 2",
    ],
)
def test_refused_texts(text: str) -> None:
    with pytest.raises(canonical.JsonError):
        canonical.loads(text)


def test_brackets_in_strings_are_no_nesting() -> None:
    assert canonical.loads(json.dumps("[" * 100)) == "[" * 100


def test_a_huge_integer_is_a_double() -> None:
    assert canonical.loads("1" + "0" * 30) == 1e30
    assert canonical.dumps(10**30) == "1e+30"


@pytest.mark.parametrize("value", [math.nan, math.inf, object(), {1: 2}, {"a": {3}}, 10**400])
def test_what_has_no_json_form(value: Any) -> None:
    with pytest.raises(canonical.JsonError):
        canonical.dumps(value)


def test_true_is_not_one() -> None:
    assert not canonical.same(True, 1)
    assert canonical.same(1, 1.0)


def test_errors_hold_no_content() -> None:
    with pytest.raises(canonical.JsonError) as caught:
        canonical.loads('{"secret": s3cr3t}')
    assert "s3cr3t" not in str(caught.value)
    assert "line 1" in str(caught.value)
