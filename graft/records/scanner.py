"""Reads Bend files in a strict subset and refuses everything else.

Its promise is one-sided: a declaration that Bend would see is never hidden. Where a text could be read in two
ways it is refused with a line and a reason, never guessed at. `scan` never raises.

Two strictness levels: `laws=True` for LAWS.bend, whose blocks are cut apart, and the lexical subset with the
keyword rules for every other `.bend` file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NAME = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*"
"""An identifier; in Bend a dot inside a name is just a character."""

IDENTIFIER = re.compile(NAME + r"\Z")
KEYWORDS = ("def", "type", "import", "law")

_TOKEN = re.compile(
    r"(?P<newline>\r?\n)"
    r"|(?P<blank>[ \t]+)"
    r"|(?P<comment>#[^\n]*)"
    r'|(?P<string>"(?:[^"\\]|\\[^\r\n])*")'
    r"|(?P<char>'(?:[^'\\\n\r\t]|\\(?:[nrt0'\"\\]|u\{[0-9A-Fa-f]{1,8}\}))')"
    r"|(?P<number>0[xX][0-9A-Fa-f]+|0[bB][01]+|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?n?)"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_WORD_CHAR = re.compile(r"[A-Za-z0-9_]")
_HEADERS = {
    "law": (re.compile(rf"law[ \t]+({NAME})[ \t]*:"), "write it as `law name:`"),
    "def": (re.compile(rf"def[ \t]+({NAME})[ \t]*(\?)?[ \t]*\("), "write it as `def name(...)`"),
    "type": (re.compile(rf"type[ \t]+({NAME})"), "write it as `type Name...`"),
    "import": (re.compile(r"import[ \t]+([^\s#]+)"), "write it as `import ./File.bend as Alias`"),
}
_ALIAS = re.compile(rf"import[ \t]+([^\s#]+)[ \t]+as[ \t]+({NAME})[ \t]*\r?\Z")
_UNSAFE = re.compile(r"@[ \t]*unsafe(?![A-Za-z0-9_])")
_TODO = re.compile(r"\?[ \t]*TODO(?![A-Za-z0-9_])")


@dataclass(frozen=True)
class Declaration:
    """One `law`, `def`, `type` or `import` at column zero. `name` of an import is its target as written."""

    kind: str
    name: str
    line: int
    alias: str = ""
    partial: bool = False


@dataclass(frozen=True)
class Finding:
    """Something at a line (1-based, counted by line feeds) and what it is."""

    line: int
    text: str


@dataclass(frozen=True)
class Scan:
    """What a Bend file declares, or why it is refused.

    `code` is the text with comments and literals blanked out, `uncommented` with comments only; both have the
    length and the lines of the text.
    """

    text: str
    code: str
    uncommented: str
    declarations: tuple[Declaration, ...]
    refusals: tuple[Finding, ...]

    @property
    def laws(self) -> tuple[str, ...]:
        """The declared law ids in file order."""
        return tuple(item.name for item in self.declarations if item.kind == "law")

    @property
    def imports(self) -> tuple[Declaration, ...]:
        return tuple(item for item in self.declarations if item.kind == "import")

    def line_of(self, kind: str, name: str) -> int | None:
        for item in self.declarations:
            if item.kind == kind and item.name == name:
                return item.line
        return None


@dataclass(frozen=True)
class _Mark:
    """A keyword at column zero, before its header is read."""

    word: str
    start: int
    line: int


def _touches(text: str, start: int, end: int) -> bool:
    before = start > 0 and _WORD_CHAR.match(text[start - 1])
    after = end < len(text) and _WORD_CHAR.match(text[end])
    return bool(before or after)


def _number_touches(text: str, start: int, end: int) -> bool:
    return _touches(text, start, end) or text[start - 1 : start] == "." or text[end : end + 1] == "."


def _blank(text: str) -> str:
    return "".join([char if char == "\n" else " " for char in text])


@dataclass(frozen=True)
class _Lexed:
    """The two views, the keywords at column zero, and refusals; `broken` when it had to stop half-way."""

    code: str
    uncommented: str
    marks: tuple[_Mark, ...]
    refusals: tuple[Finding, ...]
    broken: bool


def _lex(text: str, laws: bool) -> _Lexed:
    """One pass over the tokens. A lexical refusal ends it, because what follows could be read in two ways."""
    code: list[str] = []
    uncommented: list[str] = []
    marks: list[_Mark] = []
    refusals: list[Finding] = []
    position, line, line_start, broken = 0, 1, 0, False
    for match in _TOKEN.finditer(text):
        kind, token, position = match.lastgroup or "", match.group(), match.start()
        reason = _lexical_refusal(text, kind, token, position, match.end(), laws)
        if reason:
            refusals.append(Finding(line, reason))
            broken = True
            break
        if kind == "word" and token in KEYWORDS and text[position - 1 : position] != ".":
            if position == line_start:
                marks.append(_Mark(token, position, line))
            else:
                why = (
                    "is indented"
                    if not text[line_start:position].strip(" \t")
                    else "is not the first word of its line"
                )
                refusals.append(
                    Finding(line, f"`{token}` {why}; a declaration starts at column zero of its own line")
                )
        code.append(_blank(token) if kind in ("comment", "string", "char") else token)
        uncommented.append(_blank(token) if kind == "comment" else token)
        if "\n" in token:
            line += token.count("\n")
            line_start = position + token.rindex("\n") + 1
    rest = _blank(text[position:]) if broken else ""
    return _Lexed("".join(code) + rest, "".join(uncommented) + rest, tuple(marks), tuple(refusals), broken)


_UNFINISHED = {
    '"': "a string is not closed, or has a backslash before a line break",
    "'": "a character literal is not one character or one known escape",
    "\r": "a carriage return without a line feed",
}


def _lexical_refusal(text: str, kind: str, token: str, start: int, end: int, laws: bool) -> str:
    if kind in ("string", "char") and _touches(text, start, end):
        return "a string or character literal touches a word"
    if kind == "string" and laws and ("\n" in token or "\r" in token):
        return "a string spans lines"
    if kind == "number" and _number_touches(text, start, end):
        return "a number touches a letter, a digit, an underscore or a dot"
    if kind == "other" and token in _UNFINISHED:
        return _UNFINISHED[token]
    # Which other characters Bend takes for blanks or for letters is not known, so none is guessed at.
    if kind == "other" and not (token.isascii() and token.isprintable()):
        return f"the character U+{ord(token):04X} is not allowed outside a literal or a comment"
    return ""


def _declarations(lexed: _Lexed) -> tuple[list[Declaration], list[Finding]]:
    found: list[Declaration] = []
    refusals: list[Finding] = []
    for mark in lexed.marks:
        pattern, form = _HEADERS[mark.word]
        match = pattern.match(lexed.code, mark.start)
        if match is None:
            refusals.append(Finding(mark.line, f"`{mark.word}` has no plain name; {form}"))
            continue
        end = lexed.code.find("\n", mark.start)
        header = lexed.code[mark.start : end if end >= 0 else len(lexed.code)]
        alias = _ALIAS.match(header) if mark.word == "import" else None
        partial = mark.word == "def" and match.group(2) is not None
        found.append(
            Declaration(mark.word, match.group(1), mark.line, alias.group(2) if alias else "", partial)
        )
    return found, refusals


def _column_zero(lexed: _Lexed) -> list[Finding]:
    """Lines of LAWS.bend that start at column zero and are no declaration, comment, blank or `@unsafe` above a def."""
    declared = {mark.line: mark.word for mark in lexed.marks}
    refusals = []
    for number, line in enumerate(lexed.uncommented.split("\n"), 1):
        if number in declared or line[:1] in ("", " ", "\t", "\r"):
            continue
        unsafe = _UNSAFE.match(line)
        if unsafe and not line[unsafe.end() :].strip(" \t\r") and declared.get(number + 1) == "def":
            continue
        refusals.append(
            Finding(number, "a line at column zero that is no declaration; indent the body of a declaration")
        )
    return refusals


def scan(text: str, *, laws: bool = False) -> Scan:
    """Declarations of a Bend file. With `laws`, the whole layout of LAWS.bend is required."""
    lexed = _lex(text, laws)
    declarations, bad_headers = _declarations(lexed)
    refusals = [*lexed.refusals, *bad_headers]
    if laws and not lexed.broken:
        refusals += _column_zero(lexed)
    refusals.sort(key=lambda item: item.line)
    return Scan(text, lexed.code, lexed.uncommented, tuple(declarations), tuple(refusals))


def forbidden(result: Scan) -> list[Finding]:
    """Constructs that switch Bend's checks off: `@unsafe`, a partial `def f?`, `?TODO`."""
    found = [
        Finding(item.line, f"`def {item.name}?` is partial") for item in result.declarations if item.partial
    ]
    for pattern, what in ((_UNSAFE, "`@unsafe`"), (_TODO, "`?TODO`")):
        for match in pattern.finditer(result.code):
            found.append(Finding(result.code.count("\n", 0, match.start()) + 1, what))
    return sorted(found, key=lambda item: item.line)
