"""Vendored scripts: one file each, without dependencies, Python 3.9 and later, with a header that shows drift."""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import graft
from graft.records import headers, vendor

CORE = Path(vendor.__file__).parent


def interpreters() -> list[str]:
    """The oldest Python that is promised, where it is found, and the running one."""
    candidates = sorted(
        Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/3.9.*/bin/python")
    )
    found = [str(path) for path in candidates[-1:]]
    if not found:
        named = shutil.which("python3.9")
        works = (
            named and subprocess.run([named, "--version"], capture_output=True, check=False).returncode == 0
        )
        found = [str(named)] if works else []
    return found


@pytest.fixture(params=["running", "3.9"])
def python(request: pytest.FixtureRequest) -> str:
    if request.param == "running":
        return sys.executable
    found = interpreters()
    if not found:
        pytest.skip("no Python 3.9 here")
    return found[0]


def script(
    repo: Any, python: str, command: str, *arguments: str, cwd: Path | None = None
) -> tuple[int, str, str]:
    """Run a vendored script isolated, so that nothing installed and no sibling file is seen."""
    path = repo.root / ".intent/tools" / headers.script_name(command)
    env = {"PATH": os.environ["PATH"], "HOME": str(repo.root)}
    done = subprocess.run(
        [python, "-I", "-W", "error", str(path), *arguments],
        cwd=cwd or repo.root,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All scripts, written once for this module."""
    root = tmp_path_factory.mktemp("scripts")
    assert vendor.run(root).exit == 0
    return root / ".intent/tools"


@pytest.fixture
def vendored(repo: Any, scripts: Path) -> Any:
    repo.manifest()
    shutil.copytree(scripts, repo.root / ".intent/tools")
    return repo


def test_one_script_a_command_with_header_and_hash(vendored: Any) -> None:
    names = sorted(path.name for path in (vendored.root / ".intent/tools").iterdir())
    assert names == sorted(headers.NAMES)
    for name in names:
        data = (vendored.root / ".intent/tools" / name).read_bytes()
        shebang, header, rest = data.split(b"\n", 2)
        assert shebang == b"#!/usr/bin/env python3"
        digest = hashlib.sha256(shebang + b"\n" + rest).hexdigest()
        assert header.decode() == f"# graft-records v{graft.__version__} sha256={digest}"
        assert os.access(vendored.root / ".intent/tools" / name, os.X_OK)


def test_the_version_is_that_of_graft() -> None:
    assert graft.__version__ == headers.VERSION


@pytest.mark.parametrize("command", headers.COMMANDS)
def test_every_script_explains_itself(vendored: Any, python: str, command: str) -> None:
    status, out, err = script(vendored, python, command, "--help")
    assert (status, err) == (0, "")
    assert f"usage: graft records {command}" in out
    assert "--json" in out


def test_check_inventory_impact_and_conform_work_alone(vendored: Any, python: str) -> None:
    for command in ("check", "inventory", "conform", "impact"):
        status, out, err = script(vendored, python, command, str(vendored.root))
        assert (status, err) == (0, ""), (command, out)
        assert out.endswith(f"graft records {command}: pass\n")
    vendored.remove(vendored.receipt_path)
    assert script(vendored, python, "check")[0] == 2


def test_gate_says_that_bend_is_missing_or_passes(vendored: Any, python: str) -> None:
    status, out, _ = script(vendored, python, "gate")
    assert status == 0 or "bend-missing" in out


def test_receipt_offers_scripted_and_dry_run_and_names_the_package_otherwise(
    vendored: Any, python: str
) -> None:
    status, out, _ = script(vendored, python, "receipt", "0001-letters", "jev-1.13", "--dry-run")
    assert status == 0
    assert "nothing was sent" in out
    status, out, _ = script(vendored, python, "receipt", "0001-letters", "jev-1.13")
    assert status == 2
    assert "typesafe-sdk and TYPESAFE_API_KEY" in out
    vendored.write("answers.json", '{"coverage": {"R1": "a", "R2": "b"}, "fidelity": {"a": 1, "b": 1}}')
    status, out, _ = script(
        vendored, python, "receipt", "0001-letters", "scripted/x", "--answers", "answers.json"
    )
    assert status == 0, out


def test_a_receipt_made_by_a_vendored_script_is_the_same(vendored: Any, python: str) -> None:
    vendored.write("answers.json", '{"coverage": {"R1": "a", "R2": "b"}, "fidelity": {"a": 0.95, "b": 1}}')
    assert (
        script(
            vendored, python, "receipt", "0001-letters", "scripted/test-20261101", "--answers", "answers.json"
        )[0]
        == 0
    )
    made = vendored.read(vendored.receipt_path)
    vendored.judge()
    assert vendored.read(vendored.receipt_path) == made


def test_init_and_vendor_work_alone(vendored: Any, python: str, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    assert script(vendored, python, "init", str(fresh))[0] == 0
    assert script(vendored, python, "vendor", str(fresh))[0] == 0
    for name in headers.NAMES:
        assert (fresh / ".intent/tools" / name).read_bytes() == (
            vendored.root / ".intent/tools" / name
        ).read_bytes()
    assert script(vendored, python, "check", str(fresh))[0] == 0


def test_enums_work_alone(vendored: Any, python: str) -> None:
    vendored.write(
        ".intent/model/enums.json", '{"schema": 1, "enums": [{"name": "T", "members": {"A": "a"}}]}'
    )
    status, out, _ = script(vendored, python, "enums")
    assert status == 0
    assert "type T is Data:" in out


def test_usage_errors_exit_2(vendored: Any, python: str) -> None:
    assert script(vendored, python, "check", "--no-such-option")[0] == 2
    assert script(vendored, python, "receipt", "one")[0] == 2
    assert script(vendored, python, "check", "no-such-directory")[0] == 2


# --- drift --------------------------------------------------------------------------------------------------


def drift(repo: Any) -> list[tuple[str, str]]:
    return [(problem.code, problem.path) for problem in headers.drift(repo.tree)]


def test_an_edited_script_is_found_by_check_and_by_itself(vendored: Any) -> None:
    path = ".intent/tools/graft_check.py"
    vendored.write(path, vendored.read(path) + "\n# edited\n")
    assert drift(vendored) == [("vendored-drift", path)]
    report = vendored.check()
    assert report.exit == 1
    assert report.problems[0].repair.startswith("Run `graft records vendor`")
    status, out, _ = script(vendored, sys.executable, "check")
    assert status == 1
    assert "the running script differs" in out


def test_a_script_outside_the_repository_checks_its_own_header(vendored: Any, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / ".intent" / "tools"
    other.mkdir(parents=True)
    text = vendored.read(".intent/tools/graft_check.py")
    (other / "graft_check.py").write_text(text.replace("v0.", "v1.", 1) + "#\n")
    moved = type(vendored)(tmp_path / "elsewhere")
    status, out, _ = script(moved, sys.executable, "check", str(vendored.root))
    assert status == 1
    assert "the running script differs" in out


def test_a_missing_header_and_mixed_versions_are_drift(vendored: Any) -> None:
    path = ".intent/tools/graft_gate.py"
    lines = vendored.read(path).split("\n")
    vendored.write(path, "\n".join(lines[:1] + lines[2:]))
    assert drift(vendored) == [("vendored-drift", path)]
    body = ("\n".join(lines[:1] + lines[2:])).encode()
    vendored.write(path, headers.seal(body, "0.0.9"))
    assert drift(vendored) == [("vendored-drift", ".intent/tools")]


def test_foreign_files_are_ignored_and_left_alone(vendored: Any) -> None:
    vendored.write(".intent/tools/intent-check.mjs", "// pi-intent v0.3 sha256=0\n")
    vendored.write(".intent/tools/mine.py", "print('app tool')\n")
    (vendored.root / ".intent/tools/folder").mkdir()
    (vendored.root / ".intent/tools/link.py").symlink_to("mine.py")
    assert drift(vendored) == []
    assert vendor.run(vendored.root).exit == 0
    assert vendored.read(".intent/tools/mine.py") == "print('app tool')\n"
    assert vendored.read(".intent/tools/intent-check.mjs").startswith("// pi-intent")


def test_a_foreign_file_with_one_of_our_names_is_not_replaced(repo: Any) -> None:
    repo.write(".intent/tools/graft_check.py", "print('mine')\n")
    report = vendor.run(repo.root)
    assert [problem.code for problem in report.problems] == ["exists"]
    assert repo.read(".intent/tools/graft_check.py") == "print('mine')\n"
    assert (repo.root / ".intent/tools/graft_gate.py").exists()


def test_local_edits_are_replaced_and_named(vendored: Any) -> None:
    path = ".intent/tools/graft_check.py"
    before = vendored.read(path)
    vendored.write(path, before + "# edited\n")
    report = vendor.run(vendored.root)
    assert report.exit == 0
    assert [note.path for note in report.notes] == [path]
    assert vendored.read(path) == before


def test_nothing_is_written_through_a_symlink(repo: Any, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (repo.root / ".intent/tools").symlink_to(tmp_path / "target")
    assert vendor.run(repo.root).exit == 2
    assert list((tmp_path / "target").iterdir()) == []


def test_headers_with_windows_line_ends_are_drift(vendored: Any) -> None:
    path = ".intent/tools/graft_check.py"
    vendored.write(path, vendored.read(path).replace("\n", "\r\n"))
    assert drift(vendored) == [("vendored-drift", path)]


# --- the core stays free of dependencies --------------------------------------------------------------------

VENDORED = vendor.closure([*headers.COMMANDS.values(), "entry"])


@pytest.mark.parametrize("name", [*VENDORED, "approve", "projection", "persons", "review"])
def test_the_core_imports_only_itself_and_the_standard_library_and_is_python_3_9(name: str) -> None:
    source = (CORE / f"{name}.py").read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 9))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert all(alias.name.split(".")[0] in sys.stdlib_module_names for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 1 or str(node.module).split(".")[0] in sys.stdlib_module_names
    assert "'''" not in source


def test_network_and_markdown_are_not_vendored() -> None:
    assert not {"network", "section"} & set(VENDORED)
