"""A repository's own history as cases without a truth: what the rules would have said of every change that landed.

A change is a commit of the branch's first-parent line against its first parent: a merged pull request where pull
requests are merged, a squashed or rebased one where they are not. The commit's message stands in for the title and
description. The file that is written holds SHAs, numbers, codes and paths, and nothing of the messages or the content;
with the two SHAs a change can be made into a case (`graft eval cases --add`).

Each line is complete by itself, so a run that was stopped goes on where it ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import msgspec

from graft.errors import GraftError, PermanentError
from graft.git import Range, Repository
from graft.intent import PROMPT_VERSION, CardInputs, Reason, card_without_model
from graft.risk import Risk

__all__ = ["Mined", "mine", "read"]

FORMAT = 1
_AHEAD = 64  # changes that are in work or waiting, whatever the length of the history


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line: what the others were made with. `prompts` is Graft's prompt version."""

    format: int = FORMAT
    prompts: str = PROMPT_VERSION


class Mined(msgspec.Struct, frozen=True, kw_only=True):
    """One change. `seconds` is git and Graft together; `error` is a reason code in place of all else."""

    base: str
    head: str
    is_merge: bool = False
    floor: Risk | None = None
    reasons: tuple[Reason, ...] = ()
    """One for each rule that applied."""
    files: int = 0
    additions: int = 0
    deletions: int = 0
    omissions: dict[str, int] = {}
    """Files that a model would not be shown, by why."""
    suspicions: tuple[str, ...] = ()
    seconds: float = 0.0
    error: str | None = None


def mine(
    repository: Repository,
    out: Path,
    *,
    revision: str = "HEAD",
    most: int,
    workers: int = 2,
    started: Callable[[int, int], None] = lambda _done, _all: None,
    done: Callable[[Mined], None] = lambda _: None,
) -> None:
    """Assess the newest `most` changes of `revision` and append each to `out`, the newest first.

    Changes that are in `out` already are left out. `started` is told how many of how many those are. A change that
    cannot be read becomes a line with an error. Raises `GitError` when the history itself cannot be read, and
    `PermanentError` when `out` is something else.
    """
    known = _continue(out)
    line = [(sha, parents) for sha, parents in repository.first_parents(revision, most=most) if parents]
    todo = [(repository, parents[0], sha, len(parents) > 1) for sha, parents in line if sha not in known]
    started(len(line) - len(todo), len(line))
    with out.open("ab") as file, ThreadPoolExecutor(workers) as pool:
        for mined in _in_order(pool, todo):
            file.write(msgspec.json.encode(mined) + b"\n")
            file.flush()
            done(mined)


def read(path: Path) -> tuple[Mined, ...]:
    """The changes in a mined file; a last line that was cut off is left out. Raises `PermanentError`."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PermanentError(f"{path}: {error.strerror or 'cannot be read'}", reason="bad_mined") from None
    lines = data[: data.rfind(b"\n") + 1].splitlines()
    try:
        header = msgspec.json.decode(lines[0] if lines else b"", type=Header)
        if header != Header():
            raise PermanentError(f"{path} was made by another Graft: name another file", reason="format")
        return tuple(msgspec.json.decode(line, type=Mined) for line in lines[1:])
    except msgspec.DecodeError:
        raise PermanentError(
            f"{path} is no file of `graft eval mine`: name another one", reason="bad_mined"
        ) from None


def assess(repository: Repository, base: str, head: str, is_merge: bool) -> Mined:
    """One change. Never raises for what a repository may hold."""
    begin = time.perf_counter()
    try:
        snapshot = repository.snapshot(Range(base=base, head=head, merge_base=base))
    except GraftError as error:
        return Mined(base=base, head=head, is_merge=is_merge, error=getattr(error, "reason", "failed"))
    message = snapshot.commits[-1].message if snapshot.commits else ""
    title, _, body = message.partition("\n")
    card = card_without_model(CardInputs(snapshot=snapshot, title=title, body=body))
    omissions: dict[str, int] = {}
    for omission in card.omissions:
        omissions[omission.why] = omissions.get(omission.why, 0) + 1
    return Mined(
        base=base,
        head=head,
        is_merge=is_merge,
        floor=card.floor.risk,
        reasons=tuple({reason.code: reason for reason in reversed(card.floor.reasons)}.values()),
        files=len(snapshot.files),
        additions=snapshot.additions,
        deletions=snapshot.deletions,
        omissions=omissions,
        suspicions=tuple(sorted({suspicion.marker for suspicion in card.suspicions})),
        seconds=round(time.perf_counter() - begin, 4),
    )


def _continue(out: Path) -> frozenset[str]:
    """The heads that are there, after a line that was cut off is taken away; a new file gets its header."""
    if not out.exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(msgspec.json.encode(Header()) + b"\n")
        return frozenset()
    heads = frozenset(mined.head for mined in read(out))
    data = out.read_bytes()
    if not data.endswith(b"\n"):
        with out.open("r+b") as file:
            file.truncate(data.rfind(b"\n") + 1)
    return heads


def _in_order(pool: ThreadPoolExecutor, todo: Sequence[tuple[Repository, str, str, bool]]) -> Iterator[Mined]:
    waiting: list[Future[Mined]] = []
    try:
        for task in todo:
            waiting.append(pool.submit(assess, *task))
            if len(waiting) >= _AHEAD:
                yield waiting.pop(0).result()
        while waiting:
            yield waiting.pop(0).result()
    finally:
        for future in waiting:
            future.cancel()
