"""`graft review` of a very large diff, in a process of its own: how much memory it takes at most.

`python -m bench.big_diff REPO RANGE` reviews a range and prints its own peak and the largest of the git processes it
started, in bytes.
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
from pathlib import Path

import msgspec

from bench.tables import ROOT

_LINE = 100
_FILE = 500_000


class Peak(msgspec.Struct, frozen=True, kw_only=True):
    """The most memory that was resident at a time, in bytes; what is there before the review is in it."""

    own: int
    git: int
    before: int


def build(directory: Path, *, size: int) -> str:
    """Make a repository whose last commit adds about `size` bytes of text; returns the range. Its files are of half a
    megabyte each: larger ones would not be held at all."""
    files = max(1, size // _FILE)
    chance = random.Random(7)
    _git(directory, "init", "--quiet", "--initial-branch=main")
    (directory / "README.md").write_text("big\n")
    _commit(directory, "Start")
    lines = [f"{chance.getrandbits(4 * (_LINE - 1)):0{_LINE - 1}x}\n" for _ in range(_FILE // _LINE // 5)]
    for number in range(files):
        with (directory / f"data{number}.txt").open("w") as file:
            for start in range(5):
                file.write(f"# part {start}\n")
                file.writelines(lines)
    _commit(directory, "Add a lot")
    return "main~1..main"


def measure(directory: Path, text: str) -> Peak:
    """Review the range in another process."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.big_diff", str(directory), text],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=600,
    )
    return msgspec.json.decode(done.stdout, type=Peak)


def _commit(directory: Path, message: str) -> None:
    _git(directory, "add", ".")
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com", "-c", "commit.gpgsign=false")
    _git(directory, *who, "commit", "--quiet", "--message", message)


def _git(directory: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-C", str(directory), *arguments], check=True, env={**os.environ, "HOME": str(directory)}
    )


def _peak(who: int) -> int:
    return resource.getrusage(who).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main(argv: list[str]) -> int:
    from graft.cli.review import analyse
    from graft.cli.review_document import document
    from graft.git import Repository

    repository, text = argv
    before = _peak(resource.RUSAGE_SELF)
    made = msgspec.json.encode(document(analyse(Repository.open(repository), text)))
    assert made
    peak = Peak(own=_peak(resource.RUSAGE_SELF), git=_peak(resource.RUSAGE_CHILDREN), before=before)
    sys.stdout.buffer.write(msgspec.json.encode(peak))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
