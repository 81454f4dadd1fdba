"""Reading a repository: nothing outside it, no symlinks, bounded sizes; disk and memory behave alike."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from graft.records import files
from graft.records.files import DiskTree, FileRefusedError, MemoryTree


@pytest.fixture
def disk(tmp_path: Path) -> DiskTree:
    root = tmp_path / "root"
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/c.txt").write_bytes(b"c")
    (root / "top").write_bytes(b"t")
    (tmp_path / "outside").write_text("secret")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "folder").symlink_to(root / "a")
    os.mkfifo(root / "pipe")
    return DiskTree(root)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("top", "file"),
        ("a", "dir"),
        ("a/b/c.txt", "file"),
        ("link", "symlink"),
        ("folder/b/c.txt", "symlink"),
        ("pipe", "other"),
        ("gone", "missing"),
        ("top/x", "missing"),
        ("../outside", "missing"),
        ("a/../top", "missing"),
        ("./top", "missing"),
        ("/etc/passwd", "missing"),
        ("", "missing"),
        ("a\0b", "missing"),
    ],
)
def test_kinds(disk: DiskTree, path: str, kind: str) -> None:
    assert disk.kind(path) == kind
    if kind not in ("file",):
        with pytest.raises(FileRefusedError):
            disk.read(path)


def test_both_trees_read_and_list_alike(disk: DiskTree) -> None:
    memory = MemoryTree({"a/b/c.txt": b"c", "top": b"t"})
    for path in ("a/b/c.txt", "top", "a", "a/b", "gone"):
        assert memory.kind(path) == disk.kind(path)
    for tree in (disk, memory):
        assert tree.names("a") == ["b"]
        assert tree.names("gone") == []
        assert tree.read("a/b/c.txt") == b"c"
        assert files.walk(tree, "a", ".txt") == ["a/b/c.txt"]
        with pytest.raises(FileRefusedError):
            tree.read("a")


def test_listing_a_symlink_or_file_is_refused(disk: DiskTree) -> None:
    for path, code in (("folder", "symlink"), ("top", "unreadable")):
        with pytest.raises(FileRefusedError) as caught:
            disk.names(path)
        assert caught.value.code == code


def test_walk_names_symlinks_and_never_follows_them(disk: DiskTree) -> None:
    (disk.root / "a/loop").symlink_to(disk.root)
    assert files.walk(disk, "a", ".txt") == ["a/b/c.txt", "a/loop"]


def test_a_file_above_the_bound_is_refused(disk: DiskTree) -> None:
    (disk.root / "big").write_bytes(b"x" * (files.MAX_BYTES + 1))
    for tree in (disk, MemoryTree({"big": b"x" * (files.MAX_BYTES + 1)})):
        with pytest.raises(FileRefusedError) as caught:
            tree.read("big")
        assert caught.value.code == "too-large"


def test_too_many_entries_are_refused(tmp_path: Path) -> None:
    tree = MemoryTree({f"d{n % 3}/{n}.x": b"" for n in range(3 * files.MAX_NAMES)})
    with pytest.raises(FileRefusedError):
        files.walk(MemoryTree({f"r/{path}": data for path, data in tree.files.items()}), "r", ".x")


def test_a_folder_that_is_nested_too_deeply_hides_nothing() -> None:
    deep = "/".join(["m", *"abcdefgh", "x.bend"])
    with pytest.raises(FileRefusedError):
        files.walk(MemoryTree({deep: b""}), "m", ".bend")


def test_replacing_a_file_is_one_step_and_leaves_nothing_behind(tmp_path: Path) -> None:
    target = tmp_path / "f"
    files.replace_file(target, b"one")
    files.replace_file(target, b"two", executable=True)
    assert target.read_bytes() == b"two"
    assert os.access(target, os.X_OK)
    with pytest.raises(OSError):
        files.replace_file(tmp_path / "f" / "x", b"")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        files.replace_file(tmp_path / "folder", b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f", "folder"]


def test_invalid_bytes_count_as_one_replacement_each() -> None:
    assert files.decode(b"a\xffb\xed\xa0\x80\r\n\xef\xbb\xbf") == "a\ufffdb\ufffd\ufffd\ufffd\r\n\ufeff"
