"""`python -m bench review --repo PATH`: `graft review` over consecutive commits of a repository, one by one.

Every commit is reviewed against its first parent (a first commit against the empty tree), in this process and as
far as the JSON text. The time spent waiting for git is measured apart; what counts is the rest. In the same table:
what floor and policy take for 3,000 files and 100 globs (`bench.policy`), and the memory that a diff of 200 MB takes
(`bench.big_diff`).
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from bench import big_diff, policy
from bench.tables import Table, publish
from graft.cli.review import analyse
from graft.cli.review_document import document
from graft.git import Repository

LIMIT_MS = 300
# Of patches 32 MiB are held (graft.git.diff), for a while as bytes, text and hunks.
LIMIT_MIB = 200
MISSED = "missed"


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """One review, in milliseconds: Graft's own time, git's, and what the commit was."""

    own: float
    git: float
    commit: str
    files: int
    lines: int


def main(argv: list[str]) -> int:
    """1 when an aim is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench review", description=__doc__.split("\n")[0])
    parser.add_argument("--repo", default=".", help="a clone with its history (default: this directory)")
    parser.add_argument("--head", default="HEAD", help="the newest commit (default: HEAD)")
    parser.add_argument("--commits", type=int, default=500, help="how many commits (default: 500)")
    parser.add_argument("--megabytes", type=int, default=200, help="size of the large diff (default: 200)")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    given = parser.parse_args(argv)
    repository = Repository.open(given.repo)
    commits = history(given.repo, repository.commit(given.head), given.commits)
    empty_tree = _git(given.repo, "hash-object", "-t", "tree", "--stdin")
    ranges = [f"{parent or empty_tree}..{commit}" for commit, parent in commits]
    review(repository, ranges[0])  # imports, caches and git's own warm-up are not what is measured
    timings = [review(repository, text) for text in ranges]
    with tempfile.TemporaryDirectory(prefix="graft-bench-") as directory:
        text = big_diff.build(Path(directory), size=given.megabytes * 1_000_000)
        peak = big_diff.measure(Path(directory), text)
    rows = [*_judging(), *_reviews(timings), _memory(peak, given.megabytes)]
    where = "" if given.repo == "." else f" --repo {Path(given.repo).name}"
    publish(
        Table(
            name="review",
            command=f"python -m bench review{where} --commits {len(timings)} --megabytes {given.megabytes}",
            columns=["what", "measured", "aim", "verdict"],
            rows=rows,
            conditions=_conditions(timings, peak),
        ),
        write=given.write,
    )
    return 1 if any(row[3] == MISSED for row in rows) else 0


def _verdict(good: bool) -> str:
    return "met" if good else MISSED


def _judging() -> list[list[str]]:
    limit = policy.LIMIT_SECONDS
    return [
        [name, f"{seconds * 1000:.0f} ms", f"{limit * 1000:.0f} ms", _verdict(seconds <= limit)]
        for name, seconds in policy.measured().items()
    ]


def _reviews(timings: list[Timing]) -> list[list[str]]:
    own, git = [t.own for t in timings], [t.git for t in timings]
    p99 = percentile(own, 99)
    return [
        [
            f"`graft review` of one commit, beyond git: p99 of {len(timings)}",
            f"{p99:.0f} ms",
            f"{LIMIT_MS} ms",
            _verdict(p99 < LIMIT_MS),
        ],
        ["the same: median, largest", f"{statistics.median(own):.1f} ms, {max(own):.0f} ms", "", ""],
        [
            "git's own time: median, p99",
            f"{statistics.median(git):.1f} ms, {percentile(git, 99):.0f} ms",
            "",
            "",
        ],
    ]


def _memory(peak: big_diff.Peak, megabytes: int) -> list[str]:
    return [
        f"a diff of {megabytes} MB: most memory of `graft review`",
        f"{peak.own >> 20} MiB",
        f"{LIMIT_MIB} MiB",
        _verdict(peak.own >> 20 <= LIMIT_MIB),
    ]


def _conditions(timings: list[Timing], peak: big_diff.Peak) -> dict[str, str]:
    sizes, worst = [t.lines for t in timings], max(timings, key=lambda t: t.own)
    return {
        "reviews": f"one by one in one process; changed lines a commit: median {statistics.median(sizes):.0f}, most "
        f"{max(sizes)}; files: most {max(t.files for t in timings)}",
        "slowest beyond git": f"{worst.commit[:12]} ({worst.files} files, {worst.lines} lines)",
        "memory": f"resident, {peak.before >> 20} MiB of it before the review; git beside it {peak.git >> 20} MiB",
    }


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
