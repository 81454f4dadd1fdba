"""The only two ways for text from outside, a model's prose included, into the markdown Graft posts.

GitHub links mentions, issue references, commit ids and emoji in the *text nodes* of the rendered page, so a
backslash or an entity in the source does not stop them; only code does. Therefore a word that GitHub would
turn into anything becomes a code span as a whole (`@scope/pkg` and `me@example.org` stay readable and can be
copied), and every other character with a meaning in GitHub Flavored Markdown is escaped.

Both functions return one line without `|` and without an HTML comment opening, so the result is safe at the
start of a line, in a list item, in a table cell, and between the markers of Graft's managed comment. They
accept any `str`, lone surrogates and NUL included, take time linear in `limit`, and never raise.

Not covered: autolink prefixes that a repository's owner has configured (`TICKET-12`); their target is the
owner's own choice.
"""

from __future__ import annotations

import re
import unicodedata

_ELLIPSIS = "…"
_EMPTY = "`(empty)`"

# cmark gives up on runs above 80 backticks and then shows them as text.
_LONGEST_FENCE = 8

# Invisible, yet neither a control nor a format character: Hangul and Khmer fillers, the combining grapheme
# joiner, the blank braille pattern, and the variation selectors.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_VARIATION_SELECTORS = ((0xFE00, 0xFE0F), (0x180B, 0x180F), (0xE0100, 0xE01EF))
_MOST_COMBINING_MARKS = 4

_LINKED = re.compile(
    r"""
      @                                            # mention, team, e-mail address, owner/repo@sha
    | \#\w                                         # #12, owner/repo#12
    | (?<![a-z0-9])(?:gh|ghsa|cve)-[a-z0-9]        # GH-12 and advisories
    | (?<![a-z0-9])[0-9a-f]{7,64}(?![a-z0-9])      # commit ids
    | :// | www\.                                  # bare URLs
    | :[a-z0-9_+-]+:                               # emoji shortcodes
    | \$                                           # math
    """,
    re.VERBOSE | re.IGNORECASE,
)
# `fixes #12`: the keyword goes into the code span with its reference, so that no parser finds the pair.
_CLOSING = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\Z", re.IGNORECASE)
_CLOSED = re.compile(r"\#\d|gh-\d|/(?:issues|pull)/\d", re.IGNORECASE)
_TOKEN = re.compile(r"`(?P<quoted>[^`]+)`|(?P<space>\ +)|(?P<word>[^\ `]+)|(?P<tick>`)")
_LEADING = "([{\"'“‘«"
_TRAILING = ")]}\"'”’».,;:!?…"

_ESCAPES = str.maketrans(
    {char: f"\\{char}" for char in "\\*_[]~&{}"} | {"`": "&#96;", "|": "&#124;", "<": "&lt;", ">": "&gt;"}
)
# What makes a block when it opens a line: heading, bullet, setext underline, table rule, ordered item.
_BLOCK_START = re.compile(r"(?P<bullet>[#+=:-])|(?P<number>\d{1,9})(?P<point>[.)])")


def escape_prose(text: str, *, limit: int = 600) -> str:
    """`text` as one line that reads the same on GitHub and does nothing there.

    `limit` is the most characters a reader sees, the ellipsis of a cut text included; the source can be up to
    six times as long. Pairs of backticks stay code. The empty string stays empty.
    """
    pieces: list[str] = []
    after_code = False
    for token in _TOKEN.finditer(_one_line(text, limit)):
        if token["space"] or (token["quoted"] or "-").isspace():
            pieces.append(" ")
            after_code = False
            continue
        word, quoted = token["word"] or token["tick"], token["quoted"]
        lead, core, tail = ("", quoted, "") if quoted is not None else _split(word)
        if not lead and _CLOSED.search(core) and (keyword := _keyword_taken(pieces)):
            core = f"{keyword} {core}"
        if after_code and not lead and (quoted is not None or _LINKED.search(word)):
            pieces.append(" ")  # two spans side by side would be read as one longer fence
        if quoted is not None or _LINKED.search(word):
            pieces += [_escape(lead), code_span(core, limit=len(core) or 1), _escape(tail)]
            after_code = not tail
        else:
            pieces.append(_escape(word))
            after_code = False
    return _block_start_escaped("".join(pieces))


def code_span(text: str, *, limit: int = 200) -> str:
    """`text` as a code span, whatever it holds: backticks, line breaks, nothing at all.

    A pipe, which would end a table cell even in code, is shown as a broken bar; `<!--` gets a space so no
    comment marker appears in the source. `limit` counts the characters shown.
    """
    content = _one_line(text, limit).replace("|", "¦").replace("<!--", "<! --")
    content = re.sub(f"`{{{_LONGEST_FENCE},}}", "`" * (_LONGEST_FENCE - 1), content)
    if not content:
        return _EMPTY
    fence = "`" * (max((len(run) for run in re.findall(r"`+", content)), default=0) + 1)
    if content.startswith("`") or content.endswith("`"):
        content = f" {content} "
    return f"{fence}{content}{fence}"


def _keyword_taken(pieces: list[str]) -> str:
    """The closing keyword that stands last in `pieces`, which loses it; empty where there is none."""
    if len(pieces) < 2 or pieces[-1] != " " or not (found := _CLOSING.search(pieces[-2])):
        return ""
    before = pieces[-2][: found.start()]
    if not before and len(pieces) > 2 and pieces[-3] != " ":
        before = " "  # or two spans side by side would be read as one longer fence
    pieces[-2:] = [before] if before else []
    return found.group()


def _split(word: str) -> tuple[str, str, str]:
    """Brackets and sentence marks around a word stay outside its code span."""
    core = word.lstrip(_LEADING)
    lead = word[: len(word) - len(core)]
    bare = core.rstrip(_TRAILING)
    # A shortcode's own colon belongs to it.
    if core[len(bare) :].startswith(":") and bare.rfind(":") > -1:
        bare += ":"
    if not bare:
        return "", word, ""
    return lead, bare, core[len(bare) :]


def _escape(text: str) -> str:
    return text.translate(_ESCAPES)


def _block_start_escaped(line: str) -> str:
    start = _BLOCK_START.match(line)
    if start is None:
        return line
    if start["bullet"]:
        return f"\\{line}"
    return f"{start['number']}\\{line[start.end('number') :]}"


def _one_line(text: str, limit: int) -> str:
    """Visible characters only, runs of white space as one space, at most `limit` of them."""
    if text.isascii() and text.isprintable():
        # Nearly every text. The same as below, which takes a look at each character.
        line = " ".join(text[: limit * 4 + 400].split())
        return _cut(line, limit, more=len(text) > limit * 4 + 400)
    kept: list[str] = []
    marks = 0
    for char in text[: limit * 4 + 400]:
        category = unicodedata.category(char)
        if category[0] == "Z" or char in "\t\n\r\v\f\x85":
            if kept and kept[-1] != " ":
                kept.append(" ")
            marks = 0
            continue
        if category[0] == "C" or char in _INVISIBLE or _is_variation_selector(char):
            continue
        marks = marks + 1 if category[0] == "M" else 0
        if marks <= _MOST_COMBINING_MARKS:
            kept.append(char)
    return _cut("".join(kept).strip(), limit, more=len(text) > limit * 4 + 400)


def _cut(line: str, limit: int, *, more: bool) -> str:
    if more or len(line) > limit:
        return line[: max(limit - 1, 0)].rstrip() + _ELLIPSIS
    return line


def _is_variation_selector(char: str) -> bool:
    return any(low <= ord(char) <= high for low, high in _VARIATION_SELECTORS)
