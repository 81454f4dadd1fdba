"""The facts of a range of a local repository, for `graft policy explain`, with what the user wants assumed.

Without a model there is no card: the risk is then the floor's, and at least `logic` for a change that has
files, exactly as on a pull request whose card is missing.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from graft import intent, provenance, records
from graft.changes import Snapshot
from graft.cli.policy_sources import LocalCommit, read_file
from graft.git import Repository
from graft.policy import Card, Decision, Facts, LoadedPolicy, decide, load
from graft.records import RecordsReview
from graft.risk import Risk, highest


class Assumed(msgspec.Struct, frozen=True, kw_only=True):
    """What the user wants taken for granted; `None` leaves it to be found out."""

    risk: Risk | None = None
    author_kind: str | None = None
    card: Card = Card.MISSING
    labels: tuple[str, ...] = ()


def of_range(repo: Path, text: str, file: Path | None, assumed: Assumed) -> Decision:
    """Judge `BASE..HEAD` by the policy on BASE, or by `file`. Raises `GitError`."""
    repository = Repository.open(repo)
    range_ = repository.resolve(text)
    base, head = LocalCommit(repository, range_.base), LocalCommit(repository, range_.head)
    loaded = read_file(str(file)) if file is not None else asyncio.run(load(base))
    snapshot = repository.snapshot(range_)
    found = asyncio.run(records.read(base, head, snapshot, records.Memory()))
    who = provenance.resolve(snapshot.commits, truncated=snapshot.commits_truncated)
    base_ref = text.split("..")[0].removeprefix("origin/") or "HEAD"
    facts = gather(snapshot, loaded, who, assumed, records=found, base_ref=base_ref, labels=assumed.labels)
    return decide(loaded, facts)


def gather(
    snapshot: Snapshot,
    loaded: LoadedPolicy,
    who: provenance.Provenance,
    assumed: Assumed,
    *,
    records: RecordsReview | None,
    base_ref: str,
    labels: tuple[str, ...],
    draft: bool = False,
    injection: tuple[str, ...] = (),
) -> Facts:
    """Put together what the policy looks at."""
    sensitive = loaded.policy.sensitive_paths if loaded.policy is not None else ()
    floor = intent.assess(
        snapshot, sensitive=sensitive, injection=injection, records=records.protected if records else ()
    )
    unsure = Risk.LOGIC if assumed.card is not Card.VERIFIED and not snapshot.is_empty else None
    return Facts(
        files=snapshot.files,
        incomplete=snapshot.incomplete,
        author_kind=assumed.author_kind or who.author_kind,
        source=who.source,
        agents=who.agents,
        models=who.models,
        risk=assumed.risk or highest(floor.risk, unsure),
        card=assumed.card,
        injection_suspected=bool(injection),
        labels=labels,
        base_ref=base_ref,
        draft=draft,
        task_linked=bool(who.tasks),
        records=records.status if records else "none",
    )
