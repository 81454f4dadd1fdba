"""Restored to an hour ago, with an empty broker: GitHub shows what it should, once."""

from __future__ import annotations

from pathlib import Path

from proof import restore


async def test_every_pull_request_is_right_again_without_a_second_comment(servers_directory: Path) -> None:
    found = await restore.play(servers_directory / "restore", count=1, durable=False)
    assert found.faults == []
    assert found.dead == 0
    assert found.missing > 10, "the lost hour was lost"
    assert found.again == found.missing
    assert found.votes.known_card == 2, "a vote of the lost hour on a card of the backup counts"
    said = restore.table(found)
    assert {row[-1] for row in said.rows} == {"met", "as said"}
    assert all(len(row) == len(said.columns) for row in said.rows)
