"""Loading: each way in which there is no policy has its own name, and nothing of the file is followed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from graft.errors import PermanentError, TransientError
from graft.git import Entry, File, Kind
from graft.policy import CANDIDATES, LoadedPolicy, Status, load, of_bytes, why_none
from graft.policy.document import MAX_BYTES


class Commit:
    """One commit's files, in memory. A value that is no content is why there is none."""

    def __init__(
        self, files: Mapping[str, bytes | str] | None = None, *, refuses: Exception | None = None
    ) -> None:
        self.files = dict(files or {})
        self.refuses = refuses
        self.read: list[str] = []

    async def entries(self, paths: Iterable[str]) -> dict[str, Entry]:
        if self.refuses:
            raise self.refuses
        return {path: Entry(path=path, kind=self._kind(path)) for path in paths}

    def _kind(self, path: str) -> Kind:
        value = self.files.get(path, "missing")
        return Kind(value) if value in set(Kind) else Kind.FILE

    async def file(self, path: str, *, limit: int) -> File:
        self.read.append(path)
        value = self.files[path]
        if isinstance(value, str):
            return File(path=path, problem=value)
        return File(path=path, data=value) if len(value) <= limit else File(path=path, problem="too_large")


@pytest.mark.parametrize("name", ["graft.yaml", "graft.yml", ".github/graft.yaml", ".github/graft.yml"])
async def test_each_candidate_is_found(name: str) -> None:
    loaded = await load(Commit({name: b"version: 1\n"}))
    assert loaded.status is Status.VALID
    assert loaded.reason == "ok"
    assert loaded.path == name
    assert name in CANDIDATES
    assert loaded.policy is not None
    assert why_none(loaded) == ""


@pytest.mark.parametrize(
    ("commit", "status", "reason", "word"),
    [
        (Commit(), Status.NONE, "missing", "does not exist"),
        (Commit({"graft.yaml": "directory"}), Status.UNREADABLE, "directory", "is a directory"),
        (Commit({"graft.yaml": "symlink"}), Status.UNREADABLE, "symlink", "symbolic link"),
        (Commit({"graft.yml": "submodule"}), Status.UNREADABLE, "submodule", "submodule"),
        (Commit({"graft.yaml": "too_large"}), Status.UNREADABLE, "too_large", "larger than 1 MB"),
        (Commit({"graft.yaml": b"#" * (MAX_BYTES + 1)}), Status.UNREADABLE, "too_large", "larger than 1 MB"),
        (Commit({"graft.yaml": "unreadable"}), Status.UNREADABLE, "unreadable", "cannot be read"),
        (Commit({"graft.yaml": "something new"}), Status.UNREADABLE, "unreadable", "cannot be read"),
        (
            Commit(refuses=PermanentError("GET x answered 403", reason="forbidden")),
            Status.UNREADABLE,
            "unreadable",
            "may read the contents",
        ),
        (
            Commit({"graft.yaml": b"version: 1", ".github/graft.yml": b"version: 1"}),
            Status.UNREADABLE,
            "two_candidates",
            "keep one",
        ),
        (
            Commit({"graft.yaml": "symlink", "graft.yml": b"version: 1"}),
            Status.UNREADABLE,
            "two_candidates",
            "keep one",
        ),
    ],
)
async def test_why_there_is_no_policy(commit: Commit, status: Status, reason: str, word: str) -> None:
    loaded = await load(commit)
    assert (loaded.status, loaded.reason, loaded.policy) == (status, reason, None)
    assert word in why_none(loaded)


async def test_an_invalid_file_keeps_its_problems() -> None:
    loaded = await load(Commit({"graft.yaml": b"version: 2\n"}))
    assert (loaded.status, loaded.reason, loaded.path) == (Status.INVALID, "invalid", "graft.yaml")
    assert [problem.path for problem in loaded.problems] == ["$.version"]
    assert loaded == of_bytes(b"version: 2\n", "graft.yaml")


async def test_two_candidates_are_named_and_neither_is_read() -> None:
    commit = Commit({"graft.yaml": b"version: 1", "graft.yml": b"version: 1"})
    loaded = await load(commit)
    assert loaded.paths == ("graft.yaml", "graft.yml")
    assert loaded.path is None
    assert commit.read == []


@pytest.mark.parametrize(
    "error",
    [
        TransientError("later", reason="timeout"),
        PermanentError("no token", reason="installation_suspended"),
        PermanentError("git cannot answer", reason="git_failed"),
    ],
)
async def test_what_says_nothing_about_the_file_goes_through(error: Exception) -> None:
    with pytest.raises(type(error)):
        await load(Commit(refuses=error))


def test_loaded_is_a_plain_value() -> None:
    assert LoadedPolicy(status=Status.NONE, reason="missing").path is None
