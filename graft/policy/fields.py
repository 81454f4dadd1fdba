"""Reads one value of a node as what a field expects, or reports why it is not that.

Every reader returns `None` after it has added a problem, and adds none for a `Refused` node.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from graft.globs import Glob, GlobError, GlobSet, compile_glob
from graft.policy.document import Mapping as MappingNode
from graft.policy.document import Node, Refused, Scalar, is_printable
from graft.policy.document import Sequence as SequenceNode
from graft.policy.problems import Problems

MAX_LIST = 500
MAX_NUMBER = 1_000_000

_INTEGER = re.compile(r"(?:0|[1-9][0-9]{0,8})\Z")

T = TypeVar("T")


class Fields:
    """The readers, bound to where problems go."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems

    def refuse(self, node: Node, message: str) -> None:
        if not isinstance(node, Refused):
            self.problems.add(node.line, node.column, node.path, message)

    def mapping(
        self, node: Node, known: Iterable[str], *, required: Sequence[str] = (), hint: str = ""
    ) -> Mapping[str, Node] | None:
        """The values by key. Unknown keys are reported and left out, missing ones reported at the mapping."""
        if not isinstance(node, MappingNode):
            self._wrong(node, f"must be a mapping{hint}")
            return None
        known = tuple(known)
        values: dict[str, Node] = {}
        for key, (key_node, value) in node.entries.items():
            if key in known:
                values[key] = value
            else:
                self.refuse(key_node, "" if self.problems.full else _unknown_key(key, known))
        for key in required:
            if key not in values:
                self.problems.add(node.line, node.column, node.path, f"needs `{key}`")
        return values

    def sequence(self, node: Node, what: str, limit: int = MAX_LIST) -> list[Node] | None:
        if not isinstance(node, SequenceNode):
            self._wrong(node, f"must be a list of {what}")
            return None
        if len(node.items) > limit:
            self.refuse(node.items[limit], f"the list has more than {limit} {what}")
            return None
        return node.items

    def text(self, node: Node, *, limit: int, lines: bool = False) -> str | None:
        """Text of one line, or of several where `lines`; never empty."""
        if not isinstance(node, Scalar) or node.is_null:
            self._wrong(node, "must be text")
        elif node.is_boolean:
            self.refuse(node, "is a boolean where text is expected: put it in quotes if it is meant as text")
        elif not node.text.strip():
            self.refuse(node, "must not be empty")
        elif len(node.text) > limit:
            self.refuse(node, f"is longer than {limit:,} characters")
        elif not is_printable(node.text.replace("\n", "").replace("\t", "") if lines else node.text):
            self.refuse(node, "must be printable text" if lines else "must be printable text on one line")
        else:
            return node.text.strip() if lines else node.text
        return None

    def number(self, node: Node, *, low: int = 0, high: int = MAX_NUMBER) -> int | None:
        if (
            isinstance(node, Scalar)
            and node.plain
            and _INTEGER.match(node.text)
            and low <= int(node.text) <= high
        ):
            return int(node.text)
        self._wrong(node, f"must be a whole number from {low:,} to {high:,} in plain digits, without quotes")
        return None

    def boolean(self, node: Node) -> bool | None:
        if isinstance(node, Scalar) and node.is_boolean:
            return node.text.lower() == "true"
        self._wrong(node, "must be `true` or `false` (`yes`, `no`, `on` and `off` are text)")
        return None

    def choice(self, node: Node, choices: Sequence[str]) -> str | None:
        if isinstance(node, Scalar) and node.text in choices:
            return node.text
        self._wrong(node, f"must be {_listed(choices)}")
        return None

    def several(self, node: Node, read: Callable[[Node], T | None], what: str) -> tuple[T, ...] | None:
        """A list of at least one, or one value standing alone; reads all of it and reports each problem."""
        if isinstance(node, Scalar) and not node.is_null:
            nodes: list[Node] | None = [node]
        else:
            nodes = self.sequence(node, what)
        if nodes is None:
            return None
        if not nodes:
            self.refuse(node, f"the list is empty: name {what}, or remove the key")
            return None
        values = [read(item) for item in nodes]
        found = tuple(value for value in values if value is not None)
        return found if len(found) == len(values) else None

    def glob(self, node: Node, *, anchored: bool = False) -> Glob | None:
        text = self.text(node, limit=10_000)
        if text is None:
            return None
        try:
            return compile_glob(text, anchored=anchored)
        except GlobError as error:
            self.refuse(node, f"the glob {error.reason}")
            return None

    def globs(self, node: Node, *, anchored: bool = False) -> GlobSet | None:
        found = self.several(node, lambda item: self.glob(item, anchored=anchored), "globs")
        return None if found is None else GlobSet(found)

    def _wrong(self, node: Node, message: str) -> None:
        if isinstance(node, Scalar) and node.is_null:
            message = f"is empty: it {message}"
        self.refuse(node, message)


def _unknown_key(key: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(key[:40].lower(), known, n=1)
    guess = (
        f": did you mean `{close[0]}`?" if close else f": known here are {', '.join(f'`{k}`' for k in known)}"
    )
    return f"this key is not known{guess}"


def _listed(choices: Sequence[str]) -> str:
    quoted = [f"`{choice}`" for choice in choices]
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}" if len(quoted) > 1 else quoted[0]
