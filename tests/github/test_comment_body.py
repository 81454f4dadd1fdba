"""The managed comment's text: what is replaced, what survives byte for byte, what is cut."""

from __future__ import annotations

import cmarkgfm
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graft.github import comment_body
from graft.github.blocks import CUT_NOTE, cut, utf8_length
from graft.github.comment_body import BODY_LIMIT, MARKER, SECTION_LIMIT, SECTIONS, compose, parse

FOOTER = "Graft 1.0 · what is this?"


def section(body: str, name: str) -> str:
    return parse(body)[name].text.strip("\r\n")


def test_a_new_body_looks_like_the_contract() -> None:
    body = compose(None, {"policy": "### Policy\n\nnone", "intent": "### Intent\n\nadds"}, footer=FOOTER)
    assert body == (
        "<!-- graft:managed-comment v1 -->\n"
        "## Graft\n"
        "\n"
        "<!-- graft:section:intent:start -->\n"
        "### Intent\n"
        "\n"
        "adds\n"
        "<!-- graft:section:intent:end -->\n"
        "\n"
        "<!-- graft:section:policy:start -->\n"
        "### Policy\n"
        "\n"
        "none\n"
        "<!-- graft:section:policy:end -->\n"
        "\n"
        "<sub>Graft 1.0 · what is this?</sub>"
    )


def test_sections_come_in_their_order_and_unknown_ones_after_them() -> None:
    body = compose(
        None, {"zebra": "z", "records": "r", "alpha": "a", "provenance": "p", "intent": "i"}, footer=FOOTER
    )
    assert list(parse(body)) == ["intent", "provenance", "records", "zebra", "alpha"]
    again = compose(body, {"policy": "y"}, footer=FOOTER)
    assert list(parse(again)) == ["intent", "provenance", "policy", "records", "zebra", "alpha"]


def test_only_the_given_section_changes() -> None:
    other = "<!-- graft:section:later:start -->\r\n odd \t\r\n\r\n\u2028x\r\n<!-- graft:section:later:end -->"
    policy = "<!-- graft:section:policy:start -->\n\n  spaced\n\n\n<!-- graft:section:policy:end -->"
    body = f"{MARKER}\r\n## Graft\r\n\r\n{other}\r\n\r\n{policy}\n\n<sub>old</sub>"
    new = compose(body, {"intent": "new"}, footer=FOOTER)
    assert other in new
    assert policy in new
    assert new.index(policy) < new.index(other)
    assert "old" not in new


def test_none_and_empty_text_remove_a_section() -> None:
    body = compose(None, {"intent": "i", "policy": "p", "records": "r"}, footer=FOOTER)
    assert list(parse(compose(body, {"intent": None, "policy": ""}, footer=FOOTER))) == ["records"]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "hello",
        f"> {MARKER}",
        f"\n{MARKER}",
        f" {MARKER}",
        MARKER.upper(),
        f"{MARKER} and more",
        "<!-- graft:section:intent:start -->\nx\n<!-- graft:section:intent:end -->",
    ],
)
def test_a_body_without_the_marker_first_has_no_sections(body: str) -> None:
    assert parse(body) == {}
    assert not comment_body.has_marker(body)


@pytest.mark.parametrize(
    ("inner", "names"),
    [
        ("<!-- graft:section:intent:start -->\nx", []),
        ("<!-- graft:section:intent:start -->\nx\n<!-- graft:section:policy:end -->", []),
        (
            "<!-- graft:section:intent:start -->\n<!-- graft:section:policy:start -->\nx\n"
            "<!-- graft:section:policy:end -->",
            ["policy"],
        ),
        ("x <!-- graft:section:intent:start -->\nx\n<!-- graft:section:intent:end -->", []),
        ("<!-- graft:section:A:start -->\nx\n<!-- graft:section:A:end -->", []),
        ("<!-- graft:section:intent:start -->\n<!-- graft:section:intent:end -->", ["intent"]),
    ],
)
def test_damaged_sections_are_left_out(inner: str, names: list[str]) -> None:
    assert list(parse(f"{MARKER}\n{inner}")) == names


def test_of_two_sections_with_one_name_the_first_counts() -> None:
    one = "<!-- graft:section:x:start -->\n{}\n<!-- graft:section:x:end -->"
    assert parse(f"{MARKER}\n{one.format(1)}\n{one.format(2)}")["x"].text == "1\n"


@pytest.mark.parametrize(
    "text", ["<!-- graft:section:x:end -->", "a <!--graft:x", "<!-- GRAFT:managed-comment v1 -->"]
)
def test_a_section_with_a_marker_is_a_programming_error(text: str) -> None:
    with pytest.raises(ValueError, match="marker"):
        compose(None, {"intent": text}, footer=FOOTER)
    with pytest.raises(ValueError, match="footer"):
        compose(None, {}, footer=text)


