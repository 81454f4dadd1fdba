"""Reads the small, safe part of YAML that a policy needs, as nodes that know where they stand.

Nothing is constructed: a scalar stays the text that was written, together with whether it was plain, and the
reader of a field decides what it may mean (`no`, `0755` and `2026-01-01` are text; only `true` and `false` are
booleans). Refused: anchors, aliases, merge keys, tags, a second document, keys that are not text, duplicate
keys, control characters, anything but UTF-8, and whatever passes the bounds below. Every problem that can be
told apart is reported, not only the first; after a syntax error nothing further can be.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import yaml

from graft.policy.problems import Problems, child

MAX_BYTES = 1_000_000
MAX_DEPTH = 20
MAX_NODES = 8_000

# libyaml where the wheel has it (all CPython wheels do): 1 MB in milliseconds instead of seconds.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# C0 and C1 controls without tab and line feeds; line and paragraph separator, which YAML 1.1 and 1.2 read
# differently; a byte order mark inside the text; surrogates.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")


class Node:
    """Where something stands, in line, column (both from 1) and path."""

    __slots__ = ("column", "line", "path")

    def __init__(self, line: int, column: int, path: str) -> None:
        self.line = line
        self.column = column
        self.path = path


class Scalar(Node):
    """Text as written; `plain` when it stood there without quotes."""

    __slots__ = ("plain", "text")

    def __init__(self, line: int, column: int, path: str, text: str, *, plain: bool) -> None:
        super().__init__(line, column, path)
        self.text = text
        self.plain = plain

    @property
    def is_null(self) -> bool:
        return self.plain and self.text in ("", "~", "null", "Null", "NULL")

    @property
    def is_boolean(self) -> bool:
        """One of the six spellings of YAML 1.2's core schema."""
        return self.plain and self.text in ("true", "True", "TRUE", "false", "False", "FALSE")


class Sequence(Node):
    __slots__ = ("items",)

    def __init__(self, line: int, column: int, path: str) -> None:
        super().__init__(line, column, path)
        self.items: list[Node] = []


class Mapping(Node):
    """`entries` maps each key to its own node and its value's."""

    __slots__ = ("entries",)

    def __init__(self, line: int, column: int, path: str) -> None:
        super().__init__(line, column, path)
        self.entries: dict[str, tuple[Node, Node]] = {}


class Refused(Node):
    """Stands for something already reported, so that nobody reports it twice."""

    __slots__ = ()


def read(data: bytes, problems: Problems, *, loader: Any = LOADER) -> Node | None:
    """The root node of the only document. `None`, with at least one problem added, when there is none to look
    at: too large, not UTF-8, empty, or a syntax error. Never raises on any bytes."""
    if len(data) > MAX_BYTES:
        problems.add(1, 1, "$", f"the file is larger than {MAX_BYTES // 1_000_000} MB")
        return None
    text = _decode(data, problems)
    if text is None:
        return None
    builder = _Builder(problems)
    try:
        for event in yaml.parse(text, Loader=loader):
            if not builder.take(event):
                return None
    except yaml.YAMLError as error:
        _add_syntax_problem(error, text, builder.path, problems)
        return None
    except (ValueError, OverflowError):  # PyYAML without libyaml, on absurd numbers in directives and escapes
        problems.add(1, 1, builder.path, "this is not valid YAML")
        return None
    if builder.root is None:
        problems.add(1, 1, "$", "the file is empty: `version: 1` alone is a valid policy")
    return builder.root


def _decode(data: bytes, problems: Problems) -> str | None:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\x00" in data[:2]:
        problems.add(1, 1, "$", "the file is UTF-16 or UTF-32: save it as UTF-8")
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = _position(data[: error.start].decode("utf-8-sig", "replace"))
        problems.add(line, column, "$", "the file is not UTF-8 from here on: save it as UTF-8")
        return None
    if (found := _CONTROL.search(text)) is not None:
        line, column = _position(text[: found.start()])
        problems.add(line, column, "$", "a control character (NUL, escape, …) stands here: remove it")
        return None
    return text


def _position(before: str) -> tuple[int, int]:
    lines = re.split(r"\r\n|\r|\n", before)
    return len(lines), len(lines[-1]) + 1


class _Frame:
    __slots__ = ("is_key", "key", "node")

    def __init__(self, node: Sequence | Mapping, *, is_key: bool) -> None:
        self.node = node
        self.is_key = is_key
        self.key: Node | None = None  # a mapping's key that waits for its value


