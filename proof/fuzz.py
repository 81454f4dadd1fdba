"""`python -m proof fuzz`: throws inputs at everything that takes outside bytes, each target in a process of its own.

The time is shared out among the targets, two run at once. What a run finds is written beside the kept inputs of
its target (`proof/corpus/NAME/find-…`) and fails the command; mended, it stays there and is replayed by the tests.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

from bench.tables import ROOT, Table, publish
from proof.fuzz_input import CORPUS, corpus
from proof.fuzz_worker import has_atheris

AT_ONCE = 2
# Importing with instrumentation, and ending, take this long beside the inputs.
_AROUND = 60.0
# Kept inputs are read in every test run: few and small.
_KEPT = 40
_LARGEST_KEPT = 1536

_EXECUTIONS = re.compile(rb"stat::number_of_executed_units: (\d+)")
_COVERAGE = re.compile(rb"cov: (\d+) ft: (\d+)")


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of one target. `finds` are lines to read, `broken` why its process did not come to its end."""

    name: str
    executions: int
    seconds: float
    inputs: int
    branches: int | None = None
    features: int | None = None
    finds: Sequence[str] = ()
    broken: str = ""


def fuzz(
    name: str,
    seconds: int,
    *,
    seed: int = 1,
    engine: str | None = None,
    root: Path = CORPUS,
    folder: str = "",
    keep: bool = False,
) -> Outcome:
    """Run one target (`name` as `proof.fuzz_worker` takes it, its inputs in `root / folder`) for some seconds.

    New finds are copied into the corpus; with `keep` so are some small inputs that reached something new.
    """
    kept = root / (folder or name)
    kept.mkdir(parents=True, exist_ok=True)
    known = {path.name for path in corpus(kept.name, root=root)}
    with tempfile.TemporaryDirectory(prefix="graft-fuzz-") as directory:
        work, finds = Path(directory, "work"), Path(directory, "finds")
        work.mkdir()
        finds.mkdir()
        started = time.monotonic()
        command = [
            *(
                sys.executable,
                "-m",
                "proof.fuzz_worker",
                name,
                "--seconds",
                str(seconds),
                "--seed",
                str(seed),
            ),
            *("--corpus", str(kept), "--work", str(work), "--finds", str(finds)),
            *(("--engine", engine) if engine else ()),
        ]
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                capture_output=True,
                timeout=seconds + _AROUND,
                env=_environment(),
                check=False,
            )
            said, progress, broken = done.stdout, done.stderr, _ending(done.returncode, done.stderr)
        except subprocess.TimeoutExpired as late:
            said, progress, broken = late.stdout or b"", late.stderr or b"", "did not end in time"
        took = time.monotonic() - started
        lines = [line.removeprefix("find ") for line in said.decode("utf-8", "replace").splitlines()]
        found = {path.name for path in finds.iterdir()} - known
        for path in sorted(finds.iterdir()):
            shutil.copy(path, kept / path.name)
        lines += [f"{artifact}: {broken}" for artifact in sorted(found) if artifact not in "\n".join(lines)]
        if keep:
            _keep(work / "inputs", kept)
    executions = _EXECUTIONS.search(progress)
    coverage = _COVERAGE.findall(progress)
    return Outcome(
        name=name,
        executions=int(executions[1]) if executions else 0,
        seconds=took,
        inputs=len(known),
        branches=int(coverage[-1][0]) if coverage else None,
        features=int(coverage[-1][1]) if coverage else None,
        finds=lines,
        broken=broken,
    )


def _environment() -> dict[str, str]:
    # Sets and dictionaries in one order, so that a seed repeats a run as far as time lets it.
    return {**os.environ, "PYTHONHASHSEED": "0", "PYTHONUTF8": "1"}


def _ending(code: int, progress: bytes) -> str:
    if code == 0:
        return ""
    last = progress.decode("utf-8", "replace").strip().splitlines()[-1:]
    return f"the process ended with {code}: {(last or ['no output'])[0][:160]}"


def _keep(inputs: Path, kept: Path) -> None:
    """Add new inputs up to the bound: the newest, which reached the most steps beyond the kept ones, first."""
    if not inputs.is_dir():
        return
    room = _KEPT - len(list(kept.iterdir()))
    new = sorted(inputs.iterdir(), key=lambda path: (-path.stat().st_mtime_ns, path.name))
    for path in [path for path in new if path.stat().st_size <= _LARGEST_KEPT][: max(room, 0)]:
        shutil.copy(path, kept / f"kept-{path.name[:12]}")


def table(outcomes: Sequence[Outcome], *, command: str, seed: int) -> Table:
    """The outcomes as they are published."""
    guided = has_atheris()
    return Table(
        name="fuzz",
        command=command,
        columns=("target", "kept inputs", "executions", "a second", "branches reached", "new finds"),
        rows=[
            (
                each.name,
                f"{each.inputs}",
                f"{each.executions:,}",
                f"{each.executions / each.seconds:,.0f}",
                "not measured" if each.branches is None else f"{each.branches:,}",
                f"{len(each.finds)}" if not each.broken else f"{len(each.finds)}, {each.broken}",
            )
            for each in outcomes
        ],
        conditions={
            "seed": str(seed),
            "engine": "atheris (libFuzzer), Graft's modules instrumented"
            if guided
            else "changes at random without coverage, because atheris is not installed",
            "at once": f"{AT_ONCE} targets",
        },
    )


def main(arguments: list[str]) -> int:
    from proof.fuzz_targets import TARGETS

    parser = argparse.ArgumentParser(prog="python -m proof fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="for all targets together (default 60)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=sorted(TARGETS), action="append", help="these targets alone")
    parser.add_argument(
        "--keep", action="store_true", help="add inputs that reached something new to the corpus"
    )
    parser.add_argument("--write", action="store_true", help="put the table into docs/security.md")
    given = parser.parse_args(arguments)
    names = given.only or list(TARGETS)
    share = max(1, given.seconds * min(AT_ONCE, len(names)) // len(names))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = [pool.submit(fuzz, name, share, seed=given.seed, keep=given.keep) for name in names]
        outcomes = [each.result() for each in running]
    for outcome in outcomes:
        for line in (*outcome.finds, *([outcome.broken] if outcome.broken else ())):
            print(f"{outcome.name}: {line}")
    command = f"make fuzz SECONDS={given.seconds}" if not given.only else "python -m proof fuzz"
    publish(table(outcomes, command=command, seed=given.seed), write=given.write)
    bad = [outcome for outcome in outcomes if outcome.finds or outcome.broken]
    if bad:
        print(f"finds are in {CORPUS.relative_to(ROOT)}: mend what they show, and keep them", file=sys.stderr)
    return 1 if bad else 0
