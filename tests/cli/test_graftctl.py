"""graftctl as a program: which broker, what is printed, exit codes; and its page in the docs."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from graft import control
from graft.cli import tables
from graft.cli.broker import choose
from graft.cli.graftctl import PullName, main
from graft.config import Settings
from graft.embedded import NatsServer
from graft.errors import ConfigError
from graft.testing import agreeable_model
from tests.actors.world import World, world

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "graftctl.md"

Run = Callable[..., Awaitable[Result]]


# -------------------------------------------------------------------------------------------- which broker


def contexts(home: Path, selected: str | None = None, **found: dict[str, str]) -> dict[str, str]:
    """An environment whose `nats` tool has these contexts."""
    directory = home / "nats" / "context"
    directory.mkdir(parents=True)
    for name, content in found.items():
        (directory / f"{name}.json").write_text(json.dumps(content))
    if selected:
        (home / "nats" / "context.txt").write_text(selected)
    return {"XDG_CONFIG_HOME": str(home)}


def test_options_come_before_the_environment_and_that_before_the_selected_context(tmp_path: Path) -> None:
    environment = contexts(tmp_path, "prod", prod={"url": "nats://prod:4222"}, lab={"url": "nats://lab:4222"})
    assert choose(environment).url == "nats://prod:4222"
    environment["NATS_URL"] = "nats://env:4222"
    assert choose(environment).url == "nats://env:4222"
    assert choose(environment, context="lab").url == "nats://lab:4222"
    both = choose(environment, context="lab", server="nats://other:4222")
    assert (both.url, both.origin) == ("nats://other:4222", "context lab")
    assert choose(environment, server="nats://one:4222").origin == "--server"


def test_a_context_brings_its_credentials_and_inbox(tmp_path: Path) -> None:
    creds = tmp_path / "ann.creds"
    creds.write_text("secret")
    environment = contexts(
        tmp_path,
        prod={"url": "nats://prod:4222", "user": "ann", "password": "pw", "inbox_prefix": "_INBOX_ann"},
    )
    found = choose(environment, context="prod").arguments()
    assert (found["user"], found["password"], found["inbox_prefix"]) == ("ann", "pw", "_INBOX_ann")
    given = choose(environment, context="prod", creds=str(creds))
    assert given.arguments()["user_credentials"] == str(creds)
    assert "pw" not in repr(given)
    assert (
        choose(environment, server="nats://h:1", prefix="lab").arguments()["inbox_prefix"]
        == "_INBOX_lab_operator"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "no broker chosen"),
        ({"context": "nothing"}, "there is no context nothing"),
        ({"context": "broken"}, "not a context of the nats tool"),
        ({"context": "nsc"}, "which only the nats tool knows"),
        ({"server": "http://host"}, "--server"),
        ({"server": "nats://h:1", "prefix": "a.b"}, "GRAFT_NATS_PREFIX"),
    ],
)
def test_what_cannot_be_used_names_the_option(tmp_path: Path, given: dict[str, str], said: str) -> None:
    environment = contexts(tmp_path, nsc={"url": "nats://h:1", "nsc": "nsc://x"})
    (tmp_path / "nats" / "context" / "broken.json").write_text("[")
    with pytest.raises(ConfigError, match=re.escape(said)):
        choose(environment, **given)


def test_files_that_are_not_there_are_told_by_their_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--creds, NATS_CREDS, .* names a file that is not there"):
        choose({}, server="nats://h:1", creds=str(tmp_path / "missing.creds")).arguments()


@pytest.mark.parametrize("text", ["octo/demo#7", "https://github.com/octo/demo/pull/7", "octo/demo/pull/7"])
def test_a_pull_request_may_be_named_or_given_as_a_url(text: str) -> None:
    assert PullName().convert(text, None, None) == control.ChangeName(repository="octo/demo", number=7)


@pytest.mark.parametrize(
    "text", ["", "demo#7", "octo/demo", "octo/demo#0", "octo/demo#x", "a/b/c#1", "octo/demo#٧"]
)
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        PullName().convert(text, None, None)


# ---------------------------------------------------------------------------------------------- what is shown


def test_text_from_outside_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    now = datetime.now(UTC)
    evil = "[bold]\x1b]0;owned\x07\x1b[2J\u202e\r\n"
    rows = (
        control.DeadRow(
            address="pull.1.1",
            name=evil,
            need=evil,
            dead_at=now,
            attempts=1,
            failure={"error": evil, "reason": evil},
            head_sha=None,
            installation_id=1,
            repository_id=1,
            first_asked_at=now,
            forced=False,
        ),
    )
    tables.console().print(tables.dead(control.Dead(rows=rows, total=1)))
    tables.console().print(tables.dead_one(rows))
    reasons = control.Reasons(
        name=evil,
        head_sha="a" * 40,
        decisions=(control.Because(decision="risk", outcome=evil, facts=(evil,)),),
        verdict=None,
        policy_read=evil,
    )
    tables.console().print(tables.reasons(reasons))
    shown = capsys.readouterr().out
    assert not set("\x1b\x07\r\u202e") & set(shown)
    assert "[bold]" in shown


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0, "0.0 s"),
        (4.26, "4.3 s"),
        (59, "59 s"),
        (89, "89 s"),
        (120, "2 min"),
        (7200, "2 h"),
        (-3e5, "-3 d"),
    ],
)
def test_durations_are_short(seconds: float | None, text: str) -> None:
    assert tables.duration(seconds) == text


def test_everything_that_is_wrong_asks_for_attention() -> None:
    status = control.Status(
        answered_by="a",
        version="1",
        replicas=(
            control.Replica(
                replica="a",
                version="1",
                started_at=datetime.now(UTC) - timedelta(hours=1),
                draining=False,
                partitions=(),
                answers=False,
                refused="GET app answered 401",
            ),
        ),
        partitions=32,
        unheld=(1, 2),
        backlog=None,
        work=control.WorkCounts(due=1, waiting=0, parked=0, dead=3, oldest_due_seconds=900),
        running=(),
        limits=(
            control.Limited(
                installation_id=1, replica="a", limited_seconds=60, remaining=0, reset_seconds=60
            ),
        ),
        installations={},
        repositories=0,
        changes={},
    )
    said = " / ".join(tables.attention(status))
    for part in ("401", "does not answer", "held by nobody", "the broker", "15 min", "dead ls", "limits 1"):
        assert part in said


# ----------------------------------------------------------------------------------------------- exit codes


def invoke(*arguments: str, **environment: str) -> Result:
    quiet = dict.fromkeys(("NATS_URL", "NATS_CREDS", "GRAFT_NATS_PREFIX"), "")
    return CliRunner().invoke(main, arguments, env={**quiet, "XDG_CONFIG_HOME": "/nowhere", **environment})


def test_a_call_that_is_wrong_exits_with_2() -> None:
    assert invoke("status").exit_code == 2
    assert "no broker chosen" in invoke("status").output
    assert invoke("show", "nonsense", NATS_URL="nats://127.0.0.1:1").exit_code == 2


def test_a_broker_that_is_not_there_exits_with_3_and_says_what_to_check() -> None:
    result = invoke("status", NATS_URL="nats://127.0.0.1:1")
    assert result.exit_code == 3
    assert "no NATS server answered" in result.output


async def test_a_broker_without_a_daemon_exits_with_3(nats_url: str, bus_prefix: str) -> None:
    result = await asyncio.to_thread(invoke, "status", NATS_URL=nats_url, GRAFT_NATS_PREFIX=bus_prefix)
    assert result.exit_code == 3
    assert f"no Graft answers on {bus_prefix}.ctl.read.status" in result.output


async def test_a_question_that_the_user_may_not_ask_is_refused_by_the_broker(tmp_path: Path) -> None:
    server = NatsServer(
        tmp_path,
        more='authorization { users: [{user: v, password: p, permissions: {publish: ["graft.ctl.read.*"], '
        'subscribe: ["_INBOX_graft_operator.>"]}}] }',
    )
    await asyncio.to_thread(server.start)
    try:
        url = server.url.replace("://", "://v:p@")
        result = await asyncio.to_thread(invoke, "rerun", "octo/demo#1", NATS_URL=url)
        assert result.exit_code == 1
        assert "may not publish to graft.ctl.act.rerun" in result.output
        result = await asyncio.to_thread(invoke, "watch", NATS_URL=url)
        assert (result.exit_code, "may not listen" in result.output) == (1, True)
        result = await asyncio.to_thread(invoke, "status", NATS_URL=server.url)
        assert result.exit_code == 2
        assert "refused these credentials" in result.output
    finally:
        await asyncio.to_thread(server.stop)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(shell: str) -> None:
    result = invoke("completion", shell)
    assert result.exit_code == 0
    assert "_GRAFTCTL_COMPLETE" in result.output


# ----------------------------------------------------------------------------------------- against a daemon


@pytest.fixture
async def graft(
    tmp_path: Path,
    settings: Callable[..., Settings],
    database_url: str,
    nats_url: str,
    bus_prefix: str,
) -> AsyncIterator[World]:
    made = world(
        tmp_path,
        settings,
        database_url=database_url,
        nats_url=nats_url,
        prefix=bus_prefix,
        model=agreeable_model(),
    )
    async with made as found:
        yield found


@pytest.fixture
def run(graft: World, nats_url: str, bus_prefix: str) -> Run:
    """`await run("show", "octo/demo#1")`."""

    async def invoked(*arguments: str) -> Result:
        return await asyncio.to_thread(invoke, *arguments, NATS_URL=nats_url, GRAFT_NATS_PREFIX=bus_prefix)

    return invoked


POLICY = """\
version: 1
rules:
  - name: docs only
    when: {paths: {only: ["**/*.md"]}}
    then: approve
  - name: agents need two
    when: {author: [agent]}
    then: {review: {count: 2}}
