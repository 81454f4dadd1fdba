"""How long floor and policy take for a very large pull request: 3,000 files against 100 globs.

    python -m bench policy            # prints the best of five and exits with 1 above 200 ms

No glob matches, so that every file is compared with all of them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

from graft import intent
from graft.changes import ChangedFile, Snapshot
from graft.globs import compile_glob
from graft.policy import Card, Facts, State, evaluate, parse

LIMIT_SECONDS = 0.200
FILES = 3_000
GLOBS = 100

# As maintainers write them, and with every segment wild, which no index can help with.
KINDS = {
    "usual globs": ("services/team{}/**", "**/secret{}/**", "*.ext{}", "src/**/gen{}/*.py", "/conf{}/*.yaml"),
    "wild globs": ("**/*a{}*", "*x{}*y*", "**/[a-c]{}*/**", "*/*/z{}?*", "**/q*{}/*/**"),
}


def _files() -> tuple[ChangedFile, ...]:
    return tuple(
        ChangedFile(path=f"packages/area{i % 40}/module{i % 300}/src/File{i}.ts", status="modified")
        for i in range(FILES)
    )


def _globs(forms: Sequence[str]) -> list[str]:
    return [forms[i % len(forms)].format(i) for i in range(GLOBS)]


def judge(forms: Sequence[str]) -> float:
    """Seconds for one verdict, the best of five."""
    listed = ", ".join(f"'{glob}'" for glob in _globs(forms))
    text = f"version: 1\nrules: [{{name: all, when: {{paths: {{any: [{listed}]}}}}, then: block}}]\n"
    policy = parse(text.encode()).policy
    assert policy is not None
    facts = Facts(files=_files(), base_ref="main", card=Card.VERIFIED)

    def once() -> None:
        assert evaluate(policy, facts).results[0].state is State.NOT_MATCHED

    return _best(once)


def floor(forms: Sequence[str]) -> float:
    """Seconds for one floor with the globs as sensitive paths, the best of five."""
    sensitive = [compile_glob(glob) for glob in _globs(forms)]
    snapshot = Snapshot(head_sha="a" * 40, base_sha="b" * 40, files=_files(), commits=())

    def once() -> None:
        found = intent.assess(snapshot, sensitive=sensitive)
        assert not any(reason.code == "sensitive_path" for reason in found.reasons)

    return _best(once)


def _best(once: Callable[[], None]) -> float:
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        once()
        best = min(best, time.perf_counter() - start)
    return best


def measured() -> dict[str, float]:
    """Seconds by what was timed."""
    return {
        f"{name}, {FILES:,} files x {GLOBS} {kind}": timed(forms)
        for name, timed in (("floor", floor), ("policy", judge))
        for kind, forms in KINDS.items()
    }


def main(argv: Sequence[str] = ()) -> int:
    """Print one line for each; 1 if one of them took too long. `python -m bench review` has them in its table."""
    found = measured()
    for name, seconds in found.items():
        print(f"{name}: {seconds * 1000:.0f} ms (limit {LIMIT_SECONDS * 1000:.0f} ms)")
    return 0 if max(found.values()) <= LIMIT_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
