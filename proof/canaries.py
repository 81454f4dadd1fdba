"""`python -m proof canaries`: words that occur nowhere else in every untrusted field and every secret, then a search.

A daemon with all of it works on a pull request and meets errors on the way; it is then made to crash. Searched are its
output, metrics, the broker's files, the database's files and rows, and what every command prints, with right
and with wrong settings.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
from aiohttp import web
from msgspec import Struct

from bench.tables import Table, publish
from graft.simulator.demo_repository import RepositoryBuilder
from graft.testing import verifier_answer, writer_answer
from proof.processes import ROOT
from proof.site import Site, opened

_FIELDS: Final = (
    "title", "edited title", "body", "label", "issue title", "issue body", "issue comment", "review body",
    "commit message", "author name", "author address", "file on the head", "file on the base", "diff", "rule name",
    "rule message", "policy problem", "record", "raw answer of the writer", "raw answer of the verifier",
    "header of a delivery", "body of a forged delivery",
)  # fmt: skip
WORDS: Final[Mapping[str, str]] = {field: f"canary{field.replace(' ', '')}q7x9" for field in _FIELDS}
_NAMES: Final = (
    "webhook secret",
    "previous webhook secret",
    "database password",
    "broker password",
    "model key",
)
SECRETS: Final[Mapping[str, str]] = {name: f"secret{name.replace(' ', '')}k3w8" for name in _NAMES}


class Place(Struct, frozen=True, kw_only=True):
    """Somewhere to search; `data` is all of it."""

    name: str
    data: bytes


class Findings(Struct, frozen=True, kw_only=True):
    """`hits` are (place, name of the word); `shown` the fields that the model was really shown."""

    places: tuple[Place, ...]
    hits: tuple[tuple[str, str], ...]
    shown: frozenset[str]


def main(arguments: list[str]) -> int:
    """Exit 1 when a word was found."""
    parser = argparse.ArgumentParser(prog="python -m proof canaries", description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into docs/security.md")
    options = parser.parse_args(arguments)
    found = asyncio.run(search())
    rows = []
    for place in dict.fromkeys(place.name for place in found.places):
        size = sum(len(one.data) for one in found.places if one.name == place)
        of_place = [word for where, word in found.hits if where == place]
        words = f"{len(WORDS)} fields, {len(SECRETS) + 2} secrets"
        rows.append((place, f"{size:,}", words, str(len(of_place)), "0", "missed" if of_place else "met"))
    publish(
        Table(
            name="canaries",
            command="python -m proof canaries",
            columns=("place", "bytes searched", "words", "hits", "aim", "verdict"),
            rows=rows,
            conditions={
                "secrets": ", ".join((*SECRETS, "private key", "installation tokens")),
                "fields": ", ".join(WORDS),
            },
        ),
        write=options.write,
    )
    for where, word in found.hits:
        print(f"found in {where}: {word}", file=sys.stderr)
    return 1 if found.hits else 0


async def search(*, every: int = 1) -> Findings:
    """Run everything once and look everywhere; of the wrong settings only one in so many."""
    with tempfile.TemporaryDirectory(prefix="graft-canaries-") as made:
        directory = Path(made)
        async with AsyncExitStack() as stack:
            site = await stack.enter_async_context(opened(directory, prefix="canary"))
            model = await stack.enter_async_context(_serving({"/v1/messages": _Answers(site)}))
            environment = _environment(site, model.url)
            places = await _work(site, environment, directory)
            places += await commands(environment, dict(list(wrong_settings(environment).items())[::every]))
            places.append(Place(name="the comment", data=_comments(site)))
            places.append(Place(name="rows of the database", data=await _rows(site)))
            for name in ("nats", "postgres"):
                label = "files of the broker" if name == "nats" else "files of the database"
                places.append(Place(name=label, data=_files(directory / name)))
            secrets = {**SECRETS, **_made_secrets(site)}
            shown = frozenset(field for field, word in WORDS.items() if word in model.handler.text)
    hits = [
        (place.name, name)
        for place in places
        for name, word in {**WORDS, **secrets}.items()
        if word.encode() in place.data or base64.b64encode(word.encode())[:-4] in place.data
    ]
    # Policy and records are the repository's own words to its readers; `graftctl why` reads them anew at GitHub.
    told = {("the comment", name) for name in ("rule name", "rule message", "record")}
    told.add(("`graftctl` while it runs", "rule name"))
    return Findings(
        places=tuple(places), hits=tuple(dict.fromkeys(h for h in hits if h not in told)), shown=shown
    )


def _environment(site: Site, model: str) -> dict[str, str]:
    site.simulator.app.webhook_secret = SECRETS["webhook secret"]
    database = re.sub(r"//([^@/:]+)@", rf"//\1:{SECRETS['database password']}@", site.postgres.url())
    if SECRETS["database password"] not in database:
        database = site.postgres.url() + ("&" if "?" in site.postgres.url() else "?")
        database += f"password={SECRETS['database password']}"
    return site.environment(
        DATABASE_URL=database,
        NATS_URL=site.nats.url.replace("://", f"://graft:{SECRETS['broker password']}@"),
        GITHUB_WEBHOOK_SECRET=SECRETS["webhook secret"],
        GITHUB_WEBHOOK_SECRET_PREVIOUS=SECRETS["previous webhook secret"],
        ANTHROPIC_API_KEY=SECRETS["model key"],
        ANTHROPIC_BASE_URL=model,
        GRAFT_LOG_LEVEL="debug",
        GRAFT_INCIDENT_LABEL="incident",
        PYTHONFAULTHANDLER="1",
    )


def _made_secrets(site: Site) -> dict[str, str]:
    """Secrets that nobody chose: the key's longest line, and the signature of each token that was given out."""
    key = max(site.simulator.private_key.splitlines(), key=len)
    tokens = {
        f"installation token {n}": token[-40:] for n, token in enumerate(site.simulator.server.tokens.grants)
    }
    return {"private key": key, **tokens}


