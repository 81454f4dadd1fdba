"""Each permission of the broker's users is used by a program, and without it the broker refuses what that does."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import ClientSession

from graft.simulator import Simulator
from graft.simulator.demo_repository import build_demo_repository
from proof import processes
from tests.actors.world import environment

from .conftest import DEPLOY, ROLES, ROOT, Broker, running
from .test_permissions import connected, final_publication, graftctl

CONFIG = (DEPLOY / "nats.conf").read_text()
VIEWED = ("viewer", "subscribe")
Permission = tuple[str, str, str]  # user, `publish` or `subscribe`, subject


def permissions() -> list[Permission]:
    """What the deployed file allows."""
    found = []
    code = "\n".join(line.partition("#")[0] for line in CONFIG.splitlines())
    for user, block in re.findall(
        r"user: (\w+)\s+password: \S+\s+permissions \{(.*?)\n        \}", code, re.DOTALL
    ):
        for verb, listed in re.findall(r"(publish|subscribe): \[(.*?)\]", block, re.DOTALL):
            found += [(user, verb, subject) for subject in re.findall(r'"([^"]+)"', listed)]
    return found


def fits(pattern: str, subject: str) -> bool:
    """NATS' meaning of `*` and `>`."""
    wanted, given = pattern.split("."), subject.split(".")
    for at, token in enumerate(wanted):
        if token == ">":
            return len(given) > at
        if at >= len(given) or token not in ("*", given[at]):
            return False
    return len(wanted) == len(given)


def used(traced: str) -> dict[tuple[str, str], set[str]]:
    """{(user, verb): subjects} of what clients said to the server."""
    found: dict[tuple[str, str], set[str]] = {}
    for user, verb, subject in re.findall(r'"GRAFT/user:(\w+)" - <<- \[H?(PUB|SUB) (\S+)', traced):
        found.setdefault((user, "subscribe" if verb == "SUB" else "publish"), set()).add(subject)
    return found


async def test_programs_use_every_permission(tmp_path: Path, database_url: str) -> None:
    made = build_demo_repository(tmp_path / "demo.git")
    with running("--trace") as broker:
        async with Simulator() as simulator:
            repository = simulator.add_repository("octo/demo", made.path)
            whole = environment(simulator, database_url, broker.url("daemon"), "graft")
            actors = {name: text for name, text in whole.items() if name != "GITHUB_WEBHOOK_SECRET"}
            ingress = {
                "NATS_URL": broker.url("ingress"),
                "GITHUB_APP_ID": whole["GITHUB_APP_ID"],
                "GITHUB_WEBHOOK_SECRET": whole["GITHUB_WEBHOOK_SECRET"],
            }
            async with (
                processes.serving(actors, command="actors"),
                processes.serving(whole) as both,
                processes.serving(ingress, command="ingress") as door,
            ):
                for url in (door.url, both.url):
                    simulator.app.webhook_url = f"{url}/webhooks/github"
                    async with final_publication(broker) as published:
                        await simulator.open_pull(
                            repository, head=made.head_branch, title=made.title, body=made.body
                        )
                        await asyncio.wait_for(published.wait(), 40)
                for arguments in (("status",), ("show", "octo/demo#1"), ("rerun", "octo/demo#1")):
                    code, said = await graftctl(broker.url("operator"), *arguments)
                    assert code == 0, said
                # Any replica may be asked; only one that does not hold the change asks the holder.
                for _ in range(40):
                    if "graft.holder." in "".join(used(broker.traced()).get(("daemon", "publish"), ())):
                        break
                    assert (await graftctl(broker.url("operator"), "show", "octo/demo#1"))[0] == 0
                assert (await graftctl(broker.url("viewer"), "status"))[0] == 0
                [replica, *_] = re.findall(r'"replica":"([^"]+)"', (await status(broker)))
                assert (await graftctl(broker.url("operator"), "drain", replica))[0] == 0
                await look_as_nats_does(broker)
                await watch(broker)
                async with ClientSession() as session, session.get(f"{door.url}/readyz") as ready:
                    assert ready.status == 200
            # As an operator who wants the stream to be larger.
            async with processes.serving(whole | {"GRAFT_STREAM_MAX_BYTES": "2097152"}):
                pass
            purge = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "graft", "purge", "--yes", "--installation"),
                str(repository.installation.id if repository.installation else 0),
                cwd=ROOT,
                env={"PATH": os.environ["PATH"], **whole},
                stdout=subprocess.DEVNULL,
            )
            assert await asyncio.wait_for(purge.wait(), 30) == 0
        assert broker.violations() == []
        said_by = used(broker.traced())
    unused = [
        (user, verb, subject)
        for user, verb, subject in permissions()
        if not any(fits(subject, each) for each in said_by.get((user, verb), ()))
    ]
    assert unused == [], str(unused)


