from __future__ import annotations

import subprocess
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graft.changes import ChangedFile, Snapshot
from graft.git import Repository, diff, history
from graft.simulator.demo_repository import RepositoryBuilder, Special

Files = Mapping[str, "str | bytes | Special | None"]
LINES = "".join(f"line {i}\n" for i in range(1, 21))


def change(builder: RepositoryBuilder, before: Files, after: Files) -> Snapshot:
    base = builder.commit("main", {"keep": "", **before})
    head = builder.commit("topic", after, parent=base)
    repository = Repository.open(builder.path)
    return repository.snapshot(repository.resolve(f"{base}..{head}"))


def only(snapshot: Snapshot) -> ChangedFile:
    (file,) = snapshot.files
    return file


def test_a_modified_file(builder: RepositoryBuilder) -> None:
    file = only(change(builder, {"a.txt": LINES}, {"a.txt": LINES.replace("line 2\n", "changed\n")}))
    assert (file.path, file.status, file.additions, file.deletions) == ("a.txt", "modified", 1, 1)
    assert file.patch == "@@ -1,5 +1,5 @@\n line 1\n-line 2\n+changed\n line 3\n line 4\n line 5"
    assert (file.old_mode, file.new_mode) == ("100644", "100644")
    assert file.blob_sha is not None
    assert not file.binary


def test_added_removed_and_empty_files(builder: RepositoryBuilder) -> None:
    files = change(builder, {"gone": "x\n"}, {"gone": None, "new": "y", "void": ""}).files
    by_path = {f.path: f for f in files}
    gone, new, void = by_path["gone"], by_path["new"], by_path["void"]
    assert (gone.status, gone.deletions, gone.new_mode, gone.blob_sha) == ("removed", 1, None, None)
    assert (new.status, new.additions, new.old_mode) == ("added", 1, None)
    assert new.patch == "@@ -0,0 +1 @@\n+y\n\\ No newline at end of file"
    assert (void.status, void.additions, void.patch) == ("added", 0, None)


def test_renames_with_and_without_changes(builder: RepositoryBuilder) -> None:
    more = LINES.replace("line", "row")
    files = change(
        builder,
        {"a": LINES, "b": more},
        {"a": None, "b": None, "dir/a2": LINES, "b2": more.replace("row 9\n", "other\n")},
    ).files
    by_path = {f.path: f for f in files}
    assert set(by_path) == {"dir/a2", "b2"}
    assert (by_path["dir/a2"].status, by_path["dir/a2"].previous_path) == ("renamed", "a")
    assert (by_path["dir/a2"].patch, by_path["dir/a2"].additions) == (None, 0)
    assert by_path["b2"].paths == ("b2", "b")
    assert "+other" in (by_path["b2"].patch or "")


def test_modes_types_and_submodules(builder: RepositoryBuilder) -> None:
    files = change(
        builder,
        {"run": "x\n", "link": "text\n", "module": Special(mode="160000", content="1" * 40)},
        {
            "run": Special(mode="100755", content="x\n"),
            "link": Special(mode="120000", content="/etc/passwd"),
            "module": Special(mode="160000", content="2" * 40),
            "zz": "after\n",
        },
    ).files
    by_path = {f.path: f for f in files}
    run, link, module = by_path["run"], by_path["link"], by_path["module"]
    assert (run.old_mode, run.new_mode, run.patch) == ("100644", "100755", None)
    assert (link.status, link.old_mode, link.new_mode) == ("changed", "100644", "120000")
    assert link.patch == "@@ -1 +0,0 @@\n-text\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file"
    assert module.patch is not None
    assert "+Subproject commit " + "2" * 40 in module.patch
    assert by_path["zz"].patch == "@@ -0,0 +1 @@\n+after"


def test_a_binary_file_has_counts_of_nothing_and_no_patch(builder: RepositoryBuilder) -> None:
    file = only(change(builder, {"i.png": b"\0\1"}, {"i.png": b"\0\2"}))
    assert (file.binary, file.patch, file.additions, file.deletions) == (True, None, 0, 0)


