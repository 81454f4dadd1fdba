"""The threat model names tests, and they exist; it leaves no boundary out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
NAMED = re.compile(r"`(tests/[\w/]+\.py::\w+)`")
BOUNDARIES = (
    "Webhook",
    "GitHub's data",
    "Repository files",
    "Model",
    "NATS",
    "Postgres",
    "Operator",
    "Supply chain",
)


def threats() -> dict[str, list[list[str]]]:
    """The rows of the threat model by boundary."""
    model = PAGE.split("## Threat model\n", 1)[1].split("\n## ", 1)[0]
    sections = dict(part.split("\n", 1) for part in model.split("\n### ")[1:])
    return {
        name: [
            [cell.strip() for cell in line.strip("|").split(" | ")]
            for line in text.splitlines()
            if line.startswith("| ") and "::" in line
        ]
        for name, text in sections.items()
    }


def collected(names: list[str], directory: Path = ROOT) -> str:
    """What pytest says about collecting these node ids; empty when all exist."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:randomly",
         "-p", "no:xdist", "--rootdir", str(directory), *names],
        cwd=directory, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    return "" if done.returncode == 0 else done.stdout[-2_000:] + done.stderr[-2_000:]


def test_every_boundary_is_there_and_every_threat_names_a_test() -> None:
    found = threats()
    assert tuple(found) == BOUNDARIES
    for name, rows in found.items():
        assert len(rows) >= 3, name
        for row in rows:
            assert len(row) == 3, row
            assert all(row), row
            assert NAMED.findall(row[2]), row


@pytest.mark.timeout(180)
def test_every_test_that_is_named_exists() -> None:
    names = sorted(set(NAMED.findall(PAGE)))
    assert len(names) > 50
    assert collected(names) == ""


def test_a_test_that_does_not_exist_is_seen(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_here() -> None:\n    pass\n")
    assert collected(["test_one.py::test_here"], tmp_path) == ""
    assert "test_gone" in collected(["test_one.py::test_here", "test_one.py::test_gone"], tmp_path)


def test_nothing_is_named_in_a_way_that_is_not_checked() -> None:
    assert len(re.findall(r"tests/[\w/]+\.py::", PAGE)) == len(NAMED.findall(PAGE))


def test_the_tables_have_their_places() -> None:
    for name in ("ingress", "canaries", "hostile"):
        assert f"<!-- table:{name} -->" in PAGE
