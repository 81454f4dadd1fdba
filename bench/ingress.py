"""Accepted deliveries per second, and how long one takes, at 1, 16 and 64 connections.

Three processes: a freshly started NATS server, the ingress alone, and this one, which posts a signed
`pull_request` payload of about 12 KB over keep-alive connections, each delivery under an id of its own. A
delivery counts when its answer is 202 and the broker has acknowledged it. It is run once against a broker
with `sync_interval: always` and once with NATS' default, which syncs every two minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import hmac
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import uvloop
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from graft import embedded, ingress
from graft.bus import Bus
from graft.config import Settings
from graft.metrics import Metrics
from graft.streams import StreamSettings

SECRET = "bench"
CONNECTIONS = (1, 16, 64)
STREAM_BYTES = 2 * 1024**3


# ----------------------------------------------------------------------------------------------- what is posted


def _account(number: int, login: str) -> dict[str, Any]:
    root = f"https://api.github.com/users/{login}"
    names = ("followers", "following", "gists", "starred", "subscriptions", "orgs", "repos", "events")
    return {
        "login": login,
        "id": number,
        "node_id": f"U_{number}",
        "type": "User",
        "site_admin": False,
        "url": root,
        **{f"{name}_url": f"{root}/{name}" for name in names},
    }


def _repository(number: int) -> dict[str, Any]:
    root = f"https://api.github.com/repos/octo/demo{number}"
    names = (
        *("forks", "keys", "collaborators", "teams", "hooks", "events", "assignees", "branches", "tags"),
        *("blobs", "statuses", "languages", "stargazers", "contributors", "subscribers", "commits", "issues"),
    )
    return {
        "id": number,
        "name": f"demo{number}",
        "full_name": f"octo/demo{number}",
        "private": False,
        "owner": _account(1, "octo"),
        "default_branch": "main",
        "pushed_at": "2026-12-01T11:58:00Z",
        **{f"{name}_url": f"{root}/{name}{{/sha}}" for name in names},
    }


def payload() -> bytes:
    """A `pull_request` payload with the fields and about the size of GitHub's."""
    repository, author = _repository(70), _account(5, "ann")
    return json.dumps(
        {
            "action": "synchronize",
            "number": 12,
            "pull_request": {
                "id": 900,
                "number": 12,
                "state": "open",
                "title": "Retry the payment when the gateway times out",
                "body": "The gateway answers 504 now and then.\n\n" + "It is safe to try again. " * 40,
                "user": author,
                "created_at": "2026-12-01T09:00:00Z",
                "updated_at": "2026-12-01T12:00:00Z",
                "head": {"ref": "retry", "sha": "a" * 40, "user": author, "repo": repository},
                "base": {"ref": "main", "sha": "b" * 40, "user": author, "repo": repository},
                "labels": [{"id": 1, "name": "bug", "color": "ff0000"}],
                "requested_reviewers": [_account(6, "bob"), _account(8, "eve")],
                "additions": 40,
                "deletions": 3,
                "changed_files": 4,
            },
            "repository": repository,
            "installation": {"id": 7, "node_id": "I_7"},
            "sender": author,
        }
    ).encode()


def requests(body: bytes, port: int) -> Iterator[bytes]:
    """The same signed body under ever new delivery ids."""
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    head = (
        f"POST /webhooks/github HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUser-Agent: GitHub-Hookshot/bench\r\n"
        "Accept: */*\r\nContent-Type: application/json\r\nX-GitHub-Event: pull_request\r\n"
        f"X-Hub-Signature-256: sha256={signature}\r\nContent-Length: {len(body)}\r\nX-GitHub-Delivery: "
    ).encode()
    run = time.time_ns()
    for number in itertools.count():
        yield b"%b%x-%x\r\n\r\n%b" % (head, run, number, body)


# ---------------------------------------------------------------------------------------------- one connection


