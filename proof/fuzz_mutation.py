"""Changes of inputs, and the loop that stands in where atheris is not installed.

That loop is blind to what an input reaches: it finds what lies near the kept corpus and nothing that takes several
lucky steps; the table says which engine ran.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from proof.fuzz_input import SEPARATOR, Target

_BYTES = bytes(range(256))


_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 20, 2**31, 2**63, 2**64, 1.5, 1e308, "", "a", "x" * 70, "é", "\ud800"),
    *("a\nb", "0" * 40, "pull", "repository", "installation", "rerequested", "labeled"),
    *("2026-01-02T03:04:05", [], {}, [1] * 30),
)
# As text, so that no two inputs share a list.
_ODD = tuple(json.dumps(value) for value in _VALUES)


def changed_json(data: bytes, random_: random.Random, longest: int) -> bytes:
    """The input with one to three values of the JSON in its last field replaced, removed, or put elsewhere."""
    head, separator, last = data.rpartition(SEPARATOR)
    try:
        root = [json.loads(last)]
    except (ValueError, RecursionError):
        return data
    for _ in range(random_.randrange(1, 4)):
        places: list[tuple[Any, Any]] = [(root, 0)]
        for holder, key in places:
            inner = holder[key]
            if isinstance(inner, dict):
                places += [(inner, each) for each in inner]
            elif isinstance(inner, list):
                places += [(inner, each) for each in range(len(inner))]
        holder, key = random_.choice(places)
        match random_.randrange(4):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1:
                other, where = random_.choice(places)
                holder[key] = json.loads(json.dumps(other[where]))
            case _:
                holder[key] = json.loads(random_.choice(_ODD))
    made = head + separator + json.dumps(root[0], separators=(",", ":")).encode()
    return made if len(made) <= longest else data


def mutated(target: Target, seeds: Sequence[bytes], random_: random.Random) -> bytes:
    """An input made of one or two others by a few changes."""
    chosen = random_.choice(seeds) if seeds else b""
    if target.json and random_.randrange(2):
        return changed_json(chosen, random_, target.longest)
    data = bytearray(chosen)
    for _ in range(1 + random_.randrange(5)):
        at = random_.randrange(len(data) + 1)
        match random_.randrange(6):
            case 0:
                data[at : at + 1 + random_.randrange(4)] = bytes(
                    random_.choices(_BYTES, k=random_.randrange(4))
                )
            case 1 if target.words:
                data[at:at] = random_.choice(target.words)
            case 2 if seeds:
                other = random_.choice(seeds)
                data[at:] = other[random_.randrange(len(other) + 1) :]
            case 3:
                data[at:at] = data[random_.randrange(len(data) + 1) :][:64] * random_.randrange(1, 9)
            case 4:
                del data[at : at + random_.randrange(1, 32)]
            case _:
                if at < len(data):
                    data[at] ^= 1 << random_.randrange(8)
    return bytes(data[: target.longest])


def fuzz(
    target: Target, seeds: Sequence[bytes], *, attempt: Callable[[bytes], None], seed: int, seconds: float
) -> int:
    """Attempt the seeds, then changed ones until the time is over; returns how many were attempted."""
    random_ = random.Random(seed)
    ends = time.monotonic() + seconds
    executions = 0
    for data in seeds:
        attempt(data)
        executions += 1
    while time.monotonic() < ends:
        attempt(mutated(target, seeds, random_))
        executions += 1
    return executions
