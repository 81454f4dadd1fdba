"""The rules of the house that an import linter cannot see: where SQL and clients may be, and what stays out."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted([*(ROOT / "graft").rglob("*.py"), *(ROOT / "actors").rglob("*.py")])
SQL = re.compile(
    r"^\s*(SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM|WITH \w+ AS|CREATE TABLE)\b", re.MULTILINE
)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def strings(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def test_sql_lives_in_the_store() -> None:
    inside = [name(p) for p in SOURCES if any(SQL.search(s) for s in strings(p))]
    assert inside, "the pattern must find the store itself"
    assert [n for n in inside if not n.startswith("graft/store/") and n != "graft/database.py"] == []


@pytest.mark.parametrize(
    ("call", "home"),
    [
        (r"\bAsyncAnthropic\(", "graft/llm/"),
        (r"\bClientSession\(", "graft/github/"),
        (r"\bcreate_pool\(", "graft/database.py"),
        (r"\bos\.environ\b", "graft/cli/"),
    ],
)
def test_each_client_is_built_in_one_place(call: str, home: str) -> None:
    users = [name(p) for p in SOURCES if re.search(call, p.read_text(encoding="utf-8"))]
    # The simulator plays GitHub and posts webhooks itself; a git or a judge's subprocess inherits its variables.
    allowed = (home, "graft/simulator/", "graft/git/", "graft/records/", "graft/embedded")
    assert [u for u in users if not u.startswith(allowed)] == []


@pytest.mark.parametrize("module", ["graft.policy", "graft.provenance", "graft.records", "graft.intent"])
def test_capabilities_load_with_an_empty_environment_and_no_network_library(module: str) -> None:
    code = (
        f"import {module}, sys;"
        "heavy = {'aiohttp', 'anthropic', 'asyncpg', 'nats'} & set(sys.modules);"
        "sys.exit(f'loaded {sorted(heavy)}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={}, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_no_module_hides_a_second_idea() -> None:
    long = {name(p): n for p in SOURCES if (n := len(p.read_text(encoding="utf-8").splitlines())) > 500}
    assert long == {}
