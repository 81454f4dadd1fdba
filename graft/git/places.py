"""Where a repository keeps its things, by git's own word and under the user's own configuration."""

from __future__ import annotations

import os
from pathlib import Path

from graft.git.process import GitError, ask


def git_directory(path: str) -> str:
    """The git directory that serves `path`. Raises `GitError`: `not_a_repository`, `not_trusted`."""
    return _answer(path, "--absolute-git-dir")


def hooks_directory(path: str) -> Path:
    """Where git looks for hooks, `core.hooksPath` respected; it may not exist yet. Raises `GitError`."""
    return Path(os.path.abspath(os.path.join(path, _answer(path, "--git-path", "hooks"))))


def _answer(path: str, *question: str) -> str:
    if not os.path.isdir(path):
        raise GitError("no such directory: give a git repository with --repo PATH", reason="not_a_repository")
    status, out, err = ask(path, "rev-parse", *question)
    if status == 0:
        return out.removesuffix("\n")
    if "dubious ownership" in err:
        raise GitError(
            "the repository belongs to another user: run `git config --global --add safe.directory PATH`",
            reason="not_trusted",
        )
    raise GitError("not a git repository: give one with --repo PATH", reason="not_a_repository")
