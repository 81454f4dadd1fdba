"""What one run of a change's actor reads from GitHub before it decides anything.

Title, body, labels and the policy can change on the same head, so they are read in every run. Files and
commits of one head against one merge base cannot, so a few of the last snapshots are kept in memory.
"""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from actors.run import Busy, Run
from actors.services import Services
from graft import records
from graft.changes import Snapshot
from graft.database import Connection
from graft.errors import PermanentError, TransientError
from graft.github import CommitFiles, Installation, NotFound, pulls, repositories, snapshot
from graft.policy import LoadedPolicy, load
from graft.records import RecordsReview
from graft.store import changes, installations, partitions
from graft.store.changes import Change, PullFacts
from graft.store.installations import ListedRepository, Repository

# Tries for a pull request that GitHub does not show yet.
PATIENCE = 4
LAG_SECONDS = 2.0
# An older head than an event told of is not believed this long after the event, but waited out.
STALE_SECONDS = 15.0
SUSPENDED_SECONDS = 60.0


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One pull request as it is now, with the change it makes and the policy that its base branch keeps."""

    client: Installation
    repository: Repository
    pull: pulls.Pull
    change: Change


# About what a snapshot takes besides the characters of its patches: a file's names and numbers, a commit's trailers.
_ROW_BYTES = 2_000


class Snapshots:
    """The last few snapshots, bounded by about the memory that they take."""

    def __init__(self, size: int = 32 * 2**20) -> None:
        self.most = size
        self._kept: OrderedDict[tuple[int, str, str], tuple[Snapshot, int]] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return len(self._kept)

    async def read(self, reading: Reading, base_sha: str) -> Snapshot:
        """The snapshot of the pull request's head against the base branch's present commit."""
        pull = reading.pull
        key = (reading.repository.id, base_sha, pull.head_sha)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][0]
        found = await snapshot.read_snapshot(
            reading.client,
            reading.repository.full_name,
            base_sha=base_sha,
            head_sha=pull.head_sha,
            number=pull.number,
            expected=pull.counts,
        )
        rows = 1 + len(found.files) + len(found.commits)
        size = _ROW_BYTES * rows + sum(len(file.patch or "") for file in found.files)
        if not found.incomplete and size < self.most:
            self._kept[key] = (found, size)
            self._size += size
        while self._size > self.most:
            _, (_, dropped) = self._kept.popitem(last=False)
            self._size -= dropped
        return found


async def find_repository(services: Services, run: Run, repository_id: int) -> Repository | None:
    """The repository's row, read from the API where no event has announced it yet, or where what is stored was
    overtaken: an App that is installed again has another installation, and its events come in any order.

    `None` where it is gone. Raises Busy while its installation is suspended: its work waits.
    """
    async with services.pool.acquire() as connection:
        found = await installations.repository(connection, repository_id)
    if found is not None:
        if found.active:
            return found
        same = found.installation_id == run.installation_id
        if same and found.deleted_at is not None:
            return None
        if same and found.suspended_at is not None:
            raise Busy("the installation is suspended", reason="suspended", retry_after=SUSPENDED_SECONDS)
    client = services.github.installation(run.installation_id)
    try:
        record = await repositories.read_repository(client, repository_id)
    except NotFound:
        if found is None:
            raise
        return None
    async with services.pool.acquire() as connection:
        await installations.describe_repository(
            connection,
            run.installation_id,
            ListedRepository(
                id=record.id,
                full_name=record.full_name,
                default_branch=record.default_branch or None,
                private=record.private,
                archived=record.archived,
            ),
        )
        described = await installations.repository(connection, repository_id)
    return described if described is not None and described.active else None


async def read_pull(services: Services, run: Run, repository: Repository, number: int) -> Reading:
    """The pull request as the API shows it, stored as a change.

    Raises PermanentError (`mismatch`) when it is not the one that was asked for, TransientError while GitHub does not
    show it yet, Busy while it shows it as it was before the event, LostPartition where somebody else has taken over.
    """
    run.say("reading the pull request")
    client = services.github.installation(repository.installation_id)
    tries = max(row.attempts for row in run.rows.values())
    try:
        pull = await pulls.read_pull(client, repository.full_name, number)
    except NotFound as error:
        if tries >= PATIENCE:
            raise
        raise TransientError(str(error), reason="not_found_yet", retry_after=LAG_SECONDS) from None
    if (pull.repository_id, pull.number) != (repository.id, number):
        raise PermanentError("the API names another pull request than the trigger", reason="mismatch")
    if _is_stale(run, pull):
        raise Busy("GitHub shows an older head", reason="stale_head", retry_after=LAG_SECONDS)
    async with services.pool.acquire() as connection, connection.transaction():
        # Who was stopped since it read must not put an older head of the same second over a newer one.
        await partitions.guard(connection, run.lease)
        change = await _store(connection, repository, pull)
    if change is None:
        raise TransientError("GitHub shows an older state", reason="stale_read", retry_after=LAG_SECONDS)
    run.head_sha = pull.head_sha
    return Reading(client=client, repository=repository, pull=pull, change=change)


def _is_stale(run: Run, pull: pulls.Pull) -> bool:
    """Whether an event told of a newer state than the API shows, both by GitHub's own clock. It has whole seconds: of
    another head in the same second nobody can tell, and it is asked again rather than believed. What else went wrong
    in the meantime does not use up the patience with a new event."""
    return any(
        row.head_sha is not None
        and row.head_sha != pull.head_sha
        and pull.updated_at <= row.asked_at
        and row.last_asked < STALE_SECONDS
        for row in run.rows.values()
    )


async def _store(connection: Connection, repository: Repository, pull: pulls.Pull) -> Change | None:
    author = pull.author
    if pull.repository_full_name != repository.full_name:
        await installations.rename(connection, repository.id, pull.repository_full_name)
    return await changes.put(
        connection,
        PullFacts(
            repository_id=repository.id,
            pr_number=pull.number,
            head_sha=pull.head_sha,
            head_repository_id=pull.head_repository_id,
            base_ref=pull.base_ref,
            author_id=author.id if author else None,
            author_login=author.login if author else None,
            author_is_bot=author.is_bot if author else False,
            state="merged" if pull.merged else "open" if pull.is_open else "closed",
            draft=pull.draft,
            opened_at=pull.created_at,
            closed_at=pull.closed_at,
            merged_at=pull.merged_at,
            merge_commit_sha=pull.merge_commit_sha,
            pr_updated_at=pull.updated_at,
        ),
    )


async def read_rules(
    reading: Reading, base_sha: str, found: Snapshot, memory: records.Memory
) -> tuple[LoadedPolicy, RecordsReview | None]:
    """The policy at the base branch's commit, never the pull request's own copy, and what the pull request does to
    the intent that is approved there. Both look at the base through the same reads; `None` without records."""
    full_name = reading.repository.full_name
    base = CommitFiles(reading.client, full_name, base_sha)
    head = CommitFiles(reading.client, full_name, reading.pull.head_sha)
    return await load(base), await records.read(base, head, found, memory)
