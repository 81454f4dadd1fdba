"""A small valid repository with laws a and b, and the tools that tests change it with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from graft.records import bend, canonical, check, judging, receipts
from graft.records.files import DiskTree
from graft.records.judges import ScriptedJudge
from graft.records.report import Report
from graft.records.repository import load

RECORD_ID = "0001-letters"
RECORD = f"""# Letters

id: {RECORD_ID}
status: approved
context: ./CONTEXT.md

## Intent

Say which letter follows.

## Vocabulary

See CONTEXT.md.

## Rules

R1: The first letter is a.
R2: The second letter is b.

## Worked examples

- first: a

## Freedoms

None

## Non-goals

None

## Open questions

None

## Approval

approved-by: Ada Lovelace
"""
LAWS = """# What is claimed.
import Base

def twice(x: Nat) -> Nat:
  x

# R1
law a:
  {twice(1n) == 1n : Nat}

# R2
law b:
  {2n == 2n : Nat}
"""
PROOF = """import Base
import ./LAWS.bend as M

def M.a():
  {==}

def M.b():
  {==}
"""
NEGATIVE = """# expect-failure: M.{law}
import Base
import ../LAWS.bend as M

def M.{law}():
  {{True{{}} : Bool}}
"""
ANSWERS: dict[str, Any] = {"coverage": {"R1": "a", "R2": "b"}, "fidelity": {"a": 0.95, "b": 1.0}}


class Repo:
    """A repository on disk. Paths are relative to it; texts are written byte for byte."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.record_id = RECORD_ID

    @property
    def record_path(self) -> str:
        return f".intent/records/{self.record_id}.md"

    @property
    def receipt_path(self) -> str:
        return f".intent/receipts/{self.record_id}.json"

    def write(self, path: str, text: str | bytes) -> None:
        full = self.root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(text.encode() if isinstance(text, str) else text)

    def read(self, path: str) -> str:
        return (self.root / path).read_bytes().decode()

    def edit(self, path: str, old: str, new: str) -> None:
        text = self.read(path)
        assert old in text, f"{old!r} is not in {path}"
        self.write(path, text.replace(old, new))

    def remove(self, path: str) -> None:
        (self.root / path).unlink()

    @property
    def tree(self) -> DiskTree:
        return DiskTree(self.root)

    def files(self) -> dict[str, bytes]:
        """Everything but git's own files, as a pull request's side."""
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and ".git/" not in str(path.relative_to(self.root)) + "/"
        }

    def check(self, only: str = "") -> Report:
        return check.run(self.tree, None, only)

    def approve_laws(self) -> None:
        self.write(".intent/model/laws.sha256", canonical.sha256(self.read(".intent/model/LAWS.bend")) + "\n")

    def judge(
        self, answers: Mapping[str, Any] | None = None, *, model: str = "scripted/test-20261101"
    ) -> None:
        """Write a fresh receipt by the scripted judge."""
        given = answers or ANSWERS
        intent = load(self.tree)
        record = intent.records[self.record_id]
        assert intent.laws is not None, intent.laws_problems
        resolution = intent.resolution(record)
        assert not resolution.problems, resolution.problems
        judge = ScriptedJudge(given["coverage"], given["fidelity"])
        fields = judging.produce(record, intent.laws, resolution.modules, model, judge)
        self.write(self.receipt_path, receipts.encode(fields))

    def receipt(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.read(self.receipt_path))
        return value

    def reseal(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Edit the receipt and seal it again, as a careful forger would."""
        value = self.receipt()
        change(value)
        value.pop("integrity", None)
        self.write(self.receipt_path, receipts.encode(value))

    def script(self, path: str, body: str) -> list[str]:
        """A Python program and the argv that runs it."""
        self.write(path, body)
        return [sys.executable, path]

    def manifest(self, **changes: Any) -> None:
        """A conformance manifest with one check over both laws."""
        rows = "print('one a')\nprint('two b')\n"
        check_: dict[str, Any] = {
            "name": "letters",
            "laws": ["a", "b"],
            "model": self.script(".intent/oracle/model.py", rows),
            "real": self.script(".intent/oracle/real.py", rows),
            "broken": self.script(".intent/oracle/broken.py", rows.replace("two b", "two a")),
        }
        check_.update(changes)
        self.write(".intent/conform.json", json.dumps({"schema": 1, "checks": [check_]}))

    def git(self, *arguments: str) -> str:
        env = {
            **os.environ,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_AUTHOR_NAME": "t",
            "GIT_AUTHOR_EMAIL": "t@example.org",
            "GIT_COMMITTER_NAME": "t",
            "GIT_COMMITTER_EMAIL": "t@example.org",
        }
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env=env, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self, message: str = "change") -> str:
        if not (self.root / ".git").exists():
            self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """The valid fixture: approved record, laws a and b, proofs, negatives, approval and receipt; no manifest."""
    made = Repo(tmp_path / "repo")
    made.write("CONTEXT.md", "# Words\n")
    made.write(made.record_path, RECORD)
    made.write(".intent/model/LAWS.bend", LAWS)
    made.write(".intent/model/PROOF.bend", PROOF)
    for law in ("a", "b"):
        made.write(f".intent/model/neg/{law}.bend", NEGATIVE.format(law=law))
    made.approve_laws()
    made.judge()
    return made


MODULES = """## Modules

- first: R1; laws: a
- second: R2; laws: b*
"""


@pytest.fixture
def modular(repo: Repo) -> Repo:
    """The valid fixture with two modules and a schema 2 receipt."""
    repo.edit(repo.record_path, "## Worked examples", MODULES + "\n## Worked examples")
    repo.judge()
    return repo


def standin_env(folder: Path, **extra: str) -> dict[str, str]:
    """An environment whose `bend` is the stand-in."""
    folder.mkdir(parents=True, exist_ok=True)
    source = (Path(__file__).parent / "standin_bend.py").read_text(encoding="utf-8")
    program = folder / "bend"
    program.write_text(f"#!{sys.executable} -I\n{source}", encoding="utf-8")
    program.chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {"PATH": path, "HOME": str(folder), **extra}


@pytest.fixture(params=["stand-in", "real"])
def bend_env(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """The environment for Bend: the stand-in always, and a real Bend where one is found."""
    if request.param == "stand-in":
        return standin_env(tmp_path / "bin")
    found = bend.locate(os.environ)
    if not found:
        pytest.skip("no real Bend here (BEND_BIN, PATH, ~/.bend/bin)")
    return {**os.environ, "BEND_BIN": found}


@pytest.fixture
def standin(tmp_path: Path) -> dict[str, str]:
    """The environment with the stand-in, for what only it can be made to do."""
    return standin_env(tmp_path / "bin")


def codes(report: Report) -> list[str]:
    return [problem.code for problem in report.problems]


@pytest.fixture
def standin_with(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """An environment with the stand-in and further variables."""

    def make(**extra: str) -> dict[str, str]:
        return standin_env(tmp_path / "bin", **extra)

    return make
