"""`python -m bench review --repo PATH`: `graft review` over consecutive commits of a repository, one by one.

Every commit is reviewed against its first parent (a first commit against the empty tree), in this process and as
far as the JSON text. The time spent waiting for git is measured apart; what counts is the rest.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import subprocess
import sys
import time

import msgspec

from graft.cli.review import analyse
from graft.cli.review_document import document
from graft.git import Repository


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """One review, in milliseconds: Graft's own time, git's, and what the commit was."""

    own: float
    git: float
    commit: str
    files: int
    lines: int


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench review", description=__doc__.split("\n")[0])
    parser.add_argument("--repo", default=".", help="a clone with its history (default: this directory)")
    parser.add_argument("--head", default="HEAD", help="the newest commit (default: HEAD)")
    parser.add_argument("--commits", type=int, default=500, help="how many commits (default: 500)")
    given = parser.parse_args(argv)
    repository = Repository.open(given.repo)
    commits = history(given.repo, repository.commit(given.head), given.commits)
    empty_tree = _git(given.repo, "hash-object", "-t", "tree", "--stdin")
    ranges = [f"{parent or empty_tree}..{commit}" for commit, parent in commits]
    review(repository, ranges[0])  # imports, caches and git's own warm-up are not what is measured
    timings = [review(repository, text) for text in ranges]
    print(report(timings))
    return 0


def history(repo: str, head: str, count: int) -> list[tuple[str, str | None]]:
    """The first-parent history from a commit back: each commit with its first parent."""
    listed = _git(repo, "rev-list", "--first-parent", "--parents", f"--max-count={count}", head)
    rows = [line.split() for line in listed.splitlines()]
    return [(row[0], row[1] if len(row) > 1 else None) for row in rows]


def review(repository: Repository, text: str) -> Timing:
    """One review as the command makes it, from the range to the text of the JSON document."""
    waited = repository.meter.seconds
    began = time.perf_counter()
    made = analyse(repository, text)
    msgspec.json.encode(document(made))
    whole = time.perf_counter() - began
    git = repository.meter.seconds - waited
    snapshot = made.snapshot
    return Timing(
        own=(whole - git) * 1000,
        git=git * 1000,
        commit=snapshot.head_sha,
        files=len(snapshot.files),
        lines=snapshot.additions + snapshot.deletions,
    )


def report(timings: list[Timing]) -> str:
    """The numbers with their conditions."""
    worst = max(timings, key=lambda t: t.own)
    rows = [
        f"{name:<22}{statistics.median(values):9.1f}{percentile(values, 99):9.1f}{max(values):9.1f}"
        for name, values in (
            ("beyond git's own time", [t.own for t in timings]),
            ("waiting for git", [t.git for t in timings]),
            ("together", [t.own + t.git for t in timings]),
        )
    ]
    sizes = [t.lines for t in timings]
    return "\n".join(
        (
            f"graft review, {len(timings)} commits one by one, in process "
            f"(Python {platform.python_version()}, {platform.system()} {platform.machine()})",
            f"changed lines per commit: median {statistics.median(sizes):.0f}, most {max(sizes)}; "
            f"files: most {max(t.files for t in timings)}",
            f"{'milliseconds':<22}{'median':>9}{'p99':>9}{'max':>9}",
            *rows,
            f"slowest beyond git: {worst.commit[:12]} ({worst.files} files, {worst.lines} lines)",
        )
    )


def percentile(values: list[float], percent: int) -> float:
    """The nearest-rank percentile: a value that was measured."""
    ranked = sorted(values)
    return ranked[max(0, -(-len(ranked) * percent // 100) - 1)]


def _git(repo: str, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", repo, *arguments], capture_output=True, text=True, input="", check=True
    )
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