@pytest.mark.parametrize(
    "path",
    [
        "with space",
        "tab\there",
        "new\nline",
        'quo"te',
        "back\\slash",
        "ünï/çode",
        "a\n@@ -1 +1 @@",
        "-x",
        ":(top)",
    ],
)
def test_odd_paths_are_kept_as_they_are(builder: RepositoryBuilder, path: str) -> None:
    file = only(change(builder, {}, {path: "text\n"}))
    assert (file.path, file.patch) == (path, "@@ -0,0 +1 @@\n+text")


def test_content_that_looks_like_a_diff_stays_content(builder: RepositoryBuilder) -> None:
    hostile = "diff --git a/x b/x\nindex 1..2\n@@ -1 +1 @@\n\0: not a row\n--- a/x\n+++ b/x\n"
    padding = "p" * 9000 + "\n"  # git looks for NUL in the first 8,000 bytes only
    files = change(builder, {"b": "1\n"}, {"a": padding + hostile, "b": "2\n"}).files
    assert [f.path for f in files] == ["a", "b"]
    assert (files[0].patch or "").endswith("+--- a/x\n++++ b/x")
    assert files[1].patch == "@@ -1 +1 @@\n-1\n+2"


def test_attributes_and_settings_have_no_say(builder: RepositoryBuilder) -> None:
    config = [
        ("diff.external", "false"), ("diff.noprefix", "true"), ("diff.context", "0"), ("diff.renames", "false"),
        ("diff.mnemonicPrefix", "true"), ("diff.orderFile", "/nowhere"), ("color.ui", "always"),
        ("diff.shout.textconv", "tr a-z A-Z"), ("core.quotepath", "true"), ("log.showSignature", "true"),
        ("diff.submodule", "log"), ("diff.algorithm", "patience"), ("diff.suppressBlankEmpty", "true"),
    ]  # fmt: skip
    for key, value in config:
        subprocess.run(["git", "-C", str(builder.path), "config", key, value], check=True)
    attributes = {".gitattributes": "*.txt -diff\n*.md diff=shout\n"}
    files = change(
        builder, {**attributes, "ü.txt": "a\n\nb\n"}, {"ü.txt": "a\n\nc\n", "r.md": "quiet\n"}
    ).files
    assert {f.path: f.patch for f in files} == {
        "ü.txt": "@@ -1,3 +1,3 @@\n a\n \n-b\n+c",
        "r.md": "@@ -0,0 +1 @@\n+quiet",
    }


def test_the_uncommitted_attributes_of_a_clone_have_no_say(
    builder: RepositoryBuilder, tmp_path: Path
) -> None:
    base = builder.commit("main", {"a.txt": "1\n"})
    head = builder.commit("main", {"a.txt": "2\n"})
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(builder.path), str(clone)], check=True)
    clone.joinpath(".gitattributes").write_text("*.txt -diff\n")
    repository = Repository.open(clone)
    assert only(repository.snapshot(repository.resolve(f"{base}..{head}"))).patch is not None


def test_commits_oldest_first_with_people_parents_and_whole_messages(builder: RepositoryBuilder) -> None:
    base = builder.commit("main", {"a": "1"})
    message = "title\n\nbody — ünïcode\n\nGraft-Agent: codex\n"
    first = builder.commit(
        "topic",
        {"b": "1"},
        parent=base,
        message=message,
        author="Ann Ö <a@x.io>",
        committer="GitHub <n@g.com>",
    )
    other = builder.commit("main", {"c": "1"})
    merge = builder.commit("topic", {"c": "1"}, merge=other, message="Merge branch 'main' into topic\n")
    repository = Repository.open(builder.path)
    snapshot = repository.snapshot(repository.resolve(f"{base}..{merge}"))
    assert [c.sha for c in snapshot.commits] == [first, other, merge]
    commit = snapshot.commits[0]
    assert (commit.message.rstrip("\n"), commit.parents) == (message.rstrip("\n"), (base,))
    assert (commit.author.name, commit.author.email) == ("Ann Ö", "a@x.io")
    assert (commit.committer.name, commit.committer.email) == ("GitHub", "n@g.com")
    assert snapshot.commits[2].parents == (first, other)


