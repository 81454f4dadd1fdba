"""Sections as GitHub's parser reads them, for every outcome and with text that tries to break out."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import cmarkgfm
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graft.github import comment_body
from graft.intent import (
    Card,
    Floor,
    Omission,
    OutOfScope,
    Pointer,
    Reason,
    Statement,
    Status,
    Suspicion,
    Verdict,
    VerifierStatus,
    check_output,
    render_section,
)
from graft.risk import Risk

OK = Verdict.SUPPORTED
READY = Card(
    status=Status.READY,
    base_sha="b" * 40,
    head_sha="a" * 40,
    goal=Statement(text="Retries failed uploads.", verdict=OK),
    changes=(Statement(text="An upload is tried three times.", verdict=OK),),
    risk=Risk.LOGIC,
    floor=Floor(risk=Risk.TRIVIAL, reasons=()),
    risk_writer=Risk.LOGIC,
    risk_verifier=Risk.LOGIC,
    risk_reason_writer="Uploads behave differently.",
    verifier=VerifierStatus.AGREES,
    writer_model="claude-opus-5-5",
    verifier_model="claude-opus-5-5",
    prompt_version="1",
    input_hash="0",
)
DISAGREES = msgspec.structs.replace(
    READY,
    verifier=VerifierStatus.DISAGREES,
    changes=(
        Statement(
            text="Tries five times.", verdict=Verdict.CONTRADICTED, reason="upload.py tries three times"
        ),
    ),
    missed=("The time-out is gone.",),
)
UNVERIFIED = msgspec.structs.replace(
    READY, status=Status.UNVERIFIED, reason="timeout", verifier=VerifierStatus.FAILED, risk_verifier=None
)
UNAVAILABLE = Card(
    status=Status.UNAVAILABLE,
    reason="no_model",
    base_sha="b" * 40,
    head_sha="a" * 40,
    risk=Risk.LOGIC,
    floor=Floor(risk=Risk.TRIVIAL, reasons=()),
    prompt_version="1",
    input_hash="0",
)
EMPTY = msgspec.structs.replace(UNAVAILABLE, status=Status.EMPTY, reason=None, risk=Risk.TRIVIAL)


class Page(HTMLParser):
    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.headings: list[str] = []
        self.prose: list[str] = []
        self.text = ""
        self._stack: list[str] = []
        extensions = ["table", "autolink", "tagfilter", "strikethrough", "tasklist"]
        self.feed(cmarkgfm.markdown_to_html_with_extensions(markdown, extensions=extensions))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not attrs or (tag, attrs[0][0]) == ("ol", "start"), (tag, attrs)
        self.tags.append(tag)
        self._stack.append(tag)
        self.prose.append("\0")
        if tag in ("h2", "h3", "h4"):
            self.headings.append("")

    def handle_endtag(self, tag: str) -> None:
        self._stack.pop()
        self.prose.append("\0")

    def handle_data(self, data: str) -> None:
        self.text += data
        if {"h2", "h3", "h4"} & set(self._stack):
            self.headings[-1] += data
        if "code" not in self._stack:
            self.prose.append(data)


def shown(card: Card, **options: Any) -> str:
    return Page(render_section(card, **options)).text


def test_a_checked_card() -> None:
    text = shown(READY)
    for part in (
        "Risk: logic",
        "Goal: Retries failed uploads.",
        "An upload is tried three times.",
        "rules: trivial",
        "writer: logic (Uploads behave differently)",
        "verifier: logic",
        "Written by claude-opus-5-5, checked by claude-opus-5-5, prompt 1, base bbbbbbbbbb, head aaaaaaaaaa.",
        "👍 or 👎",
    ):
        assert part in text
    assert "⚠️" not in text
    assert check_output(READY)[0] == "Risk logic"


def test_a_disagreement_lists_each_point_before_the_goal() -> None:
    text = shown(DISAGREES)
    warning, goal = text.index("The verifier disagrees"), text.index("Goal:")
    assert warning < text.index("contradicted: Tries five times. (upload.py tries three times)") < goal
    assert warning < text.index("not on the card: The time-out is gone.") < goal
    assert "the verifier disagrees: at least logic" in text
    assert "disagrees" in check_output(DISAGREES)[0]


def test_not_verified_is_not_a_disagreement() -> None:
    text = shown(UNVERIFIED)
    assert "Not verified: the model did not answer in time. Nobody has checked the claims below." in text
    assert text.index("Not verified") < text.index("Goal:")
    assert "disagrees" not in text
    assert "checked by" not in text.replace("Nobody has checked", "")
    assert check_output(UNVERIFIED)[0] == "Risk logic, card not verified"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("no_model", "No card: no model is configured."),
        ("budget", "No card: the budget of this repository is used up for today (UTC)."),
        ("refused", "No card: the model declined to answer."),
        ("something_new", "No card: something_new."),
        (None, "No card. No model has"),
    ],
)
def test_no_card_says_why_and_claims_nothing(reason: str | None, words: str) -> None:
    card = msgspec.structs.replace(UNAVAILABLE, reason=reason)
    text = shown(card)
    assert words in text
    assert "No model has described or checked this change." in text
    for claim in ("Goal", "Written by", "checked by", "Is this card right"):
        assert claim not in text
    assert check_output(card)[0] == "Risk logic, no card"


def test_when_it_is_tried_again() -> None:
    at = datetime(2026, 12, 1, 12, 30, 1, tzinfo=UTC)
    for card in (UNVERIFIED, UNAVAILABLE):
        assert "Graft tries again at 2026-12-01 12:31 UTC." in shown(card, retry_at=at)
        assert "tries again" not in shown(card)
    assert "12:30 UTC" in shown(UNAVAILABLE, retry_at=at.replace(second=0))


def test_in_the_making() -> None:
    card = msgspec.structs.replace(UNAVAILABLE, reason=None)
    text = shown(card, pending=True)
    assert "Risk: at least logic" in text
    assert "The card for aaaaaaaaaa is in the making." in text
    assert "No card:" not in text
    assert check_output(card, pending=True)[0] == "Risk at least logic, card in the making"


def test_an_older_card_is_shown_as_belonging_to_its_own_head() -> None:
    older = msgspec.structs.replace(DISAGREES, head_sha="c" * 40)
    page = Page(render_section(UNAVAILABLE, pending=True, older=older))
    assert page.headings == ["Intent", "Card of cccccccccc, an earlier state of this pull request"]
    after = page.text[page.text.index("Card of cccccccccc") :]
    assert "It does not describe aaaaaaaaaa." in after
    assert "Goal: Retries failed uploads." in after
    assert "The verifier disagrees" in after
    assert "Goal" not in page.text[: page.text.index("Card of cccccccccc")]
    assert "earlier state" not in shown(UNAVAILABLE, older=older)


def test_an_empty_change() -> None:
    text = shown(EMPTY)
    assert "Risk: trivial" in text
    assert "changes nothing, so there is no card" in text
    assert "at least" not in text
    assert check_output(EMPTY)[0] == "Nothing changed"


def test_what_was_not_read_and_why_the_rules_say_so() -> None:
    reasons = [Reason(code="dependency", risk=Risk.SENSITIVE, path=f"{n}/go.mod") for n in range(7)]
    reasons += [
        Reason(code="incomplete", risk=Risk.SENSITIVE, detail="count_mismatch"),
        Reason(code="large", risk=Risk.LOGIC, detail="400 changed lines"),
    ]
    card = msgspec.structs.replace(
        READY,
        risk=Risk.SENSITIVE,
        floor=Floor(risk=Risk.SENSITIVE, reasons=tuple(reasons)),
        omissions=tuple(Omission(f"{n}.png", "binary") for n in range(25)),
        incomplete=("count_mismatch",),
        dropped_paths=2,
        suspicions=(Suspicion("bidi", "diff", "src/a.py"), Suspicion("zero_width", "commit", None, "d" * 40)),
        risk_first_pass=Risk.LOGIC,
    )
    text = shown(card)
    for part in (
        "a dependency manifest or lockfile (0/go.mod, 1/go.mod, 2/go.mod, 3/go.mod, 4/go.mod and 2 more)",
        "more than 300 changed lines (400 changed lines)",
        "The list of files is not complete: GitHub's counts do not match the files it listed.",
        "0.png: binary",
        "and 5 more",
        "does not have: 2, left out",
        "characters that reverse the reading direction in the diff (src/a.py)",
        "invisible characters in the message of a commit (dddddddddd)",
        "first pass: logic",
    ):
        assert part in text


# ------------------------------------------------------------------------------------------ hostile text

PIECES = st.sampled_from(
    ["@octocat ", "#12 ", "fixes ", "GH-1 ", "`", "```\n", "<!-- graft:section:intent:end -->", "<!-- x", "-->", "|",
     "\n\n", "# h\n", "- x\n", "[a](http://x)", "![](x)", "<img src=x>", "https://e.example ", "www.e.example ", "*",
     "_", "\\", "\u202e", "\u200b", "\0", "\ud800", "$x$", ":+1:", "deadbeef01 ", "<details>", "</sub>", "1. ",
     "> ", "~~"]
)  # fmt: skip
hostile = st.lists(PIECES | st.text(max_size=3), max_size=12).map("".join)
statements = st.builds(Statement, text=hostile, verdict=st.sampled_from([None, *Verdict]), reason=hostile)
cards = st.builds(
    Card,
    status=st.sampled_from(Status),
    reason=st.none() | hostile | st.sampled_from(["timeout", "budget"]),
    base_sha=st.just("b" * 40),
    head_sha=st.just("a" * 40),
    goal=st.none() | statements,
    changes=st.lists(statements, max_size=3).map(tuple),
    out_of_scope=st.lists(
        st.builds(OutOfScope, path=hostile, why=statements, by=st.sampled_from(["writer", "verifier"])),
        max_size=2,
    ).map(tuple),
    missed=st.lists(hostile, max_size=2).map(tuple),
    risk=st.sampled_from(Risk),
    floor=st.builds(
        Floor,
        risk=st.sampled_from(Risk),
        reasons=st.lists(
            st.builds(
                Reason,
                code=hostile | st.just("dependency"),
                risk=st.sampled_from(Risk),
                path=st.none() | hostile,
            ),
            max_size=2,
        ).map(tuple),
    ),
    risk_writer=st.none() | st.sampled_from(Risk),
    risk_verifier=st.none() | st.sampled_from(Risk),
    risk_reason_writer=hostile,
    risk_reason_verifier=hostile,
    verifier=st.sampled_from(VerifierStatus),
    suspicions=st.lists(
        st.builds(
            Suspicion, st.just("bidi"), st.just("path"), path=st.none() | hostile, sha=st.none() | hostile
        ),
        max_size=2,
    ).map(tuple),
    touches=st.lists(
        st.builds(Pointer, change=st.integers(1, 3), record=hostile, clause=hostile), max_size=2
    ).map(tuple),
    omissions=st.lists(st.builds(Omission, hostile, st.sampled_from(["binary", "?"])), max_size=2).map(tuple),
    incomplete=st.lists(hostile, max_size=2).map(tuple),
    dropped_paths=st.integers(0, 3),
    writer_model=st.none() | hostile,
    verifier_model=st.none() | hostile,
    prompt_version=st.just("1"),
    input_hash=st.just("0"),
)
ACTIVE = re.compile(r"@\w|#\d|\bgh-\d|https?://|www\.\w|\b[0-9a-f]{7,40}\b|:\+1:|\$", re.IGNORECASE)


def assert_inert(section: str) -> None:
    page = Page(section)
    assert set(page.tags) <= {"h3", "h4", "p", "strong", "em", "ul", "ol", "li", "code", "sub"}, section
    assert page.headings[0] == "Intent"
    assert all(heading.startswith("Card of") for heading in page.headings[1:])
    for node in "".join(page.prose).split("\0"):
        assert not ACTIVE.search(node), (node, section)
    assert "<!--" not in section
    section.encode()


@given(cards, cards, st.booleans())
def test_hostile_text_does_nothing(card: Card, older: Card, pending: bool) -> None:
    section = render_section(card, pending=pending, older=older)
    assert_inert(section)
    lines = section.split("\n")
    assert lines[0] == "### Intent"
    assert lines[2].startswith("**Risk: ")
    title, summary = check_output(card, pending=pending, older=older)
    assert len(title) < 100
    assert "### Intent\n\n" + summary == section


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(cards, min_size=1, max_size=4))
def test_the_comment_stays_whole_over_fifty_updates(some: list[Card]) -> None:
    provenance = "### Provenance\n\nkept"
    body = comment_body.compose(None, {"provenance": provenance}, footer="Graft")
    lengths: dict[int, set[int]] = {}
    for update in range(50):
        index = update % len(some)
        body = comment_body.compose(body, {"intent": render_section(some[index])}, footer="Graft")
        lengths.setdefault(index, set()).add(len(body))
    sections = comment_body.parse(body)
    assert list(sections) == ["intent", "provenance"]
    assert sections["provenance"].text.strip() == provenance
    assert all(len(seen) == 1 for seen in lengths.values())


def test_the_risk_survives_the_longest_text() -> None:
    long = Statement(text="[*_" * 200, verdict=Verdict.UNSUPPORTED, reason="|" * 400)
    card = msgspec.structs.replace(
        DISAGREES,
        goal=long,
        changes=(long,) * 12,
        missed=("<" * 400,) * 12,
        out_of_scope=tuple(OutOfScope(path=f"{n}" * 100, why=long, by="writer") for n in range(20)),
    )
    body = comment_body.compose(None, {"intent": render_section(card)}, footer="Graft")
    text = comment_body.parse(body)["intent"].text
    assert len(text) <= comment_body.SECTION_LIMIT + 1
    assert text.startswith("### Intent\n\n**Risk: logic**\n\n⚠️ **The verifier disagrees**")
