"""A database and a stream as a release left them, kept as files, and their takeover by the code of now.

`freeze` runs the real system into the middle of things: comments are published, votes are cast, some work is begun
and some lies in the stream untouched. It keeps the schema, the rows, the triggers as bytes and what stood on GitHub
at that moment. `restore` puts all of that back; whoever starts a daemon on it afterwards sees whether it copes.

Only what was released is worth keeping: the files are written once, before the first release, and belong to that
release from then on. A later schema reaches them through `graft/migrations`.
"""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import asyncpg
import msgspec

from graft import database, streams
from graft.bus import Bus
from graft.simulator import Pull, Repository, Simulator
from graft.simulator.demo_repository import RepositoryBuilder
from graft.simulator.routes.checks import suite_at
from graft.simulator.routes.issues import add_comment
from graft.simulator.state import CheckRun
from proof import postgres
from proof.site import Site, opened, ours, until

FIRST: Final = Path(__file__).with_name("data") / "first"
SCHEMA: Final = Path(database.__file__).with_name("schema.sql")
PREFIX: Final = "first"
INSTALLATION, REPOSITORY = 9_001, 9_101
FULL_NAME: Final = "octo/kept"
READ_PULL: Final = "GET /repos/{owner}/{repo}/pulls/{number}"
# Kept rows are from before any clock that reads them, so that a pull request's own time is always newer.
NEWEST: Final = datetime(2025, 1, 1, tzinfo=UTC)
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)([ T])(\d\d:\d\d:\d\d(?:\.\d+)?)(\+00(?::00)?|Z)")
# Who ran is of no interest, and numbers of days are computed from the rest.
_LEFT_OUT: Final = ("schema_version", "replicas", "metrics_daily", "api_calls")

SETTLED, PUSHED, BEGUN, MERGED, LATE = range(1, 6)
_BRANCHES: Final = ("settled", "pushed", "begun", "merged", "late")


class Message(msgspec.Struct, frozen=True):
    """One message of the stream, as it lay there."""

    subject: str
    headers: dict[str, str]
    data: str  # in base64

    @property
    def payload(self) -> bytes:
        return base64.b64decode(self.data)


class Comment(msgspec.Struct, frozen=True):
    number: int
    id: int
    body: str


