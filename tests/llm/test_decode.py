from __future__ import annotations

import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft.llm import JsonError, decode_object


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '  \n{"a": 1}\n',
        '\ufeff{"a": 1}',
        '```json\n{"a": 1}\n```',
        '```\n{"a": 1}\n```',
        'Sure!\n\n```json\n{"a": 1}\n```\nAnything else?',
        'The answer is {"a": 1}.',
        'A set {x} first, then {"a": 1}',
        '{"a": 1} {"b": 2}',
        '{"a":\n1}',
    ],
)
def test_the_object_is_found(text: str) -> None:
    assert decode_object(text) == {"a": 1}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no",
        "[]",
        '"x"',
        "1",
        "null",
        '{"a": ',
        '{"a": NaN}',
        '{"a": Infinity}',
        "{" * 50,
        "}{",
        "```json\n```",
    ],
)
def test_no_object(text: str) -> None:
    with pytest.raises(JsonError) as caught:
        decode_object(text)
    assert caught.value.__cause__ is None


def test_raw_line_breaks_and_unfit_characters_in_strings() -> None:
    assert decode_object('{"a": "x\ny", "b\\u0000": ["\\ud800z\\u0000"], "c": {"d": "\\ud83d\\ude00"}}') == {
        "a": "x\ny",
        "b": ["z"],
        "c": {"d": "😀"},
    }


@pytest.mark.parametrize(
    "text", ['{"a":' * 100_000, '{"a": ' + "[" * 5_000 + "]" * 5_000 + "}", "{" * 390_000]
)
def test_depth_is_bounded(text: str) -> None:
    with pytest.raises(JsonError):
        decode_object(text)


def test_length_is_bounded() -> None:
    with pytest.raises(JsonError, match="longer"):
        decode_object('{"a": "' + "x" * 400_000 + '"}')


def test_huge_numbers_do_not_raise_anything_else() -> None:
    with pytest.raises(JsonError):
        decode_object('{"a": ' + "9" * 10_000 + "}")


@given(st.text(st.sampled_from('{}[]":,\\ab1`\nu0d8'), max_size=80))
def test_any_text_is_an_object_or_an_error(text: str) -> None:
    with contextlib.suppress(JsonError):
        assert isinstance(decode_object(text), dict)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8), lambda inner: st.lists(inner, max_size=3)
)


@given(
    st.dictionaries(st.text(max_size=5), plain, max_size=4),
    st.sampled_from(["{}", "x {}", "```json\n{}\n```"]),
)
def test_what_json_wrote_is_read_back(value: dict[str, object], around: str) -> None:
    read = decode_object(around.replace("{}", json.dumps(value)))
    assert read == json.loads(json.dumps(value).replace("\\u0000", ""))


def test_time_is_linear() -> None:
    begin = time.process_time()
    for text in (
        "{" * 399_000,
        '{"a":"' * 60_000,
        "```json\n" * 49_000,
        '{"a":1' * 60_000,
        "```\n{" * 70_000,
    ):
        with pytest.raises(JsonError):
            decode_object(text)
    assert time.process_time() - begin < 2
