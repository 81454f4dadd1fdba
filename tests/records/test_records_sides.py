"""Reading `.intent/` of both sides: what counts as the change's, what is read, and what is said when it is too much."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from graft.changes import ChangedFile, Snapshot
from graft.errors import PermanentError, TransientError
from graft.git import Entry, Kind
from graft.records import Memory, read, relevant, review
from graft.records.sides import MAX_READ, MAX_REMEMBERED_BYTES, MAX_REMEMBERED_REVIEWS

LAWS = ".intent/model/LAWS.bend"


class Commit:
    """Files of a commit; says what was asked of it."""

    def __init__(self, files: Mapping[str, bytes], **special: Entry | Exception) -> None:
        self.files = dict(files)
        self.special = special
        self.asked: list[str] = []
        self.read: list[str] = []

    def entry(self, path: str) -> Entry:
        data = self.files[path]
        return Entry(path=path, kind=Kind.FILE, sha=hashlib.sha1(data).hexdigest(), size=len(data))

    async def entries(self, paths: Iterable[str]) -> Mapping[str, Entry]:
        self.asked.append("root")
        kind = Kind.DIRECTORY if any(path.startswith(".intent/") for path in self.files) else Kind.MISSING
        return {path: Entry(path=path, kind=kind) for path in paths}

    async def listing(self, directory: str, *, recursive: bool) -> tuple[Entry, ...]:
        assert recursive
        self.asked.append(directory)
        failure = self.special.get("failure")
        if isinstance(failure, Exception):
            raise failure
        listed = {path: self.entry(path) for path in self.files if path.startswith(f"{directory}/")}
        listed |= {entry.path: entry for entry in self.special.values() if isinstance(entry, Entry)}
        return tuple(listed.values())

    async def contents(self, entries: Sequence[Entry], *, limit: int) -> Mapping[str, bytes]:
        self.read += [entry.path for entry in entries]
        return {entry.sha or "": self.files[entry.path] for entry in entries if entry.path in self.files}


def change(*paths: str, **fields: Any) -> Snapshot:
    files = tuple(ChangedFile(path=path, status="modified") for path in paths)
    return Snapshot(base_sha="b" * 40, head_sha="a" * 40, files=files, commits=(), **fields)


@pytest.fixture
def base(repo: Any) -> dict[str, bytes]:
    repo.manifest()
    return {path: data for path, data in repo.files().items() if path.startswith(".intent/")}


async def test_without_records_one_look_at_the_root_is_all() -> None:
    here, there = Commit({"src/a.py": b"1"}), Commit({"src/a.py": b"2"})
    assert await read(here, there, change("src/a.py", ".intentional"), Memory()) is None
    assert (here.asked, there.asked) == (["root"], [])


async def test_a_change_elsewhere_never_looks_at_the_head(base: dict[str, bytes]) -> None:
    here, there = Commit(base), Commit({})
    found = await read(here, there, change("src/a.py"), Memory())
    assert found == review(base, base)
    assert (found.status, there.asked, there.read) == ("fresh", [], [])
    assert here.asked == ["root", ".intent"]


async def test_only_what_is_looked_at_is_read_and_each_blob_once(repo: Any, base: dict[str, bytes]) -> None:
    repo.edit(repo.record_path, "The first letter", "The very first letter")
    head = base | {repo.record_path: repo.files()[repo.record_path]}
    here, there = Commit(base), Commit(head)
    found = await read(here, there, change(repo.record_path), Memory())
    assert found == review(base, head)
    assert sorted(here.read) == sorted(path for path in base if relevant(path))
    assert ".intent/model/PROOF.bend" not in here.read
    assert there.read == [repo.record_path]


async def test_an_edited_proof_is_protected_though_nobody_reads_it(base: dict[str, bytes]) -> None:
    proof = ".intent/model/PROOF.bend"
    here, there = Commit(base), Commit(base | {proof: b"def M.a() = 1\n"})
    found = await read(here, there, change(proof), Memory())
    assert found is not None
    assert (found.protected, there.read) == ((proof,), [])


async def test_a_branch_that_lags_behind_is_not_blamed_for_the_base(
    repo: Any, base: dict[str, bytes]
) -> None:
    repo.edit(repo.record_path, "The first letter", "The very first letter")
    moved = base | {repo.record_path: repo.files()[repo.record_path]}
    lagging = base | {".intent/notes.md": b"note"}
    found = await read(Commit(moved), Commit(lagging), change(".intent/notes.md"), Memory())
    assert found is not None
    assert (found.clauses, found.protected) == ((), ())
    assert any(item.text == "The very first letter is a." for item in found.standing)


async def test_all_of_the_head_counts_where_the_list_of_files_is_not_whole(base: dict[str, bytes]) -> None:
    head = {path: data for path, data in base.items() if path != LAWS}
    found = await read(Commit(base), Commit(head), change(incomplete=("too_many_files",)), Memory())
    assert found is not None
    assert (found.status, found.protected) == ("stale", (LAWS,))


async def test_removing_everything_is_stale_and_protected(repo: Any, base: dict[str, bytes]) -> None:
    found = await read(Commit(base), Commit({}), change(*base), Memory())
    assert found is not None
    assert found.status == "stale"
    assert {repo.record_path, LAWS, repo.receipt_path} <= set(found.protected)


async def test_records_that_only_the_head_has_approve_nothing(base: dict[str, bytes]) -> None:
    here = Commit({})
    found = await read(here, Commit(base), change(*base), Memory())
    assert found is not None
    assert (found.status, found.standing) == ("none", ())
    assert here.asked == ["root"]


async def test_a_link_in_place_of_a_record_is_not_followed(repo: Any, base: dict[str, bytes]) -> None:
    link = Entry(path=repo.record_path, kind=Kind.SYMLINK, sha="f" * 40, size=9)
    there = Commit(base, link=link)
    found = await read(Commit(base), there, change(repo.record_path), Memory())
    assert found is not None
    assert (found.status, found.protected, there.read) == ("stale", (repo.record_path,), [])
    assert f"{repo.record_path}: the approved record is deleted" in found.problems
    assert any("symlink" in problem for problem in found.problems)


async def test_a_file_above_the_bound_is_not_read(repo: Any, base: dict[str, bytes]) -> None:
    large = Entry(path=LAWS, kind=Kind.FILE, sha="f" * 40, size=3 * 2**20)
    there = Commit(base, large=large)
    found = await read(Commit(base), there, change(LAWS), Memory())
    assert found is not None
    assert (found.status, found.protected, there.read) == ("stale", (LAWS,), [])
    assert f"{LAWS}: was not read: it is too large, or no file" in found.problems


async def test_more_files_than_the_bound_are_read_in_part_and_said(base: dict[str, bytes]) -> None:
    many = {f".intent/receipts/{number:04}-x.json": b"%d" % number for number in range(2, 3_000)}
    here = Commit(base | many)
    found = await read(here, Commit({}), change(), Memory())
    assert found is not None
    assert found.status == "stale"
    assert found.truncated[0].endswith("files of base")
    assert found.truncated[1].startswith("the content of ")
    assert len(here.read) == MAX_READ
    assert LAWS in here.read, "what decides most is read first"


async def test_an_edit_of_a_record_that_was_not_read_on_the_base_is_protected(
    repo: Any, base: dict[str, bytes]
) -> None:
    path = ".intent/records/0002-large.md"
    large = Entry(path=path, kind=Kind.FILE, sha="f" * 40, size=3 * 2**20)
    found = await read(Commit(base, large=large), Commit(base | {path: b"small"}), change(path), Memory())
    assert found is not None
    assert found.protected == (path,)


async def test_an_edit_of_a_record_beyond_the_bound_is_protected(base: dict[str, bytes]) -> None:
    many = {f".intent/records/{number:04}-x.md": b"%d" % number for number in range(2, MAX_READ + 50)}
    last = f".intent/records/{MAX_READ + 49:04}-x.md"
    found = await read(Commit(base | many), Commit(base | many | {last: b"new"}), change(last), Memory())
    assert found is not None
    assert (found.status, found.protected) == ("stale", (last,))


@pytest.mark.parametrize("side", ["base", "head"])
async def test_what_cannot_be_read_is_stale_and_every_record_counts_as_approved(
    repo: Any, base: dict[str, bytes], side: str
) -> None:
    refused = Commit(base, failure=PermanentError("too large", reason="tree_truncated"))
    sides = (refused, Commit(base)) if side == "base" else (Commit(base), refused)
    found = await read(*sides, change(repo.record_path, "src/a.py", ".intent/notes.md"), Memory())
    assert found is not None
    assert (found.status, found.protected) == ("stale", (repo.record_path,))
    assert found.problems == (".intent/: cannot be read (tree_truncated)",)


@pytest.mark.parametrize(
    "failure",
    [
        PermanentError("no", reason="no_installation"),
        TransientError("later", reason="rate_limited", retry_after=1.0),
    ],
)
async def test_other_failures_are_the_callers(base: dict[str, bytes], failure: Exception) -> None:
    with pytest.raises(type(failure)):
        await read(Commit(base, failure=failure), Commit(base), change(LAWS), Memory())


async def test_the_same_pair_is_reviewed_once_and_blobs_are_remembered(
    repo: Any, base: dict[str, bytes]
) -> None:
    memory = Memory()
    first = await read(Commit(base), Commit(base), change("src/a.py"), memory)
    again = Commit(base)
    assert await read(again, Commit(base), change("src/b.py"), memory) is first
    assert again.read == []
    repo.edit(repo.record_path, "The first letter", "The very first letter")
    there = Commit(repo.files())
    found = await read(again, there, change(repo.record_path), memory)
    assert found is not None
    assert (again.read, there.read, len(found.clauses)) == ([], [repo.record_path], 1)


def test_memory_is_bounded() -> None:
    memory = Memory()
    for number in range(12):
        memory.put({str(number): bytes(MAX_REMEMBERED_BYTES // 10)})
    memory.put({"11": b"the same name again is the same content"})
    assert list(memory.blobs) == [str(number) for number in range(2, 12)]
    for number in range(MAX_REMEMBERED_REVIEWS + 3):
        memory.put_review(str(number), review({}, {}))
    assert (len(memory.reviews), "2" in memory.reviews) == (MAX_REMEMBERED_REVIEWS, False)
