"""The command line that all commands share: a repository, `--json`, `--record ID`, `--help`.

A usage error exits 2, as argparse does and as the standard wants for malformed input.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from .report import Report


def parser(command: str, summary: str, *, record: bool = True, repo: bool = True) -> argparse.ArgumentParser:
    """A parser with the common options."""
    made = argparse.ArgumentParser(
        prog=f"graft records {command}",
        description=summary,
        epilog="Exit 0: pass. Exit 1: rejected evidence. Exit 2: malformed or missing input, or a tool that failed.",
        allow_abbrev=False,
    )
    if repo:
        made.add_argument(
            "repo", nargs="?", default=".", help="the repository root (default: the current directory)"
        )
    made.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    if record:
        made.add_argument("--record", metavar="ID", default="", help="look at this record only")
    return made


def parse(made: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    return made.parse_args(list(argv))


def finish(report: Report, options: argparse.Namespace) -> int:
    """Print the report and return its exit code."""
    sys.stdout.write(report.as_json() if options.json else report.text())
    sys.stdout.flush()
    return report.exit


def run(command: str, options: argparse.Namespace, work: Callable[[Path], Report]) -> int:
    """Do the work of a command on the repository it was given, which has to be a directory."""
    root = Path(str(options.repo))
    if root.is_dir():
        return finish(work(root.resolve()), options)
    report = Report(command)
    report.add("missing", "is no directory", str(root))
    return finish(report, options)
