"""What is read from git: file rows, diffs, comparisons, contents and trees, checked against git itself."""

from __future__ import annotations

import base64
import subprocess
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graft.simulator import Repository, Simulator
from graft.simulator.comparison import Comparisons
from graft.simulator.demo_repository import DemoRepository, RepositoryBuilder, Special
from graft.simulator.repository_git import GitRepository

from .conftest import Answer, Api

Get = Callable[..., Awaitable[Answer]]


@pytest.fixture
def builder(tmp_path: Path) -> RepositoryBuilder:
    return RepositoryBuilder(path=tmp_path / "work.git")


@pytest.fixture
async def get(sim: Simulator, api: Api, builder: RepositoryBuilder) -> Get:
    """Serve what the builder has made, and read below the repository's address."""
    tokens: dict[int, str] = {}

    async def read(path: str, **rest: Any) -> Answer:
        repository = sim.world.repository_named("octo", "work")
        if repository is None:
            repository = sim.add_repository("octo/work", builder.path)
        assert repository.installation is not None
        if repository.id not in tokens:
            tokens[repository.id] = await api.token(repository.installation.id)
        return await api.call("GET", f"/repos/octo/work{path}", token=tokens[repository.id], **rest)

    return read


def git(path: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(path), *arguments], capture_output=True, check=True)
    return done.stdout.decode()


ODD_BASE: dict[str, str | bytes | Special | None] = {
    "moved from.txt": "".join(f"line {n}\n" for n in range(20)),
    "mode.sh": "echo\n",
    "type": "a file\n",
    "picture.bin": b"\0\1\2",
    "gone.txt": "gone\n",
    "lib": Special(mode="160000", content="1" * 40),
    "ünïcode.txt": "a\n",
    'quo"te.txt': "a\n",
    "new\nline.txt": "a\n",
    "no newline": "a",
}
ODD_HEAD: dict[str, str | bytes | Special | None] = {
    "moved from.txt": None,
    "moved/to.txt": "first\n" + "".join(f"line {n}\n" for n in range(20)),
    "mode.sh": Special(mode="100755", content="echo\n"),
    "type": Special(mode="120000", content="mode.sh"),
    "picture.bin": b"\0\1\2\3",
    "gone.txt": None,
    "empty.txt": "",
    "lib": Special(mode="160000", content="2" * 40),
    "ünïcode.txt": "b\n",
    'quo"te.txt': "b\n",
    "new\nline.txt": "b\n",
    "no newline": "b",
}


async def test_rows_of_every_kind_of_change(builder: RepositoryBuilder, get: Get) -> None:
    base = builder.commit("main", ODD_BASE)
    head = builder.commit("work", ODD_HEAD, parent=base)
    answer = await get(f"/compare/{base}...{head}")
    rows = {row["filename"]: row for row in answer.json["files"]}

    def facts(name: str) -> tuple[Any, ...]:
        row = rows.pop(name)
        assert row["changes"] == row["additions"] + row["deletions"]
        return row["status"], row["additions"], row["deletions"], row.get("patch")

    moved = rows["moved/to.txt"]
    assert moved["previous_filename"] == "moved from.txt"
    assert facts("moved/to.txt") == ("renamed", 1, 0, "@@ -1,3 +1,4 @@\n+first\n line 0\n line 1\n line 2")
    assert facts("mode.sh") == ("modified", 0, 0, None)
    assert facts("type") == ("changed", 1, 1, None)
    assert facts("picture.bin") == ("modified", 0, 0, None)
    assert facts("gone.txt") == ("removed", 0, 1, "@@ -1 +0,0 @@\n-gone")
    assert facts("empty.txt") == ("added", 0, 0, None)
    submodule = f"@@ -1 +1 @@\n-Subproject commit {'1' * 40}\n+Subproject commit {'2' * 40}"
    assert facts("lib") == ("modified", 1, 1, submodule)
    for name in ("ünïcode.txt", 'quo"te.txt', "new\nline.txt"):
        assert facts(name) == ("modified", 1, 1, "@@ -1 +1 @@\n-a\n+b")
    end = "\\ No newline at end of file"
    assert facts("no newline") == ("modified", 1, 1, f"@@ -1 +1 @@\n-a\n{end}\n+b\n{end}")
    assert rows == {}
    assert moved["contents_url"].endswith(f"/contents/moved%2Fto.txt?ref={head}")


