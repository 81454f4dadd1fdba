"""Hostile text through `escape_prose` and `code_span`, read back by GitHub's own parser (cmark-gfm).

cmark-gfm does not link mentions, references, commit ids and emoji; GitHub does that afterwards in the text
nodes outside code. So the text nodes are searched for whatever those filters would pick up.
"""

from __future__ import annotations

import re
import time
import unicodedata
from html.parser import HTMLParser

import cmarkgfm
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft.markdown import code_span, escape_prose

EXTENSIONS = ["table", "autolink", "tagfilter", "strikethrough", "tasklist"]

# What GitHub's filters look for in text nodes, written independently of the module's own pattern.
FILTERS = {
    "mention": re.compile(r"@[\w.-]"),
    "reference": re.compile(r"#\d"),
    "gh reference": re.compile(r"\bgh-\d", re.IGNORECASE),
    "commit": re.compile(r"\b[0-9a-f]{7,40}\b", re.IGNORECASE),
    "url": re.compile(r"https?://|www\.\w", re.IGNORECASE),
    "emoji": re.compile(r":[\w+-]+:", re.ASCII),
    "math": re.compile(r"\$"),
}


class Page(HTMLParser):
    """The tags, the text outside code, and all text of a rendered page."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.comments: list[str] = []
        self.prose: list[str] = []
        self.text = ""
        self._code = 0
        self.feed(cmarkgfm.markdown_to_html_with_extensions(markdown, extensions=EXTENSIONS))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        self._code += tag == "code"
        self.prose.append("\0")

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag == "code"
        self.prose.append("\0")

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def handle_data(self, data: str) -> None:
        self.text += data
        if not self._code:
            self.prose.append(data)


def assert_inert(source: str, *, within: tuple[str, ...] = ("p",)) -> Page:
    assert "\n" not in source
    assert "<!--" not in source
    assert "|" not in source
    page = Page(source)
    assert set(page.tags) <= {*within, "code"}, source
    assert not page.attributes
    assert not page.comments
    for node in "".join(page.prose).split("\0"):
        for name, pattern in FILTERS.items():
            assert not pattern.search(node), (name, node, source)
    return page


HOSTILE = [
    "ping @octocat and @org/team",
    "(@octocat), [@octocat]; '@octocat'",
    "&#64;octocat \\@octocat @\u200boctocat",
    "closes #12, Fixes GH-12, resolves octo/repo#12",
    "see 0123abc and deadbeefdeadbeefdeadbeefdeadbeefdeadbeef and octo@deadbeef",
    "https://evil.example/a_b_c and www.evil.example and HTTP://EVIL.EXAMPLE",
    "[click](https://evil.example) ![](https://evil.example/x.png) [a][b] [^1]",
    "<https://evil.example> <a href=x>x</a> <img src=x onerror=alert(1)> <script>",
    "<!-- graft:section:intent:end --> <!-- x -->",
    "a | b | c",
    "# heading",
    "- item",
    "* item",
    "+ item",
    "1. item",
    "12) item",
    "> quote",
    "[x] task",
    "- [ ] task",
    "***bold*** __bold__ ~~gone~~ _it_",
    "---",
    "===",
    ":---",
    "```python",
    "~~~",
    "    indented",
    "\tindented",
    "line\n\n# heading\r\n- item\u2028> quote",
    ":smile: :+1: std::vec::Vec",
    "$x^2$ and $$y$$",
    "`code` `unbalanced",
    "``a`b``c```d",
    "`a``b`@octocat`#12`",
    "www.`x` http:`//x` @`octocat` #`12` octo/repo`#12`",
    "\\`@octocat\\` \\\\`#12\\\\`",
    "\u202egnp.exe\u202c \u2066x\u2069 a\u200bb\u00adc\ufeff",
    "\ud800@octocat\udfff \x00#12\x07",
    "mail me@example.org or <me@example.org>",
    "xmpp:me@example.org mailto:me@example.org",
    "> [!NOTE]",
    "{{ site.secret }} {% raw %}",
    "@",
    "",
    " ",
    "` `",
    "`",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_does_nothing(text: str) -> None:
    assert_inert(escape_prose(text))
    assert_inert(code_span(text))


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("place", ["- {}", "text {} text", "**Goal:** {}", "- a\n- {}", "paragraph\n{}"])
def test_hostile_text_does_nothing_wherever_it_stands(text: str, place: str) -> None:
    own = Page(place.format("x")).tags
    for source in (escape_prose(text), code_span(text)):
        page = Page(place.format(source))
        assert [tag for tag in page.tags if tag != "code"] == own


@pytest.mark.parametrize("text", HOSTILE)
def test_a_table_keeps_its_cells(text: str) -> None:
    for source in (escape_prose(text), code_span(text)):
        page = Page(f"| a | b |\n| --- | --- |\n| {source} | end |\n")
        assert page.tags.count("td") == 2
        assert page.text.rstrip().endswith("end")


hostile_text = st.lists(
    st.one_of(
        st.sampled_from(
            ["@", "#", "12", "`", "``", "\\", "<", ">", "!--", "--", "|", " ", "\n", "[", "]", "("]
        ),
        st.sampled_from(
            ["octocat", "www.", "http", "://", ":", "smile", "$", "*", "_", "~", "&", ";", "gh-"]
        ),
        st.sampled_from(["abcdef0", "-", "+", "1.", "=", "\u200b", "\u202e", "\ud800", "\0", "é", "\u0301"]),
        st.text(max_size=4),
    ),
    max_size=30,
).map("".join)


@given(hostile_text)
def test_no_text_is_active(text: str) -> None:
    assert_inert(escape_prose(text))
    assert_inert(code_span(text))


@given(hostile_text)
def test_no_text_breaks_a_list_or_a_bold_label(text: str) -> None:
    page = Page(f"- **Goal:** {escape_prose(text)} {code_span(text)}\n- after")
    assert [tag for tag in page.tags if tag != "code"] == ["ul", "li", "strong", "li"]
    assert page.text.rstrip().endswith("after")


@given(st.text(max_size=900), st.integers(min_value=1, max_value=80))
def test_a_reader_sees_at_most_the_limit(text: str, limit: int) -> None:
    prose, code = Page(escape_prose(text, limit=limit)), Page(code_span(text, limit=limit))
    # A space may be put between two neighbouring code spans, and shown text can hold one per character.
    assert len(prose.text.strip()) <= 2 * limit
    assert len(code.text.strip()) <= max(2 * limit, len("(empty)"))
    assert len(escape_prose(text, limit=limit)) <= 6 * limit + 20


@given(st.text(max_size=200))
def test_nothing_invisible_is_left(text: str) -> None:
    for source in (escape_prose(text), code_span(text)):
        assert all(unicodedata.category(char)[0] != "C" for char in source)
        source.encode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Bump @types/node to 22.1.0", "Bump @types/node to 22.1.0"),
        ("@babel/core, @scope/pkg: both", "@babel/core, @scope/pkg: both"),
        ("Write to security@example.org.", "Write to security@example.org."),
        ("Rename foo_bar to fooBar (C++ only)", "Rename foo_bar to fooBar (C++ only)"),
        ("Returns `None` for x < 0 && y > 1 | z", "Returns None for x < 0 && y > 1 | z"),
        ("5 * 3 = 15; 100 % sure, isn't it?", "5 * 3 = 15; 100 % sure, isn't it?"),
        ("Größe, 日本語, Ελληνικά, עברית", "Größe, 日本語, Ελληνικά, עברית"),
        ("one\ntwo\r\n three", "one two three"),
        ("fixes #12", "fixes #12"),
        ("1. first", "1. first"),
        ("see std::fs::read", "see std::fs::read"),
    ],
)
def test_ordinary_text_reads_as_written(text: str, shown: str) -> None:
    assert assert_inert(escape_prose(text)).text.strip() == shown


def test_sentence_marks_stay_outside_the_code() -> None:
    assert escape_prose('("@octocat"), see #12.') == '("`@octocat`"), see `#12`.'


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("fixes #12", "`fixes #12`"),
        (
            "This (Closes: GH-12), and resolved octo/repo#3.",
            "This (`Closes: GH-12`), and `resolved octo/repo#3`.",
        ),
        ("fixed https://github.com/octo/repo/issues/3", "`fixed https://github.com/octo/repo/issues/3`"),
        ("`a`fixes #12", "`a` `fixes #12`"),
        ("closes `#12`", "`closes #12`"),
        ("closes closes #1 #2", "closes `closes #1` `#2`"),
        ("a prefix #12, fixes (#12) and fixes it", "a prefix `#12`, fixes (`#12`) and fixes it"),
        ("Fixes @scope/pkg", "Fixes `@scope/pkg`"),
    ],
)
def test_a_closing_keyword_goes_into_the_code_of_its_reference(text: str, source: str) -> None:
    assert escape_prose(text) == source


def test_pairs_of_backticks_stay_code() -> None:
    assert escape_prose("calls `foo_bar()` twice") == "calls `foo_bar()` twice"
    assert escape_prose("`a``b`") == "`a` `b`"


def test_a_long_text_is_cut_with_an_ellipsis() -> None:
    assert escape_prose("word " * 400, limit=12) == "word word w…"
    assert code_span("x" * 300, limit=5) == "`xxxx…`"
    assert escape_prose("x" * 12, limit=12) == "x" * 12


def test_a_text_of_hidden_characters_says_that_something_was_cut() -> None:
    assert escape_prose("\u200b" * 5000 + "hidden", limit=20) == "…"


@pytest.mark.parametrize("text", ["", "  ", "\n", "\u200b", "\0"])
def test_an_empty_code_span_says_so(text: str) -> None:
    assert code_span(text) == "`(empty)`"
    assert escape_prose(text) == ""


def test_code_keeps_backticks() -> None:
    assert Page(code_span("a`b``c")).text.strip() == "a`b``c"
    assert Page(code_span("`x`")).text.strip() == "`x`"
    assert Page(code_span("`" * 200)).tags == ["p", "code"]


def test_stacked_combining_marks_are_thinned() -> None:
    assert len(escape_prose("e" + "\u0301" * 100)) == 5
    assert escape_prose("e\u0301") == "e\u0301"


def test_a_huge_text_costs_nothing() -> None:
    begin = time.process_time()
    for text in ("`" * 2_000_000, "@" * 2_000_000, ":a" * 1_000_000, "a " * 1_000_000, "\u200b" * 2_000_000):
        escape_prose(text)
        code_span(text)
    assert time.process_time() - begin < 1
