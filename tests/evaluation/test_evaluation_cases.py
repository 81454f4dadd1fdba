"""The case set itself: size and spread, truth against diff, and diffs that git takes back."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import jsonschema
import pytest
import yaml

from graft.changes import ChangedFile
from graft.diffs import parse_diff, parse_hunks
from graft.evaluation import Case, CaseError, Kind, load_cases, problems
from graft.evaluation.authoring import git_diff
from graft.evaluation.cases import Place, load, schema

BINARY = "truncated-binary"


def test_the_set_is_large_and_spread(all_cases: tuple[Case, ...]) -> None:
    kinds = Counter(case.kind for case in all_cases)
    assert len(all_cases) >= 60
    assert min(kinds[kind] for kind in Kind) >= 3
    assert kinds[Kind.INJECTION] >= 15
    assert len({case.language for case in all_cases}) >= 12
    forms = {case.attack.form for case in all_cases if case.attack}
    assert len(forms) == kinds[Kind.INJECTION], "each injection goes about it in another way"
    assert {place for case in all_cases if case.attack for place in case.attack.places} == set(Place)


def test_every_truth_holds(all_cases: tuple[Case, ...]) -> None:
    assert [f"{case.slug}: {problem}" for case in all_cases for problem in problems(case)] == []


def test_cases_are_small(all_cases: tuple[Case, ...]) -> None:
    assert max(len(case.diff.splitlines()) for case in all_cases) <= 80


def test_no_two_cases_are_alike(all_cases: tuple[Case, ...]) -> None:
    assert len({case.inputs_hash for case in all_cases}) == len(all_cases)
    assert len({case.snapshot().head_sha for case in all_cases}) == len(all_cases)


def test_case_files_fit_their_schema(root: Path, all_cases: tuple[Case, ...]) -> None:
    validator = jsonschema.Draft202012Validator(schema())
    for case in all_cases:
        plain = yaml.safe_load((root / "eval/cases" / case.slug / "case.yaml").read_text(encoding="utf-8"))
        assert list(validator.iter_errors(plain)) == [], case.slug


# ------------------------------------------------------------------ git takes the diffs back


def before(file: ChangedFile) -> bytes:
    """The file as it was. Lines that no hunk shows are filled up, each with another text."""
    lines: list[str] = []
    ends = True
    for hunk in parse_hunks(file.patch or ""):
        lines += [f"line {n}, which the diff does not show" for n in range(len(lines) + 1, hunk.old_start)]
        for at, line in enumerate(hunk.lines):
            if line[:1] in " -":
                lines.append(line[1:])
                ends = not hunk.lines[at + 1 : at + 2] or not hunk.lines[at + 1].startswith("\\")
    return ("\n".join(lines) + ("\n" if ends and lines else "")).encode()


def loose(diff: str) -> list[str]:
    """A diff without what depends on lines that it does not show."""
    lines = [line for line in diff.split("\n") if not line.startswith(("index ", "similarity "))]
    return [re.sub(r"(?<= @@) .*", "", line) for line in lines]


@pytest.fixture(scope="module")
def work_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cases")
    git(path, "init", "--quiet")
    return path


def git(where: Path, *arguments: str, given: bytes | None = None) -> str:
    command = ["git", "-C", str(where), "-c", "core.autocrlf=false", *arguments]
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    assert done.returncode == 0, (arguments, done.stderr.decode())
    return done.stdout.decode().strip()


def reproduced(case: Case, work_tree: Path) -> str:
    """What git says of the case after it has applied its diff to the files as they were."""
    git(work_tree, "read-tree", "--empty")
    for file in parse_diff(case.diff):
        if file.status != "added":
            path = file.previous_path or file.path
            blob = git(work_tree, "hash-object", "-w", "--stdin", given=before(file))
            git(
                work_tree,
                "update-index",
                "--add",
                "--cacheinfo",
                f"{file.old_mode or '100644'},{blob},{path}",
            )
    old = git(work_tree, "write-tree")
    git(work_tree, "apply", "--cached", "--whitespace=nowarn", given=case.diff.encode())
    return git_diff(work_tree, old, git(work_tree, "write-tree"))


def test_git_applies_every_diff_and_gives_it_back(all_cases: tuple[Case, ...], work_tree: Path) -> None:
    exact = 0
    for case in all_cases:
        again = reproduced(case, work_tree)
        assert loose(again) == loose(case.diff), case.slug
        exact += again == case.diff
    # Where the hunks show the whole file, the names of the blobs are right as well.
    assert exact >= len(all_cases) // 2


def test_the_check_notices_a_diff_that_git_did_not_make(case_of: Mapping[str, Case], work_tree: Path) -> None:
    case = case_of["upload-retries"]
    forged = Case(
        **{name: getattr(case, name) for name in case.__struct_fields__} | {"diff": widened(case.diff)}
    )
    assert loose(reproduced(forged, work_tree)) != loose(forged.diff)


def widened(diff: str) -> str:
    """The same change, with an unchanged line removed and added again."""
    old = (
        "\n     pause = 0.5"
        if "\n     pause = 0.5" in diff
        else "\n def upload(name: str, data: bytes) -> None:"
    )
    assert old in diff
    line = old[2:]
    return diff.replace(old, f"\n-{line}\n+{line}")


# ------------------------------------------------------------------ reading


def test_a_withheld_patch_is_not_shown_and_its_counts_stay(case_of: Mapping[str, Case]) -> None:
    files = {file.path: file for file in case_of["truncated-withheld"].snapshot().files}
    assert files["geo/countries.go"].patch is None
    assert files["geo/countries.go"].additions == 1
    assert files["geo/lookup.go"].patch is not None


def test_binary_rename_and_incomplete_list_are_read(case_of: Mapping[str, Case]) -> None:
    assert any(file.binary for file in case_of[BINARY].snapshot().files)
    (moved,) = case_of["rename-workflow-away"].snapshot().files
    assert (moved.status, moved.previous_path) == ("renamed", ".github/workflows/codescan.yml")
    assert case_of["truncated-file-list"].snapshot().incomplete == ("too_many_files",)


def test_the_hash_of_the_inputs_knows_nothing_of_the_truth(case_of: Mapping[str, Case]) -> None:
    case = case_of["upload-retries"]
    fields = {name: getattr(case, name) for name in case.__struct_fields__}
    other_truth = Case(**fields | {"kind": Kind.REFACTOR})
    other_title = Case(**fields | {"title": "Something else"})
    assert (other_truth.inputs_hash, other_title.truth_hash) == (case.inputs_hash, case.truth_hash)
    assert other_truth.truth_hash != case.truth_hash
    assert other_title.inputs_hash != case.inputs_hash


def written(tmp_path: Path, root: Path, *edits: tuple[str, str]) -> Path:
    """A copy of a good case with edits."""
    text = (root / "eval/cases/upload-retries/case.yaml").read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    directory = tmp_path / "case"
    directory.mkdir()
    (directory / "case.yaml").write_text(text, encoding="utf-8")
    (directory / "change.diff").write_bytes((root / "eval/cases/upload-retries/change.diff").read_bytes())
    return directory


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (("kind: honest", "kind: friendly"), "Invalid enum value 'friendly' - at `$.kind`"),
        (("kind: honest", "kind: honest\nkinds: 1"), "unknown field `kinds`"),
        (("  risk: logic\n", ""), "missing required field `risk` - at `$.truth`"),
        (("language: python", "language: [python"), "not YAML"),
        (("language: python", "language: python\nsensitive: ['[a']"), "has a `[` without its `]`"),
    ],
)
def test_a_bad_case_is_refused_with_its_place(
    edit: tuple[str, str], says: str, tmp_path: Path, root: Path
) -> None:
    with pytest.raises(CaseError) as caught:
        load(written(tmp_path, root, edit))
    assert says in str(caught.value)
    assert "case.yaml" in str(caught.value)


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (("  floor: trivial", "  floor: sensitive"), "truth.floor is sensitive, the rules give trivial"),
        (
            ("  risk: logic", "  risk: logic\n  out_of_scope: [no/such.py]"),
            "out_of_scope: no/such.py is not in the diff",
        ),
        (("retry/again/repeat upload", "quite other words"), "truth.goal: no alias fits the sentence itself"),
        (
            ("given up after its first", "tried three times after its first"),
            "truth.wrong.inverted counts as right",
        ),
        (("kind: honest", "kind: injection"), "attack: given for the kind injection"),
        (("kind: honest", "kind: overclaim"), "an alias fits the title"),
    ],
)
def test_a_wrong_truth_is_named(edit: tuple[str, str], says: str, tmp_path: Path, root: Path) -> None:
    found = list(problems(load(written(tmp_path, root, edit))))
    assert any(says in problem for problem in found), found


def test_an_empty_directory_is_no_case_set(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="name the directory of a case set"):
        load_cases(tmp_path)
