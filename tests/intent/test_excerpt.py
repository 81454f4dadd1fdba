from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft.changes import ChangedFile
from graft.intent.excerpt import Excerpt, Omission, cut_to, fit
from graft.intent.floor import file_risk
from graft.llm import estimate_tokens
from graft.risk import Risk


def patch_of(removed: int = 0, added: int = 0, context: int = 0, text: str = "line") -> str:
    body = [f" {text} c{n}" for n in range(context)]
    body += [f"-{text} r{n}" for n in range(removed)]
    body += [f"+{text} a{n}" for n in range(added)]
    return "\n".join([f"@@ -1,{context + removed} +1,{context + added} @@", *body])


def changed(path: str, removed: int = 0, added: int = 1, context: int = 0, **fields: object) -> ChangedFile:
    given = {
        "status": "modified",
        "additions": added,
        "deletions": removed,
        "patch": patch_of(removed, added, context),
    } | fields
    return ChangedFile(path=path, **given)  # type: ignore[arg-type]


def excerpt(*files: ChangedFile, room: int = 100_000) -> Excerpt:
    return cut_to(files, risk_of=file_risk, room=room)


def test_a_small_change_is_shown_whole() -> None:
    file = changed("a.py", removed=2, added=3, context=4)
    made = excerpt(file)
    assert made.text == f"=== a.py (modified, +3 -2)\n{file.patch}"
    assert made.omissions == ()


def test_the_weightiest_files_come_first() -> None:
    made = excerpt(changed("a.py"), changed("t_test.go", removed=10), changed("go.mod"), changed("b.py"))
    order = [line.split()[1] for line in made.text.split("\n") if line.startswith("===")]
    assert order == ["go.mod", "t_test.go", "a.py", "b.py"]


def test_what_cannot_be_shown_is_named() -> None:
    made = excerpt(
        changed("logo.png", binary=True, patch=None, additions=0),
        changed("package-lock.json", added=5),
        changed("big.py", patch=None, additions=9000),
        changed("zero.py", patch=None, additions=0),
    )
    assert sorted(made.omissions) == [
        Omission("big.py", "no_patch"),
        Omission("logo.png", "binary"),
        Omission("package-lock.json", "generated"),
        Omission("zero.py", "no_patch"),
    ]
    for path in ("logo.png", "package-lock.json", "big.py", "zero.py"):
        assert path in made.text
    assert "line a" not in made.text


def test_a_deleted_generated_file_is_shown() -> None:
    made = excerpt(changed("x.generated.py", removed=2, added=0, status="removed"))
    assert "line r1" in made.text
    assert made.omissions == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "renamed", "previous_path": "old.py"},
        {"status": "copied", "previous_path": "old.py"},
        {"status": "unchanged"},
        {"old_mode": "100644", "new_mode": "100755", "status": "changed"},
        {"status": "added", "blob_sha": "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"},
        {"status": "added", "new_mode": "100644"},
        {"status": "removed", "old_mode": "100644"},
    ],
)
def test_nothing_is_missing_where_there_is_no_content(fields: dict[str, Any]) -> None:
    made = excerpt(changed("a.py", patch=None, additions=0, **fields))
    assert made.omissions == ()
    if "previous_path" in fields:
        assert "from old.py" in made.text
    if "old_mode" in fields and "new_mode" in fields:
        assert "mode 100644 to 100755" in made.text


def test_a_huge_file_does_not_push_the_others_out() -> None:
    small = [changed(f"{n}.py", removed=1, added=1, context=1) for n in range(10)]
    made = excerpt(changed("huge.py", added=50_000), *small, room=20_000)
    for file in small:
        assert file.patch is not None
        assert file.patch in made.text
    assert "line a0" in made.text
    assert made.omissions == (Omission("huge.py", "cut"),)
    assert len(made.text) <= 20_000 + 200


def test_context_goes_before_added_lines_and_removed_lines_stay() -> None:
    file = changed("a.py", removed=20, added=20, context=4_000)
    made = excerpt(file, room=3_000)
    assert all(f"-line r{n}" in made.text for n in range(20))
    assert all(f"+line a{n}" in made.text for n in range(20))
    assert " line c" not in made.text
    assert made.omissions == (Omission("a.py", "cut"),)


def test_removed_lines_are_not_dropped_for_added_ones_of_any_file() -> None:
    files = [
        changed("go.mod", added=5_000),
        changed("a.py", removed=100, added=5_000),
        changed("b.py", added=5_000),
    ]
    made = excerpt(*files, room=8_000)
    assert all(f"-line r{n}" in made.text for n in range(100))


