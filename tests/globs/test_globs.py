"""The glob semantics: the labelled cases, each refusal with its hint, a naive reference, and time."""

from __future__ import annotations

import json
import time
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graft import globs
from graft.globs import Glob, GlobError, GlobListError, GlobSet, compile_glob, compile_list

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "cases" / "globs.json").read_text())
DECIDED = [case for case in CASES if case["match"] is not None]
OPEN = [case for case in CASES if case["match"] is None]


@pytest.mark.parametrize("case", DECIDED, ids=[f"{c['glob'][:20]}|{c['path'][:20]}" for c in DECIDED])
def test_labelled_case(case: dict[str, Any]) -> None:
    glob = compile_glob(case["glob"])
    assert glob.matches(case["path"]) is case["match"], case["why"]
    assert GlobSet([glob]).matches(case["path"]) is case["match"]


@pytest.mark.parametrize("case", OPEN, ids=[c["glob"] for c in OPEN])
def test_labelled_open_case_is_refused_with_a_hint(case: dict[str, Any]) -> None:
    with pytest.raises(GlobError) as caught:
        compile_glob(case["glob"])
    assert ":" in caught.value.reason
    assert case["glob"].strip() not in caught.value.reason


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("Makefile", "a/b/makefile", True),
        ("/Makefile", "a/Makefile", False),
        ("docs", "docs/a.md", False),
        ("docs/**", "docs", False),
        ("a/**/b", "a/b", True),
        ("**/b", "b", True),
        ("/**", "x", True),
        ("*/x", "a/x", True),
        ("a*", "a", True),
        ("*a*b*", "xxaxxbxx", True),
        ("*a*a", "a", False),
        ("a*a", "aa", True),
        ("[]x]y", "]y", True),
        ("[a-]y", "-y", True),
        ("[^a-c]", "d", True),
        ("[!x]", "/", False),
        ("x[+-9]y", "x/y", False),
        ("[A-C]z", "bZ", True),
        ("[à-ï]", "É", True),
        ("\\*.md", "*.md", True),
        ("\\*.md", "a.md", False),
        ("a\\!b", "a!b", True),
        ("**/x/**/y/**", "x/y/z", True),
        ("**/x/**/y/**", "x/y", False),
        ("a/*/**/c", "a/b/c", True),
        ("a/*/**/c", "a/c", False),
        ("line\\ feed", "line\nfeed", False),
        ("line?feed", "line\nfeed", True),
        ("x", "x\n", False),
        ("straße/**", "STRASSE/x", False),
        ("STRAẞE/**", "straße/x", True),
        ("caf\u00e9", "cafe\u0301", True),
        ("cafe\u0301", "CAF\u00c9", True),
        ("ΣΑΣ.md", "σας.md", True),
        ("*", "\udcff", True),
    ],
)
def test_meaning(glob: str, path: str, expected: bool) -> None:
    assert compile_glob(glob).matches(path) is expected
    assert GlobSet([compile_glob(glob)]).matches(path) is expected


@pytest.mark.parametrize(
    ("glob", "part"),
    [
        ("", "is empty"),
        ("/", "empty segment"),
        ("docs/", "`dir/**`"),
        ("a//b", "empty segment"),
        ("../x", "`..`"),
        ("a/./b", "`.`"),
        ("***", "`**`"),
        ("a/**b/c", "`**`"),
        ("[abc", "`]`"),
        ("[]", "`]`"),
        ("[a/b]", "`]`"),
        ("[[:alpha:]]", "POSIX"),
        ("src\\app", "`/`"),
        ("src\\/app", "`/`"),
        ("x\\", "`\\`"),
        ("a\x00b", "control"),
        ("a\nb", "control"),
        ("a\u200bb", "character 2 is invisible"),
        ("\u00a0x", "blanks"),
        ("a\u00a0x", "character 2 is a space"),
        ("p\u0430yments/**", "character 2 looks like an ASCII letter"),
        ("src/\u0441\u043e\u0440\u0443", "character 5 looks like"),
        ("\uff50ay", "character 1 is another form"),
        ("a\u2215b", "character 2 looks like an ASCII sign"),
        ("a\ud800", "no assigned"),
        ("a" * (globs.MAX_GLOB_LENGTH + 1), "longer"),
    ],
)
def test_refused(glob: str, part: str) -> None:
    with pytest.raises(GlobError) as caught:
        compile_glob(glob)
    assert part in caught.value.reason


@pytest.mark.parametrize(
    "glob", ["документы/**", "kayıt/**", "naïve/é", "日本語/データ/x", "data-データ", "αβγ/x", "🎉.md"]
)
def test_words_of_other_languages_are_welcome(glob: str) -> None:
    assert not compile_glob(glob).pattern.isascii()


def test_stars_in_classes_and_escapes_are_no_deep_star() -> None:
    assert compile_glob("[*][*]").matches("**")
    assert compile_glob("\\**").matches("*x")
    assert compile_glob("[\\]*]*").matches("]x")


def test_globs_are_values() -> None:
    assert compile_glob("a/*") == compile_glob("a/*") != compile_glob("a/?")
    assert len({compile_glob("x"), compile_glob("x")}) == 1
    assert repr(compile_glob("x")) == "Glob('x')"


# ------------------------------------------------------------------------------------------------------ lists