class _Builder:
    """Builds nodes from parser events without recursion, within the bounds."""

    def __init__(self, problems: Problems) -> None:
        self.root: Node | None = None
        self._problems = problems
        self._stack: list[_Frame] = []
        self._nodes = 0
        self._documents = 0

    @property
    def path(self) -> str:
        """Where reading stands: the innermost open mapping or list, or its key that waits for a value."""
        if not self._stack:
            return "$"
        frame = self._stack[-1]
        return frame.key.path if frame.key is not None else frame.node.path

    def take(self, event: yaml.Event) -> bool:
        """Take one event; False when a bound is passed and reading must stop."""
        mark = event.start_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                self._problems.add(
                    line, column, "$", "a second document starts here: a policy is one document"
                )
                return False
        elif isinstance(event, yaml.NodeEvent):
            self._nodes += 1
            if self._nodes > MAX_NODES:
                self._problems.add(line, column, self.path, f"the file has more than {MAX_NODES:,} values")
                return False
            return self._node(event, line, column)
        elif isinstance(event, yaml.CollectionEndEvent):
            frame = self._stack.pop()
            if frame.is_key:
                self._stack[-1].key = Refused(frame.node.line, frame.node.column, frame.node.path)
            else:
                self._place(frame.node)
        return True

    def _node(self, event: yaml.NodeEvent, line: int, column: int) -> bool:
        parent = self._stack[-1] if self._stack else None
        is_key = parent is not None and isinstance(parent.node, Mapping) and parent.key is None
        path = self._path_of_next(event if is_key else None)
        refused = self._refuse(event, line, column, path)
        if isinstance(event, yaml.CollectionStartEvent):
            if len(self._stack) == MAX_DEPTH:
                self._problems.add(
                    line, column, path, f"the file is nested more than {MAX_DEPTH} levels deep"
                )
                return False
            if is_key:
                self._problems.add(line, column, path, "a key must be plain text, not a list or mapping")
            made = Sequence if isinstance(event, yaml.SequenceStartEvent) else Mapping
            self._stack.append(_Frame(made(line, column, path), is_key=is_key))
            return True
        node: Node = Refused(line, column, path)
        if isinstance(event, yaml.ScalarEvent) and not refused:
            node = Scalar(line, column, path, event.value, plain=not event.style)
        if is_key:
            assert parent is not None
            parent.key = node
        else:
            self._place(node)
        return True

    def _path_of_next(self, key_event: yaml.NodeEvent | None) -> str:
        if not self._stack:
            return "$"
        frame = self._stack[-1]
        if isinstance(frame.node, Sequence):
            return f"{frame.node.path}[{len(frame.node.items)}]"
        if key_event is None:
            return self.path
        return child(frame.node.path, key_event.value if isinstance(key_event, yaml.ScalarEvent) else "")

    def _refuse(self, event: yaml.NodeEvent, line: int, column: int, path: str) -> bool:
        if isinstance(event, yaml.AliasEvent):
            why = "`*` starts an alias in YAML, which is not supported: put a glob in quotes"
        elif event.anchor is not None:
            why = "`&` starts an anchor in YAML, which is not supported: write the value where it is needed"
        elif getattr(event, "tag", None) is not None:
            why = "`!` starts a tag in YAML, which is not supported: put the text in quotes"
        elif isinstance(event, yaml.ScalarEvent) and _CONTROL.search(event.value):
            why = "the text has an escaped control character: remove it"
        else:
            return False
        self._problems.add(line, column, path, why)
        return True

    def _place(self, node: Node) -> None:
        if not self._stack:
            self.root = node
            return
        frame = self._stack[-1]
        if isinstance(frame.node, Sequence):
            frame.node.items.append(node)
            return
        key, frame.key = frame.key, None
        if isinstance(key, Scalar):
            self._add_entry(frame.node, key, node)

    def _add_entry(self, mapping: Mapping, key: Scalar, value: Node) -> None:
        why = None
        if key.is_null or key.is_boolean:
            why = "this key is not text: put it in quotes or correct it"
        elif key.plain and key.text == "<<":
            why = "merge keys (`<<`) are not supported: write the keys out"
        elif key.text in mapping.entries:
            first = mapping.entries[key.text][0]
            why = f"this key is given twice; the first is on line {first.line}"
        if why is None:
            mapping.entries[key.text] = (key, value)
        else:
            self._problems.add(key.line, key.column, key.path, why)


# -------------------------------------------------------------------------------------------- syntax errors
# PyYAML and libyaml word the same error differently, and may quote the file. What they mean is told here.

_BY_CHARACTER = {
    "@": "a plain value cannot start with `@`: put the name in quotes",
    "`": "a plain value cannot start with a backtick: put the text in quotes",
    "%": "a plain value cannot start with `%`: put the text in quotes",
    "\t": "a tab cannot indent: use spaces",
}
_BY_CONTEXT = (("alias", "`*`"), ("anchor", "`&`"), ("scanning a tag", "`!`"))
_BY_PROBLEM = (
    ("exceeded", f"the file is nested more than {MAX_DEPTH} levels deep"),
    (
        "mapping values are not allowed",
        "a `:` stands where no key can be: put the text in quotes or check the indentation",
    ),
    ("could not find expected ':'", "the line before has no `:` after its key"),
    ("unexpected end of stream", "a quote is not closed"),
    ("unexpected document", "a quote or bracket is not closed"),
    ("',' or", "a `[` or `{` is not closed, or a comma is missing"),
    ("escape", "a backslash in double quotes starts an escape: use single quotes"),
    (
        "'-' indicator",
        "this line does not continue the list above: check the indentation, quote text that starts with `[` or `{`",
    ),
    ("expected key", "this line does not continue the mapping above: check the indentation and the quotes"),
    ("<block end>", "this line does not continue what stands above: check the indentation and the quotes"),
)


def _add_syntax_problem(error: yaml.YAMLError, text: str, path: str, problems: Problems) -> None:
    mark = getattr(error, "problem_mark", None)
    context = getattr(error, "context", None) or ""
    what = getattr(error, "problem", None) or ""
    sign = next((found for word, found in _BY_CONTEXT if word in context), None)
    if sign is not None or "end of stream" in what:
        mark = getattr(error, "context_mark", None) or mark
    if sign is not None:
        message = f"a plain value cannot start with {sign}: put a glob in quotes"
    else:
        message = next((ours for theirs, ours in _BY_PROBLEM if theirs in what), "this is not valid YAML")
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    if "cannot start any token" in what:
        message = _BY_CHARACTER.get(_character_at(text, line, column), message)
    problems.add(line, column, path, message)


def _character_at(text: str, line: int, column: int) -> str:
    lines = re.split(r"\r\n|\r|\n", text)
    return lines[line - 1][column - 1 : column] if line <= len(lines) else ""


def is_printable(text: str) -> bool:
    """No control, format or unassigned character: what may stand in a name."""
    return not any(unicodedata.category(char)[0] == "C" or char in "\u2028\u2029" for char in text)
