"""Which issue a pull request says it is about, read from text that anybody may have written.

GitHub's own closing keywords come first, then the `Graft-Task` trailer, then the first `#N`. Only numbers of the
same repository count. References in code, in URLs and in HTML comments (a template's examples) do not. Whether a
number is an issue or another pull request only GitHub knows: the caller takes the first candidate that is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

__all__ = ["MOST_CANDIDATES", "issue_candidates"]

MOST_CANDIDATES = 5
_LONGEST_BODY = 65_536
_LARGEST_NUMBER = 2**31 - 1

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CODE_SPAN = re.compile(r"(?<!`)(`{1,8})(?!`)([^\n]{1,1000}?)(?<!`)\1(?!`)")
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{1,20}://\S+|\bwww\.\S+")
_REFERENCE = r"(?:(?P<repository>[\w.-]{1,100}/[\w.-]{1,100})?#|(?P<gh>\bgh-))(?P<number>[1-9]\d{0,9})(?!\w)"
_ANY = re.compile(r"(?<![\w/#&.@-])" + _REFERENCE, re.IGNORECASE)
_CLOSING = re.compile(
    r"(?<![\w-])(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)(?:\s*:\s*|\s+)(?:issue\s+)?" + _REFERENCE,
    re.IGNORECASE,
)
_TASK = re.compile(
    r"(?:(?P<repository>[\w.-]{1,100}/[\w.-]{1,100})?#|gh-|)(?P<number>[1-9]\d{0,9})", re.IGNORECASE
)


def issue_candidates(
    *, title: str, body: str, tasks: Sequence[str] = (), repository: str, number: int
) -> tuple[int, ...]:
    """Numbers that may be the linked issue, the likeliest first, at most `MOST_CANDIDATES`.

    `repository` is `owner/name` (compared without regard to case), `number` the pull request's own, which never
    counts. `tasks` are the values of `Graft-Task` trailers.
    """
    text = f"{title[:1_000]}\n\n{_prose(body[:_LONGEST_BODY])}"
    found = dict.fromkeys(_candidates(text, tasks, repository.lower()))
    found.pop(number, None)
    return tuple(found)[:MOST_CANDIDATES]


def _candidates(text: str, tasks: Sequence[str], repository: str) -> Iterator[int]:
    yield from _numbers(_CLOSING.finditer(text), repository)
    yield from _numbers(filter(None, (_TASK.fullmatch(task.strip()[:250]) for task in tasks)), repository)
    yield from _numbers(_ANY.finditer(text), repository)


def _numbers(matches: Iterable[re.Match[str]], repository: str) -> Iterator[int]:
    for match in matches:
        named = match["repository"]
        if (named is None or named.lower() == repository) and int(match["number"]) <= _LARGEST_NUMBER:
            yield int(match["number"])


def _prose(body: str) -> str:
    """The body without fenced and indented code, code spans, HTML comments and URLs."""
    kept: list[str] = []
    fence: str | None = None
    blank = True
    for line in _without_comments(body.replace("\r\n", "\n")).split("\n"):
        mark = _FENCE.match(line)
        if fence is not None:
            if mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not line.strip(" `~"):
                fence = None
            continue
        if mark:
            fence = mark[1]
            continue
        if not (blank and line.startswith(("    ", "\t"))):
            kept.append(line)
            blank = not line.strip()
    return _URL.sub(" ", _CODE_SPAN.sub(" ", "\n".join(kept)))


def _without_comments(text: str) -> str:
    parts: list[str] = []
    while True:
        before, opened, rest = text.partition("<!--")
        parts.append(before)
        if not opened:
            return "".join(parts)
        _, closed, text = rest.partition("-->")
        if not closed:
            return "".join(parts)
