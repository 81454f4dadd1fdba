"""One head against one merge base: rows and diff put together, and every way the list may be incomplete."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft.changes import ChangedFile, Person
from graft.diffs import parse_diff
from graft.git import Repository as LocalRepository
from graft.github import GitHub, GitHubUnavailable, NotFound, Pace, StaleRead, pulls, snapshot
from graft.github.pulls import Counts
from graft.github.snapshot import FileRow, combine
from graft.simulator import Simulator
from graft.simulator.demo_repository import RepositoryBuilder, Special

BASE, HEAD, MERGE = "b" * 40, "a" * 40, "c" * 40
COMPARE = f"/repos/octo/shop/compare/{BASE}...{HEAD}"
FILES = "/repos/octo/shop/pulls/7/files"


def row(path: str = "a.py", **fields: Any) -> FileRow:
    return FileRow(**{"filename": path, "status": "modified", "additions": 1, "deletions": 0, **fields})


def parsed(path: str = "a.py", **fields: Any) -> ChangedFile:
    return ChangedFile(**{"path": path, "status": "modified", "additions": 1, "deletions": 0, **fields})


def reasons(
    rows: list[FileRow], diff: list[ChangedFile] | None, expected: Counts | None = None
) -> tuple[str, ...]:
    return combine(rows, diff, expected=expected)[1]


def test_a_row_gets_what_only_the_diff_knows() -> None:
    (file,), _ = combine(
        [row(previous_filename="old.py", status="renamed", sha="f" * 40)],
        [parsed(old_mode="100644", new_mode="100755", patch="@@ -1 +1,2 @@\n a\n+b")],
        expected=None,
    )
    assert (file.old_mode, file.new_mode, file.blob_sha) == ("100644", "100755", "f" * 40)
    assert file.patch == "@@ -1 +1,2 @@\n a\n+b"
    assert (file.status, file.paths) == ("renamed", ("a.py", "old.py"))


def test_the_lists_own_patch_is_kept() -> None:
    (file,), _ = combine([row(patch="@@ one")], [parsed(patch="@@ two")], expected=None)
    assert file.patch == "@@ one"


def test_a_changed_file_type_joins_its_two_halves() -> None:
    diff = [
        parsed(status="removed", old_mode="100644", deletions=1, patch="@@ -1 +0,0 @@\n-x"),
        parsed(status="added", new_mode="120000", patch="@@ -0,0 +1 @@\n+y"),
    ]
    (file,), _ = combine([row(status="changed")], diff, expected=None)
    assert (file.old_mode, file.new_mode, file.patch) == ("100644", "120000", None)


@pytest.mark.parametrize(
    "status", ["added", "removed", "modified", "renamed", "copied", "changed", "unchanged", "teleported"]
)
def test_every_status_is_kept_as_it_is(status: str) -> None:
    (file,), odd = combine([row(status=status)], [parsed()], expected=None)
    assert file.status == status
    assert odd == ()


@pytest.mark.parametrize(
    ("given_row", "diff", "zero"),
    [
        (row(additions=0), [parsed(additions=0, binary=True)], False),
        (row(additions=0), [parsed(additions=0, old_mode="100644", new_mode="100755")], False),
        (row(additions=0, status="renamed"), None, False),
        (row(additions=0, status="unchanged"), [], False),
        (row(additions=0, status="added"), [parsed(additions=0)], False),
        (row(additions=0), [parsed(additions=3)], True),
        (row(additions=0), [], True),
        (row(additions=0), None, True),
        (row(additions=0, status="added"), None, True),
        (row(additions=1), None, False),
        (row(additions=0, deletions=2), [], False),
    ],
)
def test_a_row_of_zeros_needs_an_explanation(
    given_row: FileRow, diff: list[ChangedFile] | None, zero: bool
) -> None:
    assert ("zero_rows" in reasons([given_row], diff)) is zero


@pytest.mark.parametrize(
    ("additions", "deletions", "files", "mismatch"),
    [(1, 0, 1, False), (2, 0, 1, True), (1, 1, 1, True), (1, 0, 2, True), (0, 0, 0, True)],
)
def test_the_list_is_checked_against_the_pull_requests_own_counts(
    additions: int, deletions: int, files: int, mismatch: bool
) -> None:
    expected = Counts(additions=additions, deletions=deletions, changed_files=files)
    assert ("count_mismatch" in reasons([row()], [parsed()], expected)) is mismatch


def test_a_diff_with_more_files_than_the_list_is_a_mismatch() -> None:
    assert reasons([row()], [parsed(), parsed("b.py")]) == ("count_mismatch",)


def test_an_empty_change_is_empty_and_whole() -> None:
    assert combine([], [], expected=Counts(additions=0, deletions=0, changed_files=0)) == ((), ())


@given(st.text(max_size=400))
def test_any_diff_is_taken(text: str) -> None:
    combine([row(text[:20] or "x")], parse_diff(text), expected=None)


@pytest.mark.parametrize(
    ("url", "ref"),
    [
        (f"https://api.github.com/repos/o/r/contents/a%20b.py?ref={HEAD}", HEAD),
        (f"https://ghe/api/v3/repos/o/r/contents/a?x=1&ref={HEAD}", HEAD),
        ("https://api.github.com/repos/o/r/contents/a?ref=", None),
        ("https://api.github.com/repos/o/r/contents/a", None),
        ("http://[::1?ref=x", None),
        ("?" + "&".join(["a=1"] * 50), None),
        (None, None),
        ("", None),
    ],
)
def test_the_commit_of_a_row_is_read_from_its_link(url: str | None, ref: str | None) -> None:
    assert snapshot._ref(url) == ref


# --- the requests ----------------------------------------------------------------------------------------


def comparison(files: list[dict[str, Any]], *, total: int = 1, head: str = HEAD) -> dict[str, Any]:
    commit = {
        "sha": head,
        "commit": {"message": "m", "author": {"name": "A", "email": "a@x"}, "committer": None},
        "author": {"login": "bot[bot]", "id": 5, "type": "Bot"},
        "committer": {},
        "parents": [{"sha": MERGE}],
    }
    return {"merge_base_commit": {"sha": MERGE}, "total_commits": total, "commits": [commit], "files": files}


def file_row(path: str, ref: str = HEAD, **fields: Any) -> dict[str, Any]:
    return {
        "filename": path,
        "status": "modified",
        "additions": 1,
        "deletions": 0,
        "sha": "f" * 40,
        "contents_url": f"https://api.github.com/repos/octo/shop/contents/{path}?ref={ref}",
        **fields,
    }


DIFF = "diff --git a/{0} b/{0}\nindex {1}..{2} 100644\n--- a/{0}\n+++ b/{0}\n@@ -1 +1,2 @@\n x\n+y\n"


def serve(stub: Any, document: dict[str, Any], diff: dict[str, Any] | str) -> None:
    answer = (
        diff if isinstance(diff, dict) else {"body": diff.encode(), "headers": {"Content-Type": "text/plain"}}
    )

    def compare(seen: Any) -> Any:
        return answer if "diff" in seen.headers["accept"] else {"json": document}

    stub.on(f"GET {COMPARE}", compare)


async def read(github: GitHub, **options: Any) -> Any:
    return await snapshot.read_snapshot(
        github.installation(9), "octo/shop", base_sha=BASE, head_sha=HEAD, number=7, **options
    )


async def test_two_requests_make_a_snapshot(stub: Any, github: GitHub) -> None:
    serve(stub, comparison([file_row("a.py")]), DIFF.format("a.py", "1" * 40, "f" * 40))
    found = await read(github, expected=Counts(additions=1, deletions=0, changed_files=1))
    assert (found.base_sha, found.head_sha, found.incomplete) == (MERGE, HEAD, ())
    assert found.files[0].new_mode == "100644"
    commit = found.commits[0]
    assert commit.author == Person(name="A", email="a@x", login="bot[bot]", id=5, is_bot=True)
    assert commit.committer == Person()
    assert commit.parents == (MERGE,)
    assert len(stub.calls()) == 2


@pytest.mark.parametrize(
    "refusal",
    [
        {"status": 406, "json": {"errors": [{"code": "too_large"}]}},
        {"status": 422, "json": {"message": "too many files"}},
        {"status": 500, "json": {"errors": [{"code": "not_available"}]}},
        {"body": b"x" * (snapshot.DIFF_BYTES + 1)},
    ],
    ids=["406", "422", "500", "too large"],
)
async def test_a_refused_diff_is_a_reason_and_no_error(stub: Any, github: GitHub, refusal: Any) -> None:
    serve(stub, comparison([file_row("a.py")]), refusal)
    found = await read(github)
    assert found.incomplete == ("diff_refused",)
    assert found.files[0].path == "a.py"


async def test_a_failing_diff_is_an_error(stub: Any, github: GitHub) -> None:
    serve(stub, comparison([file_row("a.py")]), {"status": 502, "json": {}})
    with pytest.raises(GitHubUnavailable):
        await read(github)


async def test_more_commits_than_shown_are_said(stub: Any, github: GitHub) -> None:
    serve(stub, comparison([file_row("a.py")], total=300), DIFF.format("a.py", "1" * 40, "f" * 40))
    assert (await read(github)).commits_truncated


async def test_a_comparison_without_the_head_is_dropped(stub: Any, github: GitHub) -> None:
    serve(stub, comparison([file_row("a.py")], head="d" * 40), "")
    with pytest.raises(StaleRead) as caught:
        await read(github)
    assert caught.value.reason == "stale_snapshot"


async def test_a_missing_field_is_named_without_a_value(stub: Any, github: GitHub) -> None:
    stub.on(f"GET {COMPARE}", {"json": {"total_commits": 1, "commits": [{"secret": "x"}]}})
    with pytest.raises(GitHubUnavailable, match="missing required field") as caught:
        await read(github)
    assert "secret" not in str(caught.value)


def many(count: int, **fields: Any) -> list[dict[str, Any]]:
    return [file_row(f"f{i}.py", **fields) for i in range(count)]


def serve_list(stub: Any, rows: list[dict[str, Any]]) -> None:
    serve(stub, comparison(many(300)), {"status": 406, "json": {}})
    for start in range(0, len(rows), 100):
        more = start + 100 < len(rows)
        link = {"Link": f'<{stub.url}{FILES}?page={start // 100 + 2}>; rel="next"'} if more else {}
        stub.on(f"GET {FILES}", {"json": rows[start : start + 100], "headers": link})


async def test_beyond_three_hundred_files_every_row_proves_its_head(stub: Any, github: GitHub) -> None:
    serve_list(stub, many(350))
    found = await read(github, expected=Counts(additions=350, deletions=0, changed_files=350))
    assert len(found.files) == 350
    assert found.incomplete == ("diff_refused",)
    assert len(stub.calls()) == 6


async def test_a_row_of_another_head_drops_the_snapshot(stub: Any, github: GitHub) -> None:
    rows = many(350)
    rows[320] = file_row("late.py", ref="d" * 40)
    serve_list(stub, rows)
    with pytest.raises(StaleRead):
        await read(github)


async def test_a_removed_files_row_may_link_to_the_base(stub: Any, github: GitHub) -> None:
    rows = many(350)
    rows[320] = file_row("gone.py", ref=BASE, status="removed")
    serve_list(stub, rows)
    assert (await read(github)).incomplete == ("diff_refused",)


async def test_a_row_without_a_link_is_unproven(stub: Any, github: GitHub) -> None:
    rows = many(350)
    rows[320] = file_row("x.py", contents_url=None)
    serve_list(stub, rows)
    assert (await read(github)).incomplete == ("unproven_rows", "diff_refused")


async def test_zero_rows_late_in_a_list_are_seen(stub: Any, github: GitHub) -> None:
    serve_list(stub, many(320) + [file_row(f"z{i}.py", additions=0) for i in range(10)])
    assert (await read(github)).incomplete == ("diff_refused", "zero_rows")


async def test_three_thousand_files_are_too_many(stub: Any, github: GitHub) -> None:
    serve_list(stub, many(3_000))
    found = await read(github, expected=Counts(additions=4_000, deletions=0, changed_files=4_000))
    assert found.incomplete == ("too_many_files", "diff_refused", "count_mismatch")


async def test_without_a_number_three_hundred_files_are_too_many(stub: Any, github: GitHub) -> None:
    serve(stub, comparison(many(300)), {"status": 406, "json": {}})
    found = await snapshot.read_snapshot(github.installation(9), "octo/shop", base_sha=BASE, head_sha=HEAD)
    assert found.incomplete == ("too_many_files", "diff_refused")


# --- against the simulator -------------------------------------------------------------------------------


@pytest.fixture
def builder(tmp_path: Path) -> RepositoryBuilder:
    return RepositoryBuilder(path=tmp_path / "r.git")


async def test_it_says_what_git_says(builder: RepositoryBuilder) -> None:
    lines = "".join(f"line {i}\n" for i in range(30))
    builder.commit(
        "main",
        {
            "keep.txt": lines,
            "old name.txt": lines + "tail\n",
            "gone.txt": "x\n",
            "tool.sh": "#!/bin/sh\n",
            "pic.bin": b"\0\1\2" * 50,
            "kind.txt": "a\n",
        },
    )
    base = builder.commit("main", {"kept.md": "1\n"})
    builder.commit(
        "feature",
        {
            "keep.txt": lines.replace("line 7\n", "line seven\n"),
            "old name.txt": None,
            "new näme.txt": lines + "tail!\n",
            "gone.txt": None,
            "tool.sh": Special(mode="100755", content="#!/bin/sh\n"),
            "pic.bin": b"\0\1\3" * 50,
            "added.py": "print()\n",
            "empty.txt": "",
            "kind.txt": Special(mode="120000", content="keep.txt"),
            "vendor/lib": Special(mode="160000", content="1" * 40),
        },
        parent=base,
        message="Do it\n\nGraft-Agent: x\n",
    )
    head = builder.commit("feature", {"added.py": "print(1)\n"}, author="Zoë <zoe@example.com>")
    builder.commit("main", {"later.md": "2\n"})
    local = LocalRepository.open(builder.path)
    theirs = local.snapshot(local.resolve("main..feature"))

    async with Simulator() as sim:
        repository = sim.add_repository("octo/shop", builder.path)
        pull = await sim.open_pull(repository, head="feature", base="main")
        async with GitHub(
            app_id=sim.app.id, private_key=sim.private_key, api_url=sim.base_url, pace=Pace(interval=0)
        ) as github:
            assert repository.installation is not None
            client = github.installation(repository.installation.id)
            shown = await pulls.read_pull(client, "octo/shop", pull.issue.number)
            ours = await snapshot.read_snapshot(
                client,
                "octo/shop",
                base_sha=repository.branches["main"],
                head_sha=shown.head_sha,
                number=shown.number,
                expected=shown.counts,
            )
            with pytest.raises(NotFound):
                await snapshot.read_snapshot(client, "octo/shop", base_sha=base, head_sha="0" * 40)

    assert (ours.head_sha, ours.base_sha) == (head, base)
    assert (ours.incomplete, ours.commits_truncated) == ((), False)
    assert {c.sha for c in ours.commits} == {c.sha for c in theirs.commits}
    assert sorted(c.message for c in ours.commits) == sorted(c.message.rstrip("\n") for c in theirs.commits)
    mine = {f.path: f for f in ours.files}
    gits = {f.path: f for f in theirs.files}
    assert mine.keys() == gits.keys()
    for path, file in mine.items():
        other = gits[path]
        assert (file.additions, file.deletions, file.binary) == (
            other.additions,
            other.deletions,
            other.binary,
        )
        assert (file.previous_path, file.new_mode, file.old_mode) == (
            other.previous_path,
            other.new_mode,
            other.old_mode,
        ), path
        if path != "kind.txt":
            assert file.patch == other.patch, path