def test_more_removed_lines_than_fit_are_shared() -> None:
    made = excerpt(changed("a.py", removed=5_000), changed("b.py", removed=30), room=6_000)
    assert all(f"-line r{n}" in made.text for n in range(30))
    assert made.text.count("-line") < 1_000
    assert Omission("a.py", "cut") in made.omissions


def test_every_hunk_of_a_cut_file_keeps_a_part() -> None:
    patch = "\n".join(
        f"@@ -{n}00,1 +{n}00,400 @@\n-old {n}\n" + "\n".join(f"+new {n} {m}" for m in range(400))
        for n in (1, 2, 3)
    )
    made = excerpt(changed("a.py", patch=patch, additions=1200), room=4_000)
    for n in (1, 2, 3):
        assert f"-old {n}" in made.text
        assert f"+new {n} 0" in made.text
        assert f"@@ -{n}00 +{n}00 @@" in made.text
    assert "changed lines not shown" in made.text


def test_a_line_that_is_too_long_is_cut_and_said() -> None:
    made = excerpt(changed("a.js", patch=patch_of(added=1, text="x" * 5_000)))
    assert made.omissions == (Omission("a.js", "cut"),)
    assert len(made.text) < 2_200


def test_very_many_files() -> None:
    made = excerpt(*(changed(f"{n}.py") for n in range(600)), changed("go.mod"), room=10_000_000)
    assert [o.why for o in made.omissions] == ["too_many_files"] * 101
    assert made.text.startswith("=== go.mod")


def test_a_patch_that_is_no_patch_does_not_raise() -> None:
    made = excerpt(changed("a.py", patch="garbage\n" * 5_000), room=1_000)
    assert made.omissions == (Omission("a.py", "cut"),)


def test_the_representation_shows_nothing() -> None:
    assert "line" not in repr(excerpt(changed("a.py")))


async def test_the_estimate_keeps_the_budget() -> None:
    made = await fit([changed("a.py", added=20_000)], risk_of=file_risk, tokens=2_000)
    assert 1_500 < estimate_tokens(made.text) <= 2_050


@pytest.mark.parametrize("ratio", [0.1, 0.3, 0.5, 1.0])
async def test_the_services_count_is_kept_and_used(ratio: float) -> None:
    asked = 0

    async def count(text: str) -> int:
        nonlocal asked
        asked += 1
        return int(len(text) * ratio)

    made = await fit([changed("a.py", added=40_000)], risk_of=file_risk, tokens=5_000, count=count)
    assert 2_500 < len(made.text) * ratio <= 5_000
    assert asked <= 6


async def test_a_service_that_cannot_count() -> None:
    async def count(text: str) -> None:
        return None

    files = [changed("a.py", added=20_000)]
    assert await fit(files, risk_of=file_risk, tokens=900, count=count) == await fit(
        files, risk_of=file_risk, tokens=900
    )


lines = st.text(st.sampled_from("ab é@+-\\\r\u2028"), max_size=30)
patches = st.lists(
    st.tuples(st.lists(lines, max_size=5), st.lists(lines, max_size=5)), max_size=3
).map(
    lambda hunks: "\n".join(
        "\n".join([f"@@ -1,{len(o)} +1,{len(n)} @@", *(f"-{x}" for x in o), *(f"+{x}" for x in n)])
        for o, n in hunks
    )
    or None
)  # fmt: skip


@given(st.lists(st.tuples(st.text(max_size=9), patches, st.booleans()), max_size=6), st.integers(0, 1_500))
def test_whatever_is_missing_is_listed(rows: list[tuple[str, str | None, bool]], room: int) -> None:
    files = [
        ChangedFile(
            path=f"{n}{name}",
            status="modified",
            patch=None if binary else patch,
            binary=binary,
            additions=sum(line.startswith("+") for line in (patch or "").split("\n")),
        )
        for n, (name, patch, binary) in enumerate(rows)
    ]
    made = cut_to(files, risk_of=lambda f: Risk.TRIVIAL, room=room)
    listed = {o.path for o in made.omissions}
    for file in files:
        assert f"=== {file.path} (" in made.text
        assert file.path in listed or (file.patch is not None and file.patch in made.text)
    headers = sum(
        len(line.encode("utf-8", "replace")) for line in made.text.split("\n") if line.startswith("===")
    )
    assert len(made.text.encode("utf-8", "replace")) <= headers + room + 200 * len(files)


def test_a_large_diff_is_quick() -> None:
    files = [changed(f"{n}.py", removed=20, added=200, context=60) for n in range(400)]
    begin = time.process_time()
    excerpt(*files, room=150_000)
    excerpt(changed("one.py", added=300_000), room=150_000)
    assert time.process_time() - begin < 3