names = st.text(alphabet='ab/ "\\é\n\t', min_size=1, max_size=6).filter(
    lambda name: all(part not in ("", ".", "..") for part in name.split("/"))
)
texts = st.one_of(st.none(), st.text(alphabet="ab\n\\@", max_size=30), st.binary(max_size=8))


@settings(max_examples=12, deadline=None)
@given(before=st.dictionaries(names, texts, max_size=4), after=st.dictionaries(names, texts, max_size=4))
async def test_rows_agree_with_git(before: dict[str, Any], after: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        builder = RepositoryBuilder(path=Path(directory) / "r.git")
        base = builder.commit("main", {"seed": "seed\n", **before})
        head = builder.commit("main", after)
        repository = GitRepository(builder.path)
        rows = await Comparisons(repository).rows(base, head)
        await repository.close()
        listed = git(builder.path, "diff", "--numstat", "-z", "--no-renames", base, head)
        counted = [line.split("\t") for line in listed.split("\0")[:-1]]
        assert sum(row.status == "renamed" for row in rows) + len(rows) == len(counted)
        for row in rows:
            if row.patch is not None:
                lines = row.patch.split("\n")
                assert lines[0].startswith("@@ ")
                assert sum(line.startswith("+") for line in lines) == row.additions
                assert sum(line.startswith("-") for line in lines) == row.deletions
            else:
                assert (row.additions, row.deletions) == (0, 0)


async def test_the_diff_is_the_one_of_git(builder: RepositoryBuilder, get: Get, sim: Simulator) -> None:
    base = builder.commit("main", ODD_BASE)
    head = builder.commit("work", ODD_HEAD, parent=base)
    headers = {"Accept": "application/vnd.github.diff"}
    answer = await get(f"/compare/{base}...{head}", headers=headers)
    assert answer.headers["Content-Type"] == "application/vnd.github.diff; charset=utf-8"
    assert answer.headers["X-GitHub-Media-Type"] == "github.v3; param=diff"
    assert answer.content.decode() == git(builder.path, "diff", "-M", base, head)
    repository = sim.world.repository_named("octo", "work")
    assert repository is not None
    pull = await sim.open_pull(repository, head="work")
    same = await get(f"/pulls/{pull.number}", headers=headers)
    assert same.content == answer.content


async def test_a_diff_of_too_many_lines_or_files_is_refused(
    builder: RepositoryBuilder, get: Get, sim: Simulator
) -> None:
    base = builder.commit("main", {"a": "a\n"})
    long = builder.commit("long", {"long.txt": "x\n" * 20_001}, parent=base)
    wide = builder.commit("wide", {f"f{n}": "" for n in range(301)}, parent=base)
    headers = {"Accept": "application/vnd.github.v3.diff"}
    for head, said in ((long, "lines (20000)"), (wide, "files (300)")):
        answer = await get(f"/compare/{base}...{head}", headers=headers)
        assert answer.status == 406
        assert said in answer.json["message"]
    repository = sim.world.repository_named("octo", "work")
    assert repository is not None
    pull = await sim.open_pull(repository, head="long")
    refused = await get(f"/pulls/{pull.number}", headers=headers)
    assert refused.status == 406
    assert refused.json["errors"] == [{"resource": "PullRequest", "field": "diff", "code": "too_large"}]
    files = await get(f"/pulls/{pull.number}/files")
    assert "patch" not in files.json[0]
    assert files.json[0]["additions"] == 20_001


async def test_rows_past_the_lines_of_one_answer_lose_counts_and_patch(
    builder: RepositoryBuilder, get: Get
) -> None:
    base = builder.commit("main", {"seed": "a\n"})
    head = builder.commit("main", {f"f{n}": "x\n" * 9_000 for n in range(3)})
    rows = (await get(f"/compare/{base}...{head}")).json["files"]
    assert [row["additions"] for row in rows] == [9_000, 9_000, 0]
    assert ["patch" in row for row in rows] == [True, True, False]


async def test_files_of_a_pull_request_end_at_3000(
    builder: RepositoryBuilder, get: Get, sim: Simulator
) -> None:
    base = builder.commit("main", {"seed": "a\n"})
    builder.commit("wide", {f"f{n:04}": "" for n in range(3_005)}, parent=base)
    repository = sim.add_repository("octo/work", builder.path)
    pull = await sim.open_pull(repository, head="wide")
    assert (await get(f"/pulls/{pull.number}")).json["changed_files"] == 3_005
    last = await get(f"/pulls/{pull.number}/files?per_page=100&page=30")
    assert last.json[-1]["filename"] == "f2999"
    assert 'rel="next"' not in last.headers["Link"]
    compared = await get("/compare/main...wide")
    assert len(compared.json["files"]) == 300


async def test_long_histories(builder: RepositoryBuilder, get: Get, sim: Simulator) -> None:
    base = builder.commit("main", {"seed": "a\n"})
    lines = []
    for number in range(260):
        lines.append("commit refs/heads/long\ncommitter A <a@x> 1767225600 +0000\n")
        lines.append(f"data <<E\ncommit {number}\nE\n")
        lines.append(f"from {base}\n" if number == 0 else "")
    subprocess.run(
        ["git", "-C", str(builder.path), "fast-import", "--quiet"], input="".join(lines).encode(), check=True
    )
    compared = (await get(f"/compare/{base}...long")).json
    assert (compared["total_commits"], len(compared["commits"])) == (260, 250)
    # GitHub leaves out the oldest ones there …
    assert compared["commits"][-1]["commit"]["message"] == "commit 259"
    paged = await get(f"/compare/{base}...long?per_page=100&page=3")
    assert [each["commit"]["message"] for each in paged.json["commits"]][-1] == "commit 259"
    assert paged.json["files"] == []
    # … and the newest ones here.
    repository = sim.world.repository_named("octo", "work")
    assert repository is not None
    pull = await sim.open_pull(repository, head="long")
    last = await get(f"/pulls/{pull.number}/commits?per_page=100&page=3")
    assert last.json[-1]["commit"]["message"] == "commit 249"


async def test_how_two_commits_stand_to_each_other(builder: RepositoryBuilder, get: Get) -> None:
    base = builder.commit("main", {"a": "1\n"})
    left = builder.commit("left", {"a": "2\n"}, parent=base)
    right = builder.commit("right", {"b": "2\n"}, parent=base)
    alone = builder.commit("alone", {"a": "1\n"})

    async def stands(one: str, other: str) -> tuple[Any, ...]:
        found = (await get(f"/compare/{one}...{other}")).json
        return found["status"], found["ahead_by"], found["behind_by"], found["merge_base_commit"]["sha"]

    assert await stands(left, right) == ("diverged", 1, 1, base)
    assert await stands(base, right) == ("ahead", 1, 0, base)
    assert await stands(left, base) == ("behind", 0, 1, base)
    assert await stands(left, "left") == ("identical", 0, 0, left)
    files = (await get(f"/compare/{left}...{right}")).json["files"]
    assert [row["filename"] for row in files] == ["b"]
    apart = await get(f"/compare/{base}...{alone}")
    assert (apart.status, apart.json["message"]) == (404, f"No common ancestor between {base} and {alone}.")
    assert (await get(f"/compare/{base}...{'0' * 40}")).status == 404
    assert (await get(f"/compare/{base}")).status == 404


async def test_the_first_commit_and_a_merge(builder: RepositoryBuilder, get: Get) -> None:
    first = builder.commit("main", {"a": "1\n", "b": "1\n"})
    side = builder.commit("side", {"a": "2\n"}, parent=first)
    merge = builder.commit("main", {"a": "2\n"}, merge=side)
    root = (await get(f"/commits/{first}")).json
    assert [(row["filename"], row["status"]) for row in root["files"]] == [("a", "added"), ("b", "added")]
    assert (root["parents"], root["stats"]["total"]) == ([], 2)
    merged = (await get(f"/commits/{merge}")).json
    assert [each["sha"] for each in merged["parents"]] == [first, side]
    assert [row["filename"] for row in merged["files"]] == ["a"]


async def test_names_of_commits(
    builder: RepositoryBuilder, get: Get, sim: Simulator, repo: Repository
) -> None:
    sha = builder.commit("feature/with/slashes", {"a": "1\n"})
    builder.commit("main", {"a": "1\n"})
    git(builder.path, "tag", "v1", sha)
    for name in (sha, sha[:10], "feature/with/slashes", "heads/feature/with/slashes", "v1", "tags/v1"):
        assert (await get(f"/commits/{name}")).json["sha"] == sha, name
    repository = sim.world.repository_named("octo", "work")
    assert repository is not None
    pull = await sim.open_pull(repository, head=sha)
    assert (await get(f"/git/ref/pull/{pull.number}/head")).json["object"]["sha"] == sha
    assert (await get("/branches/feature/with/slashes")).json["commit"]["sha"] == sha
    assert (await get("/git/ref/heads/nowhere")).status == 404
    assert (await get("/branches/nowhere")).json["message"] == "Branch not found"
    assert (await get("/commits/nowhere")).status == 422
    assert (await get("/commits/--all")).status == 422
    assert (await get(f"/git/commits/{'0' * 40}")).status == 404


async def test_contents_of_every_size_and_name(builder: RepositoryBuilder, get: Get) -> None:
    large = b"x" * (1024 * 1024 + 1)
    builder.commit(
        "main", {"large": large, "edge": large[1:], "dir with space/né.txt": "here", "binary": b"\xff\0"}
    )
    big = (await get("/contents/large")).json
    assert (big["encoding"], big["content"], big["size"]) == ("none", "", len(large))
    raw = await get("/contents/large", headers={"Accept": "application/vnd.github.raw+json"})
    assert raw.content == large
    edge = (await get("/contents/edge")).json
    assert base64.b64decode(edge["content"]) == large[1:]
    odd = (await get("/contents/dir%20with%20space/n%C3%A9.txt?ref=main")).json
    assert (odd["path"], base64.b64decode(odd["content"])) == ("dir with space/né.txt", b"here")
    binary = (await get("/contents/binary")).json
    assert base64.b64decode(binary["content"]) == b"\xff\0"
    top = (await get("/contents")).json
    assert [(row["name"], row["type"]) for row in top] == [
        ("binary", "file"),
        ("dir with space", "dir"),
        ("edge", "file"),
        ("large", "file"),
    ]
    for missing in ("nowhere", "large/below", "../large", "dir%20with%20space/x"):
        assert (await get(f"/contents/{missing}")).status == 404, missing
    assert (await get("/contents/large?ref=nowhere")).status == 404


async def test_contents_are_those_of_the_named_commit(
    repo: Repository, api: Api, token: str, demo: DemoRepository
) -> None:
    async def body(ref: str) -> bytes:
        answer = await api.call("GET", f"/repos/octo/shop/contents/shop/auth.py?ref={ref}", token=token)
        return base64.b64decode(answer.json["content"])

    assert b"lower()" in await body(demo.head)
    assert b"lower()" not in await body(demo.base)


async def test_trees(builder: RepositoryBuilder, get: Get) -> None:
    sha = builder.commit("main", ODD_HEAD)
    flat = (await get("/git/trees/main")).json["tree"]
    deep = (await get(f"/git/trees/{sha}?recursive=1")).json["tree"]
    assert "moved/to.txt" not in [row["path"] for row in flat]
    rows = {row["path"]: row for row in deep}
    assert (rows["moved"]["type"], rows["moved/to.txt"]["type"]) == ("tree", "blob")
    assert (rows["lib"]["type"], rows["lib"]["mode"]) == ("commit", "160000")
    assert rows["type"]["mode"] == "120000"
    assert rows["moved/to.txt"]["size"] == 6 + sum(len(f"line {n}\n") for n in range(20))
    assert (await get(f"/git/trees/{rows['empty.txt']['sha']}")).status == 404
    assert (await get(f"/git/blobs/{rows['moved']['sha']}")).status == 404


async def test_commits_are_credited_by_email(builder: RepositoryBuilder, get: Get, sim: Simulator) -> None:
    sim.user("mona", emails=("mona@example.com",))
    authors = [
        "Mona <mona@example.com>",
        "Copilot <198982749+Copilot@users.noreply.github.com>",
        "Dependabot <49699333+dependabot[bot]@users.noreply.github.com>",
        "Nobody <nobody@example.com>",
    ]
    shas = [builder.commit("main", {"a": f"{n}\n"}, author=author) for n, author in enumerate(authors)]
    found = [(await get(f"/commits/{sha}")).json["author"] for sha in shas]
    assert [each and (each["login"], each["type"]) for each in found] == [
        ("mona", "User"),
        ("Copilot", "Bot"),
        ("dependabot[bot]", "Bot"),
        None,
    ]
    assert found[1]["id"] == 198982749


async def test_the_repository_is_never_written_to(
    sim: Simulator, repo: Repository, demo: DemoRepository
) -> None:
    before = {path: path.stat().st_mtime_ns for path in demo.path.rglob("*")}
    pull = await sim.open_pull(repo, head=f"{demo.base}..{demo.head}", head_ref="topic")
    await sim.synchronize(pull, f"{demo.head}~1")
    await sim.close(pull, merged=True)
    assert repo.branches["main"] == pull.head_sha
    assert {path: path.stat().st_mtime_ns for path in demo.path.rglob("*")} == before
