from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft.changes import ChangedFile, Snapshot
from graft.intent.fingerprint import diff_fingerprint, keyed_hash

PATCH = "@@ -10,2 +10,3 @@ def f():\n a\n-b\n+c\n+d"
FILE = ChangedFile(path="a.py", status="modified", additions=2, deletions=1, patch=PATCH, new_mode="100644")


def snapshot(*files: ChangedFile, incomplete: tuple[str, ...] = ()) -> Snapshot:
    return Snapshot(base_sha="b", head_sha="h", files=files, commits=(), incomplete=incomplete)


def changed(**fields: object) -> ChangedFile:
    return msgspec.structs.replace(FILE, **fields)


SAME = diff_fingerprint(snapshot(FILE))


def test_a_rebase_moves_hunks() -> None:
    moved = changed(patch=PATCH.replace("-10,2 +10,3", "-73,2 +75,3").replace("def f", "def g"))
    assert diff_fingerprint(snapshot(moved)) == SAME
    other = ChangedFile(path="b.py", status="added", patch="@@ -0,0 +1 @@\n+x")
    assert diff_fingerprint(snapshot(FILE, other)) == diff_fingerprint(snapshot(other, FILE))


@pytest.mark.parametrize(
    "fields",
    [
        {"path": "b.py"},
        {"status": "renamed", "previous_path": "old.py"},
        {"new_mode": "100755"},
        {"patch": PATCH.replace("+d", "+e")},
        {"patch": PATCH.replace(" a", " z")},
        {"patch": PATCH.replace("-b", "+b").replace("10,2 +10,3", "10,1 +10,4")},
    ],
)
def test_any_other_change_is_another_diff(fields: dict[str, object]) -> None:
    assert diff_fingerprint(snapshot(changed(**fields))) not in (None, SAME)


def test_binary_content_is_known_by_its_blob() -> None:
    image = ChangedFile(path="a.png", status="modified", binary=True, blob_sha="1" * 40)
    same = diff_fingerprint(snapshot(image))
    assert same is not None
    assert diff_fingerprint(snapshot(msgspec.structs.replace(image, blob_sha="2" * 40))) != same
    assert diff_fingerprint(snapshot(msgspec.structs.replace(image, blob_sha=None))) is None


def test_what_cannot_be_known_has_no_fingerprint() -> None:
    assert diff_fingerprint(snapshot(FILE, incomplete=("count_mismatch",))) is None
    assert diff_fingerprint(snapshot(changed(patch=None))) is None
    bare = ChangedFile(path="a", status="modified")
    assert diff_fingerprint(snapshot(bare)) is None
    assert diff_fingerprint(snapshot(msgspec.structs.replace(bare, status="renamed"))) is not None


def test_parts_do_not_run_into_each_other() -> None:
    key = b"k"
    hashes = {
        keyed_hash(key, parts)
        for parts in (("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("abc", None), (None, "abc"), ())
    }
    assert len(hashes) == 7
    assert keyed_hash(b"1", ("a",)) != keyed_hash(b"2", ("a",))


@given(st.binary(max_size=80), st.lists(st.text() | st.none(), max_size=4))
def test_any_text_can_be_hashed(key: bytes, parts: list[str | None]) -> None:
    assert len(keyed_hash(key, parts)) == 64
    keyed_hash(key, ["\ud800"])