@pytest.mark.parametrize("name", ["", "A", "a b", "a:start", "-a", "x" * 41])
def test_a_section_needs_a_plain_name(name: str) -> None:
    with pytest.raises(ValueError, match="section name"):
        compose(None, {name: "x"}, footer=FOOTER)


def test_a_footer_of_two_lines_is_a_programming_error() -> None:
    with pytest.raises(ValueError, match="footer"):
        compose(None, {}, footer="a\nb")


def test_a_marker_cannot_be_put_together_by_what_is_left_out() -> None:
    with pytest.raises(ValueError, match="marker"):
        compose(None, {"intent": "<!-\0- graft:section:policy:start -->"}, footer=FOOTER)


def test_what_no_request_could_carry_is_replaced() -> None:
    body = compose(None, {"intent": "a\ud800b\0c"}, footer=FOOTER)
    assert section(body, "intent") == "a?bc"


def test_a_long_section_is_cut_at_a_block_and_says_so() -> None:
    blocks = [f"block {i} " + "x" * 90 for i in range(400)]
    body = compose(None, {"intent": "### Intent\n\n" + "\n\n".join(blocks)}, footer=FOOTER)
    text = section(body, "intent")
    assert len(text) <= SECTION_LIMIT
    *kept, note = text.split("\n\n")
    assert note == CUT_NOTE
    assert kept[1:] == blocks[: len(kept) - 1]
    assert len(text) > SECTION_LIMIT - 200


def test_when_the_whole_is_too_long_the_longest_goes_first() -> None:
    short = "### Policy\n\n" + "p" * 500
    long = "\n\n".join(["l" * 99] * 190)
    body = compose(
        None, {"intent": long, "provenance": long, "policy": short, "records": long}, footer=FOOTER
    )
    assert len(body) <= BODY_LIMIT  # three of 19,000 fit
    unknown = "\n\n".join(["u" * 99] * 150)
    body = compose(body, {"later": unknown}, footer=FOOTER)
    assert len(body) <= BODY_LIMIT
    assert section(body, "later").startswith("u" * 99)
    assert section(body, "policy") == short
    assert {section(body, name).endswith(CUT_NOTE) for name in ("intent", "provenance", "records")} == {True}


def test_sections_of_others_are_cut_only_when_ours_are_very_short() -> None:
    theirs = "".join(
        f"<!-- graft:section:x{i}:start -->\n{'t' * 15_900}\n<!-- graft:section:x{i}:end -->\n\n"
        for i in range(4)
    )
    full = f"{MARKER}\n## Graft\n\n{theirs}<sub>f</sub>"
    assert len(full) <= BODY_LIMIT
    body = compose(full, {"intent": "### Intent\n\nshort"}, footer=FOOTER)
    assert section(body, "intent") == "### Intent\n\nshort"
    assert all(parse(body)[f"x{i}"].text == "t" * 15_900 + "\n" for i in range(4))
    body = compose(full, {"intent": "### Intent\n\n" + "\n\n".join(["i" * 50] * 300)}, footer=FOOTER)
    assert len(body) <= BODY_LIMIT
    assert "i" * 50 in section(body, "intent")


# --- invariants ------------------------------------------------------------------------------------------

line = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
awkward = st.sampled_from(
    [
        "",
        "```",
        "~~~~",
        "<details>",
        "</details>",
        "- item",
        "<!-- comment -->",
        "    code",
        "\r",
        "---",
        MARKER[:9],
    ]
)
markdown = st.lists(line | awkward, max_size=30).map("\n".join).filter(lambda t: "graft:" not in t.lower())
long_markdown = (
    st.tuples(markdown, st.integers(1, 3_000)).map(lambda p: (p[0] + "\n\n") * p[1]).map(lambda t: t[:60_000])
)
names = st.sampled_from([*SECTIONS, "later", "x9"])
given_sections = st.dictionaries(names, st.none() | markdown | long_markdown, max_size=6)