def test_list_trims_and_skips_empty_items() -> None:
    assert [g.pattern for g in compile_list(" src/** ,, **/pay/**\n,")] == ["src/**", "**/pay/**"]
    assert compile_list("") == compile_list(" , ") == ()


def test_list_reports_every_position_and_no_value() -> None:
    with pytest.raises(GlobListError) as caught:
        compile_list("ok/**,{secret,b}.py,,!hidden")
    assert [position for position, _ in caught.value.problems] == [2, 3, 5]
    assert "glob 2: has a brace" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_list_is_bounded() -> None:
    with pytest.raises(GlobListError, match="longer than"):
        compile_list("a" * (globs.MAX_LIST_LENGTH + 1))
    with pytest.raises(GlobListError, match="more than 500"):
        compile_list(",".join(f"f{i}" for i in range(501)))
    assert len(compile_list(",".join(f"f{i}" for i in range(500)))) == 500


# ---------------------------------------------------------------------------------------------- the reference

SEGMENT = st.one_of(
    st.just("**"),
    st.text("ab*?", min_size=1, max_size=6).filter(lambda s: "**" not in s),
    st.sampled_from(["[ab]*", "*[!a]", "a.b", "*.a", "A", "*a*b*a"]),
)
PATH = st.lists(st.text("abA.", min_size=1, max_size=5), min_size=1, max_size=6).map("/".join)
GLOB = st.builds(
    lambda lead, parts: lead + "/".join(parts),
    st.sampled_from(["", "/"]),
    st.lists(SEGMENT, min_size=1, max_size=6),
)


def naive(glob: str, path: str) -> bool:
    """Straight from the definition: every choice tried."""
    parts = glob.lower().split("/")
    if len(parts) == 1:
        parts = ["**", *parts]
    elif parts[0] == "":
        parts = parts[1:]
    names = path.lower().split("/")

    @lru_cache(None)
    def deep(i: int, j: int) -> bool:
        if i == len(parts):
            return j == len(names)
        if parts[i] == "**":
            if i == len(parts) - 1:
                return j < len(names)
            return any(deep(i + 1, k) for k in range(j, len(names) + 1))
        return j < len(names) and flat(parts[i], names[j]) and deep(i + 1, j + 1)

    return deep(0, 0)


def flat(pattern: str, name: str) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(flat(pattern[1:], name[k:]) for k in range(len(name) + 1))
    if not name:
        return False
    if pattern.startswith("[ab]"):
        return name[0] in "ab" and flat(pattern[4:], name[1:])
    if pattern.startswith("[!a]"):
        return name[0] != "a" and flat(pattern[4:], name[1:])
    return pattern[0] in ("?", name[0]) and flat(pattern[1:], name[1:])


@settings(max_examples=600, deadline=None)
@given(GLOB, PATH)
def test_matches_as_the_definition_says(glob: str, path: str) -> None:
    assert compile_glob(glob).matches(path) is naive(glob, path)


@settings(max_examples=150, deadline=None)
@given(st.lists(GLOB, max_size=12), PATH)
def test_a_set_finds_the_first_that_matches(patterns: list[str], path: str) -> None:
    expected = next((p for p in patterns if naive(p, path)), None)
    found = GlobSet(map(compile_glob, patterns)).first(path)
    assert (found.pattern if found else None) == expected


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_is_compiled_or_refused(pattern: str, path: str) -> None:
    try:
        glob = compile_glob(pattern)
    except GlobError:
        return
    assert glob.matches(path) in (True, False)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="/"), min_size=1, max_size=8), min_size=1
    )
)
def test_an_escaped_path_matches_itself_in_either_case_and_form(names: list[str]) -> None:
    path = "/".join(names)
    escaped = "/" + "".join("\\" + char if char in "*?[]{}!\\" else char for char in path)
    try:
        glob = compile_glob(escaped)
    except GlobError:
        return
    assert glob.matches(path)
    assert glob.matches(unicodedata.normalize("NFD", path))


# ------------------------------------------------------------------------------------------------------- time


def seconds(glob: Glob, path: str) -> float:
    best = 1.0
    for _ in range(3):
        start = time.process_time()
        glob.matches(path)
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("**/" * 20 + "x", "/".join("a" * 60)),
        ("**/a/" * 20 + "x", "/".join("a" * 60)),
        ("**/*a*/" * 20 + "x", "/".join(["aa"] * 60)),
        ("*a" * 200 + "x", "a" * 2000),
        ("**/*a*a*a*a*b/" * 10 + "**", "/".join(["a" * 30] * 60)),
    ],
)
def test_no_glob_explodes(glob: str, path: str) -> None:
    assert seconds(compile_glob(glob), path) < 0.010


def test_three_thousand_files_against_a_hundred_globs() -> None:
    files = [f"services/team{i % 40}/module{i % 300}/src/File{i}.py" for i in range(3_000)]
    globset = GlobSet(
        compile_glob(pattern)
        for i in range(20)
        for pattern in (
            f"**/none{i}/**",
            f"services/x{i}*/**",
            f"*.ext{i}",
            f"**/*secret{i}*",
            f"src/**/n{i}/*.sql",
        )
    )
    best = 1.0
    for _ in range(3):
        start = time.process_time()
        assert not any(globset.matches(file) for file in files)
        best = min(best, time.process_time() - start)
    assert best < 1  # `make bench ARGS=policy` prints the number; this notices an explosion
