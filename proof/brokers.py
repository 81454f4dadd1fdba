"""Three NATS servers as one cluster on this machine.

Every server stores a copy of the stream; what two of them have is acknowledged, so one may die with its disk. They
write to the disk when the system does (`sync_interval` is the server's default): the copies are the safety.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import msgspec
from nats.aio.client import Client
from nats.errors import Error as NatsError

from graft.embedded import NatsServer

SIZE = 3


class _Peer(msgspec.Struct):
    name: str
    current: bool = False


class _Cluster(msgspec.Struct):
    leader: str | None = None
    replicas: list[_Peer] = []


class _Info(msgspec.Struct):
    """The part of JetStream's answer about a stream that says who keeps it."""

    cluster: _Cluster | None = None


class Watcher:
    """A connection that asks who leads a stream, whichever of the servers live."""

    def __init__(self, servers: Sequence[NatsServer], stream: str) -> None:
        self._servers = servers
        self._stream = stream
        self._client = Client()

    async def connect(self) -> None:
        await self._client.connect(
            servers=[server.url for server in self._servers],
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.05,  # type: ignore[arg-type]  # seconds, fractions work
            connect_timeout=1,
            error_cb=_unheard,
        )

    async def close(self) -> None:
        await self._client.close()

    async def cluster(self) -> _Cluster | None:
        """Who leads and who follows, as far as somebody answers."""
        try:
            answer = await self._client.request(f"$JS.API.STREAM.INFO.{self._stream}", timeout=0.25)
            return msgspec.json.decode(answer.data, type=_Info).cluster
        except (NatsError, TimeoutError, OSError):
            return None

    async def leader(self) -> int | None:
        """The server that leads the stream, by its place in the list; `None` while there is none."""
        found = await self.cluster()
        return int(found.leader.removeprefix("n")) if found is not None and found.leader else None

    async def whole(self) -> bool:
        """Whether every server has all that the leader has."""
        found = await self.cluster()
        return (
            found is not None
            and found.leader is not None
            and len(found.replicas) == len(self._servers) - 1
            and all(peer.current for peer in found.replicas)
        )


async def _unheard(_error: Exception) -> None:
    """Servers die here all the time."""


@asynccontextmanager
async def cluster(directory: Path) -> AsyncIterator[list[NatsServer]]:
    """Start the servers, `n0` to `n2`; at the end they are gone. Each may be killed and started again meanwhile."""
    ports = _free_ports(SIZE)
    routes = ", ".join(f'"nats-route://127.0.0.1:{port}"' for port in ports)
    servers = [
        NatsServer(
            directory / f"n{number}",
            sync_always=False,
            more=(
                f'server_name: n{number}\ncluster {{\n  name: graft\n  listen: "127.0.0.1:{port}"\n'
                f"  routes: [{routes}]\n}}"
            ),
        )
        for number, port in enumerate(ports)
    ]
    try:
        await asyncio.gather(*(asyncio.to_thread(server.start) for server in servers))
        yield servers
    finally:
        for server in servers:
            await asyncio.to_thread(server.stop)


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now. The servers have to know each other's before they start."""
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            taken = stack.enter_context(socket.socket())
            taken.bind(("127.0.0.1", 0))
            found.append(int(taken.getsockname()[1]))
        return found
