"""Signs that text of a pull request is meant for the model that reads it and not for a person.

A sign is no proof: writing about prompt injection looks the same. It therefore costs a change at most the
class `logic`, by name and place, and nothing is removed from what the model reads. What keeps the model's
answer harmless is elsewhere: data blocks with a nonce, a verifier that never sees the description, and a
final class that no answer can lower.

All patterns are bounded and take time linear in the text; of each text the first million characters are read,
of all patches together the first four.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence

import msgspec

from graft.changes import Snapshot
from graft.intent import foreign, phrases

__all__ = ["MARKERS", "Suspicion", "suspect"]

LONGEST_TEXT = 1_000_000
LONGEST_DIFF = 4_000_000  # GitHub itself gives no more than one million
_MOST = 50


class Suspicion(msgspec.Struct, frozen=True, order=True):
    """`marker` is a name from `MARKERS`; `where` one of `title`, `body`, `issue`, `commit`, `path`, `diff`. `path`
    is set for the last two, `sha` for a commit."""

    marker: str
    where: str
    path: str | None = None
    sha: str | None = None

    @property
    def text(self) -> str:
        """Marker and place in Graft's own words, without anything from outside."""
        return f"{MARKERS[self.marker]} in the {_PLACES[self.where]}"


_PLACES = {
    "title": "title",
    "body": "description",
    "issue": "linked issue",
    "commit": "message of a commit",
    "path": "name of a file",
    "diff": "diff",
}

MARKERS = {
    "addressed_to_ai": "text addressed to an AI reviewer",
    "overriding_instructions": "an attempt to override instructions",
    "verdict_dictated": "a dictated verdict",
    "role_markup": "chat role markup",
    "data_tag": "a tag of Graft's own prompts",
    "hidden_comment": "a hidden HTML comment",
    "zero_width": "invisible characters",
    "tag_characters": "Unicode tag characters",
    "bidi": "characters that reverse the reading direction",
    "homoglyphs": "words of letters that only look Latin",
    "encoded": "a long encoded passage",
}

_REACH = 160  # longer than any phrase
_ENCODED_WORD = 60
_LONGEST_USUAL_COMMENT = 600
# A byte order mark at the start of a line is the start of a file.
_ZERO_WIDTH = re.compile("[\u200b\u2060-\u2064\u00ad\u180e\u034f\u3164\u115f\u1160\uffa0]|(?<=[^\\n])\ufeff")
_TAGS = re.compile("[\U000e0000-\U000e007f\U000e0100-\U000e01ef]")
_FLAG = re.compile("\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{2,8}\U000e007f")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_MIXED = re.compile(r"[^\W\d_]{3,40}")
# White space, with the signs that open and close comments at the start of a line.
_SPACES = re.compile(r"\s+(?:(?:\#+|//+!?|/\*+|\*+/?|--+|;+|%+|>+|<!--|\"\"\"|''')\s+)?")
# Lines of a diff that hold data by their nature: encoded passages there mean nothing.
_DATA_FILES = re.compile(
    r"\.(?:svg|pem|crt|cer|key|pub|asc|sig|lock|sum|snap|ipynb|json|map|csv|b64|txt\.gz)$|(?:^|/)(?:testdata|fixtures)/",
    re.IGNORECASE,
)


def suspect(
    *,
    title: str | None = None,
    body: str | None = None,
    issue: str | None = None,
    snapshot: Snapshot | None = None,
) -> tuple[Suspicion, ...]:
    """The markers found in the given texts, each once per place (for files and commits: the first one)."""
    found: dict[tuple[str, str], Suspicion] = {}
    texts: list[tuple[str, str, str | None, str | None]] = [
        ("title", title or "", None, None),
        ("body", body or "", None, None),
        ("issue", issue or "", None, None),
    ]
    if snapshot is not None:
        left = LONGEST_DIFF
        texts += [("commit", commit.message, None, commit.sha) for commit in snapshot.commits]
        texts += [("path", path, path, None) for file in snapshot.files for path in file.paths]
        for file in snapshot.files:
            if file.patch and left > 0:
                texts.append(("diff", _content(file.patch, left), file.path, None))
                left -= len(file.patch)
    for where, text, path, sha in texts:
        for marker in markers_in(text, prose=where in ("title", "body", "issue", "commit"), path=path):
            found.setdefault((marker, where), Suspicion(marker, where, path, sha))
    return tuple(sorted(found.values(), key=lambda s: (s.where, s.marker)))[:_MOST]


