from __future__ import annotations

import time
from pathlib import Path

import pytest

from graft.git import GitError
from graft.git.process import Git, Meter, environment
from graft.simulator.demo_repository import RepositoryBuilder


def test_a_git_that_hangs_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "git"
    fake.write_text("#!/bin/sh\nexec sleep 60\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    git = Git(str(tmp_path), meter=Meter(), timeout=0.1)
    began = time.monotonic()
    with pytest.raises(GitError, match=r"longer than 0\.1 seconds") as caught:
        git.read("log", limit=10)
    assert caught.value.reason == "git_timeout"
    assert time.monotonic() - began < 30


def test_leaving_early_stops_git_and_is_no_error(builder: RepositoryBuilder) -> None:
    builder.commit("main", {"large": "x" * 5_000_000})
    git = Git(str(builder.path), meter=Meter())
    with git.stream("cat-file", "blob", "main:large") as output:
        assert output.read()
    data, whole = git.read("cat-file", "blob", "main:large", limit=1000)
    assert (data, whole) == (b"x" * 1000, False)


def test_a_failure_names_the_command_and_nothing_else(builder: RepositoryBuilder) -> None:
    git = Git(str(builder.path), meter=Meter())
    with pytest.raises(GitError, match="git cat-file failed with status 128") as caught:
        git.read("cat-file", "blob", "secret-name", limit=10)
    assert "secret-name" not in str(caught.value)


def test_the_environment_holds_no_git_variable_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_TRACE", "GIT_SSH_COMMAND", "GITHUB_TOKEN", "LD_PRELOAD"):
        monkeypatch.setenv(name, "x")
    kept = environment()
    assert "x" not in kept.values()
    assert kept["LC_ALL"] == "C"
