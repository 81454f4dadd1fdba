"""The deployed users of the broker: each may do its work and nothing else."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from graft.bus import Bus
from graft.errors import ConfigError
from graft.simulator import Simulator
from graft.simulator.demo_repository import build_demo_repository
from graft.streams import StreamSettings
from proof import processes
from tests.actors.world import environment

from .conftest import ROOT, Broker

# What each user must not be able to do, besides everything that nobody is meant to.
MAY_NOT_PUBLISH = {
    "operator": (
        "graft.trigger.pull.1.2.pull_request",
        "graft.wake.1",
        "graft.signal.published",
        "graft.holder.1",
        "graft.replica.all",
        "_INBOX_graft_daemon.x",
        "_INBOX_graft_operator.x",
        "$JS.API.STREAM.INFO.GRAFT",
        "$JS.API.STREAM.PURGE.GRAFT",
        "$JS.API.STREAM.MSG.GET.GRAFT",
        "$JS.API.DIRECT.GET.GRAFT",
        "$JS.API.CONSUMER.MSG.NEXT.GRAFT.inbox",
        "$JS.API.CONSUMER.CREATE.GRAFT",
        "$JS.ACK.GRAFT.inbox.1.1.1.1.1",
    ),
    "viewer": ("graft.trigger.pull.1.2.pull_request", "graft.ctl.act.rerun", "$JS.API.STREAM.INFO.GRAFT"),
    "ingress": (
        "graft.ctl.read.status",
        "graft.ctl.act.rerun",
        "graft.wake.1",
        "graft.signal.published",
        "$JS.API.STREAM.CREATE.GRAFT",
        "$JS.API.STREAM.DELETE.GRAFT",
        "$JS.API.STREAM.PURGE.GRAFT",
        "$JS.API.STREAM.MSG.GET.GRAFT",
        "$JS.API.DIRECT.GET.GRAFT",
        "$JS.API.CONSUMER.MSG.NEXT.GRAFT.inbox",
        "$JS.API.CONSUMER.CREATE.GRAFT.mine",
        "$JS.ACK.GRAFT.inbox.1.1.1.1.1",
    ),
    "daemon": (
        "graft.ctl.act.drop",
        "other.subject",
        "_INBOX_graft_ingress.x",
        "$JS.API.STREAM.DELETE.GRAFT",
        "$JS.API.STREAM.CREATE.OTHER",
        "$JS.API.CONSUMER.CREATE.GRAFT.other",
    ),
}
INTERNAL = (
    *(">", "graft.>", "graft.trigger.>", "graft.wake.*", "graft.holder.*", "graft.replica.*"),
    *("graft.ctl.>", "_INBOX.>", "_INBOX_graft_daemon.>", "_INBOX_graft_ingress.>", "$JS.>", "$SYS.>"),
)
MAY_NOT_HEAR = {
    "operator": INTERNAL,
    "viewer": INTERNAL,
    "ingress": tuple({*INTERNAL, "_INBOX_graft_operator.>", "graft.signal.*"} - {"_INBOX_graft_ingress.>"}),
    "daemon": (
        ">",
        "graft.trigger.>",
        "_INBOX_graft_operator.>",
        "_INBOX_graft_ingress.>",
        "$JS.>",
        "$SYS.>",
    ),
}


class Person:
    """A connection of one user, and what the server refused it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._complaints: asyncio.Queue[str] = asyncio.Queue()

    async def complain(self, error: Exception) -> None:
        if found := re.search(r'permissions violation for \w+ to "(.+?)"', str(error)):
            self._complaints.put_nowait(found[1])

    async def refused(
        self, *, publish: Sequence[str] = (), hear: Sequence[str] = (), reply: str = ""
    ) -> set[str]:
        """Try all of it; the subjects that were refused (which the server reports later, in order)."""
        for subject in publish:
            await self.client.publish(subject, b"{}", reply=reply)
        for subject in hear:
            await self.client.subscribe(subject)
        await self.client.publish("nobody.may")
        found = set()
        while (subject := await asyncio.wait_for(self._complaints.get(), 10)) != "nobody.may":
            found.add(subject)
        # nats-py lower-cases complaints.
        return {subject for subject in (*publish, *hear) if subject.lower() in found}


@asynccontextmanager
async def connected(broker: Broker, user: str, *, inbox: str = "") -> AsyncIterator[Person]:
    person = Person(Client())
    await person.client.connect(
        broker.url(user),
        error_cb=person.complain,
        inbox_prefix=f"_INBOX_graft_{inbox or user}",
        allow_reconnect=False,
    )
    try:
        yield person
    finally:
        await person.client.close()


@pytest.fixture
async def stream(broker: Broker) -> AsyncIterator[Bus]:
    """The stream, made by the daemon's user."""
    bus = await Bus.connect(broker.url("daemon"))
    await bus.ensure_stream(StreamSettings(max_bytes=1 << 20))
    yield bus
    await bus.close()


