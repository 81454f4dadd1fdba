"""How long a policy takes to judge a very large pull request: 3,000 files against 100 globs.

    python -m bench.policy            # prints the best of five and exits with 1 above 200 ms

No glob matches, so that every file is compared with all of them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from graft.changes import ChangedFile
from graft.policy import Card, Facts, State, evaluate, parse

LIMIT_SECONDS = 0.200
FILES = 3_000
GLOBS = 100

# As maintainers write them, and with every segment wild, which no index can help with.
KINDS = {
    "usual globs": ("services/team{}/**", "**/secret{}/**", "*.ext{}", "src/**/gen{}/*.py", "/conf{}/*.yaml"),
    "wild globs": ("**/*a{}*", "*x{}*y*", "**/[a-c]{}*/**", "*/*/z{}?*", "**/q*{}/*/**"),
}


def measure(forms: Sequence[str]) -> float:
    """Seconds for one verdict, the best of five."""
    globs = [forms[i % len(forms)].format(i) for i in range(GLOBS)]
    listed = ", ".join(f"'{glob}'" for glob in globs)
    text = f"version: 1\nrules: [{{name: all, when: {{paths: {{any: [{listed}]}}}}, then: block}}]\n"
    policy = parse(text.encode()).policy
    assert policy is not None
    files = tuple(
        ChangedFile(path=f"packages/area{i % 40}/module{i % 300}/src/File{i}.ts", status="modified")
        for i in range(FILES)
    )
    facts = Facts(files=files, base_ref="main", card=Card.VERIFIED)
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        verdict = evaluate(policy, facts)
        best = min(best, time.perf_counter() - start)
        assert verdict.results[0].state is State.NOT_MATCHED
    return best


def main(argv: Sequence[str] = ()) -> int:
    """Print one line for each kind of glob; 1 if one of them took too long."""
    worst = 0.0
    for name, forms in KINDS.items():
        seconds = measure(forms)
        worst = max(worst, seconds)
        print(
            f"policy: {FILES:,} files x {GLOBS} {name}: {seconds * 1000:.0f} ms (limit {LIMIT_SECONDS * 1000:.0f} ms)"
        )
    return 0 if worst <= LIMIT_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
