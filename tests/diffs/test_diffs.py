"""Diffs that git itself wrote, read back and compared with git's own raw and numstat output."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft.changes import ChangedFile
from graft.diffs import SUBMODULE_MODE, parse_diff, parse_hunks


class Repo:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.email", "t@example.org")
        self.git("config", "user.name", "t")
        self.git("config", "core.autocrlf", "false")

    def git(self, *args: str) -> str:
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        done = subprocess.run(
            ["git", "-C", str(self.path), *args], check=True, capture_output=True, env=environment
        )
        return done.stdout.decode("utf-8", "surrogateescape")

    def commit(self) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")
        return self.git("rev-parse", "HEAD").strip()

    def write(self, name: str | bytes, content: str | bytes) -> None:
        path = os.path.join(os.fsencode(self.path), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).write_bytes(content.encode() if isinstance(content, str) else content)

    def diff(self, *options: str) -> tuple[ChangedFile, ...]:
        return parse_diff(self.git("diff", "--cached", "-M", "-C", *options))


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path)


def staged(repo: Repo, *options: str) -> dict[str, ChangedFile]:
    """The staged change through the parser, after git's numstat agreed with it."""
    repo.git("add", "-A")
    files = repo.diff(*options)
    counts = {}
    fields = repo.git("diff", "--cached", "-M", "-C", "--numstat", "-z").split("\0")
    while fields and fields[0]:
        added, removed, path = fields.pop(0).split("\t", 2)
        if not path:
            fields.pop(0)
            path = fields.pop(0)
        path = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        counts[path] = (0, 0, True) if added == "-" else (int(added), int(removed), False)
    assert {f.path: (f.additions, f.deletions, f.binary) for f in files} == counts
    return {f.path: f for f in files}


def test_an_ordinary_change(repo: Repo) -> None:
    repo.write("a.txt", "one\ntwo\nthree\n")
    repo.commit()
    repo.write("a.txt", "one\n2\nthree\n")
    file = staged(repo, "--full-index")["a.txt"]
    assert file.patch == "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"
    assert (file.status, file.old_mode, file.new_mode, file.previous_path) == (
        "modified",
        "100644",
        "100644",
        None,
    )
    assert file.blob_sha == repo.git("rev-parse", ":a.txt").strip()


def test_content_that_looks_like_headers_stays_content(repo: Repo) -> None:
    tricky = [
        "-- a/evil.py",
        "++ b/evil.py",
        "diff --git a/evil b/evil",
        "@@ -1,9 +1,9 @@",
        "rename from x",
        "deleted file mode 100644",
        "Binary files a/x and b/y differ",
        "GIT binary patch",
        "\\ No newline at end of file",
        "",
        " ",
    ]
    repo.write("a.txt", "keep\n" + "\n".join(tricky) + "\nend\n")
    repo.write("b.txt", "x\n")
    repo.commit()
    repo.write("a.txt", "keep\n" + "\n".join(reversed(tricky)) + "\nend\n")
    repo.write("b.txt", "y\n")
    files = staged(repo)
    assert list(files) == ["a.txt", "b.txt"]
    assert not files["a.txt"].binary