default: review
"""

# What the page shows, in its order: a heading, a sentence, the commands.
SECTIONS: tuple[tuple[str, str, tuple[tuple[str, ...], ...]], ...] = (
    (
        "status",
        "Replicas and what they hold, the stream, the work, GitHub's limits. With `--check` it exits with 1 when "
        "something needs attention; every such thing has a line that starts with `!`.",
        (("status",),),
    ),
    (
        "ls",
        "Actors that have work or run, the most overdue first. `ls PART` filters by name or address, `--state` by "
        "state.",
        (("ls",), ("ls", "octo", "--state", "dead")),
    ),
    (
        "show",
        "Everything stored of one pull request, and what its holder says it does now. While no replica holds its "
        "partition this is “changing hands”.",
        (("show", "octo/demo#1"),),
    ),
    (
        "why",
        "The decisions with the facts behind them. Names of rules are not stored: graft.yaml is read again from "
        "GitHub at the commit that decided.",
        (("why", "octo/demo#1"),),
    ),
    (
        "rerun",
        "Ask for steps to be done again although nothing has changed, once a minute at most.",
        (("rerun", "octo/demo#1"), ("rerun", "octo/demo#1", "--step", "policy")),
    ),
    ("watch", "Signals as they come; `-n` ends after so many, `--json` prints one object a line.", ()),
    (
        "top",
        "`status` and `ls` as a live view, until Ctrl-C. `-n 1` takes one picture.",
        (("top", "-n", "1"),),
    ),
    (
        "dead",
        "Work that failed for good, with its metadata. `retry` and `drop` take an actor, an actor and a need, or "
        "`--all`.",
        (
            ("dead", "ls"),
            ("dead", "show", "octo/demo#5"),
            ("dead", "retry", "octo/demo#5", "intent"),
            ("dead", "drop", "octo/demo#6", "--yes"),
        ),
    ),
    (
        "deliveries",
        "GitHub's own log beside what arrived here. Recovery asks for missing ones by itself; `--redeliver` does "
        "it now.",
        (("deliveries", "--limit", "30"), ("deliveries", "--missing"), ("deliveries", "--redeliver")),
    ),
    ("budget", "What models cost today, by repository.", (("budget",),)),
    ("config", "The settings of the replica that answers, and where each comes from.", (("config",),)),
    (
        "drain",
        "Before a replica is stopped: it hands its work to the others, goes on taking webhooks, and the command "
        "ends when it holds nothing. `--undo` takes it back.",
        (("drain", "REPLICA"), ("drain", "REPLICA", "--force", "--no-wait"), ("drain", "REPLICA", "--undo")),
    ),
    (
        "partitions",
        "Deal the work out in another number of partitions, at least one per replica, while everything runs: one "
        "transaction moves the work and takes all leases away, and the replicas take the new ones within a second.",
        (("partitions", "48"),),
    ),
)


async def prepare(graft: World) -> None:
    """A pull request that was shown, dead work, and a delivery that was lost."""
    graft.builder.commit("main", {"graft.yaml": POLICY})
    await graft.simulator.push(graft.repository, "main")
    graft.commit(
        "feature",
        {"src/app.py": "def main():\n    return 2\n"},
        message="Return two\n\nGraft-Agent: claude-code\nGraft-Model: claude-opus-5-5\n",
    )
    await graft.open()
    await graft.settled()
    for number, need in ((5, "intent"), (6, "policy")):
        await graft.pool.execute(
            """
            INSERT INTO work (address, need, partition, installation_id, repository_id, asked_at, attempts,
                              dead_at, last_failure)
            VALUES ($1, $2, 0, $3, $4, now(), 8, now(), '{"error": "NotFound", "reason": "not_found"}')
            """,
            f"pull.{graft.repository.id}.{number}",
            need,
            graft.repository.installation.id if graft.repository.installation else 0,
            graft.repository.id,
        )


async def lose_a_delivery(graft: World) -> None:
    graft.simulator.faults.swallow_deliveries = 1
    graft.commit("other", {"src/app.py": "def main():\n    return 5\n"})
    await graft.open("other")
    await graft.simulator.drain()


async def transcripts(graft: World, run: Run) -> dict[str, list[tuple[str, str, int]]]:
    """Each section's commands with what they printed and their exit codes."""
    found: dict[str, list[tuple[str, str, int]]] = {}
    await prepare(graft)
    for name, _, commands in SECTIONS:
        if name == "deliveries":
            await lose_a_delivery(graft)
        entries = found.setdefault(name, [])
        if name == "watch":
            watching = asyncio.ensure_future(run("watch", "-n", "1"))
            # It hears nothing of what was before: let it listen first.
            async with asyncio.timeout(20):
                while not watching.done():
                    await graft.daemon.services.bus.signal(
                        "published", {"repository_id": graft.repository.id, "number": 1, "final": True}
                    )
                    await asyncio.sleep(0.2)
            result = await watching
            entries.append(("graftctl watch -n 1", result.output, result.exit_code))
        for command in commands:
            arguments = [graft.daemon.system.holder if part == "REPLICA" else part for part in command]
            result = await run(*arguments)
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                raise result.exception
            if name == "rerun":
                await graft.settled()
            words = [f"'{part}'" if "#" in part else part for part in arguments]
            entries.append((" ".join(["graftctl", *words]), result.output, result.exit_code))
    return found