def test_a_pull_request_shows_what_head_did_since_it_left_base(builder: RepositoryBuilder) -> None:
    fork = builder.commit("main", {"a": "1\n"})
    head = builder.commit("topic", {"mine": "1\n"}, parent=fork)
    base = builder.commit("main", {"theirs": "1\n"})
    repository = Repository.open(builder.path)
    for text in (f"{base}..{head}", f"{base}...{head}", f"main..{head}", "main...topic"):
        snapshot = repository.snapshot(repository.resolve(text))
        assert (snapshot.base_sha, snapshot.head_sha) == (fork, head)
        assert [f.path for f in snapshot.files] == ["mine"]
        assert [c.sha for c in snapshot.commits] == [head]


def test_more_than_250_commits_are_cut_and_said(builder: RepositoryBuilder) -> None:
    base = builder.commit("main", {"a": "0"})
    stream = "".join(
        f"commit refs/heads/main\nmark :{i}\ncommitter A <a@x.io> {1_767_300_000 + i} +0000\ndata 2\nm\n"
        f"from {base if i == 1 else f':{i - 1}'}\n"
        for i in range(1, 252)
    )
    subprocess.run(
        ["git", "-C", str(builder.path), "fast-import", "--quiet", "--force"],
        input=stream.encode(),
        check=True,
    )
    repository = Repository.open(builder.path)
    snapshot = repository.snapshot(repository.resolve(f"{base}..main"))
    assert (len(snapshot.commits), snapshot.commits_truncated) == (250, True)
    just = repository.snapshot(repository.resolve(f"{base}..main~1"))
    assert (len(just.commits), just.commits_truncated) == (250, False)


def test_a_shallow_clone_says_that_commits_may_be_missing(builder: RepositoryBuilder, tmp_path: Path) -> None:
    builder.commit("main", {"a": "1\n"})
    builder.commit("main", {"a": "2\n"})
    head = builder.commit("main", {"a": "3\n"})
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "--depth=2", f"file://{builder.path}", str(clone)], check=True)
    repository = Repository.open(clone)
    known = repository.snapshot(repository.resolve("HEAD~1..HEAD"))
    assert ([c.sha for c in known.commits], known.commits_truncated) == ([head], False)
    tree = subprocess.run(
        ["git", "-C", str(clone), "hash-object", "-t", "tree", "/dev/null"], capture_output=True, check=True
    )
    assert repository.snapshot(repository.resolve(f"{tree.stdout.decode().strip()}..HEAD")).commits_truncated


def test_two_git_processes_a_snapshot(builder: RepositoryBuilder) -> None:
    base = builder.commit("main", {"a": "1\n"})
    builder.commit("main", {f"f{i}": "1\n" for i in range(30)})
    repository = Repository.open(builder.path)
    range_ = repository.resolve(f"{base}..main")
    assert repository.meter.processes == 1
    assert len(repository.snapshot(range_).files) == 30
    assert repository.meter.processes == 3
    assert repository.meter.seconds > 0


TEXT = st.text(st.sampled_from("ab\n\r+- @\\\0"), max_size=60)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    before=st.dictionaries(st.sampled_from("abcde"), TEXT, max_size=4),
    after=st.dictionaries(st.sampled_from("abcdefg"), st.none() | TEXT, max_size=6),
)
def test_patches_hold_exactly_the_lines_that_were_counted(
    before: dict[str, str], after: dict[str, str | None], tmp_path_factory: pytest.TempPathFactory
) -> None:
    builder = RepositoryBuilder(path=tmp_path_factory.mktemp("any") / "r.git")
    snapshot = change(builder, before, after)
    assert snapshot.incomplete == ()
    for file in snapshot.files:
        lines = (file.patch or "").split("\n")
        assert sum(line.startswith("+") for line in lines) == file.additions
        assert sum(line.startswith("-") for line in lines) == file.deletions
        assert (file.patch is None) == (file.additions + file.deletions == 0)


# What follows feeds the reader directly: diffs too large to be worth making.

ZEROS = "0" * 40


