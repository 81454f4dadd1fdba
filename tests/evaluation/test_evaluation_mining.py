"""Histories of real repositories: every change read, in any order of interruptions, and what they add up to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from graft.errors import PermanentError
from graft.evaluation import Mined, Report, mine, mined_text, read_mined, report
from graft.evaluation.mining import assess
from graft.git import GitError, Repository
from graft.intent import Reason
from graft.risk import Risk

CHANGES = 40


@pytest.fixture(scope="module")
def repository(
    tmp_path_factory: pytest.TempPathFactory, make_history: Callable[[Path, int], None]
) -> Repository:
    path = tmp_path_factory.mktemp("history") / "r.git"
    make_history(path, CHANGES)
    return Repository.open(path)


@pytest.fixture(scope="module")
def mined(repository: Repository, tmp_path_factory: pytest.TempPathFactory) -> Sequence[Mined]:
    out = tmp_path_factory.mktemp("mined") / "m.jsonl"
    mine(repository, out, most=10_000)
    return read_mined(out)


def test_every_change_of_the_first_parent_line_is_read_once(
    repository: Repository, mined: Sequence[Mined]
) -> None:
    line = repository.first_parents("main", most=10_000)
    assert [change.head for change in mined] == [sha for sha, parents in line if parents]
    assert len(line[-1][1]) == 0, "the first commit has nothing to compare with"
    assert [change.error for change in mined if change.error] == []
    assert any(change.is_merge for change in mined)


def test_the_findings_are_those_of_the_floor(mined: Sequence[Mined]) -> None:
    codes = {reason.code for change in mined for reason in change.reasons}
    expected = {
        "dependency",
        "security",
        "migration",
        "test_deleted",
        "very_large",
        "very_many_files",
        "binary_added",
    }
    assert expected <= codes
    assert {"injection", "not_shown"} <= codes
    for change in mined:
        assert change.floor is max(
            (r.risk for r in change.reasons), key=lambda r: r.rank, default=Risk.TRIVIAL
        )
        assert len({reason.code for reason in change.reasons}) == len(change.reasons)
    assert {why for change in mined for why in change.omissions} >= {"binary", "generated", "cut"}


def test_nothing_of_messages_or_content_is_written(repository: Repository, tmp_path: Path) -> None:
    mine(repository, tmp_path / "m.jsonl", most=10_000)
    text = (tmp_path / "m.jsonl").read_text()
    assert "AI reviewer" not in text
    assert "previous instructions" not in text
    assert "Merge pull" not in text


def test_a_run_that_was_stopped_goes_on_where_it_ended(
    repository: Repository, mined: Sequence[Mined], tmp_path: Path
) -> None:
    out = tmp_path / "m.jsonl"
    seen: list[Mined] = []

    class Stop(Exception):
        pass

    def stop(change: Mined) -> None:
        seen.append(change)
        if len(seen) == 11:
            raise Stop

    with pytest.raises(Stop):
        mine(repository, out, most=10_000, done=stop)
    assert len(read_mined(out)) == 11
    with out.open("ab") as file:
        file.write(b'{"base":"half a li')
    assert len(read_mined(out)) == 11
    told: list[tuple[int, int]] = []
    again: list[Mined] = []
    mine(repository, out, most=10_000, started=lambda done, of: told.append((done, of)), done=again.append)
    assert told == [(11, len(mined))]
    assert len(again) == len(mined) - 11
    assert sorted(c.head for c in read_mined(out)) == sorted(c.head for c in mined)
    assert len({c.head for c in read_mined(out)}) == len(mined)


def test_only_the_newest_are_read_when_that_is_asked(
    repository: Repository, mined: Sequence[Mined], tmp_path: Path
) -> None:
    mine(repository, tmp_path / "m.jsonl", most=5)
    assert [c.head for c in read_mined(tmp_path / "m.jsonl")] == [c.head for c in mined[:5]]


def test_a_change_that_cannot_be_read_is_counted_and_stops_nothing(repository: Repository) -> None:
    found = assess(repository, "1" * 40, "2" * 40, False)
    assert found.error == "git_failed"
    assert report([found]).errors == {"git_failed": 1}
    assert "could not be read" in mined_text(report([found]))


@pytest.mark.parametrize("content", [b"", b"something else\n", b'{"format":2,"prompts":"1"}\n'])
def test_another_file_is_not_overwritten(repository: Repository, tmp_path: Path, content: bytes) -> None:
    out = tmp_path / "notes.txt"
    out.write_bytes(content)
    with pytest.raises(PermanentError, match="name another"):
        mine(repository, out, most=3)
    assert out.read_bytes() == content


def test_an_unknown_branch_is_an_error(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(GitError, match="no commit is called"):
        mine(repository, tmp_path / "m.jsonl", revision="nowhere", most=3)


# ------------------------------------------------------------------ the report


def change(
    floor: Risk, *reasons: tuple[str, Risk], files: int = 1, lines: int = 1, seconds: float = 0.1
) -> Mined:
    return Mined(
        base="a",
        head="b",
        floor=floor,
        reasons=tuple(Reason(code=code, risk=risk) for code, risk in reasons),
        files=files,
        additions=lines,
        seconds=seconds,
    )


def test_shares_and_what_decides_alone() -> None:
    found = report(
        [
            change(Risk.TRIVIAL),
            change(Risk.SENSITIVE, ("dependency", Risk.SENSITIVE), ("large", Risk.LOGIC)),
            change(Risk.SENSITIVE, ("dependency", Risk.SENSITIVE), ("migration", Risk.SENSITIVE)),
            change(Risk.LOGIC, ("large", Risk.LOGIC)),
        ]
    )
    assert found.classes == {Risk.TRIVIAL: 1, Risk.LOGIC: 1, Risk.SENSITIVE: 2}
    assert {row.code: (row.changes, row.decisive) for row in found.reasons} == {
        "dependency": (2, 1),
        "large": (2, 1),
        "migration": (1, 0),
    }


def test_spreads() -> None:
    found = report([change(Risk.TRIVIAL, files=n, lines=n * 10) for n in range(1, 101)])
    assert (found.files.median, found.files.most_of_ten, found.files.largest) == (50, 90, 100)
    assert found.lines.largest == 1000


def test_nothing_mined_is_a_report_too() -> None:
    found: Report = report([])
    assert found.changes == 0
    assert "0 changes" in mined_text(found)
