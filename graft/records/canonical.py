"""JSON exactly as JavaScript prints it, because hashes of it must agree between languages.

`dumps` sorts keys by UTF-16 code unit, writes numbers as `Number.prototype.toString` does and escapes strings
as `JSON.stringify` does. `loads` is stricter than JavaScript: it refuses equal keys in one object, numbers that
are no finite double, and nesting deeper than `MAX_DEPTH`, so that a value read here has one meaning.
Every number is a float after `loads`; `True` is never a number.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping

MAX_DEPTH = 32
"""Deepest nesting `loads` accepts; a receipt or manifest needs six levels."""

_ESCAPED = re.compile('["\\\\\x00-\x1f\ud800-\udfff]')
_SURROGATE = re.compile("[\ud800-\udfff]")
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


class JsonError(ValueError):
    """The text is not JSON that has one meaning; the message says where and never quotes the text."""


def number(value: float) -> str:
    """A finite double as JavaScript prints it: `1`, `-1.5`, `1e-7`, `1e+21`; minus zero is `0`."""
    if not math.isfinite(value):
        raise JsonError("a number is not finite")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # `point` is where the decimal point stands in `digits`: the value is 0.DIGITS times ten to this power.
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    power = point - 1
    head = digits[0] + ("." + digits[1:] if count > 1 else "")
    return f"{sign}{head}e{'+' if power > 0 else '-'}{abs(power)}"


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    return _SHORT.get(char) or f"\\u{ord(char):04x}"


def _paired(text: str) -> str:
    """Surrogates that stand side by side are one character, as they are in a JavaScript string."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def string(text: str) -> str:
    """A JSON string; a lone surrogate is written as `\\udXXX`, everything from DEL on is left raw."""
    if not _ESCAPED.search(text):
        return '"' + text + '"'
    return '"' + _ESCAPED.sub(_escape, _paired(text)) + '"'


def _units(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def dumps(value: object) -> str:
    """The canonical text of null, booleans, numbers, strings, lists and mappings with string keys.

    Raises JsonError for anything else and for a number that is not finite.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        try:
            return number(float(value))
        except OverflowError:
            raise JsonError("a number is too large") from None
    if isinstance(value, str):
        return string(value)
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([dumps(item) for item in value]) + "]"
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise JsonError("a key is not a string")
        keys = sorted(value, key=None if "".join(value).isascii() else _units)
        return "{" + ",".join([string(key) + ":" + dumps(value[key]) for key in keys]) + "}"
    raise JsonError(f"{type(value).__name__} has no JSON form")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise JsonError("an object has the same key twice")
    return value


def _double(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise JsonError("a number is not finite")
    return value


def _constant(name: str) -> float:
    raise JsonError(f"{name} is not JSON")


def _check_depth(text: str) -> None:
    depth = 0
    for match in _STRUCTURE.finditer(text):
        token = match.group()
        if token in ("[", "{"):
            depth += 1
            if depth > MAX_DEPTH:
                raise JsonError(f"nested deeper than {MAX_DEPTH} levels")
        elif token in ("]", "}"):
            depth -= 1


def loads(text: str) -> object:
    """The value of one JSON text, numbers as floats. Raises JsonError with the line, never the content."""
    _check_depth(text)
    try:
        value: object = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_float=_double,
            parse_int=_double,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        raise JsonError(f"not JSON at line {error.lineno}, column {error.colno}") from None
    return value


def same(left: object, right: object) -> bool:
    """Whether two JSON values have the same canonical text, so `true` never equals `1`."""
    return dumps(left) == dumps(right)


def sha256(text: str) -> str:
    """Lower-case hex SHA-256 of the text's UTF-8 bytes; a lone surrogate counts as U+FFFD, as in Node."""
    return hashlib.sha256(
        _paired(text).encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
    ).hexdigest()
