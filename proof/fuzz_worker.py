"""One fuzz target in a process of its own: `python -m proof.fuzz_worker NAME --seconds S`.

With atheris the modules of Graft are instrumented as they are imported and libFuzzer keeps what reaches something
new; without it `proof.fuzz_mutation` runs. Each different fault, told by its class and place, leaves one input in
`--finds`, and the run goes on. Progress goes to standard error in libFuzzer's words, finds to standard output.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import logging
import random
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog

from proof.fuzz_input import Target, corpus, run
from proof.fuzz_mutation import changed_json, fuzz

_HANG_SECONDS = 25
_MEMORY_MB = 2048


def has_atheris() -> bool:
    """Whether inputs can be led by coverage here."""
    return importlib.util.find_spec("atheris") is not None


def _load(name: str) -> Target:
    """A target by its name, or as `module:attribute` anywhere else."""
    module, _, attribute = name.partition(":")
    if attribute:
        found: Target = getattr(importlib.import_module(module), attribute)
        return found
    return importlib.import_module("proof.fuzz_targets").TARGETS[name]  # type: ignore[no-any-return]


class Finds:
    """Tries inputs and keeps one of each fault."""

    def __init__(self, target: Target, directory: Path) -> None:
        self._target = target
        self._directory = directory
        self._seen: set[tuple[str, str, int | None]] = set()

    def attempt(self, data: bytes) -> None:
        """Run the target; a fault is kept and told, and nothing is raised."""
        try:
            run(self._target, data)
        except Exception as error:  # noqa: BLE001 - any exception is a find
            place = traceback.extract_tb(error.__traceback__)[-1]
            fault = (type(error).__name__, place.filename, place.lineno)
            if fault in self._seen:
                return
            self._seen.add(fault)
            path = self._directory / f"find-{hashlib.sha256(data).hexdigest()[:12]}"
            path.write_bytes(data)
            said = str(error).splitlines()[0][:200] if str(error) else ""
            print(
                f"find {path.name}: {fault[0]}: {said} ({Path(place.filename).name}:{place.lineno})",
                flush=True,
            )


def _silence() -> None:
    """Graft's logs and asyncio's go nowhere: every input would have a line."""
    logging.disable(logging.CRITICAL)
    structlog.configure(processors=[_drop])


def _drop(_logger: object, _method: str, _event: object) -> Any:
    raise structlog.DropEvent


def _words_file(target: Target, directory: Path) -> Path:
    """libFuzzer's dictionary."""
    path = directory / "words"
    lines = ("".join(f"\\x{byte:02x}" for byte in word) for word in target.words)
    path.write_text("".join(f'"{line}"\n' for line in lines))
    return path


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m proof.fuzz_worker", description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corpus", type=Path, required=True, help="inputs to start from")
    parser.add_argument("--work", type=Path, required=True, help="an empty directory for new inputs")
    parser.add_argument("--finds", type=Path, required=True)
    parser.add_argument("--engine", choices=("atheris", "mutation"))
    given = parser.parse_args(arguments)
    _silence()
    engine = given.engine or ("atheris" if has_atheris() else "mutation")
    if engine == "mutation":
        target = _load(given.name)
        attempt = Finds(target, given.finds).attempt
        seeds = [path.read_bytes() for path in corpus(given.corpus.name, root=given.corpus.parent)]
        count = fuzz(target, seeds, attempt=attempt, seed=given.seed, seconds=given.seconds)
        print(f"stat::number_of_executed_units: {count}", file=sys.stderr)
        return 0
    return _led_by_coverage(given)


def _led_by_coverage(given: argparse.Namespace) -> int:
    """Ends the process."""
    import atheris

    package = given.name.partition(":")[0].partition(".")[0] if ":" in given.name else "graft"
    with atheris.instrument_imports(include=["graft", package]):
        target = _load(given.name)
    attempt: Callable[[bytes], None] = Finds(target, given.finds).attempt
    inputs = given.work / "inputs"
    inputs.mkdir(exist_ok=True)
    options = [
        f"-dict={_words_file(target, given.work)}",
        f"-max_total_time={given.seconds}",
        f"-max_len={target.longest}",
        f"-seed={given.seed}",
        f"-timeout={_HANG_SECONDS}",
        f"-rss_limit_mb={_MEMORY_MB}",
        f"-artifact_prefix={given.finds}/find-",
        "-print_final_stats=1",
        "-reduce_inputs=1",
    ]

    # What is decoded in C looks the same whatever is in it, so libFuzzer drops most of these by itself.
    seeds = [path.read_bytes() for path in corpus(given.corpus.name, root=given.corpus.parent)] or [b"{}"]

    def mutate(data: bytes, longest: int, seed: int) -> bytes:
        random_ = random.Random(seed)
        if not random_.randrange(3):
            data = random_.choice(seeds)
        if random_.randrange(2):
            data = changed_json(data, random_, longest)
        return bytes(atheris.Mutate(data, longest)) if random_.randrange(2) else data

    own = {"custom_mutator": mutate} if target.json else {}
    atheris.Setup([sys.argv[0], *options, str(inputs), str(given.corpus)], attempt, **own)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