# --------------------------------------------------------------------------------------------------- what happens


async def _work(site: Site, environment: Mapping[str, str], directory: Path) -> list[Place]:
    """A pull request that holds every word, with failures on the way; then a crash."""
    builder = RepositoryBuilder(path=directory / "demo.git")
    policy = "\n".join(
        [
            "version: 1",
            "rules:",
            f"  - name: {WORDS['rule name']}",
            "    when: {paths: {any: ['**']}}",
            f"    then: {{review: {{message: {WORDS['rule message']}}}}}",
        ]
    )
    record = f"# x\n\nid: 0001-x\nstatus: approved\ncontext: ./CONTEXT.md\n\n## Rules\n\nR1: {WORDS['record']} holds.\n"
    builder.commit(
        "main",
        {
            "src/app.py": f"# {WORDS['file on the base']}\nx = 1\n",
            "graft.yaml": policy,
            ".intent/records/0001-x.md": record,
        },
        message="Start",
    )
    repository = site.simulator.add_repository("octo/demo", builder.path)
    head = builder.commit(
        "feature",
        {"src/app.py": f"x = 2  # {WORDS['diff']}\n", "src/new.py": f"'{WORDS['file on the head']}'\n"},
        message=f"Say {WORDS['commit message']}",
        parent=builder.tip("main"),
        author=f"{WORDS['author name']} <{WORDS['author address']}@example.org>",
    )
    output = directory / "output.txt"
    with output.open("wb") as sink:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "graft", "serve",
            cwd=ROOT, stdin=asyncio.subprocess.DEVNULL, stdout=sink, stderr=sink,
            env={"PATH": os.environ["PATH"], "GRAFT_LISTEN": "127.0.0.1:0", **environment},
        )  # fmt: skip
    try:
        url = await _ready(process, output)
        site.simulator.app.webhook_url = f"{url}/webhooks/github"
        issue = site.simulator.open_issue(repository, title=WORDS["issue title"], body=WORDS["issue body"])
        site.simulator.comment(issue, WORDS["issue comment"])
        pull = await site.simulator.open_pull(
            repository, head=head, head_ref="feature", title=WORDS["title"],
            body=f"{WORDS['body']}\n\nFixes #{issue.number}", labels=[WORDS["label"]],
        )  # fmt: skip
        await site.settled(seconds=60)
        site.simulator.comment(pull, WORDS["issue comment"])
        await site.simulator.review(pull, user="hubot", body=WORDS["review body"])
        await site.simulator.edit(pull, title=WORDS["edited title"])
        await site.settled(seconds=60)
        # A policy that is not valid, and requests that GitHub refuses: error paths that know the texts.
        builder.commit(
            "main", {"graft.yaml": f"version: 1\n{WORDS['policy problem']}: [{WORDS['rule name']}"}
        )
        site.simulator.faults.fail("PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}", status=422)
        site.simulator.faults.fail("GET /repos/{owner}/{repo}/pulls/{number}", status=401)
        head = builder.commit(
            "feature", {"src/new.py": f"# {WORDS['diff']}\n"}, message=WORDS["commit message"]
        )
        await site.simulator.synchronize(pull, head)
        await site.simulator.drain()
        await _forge(url)
        await asyncio.sleep(1.0)
        async with aiohttp.ClientSession() as http:
            told = [
                await (await http.get(f"{url}/{page}")).read() for page in ("metrics", "readyz", "healthz")
            ]
        asked = await commands(environment, {"": {}}, names=LIVE)
    finally:
        # As a crash would: the interpreter prints where every thread was.
        if process.returncode is None:
            process.send_signal(signal.SIGABRT)
        await asyncio.wait_for(process.wait(), 30)
    data = output.read_bytes()
    assert b"Fatal Python error" in data, "there must be crash output"
    return [
        Place(name="logs and crash output of `graft serve` at level debug", data=data),
        Place(name="metrics, readiness, health", data=b"".join(told)),
        *asked,
    ]


