"""`graft doctor` on a whole Graft, and on one with something broken: it names the part, the cause and the remedy."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from graft.cli.doctor import examine
from graft.pilot.doctor import Check, Severity
from graft.store import installations

from .conftest import MakeWorld
from .world import World, environment

CHANGE = {"src/app.py": "def main():\n    return 2\n"}


def surroundings(graft: World, **variables: str) -> dict[str, str]:
    settings = graft.daemon.services.settings
    known = environment(
        graft.simulator, settings.database_url.value, settings.nats_url.value, settings.nats_prefix
    )
    return known | variables


async def wrong(graft: World, **variables: str) -> dict[str, Check]:
    """What is not well, by name."""
    found = await examine(surroundings(graft, **variables))
    return {check.name: check for check in found if check.severity is not Severity.OK}


# The simulator speaks http, and no test has a key for a model.
EXPECTED = {"settings", "webhook", "models"}


async def test_a_healthy_graft(graft: World) -> None:
    graft.commit("feature", CHANGE)
    await graft.open()
    await graft.settled()
    found = await examine(surroundings(graft))
    assert {check.name for check in found if check.severity is not Severity.OK} == EXPECTED
    assert all(check.severity is not Severity.ERROR for check in found)
    names = {check.name for check in found}
    assert names >= {
        *("database", "dead work", "broker", "app", "clock", "events", "installations", "deliveries"),
        *("permissions of the App", "permissions of octo", "webhook host"),
    }


async def test_a_missing_permission_and_event_are_named(graft: World) -> None:
    installation = graft.repository.installation
    assert installation is not None
    installation.permissions["checks"] = "read"
    del installation.permissions["issues"]
    graft.simulator.app.events.remove("push")
    found = await examine(surroundings(graft))
    said = [check.finding for check in found if check.name == "permissions of octo"]
    assert said == [
        "checks: write is needed, read is granted",
        "issues: read is needed, nothing is granted",
    ]
    [event] = [check for check in found if check.name == "events"]
    assert event.finding == "push is not subscribed"
    assert "graft.yaml" in event.cause


async def test_a_key_of_another_app(graft: World) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
    found = await wrong(graft, GITHUB_APP_PRIVATE_KEY=pem)
    assert found["app"].severity is Severity.ERROR
    assert "GITHUB_APP_PRIVATE_KEY" in found["app"].cause
    assert pem[40:80] not in str(found)


async def test_another_slug(graft: World) -> None:
    found = await wrong(graft, GITHUB_APP_SLUG="other")
    assert found["app"].remedy == f"set GITHUB_APP_SLUG={graft.simulator.app.slug}"


async def test_servers_that_are_away(graft: World) -> None:
    found = await wrong(
        graft,
        DATABASE_URL="postgresql://nobody:hunter2@127.0.0.1:1/nowhere",
        NATS_URL="nats://127.0.0.1:1",
        GITHUB_API_URL="http://127.0.0.1:1",
    )
    for name in ("database", "broker", "app"):
        assert found[name].severity is Severity.ERROR, name
    assert "hunter2" not in str(found)


async def test_a_database_without_a_schema(graft: World, empty_database_url: str) -> None:
    found = await wrong(graft, DATABASE_URL=empty_database_url)
    assert found["database"].remedy == "graft migrate"


async def test_a_broker_without_the_stream(graft: World) -> None:
    found = await wrong(graft, GRAFT_NATS_PREFIX="elsewhere")
    assert "no stream" in found["broker"].finding


async def test_deliveries_that_fail(make_world: MakeWorld) -> None:
    async with make_world(GITHUB_WEBHOOK_SECRET="not the secret of the App") as graft:
        graft.commit("feature", CHANGE)
        await graft.open()
        await graft.simulator.drain()
        found = await wrong(graft)
        assert found["deliveries"].severity is Severity.ERROR
        assert "GITHUB_WEBHOOK_SECRET" in found["deliveries"].cause


async def test_a_webhook_nobody_listens_to(graft: World) -> None:
    graft.simulator.app.webhook_url = "http://127.0.0.1:1/webhooks/github"
    graft.commit("feature", CHANGE)
    await graft.open()
    await graft.simulator.drain()
    found = await wrong(graft)
    assert "could not connect" in found["deliveries"].cause
    assert found["webhook host"].severity is Severity.WARNING


async def test_a_suspended_installation_and_dead_work(graft: World) -> None:
    installation = graft.repository.installation
    assert installation is not None
    async with graft.pool.acquire() as connection:
        await installations.ensure(connection, installation.id, graft.repository.id, "octo/demo")
        await connection.execute(
            """
            INSERT INTO work (address, need, partition, installation_id, repository_id, asked_at, dead_at)
            VALUES ('repository.1', 'rerun:all:abc', 0, $1, $2, now(), now())
            """,
            installation.id,
            graft.repository.id,
        )
    graft.simulator.suspend(installation)
    await graft.settled()
    found = await wrong(graft)
    assert found["installations"].finding == "suspended: octo"
    assert found["dead work"].finding == "rerun ×1"


async def test_a_clock_that_is_off(graft: World) -> None:
    """GitHub's clock is an hour ahead: it takes no token of ours."""
    real = graft.simulator.world.now
    graft.simulator.world.now = lambda: real() + 3_600
    found = await wrong(graft)
    assert found["clock"].severity is Severity.ERROR
    assert "behind" in found["clock"].finding


async def test_settings_that_are_missing_are_all_that_is_said(graft: World) -> None:
    found = await examine({})
    assert {check.name for check in found} == {"settings"}
    assert len(found) >= 5
    assert all(check.severity is Severity.ERROR for check in found)


async def test_offline_asks_nobody_outside(graft: World) -> None:
    away = surroundings(graft, GITHUB_API_URL="http://127.0.0.1:1")
    assert "app" in {check.name for check in await examine(away)}
    found = await examine(away, offline=True)
    assert {check.name for check in found} == {"settings", "database", "dead work", "broker"}