def test_a_removed_file_full_of_headers(repo: Repo) -> None:
    repo.write("gone.diff", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\ndiff --git a/q b/q\n")
    repo.commit()
    repo.git("rm", "-q", "gone.diff")
    file = staged(repo)["gone.diff"]
    assert (file.status, file.deletions, file.old_mode, file.new_mode) == ("removed", 6, "100644", None)


@pytest.mark.parametrize("quote", ["true", "false"])
def test_odd_paths(repo: Repo, quote: str) -> None:
    repo.git("config", "core.quotePath", quote)
    names = [
        "with space.txt",
        " lead",
        "trail ",
        "é/ü.txt",
        'quo"te',
        "back\\slash",
        "tab\there",
        "new\nline",
        "a b/c b/d",
        "b/b/b",
        "日本語",
        "x b/x",
        "--- a",
        "bell\a",
    ]
    for name in names:
        repo.write(name, f"{name}\n")
    repo.commit()
    for name in names:
        repo.write(name, f"{name}\nmore\n")
    assert sorted(staged(repo)) == sorted(names)


def test_odd_paths_without_hunks(repo: Repo) -> None:
    names = ["with space", "a b/c b/a b/c", "é", "x b/x", 'q"', "b/ b/"]
    for name in [*names[:-1], "b/ b/z"]:
        repo.write(name, f"{name}\n")
    repo.commit()
    for name in [*names[:-1], "b/ b/z"]:
        (repo.path / name).chmod(0o755)
    files = staged(repo)
    assert sorted(files) == sorted([*names[:-1], "b/ b/z"])
    assert {(f.status, f.old_mode, f.new_mode, f.patch) for f in files.values()} == {
        ("changed", "100644", "100755", None)
    }


def test_a_path_that_is_not_utf8(repo: Repo) -> None:
    repo.write(b"caf\xe9.txt", "x\n")
    assert list(staged(repo)) == ["caf\ufffd.txt"]


def test_renames_and_copies(repo: Repo) -> None:
    body = "".join(f"line {n}\n" for n in range(60))
    repo.write("old name.py", body)
    repo.write("source.py", body.replace("line", "row"))
    repo.commit()
    repo.git("mv", "old name.py", "new é.py")
    repo.write("source.py", body.replace("line", "row") + "x\n")
    repo.write("copy.py", body.replace("line", "row") + "y\n")
    files = staged(repo)
    assert (files["new é.py"].status, files["new é.py"].previous_path) == ("renamed", "old name.py")
    assert files["new é.py"].patch is None
    assert (files["copy.py"].status, files["copy.py"].previous_path) == ("copied", "source.py")
    assert files["source.py"].previous_path is None


def test_no_newline_at_the_end(repo: Repo) -> None:
    repo.write("a", "one")
    repo.write("b", "x\n")
    repo.commit()
    repo.write("a", "one\ntwo")
    repo.write("b", "y\n")
    files = staged(repo)
    assert files["a"].patch == (
        "@@ -1 +1,2 @@\n-one\n\\ No newline at end of file\n+one\n+two\n\\ No newline at end of file"
    )
    assert (files["a"].additions, files["a"].deletions) == (2, 1)


def test_line_ends_other_than_newline_are_content(repo: Repo) -> None:
    odd = ["a\rb", "a\r", "a\x0bb", "a\x0cb", "a\x1cb", "a\u0085b", "a\u2028b", "a\u2029b"]
    repo.write("a", "x\n")
    repo.commit()
    repo.write("a", "x\n" + "\n".join(odd) + "\n")
    file = staged(repo)["a"]
    assert file.additions == len(odd)
    assert parse_hunks(file.patch or "")[0].lines == (" x", *(f"+{line}" for line in odd))


def test_binary_files(repo: Repo) -> None:
    repo.write("logo.png", bytes(range(256)))
    repo.write("after.txt", "x\n")
    repo.git("add", "-A")
    for options in ((), ("--binary",)):
        files = {f.path: f for f in repo.diff(*options)}
        assert (files["logo.png"].binary, files["logo.png"].patch, files["logo.png"].status) == (
            True,
            None,
            "added",
        )
        assert files["after.txt"].additions == 1


def test_submodules_and_type_changes(repo: Repo) -> None:
    repo.git("commit", "-q", "--allow-empty", "-m", "root")
    sha = repo.git("rev-parse", "HEAD").strip()
    repo.git("update-index", "--add", "--cacheinfo", f"{SUBMODULE_MODE},{sha},vendor/lib")
    added = {f.path: f for f in repo.diff()}["vendor/lib"]
    assert (added.new_mode, added.patch) == (SUBMODULE_MODE, f"@@ -0,0 +1 @@\n+Subproject commit {sha}")

    repo.write("link", "x\n")
    repo.git("add", "link")
    repo.git("commit", "-q", "-m", "x")
    (repo.path / "link").unlink()
    (repo.path / "link").symlink_to("elsewhere")
    repo.git("add", "link")
    assert [(f.status, f.path, f.old_mode, f.new_mode) for f in repo.diff()] == [
        ("removed", "link", "100644", None),
        ("added", "link", None, "120000"),
    ]


def test_empty_files_and_mode_changes_with_content(repo: Repo) -> None:
    repo.write("run.sh", "x\n")
    repo.commit()
    repo.write("run.sh", "y\n")
    (repo.path / "run.sh").chmod(0o755)
    repo.write("empty", "")
    files = staged(repo)
    assert (files["run.sh"].status, files["run.sh"].new_mode, files["run.sh"].additions) == (
        "modified",
        "100755",
        1,
    )
    assert (files["empty"].status, files["empty"].patch) == ("added", None)


@given(
    st.lists(st.text(st.sampled_from("+-@ \\ab\r\t\u2028"), max_size=6), max_size=12),
    st.lists(st.text(st.sampled_from("+-@ \\ab\r\t\u2028"), max_size=6), max_size=12),
)
def test_hunks_are_read_by_their_counts_whatever_the_lines_hold(old: list[str], new: list[str]) -> None:
    body = [*(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    if not body:
        return
    patch = "\n".join([f"@@ -1,{len(old)} +1,{len(new)} @@ def f():", *body])
    after = "diff --git a/y b/y\nold mode 100644\nnew mode 100755\n"
    text = f"diff --git a/x b/x\n--- a/x\n+++ b/x\n{patch}\n{after}"
    first, second = parse_diff(text)
    assert (first.additions, first.deletions, first.patch) == (len(new), len(old), patch)
    assert (second.path, second.status) == ("y", "changed")
    assert parse_hunks(patch)[0].lines == tuple(body)


@given(st.text(st.sampled_from('@-+ \\0123\n"adifb/gt.'), max_size=300))
def test_no_text_raises(text: str) -> None:
    parse_diff(text)
    parse_diff(f"diff --git {text}")
    parse_hunks(text)


def test_a_hunk_that_is_cut_off_keeps_what_it_has() -> None:
    text = "diff --git a/x b/x\n@@ -1,9 +1,9 @@\n a\n+b\ndiff --git a/y b/y\n@@ -1 +1 @@\n-p\n+q\n"
    first, second = parse_diff(text)
    assert (first.patch, first.additions) == ("@@ -1,9 +1,9 @@\n a\n+b", 1)
    assert (second.path, second.additions, second.deletions) == ("y", 1, 1)


def test_absurd_counts_are_harmless() -> None:
    text = "diff --git a/x b/x\n@@ -1,9999999999 +1,9999999999 @@\n+b\n@@ -1,99999999999999999999 +1 @@\n+c\n"
    (file,) = parse_diff(text)
    assert file.additions == 1


def test_time_is_linear() -> None:
    def seconds(text: str) -> float:
        begin = time.process_time()
        parse_diff(text)
        return time.process_time() - begin

    hunk = "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
    texts = [
        "".join(f"diff --git a/{n} b/{n}\n--- a/{n}\n+++ b/{n}\n{hunk}" for n in range(20_000)),
        "diff --git " + '"\\' * 200_000 + "\n",
        "diff --git a/x b/x\n" + "--- a/x\n" * 200_000,
        "diff --git a/x b/x\n" + hunk * 50_000,
        "@@ -1,2 +1,2 @@\n" * 200_000,
        "diff --git a b\n" * 200_000,
    ]
    assert max(seconds(text) for text in texts) < 6  # quadratic time would take minutes
