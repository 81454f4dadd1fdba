"""What a fuzz target is, and how every program that runs one treats its inputs.

A target takes any bytes and returns, or raises: whatever it raises is a find, an invariant that did not hold as
much as an exception that nobody documented. An input has fields, parted by the byte 0x1E, so that a kept one can
be read and edited.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

CORPUS: Final = Path(__file__).with_name("corpus")
SEPARATOR: Final = b"\x1e"


class Target(Struct, frozen=True, kw_only=True):
    """`check` raises for a find. `words` are pieces of the language that inputs are written in, `json` says that
    the last field is JSON, whose decoder shows nothing of the way it takes. Inputs are at most `longest` bytes.

    `seconds` of processor time is what one may take, instrumented: nothing takes a tenth of it, and what backtracks
    passes it.
    """

    name: str
    check: Callable[[bytes], None]
    words: tuple[bytes, ...] = ()
    json: bool = False
    longest: int = 4096
    seconds: float = 2.0


class TooSlow(AssertionError):
    """An input took more processor time than its target allows."""


def fields(data: bytes, count: int) -> list[bytes]:
    """Exactly `count` fields; missing ones are empty, the last one holds the rest."""
    found = data.split(SEPARATOR, count - 1)
    return found + [b""] * (count - len(found))


def text(data: bytes) -> str:
    """As text reaches Graft: invalid UTF-8 has been replaced."""
    return data.decode("utf-8", "replace")


def number(data: bytes, limit: int) -> int:
    """A number below `limit` from a field that may hold anything."""
    return (int(data) if data.isdigit() and len(data) < 10 else len(data)) % limit


def run(target: Target, data: bytes) -> None:
    """One input, within its time. Raises what the target raises, or `TooSlow`."""
    started = time.process_time()
    target.check(data)
    if time.process_time() - started > target.seconds:
        raise TooSlow(f"{len(data)} bytes took more than {target.seconds:g} s")


def corpus(name: str, *, root: Path = CORPUS) -> list[Path]:
    """The kept inputs of a target, finds among them."""
    return sorted(path for path in (root / name).glob("*") if path.is_file())