async def _forge(url: str) -> None:
    body = json.dumps(
        {"title": WORDS["body of a forged delivery"], "number": WORDS["body of a forged delivery"]}
    )
    for headers in (
        {"X-Hub-Signature-256": WORDS["header of a delivery"]},
        {"X-Hub-Signature-256": "sha256=" + "0" * 64, "X-GitHub-Event": WORDS["header of a delivery"]},
        {
            "X-GitHub-Delivery": WORDS["header of a delivery"] + "\u00e9",
            "User-Agent": WORDS["header of a delivery"],
        },
        {"X-Long": WORDS["header of a delivery"] * 400},
        {"X Bad": "x"},
    ):
        sent = {"Content-Type": "application/json", **headers}
        try:
            async with aiohttp.ClientSession() as http:
                await http.post(f"{url}/webhooks/github", data=body, headers=sent)
        except (aiohttp.ClientError, ValueError):
            pass


async def _ready(process: asyncio.subprocess.Process, output: Path) -> str:
    async with asyncio.timeout(60):
        while True:
            if process.returncode is not None:
                raise RuntimeError(f"the daemon ended: {output.read_bytes()[-500:]!r}")
            for line in output.read_bytes().splitlines():
                if b'"ready"' in line and b'"listen"' in line:
                    return str(json.loads(line)["listen"])
            await asyncio.sleep(0.1)


# ------------------------------------------------------------------------------------------------------- commands

LIVE: Final = (
    "graftctl status", "graftctl ls", "graftctl show octo/demo#1", "graftctl show octo/demo#2",
    "graftctl why octo/demo#2", "graftctl budget", "graftctl config", "graftctl dead", "graftctl deliveries",
    "graftctl show octo/demo#2 --json", "graftctl why octo/demo#2 --json", "graftctl config --json",
    "graft doctor", "graft metrics", "graft report",
    "graft incident list", "graft gate", "graft baseline", "graft shadow",
)  # fmt: skip
ALONE: Final = (
    "graft serve",
    "graft ingress",
    "graft actors",
    "graft migrate",
    "graft doctor",
    "graftctl status",
)