def stream(
    paths: list[str], patch: Callable[[str], list[bytes]], chunk: int = 1 << 16
) -> Callable[[], bytes]:
    """A `git diff-tree` stream of added files, made while it is read."""

    def parts() -> list[Callable[[], list[bytes]]]:
        rows = [
            f":000000 100644 {ZEROS} {number:040x} A\0{path}\0".encode()
            for number, path in enumerate(paths, 1)
        ]
        counts = [f"3\t0\t{path}\0".encode() for path in paths]
        return [
            lambda: [*rows, *counts, b"\0"],
            *(lambda p=p, n=n: section(p, n) for n, p in enumerate(paths, 1)),
        ]

    def section(path: str, number: int) -> list[bytes]:
        header = f"diff --git a/{path} b/{path}\nnew file mode 100644\nindex {ZEROS}..{number:040x}\n"
        return [f"{header}--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,3 @@\n".encode(), *patch(path)]

    def pieces() -> Iterator[bytes]:
        for part in parts():
            for piece in part():
                for at in range(0, len(piece), chunk):
                    yield piece[at : at + chunk]

    source = pieces()
    return lambda: next(source, b"")


@pytest.mark.parametrize("chunk", [1, 7, 64, 1 << 16])
def test_where_the_stream_is_cut_makes_no_difference(chunk: int) -> None:
    files, incomplete = diff.read(
        stream(["a", "b", "c"], lambda p: [b"+diff --git \n+@@ \n+", p.encode(), b"\n"], chunk)
    )
    assert incomplete == ()
    assert [f.patch for f in files] == [f"@@ -0,0 +1,3 @@\n+diff --git \n+@@ \n+{p}" for p in "abc"]


@pytest.mark.parametrize("line", [b"+" + b"x" * 99 + b"\n", b"x" * (1 << 20)])
def test_a_file_of_200_megabytes_is_not_held(line: bytes) -> None:
    def patch(path: str) -> list[bytes]:
        if path != "huge":
            return [b"+1\n"]
        block = line * ((1 << 20) // len(line))
        return [b"+", *[block] * 200, b"\n"]

    tracemalloc.start()
    files, incomplete = diff.read(stream(["a", "huge", "z"], patch, chunk=1 << 18))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 << 20
    assert incomplete == ()
    assert [f.patch for f in files] == ["@@ -0,0 +1,3 @@\n+1", None, "@@ -0,0 +1,3 @@\n+1"]
    assert [f.additions for f in files] == [3, 3, 3]


def test_patches_stop_at_their_total_and_counts_do_not() -> None:
    block = b"+" + b"x" * (1 << 19) + b"\n"
    files, _ = diff.read(stream([f"f{i}" for i in range(100)], lambda _: [block]))
    held = [f for f in files if f.patch is not None]
    assert len(held) == diff.MAX_PATCHES_BYTES // (1 << 19) - 1
    assert files[: len(held)] == tuple(held)
    assert sum(f.additions for f in files) == 300


def test_too_many_files_are_said() -> None:
    files, incomplete = diff.read(stream([f"f{i}" for i in range(diff.MAX_FILES + 5)], lambda _: [b"+1\n"]))
    assert (len(files), incomplete) == (diff.MAX_FILES, ("too_many_files",))


def test_a_stream_that_ends_early_is_said() -> None:
    whole = b":000000 100644 " + b"0" * 40 + b" " + b"1" * 40 + b" A\0a\0"
    pieces = iter([whole, b""])
    files, incomplete = diff.read(lambda: next(pieces))
    assert ([f.path for f in files], incomplete) == (["a"], ("diff_refused",))


def test_a_patch_that_is_not_provably_of_its_file_is_dropped() -> None:
    read = stream(["a", "b"], lambda _: [b"+1\n"])
    everything = b"".join(iter(read, b"")).replace(
        b"index " + b"0" * 40 + b"..", b"index " + b"3" * 40 + b"..", 1
    )
    pieces = iter([everything, b""])
    files, _ = diff.read(lambda: next(pieces))
    assert [f.patch for f in files] == [None, None]


def test_a_log_that_is_cut_inside_a_commit_keeps_the_whole_ones() -> None:
    one = "\0".join(["1" * 40, "2" * 40, "A", "a@x", "C", "c@x", "message"])
    data = (one + "\0" + one[:60]).encode()
    commits, truncated = history.parse(data, whole=False)
    assert ([c.message for c in commits], truncated) == (["message"], True)