class Run(msgspec.Struct, frozen=True):
    id: int
    head_sha: str
    name: str
    external_id: str
    conclusion: str
    output: dict[str, Any]
    actions: list[dict[str, str]]


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What a release left on GitHub, and which heads its pull requests had."""

    heads: dict[int, str]
    comments: list[Comment]
    runs: list[Run]


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """All that is kept of a release."""

    schema: str
    rows: str
    messages: list[Message]
    shown: Shown

    @classmethod
    def read(cls, directory: Path = FIRST) -> Kept:
        lines = (directory / "triggers.jsonl").read_bytes().splitlines()
        return cls(
            schema=(directory / "schema.sql").read_text(encoding="utf-8"),
            rows=(directory / "rows.sql").read_text(encoding="utf-8"),
            messages=[msgspec.json.decode(line, type=Message) for line in lines],
            shown=msgspec.json.decode((directory / "github.json").read_bytes(), type=Shown),
        )

    def write(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "schema.sql").write_text(self.schema, encoding="utf-8")
        (directory / "rows.sql").write_text(self.rows, encoding="utf-8")
        (directory / "triggers.jsonl").write_bytes(
            b"".join(msgspec.json.encode(m) + b"\n" for m in self.messages)
        )
        (directory / "github.json").write_bytes(msgspec.json.format(msgspec.json.encode(self.shown)) + b"\n")


# ---------------------------------------------------------------------------------------------------- the stage


def repository(simulator: Simulator, path: Path) -> Repository:
    """The repository that the files are about: the same ids and SHAs every time."""
    builder = RepositoryBuilder(path=path)
    base = builder.commit("main", {"src/app.py": "MARK = 0\n"}, message="Start")
    for number, branch in enumerate(_BRANCHES, start=1):
        builder.commit(branch, {"src/app.py": f"MARK = {number}\n"}, parent=base, message="Mark it")
    builder.commit(
        "pushed-again", {"src/app.py": "MARK = 20\n"}, parent=builder.tip("pushed"), message="Mark it"
    )
    installation = simulator.add_installation("octo", id=INSTALLATION)
    return simulator.add_repository(FULL_NAME, path, installation=installation, id=REPOSITORY)


async def open_pull(simulator: Simulator, of: Repository, number: int) -> Pull:
    """The pull requests are opened in the order of their numbers."""
    pull = await simulator.open_pull(of, head=_BRANCHES[number - 1], title=f"Mark {number}")
    assert pull.number == number
    return pull


# ------------------------------------------------------------------------------------------------------- freezing


async def freeze(directory: Path) -> Kept:
    """Run the present code into the middle of things and return what it leaves; `directory` is for scratch."""
    async with opened(directory, prefix=PREFIX, durable=False) as site:
        simulator = site.simulator
        made = repository(simulator, directory / "kept.git")
        daemon = await site.start()
        try:
            site.send_to(daemon)
            pulls = {number: await open_pull(simulator, made, number) for number in (SETTLED, PUSHED)}
            await site.settled(seconds=60)
            await _talk(simulator, pulls[SETTLED])
            await site.settled(seconds=60)
            simulator.faults.hang(READ_PULL, times=None)
            pulls[BEGUN] = await open_pull(simulator, made, BEGUN)
            await simulator.drain()
            await until(lambda: _begun(site), seconds=30)
        finally:
            await daemon.kill()
        simulator.faults.clear()
        await _send_on(site, made, pulls)
        messages = await _messages(site.bus)
        await site.pool.execute("UPDATE partitions SET holder = 'first-1-abcdef' WHERE holder IS NOT NULL")
        rows = await postgres.dump(site.postgres.url(), "--data-only", "--column-inserts", *_without())
    shift = NEWEST - datetime.now(UTC)
    return Kept(
        schema=SCHEMA.read_text(encoding="utf-8"),
        rows=_shifted(_statements(rows.decode()), shift),
        messages=[_shifted_message(message, shift) for message in messages],
        shown=_shown(made, pulls),
    )


async def _talk(simulator: Simulator, pull: Pull) -> None:
    """A vote by button, and a review."""
    [run] = [r for r in pull.repository.runs_at(pull.head_sha) if r.actions]
    simulator.set_permission(pull.repository, "mona", "write")
    simulator.press_button(run.id, run.actions[0]["identifier"], user="mona")
    await simulator.review(pull, user="mona")


async def _begun(site: Site) -> bool:
    """Whether the work is in its rows, and nothing else is on its way."""
    found: int = await site.pool.fetchval(
        "SELECT count(*) FROM work WHERE address = $1", f"pull.{REPOSITORY}.{BEGUN}"
    )
    return bool(found) and not (await site.bus.backlog()).messages


async def _send_on(site: Site, made: Repository, pulls: dict[int, Pull]) -> None:
    """What arrives while only an ingress runs: it stays in the stream."""
    simulator = site.simulator
    ingress = await site.start_ingress()
    try:
        site.send_to(ingress)
        await simulator.push(made, "pushed", "pushed-again")
        pulls[MERGED] = await open_pull(simulator, made, MERGED)
        await simulator.close(pulls[MERGED], merged=True)
        pulls[LATE] = await open_pull(simulator, made, LATE)
        await simulator.edit(pulls[SETTLED], title="Mark 1, again", body="Said better.")
        [run] = [r for r in made.runs_at(pulls[SETTLED].head_sha) if r.actions]
        simulator.press_button(run.id, run.actions[1]["identifier"], user="hubot")
        await simulator.review(pulls[SETTLED], user="hubot", state="CHANGES_REQUESTED")
        simulator.suspend(made.installation)  # type: ignore[arg-type]
        simulator.unsuspend(made.installation)  # type: ignore[arg-type]
        await simulator.label(pulls[LATE], "graft:incident")
        await simulator.rerequest_suite(made.suites[pulls[PUSHED].previous_head_sha or ""])
        await simulator.drain()
    finally:
        await ingress.kill()


async def _messages(bus: Bus) -> list[Message]:
    js = bus.client.jetstream()
    name = streams.stream_name(PREFIX)
    state = (await js.stream_info(name)).state
    found = []
    for sequence in range(state.first_seq, state.last_seq + 1):
        message = await js.get_msg(name, sequence)
        data = base64.b64encode(message.data or b"").decode()
        found.append(Message(message.subject or "", dict(message.headers or {}), data))
    return found


def _without() -> list[str]:
    return ["--no-owner", *(f"--exclude-table-data={name}" for name in _LEFT_OUT)]


def _statements(dumped: str) -> str:
    """Without what only psql understands."""
    kept = [line for line in dumped.splitlines() if not line.startswith(("\\", "--", "SET ")) and line]
    return "\n".join(line for line in kept if "set_config" not in line) + "\n"


def _shifted(text: str, by: timedelta) -> str:
    def shift(found: re.Match[str]) -> str:
        at = datetime.fromisoformat(f"{found[1]}T{found[3]}+00:00") + by
        return f"{at:%Y-%m-%d}{found[2]}{at:%H:%M:%S.%f}{found[4]}"

    # The simulated GitHub's delivery ids end in the network address of the machine that made them.
    return _TIME.sub(shift, text).replace(f"{uuid.getnode():012x}", "0200c0ffee01")


def _shifted_message(message: Message, by: timedelta) -> Message:
    data = base64.b64encode(_shifted(message.payload.decode(), by).encode()).decode()
    headers = {name: _shifted(value, by) for name, value in message.headers.items()}
    return Message(message.subject, headers, data)


def _shown(made: Repository, pulls: Mapping[int, Pull]) -> Shown:
    return Shown(
        heads={number: pull.head_sha for number, pull in sorted(pulls.items())},
        comments=[Comment(n, c.id, c.body) for n, pull in sorted(pulls.items()) for c in ours(pull)],
        runs=[
            Run(r.id, r.suite.head_sha, r.name, r.external_id, r.conclusion or "", r.output, r.actions)
            for _, r in sorted(made.runs.items())
        ],
    )


# ------------------------------------------------------------------------------------------------------ restoring


async def restore_rows(url: str, kept: Kept) -> None:
    """The kept schema and rows in an empty database."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(kept.schema)
        await connection.execute(kept.rows)
    finally:
        await connection.close()


