"""`python -m proof flood`: a thousand senders that mean harm, against `graft ingress` as a process.

Each attack holds its connections open while good deliveries arrive. What counts: how much memory the process took at
most, and whether every good delivery was answered with 202 while it lasted.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import hmac
import itertools
import json
import re
import resource
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from bench.tables import Table, publish
from graft import embedded
from graft.bus import Bus
from graft.ingress import LARGEST_BODY
from graft.streams import StreamSettings, stream_name
from proof import processes

SECRET = "proof"
# What deploy/kubernetes/ingress.yaml gives the process.
AIM_BYTES = 512 * 1024 * 1024
# GitHub waits this long for an answer.
AIM_SECONDS = 10.0
_BACK_AFTER = 0.25
_BODY = json.dumps(
    {
        "action": "opened",
        "number": 12,
        "installation": {"id": 7},
        "sender": {"id": 5, "login": "ann", "type": "User"},
        "repository": {"id": 70, "full_name": "octo/demo", "name": "demo", "default_branch": "main"},
        "pull_request": {
            "id": 900,
            "number": 12,
            "state": "open",
            "draft": False,
            "updated_at": "2026-12-01T12:00:00Z",
            "head": {"sha": "a" * 40, "ref": "feature"},
            "base": {"sha": "b" * 40, "ref": "main"},
        },
    }
).encode()

Send = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Attack(Struct, frozen=True, kw_only=True):
    """`send` is what one connection does until it is closed or cancelled."""

    name: str
    send: Send


class Outcome(Struct, frozen=True, kw_only=True):
    """Memory in bytes at its peak (`VmHWM`); answers to good deliveries: sent, taken, and the slowest in seconds."""

    attack: str
    connections: int
    quiet: int
    peak: int
    sent: int
    taken: int
    slowest: float

    @property
    def met(self) -> bool:
        return self.peak <= AIM_BYTES and self.taken == self.sent and self.slowest <= AIM_SECONDS


def _head(length: int | None, *, path: str = "/webhooks/github", signature: str = "0" * 64) -> bytes:
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    return (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-GitHub-Event: pull_request\r\n"
        f"X-GitHub-Delivery: d-1\r\nX-Hub-Signature-256: sha256={signature}\r\n{size}\r\n\r\n"
    ).encode()


async def _trickle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(_head(LARGEST_BODY) + b"{")
    while True:
        await writer.drain()
        await asyncio.sleep(0.5)
        writer.write(b" ")


async def _as_much_as_is_taken(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(_head(LARGEST_BODY))
    piece = b" " * (64 * 1024)
    for _ in range(LARGEST_BODY // len(piece) - 1):
        writer.write(piece)
        await writer.drain()
    await asyncio.sleep(3600)


async def _whole_and_forged(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(_head(LARGEST_BODY))
    piece = b" " * (64 * 1024)
    for _ in range(LARGEST_BODY // len(piece)):
        writer.write(piece)
        await writer.drain()
    await asyncio.sleep(3600)


async def _chunks_without_end(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(_head(None))
    piece = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
    while True:
        writer.write(piece)
        await writer.drain()


async def _silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def _endless_headers(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"POST /webhooks/github HTTP/1.1\r\nHost: x\r\n")
    for number in itertools.count():
        writer.write(f"X-Header-{number}: {'v' * 3_900}\r\n".encode())
        await writer.drain()
        await asyncio.sleep(0.1)


async def _one_endless_header(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"POST /webhooks/github HTTP/1.1\r\nHost: x\r\nX-Header: ")
    while True:
        writer.write(b"v" * 1_000)
        await writer.drain()
        await asyncio.sleep(0.1)


async def _many_requests_at_once(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    request = _head(2) + b"{}"
    while True:
        writer.write(request * 50)
        await writer.drain()


ATTACKS = (
    Attack(name="25 MiB announced, a byte every half second", send=_trickle),
    Attack(name="25 MiB announced, all but the end sent", send=_as_much_as_is_taken),
    Attack(name="25 MiB sent whole with a forged signature", send=_whole_and_forged),
    Attack(name="chunks without an end", send=_chunks_without_end),
    Attack(name="nothing sent", send=_silent),
    Attack(name="headers without an end", send=_endless_headers),
    Attack(name="one header without an end", send=_one_endless_header),
    Attack(name="forged requests, answers never read", send=_many_requests_at_once),
)


def main(arguments: list[str]) -> int:
    """Exit 1 when memory passed the aim, or a good delivery was not taken in time."""
    parser = argparse.ArgumentParser(prog="python -m proof flood", description=__doc__)
    parser.add_argument("--connections", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=15.0, help="how long each attack lasts")
    parser.add_argument("--write", action="store_true", help="put the table into docs/security.md")
    options = parser.parse_args(arguments)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 2 * options.connections + 200)), hard))
    outcomes = asyncio.run(run(ATTACKS, connections=options.connections, seconds=options.seconds))
    publish(
        Table(
            name="ingress",
            command=f"python -m proof flood --connections {options.connections} --seconds {options.seconds:g}",
            columns=(
                "attack", "connections", "quiet", "at most", "good deliveries taken", "slowest", "verdict",
            ),
            rows=[
                (
                    outcome.attack,
                    f"{outcome.connections:,}",
                    f"{outcome.quiet / 2**20:.0f} MiB",
                    f"{outcome.peak / 2**20:.0f} MiB",
                    f"{outcome.taken} of {outcome.sent}",
                    f"{outcome.slowest * 1000:.0f} ms",
                    "met" if outcome.met else "missed",
                )
                for outcome in outcomes
            ],
            conditions={
                "aim": f"at most {AIM_BYTES // 2**20} MiB, every good delivery taken within {AIM_SECONDS:g} s",
                "attackers": f"whoever is thrown out is back after {_BACK_AFTER:g} s",
                "real": "`graft ingress` as a process of its own for each attack, NATS JetStream on disk",
            },
        ),
        write=options.write,
    )  # fmt: skip
    return 0 if all(outcome.met for outcome in outcomes) else 1


async def run(attacks: tuple[Attack, ...], *, connections: int, seconds: float) -> list[Outcome]:
    """Each attack against a fresh process."""
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="graft-flood-")))
        nats = await stack.enter_async_context(embedded.nats_server(directory / "nats", sync_always=False))
        return [await _one(attack, nats.url, connections, seconds) for attack in attacks]


async def _one(attack: Attack, nats_url: str, connections: int, seconds: float) -> Outcome:
    prefix = f"p{uuid.uuid4().hex[:10]}"
    bus = await Bus.connect(nats_url, prefix=prefix)
    try:
        await bus.ensure_stream(StreamSettings(max_bytes=8_000_000))
        environment = {
            "NATS_URL": nats_url,
            "GRAFT_NATS_PREFIX": prefix,
            "GITHUB_APP_ID": "1",
            "GITHUB_WEBHOOK_SECRET": SECRET,
        }
        async with processes.serving(environment, command="ingress") as process:
            return await _against(attack, process, connections, seconds)
    finally:
        await bus.client.jetstream().delete_stream(stream_name(prefix))
        await bus.close()


async def _against(attack: Attack, process: processes.Process, connections: int, seconds: float) -> Outcome:
    host, port = urlsplit(process.url).hostname, urlsplit(process.url).port
    assert host is not None
    assert port is not None
    await _good(host, port, "warm-up")
    quiet = _memory(process.pid, "VmRSS")
    end = time.monotonic() + seconds
    opened = 0

    async def attacker() -> None:
        """One connection; whoever is thrown out comes back."""
        nonlocal opened
        while True:
            try:
                reader, writer = await asyncio.open_connection(host, port, limit=4_096)
            except OSError:
                await asyncio.sleep(0.1)
                continue
            opened += 1
            try:
                await attack.send(reader, writer)
            except OSError:
                pass
            finally:
                writer.transport.abort()
            await asyncio.sleep(_BACK_AFTER)

    crowd = [asyncio.create_task(attacker()) for _ in range(connections)]
    try:
        async with asyncio.timeout(60):
            while opened < connections:
                await asyncio.sleep(0.05)
        answers: list[tuple[int, float]] = []
        while time.monotonic() < end or not answers:
            answers.append(await _good(host, port, f"d-{len(answers)}"))
            await asyncio.sleep(0.25)
        peak = _memory(process.pid, "VmHWM")
    finally:
        for one in crowd:
            one.cancel()
        await asyncio.gather(*crowd, return_exceptions=True)
    return Outcome(
        attack=attack.name,
        connections=connections,
        quiet=quiet,
        peak=peak,
        sent=len(answers),
        taken=sum(status == 202 for status, _ in answers),
        slowest=max(took for _, took in answers),
    )


async def _good(host: str, port: int, delivery: str) -> tuple[int, float]:
    """Status (0 for none) of a genuine delivery on a connection of its own, and the seconds it took."""
    signature = hmac.new(SECRET.encode(), _BODY, hashlib.sha256).hexdigest()
    head = _head(len(_BODY), signature=signature).replace(b"d-1\r\n", f"{delivery}\r\n".encode())
    begin = time.monotonic()
    try:
        async with asyncio.timeout(2 * AIM_SECONDS):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(head + _BODY)
                line = await reader.readline()
            finally:
                writer.transport.abort()
        status = int(line.split()[1]) if line else 0
    except (OSError, TimeoutError):
        status = 0
    return status, time.monotonic() - begin


def _memory(pid: int, field: str) -> int:
    """A size from /proc in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(rf"^{field}:\s+(\d+) kB$", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024
