"""Work rows: asked for by anyone, merged, and deleted only as they were done."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft.database import Pool
from graft.store import installations, work
from graft.store.work import Ask

T0 = datetime(2026, 12, 1, 12, tzinfo=UTC)


def ask(address: str = "pull.1.1", need: str = "intent", *, at: int = 0, **fields: object) -> Ask:
    facts: dict[str, object] = {"partition": 0, "installation_id": 7, **fields}
    return Ask(address=address, need=need, asked_at=T0 + timedelta(seconds=at), **facts)  # type: ignore[arg-type]


async def rows(pool: Pool, address: str = "pull.1.1") -> list[work.Work]:
    async with pool.acquire() as connection:
        return await work.load(connection, address)


async def put(pool: Pool, *asks: Ask) -> None:
    async with pool.acquire() as connection:
        await work.ask(connection, asks)


async def test_the_newest_head_wins_in_whatever_order_the_asks_come(pool: Pool) -> None:
    await put(pool, ask(at=2, head_sha="new"))
    await put(pool, ask(at=1, head_sha="old"))
    [row] = await rows(pool)
    assert row.head_sha == "new"
    assert row.asked_at == T0 + timedelta(seconds=2)


async def test_an_ask_of_our_own_clock_does_not_hide_a_head_of_githubs(pool: Pool) -> None:
    await put(pool, ask(at=1, head_sha="old"))
    await put(pool, ask(at=100))  # a sweep, an operator: no head, and a clock of its own
    await put(pool, ask(at=2, head_sha="new"))
    [row] = await rows(pool)
    assert (row.head_sha, row.asked_at) == ("new", T0 + timedelta(seconds=2))


async def test_an_ask_without_a_head_keeps_the_one_that_is_known(pool: Pool) -> None:
    await put(pool, ask(at=1, head_sha="known"))
    await put(pool, ask(at=2))
    [row] = await rows(pool)
    assert row.head_sha == "known"


async def test_a_need_asked_for_again_while_it_is_done_is_done_again(pool: Pool) -> None:
    await put(pool, ask())
    loaded = await rows(pool)
    await put(pool, ask())
    async with pool.acquire() as connection:
        await work.finish(connection, loaded)
    [row] = await rows(pool)
    assert row.ask_seq > loaded[0].ask_seq
    async with pool.acquire() as connection:
        await work.finish(connection, [row])
    assert await rows(pool) == []


async def test_a_row_deleted_and_asked_anew_is_not_taken_for_the_old_one(pool: Pool) -> None:
    await put(pool, ask())
    frozen = await rows(pool)  # a holder that now sleeps past its lease
    async with pool.acquire() as connection:
        await work.finish(connection, await work.load(connection, "pull.1.1"))
    await put(pool, ask())
    async with pool.acquire() as connection:
        await work.finish(connection, frozen)
        await work.postpone(connection, frozen[0], seconds=60, failure={"error": "X"})
        await work.bury(connection, frozen[0], {"error": "X"})
    [row] = await rows(pool)
    assert row.attempts == 0


async def test_waiting_counts_no_attempt_and_failing_does(pool: Pool) -> None:
    await put(pool, ask(forced=True))
    [row] = await rows(pool)
    async with pool.acquire() as connection:
        await work.postpone(connection, row, seconds=0)
    [row] = await rows(pool)
    assert (row.attempts, row.forced) == (0, True)
    async with pool.acquire() as connection:
        await work.postpone(connection, row, seconds=0, failure={"error": "X"})
    [row] = await rows(pool)
    assert (row.attempts, row.forced) == (1, False)


async def test_work_that_keeps_failing_is_dead_until_an_event_asks_anew(pool: Pool) -> None:
    await put(pool, ask())
    for attempt in range(work.MAX_ATTEMPTS):
        [row] = await rows(pool)
        assert row.attempts == attempt
        async with pool.acquire() as connection:
            await work.postpone(connection, row, seconds=0, failure={"error": "X"})
    assert await rows(pool) == []
    await put(pool, ask(at=1, revive=False))
    assert await rows(pool) == [], "a sweep must not wake dead work"
    await put(pool, ask(at=2))
    [row] = await rows(pool)
    assert row.attempts == 0


async def test_a_new_head_starts_counting_anew(pool: Pool) -> None:
    await put(pool, ask(head_sha="a"))
    [row] = await rows(pool)
    async with pool.acquire() as connection:
        await work.postpone(connection, row, seconds=0, failure={"error": "X"})
    await put(pool, ask(at=1, head_sha="b"))
    [row] = await rows(pool)
    assert row.attempts == 0


async def test_one_crowded_installation_does_not_stand_before_another(pool: Pool) -> None:
    crowd = [ask(f"pull.1.{n}", installation_id=7) for n in range(1000)]
    await put(pool, *crowd)
    await put(pool, ask("pull.2.1", installation_id=8))
    async with pool.acquire() as connection:
        found = await work.due(connection, [0], running=[], per_installation=8, limit=32)
    assert {"pull.2.1"} == {due.address for due in found[:2]} & {"pull.2.1"}
    assert len(found) == 9


async def test_a_running_address_and_a_foreign_partition_are_not_offered(pool: Pool) -> None:
    await put(pool, ask("pull.1.1"), ask("pull.1.2"), ask("pull.1.3", partition=1))
    async with pool.acquire() as connection:
        found = await work.due(connection, [0], running=["pull.1.1"], per_installation=8, limit=32)
    assert [due.address for due in found] == ["pull.1.2"]


async def test_a_suspended_installation_is_parked_but_for_its_own_sync(pool: Pool) -> None:
    async with pool.acquire() as connection:
        await installations.describe(
            connection,
            7,
            account_id=1,
            account_login="octo",
            account_type="User",
            repository_selection="all",
            permissions={},
            events=[],
            suspended_at=T0,
        )
    await put(pool, ask("pull.1.1"), ask("installation.7", "sync"))
    async with pool.acquire() as connection:
        found = await work.due(connection, [0], running=[], per_installation=8, limit=32)
    assert [due.address for due in found] == ["installation.7"]


async def test_the_next_due_time_is_known(pool: Pool) -> None:
    async with pool.acquire() as connection:
        assert await work.next_due_in(connection, [0]) is None
    await put(pool, ask(delay=30.0))
    async with pool.acquire() as connection:
        wait = await work.next_due_in(connection, [0])
    assert wait is not None
    assert timedelta(seconds=25) < wait <= timedelta(seconds=30)


ASKS = st.lists(
    st.builds(
        lambda n, at, sha, forced, delay: ask(f"pull.1.{n}", at=at, head_sha=sha, forced=forced, delay=delay),
        st.integers(1, 2),
        st.integers(0, 5),
        st.sampled_from([None, "a", "b"]),
        st.booleans(),
        st.floats(0, 10),
    ),
    min_size=1,
    max_size=8,
)


@given(ASKS)
def test_merging_a_batch_loses_nothing(asks: list[Ask]) -> None:
    merged = {(a.address, a.need): a for a in work.merged(asks)}
    assert list(merged) == sorted({(a.address, a.need) for a in asks})
    for key, one in merged.items():
        same = [a for a in asks if (a.address, a.need) == key]
        heads = [a for a in same if a.head_sha is not None]
        if heads:
            assert one.asked_at == max(a.asked_at for a in heads)
            assert one.head_sha in {a.head_sha for a in heads if a.asked_at == one.asked_at}
        else:
            assert one.head_sha is None
        assert one.forced == any(a.forced for a in same)
        assert one.delay == min(a.delay for a in same)


@pytest.mark.parametrize("attempts", [0, 3, 50])
def test_backoff_grows_and_is_bounded(attempts: int) -> None:
    from actors.run import backoff

    assert 2 <= backoff(attempts) <= 600
    assert backoff(attempts + 1) >= backoff(attempts)
