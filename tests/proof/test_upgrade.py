"""The first release's rows and triggers reach the present code, by the way that every later schema has to take."""

from __future__ import annotations

from pathlib import Path

import asyncpg
import msgspec
import pytest

from graft import database, triggers
from graft.triggers import Trigger
from proof import rolling, takeover, upgrade
from proof.takeover import FIRST, Kept

KEPT = Kept.read()

# Everything of a schema that code can depend on, one line a thing.
CATALOG = """
SELECT format('column %s.%s %s null=%s default=%s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
              NOT a.attnotnull, coalesce(pg_get_expr(d.adbin, d.adrelid), ''))
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT format('constraint %s %s', conrelid::regclass, pg_get_constraintdef(oid))
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL
SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL
SELECT format('sequence %s', sequencename) FROM pg_sequences WHERE schemaname = 'public'
 ORDER BY 1
"""


async def test_the_first_release_is_taken_over(servers_directory: Path) -> None:
    taken = await upgrade.take_over(servers_directory / "takeover", KEPT)
    assert taken.faults == []
    assert taken.version == database.SCHEMA_VERSION
    assert (taken.triggers, taken.comments, taken.votes) == (13, 4, 2)


async def test_the_first_schema_grows_into_the_present_one(
    empty_database_url: str, database_url: str
) -> None:
    """A change of `schema.sql` without the migration that leads to it fails here."""
    await takeover.restore_rows(empty_database_url, KEPT)
    old, new = await asyncpg.connect(empty_database_url), await asyncpg.connect(database_url)
    try:
        assert await database.migrate(old) == database.SCHEMA_VERSION
        grown = [row[0] for row in await old.fetch(CATALOG)]
        made = [row[0] for row in await new.fetch(CATALOG)]
        assert grown == made, (
            "graft/migrations does not lead to graft/schema.sql (graft/migrations/README.md)"
        )
        versions = "SELECT max(version) FROM schema_version"
        assert await old.fetchval(versions) == await new.fetchval(versions) == database.SCHEMA_VERSION
    finally:
        await old.close()
        await new.close()


@pytest.mark.parametrize("message", KEPT.messages, ids=lambda message: message.subject)
def test_a_trigger_of_the_first_release_means_the_same(message: takeover.Message) -> None:
    trigger = triggers.decode(message.payload)
    assert triggers.subject_of(trigger, takeover.PREFIX) == message.subject
    assert message.headers["Nats-Msg-Id"] == trigger.delivery_id
    assert triggers.needs_for(trigger), "it asked for something when it was stored"
    # No field of it was dropped on the way, so none has lost its name.
    before = msgspec.json.decode(message.payload)
    after = msgspec.json.decode(triggers.encode(trigger))
    assert after == before


def test_the_kept_triggers_are_of_every_kind() -> None:
    kinds = {triggers.decode(message.payload).kind for message in KEPT.messages}
    assert kinds == {"pull", "repository", "installation"}


def test_a_trigger_of_a_later_release_can_be_read_by_an_earlier_one() -> None:
    """While replicas are replaced both run: a field that is not known yet is passed over."""
    message = KEPT.messages[0]
    later = msgspec.json.encode({**msgspec.json.decode(message.payload), "not_known_yet": [1]})
    assert triggers.decode(later) == triggers.decode(message.payload)


def test_fields_that_are_new_have_a_default() -> None:
    """A trigger that was stored before a field existed has no value for it."""
    first = {"kind", "event", "delivery_id", "received_at", "installation_id"}
    needed = {field.name for field in msgspec.structs.fields(Trigger) if field.required}
    assert needed <= first


def test_the_kept_files_name_no_machine() -> None:
    for path in FIRST.iterdir():
        text = path.read_text(encoding="utf-8")
        assert "/tmp/" not in text
        assert "PRIVATE KEY" not in text


async def test_two_replicas_are_replaced_under_load(servers_directory: Path) -> None:
    found = await rolling.roll(servers_directory / "rolling", rounds=1, samples=4, pace=3.0, durable=False)
    assert found.faults == []
    assert found.exits == [0, 0]
    assert found.rolling.lost == 0
    assert found.pulls > 8
