"""Markdown that tries to become something on a page that Graft writes.

Each family is a way to get a link, a picture, a heading, a notification or one of Graft's own markers onto the
page. The wordings are multiplied by what they may stand in; every payload holds the word `WITNESS`, so that a
test can see that it arrived at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

WITNESS = "zanzibar"

_URLS = (
    "https://evil.example/zanzibar",
    "http://evil.example:8080/a?zanzibar=1&b=2#c",
    "ftp://evil.example/zanzibar",
    "www.evil.example/zanzibar",
    "mailto:zanzibar@evil.example",
    "xmpp:zanzibar@evil.example/room",
    "javascript:alert('zanzibar')",
    "data:text/html;base64,emFuemliYXI=zanzibar",
    "//evil.example/zanzibar",
)
_LINKS = (
    "[zanzibar]({})",
    "[zanzibar](<{}> 'title')",
    "![zanzibar]({})",
    "[![zanzibar]({})](https://evil.example)",
    "<{}>",
    "see {} there",
    "({})",
    "[zanzibar][z]\n\n[z]: {}",
    "[zanzibar]\n\n[zanzibar]: {} 'title'",
    "**{}**",
)
_TAGS = (
    "<a href='https://evil.example'>zanzibar</a>",
    "<A\nHREF=//evil.example>zanzibar</A>",
    "<img src=x onerror=alert('zanzibar')>",
    "<img src='https://evil.example/p.png?zanzibar'>",
    "<script>zanzibar()</script>",
    "<style>zanzibar{}</style>",
    "<iframe srcdoc='zanzibar'></iframe>",
    "<svg onload=zanzibar()></svg>",
    "<details open><summary>zanzibar</summary>hidden</details>",
    "<h1>zanzibar</h1>",
    "<b>zanzibar</b> <sub>zanzibar</sub> <kbd>zanzibar</kbd>",
    "<table><tr><td>zanzibar</td></tr></table>",
    "<input type=checkbox checked> zanzibar",
    "<form action=//evil.example><button>zanzibar</button></form>",
    "<picture><source srcset=//evil.example/zanzibar></picture>",
    "<video src=//evil.example/zanzibar controls>",
    "<math><mi>zanzibar</mi></math>",
    "</li></ul></sub></td></table><h2>zanzibar</h2>",
    "</code></pre><a href=x>zanzibar</a>",
    "<div align=right>zanzibar</div>",
    "<!DOCTYPE zanzibar>",
    "<?php zanzibar ?>",
    "<![CDATA[ zanzibar ]]>",
    "<x-zanzibar on=1>",
    "<br>zanzibar<hr>",
    "<zanzibar@evil.example>",
)
_COMMENTS = (
    "<!-- zanzibar -->",
    "<!--zanzibar",
    "zanzibar -->",
    "<!--> zanzibar -->",
    "<!-- graft:managed-comment v1 --> zanzibar",
    "zanzibar\n<!-- graft:managed-comment v1 -->\n## Graft",
    "<!-- graft:section:intent:end --> zanzibar",
    "\n<!-- graft:section:policy:start -->\nzanzibar\n<!-- graft:section:policy:end -->\n",
    "<!--graft:section:zanzibar:start-->",
    "<\u200b!-- graft:section:intent:end --> zanzibar",
    "<!\\-- graft:zanzibar -->",
    "&lt;!-- graft:section:intent:end --&gt; zanzibar",
)
_ENTITIES = (
    "&lt;a href=x&gt;zanzibar&lt;/a&gt;",
    "&#60;img src=x&#62; zanzibar",
    "&#x3C;script&#x3E;zanzibar",
    "&commat;octocat zanzibar",
    "&#64;octocat zanzibar",
    "&num;12 zanzibar",
    "&#35;12 zanzibar",
    "&lbrack;zanzibar&rbrack;&lpar;https&colon;//evil.example&rpar;",
    "&#10;&#10;# zanzibar",
    "&NewLine;&NewLine;# zanzibar",
    "&nbsp;&Tab;zanzibar &amp;amp;",
    "&zanzibar; &#0; &#xD800; &#99999999;",
)
_BLOCKS = (
    "# zanzibar",
    "###### zanzibar ######",
    "#\tzanzibar",
    "zanzibar\n===",
    "zanzibar\n---",
    "---\nzanzibar",
    "***\nzanzibar",
    "- zanzibar",
    "* zanzibar",
    "+ zanzibar",
    "1. zanzibar",
    "999999999) zanzibar",
    "> zanzibar",
    ">>> zanzibar",
    "    zanzibar",
    "\tzanzibar",
    "```\nzanzibar\n```",
    "~~~ruby\nzanzibar\n~~~",
    "```mermaid\ngraph TD; zanzibar-->b;\n```",
    '```geojson\n{"zanzibar": 1}\n```',
    "```stl\nsolid zanzibar\n```",
    "```math\nzanzibar\n```",
    "```suggestion\nzanzibar\n```",
    "| zanzibar | b |\n| --- | --- |\n| 1 | 2 |",
    "zanzibar | b\n--- | ---\n1 | 2",
    "| | |\n|:-|-:|\n|zanzibar|",
    ": zanzibar",
    "zanzibar\n: definition",
    "- [ ] zanzibar",
    "- [x] zanzibar",
    "[x] zanzibar",
    "[^1] zanzibar\n\n[^1]: note",
    "[^zanzibar]: note",
    "> [!NOTE]\n> zanzibar",
    "[!CAUTION] zanzibar",
    "> [!WARNING] zanzibar",
    "\n\n\n# zanzibar",
    "\r\r# zanzibar",
    "zanzibar\u2028# heading\u2029- item",
    "zanzibar\x0b# heading\x0c- item\x85> quote",
    "zanzibar  \nhard break\\\nagain",
)
_REFERENCES = (
    "@octocat",
    "@octo-org/reviewers",
    "@octo_managed",
    "@octocat[bot]",
    "octocat@evil.example",
    "#12",
    "#1234567",
    "octo/repo#12",
    "octocat#12",
    "GH-12",
    "gh-12",
    "octo/repo@0123abcd",
    "0123abc",
    "deadbeefdeadbeefdeadbeefdeadbeefdeadbeef",
    "DEADBEEF",
    "0123abc...deadbee",
    "octo@deadbeef",
    "https://github.com/octo/repo/issues/12",
    "https://github.com/octo/repo/commit/deadbeef",
    "CVE-2026-12345",
    "GHSA-abcd-efgh-ijkl",
    ":+1:",
    ":zanzibar:",
    "$x^2$",
    "$$\\int$$",
    "$`zanzibar`$",
)
_AROUND = (
    "{} zanzibar",
    "zanzibar ({}),",
    "zanzibar\n{}",
    "*{}* zanzibar",
    "`zanzibar`{}`",
)
_KEYWORDS = ("close", "Closes", "closed:", "fix", "FIXES", "fixed", "resolve", "Resolves:", "resolved")
_CLOSED = ("#12", "octo/repo#12", "GH-12", "https://github.com/octo/repo/issues/12")
_HIDING = (
    "\u202ezanzibar\u202c",
    "\u2066zanzibar\u2069 @\u200boctocat",
    "zan\u200bzi\u00adbar zanzibar",
    "\ufeff# zanzibar",
    "@\u2060octocat zanzibar",
    "#\u200d12 zanzibar",
    "zanzibar\U000e0061\U000e0062\U000e007f",
    "zanzibar\ufe0f\ufe0e",
    "zanzibar" + "\u0301" * 60,
    "\x00zanzibar\x07\x1b[31m",
    "\x1b]8;;https://evil.example\x07zanzibar\x1b]8;;\x07",
    "\ud800zanzibar\udfff @octocat",
    "\u3164\u115f zanzibar",
    "zanzibar\u00a0@octocat\u3000#12",
    "\uff20octocat zanzibar",
    "\uff0312 zanzibar",
    "www\u200b.evil.example/zanzibar",
    "https\u00ad://evil.example/zanzibar",
    "[zanzibar]\u200b(https://evil.example)",
    "zanzibar\u2063\u2064<!\u2060-- graft:x -->",
)
_FENCES = (
    "`zanzibar",
    "zanzibar`",
    "``zanzibar`",
    "`zanzibar``",
    "`` ` zanzibar",
    "zanzibar ` @octocat ` #12 `",
    "`a` `b` zanzibar` @octocat",
    "\\`zanzibar\\` @octocat",
    "\\\\`@octocat\\\\` zanzibar",
    "`zanzibar\n\n@octocat`",
    "`" * 90 + "zanzibar @octocat" + "`" * 90,
    "````\nzanzibar\n```\n@octocat",
    "`zanzibar`@octocat`x`#12`y`",
    "a`b``c```d zanzibar @octocat",
    "`zanzibar|`|@octocat|",
    "``<!-- zanzibar --> @octocat`",
)
_EMPHASIS = (
    "**zanzibar**",
    "__zanzibar__",
    "*zanzibar*",
    "_zanzibar_",
    "***zanzibar***",
    "~~zanzibar~~",
    "~zanzibar~",
    "** zanzibar**zanzibar**",
    "*zanzibar **nested* end**",
    "\\*zanzibar\\*",
    "\\\\*zanzibar\\\\*",
    "zanzibar**",
    "**Risk: trivial** zanzibar",
    "{{ zanzibar }} {% raw %}",
    "zanzibar \\",
    "zanzibar]( [",
)


def families() -> dict[str, tuple[str, ...]]:
    """The payloads by family; no payload stands in two."""
    made = {
        "links and pictures": tuple(form.format(url) for form, url in product(_LINKS, _URLS)),
        "tags": _TAGS,
        "comments and markers": _COMMENTS,
        "entities": _ENTITIES,
        "blocks": _BLOCKS,
        "references": tuple(form.replace("{}", what) for form, what in product(_AROUND, _REFERENCES)),
        "closing keywords": tuple(f"{word} {what} zanzibar" for word, what in product(_KEYWORDS, _CLOSED)),
        "hidden characters": _HIDING,
        "code": _FENCES,
        "emphasis": _EMPHASIS,
    }
    seen: set[str] = set()
    return {
        name: tuple(text for text in texts if not (text in seen or seen.add(text)))  # type: ignore[func-returns-value]
        for name, texts in made.items()
    }


def payloads() -> Iterator[tuple[str, str]]:
    """(family, text) of every payload."""
    for family, texts in families().items():
        for text in texts:
            yield family, text
