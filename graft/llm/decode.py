"""From a model's text to one JSON value, whatever the model wrapped around it.

Structured output makes the plain case the rule; fences, prose around the object and broken escapes still
happen with gateways and older models. Time is linear in the text (a few candidates are tried), depth and length
are bounded, and the strings that come back hold neither NUL nor lone surrogates: Postgres takes neither.
"""

from __future__ import annotations

import json
import re
from typing import Any

MAX_TEXT = 400_000
_MAX_DEPTH = 40
_MAX_CANDIDATES = 8
_FENCE = re.compile(r"```[a-zA-Z0-9]*[ \t]*\n(.*?)```", re.DOTALL)
_UNFIT = re.compile("[\x00\ud800-\udfff]")


class JsonError(ValueError):
    """No JSON object was found. The message says why and never quotes the text."""


def decode_object(text: str) -> dict[str, Any]:
    """The JSON object in `text`: all of it, inside a fence, or the first one inside prose. Raises `JsonError`."""
    if len(text) > MAX_TEXT:
        raise JsonError(f"the answer is longer than {MAX_TEXT:,} characters")
    stripped = text.strip().removeprefix("\ufeff").strip()
    candidates = [
        stripped,
        *(match[1] for match, _ in zip(_FENCE.finditer(stripped), range(4), strict=False)),
    ]
    for candidate in candidates:
        found = _loads(candidate)
        if isinstance(found, dict):
            return _cleaned(found)
    at = -1
    for _ in range(_MAX_CANDIDATES):
        at = stripped.find("{", at + 1)
        if at < 0:
            break
        found = _loads(stripped[at:], whole=False)
        if isinstance(found, dict):
            return _cleaned(found)
    raise JsonError("the answer holds no JSON object")


def _loads(text: str, *, whole: bool = True) -> Any:
    try:
        value, end = _DECODER.raw_decode(text.strip())
    except (ValueError, RecursionError):
        return None
    if whole and text.strip()[end:].strip():
        return None
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(name)


# strict=False lets raw line breaks stand inside strings, which models write and nothing here minds.
_DECODER = json.JSONDecoder(parse_constant=_no_constant, strict=False)


def _cleaned(value: dict[str, Any]) -> dict[str, Any]:
    cleaned = _clean(value, 0)
    assert isinstance(cleaned, dict)
    return cleaned


def _clean(value: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise JsonError(f"the answer is nested more than {_MAX_DEPTH} levels deep")
    if isinstance(value, str):
        return _UNFIT.sub("", value)
    if isinstance(value, list):
        return [_clean(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_UNFIT.sub("", key): _clean(item, depth + 1) for key, item in value.items()}
    return value