async def test_nobody_gets_in_without_a_password(broker: Broker) -> None:
    for url in (f"nats://127.0.0.1:{broker.port}", f"nats://operator:wrong@127.0.0.1:{broker.port}"):
        with pytest.raises(ConfigError, match="refused the credentials"):
            await Bus.connect(url)


@pytest.mark.parametrize("user", list(MAY_NOT_PUBLISH))
async def test_a_user_can_do_nothing_beyond_its_role(broker: Broker, stream: Bus, user: str) -> None:
    async with connected(broker, user) as person:
        assert await person.refused(publish=MAY_NOT_PUBLISH[user]) == set(MAY_NOT_PUBLISH[user])
        assert await person.refused(hear=MAY_NOT_HEAR[user]) == set(MAY_NOT_HEAR[user])
    assert (await stream.backlog()).messages == 0


async def test_what_is_allowed_is_not_refused(broker: Broker, stream: Bus) -> None:
    """The refusals above are not those of a connection that can do nothing at all."""
    async with connected(broker, "ingress") as ingress:
        js = ingress.client.jetstream(timeout=5)
        ack = await js.publish("graft.trigger.pull.1.2.pull_request", b"{}")
        assert ack.stream == "GRAFT"
    async with connected(broker, "operator") as operator:
        acts = ("graft.ctl.read.status", "graft.ctl.act.rerun", "$SRV.PING", "$SRV.PING.graft")
        assert (
            await operator.refused(publish=acts, hear=("graft.signal.*", "_INBOX_graft_operator.>")) == set()
        )
    async with connected(broker, "viewer") as viewer:
        assert await viewer.refused(publish=("graft.ctl.read.status",), hear=("graft.signal.*",)) == set()


async def graftctl(url: str, *arguments: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).with_name("graftctl")), *arguments),
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "NATS_URL": url,
            "COLUMNS": "200",
            "XDG_CONFIG_HOME": "/nonexistent",
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 30)
    return process.returncode or 0, output.decode()


async def test_the_entry_points_work_under_their_users_and_nothing_is_refused(
    tmp_path: Path, broker: Broker, database_url: str
) -> None:
    made = build_demo_repository(tmp_path / "demo.git")
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
            processes.serving(actors, command="actors") as _,
            processes.serving(whole) as _,
            processes.serving(ingress, command="ingress") as door,
            final_publication(broker) as published,
        ):
            simulator.app.webhook_url = f"{door.url}/webhooks/github"
            pull = await simulator.open_pull(
                repository, head=made.head_branch, title=made.title, body=made.body
            )
            await asyncio.wait_for(published.wait(), 40)
            assert len(pull.issue.comments) == 1
            code, said = await graftctl(broker.url("operator"), "status", "--json")
            assert code == 0, said
            # Both replicas answered the roll call of the one that was asked.
            assert said.count('"answers":true') == 2
            assert (await graftctl(broker.url("operator"), "show", "octo/demo#1"))[0] == 0
            assert (await graftctl(broker.url("operator"), "rerun", "octo/demo#1"))[0] == 0
            assert (await graftctl(broker.url("viewer"), "status"))[0] == 0
            assert broker.violations() == []
            code, said = await graftctl(broker.url("viewer"), "rerun", "octo/demo#1")
            assert code == 1
            assert "may not publish to graft.ctl.act.rerun" in said


@asynccontextmanager
async def final_publication(broker: Broker) -> AsyncIterator[asyncio.Event]:
    """Hear the signals as an operator does; set when a pull request shows all there is."""
    published = asyncio.Event()

    async def hear(message: Msg) -> None:
        if message.subject == "graft.signal.published" and b'"final":true' in message.data:
            published.set()

    async with connected(broker, "operator") as operator:
        await operator.client.subscribe("graft.signal.*", cb=hear)
        await operator.client.flush()
        yield published


async def test_an_answer_cannot_be_sent_where_the_asker_may_not_publish(
    tmp_path: Path, broker: Broker, database_url: str
) -> None:
    async with Simulator() as simulator:
        variables = environment(simulator, database_url, broker.url("daemon"), "graft")
        async with processes.serving(variables), connected(broker, "operator") as operator:
            bus = await Bus.connect(broker.url("daemon"))
            assert (await graftctl(broker.url("operator"), "status"))[0] == 0
            for reply in (
                *("graft.trigger.pull.1.2.pull_request", "$JS.API.STREAM.PURGE.GRAFT", "graft.replica.all"),
                "_INBOX_graft_daemon.x",
            ):
                assert (
                    await operator.refused(publish=("graft.ctl.read.status", "$SRV.PING"), reply=reply)
                    == set()
                )
            # Answered after those before it.
            assert (await graftctl(broker.url("operator"), "status"))[0] == 0
            assert (await bus.backlog()).messages == 0
            # The daemon did not even try.
            assert not [line for line in broker.violations() if "nobody.may" not in line]
            await bus.close()
