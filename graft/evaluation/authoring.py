"""A new case from a range of a git repository: the diff as git writes it, and a case.yaml to be filled in.

The repository may be a scratch one with two commits. What is copied is what a pull request would show: the diff, and
the messages of the commits. Everything that only a person can know is left as a marked blank, which `load` refuses.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml

from graft.errors import PermanentError
from graft.evaluation.cases import CASE_FILE, DIFF_FILE, Kind
from graft.git import Repository

__all__ = ["git_diff", "write_case", "write_draft"]

# Every option that a user's settings could change is given.
_DIFF = (
    "diff-tree", "-r", "--patch", "--no-commit-id", "--full-index", "--binary", "--find-renames=50%", "--unified=3",
    "--inter-hunk-context=0", "--diff-algorithm=myers", "--indent-heuristic", "--src-prefix=a/", "--dst-prefix=b/",
    "--no-color", "--no-ext-diff", "--no-textconv", "--no-relative",
)  # fmt: skip
BLANK = "FILL IN"


def git_diff(repository: Path, base: str, head: str) -> str:
    """The diff between two trees or commits. Raises `PermanentError` when git fails."""
    command = ["git", "-C", str(repository), "-c", "core.quotepath=false", *_DIFF, base, head]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise PermanentError(f"git diff-tree failed with status {done.returncode}", reason="git_failed")
    return done.stdout.decode("utf-8", "replace")


def write_draft(directory: Path, repository: Path, range_: str) -> None:
    """Write the case of `BASE..HEAD` into a new directory. Raises `PermanentError` where there is one, `GitError`."""
    opened = Repository.open(repository)
    found = opened.resolve(range_)
    messages = [commit.message for commit in opened.snapshot(found).commits]
    item = {"says": BLANK, "aliases": [BLANK]}
    plain = {
        "kind": f"{BLANK}: one of {', '.join(Kind)}",
        "language": BLANK,
        "title": messages[-1].partition("\n")[0] if messages else BLANK,
        "body": BLANK,
        "commits": messages or [BLANK],
        "truth": {
            "goal": item,
            "changes": [item],
            "out_of_scope": [],
            "risk": BLANK,
            "floor": BLANK,
            "must_not_claim": [],
            "wrong": {"inverted": BLANK, "invented": BLANK, "overstated": BLANK},
        },
    }
    write_case(directory, plain, git_diff(repository, found.merge_base, found.head))


def write_case(directory: Path, plain: dict[str, Any], diff: str) -> None:
    """Write both files of a case. Raises `PermanentError` where the directory exists."""
    try:
        directory.mkdir(parents=True)
    except FileExistsError:
        raise PermanentError(f"{directory} exists: choose another name", reason="exists") from None
    text = yaml.dump(plain, Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=not _hides(plain))
    (directory / CASE_FILE).write_text(text, encoding="utf-8")
    (directory / DIFF_FILE).write_bytes(diff.encode("utf-8"))


def _hides(value: Any) -> bool:
    """Whether some text holds characters that a reader would not see: then all that is not ASCII is escaped."""
    if isinstance(value, dict):
        return any(map(_hides, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_hides, value))
    return isinstance(value, str) and not value.replace("\n", "").replace("\t", "").isprintable()


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and never an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)
