from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from graft.errors import PermanentError
from graft.git import GitError, Repository
from graft.simulator.demo_repository import RepositoryBuilder

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


@pytest.fixture
def two(builder: RepositoryBuilder) -> tuple[Repository, str, str]:
    first = builder.commit("main", {"a": "1\n"})
    second = builder.commit("main", {"a": "2\n"})
    return Repository.open(builder.path), first, second


@pytest.mark.parametrize(
    "text", ["main~1..main", "main~1...main", "main~1..", "HEAD^..HEAD", "refs/heads/main^..main^{}"]
)
def test_spellings_of_a_range(two: tuple[Repository, str, str], text: str) -> None:
    repository, first, second = two
    range_ = repository.resolve(text)
    assert (range_.base, range_.head, range_.merge_base) == (first, second, first)
    assert range_.base_is_commit


def test_an_empty_range(two: tuple[Repository, str, str]) -> None:
    repository, _, second = two
    range_ = repository.resolve("main..main")
    assert (range_.base, range_.head, range_.merge_base) == (second, second, second)
    snapshot = repository.snapshot(range_)
    assert (snapshot.is_empty, snapshot.commits) == (True, ())


def test_the_empty_tree_as_base_is_the_whole_history(two: tuple[Repository, str, str]) -> None:
    repository, first, second = two
    range_ = repository.resolve(f"{EMPTY_TREE}..main")
    assert (range_.base, range_.base_is_commit) == (EMPTY_TREE, False)
    snapshot = repository.snapshot(range_)
    assert [f.status for f in snapshot.files] == ["added"]
    assert [c.sha for c in snapshot.commits] == [first, second]
    assert repository.file(range_.base, "a").problem == "missing"


def test_an_annotated_tag_names_its_commit(
    two: tuple[Repository, str, str], builder: RepositoryBuilder
) -> None:
    repository, first, _ = two
    subprocess.run(
        [
            "git",
            "-C",
            str(builder.path),
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@x",
            "tag",
            "-m",
            "t",
            "v1",
            first,
        ],
        check=True,
    )
    assert repository.resolve("v1..main").base == first
    assert repository.commit("v1") == first


@pytest.mark.parametrize(
    ("text", "reason", "says"),
    [
        ("main", "bad_range", "BASE..HEAD"),
        ("", "bad_range", "BASE..HEAD"),
        ("a..b..c", "bad_range", "BASE..HEAD"),
        ("--all..main", "bad_range", "BASE..HEAD"),
        ("main..--output=x", "bad_range", "BASE..HEAD"),
        ("-x", "bad_range", "BASE..HEAD"),
        ("^main..main", "bad_range", "BASE..HEAD"),
        ("main:a..main", "bad_range", "BASE..HEAD"),
        ("main ..main", "bad_range", "BASE..HEAD"),
        ("ma\nin..main", "bad_range", "BASE..HEAD"),
        ("ma\0in..main", "bad_range", "BASE..HEAD"),
        ("\ud800..main", "bad_range", "BASE..HEAD"),
        ("x" * 5000 + "..main", "bad_range", "BASE..HEAD"),
        ("nope..main", "unknown_revision", "'nope'"),
        ("main..nope", "unknown_revision", "'nope'"),
        ("main~5..main", "unknown_revision", "'main~5'"),
        ("main~1^..main", "unknown_revision", "git hash-object -t tree"),
        ("0123456789abcdef0123456789abcdef01234567..main", "unknown_revision", "fetch"),
        ("main..main^{tree}", "not_a_commit", "not a commit"),
    ],
)
def test_bad_ranges_say_what_to_do_in_one_line(
    two: tuple[Repository, str, str], text: str, reason: str, says: str
) -> None:
    with pytest.raises(GitError) as caught:
        two[0].resolve(text)
    assert caught.value.reason == reason
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300
    assert isinstance(caught.value, PermanentError)


def test_unrelated_histories(two: tuple[Repository, str, str], builder: RepositoryBuilder) -> None:
    builder.commit("other", {"b": "1\n"})
    with pytest.raises(GitError, match="no common ancestor") as caught:
        two[0].resolve("other..main")
    assert caught.value.reason == "no_merge_base"


def test_a_shallow_clone_is_told_to_fetch(builder: RepositoryBuilder, tmp_path: Path) -> None:
    fork = builder.commit("main", {"a": "1\n"})
    builder.commit("topic", {"b": "1\n"}, parent=fork)
    builder.commit("main", {"a": "2\n"})
    clone = tmp_path / "clone"
    subprocess.run(
        ["git", "clone", "-q", "--depth=1", "--no-single-branch", f"file://{builder.path}", str(clone)],
        check=True,
    )
    with pytest.raises(GitError, match="git fetch --unshallow"):
        Repository.open(clone).resolve("origin/main..origin/topic")


def test_places_that_are_no_repository(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path, tmp_path / "nowhere", tmp_path / "file"):
        with pytest.raises(GitError, match="--repo PATH") as caught:
            Repository.open(path)
        assert caught.value.reason == "not_a_repository"


def test_a_subdirectory_a_linked_worktree_and_a_bare_repository_serve(
    builder: RepositoryBuilder, tmp_path: Path
) -> None:
    head = builder.commit("main", {"dir/a": "1\n"})
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(builder.path), str(clone)], check=True)
    subprocess.run(
        ["git", "-C", str(clone), "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "w"], check=True
    )
    for path in (clone / "dir", tmp_path / "linked", clone / ".git", builder.path):
        assert Repository.open(path).commit("HEAD") == head


def test_variables_that_a_hook_sets_have_no_say(
    two: tuple[Repository, str, str],
    builder: RepositoryBuilder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = RepositoryBuilder(path=tmp_path / "other.git")
    other.commit("main", {"x": "1"})
    monkeypatch.setenv("GIT_DIR", str(other.path))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other.path / "objects"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    repository = Repository.open(builder.path)
    range_ = repository.resolve("main~1..main")
    assert (range_.base, range_.head) == two[1:]
    assert repository.snapshot(range_).files[0].patch is not None


def test_an_empty_environment_will_do(two: tuple[Repository, str, str], builder: RepositoryBuilder) -> None:
    kept = dict(os.environ)
    os.environ.clear()
    try:
        assert Repository.open(builder.path).commit("main") == two[2]
    finally:
        os.environ.update(kept)


def test_replaced_objects_have_no_say(two: tuple[Repository, str, str], builder: RepositoryBuilder) -> None:
    repository, first, second = two
    lie = builder.commit("lie", {"b": "1\n"}, parent=first)
    subprocess.run(["git", "-C", str(builder.path), "replace", second, lie], check=True)
    snapshot = repository.snapshot(repository.resolve(f"{first}..{second}"))
    assert [f.path for f in snapshot.files] == ["a"]


def test_no_git_at_all(builder: RepositoryBuilder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    builder.commit("main", {"a": "1"})
    repository = Repository.open(builder.path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitError, match="install git"):
        Repository.open(builder.path)
    assert repository.commit("main")  # opened before: its environment was fixed then