async def status(broker: Broker) -> str:
    code, said = await graftctl(broker.url("operator"), "status", "--json")
    assert code == 0, said
    return said


async def watch(broker: Broker) -> None:
    """`graftctl watch` as a viewer, until it listens."""
    process = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).with_name("graftctl")), "watch"),
        env={"PATH": os.environ["PATH"], "NATS_URL": broker.url("viewer"), "XDG_CONFIG_HOME": "/nonexistent"},
        stdout=subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(20):
            while not any(each.startswith("graft.signal.") for each in used(broker.traced()).get(VIEWED, ())):
                await asyncio.sleep(0.05)
    finally:
        process.kill()
        await process.wait()


async def look_as_nats_does(broker: Broker) -> None:
    """What `nats micro ls`, `info` and `stats` ask."""
    for user, verbs in (("operator", ("PING", "INFO", "STATS")), ("viewer", ("PING",))):
        # Answers go to operators' inboxes only; a viewer's are among them.
        async with connected(broker, user, inbox="operator") as person:
            for verb in verbs:
                for subject in (f"$SRV.{verb}", f"$SRV.{verb}.graft"):
                    answer = await person.client.request(subject, b"", timeout=5)
                    assert b'"graft"' in answer.data


# ------------------------------------------------------------------------------------------------- one taken away


def without(permission: Permission) -> str:
    """The deployed file with one subject of one user taken out."""
    user, verb, subject = permission
    at = CONFIG.index(f"user: {user}\n")
    at = CONFIG.index(f"{verb}: [", at)
    # Another one in its place: an empty list would allow everything.
    return CONFIG[:at] + CONFIG[at:].replace(f'"{subject}"', '"taken.away"', 1)


@pytest.fixture(scope="module")
def reloadable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Path]]:
    """A broker whose file can be changed while it runs."""
    config = tmp_path_factory.mktemp("conf") / "nats.conf"
    config.write_text(CONFIG)
    with running(config=config) as broker:
        yield broker, config


def test_the_file_is_read_as_the_broker_reads_it() -> None:
    found = permissions()
    assert {user for user, _, _ in found} == set(ROLES)
    assert len(found) == len(set(found)) > 40
    assert len(found) == len(re.findall(r'^\s+"[^"]+"$|"[^"\s]+"(?=[,\]])', CONFIG, re.MULTILINE))
    assert fits("a.*.>", "a.b.c.d")
    assert not fits("a.*", "a.b.c")
    assert not fits("a.>", "a")


@pytest.mark.parametrize("permission", permissions(), ids=lambda each: " ".join(each))
async def test_without_it_the_broker_refuses(reloadable: tuple[Broker, Path], permission: Permission) -> None:
    """And no other permission of the user covers for it."""
    broker, config = reloadable
    user, verb, subject = permission
    tried = subject.replace("*", "1").replace(">", "one")
    for text, refused in ((without(permission), {tried}), (CONFIG, set())):
        config.write_text(text)
        broker.reload()
        async with connected(broker, user) as person:
            found = await (
                person.refused(publish=[tried]) if verb == "publish" else person.refused(hear=[tried])
            )
        assert found == refused
