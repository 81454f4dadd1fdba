"""Remembered reads, and the repository that the demo shows."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from graft.simulator.demo_repository import RepositoryBuilder, build_demo_repository
from graft.simulator.memo import Memo
from graft.simulator.repository_git import GitError, GitRepository


async def test_readers_at_the_same_time_share_one_read() -> None:
    memo: Memo[int] = Memo(4)
    reads = []
    gate = asyncio.Event()

    async def read() -> int:
        reads.append(1)
        await gate.wait()
        return 7

    first = asyncio.ensure_future(memo.get("a", read))
    second = asyncio.ensure_future(memo.get("a", read))
    await asyncio.sleep(0)
    first.cancel()
    gate.set()
    assert await second == await memo.get("a", read) == 7
    assert len(reads) == 1


async def test_a_failure_is_forgotten_and_the_oldest_go_first() -> None:
    memo: Memo[str] = Memo(2)
    reads: list[str] = []

    async def get(key: str, *, fails: bool = False) -> str:
        async def read() -> str:
            reads.append(key)
            if fails:
                raise GitError("no")
            return key

        return await memo.get(key, read)

    with pytest.raises(GitError):
        await get("a", fails=True)
    await asyncio.sleep(0)
    for key in ("a", "a", "b", "c", "b", "a"):
        assert await get(key) == key
    assert reads == ["a", "a", "b", "c", "a"]


async def test_git_goes_on_after_its_process_was_ended(tmp_path: Path) -> None:
    builder = RepositoryBuilder(path=tmp_path / "r.git")
    shas = [builder.commit("main", {"a": f"{n}\n"}) for n in range(2)]
    git = GitRepository(builder.path)
    assert (await git.commit(shas[0])).parents == ()
    await git.close()
    assert (await git.commit(shas[1])).parents == (shas[0],)
    assert await git.read("0" * 40) is None
    assert await git.read("HEAD") is None
    assert await git.resolve("--help") is None
    assert await git.resolve("main~1") == shas[0]
    with pytest.raises(GitError):
        await git.commit("0" * 40)
    with pytest.raises(GitError):
        await git.run("cat-file", "commit", "nowhere")
    await git.close()


def test_the_demo_repository_is_the_same_every_time(tmp_path: Path) -> None:
    one = build_demo_repository(tmp_path / "one.git")
    other = build_demo_repository(tmp_path / "other.git")
    assert (one.base, one.head) == (other.base, other.head)
    trailers = subprocess.run(
        [
            "git",
            "-C",
            str(one.path),
            "log",
            "--format=%(trailers:key=Graft-Agent,valueonly)",
            "main..feature",
        ],
        capture_output=True,
        check=True,
        text=True,
    )
    assert trailers.stdout.split() == ["claude-code", "claude-code"]
    checked = subprocess.run(
        ["git", "-C", str(one.path), "fsck", "--strict"], capture_output=True, check=False
    )
    assert checked.returncode == 0


def test_a_working_copy_can_be_served_too(tmp_path: Path) -> None:
    builder = build_demo_repository(tmp_path / "bare.git")
    subprocess.run(["git", "clone", "-q", str(builder.path), str(tmp_path / "copy")], check=True)

    async def tip() -> str | None:
        git = GitRepository(tmp_path / "copy")
        found = await git.resolve("main")
        await git.close()
        return found

    assert asyncio.run(tip()) == builder.base