def page(found: dict[str, list[tuple[str, str, int]]], graft: World) -> str:
    lines = [
        "# graftctl",
        "",
        "Written by `GRAFT_WRITE_DOCS=1 pytest tests/cli/test_graftctl.py`: every transcript is the output of a "
        "daemon with a simulated GitHub. Change the test, not this page.",
        "",
        "`graftctl` asks a running Graft over NATS. Any replica answers from Postgres; what a pull request's actor "
        "does now is asked of the replica that holds it.",
        "",
        "| broker | how it is chosen |",
        "| --- | --- |",
        "| `--server URL`, `--creds FILE` | first |",
        "| `--context NAME` | a context of the `nats` tool |",
        "| `NATS_URL`, `NATS_CREDS`, `GRAFT_NATS_PREFIX` | the environment |",
        "| the selected context of the `nats` tool | else |",
        "",
        "| exit code | meaning |",
        "| --- | --- |",
        "| 0 | done |",
        "| 1 | the daemon or the broker refused; `status --check` found something |",
        "| 2 | the call or its settings are wrong |",
        "| 3 | nobody answered in time |",
        "",
        "`--json` prints the whole answer for programs; its fields are the structs of `graft/control/`. "
        '`eval "$(graftctl completion bash)"` completes commands, contexts and replicas (zsh and fish, too).',
        "",
        "Who may ask what is the broker's decision: questions go to `graft.ctl.read.<name>`, whatever changes "
        "something to `graft.ctl.act.<name>`. `deploy/nats.conf` has a user for each.",
    ]
    for name, text, _ in SECTIONS:
        lines += ["", f"## {name}", "", text]
        for command, output, code in found[name]:
            shown = "\n".join(line.rstrip() for line in output.rstrip().splitlines())
            ending = f"\n[exit code {code}]" if code else ""
            lines += ["", "```console", f"$ {command}", shown + ending, "```"]
    return "\n".join(lines).replace(graft.daemon.system.holder, "web-1-7-3fa9c1") + "\n"


