"""What is wrong with a policy file: where, and what to write instead.

The same values are printed by `graft policy check` and published on a pull request, so their text is built
here and nowhere else. It never holds a value of the file; of keys, only plain words.
"""

from __future__ import annotations

import re

import msgspec

MAX_PROBLEMS = 50

_PLAIN_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}\Z")


class Problem(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """`line` and `column` count from 1; `path` is `$` or below (`$.rules[2].when.max_risk`)."""

    line: int
    column: int
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.path}: {self.message}"


class Problems:
    """Collects up to `MAX_PROBLEMS` problems; `found` gives them in the order of the file."""

    def __init__(self) -> None:
        self._items: list[Problem] = []
        self._dropped = False

    def __bool__(self) -> bool:
        return bool(self._items)

    @property
    def full(self) -> bool:
        """Whether a further problem would not be listed, so that its text need not be made."""
        return len(self._items) == MAX_PROBLEMS

    def add(self, line: int, column: int, path: str, message: str) -> None:
        problem = Problem(line=line, column=column, path=path, message=message)
        if len(self._items) < MAX_PROBLEMS:
            self._items.append(problem)
        else:
            self._dropped = True

    def found(self) -> tuple[Problem, ...]:
        items = sorted(self._items)
        if self._dropped:
            last = items[-1]
            more = f"more problems follow; only the first {MAX_PROBLEMS} are listed"
            items.append(Problem(line=last.line, column=last.column, path="$", message=more))
        return tuple(items)


def child(path: str, key: str) -> str:
    """The path of a key below `path`; a key that is no plain word is not repeated."""
    return f"{path}.{key}" if _PLAIN_KEY.match(key) else f'{path}["?"]'