async def restore_stream(bus: Bus, kept: Kept) -> None:
    """The kept messages in an empty stream, byte for byte; `bus` has the prefix of the files."""
    js = bus.client.jetstream()
    for message in kept.messages:
        await js.publish(message.subject, message.payload, headers=dict(message.headers))


async def restore_github(simulator: Simulator, kept: Kept, path: Path) -> dict[int, Pull]:
    """The kept pull requests as they were, with comments and check runs; their webhooks are not sent again."""
    made = repository(simulator, path)
    world = simulator.world
    shown = kept.shown
    used = [*(c.id for c in shown.comments), *(r.id for r in shown.runs)]
    while world.next_id() <= max(used):
        pass
    url, simulator.app.webhook_url = simulator.app.webhook_url, None
    pulls = {number: await open_pull(simulator, made, number) for number in sorted(shown.heads)}
    await simulator.push(made, "pushed", "pushed-again")
    await simulator.close(pulls[MERGED], merged=True)
    await simulator.edit(pulls[SETTLED], title="Mark 1, again", body="Said better.")
    await simulator.label(pulls[LATE], "graft:incident")
    for user in ("mona", "hubot"):
        simulator.set_permission(made, user, "write")
    simulator.app.webhook_url = url
    # The log of a GitHub that delivered all of it and was asked again for none.
    simulator.deliveries.clear()
    bot = world.user(simulator.app.bot_login, type="Bot")
    for one in shown.comments:
        comment = add_comment(world, pulls[one.number].issue, bot, one.body, via_app=True)
        del world.comments[comment.id]
        comment.id = one.id
        world.comments[one.id] = comment
    for run in shown.runs:
        suite = suite_at(world, made, run.head_sha)
        back = CheckRun(
            id=run.id,
            suite=suite,
            name=run.name,
            status="completed",
            conclusion=run.conclusion,
            external_id=run.external_id,
            details_url=None,
            started_at=world.time(),
            completed_at=world.time(),
            output=dict(run.output),
            actions=list(run.actions),
        )
        suite.runs.append(back)
        made.runs[run.id] = back
    assert {number: pull.head_sha for number, pull in pulls.items()} == shown.heads
    return pulls


def faults(pulls: Mapping[int, Pull], kept: Kept) -> list[str]:
    """What is wrong on GitHub once everything has been done; nothing where the takeover was right."""
    found = []
    before = {one.number: one.id for one in kept.shown.comments}
    for number, pull in pulls.items():
        comments = ours(pull)
        if number == MERGED:
            found += [f"#{number} was merged unseen and has a comment"] if comments else []
            continue
        if len(comments) != 1:
            found.append(f"#{number} has {len(comments)} comments")
            continue
        if number in before and comments[0].id != before[number]:
            found.append(f"#{number} has another comment than before")
        if pull.head_sha[:7] not in comments[0].body:
            found.append(f"#{number} does not show its head")
        names = sorted(run.name for run in pull.repository.runs_at(pull.head_sha))
        if names != ["graft/intent", "graft/policy", "graft/provenance"]:
            found.append(f"#{number} has the check runs {names}")
    return found
