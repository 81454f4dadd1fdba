from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft.provenance import tasks


@pytest.mark.parametrize(
    ("value", "text", "issue", "repository", "host"),
    [
        ("#12", "#12", 12, None, None),
        ("Owner/Repo#12", "owner/repo#12", 12, "owner/repo", None),
        ("PAY-311", "PAY-311", None, None, None),
        ("12", "12", None, None, None),
        ("#0", "#0", None, None, None),
        ("#99999999999", "#99999999999", None, None, None),
        ("#4294967296", "#4294967296", None, None, None),
        ("https://github.com/o/R/issues/7", "https://github.com/o/R/issues/7", 7, "o/r", "github.com"),
        ("https://ghes.example:8443/o/r/issues/7?x#y", "https://ghes.example:8443/o/r/issues/7?x#y", 7, "o/r",
         "ghes.example:8443"),
        ("https://user:pw@github.com/o/r/issues/7", "https://user:pw@github.com/o/r/issues/7", None, None, None),
        ("javascript:alert(1)", "javascript:alert(1)", None, None, None),
        ("a\n\x00b", "a �b", None, None, None),
    ],
)  # fmt: skip
def test_values(value: str, text: str, issue: int | None, repository: str | None, host: str | None) -> None:
    task = tasks.parse(value)
    assert task == tasks.Task(text=text, issue=issue, repository=repository, host=host)


def test_an_empty_value_is_no_task() -> None:
    assert tasks.parse(" \n") is None


def test_only_an_issue_of_this_repository_has_a_number_here() -> None:
    def issue(value: str, repository: str, host: str = "github.com") -> int | None:
        task = tasks.parse(value)
        assert task is not None
        return task.issue_in(repository, host)

    assert issue("#12", "o/r") == 12
    assert issue("O/R#12", "o/R") == 12
    assert issue("o/other#12", "o/r") is None
    assert issue("https://github.com/o/r/issues/12", "o/r") == 12
    assert issue("https://elsewhere.example/o/r/issues/12", "o/r") is None
    assert issue("https://ghes.example/o/r/issues/12", "o/r", "GHES.example") == 12
    assert issue("PAY-1", "o/r") is None


@given(st.text())
def test_any_text_is_taken(value: str) -> None:
    task = tasks.parse(value)
    assert task is None or 0 < len(task.text) <= 200
