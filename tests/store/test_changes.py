"""Changes: guarded by the stored time, and published by one process at a time."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from graft.database import Connection, Pool
from graft.store import changes, installations, partitions
from graft.store.changes import Change
from graft.store.partitions import Lease

from .conftest import T0, pull_facts


@pytest.fixture
async def lease(pool: Pool) -> Lease:
    async with pool.acquire() as connection:
        await partitions.ensure(connection, 1)
        await partitions.announce(connection, "me", version="1", draining=False)
        [(partition, epoch)] = (await partitions.take(connection, "me")).items()
    return Lease(partition=partition, holder="me", epoch=epoch)


async def _acquire(
    connection: Connection, change: Change, token: UUID, *, section_seq: int, lease: Lease
) -> changes.Leased | None:
    async with connection.transaction():
        return await changes.acquire(connection, change, token, section_seq=section_seq, lease=lease)


async def test_older_facts_are_refused_and_equal_ones_taken(pool: Pool, change: Change) -> None:
    async with pool.acquire() as connection:
        older = pull_facts(head_sha="f" * 40, pr_updated_at=T0 - timedelta(seconds=1))
        assert await changes.put(connection, older) is None
        equal = await changes.put(connection, pull_facts(head_sha="c" * 40))
        stored = await changes.get(connection, 70, 1)
    assert equal == stored
    assert stored is not None
    assert stored.head_sha == "c" * 40


async def test_one_publisher_at_a_time(pool: Pool, change: Change, lease: Lease) -> None:
    first, second = uuid4(), uuid4()
    async with pool.acquire() as connection:
        assert await _acquire(connection, change, first, section_seq=5, lease=lease)
        assert await _acquire(connection, change, second, section_seq=6, lease=lease) is None
        assert await changes.commit_publication(connection, change.id, first, section_seq=5, comment_id=9)
        taken = await _acquire(connection, change, second, section_seq=6, lease=lease)
    assert taken is not None
    assert (taken.change.graft_comment_id, taken.abandoned) == (9, False)


async def test_two_changes_on_one_head_are_published_one_after_the_other(
    pool: Pool, change: Change, lease: Lease
) -> None:
    async with pool.acquire() as connection:
        twin = await changes.put(connection, pull_facts(pr_number=2))
        assert twin is not None
        first, second = uuid4(), uuid4()
        assert await _acquire(connection, change, first, section_seq=5, lease=lease)
        assert await _acquire(connection, twin, second, section_seq=5, lease=lease) is None
        assert await changes.commit_publication(connection, change.id, first, section_seq=5, comment_id=1)
        assert await _acquire(connection, twin, second, section_seq=5, lease=lease)


async def test_an_overtaken_publisher_gets_no_lease(pool: Pool, change: Change, lease: Lease) -> None:
    token = uuid4()
    async with pool.acquire() as connection:
        await _acquire(connection, change, token, section_seq=9, lease=lease)
        await changes.commit_publication(connection, change.id, token, section_seq=9, comment_id=1)
        assert await _acquire(connection, change, uuid4(), section_seq=8, lease=lease) is None


async def test_a_publisher_that_overslept_its_lease_is_told_so(
    pool: Pool, change: Change, lease: Lease
) -> None:
    slow, quick = uuid4(), uuid4()
    async with pool.acquire() as connection:
        await _acquire(connection, change, slow, section_seq=5, lease=lease)
        await connection.execute("UPDATE changes SET publish_until = now() - interval '1 second'")
        taken = await _acquire(connection, change, quick, section_seq=6, lease=lease)
        assert taken is not None
        assert taken.abandoned
        assert not await changes.commit_publication(connection, change.id, slow, section_seq=5, comment_id=1)
        assert await changes.commit_publication(connection, change.id, quick, section_seq=6, comment_id=2)
        stored = await changes.get(connection, 70, 1)
    assert stored is not None
    assert (stored.graft_comment_id, stored.section_seq) == (2, 6)


async def test_what_was_shown_last_is_confirmed_and_nothing_else(
    pool: Pool, change: Change, lease: Lease
) -> None:
    token = uuid4()
    async with pool.acquire() as connection:
        await _acquire(connection, change, token, section_seq=5, lease=lease)
        assert not await changes.confirm(connection, change.id, shown_seq=0, section_seq=6), "being published"
        await changes.commit_publication(connection, change.id, token, section_seq=5, comment_id=1)
        assert not await changes.confirm(connection, change.id, shown_seq=4, section_seq=6), (
            "not the last one"
        )
        assert not await changes.confirm(connection, change.id, shown_seq=5, section_seq=4), (
            "a run from before"
        )
        assert await changes.confirm(connection, change.id, shown_seq=5, section_seq=6)
        assert await _acquire(connection, change, uuid4(), section_seq=5, lease=lease) is None


async def test_a_lost_partition_gets_no_lease(pool: Pool, change: Change, lease: Lease) -> None:
    async with pool.acquire() as connection:
        await partitions.give_back(connection, "me", [lease.partition])
        assert await _acquire(connection, change, uuid4(), section_seq=5, lease=lease) is None


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE installations SET suspended_at = now()",
        "UPDATE installations SET deleted_at = now()",
        "UPDATE repositories SET removed_at = now()",
    ],
)
async def test_an_inactive_installation_gets_no_lease(
    pool: Pool, change: Change, lease: Lease, statement: str
) -> None:
    async with pool.acquire() as connection:
        await connection.execute(statement)
        assert await _acquire(connection, change, uuid4(), section_seq=5, lease=lease) is None


async def test_a_pull_request_moves_a_repository_to_the_installation_it_came_through(
    pool: Pool, change: Change
) -> None:
    async with pool.acquire() as connection:
        await installations.remove_repository(connection, 7, 70)
        await installations.ensure(connection, 8, 70, "other/demo")
        moved = await installations.repository(connection, 70)
    assert moved is not None
    assert (moved.installation_id, moved.active) == (8, True)


async def test_a_deleted_installation_stays_deleted(pool: Pool, change: Change) -> None:
    async with pool.acquire() as connection:
        await installations.mark_deleted(connection, 7)
        await installations.describe(
            connection,
            7,
            account_id=1,
            account_login="octo",
            account_type="User",
            repository_selection="all",
            permissions={},
            events=[],
            suspended_at=None,
        )
        stored = await installations.repository(connection, 70)
    assert stored is not None
    assert not stored.active


async def test_a_step_is_forced_to_run_again_at_most_once_a_minute(pool: Pool, change: Change) -> None:
    async with pool.acquire() as connection:

        async def claim(need: str, every: float = 60) -> bool:
            return await changes.claim_rerun(connection, change.id, need, every_seconds=every)

        assert [await claim("intent"), await claim("intent"), await claim("policy")] == [True, False, True]
        assert await claim("intent", every=0)