class Sender(asyncio.Protocol):
    """Posts one delivery after the other and notes how long each took."""

    def __init__(self, source: Iterator[bytes]) -> None:
        self._source = source
        self._answer = b""
        self._began = 0.0
        self._transport: asyncio.Transport | None = None
        self.stopped = asyncio.get_running_loop().create_future()
        self.seconds: list[float] = []
        self.refused = 0
        self.stopping = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is no subclass
        self._send()

    def _send(self) -> None:
        assert self._transport is not None
        self._began = time.perf_counter()
        self._transport.write(next(self._source))

    def data_received(self, data: bytes) -> None:
        self._answer += data
        if not self._answer.endswith(b"}"):
            return
        if b" 202 " in self._answer[:20] and b"accepted" in self._answer:
            self.seconds.append(time.perf_counter() - self._began)
        else:
            self.refused += 1
        self._answer = b""
        if self.stopping:
            assert self._transport is not None
            self._transport.close()
        else:
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.stopped.done():
            self.stopped.set_result(None)


async def load(port: int, connections: int, seconds: float, source: Iterator[bytes]) -> list[Sender]:
    """Post over so many connections at a time for so long."""
    loop = asyncio.get_running_loop()
    pairs = [
        await loop.create_connection(lambda: Sender(source), "127.0.0.1", port) for _ in range(connections)
    ]
    await asyncio.sleep(seconds)
    senders = [sender for _, sender in pairs]
    for sender in senders:
        sender.stopping = True
    async with asyncio.timeout(30):
        await asyncio.gather(*(sender.stopped for sender in senders))
    return senders


# --------------------------------------------------------------------------------------------- the other process


async def serve(nats_url: str) -> None:
    """The ingress alone, until standard input ends; prints its port."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    settings = Settings.from_env(
        {
            "DATABASE_URL": "postgresql://unused/unused",
            "NATS_URL": nats_url,
            "GITHUB_APP_ID": "1",
            "GITHUB_APP_PRIVATE_KEY": pem,
            "GITHUB_WEBHOOK_SECRET": SECRET,
        }
    )
    bus = await Bus.connect(nats_url)
    await bus.ensure_stream(StreamSettings(max_bytes=STREAM_BYTES))
    runner = ingress.runner(ingress.create_app(settings, bus, ingress.Readiness(), Metrics()))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()
    await bus.close()


@contextmanager
def serving(nats_url: str) -> Iterator[int]:
    """The port of an ingress in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.ingress", "--serve", nats_url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait(20)
        process.stdout.close()


def measure(*, sync_always: bool, seconds: float) -> bool:
    """Print the figures for one kind of broker; whether every delivery was accepted."""
    body = payload()
    name = "sync_interval: always" if sync_always else "sync_interval: 2m (the default)"
    print(f"ingress, {name}, pull_request payload of {len(body):,} bytes, {seconds:g} s each")
    good = True
    with (
        tempfile.TemporaryDirectory(prefix="graft-bench-") as directory,
        embedded.running_nats(Path(directory) / "nats", sync_always=sync_always) as broker,
        serving(broker.url) as port,
    ):
        source = requests(body, port)
        uvloop.run(load(port, 4, 0.5, source))  # warm up
        for connections in CONNECTIONS:
            senders = uvloop.run(load(port, connections, seconds, source))
            taken = sorted(second for sender in senders for second in sender.seconds)
            refused = sum(sender.refused for sender in senders)
            good = good and not refused and len(taken) > 1
            cuts = statistics.quantiles(taken, n=100)
            print(
                f"  {connections:3} connections: {len(taken) / seconds:7,.0f}/s accepted,"
                f" p50 {cuts[49] * 1000:6.2f} ms, p99 {cuts[98] * 1000:6.2f} ms, {refused} refused"
            )
    return good


def main(argv: list[str]) -> int:
    """Run both kinds; 1 when a delivery was refused."""
    parser = argparse.ArgumentParser(prog="python -m bench ingress", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each measurement")
    parser.add_argument("--serve", metavar="NATS_URL", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.serve:
        uvloop.run(serve(arguments.serve))
        return 0
    results = [measure(sync_always=always, seconds=arguments.seconds) for always in (True, False)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