@settings(max_examples=40, deadline=None)
@given(given_sections, given_sections)
@example(
    {"intent": "x\n\n" * 6_000, "later": "y\n\n" * 6_000},
    {"policy": "z\n\n" * 9_000, "records": "w\n\n" * 9_000},
)
def test_composing_is_idempotent_and_fits(
    first: dict[str, str | None], second: dict[str, str | None]
) -> None:
    before = compose(None, first, footer=FOOTER)
    once = compose(before, second, footer=FOOTER)
    assert len(once) <= BODY_LIMIT
    assert compose(once, second, footer=FOOTER) == once
    assert comment_body.has_marker(once)
    assert once.endswith(f"<sub>{FOOTER}</sub>")
    assert compose(once, {}, footer=FOOTER) == once


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(names, markdown, max_size=6), names, markdown)
def test_other_sections_survive_byte_for_byte(sections: dict[str, str], name: str, text: str) -> None:
    body = compose(None, dict(sections), footer=FOOTER)
    before = parse(body)
    after = parse(
        compose(body.replace("\n", "\r\n") if len(text) % 2 else body, {name: text}, footer="other")
    )
    if len(text) % 2:
        before = parse(body.replace("\n", "\r\n"))
    for other in before.keys() - {name}:
        assert after[other].block == before[other].block


@settings(max_examples=4, deadline=None)
@given(st.dictionaries(names, markdown | long_markdown, min_size=1, max_size=3))
def test_fifty_updates_leave_it_as_it_is(sections: dict[str, str]) -> None:
    body = compose(None, dict(sections), footer=FOOTER)
    for _ in range(50):
        for name, text in sections.items():
            body = compose(body, {name: text}, footer=FOOTER)
    stable = body
    for name, text in sections.items():
        body = compose(body, {name: text}, footer=FOOTER)
    assert body == stable


markers = [f"<!-- graft:section:{n}:{edge} -->" for n in ("intent", "x") for edge in ("start", "end")]


@settings(deadline=None)
@given(st.lists(st.sampled_from([MARKER, *markers, "t", "\r", ""]), max_size=20).map("\n".join))
def test_any_arrangement_of_markers_is_read_and_rewritten(body: str) -> None:
    new = compose(body, {"policy": "p"}, footer=FOOTER)
    assert list(parse(new))[-1 if "x" not in parse(new) else -2] == "policy"
    assert compose(new, {"policy": "p"}, footer=FOOTER) == new


# --- cutting ---------------------------------------------------------------------------------------------


def test_text_that_fits_is_left_alone() -> None:
    assert cut("a\n\nb", 4) == "a\n\nb"


def test_a_cut_closes_what_it_leaves_open() -> None:
    text = (
        "intro\n\n<details><summary>all</summary>\n\n"
        + "\n\n".join(f"line {i}" for i in range(100))
        + "\n\n</details>"
    )
    shown = cut(text, 300)
    assert len(shown) <= 300
    assert shown.count("<details>") == shown.count("</details>") == 1
    assert shown.endswith(f"</details>\n\n{CUT_NOTE}")
    assert "line 10" in shown


def test_a_fence_is_cut_at_a_line_and_closed() -> None:
    text = "intro\n\n````\n" + "\n".join(f"```{i}\n" for i in range(100)) + "\n````\n\nafter"
    shown = cut(text, 300)
    assert len(shown) <= 300
    assert shown.endswith(f"\n````\n\n\n{CUT_NOTE}")
    assert "```10" in shown


def test_a_line_is_never_cut_in_the_middle() -> None:
    shown = cut("head\n\n`" + "@everyone " * 200 + "`", 500)
    assert shown == f"head\n\n{CUT_NOTE}"


def test_there_may_be_no_room_even_for_the_note() -> None:
    assert cut("x" * 100, 10) == ""


def test_bytes_are_measured_as_bytes() -> None:
    text = "\n\n".join(["é" * 50] * 20)
    shown = cut(text, 500, measure=utf8_length)
    assert len(shown.encode()) <= 500
    assert shown.startswith("é" * 50)


@settings(max_examples=200, deadline=None)
@given(markdown, st.integers(0, 400))
def test_a_cut_text_fits_and_begins_like_the_whole(text: str, limit: int) -> None:
    shown = cut(text, limit)
    assert len(shown) <= limit
    if shown == text:
        return
    kept = shown.removesuffix(CUT_NOTE).rstrip()
    while kept and not text.startswith(kept):  # what was closed by the cut
        assert kept.endswith(("</details>", "```", "~~~~")) or kept[-1] in "`~"
        kept = kept.removesuffix("</details>").rstrip("`~").rstrip() if kept else ""


@given(st.integers(0, 60), st.booleans())
def test_a_cut_never_shows_the_note_inside_a_code_block(lines: int, nested: bool) -> None:
    text = ("<details>\n\n" if nested else "") + "```\n" + "\n".join(["code"] * 80) + "\n```\n"
    shown = cut(text, 120 + lines)
    html = cmarkgfm.github_flavored_markdown_to_html(shown)
    assert "<em>Cut here to fit; the rest is not shown.</em>" in html
