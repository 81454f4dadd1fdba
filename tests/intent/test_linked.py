from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft.intent.linked import MOST_CANDIDATES, issue_candidates


def candidates(body: str = "", *, title: str = "", tasks: tuple[str, ...] = ()) -> tuple[int, ...]:
    return issue_candidates(title=title, body=body, tasks=tasks, repository="Octo/Repo", number=99)


@pytest.mark.parametrize(
    "body",
    ["Fixes #12", "fixes: #12", "FIXED #12.", "This closes #12, I hope", "resolves octo/repo#12", "Close GH-12",
     "(fix #12)", "Resolves issue #12", "fixes\n#12", "* Closed #12\n"],
)  # fmt: skip
def test_closing_keywords(body: str) -> None:
    assert candidates(f"See #7 first.\n\n{body}") == (12, 7)


def test_the_order() -> None:
    assert candidates("#3 and #4, fixes #5", title="#2 begins", tasks=("#6", "7")) == (5, 6, 7, 2, 3)


@pytest.mark.parametrize(
    ("task", "number"),
    [("#6", 6), ("6", 6), ("GH-6", 6), ("octo/REPO#6", 6), ("other/repo#6", None), ("PROJ-6", None), ("", None),
     ("#6 and more", None), ("0", None), ("99", None)],
)  # fmt: skip
def test_tasks(task: str, number: int | None) -> None:
    assert candidates(tasks=(task,)) == (() if number is None else (number,))


@pytest.mark.parametrize(
    "body",
    [
        "```\nfixes #12\n```",
        "~~~~\n#12\n~~~\n#13\n~~~~",
        "```python\n# 12\n#12",
        "`fixes #12`",
        "``fixes `#12` ``",
        "\n    #12",
        "https://github.com/octo/repo/issues/12",
        "https://example.org/page#12",
        "www.example.org/#12",
        "<!-- fixes #12 -->",
        "<!-- fixes #12",
        "other/repo#12",
        "closes other/repo#12",
        "a#12",
        "&#12;",
        "##12",
        "#0",
        "#12abc",
        "#99",
        "fixes #99",
        "#99999999999",
        "#4294967296",
        "color #",
        "prefix-fixes-12",
        "PR-12",
    ],
)
def test_what_is_no_reference(body: str) -> None:
    assert candidates(body) == ()


def test_text_around_code_still_counts() -> None:
    assert candidates("`a` fixes #1 `b`\n```\n#2\n```\n#3\n\n    #4\n\n#5") == (1, 3, 5)


def test_the_number_of_candidates_is_bounded() -> None:
    assert len(candidates(" ".join(f"#{n}" for n in range(1, 50)))) == MOST_CANDIDATES


@given(st.text(st.sampled_from("fixes #12`~\n<!->/:GH octrep"), max_size=200))
def test_any_text(text: str) -> None:
    found = candidates(text, title=text, tasks=(text,))
    assert len(found) == len(set(found)) <= MOST_CANDIDATES
    assert all(0 < number < 2**31 and number != 99 for number in found)


@pytest.mark.parametrize(
    "piece", ["`", "fix ", "<!--", "#1 ", "a/", "``a", "http://", "fixes:", "~~~\n", "fixes  "]
)
def test_time_is_linear(piece: str) -> None:
    begin = time.process_time()
    candidates(piece * 60_000, title=piece * 60_000, tasks=(piece * 60_000,))
    assert time.process_time() - begin < 1
