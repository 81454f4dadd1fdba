from __future__ import annotations

import os
import subprocess

import pytest

from graft.git import GitError, Kind, Repository
from graft.simulator.demo_repository import RepositoryBuilder, Special


@pytest.fixture
def commit(builder: RepositoryBuilder) -> str:
    return builder.commit(
        "main",
        {
            "graft.yaml": "version: 1\n",
            ".github/graft.yml": "version: 1\n",
            "link": Special(mode="120000", content="graft.yaml"),
            "module": Special(mode="160000", content="1" * 40),
            "large": "x" * 2000,
            "dir/a": "A",
            "dir/deep/b": "B",
            "run": Special(mode="100755", content="#!\n"),
            "we ird\n*[x]": "odd",
            "empty": "",
            "blob": b"\0\xff\nblob 3\n",
        },
    )


@pytest.fixture
def repository(builder: RepositoryBuilder, commit: str) -> Repository:
    return Repository.open(builder.path)


@pytest.mark.parametrize(
    ("path", "data", "problem"),
    [
        ("graft.yaml", b"version: 1\n", None),
        (".github/graft.yml", b"version: 1\n", None),
        ("run", b"#!\n", None),
        ("we ird\n*[x]", b"odd", None),
        ("empty", b"", None),
        ("blob", b"\0\xff\nblob 3\n", None),
        ("nowhere", None, "missing"),
        ("*", None, "missing"),
        ("", None, "missing"),
        ("/graft.yaml", None, "missing"),
        ("../graft.yaml", None, "missing"),
        ("dir/../graft.yaml", None, "missing"),
        ("a\0b", None, "missing"),
        ("\ud800", None, "missing"),
        ("dir", None, "directory"),
        ("dir/", None, "missing"),
        ("link", None, "symlink"),
        ("link/x", None, "missing"),
        ("module", None, "submodule"),
        ("large", None, "too_large"),
    ],
)
def test_a_file_or_why_there_is_none(
    repository: Repository, commit: str, path: str, data: bytes | None, problem: str | None
) -> None:
    file = repository.file(commit, path, limit=1999)
    assert (file.data, file.problem) == (data, problem)
    assert file.path == path


def test_a_file_of_exactly_the_limit_is_read(repository: Repository, commit: str) -> None:
    assert repository.file(commit, "large", limit=2000).data == b"x" * 2000


def test_several_files_take_two_processes(repository: Repository, commit: str) -> None:
    before = repository.meter.processes
    files = repository.files(commit, ["blob", "nowhere", "graft.yaml", "empty", "blob"])
    assert {p: f.data for p, f in files.items()} == {
        "blob": b"\0\xff\nblob 3\n", "nowhere": None, "graft.yaml": b"version: 1\n", "empty": b"",
    }  # fmt: skip
    assert repository.meter.processes == before + 2


def test_entries_say_what_stands_there(repository: Repository, commit: str) -> None:
    found = repository.entries(commit, ["run", "dir", "link", "module", "nowhere"])
    assert {p: e.kind for p, e in found.items()} == {
        "run": Kind.FILE, "dir": Kind.DIRECTORY, "link": Kind.SYMLINK, "module": Kind.SUBMODULE,
        "nowhere": Kind.MISSING,
    }  # fmt: skip
    assert (found["run"].size, found["run"].mode) == (3, "100755")


def test_listing(repository: Repository, commit: str) -> None:
    assert [e.path for e in repository.listing(commit, "dir")] == ["dir/a", "dir/deep"]
    assert [e.path for e in repository.listing(commit, "dir/", recursive=True)] == ["dir/a", "dir/deep/b"]
    assert "graft.yaml" in [e.path for e in repository.listing(commit)]
    for nothing in ("nowhere", "graft.yaml", "link", "\ud800"):
        assert repository.listing(commit, nothing) == ()


def test_many_files_are_read_in_batches(builder: RepositoryBuilder) -> None:
    commit = builder.commit("many", {f"d/{i}": f"{i}" for i in range(2500)})
    repository = Repository.open(builder.path)
    paths = [e.path for e in repository.listing(commit, "d", recursive=True)]
    files = repository.files(commit, paths)
    assert all(files[f"d/{i}"].data == str(i).encode() for i in range(2500))


def test_an_object_that_is_not_in_the_clone_is_unreadable(builder: RepositoryBuilder, commit: str) -> None:
    repository = Repository.open(builder.path)
    sha = repository.entries(commit, ["graft.yaml"])["graft.yaml"].sha
    assert sha is not None
    subprocess.run(["git", "-C", str(builder.path), "unpack-objects", "-q"], input=b"", check=False)
    _unpack(builder)
    os.remove(builder.path / "objects" / sha[:2] / sha[2:])
    assert repository.file(commit, "graft.yaml").problem == "unreadable"
    assert repository.file(commit, "empty").data == b""


def test_what_is_no_commit_here_is_an_error(repository: Repository) -> None:
    for name in ("0" * 40, "--help", "nope"):
        with pytest.raises(GitError):
            repository.file(name, "graft.yaml")


def _unpack(builder: RepositoryBuilder) -> None:
    """Packs become loose objects, so that a test can lose one."""
    for pack in (builder.path / "objects" / "pack").glob("*.pack"):
        data = pack.read_bytes()
        for part in pack.parent.glob(pack.stem + ".*"):
            part.chmod(0o600)
            part.unlink()
        subprocess.run(["git", "-C", str(builder.path), "unpack-objects", "-q"], input=data, check=True)
