"""The scanner of Bend files: it refuses rather than guesses, and never hides a declaration."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graft.records import scanner

GOOD = (
    """# comment with law x: in it
import Base
import ./types.bend as T

type State<a, -A: Kind(a)> is Data:
  Stopped{}   # def g(x):
  Active{since: U32, name: String}

# doc of f
def f(x: U32, +y: Nat) -> String:
  z = 'law'
""".replace("'law'", "'l'")
    + """  "a string \\" with law y: inside"

@unsafe
def g?(x: Nat) -> Nat:
  1n+x

law first:
  for x: Nat
  {M.f(x, 1n) == 0x1F : U32}

law second.part :
  {1.5e-3 == '\\u{1F600}' : F32}
"""
)


def test_declarations_with_lines_and_aliases() -> None:
    found = scanner.scan(GOOD, laws=True)
    assert found.refusals == ()
    assert [(item.kind, item.name, item.line) for item in found.declarations] == [
        ("import", "Base", 2),
        ("import", "./types.bend", 3),
        ("type", "State", 5),
        ("def", "f", 10),
        ("def", "g", 15),
        ("law", "first", 18),
        ("law", "second.part", 22),
    ]
    assert found.declarations[1].alias == "T"
    assert found.declarations[4].partial
    assert found.laws == ("first", "second.part")


def test_views_keep_length_and_lines() -> None:
    found = scanner.scan(GOOD, laws=True)
    assert len(found.code) == len(found.uncommented) == len(GOOD)
    assert found.code.count("\n") == GOOD.count("\n")
    assert "law x" not in found.code
    assert "law y" not in found.code
    assert "law y" in found.uncommented
    assert "doc of f" not in found.uncommented


def test_crlf_is_accepted() -> None:
    found = scanner.scan(GOOD.replace("\n", "\r\n"), laws=True)
    assert found.refusals == ()
    assert found.laws == ("first", "second.part")


def test_a_lone_cr_does_not_end_a_comment() -> None:
    found = scanner.scan("# note\rlaw ghost:\nlaw real:\n  {1n == 1n : Nat}\n", laws=True)
    assert found.refusals == ()
    assert found.laws == ("real",)


REFUSED_EVERYWHERE = [
    ("law a:\n  x\rlaw b:\n", 2, "carriage return"),
    ("law a:\n  '''\n", 2, "character literal"),
    ("law a:\n  'ab'\n", 2, "character literal"),
    ("law a:\n  '\t'\n", 2, "character literal"),
    ("law a:\n  '\n'\n", 2, "character literal"),
    ("law a:\n  '\\q'\n", 2, "character literal"),
    ("law a:\n  '\\u{123456789}'\n", 2, "character literal"),
    ("law a:\n  1.5law\n", 2, "number"),
    ("law a:\n  1_000\n", 2, "number"),
    ("law a:\n  1n2\n", 2, "number"),
    ("law a:\n  x.1\n", 2, "number"),
    ("law a:\n  1.\n", 2, "number"),
    ("law a:\n  0b12\n", 2, "number"),
    ('law a:\n  "open\n', 2, "string"),
    ('law a:\n  "ends \\\n  "\n', 2, "string"),
    ('law a:\n  x"touching"\n', 2, "touches"),
    ('law a:\n  "touching"law\n', 2, "touches"),
    ("law a:\n  'c'x\n", 2, "touches"),
    ("law a:\n  x\u00a0y\n", 2, "U+00A0"),
    ("law a:\n  x\u2028law b:\n", 2, "U+2028"),
    ("law a:\n  x\u200blaw b:\n", 2, "U+200B"),
    ("\ufefflaw a:\n", 1, "U+FEFF"),
    ("law a:\n  x\x0blaw b:\n", 2, "U+000B"),
    ("law a:\n  x\x85\n", 2, "U+0085"),
    ("law a:\n  law b:\n", 2, "indented"),
    ("law a:\n\tdef b():\n", 2, "indented"),
    ("law a:\n  {x} law b:\n", 2, "not the first word"),
    ("law a: law b:\n", 1, "not the first word"),
    ("@unsafe def f(x):\n  x\n", 1, "not the first word"),
    ("law\n a:\n", 1, "no plain name"),
    ("law a(x):\n", 1, "no plain name"),
    ("law 1a:\n", 1, "number"),
    ("def f:\n", 1, "no plain name"),
    ("import\n", 1, "no plain name"),
    ("law.x\n", 1, "no plain name"),
]


@pytest.mark.parametrize(("text", "line", "why"), REFUSED_EVERYWHERE)
def test_refused_everywhere(text: str, line: int, why: str) -> None:
    for laws in (True, False):
        found = scanner.scan(text, laws=laws)
        assert found.refusals, repr(text)
        assert found.refusals[0].line == line
        assert why in found.refusals[0].text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('law a:\n  "spans\nlines"\n', 2),
        ("law a:\nbody\n", 2),
        ("law a:\n}\n", 2),
        ('law a:\n"x"\n', 2),
        ("@unsafe\n\ndef f(x):\n  x\n", 1),
        ("@unsafe\nlaw a:\n", 1),
        ("@other\ndef f(x):\n  x\n", 1),
    ],
)
def test_refused_in_laws_only(text: str, line: int) -> None:
    assert [item.line for item in scanner.scan(text, laws=True).refusals][:1] == [line]
    assert scanner.scan(text).refusals == ()


def test_layout_refusals_are_listed_together() -> None:
    found = scanner.scan("law a:\n  law b:\nx\n  def c():\n", laws=True)
    assert [item.line for item in found.refusals] == [2, 3, 4]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@unsafe\ndef f(x):\n  x\n", [(1, "`@unsafe`")]),
        ("@ unsafe\ndef f(x):\n  x\n", [(1, "`@unsafe`")]),
        ("def f?(x):\n  x\n", [(1, "`def f?` is partial")]),
        ("def f ? (x):\n  x\n", [(1, "`def f?` is partial")]),
        ("def f(x):\n  ?TODO\n", [(2, "`?TODO`")]),
        ("def f(x):\n  ? TODO\n", [(2, "`?TODO`")]),
        ('def f(x):\n  # ?TODO @unsafe\n  "@unsafe ?TODO"\n', []),
        ("def f(x):\n  ?goal\n", []),
        ("def f(x):\n  @unsafely\n", []),
    ],
)
def test_forbidden_constructs(text: str, expected: list[tuple[int, str]]) -> None:
    assert [(item.line, item.text) for item in scanner.forbidden(scanner.scan(text))] == expected


# --- the promise, checked against an independent tokenizer -------------------------------------------------

_ATOM = st.sampled_from(
    [
        *(
            "law ghost:",
            "def f(x):",
            "type T is Data:",
            "import ./x.bend as X",
            "law a:\n  {1n == 1n : Nat}\n",
        ),
        *("law", "def", "\n", "\r", "\r\n", " ", "  ", "\t", "@unsafe", "?TODO", "x", "e", "n"),
        *('"', "'", "\\", "#", "1", "1.5", "0x1F", ".", "{", "}", ":", "''", "'\\''", "'\"'", '"\\""'),
        *("\\u{41}", "'\\u{41}'", "\u00a0", "\u2028", "\ufeff", "é", "→"),
    ]
)
_SOUP = st.lists(_ATOM, max_size=25).map("".join)


def _reference(text: str) -> set[str]:
    """Names after `law` as a character-by-character reader that knows comments, strings and characters finds them.

    It is lenient on purpose: declarations count wherever they stand, as Bend itself takes them.
    """
    names, index, word = set(), 0, ""
    plain = []
    while index < len(text):
        char = text[index]
        if char == "#":
            while index < len(text) and text[index] != "\n":
                index += 1
            plain.append("\n")
        elif char == '"':
            index += 1
            while index < len(text) and text[index] != '"':
                index += 2 if text[index] == "\\" else 1
            index += 1
            plain.append("\0")
        elif char == "'":
            end = index + 1
            if text[end : end + 1] == "\\":
                end += 2
                if text[end - 1 : end] == "u" and text[end : end + 1] == "{":
                    end = text.find("}", end) + 1 or len(text)
            else:
                end += 1
            index = end + 1 if text[end : end + 1] == "'" else index + 1
            plain.append("\0")
        else:
            plain.append(char)
            index += 1
    words: list[str] = []
    for char in [*"".join(plain), " "]:
        if char.isascii() and (char.isalnum() or char == "_"):
            word += char
        else:
            if word:
                words.append(word)
            word = ""
            words.append(char)
    for position, item in enumerate(words):
        rest = [part for part in words[position + 1 : position + 12] if not part.isspace()]
        if (
            item == "law"
            and len(rest) > 1
            and rest[0].isidentifier()
            and rest[1] == ":"
            and words[position - 1 : position] != ["."]
        ):
            names.add(rest[0])
    return names


@given(_SOUP, st.booleans())
@settings(max_examples=600, deadline=None)
def test_no_declaration_is_hidden(text: str, laws: bool) -> None:
    found = scanner.scan(text, laws=laws)
    if not found.refusals:
        assert _reference(text) <= {item.name for item in found.declarations if item.kind == "law"}


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200), st.booleans())
@settings(max_examples=300, deadline=None)
def test_it_never_raises_and_views_keep_their_length(text: str, laws: bool) -> None:
    found = scanner.scan(text, laws=laws)
    assert len(found.code) == len(found.uncommented) == len(text)
    scanner.forbidden(found)


def test_it_is_linear_in_hostile_input() -> None:
    for text in (
        '"' + "\\a" * 200_000,
        "'" * 300_000,
        "#" * 300_000,
        "1" * 300_000,
        "law a:\n" * 40_000,
        " " * 300_000,
    ):
        scanner.scan(text, laws=True)