def wrong_settings(environment: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Settings that are wrong in one variable, whose wrong value holds a secret."""
    wrong = {
        "DATABASE_URL": (
            f"postgresql://graft:{SECRETS['database password']}@127.0.0.1:1/graft",
            f"postgresql://graft:{SECRETS['database password']}@no-such-host.invalid/graft",
            f"mysql://graft:{SECRETS['database password']}@localhost/graft",
            f"postgresql://graft:{SECRETS['database password']}@localhost:port/graft",
            SECRETS["database password"],
        ),
        "NATS_URL": (
            f"nats://graft:{SECRETS['broker password']}@127.0.0.1:1",
            f"nats://graft:{SECRETS['broker password']}@no-such-host.invalid:4222",
            f"http://graft:{SECRETS['broker password']}@localhost",
            f"nats://graft:{SECRETS['broker password']}@localhost:port",
            SECRETS["broker password"],
        ),
        "GITHUB_APP_PRIVATE_KEY": (
            f"-----BEGIN RSA PRIVATE KEY-----\n{SECRETS['model key']}\n-----END RSA PRIVATE KEY-----",
            SECRETS["model key"],
            environment["GITHUB_APP_PRIVATE_KEY"][:-80],
        ),
        "GITHUB_WEBHOOK_SECRET_PREVIOUS": (environment["GITHUB_WEBHOOK_SECRET"],),
        "GITHUB_APP_ID": (SECRETS["webhook secret"],),
        "GITHUB_API_URL": (f"https://user:{SECRETS['model key']}@github.example", SECRETS["model key"]),
        "ANTHROPIC_BASE_URL": (
            f"ftp://{SECRETS['model key']}",
            f"https://u:{SECRETS['model key']}@x.example/",
        ),
        "GRAFT_LISTEN": (SECRETS["webhook secret"],),
        "GRAFT_LOG_LEVEL": (SECRETS["webhook secret"],),
        "GRAFT_INTENT_DAILY_BUDGET_USD": (SECRETS["webhook secret"],),
        "NATS_CREDS": (f"/nowhere/{SECRETS['broker password']}",),
    }
    return {
        f"{name} {number}": {**environment, name: value}
        for name, values in wrong.items()
        for number, value in enumerate(values)
    }


async def commands(
    environment: Mapping[str, str],
    settings: Mapping[str, Mapping[str, str]],
    *,
    names: tuple[str, ...] = ALONE,
) -> list[Place]:
    """What each command prints with each of the settings; those that would run on are ended."""
    limit = asyncio.Semaphore(3)

    async def run(command: str, chosen: Mapping[str, str]) -> bytes:
        program, *rest = command.split()
        async with limit:
            process = await asyncio.create_subprocess_exec(
                str(Path(sys.executable).with_name(program)), *rest,
                cwd=tempfile.gettempdir(), stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
                env={"PATH": os.environ["PATH"], "GRAFT_LISTEN": "127.0.0.1:0", **environment, **chosen},
            )  # fmt: skip
            try:
                out, _ = await asyncio.wait_for(process.communicate(), 8)
            except TimeoutError:
                process.kill()
                out, _ = await process.communicate()
            return out

    wrong = names == ALONE
    pairs = [
        (command, chosen)
        for chosen in settings.values()
        for command in _concerned(names, chosen, environment)
    ]
    printed = await asyncio.gather(*(run(command, chosen) for command, chosen in pairs))
    label = "with wrong settings" if wrong else "while it runs"
    return [
        Place(name=f"`{command.split()[0]}` {label}", data=out)
        for (command, _), out in zip(pairs, printed, strict=True)
    ]


def _concerned(
    names: tuple[str, ...], chosen: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[str, ...]:
    """The commands that read what is wrong: the daemon always, the others by their settings."""
    if names != ALONE:
        return names
    wrong = {name for name, value in chosen.items() if environment.get(name) != value}
    if wrong & {"NATS_URL", "NATS_CREDS"}:
        return ("graft serve", "graft ingress", "graft doctor", "graftctl status")
    if wrong & {"DATABASE_URL"}:
        return ("graft serve", "graft migrate", "graft doctor", "graft metrics")
    return ("graft serve", "graft doctor")


# -------------------------------------------------------------------------------------------------------- searched


def _files(directory: Path) -> bytes:
    return b"\0".join(path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file())


async def _rows(site: Site) -> bytes:
    """Every row of every table as text."""
    tables = await site.pool.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    rows = [
        row["row"]
        for table in tables
        for row in await site.pool.fetch(f'SELECT t::text AS row FROM "{table["tablename"]}" t')
    ]
    return "\n".join(rows).encode()


def _comments(site: Site) -> bytes:
    [repository] = site.simulator.world.repositories.values()
    bodies = [
        comment.body
        for issue in repository.issues.values()
        for comment in issue.comments
        if comment.body.startswith("<!-- graft:managed-comment")
    ]
    assert bodies, "there must be a comment"
    return "\n".join(bodies).encode()


class _Answers:
    """A model whose first answers are no JSON and hold words; `text` is what it was asked."""

    def __init__(self, _site: Site) -> None:
        self.text = ""
        self._asked: dict[str, int] = {}

    async def __call__(self, request: web.Request) -> web.Response:
        asked: dict[str, Any] = await request.json()
        self.text += json.dumps(asked)
        purpose = (
            "writer" if "goal" in asked["output_config"]["format"]["schema"]["properties"] else "verifier"
        )
        count = self._asked[purpose] = self._asked.get(purpose, 0) + 1
        right = (
            writer_answer("Returns two.", ["x is two."], "logic")
            if purpose == "writer"
            else verifier_answer(1)
        )
        text = f"No: {WORDS[f'raw answer of the {purpose}']}" if count == 1 else json.dumps(right)
        return web.json_response(
            {
                "id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"],
                "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": None,
                "usage": {"input_tokens": 1_000, "output_tokens": 100},
            }
        )  # fmt: skip


class _Served(Struct, frozen=True):
    url: str
    handler: Any


@asynccontextmanager
async def _serving(routes: Mapping[str, Any]) -> AsyncIterator[_Served]:
    app = web.Application(client_max_size=64 * 1024 * 1024)
    for path, handler in routes.items():
        app.router.add_post(path, handler.__call__)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield _Served(f"http://127.0.0.1:{runner.addresses[0][1]}", next(iter(routes.values())))
    finally:
        await runner.cleanup()
