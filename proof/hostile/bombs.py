"""Inputs that are small to send and made to be dear to read: each ends soon, with an error or with little.

A bomb says what Graft answered: an error in its own words, or the bounded value that it was reduced to.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Final

from msgspec import Struct

from graft import payloads, policy, provenance
from graft.changes import Commit, Person
from graft.diffs import parse_diff
from graft.errors import PermanentError
from graft.globs import GlobError, compile_glob
from graft.intent.answers import writer_reader
from graft.llm import AnswerError, JsonError, decode_object
from graft.provenance.commits import MESSAGE_LIMIT
from graft.records import canonical, record

LONGEST_SECONDS: Final = 0.1
_SHA = "1" * 40
_CONTEXT: Final = payloads.Context(
    delivery_id="d-1", received_at=datetime(2026, 12, 1, tzinfo=UTC), app_id=1, incident_label=None
)


class Bomb(Struct, frozen=True, kw_only=True):
    """`light` makes Graft read it and returns what came of it; empty when it was taken for good."""

    kind: str
    name: str
    size: int
    light: Callable[[], str]


def bombs() -> Iterator[Bomb]:
    """Every bomb. Sizes are what a sender can really bring in: the limits of GitHub and of Graft."""
    for kind, texts, read in (
        ("YAML", _YAML, _policy),
        ("glob", _GLOBS, _glob),
        ("trailer", _MESSAGES, _message),
        ("diff", _DIFFS, _diff),
        ("JSON, payload", _JSON, _payload),
        ("JSON, model", _JSON, _model),
        ("JSON, receipt", _JSON, _receipt),
        ("record", _RECORDS, _record),
    ):
        for name, make in texts.items():
            text = make()
            yield Bomb(kind=kind, name=name, size=len(text), light=lambda read=read, text=text: read(text))  # type: ignore[misc]


def seconds(bomb: Bomb) -> tuple[float, str]:
    """Processor time of reading it, the best of three, and what came of it."""
    best, answer = float("inf"), ""
    for _ in range(3):
        begin = time.process_time()
        answer = bomb.light()
        best = min(best, time.process_time() - begin)
    return best, answer


def _message_of(head: str, unit: str) -> str:
    return (head + unit * MESSAGE_LIMIT)[:MESSAGE_LIMIT]


_YAML: Final[dict[str, Callable[[], str]]] = {
    "aliases that multiply": lambda: (
        "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 400))
    ),
    "merge keys that multiply": lambda: "a: &a {b: 1}\n" + "c: {<<: [*a, *a, *a]}\n" * 2_000,
    "an alias of itself": lambda: "a: &a [*a]\n",
    "brackets": lambda: "[" * 900_000,
    "braces": lambda: "{a: " * 200_000,
    "nested lists": lambda: "- " * 400_000,
    "keys that are keys": lambda: "? " * 400_000,
    "many keys": lambda: "version: 1\n" + "".join(f"k{n}: 1\n" for n in range(70_000)),
    "one key many times": lambda: "version: 1\n" * 80_000,
    "many rules": lambda: "version: 1\nrules:\n" + "- {name: a, when: {}, then: block}\n" * 25_000,
    "many globs": lambda: "version: 1\nsensitive_paths:\n" + '- "*a*b*c*"\n' * 19_000,
    "many documents": lambda: "---\n" * 200_000,
    "tags": lambda: "!!python/object/apply:os.system [x]\n" * 20_000,
    "one long line": lambda: "version: " + "1" * 900_000,
    "escapes": lambda: 'version: "' + "\\x41" * 200_000 + '"',
    "too large": lambda: "#" * 5_000_000,
}
_GLOBS: Final[dict[str, Callable[[], str]]] = {
    "stars": lambda: "*a" * 250,
    "stars and questions": lambda: "*?" * 240,
    "doubled stars": lambda: "**/" * 160 + "x",
    "stars in every segment": lambda: "*a*/" * 120 + "x",
    "classes": lambda: "[a-z]" * 90 + "*" + "[!a]" * 10,
    "braces": lambda: "{a,b}" * 90,
    "nested braces": lambda: "{" * 200 + "}" * 200,
    "an open class": lambda: "[" + "a-" * 240,
    "ranges": lambda: "[" + "\u0000-\U0010ffff" * 150 + "]",
    "backslashes": lambda: "\\" * 499,
    "too long": lambda: "*" * 1_000_000,
}
# A longer message than this is not read at all, so these are as long as they may be.
_MESSAGES: Final[dict[str, Callable[[], str]]] = {
    name: partial(_message_of, head, unit)
    for name, head, unit in (
        ("trailers", "x\n\n", "Graft-Agent: a\n"),
        ("one trailer over many lines", "x\n\nGraft-Agent: a\n", " b\n"),
        ("colons", "x\n\n", "a:"),
        ("dashes", "x\n\n", "-"),
        ("blank lines", "x\n", "\n"),
        ("comments", "x\n\n", "#\n"),
        ("many people", "x\n\n", "Co-authored-by: a <a@b.c>\n"),
        ("an agent as every co-author", "x\n\n", "Co-authored-by: Claude <noreply@anthropic.com>\n"),
        ("nearly a signature", "", "Generated with ["),
        ("links", "", "[Claude Code](https://claude.ai/"),
    )
} | {"too long": lambda: "x" * 5_000_000}
# GitHub gives a diff of 20,000 lines at most; these have twice as many, where it is lines that cost.
_DIFFS: Final[dict[str, Callable[[], str]]] = {
    "a hunk of ten billion lines": lambda: (
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,9999999999 +1,9999999999 @@\n" + " \n" * 40_000
    ),
    "hunks": lambda: "diff --git a/x b/x\n--- a/x\n+++ b/x\n" + "@@ -0,0 +0,0 @@\n" * 40_000,
    "files": lambda: "diff --git a/x b/x\n" * 3_000,
    "a name of quotes": lambda: 'diff --git "a/' + "\\303\\244" * 100_000 + '" "b/x"\n',
    "a name of spaces": lambda: "diff --git a/" + " b/" * 200_000 + "\n",
    "long lines": lambda: "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n+" + "x" * 900_000,
    "headers in the content": lambda: (
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,50000 +1 @@\n" + "-diff --git a/y b/y\n" * 50_000
    ),
    "only line ends": lambda: "\n" * 900_000,
}
_JSON: Final[dict[str, Callable[[], str]]] = {
    "brackets": lambda: "[" * 900_000,
    "objects": lambda: '{"a":' * 150_000,
    "closed objects": lambda: '{"action":' * 50_000 + "1" + "}" * 50_000,
    "a number of digits": lambda: '{"number": ' + "9" * 300_000 + "}",
    "an exponent": lambda: '{"number": 1e999999999}',
    "one key many times": lambda: "{" + '"a": 1, ' * 40_000 + '"a": 1}',
    "escapes": lambda: '{"action": "' + "\\u0041" * 60_000,
    "lone surrogates": lambda: '{"action": "' + "\\ud800" * 50_000 + '", "x": tru',
    "an open string": lambda: '{"action": "' + "x" * 380_000,
    "beginnings": lambda: '{"' * 190_000,
    "not a number": lambda: '{"number": NaN, "x": Infinity}',
}
_RECORDS: Final[dict[str, Callable[[], str]]] = {
    "rules": lambda: "# x\n\nstatus: approved\n\n## Rules\n\n" + "R1: a\n" * 10_000,
    "headings": lambda: "## Rules\n" * 10_000,
    "hashes": lambda: "#" * 250_000,
    "states": lambda: "status: approved\n" * 10_000,
    "line ends": lambda: "\r\n" * 210_000,
}


def _policy(text: str) -> str:
    return "; ".join(problem.message for problem in policy.parse(text.encode()).problems[:1])


def _glob(text: str) -> str:
    try:
        glob = compile_glob(text)
    except GlobError as error:
        return error.reason
    # A glob that is taken has to be quick on every path, too.
    path = "a" * 120 + "/" + "a/" * 60 + "aaaa"
    return f"matches {sum(glob.matches(path + str(n)) for n in range(20))} of 20 paths"


def _message(text: str) -> str:
    person = Person(name="a", email="a@b.c")
    commit = Commit(sha=_SHA, message=text, author=person, committer=person)
    return str(provenance.resolve([commit]).reason)


def _diff(text: str) -> str:
    files = parse_diff(text)
    return f"{len(files)} files"


def _payload(text: str) -> str:
    try:
        reduced = payloads.reduce("pull_request", text.encode(), _CONTEXT)
    except PermanentError as error:
        return error.reason
    return f"ignored: {reduced.reason}" if isinstance(reduced, payloads.Ignored) else ""


def _model(text: str) -> str:
    try:
        writer_reader(("x",))(decode_object(text))
    except (JsonError, AnswerError) as error:
        return str(error)
    return ""


def _receipt(text: str) -> str:
    try:
        canonical.loads(text)
    except canonical.JsonError as error:
        return str(error)
    return "read"


def _record(text: str) -> str:
    parsed = record.parse(".intent/records/0001-x.md", text.encode())
    return "; ".join(problem.message for problem in parsed.problems[:1])