def skeleton(text: str) -> list[str]:
    """The page without what differs from run to run: headings, commands, exit codes, and how each block begins.
    What happens to run at that moment is left out."""
    kept = []
    before = ""
    for line in text.splitlines():
        words = re.findall(r"[A-Za-z][A-Za-z.'/-]{2,}", line)
        starts = (not before or before.startswith("$ ")) and words and words[0] != "running"
        if line.startswith(("#", "$ ", "[exit")):
            kept.append(line)
        elif starts and re.match(r"[a-z]", line):
            kept.append(words[0])
        before = line
    return kept


async def test_every_command_works_and_the_page_shows_it(graft: World, run: Run) -> None:
    found = await transcripts(graft, run)
    written = page(found, graft)
    codes = {command: code for entries in found.values() for command, _, code in entries}
    failed = {command for command, code in codes.items() if code}
    assert failed == {f"graftctl drain {graft.daemon.system.holder}"}, "the only replica is not drained"
    if os.environ.get("GRAFT_WRITE_DOCS"):
        PAGE.write_text(written, encoding="utf-8")
    stored = PAGE.read_text(encoding="utf-8")
    assert skeleton(stored) == skeleton(written), "run it again with GRAFT_WRITE_DOCS=1"
    documented = set(re.findall(r"^## (\w+)$", stored, re.MULTILINE)) | {"completion"}
    assert documented == set(main.commands)


async def test_json_is_the_whole_answer(graft: World, run: Run) -> None:
    await prepare(graft)
    for arguments in (("status",), ("ls",), ("show", "octo/demo#1"), ("why", "octo/demo#1"), ("config",)):
        result = await run(*arguments, "--json")
        assert result.exit_code == 0
        assert json.loads(result.output)
    shown = json.loads((await run("show", "octo/demo#1", "--json")).output)
    assert shown["card"]["card"]["goal"]["text"]
    assert shown["live"]["state"] == "idle"
    result = await run("status", "--check")
    assert (result.exit_code, "2 needs failed for good" in result.output) == (1, True)
    result = await run("dead", "drop", "--all", "--yes", "--json")
    assert len(json.loads(result.output)["rows"]) == 2
    assert (await run("status", "--check")).exit_code == 0
    assert (await run("show", "octo/demo#99")).exit_code == 1
    assert (await run("dead", "retry")).exit_code == 2
    assert (await run("deliveries", "x")).exit_code == 2
