"""Matching of prose: what fits, what does not, and that every answer can be explained."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft.evaluation.matching import first_match, matches, missing, words


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("retry upload", "Uploads are retried."),
        ("retry upload", "It is retrying each upload, twice"),
        ("upload retry", "Retries an UPLOAD"),
        ("retry/again upload", "The upload is made again."),
        ("no-longer check", "It no longer checks the size"),
        ("low-risk", "a low-risk change"),
        ("user id", "Renames userId"),
        ("user id", "renames user_id"),
        ("address", "addresses"),
        ("batch", "in batches"),
        ("drop", "Dropping the table"),
        ("cache", "caching, cached, caches"),
        ("policy", "all policies"),
        ("read-file", "reads the file"),
        ("doesnt check", "It doesn't check"),
        ("naïve", "ＮＡÏＶＥ"),
    ],
)
def test_fits(pattern: str, sentence: str) -> None:
    assert matches(pattern, sentence)


@pytest.mark.parametrize(
    ("pattern", "sentence", "lacks"),
    [
        ("retry upload", "Uploads are made once.", ("retry",)),
        ("no-longer check", "It checks no more and takes longer", ("no-longer",)),
        ("retry/again upload", "A download.", ("retry/again", "upload")),
        ("cat", "concatenate", ("cat",)),
        ("upload", "", ("upload",)),
        ("...", "anything", ("...",)),
    ],
)
def test_does_not_fit_and_says_what_is_missing(pattern: str, sentence: str, lacks: tuple[str, ...]) -> None:
    assert not matches(pattern, sentence)
    assert missing(pattern, sentence) == lacks


def test_the_first_pattern_that_fits_is_named_with_its_sentence() -> None:
    assert first_match(["moon", "sun"], ["a cloud", "the sun"]) == ("sun", 1)
    assert first_match(["moon"], ["a cloud", "the sun"]) is None


@given(st.text(max_size=200))
def test_any_text_is_read_and_letters_alone_decide(sentence: str) -> None:
    assert words(sentence.upper().lower()) is not None
    assert words(f"...{sentence}!?") == words(sentence)


@given(
    st.lists(st.sampled_from(["retry", "upload", "limit", "user", "drop", "no-longer"]), min_size=1),
    st.text(max_size=80),
)
def test_more_words_never_make_a_pattern_fit_better(pattern: list[str], sentence: str) -> None:
    if matches(" ".join(pattern), sentence):
        assert all(matches(word, sentence) for word in pattern)
    assert matches(" ".join(pattern), f"{sentence} {' '.join(pattern)}")
