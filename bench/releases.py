"""`python -m bench.releases DIRECTORY`: makes a git history where no clone of a real project is at hand.

Successive releases of well-known packages are fetched with pip, and what changed between two releases is committed
in pieces of one to eight files, every fiftieth of some dozens. Content and file sizes are real, the
commits are not: say so with the numbers.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from graft.simulator.demo_repository import RepositoryBuilder

RELEASES = {
    "django": ("4.2", "4.2.4", "4.2.8", "4.2.16", "5.0", "5.1", "5.2"),
    "flask": ("1.0", "1.1.4", "2.0.0", "2.2.5", "3.0.0", "3.1.0"),
    "jinja2": ("2.10", "2.11.3", "3.0.0", "3.1.0", "3.1.4"),
    "requests": ("2.20.0", "2.25.0", "2.28.0", "2.31.0", "2.32.3"),
    "rich": ("10.0.0", "11.0.0", "12.0.0", "13.0.0", "13.9.0"),
}


def main(argv: list[str]) -> int:
    if len(argv) != 1:
        print("usage: python -m bench.releases DIRECTORY", file=sys.stderr)
        return 2
    builder = RepositoryBuilder(path=Path(argv[0]))
    steps = [step for package, versions in RELEASES.items() for step in _steps(package, versions)]
    random.Random(1).shuffle(steps)  # packages interleaved, the same way every time
    made = 0
    state: dict[str, bytes] = {}
    for package, version, pieces in sorted(steps, key=lambda s: RELEASES[s[0]].index(s[1])):
        for piece in pieces:
            changes: dict[str, str | bytes | None] = {
                path: content for path, content in piece.items() if state.get(path) != content
            }
            if not changes:
                continue
            builder.commit("main", changes, message=f"{package} {version}: {len(changes)} files")
            state.update({path: content for path, content in piece.items() if content is not None})
            made += 1
    print(f"{made} commits in {argv[0]}")
    return 0


Piece = dict[str, "bytes | None"]


def _steps(package: str, versions: tuple[str, ...]) -> list[tuple[str, str, list[Piece]]]:
    """For each release, the changes since the one before, in pieces."""
    steps: list[tuple[str, str, list[Piece]]] = []
    before: dict[str, bytes] = {}
    chance = random.Random(package)
    for version in versions:
        after = _release(package, version)
        changed: Piece = {p: c for p, c in after.items() if before.get(p) != c}
        changed.update(dict.fromkeys(before.keys() - after.keys()))
        paths = sorted(changed)
        pieces: list[Piece] = []
        while paths:
            size = chance.randint(30, 120) if chance.random() < 0.02 else chance.randint(1, 8)
            pieces.append({path: changed[path] for path in paths[:size]})
            del paths[:size]
        steps.append((package, version, pieces))
        before = after
    return steps


def _release(package: str, version: str) -> dict[str, bytes]:
    """The files of a release's wheel, without its own metadata."""
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"),
                *("--dest", directory, f"{package}=={version}"),
            ],
            check=True,
        )
        (wheel,) = Path(directory).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            return {
                name: archive.read(name)
                for name in archive.namelist()
                if ".dist-info/" not in name and not name.endswith("/")
            }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