def markers_in(text: str, *, prose: bool, path: str | None = None) -> Iterable[str]:
    """The names of the markers in one text. `prose` is text that GitHub renders, where a comment hides."""
    if not text:
        return
    text = text[:LONGEST_TEXT]
    plain = text.isascii()
    lowered = (text if plain else _readable(text)).lower()
    folded = f" {_SPACES.sub(' ', lowered)} "
    for searched, patterns in ((folded, phrases.PHRASES), (lowered, phrases.MARKUP)):
        for marker, (words, pattern) in patterns.items():
            if _demanded(searched, words, pattern):
                yield marker
    yield from _foreign(folded if plain else f" {_SPACES.sub(' ', foreign.fold(text))} ", plain)
    if (path is None or not _DATA_FILES.search(path)) and _is_encoded(folded):
        yield "encoded"
    if prose and any(map(_is_hiding, _comments(text))):
        yield "hidden_comment"
    if plain:
        return
    for marker, present in _UNICODE.items():
        if present(text):
            yield marker


def _foreign(folded: str, plain: bool) -> Iterable[str]:
    """Demands in other languages, in text that `foreign.fold` has folded."""
    searched = foreign.within_sentences(folded)
    for marker, words, pattern in foreign.LATIN if plain else (*foreign.LATIN, *foreign.OTHERS):
        if _demanded(searched, words, pattern):
            yield marker


def _demanded(text: str, words: Sequence[str], pattern: re.Pattern[str]) -> bool:
    """Whether the pattern is in the text, near one of its words; most texts have none of them."""
    if not any(map(text.__contains__, words)):
        return False
    return any(pattern.search(text, start, end) for start, end in _around(text, words))


def _around(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Stretches of `text` around each word, without overlap."""
    at: list[int] = []
    for word in words:
        found = text.find(word)
        while found >= 0:
            at.append(found)
            found = text.find(word, found + 1)
    stretches: list[tuple[int, int]] = []
    for position in sorted(at):
        start, end = max(position - _REACH, 0), min(position + _REACH, len(text))
        if stretches and start <= stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], end)
        else:
            stretches.append((start, end))
    return stretches


def _is_encoded(text: str) -> bool:
    return max(map(len, text.split(" "))) >= _ENCODED_WORD and phrases.ENCODED.search(text) is not None


def _content(patch: str, most: int) -> str:
    """The lines of a patch without their first character."""
    return "\n".join(line[1:] for line in patch[:most].split("\n"))


def _comments(text: str) -> Iterable[str]:
    at = text.find("<!--")
    while at >= 0:
        end = text.find("-->", at + 4)
        yield text[at + 4 : end if end >= 0 else len(text)]
        at = text.find("<!--", end + 3) if end >= 0 else -1


def _readable(text: str) -> str:
    """Compatibility forms and look-alikes as the letters they are read as, invisible characters gone."""
    composed = unicodedata.normalize("NFKC", text).translate(_LOOKALIKES)
    return "".join(char for char in composed if char.isascii() or unicodedata.category(char) != "Cf")


# The Cyrillic and Greek letters that pass for Latin ones in most fonts (Unicode confusables, UTS #39).
_LOOKALIKES = str.maketrans(
    "аеорсухівјѕԁɡһӏԛԝАВЕКМНОРСТУХІЈЅαορνιυτκΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxibjsdghlqwABEKMHOPCTYXIJSaopviutkABEZHIKMNOPTYX",
)


def _is_hiding(comment: str) -> bool:
    words = comment.strip().lower()
    return bool(words) and (
        len(words) > _LONGEST_USUAL_COMMENT or phrases.USUAL_COMMENT.match(words.replace("\n", " ")) is None
    )


def _has_tag_characters(text: str) -> bool:
    return _TAGS.search(text) is not None and _TAGS.search(_FLAG.sub("", text)) is not None


def _has_homoglyphs(text: str) -> bool:
    """A word that mixes Latin letters with Cyrillic or Greek ones that look like them."""
    for match in _MIXED.finditer(text):
        word = match.group()
        if word.isascii():
            continue
        latin = sum(char.isascii() for char in word)
        foreign = sum(ord(char) in _LOOKALIKES for char in word)
        if latin and foreign and latin + foreign == len(word):
            return True
    return False


_UNICODE: dict[str, Callable[[str], bool]] = {
    "zero_width": lambda text: _ZERO_WIDTH.search(text) is not None,
    "tag_characters": _has_tag_characters,
    "bidi": lambda text: _BIDI.search(text) is not None,
    "homoglyphs": _has_homoglyphs,
}
