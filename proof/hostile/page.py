"""A page as a browser would get it, and everything on it that Graft did not put there.

cmark-gfm, which GitHub uses, makes the HTML. GitHub then links mentions, references, commit ids and more in the
text nodes outside code, which cmark-gfm does not; so those nodes are searched for whatever would be linked.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final

import cmarkgfm

EXTENSIONS: Final = ["table", "autolink", "strikethrough", "tasklist"]

# Written apart from graft.markdown's own pattern, on purpose.
ALIVE: Final = {
    "mention": re.compile(r"@\w"),
    "issue reference": re.compile(r"#\d|\bgh-\d", re.IGNORECASE),
    "repository reference": re.compile(r"[\w.-]+/[\w.-]+[#@]\w"),
    "commit id": re.compile(r"\b[0-9a-f]{7,40}\b", re.IGNORECASE),
    "address": re.compile(r"\b(?:https?|ftp)://|\bwww\.\w|\bmailto:\S|\bxmpp:\S+@", re.IGNORECASE),
    "advisory": re.compile(r"\b(?:cve|ghsa)-\w", re.IGNORECASE),
    "emoji": re.compile(r":[\w+-]+:", re.ASCII),
    "formula": re.compile(r"\$"),
}
_CLOSING = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+\Z", re.IGNORECASE)
_REFERENCE = re.compile(r"\s*(?:[\w./-]*#\d|gh-\d|https?://\S+/(?:issues|pull)/\d)", re.IGNORECASE)

_PLAIN: Final = frozenset(("p", "ul", "ol", "li", "code", "table", "thead", "tbody", "tr", "th", "td"))
# Elements that emphasise: allowed where the words in them are Graft's own.
_OWN_WORDS: Final = {
    "h2": re.compile(r"Graft\Z"),
    "h3": re.compile(r"(?:Intent|Provenance|Policy|Records)\Z"),
    "h4": re.compile(r"Card of [0-9a-f]{1,10}, an earlier state of this pull request\Z"),
    "strong": re.compile(
        r"(?:Risk: (?:at least )?(?:trivial|logic|sensitive)|Goal:|Behaviour changes:?|Out of scope|No card"
        r"|Compare with approved intent|The verifier disagrees|Text that looks meant for a model|Not verified"
        r"|The list of files is not complete|Would (?:approve|block)\."
        r"|Would ask for (?:a review|\d+ reviews)(?: from [\x00, ]*(?: or \d+ more)?)?\."
        r"|(?:Approved intent|No approved intent)[a-z0-9 ;]*\."
        r"|(?:Written|Made|Author)[a-z ,]*(?: \((?:declared|detected)\))?\.)\Z"
    ),
    "em": re.compile(r"(?:unsupported|contradicted|Cut here to fit; the rest is not shown\.)\Z"),
    "sub": re.compile(r"(?:Written by|Prompt|Graft report)"),
    "blockquote": re.compile(r""),
    "pre": re.compile(r""),
}
_OWN_ATTRIBUTES: Final = frozenset(
    (("ol", "start"), ("th", "align"), ("td", "align"), ("pre", "lang"), ("code", "class"))
)
_OWN_COMMENT: Final = re.compile(
    r" graft:(?:managed-comment v1|section:(?:intent|provenance|policy|records):(?:start|end)) \Z"
)


class Page(HTMLParser):
    """One rendered document. `faults` names what must not be there."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.comments: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self._open: list[tuple[str, list[str]]] = []
        self._node = ""
        self._last_node = ""
        html = cmarkgfm.markdown_to_html_with_extensions(
            markdown, options=cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE, extensions=EXTENSIONS
        )
        self.feed(html)
        self.close()
        self._end_of_node()
        if self._open:
            self.faults.append(f"<{self._open[-1][0]}> is left open")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._end_of_node()
        self.tags.append(tag)
        if tag not in _PLAIN and tag not in _OWN_WORDS:
            self.faults.append(f"<{tag}>")
        self.faults += [f"<{tag} {name}=…>" for name, _ in attrs if (tag, name) not in _OWN_ATTRIBUTES]
        if tag in ("img", "br", "hr", "input"):
            return
        self._open.append((tag, []))

    def handle_endtag(self, tag: str) -> None:
        self._end_of_node(closes=tag)
        if not self._open or self._open[-1][0] != tag:
            self.faults.append(f"</{tag}> closes nothing of its own")
            return
        _, words = self._open.pop()
        own = _OWN_WORDS.get(tag)
        if own is not None and not own.match(" ".join("".join(words).split())):
            self.faults.append(f"<{tag}> around words that are not Graft's")

    def handle_comment(self, data: str) -> None:
        self._end_of_node()
        self.comments.append(data)
        if not _OWN_COMMENT.match(data):
            self.faults.append("a comment")

    def handle_decl(self, decl: str) -> None:
        self.faults.append("a declaration")

    def unknown_decl(self, data: str) -> None:
        self.faults.append("a declaration")

    def handle_pi(self, data: str) -> None:
        self.faults.append("a processing instruction")

    def handle_data(self, data: str) -> None:
        self.text += data
        self._node += data
        in_code = any(tag == "code" for tag, _ in self._open)
        for tag, words in self._open:
            if tag in _OWN_WORDS:
                words.append(_shown(tag, data) if in_code else data)

    def _end_of_node(self, *, closes: str = "") -> None:
        """Judge the text since the last tag."""
        node, self._node = self._node, ""
        if not node:
            return
        if any(tag in ("code", "pre") for tag, _ in self._open):
            if closes == "code" and _CLOSING.search(self._last_node) and _REFERENCE.match(node):
                self.faults.append("closing keyword before a reference")
        else:
            self.faults += [name for name, pattern in ALIVE.items() if pattern.search(node)]
            if re.search(_CLOSING.pattern[:-2] + _REFERENCE.pattern, node, re.IGNORECASE):
                self.faults.append("closing keyword before a reference")
        self._last_node = node


def _shown(tag: str, data: str) -> str:
    """Code is compared by its place, except for the short ids that a heading names."""
    return data if tag == "h4" else "\0"
