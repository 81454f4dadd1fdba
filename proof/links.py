"""A TCP proxy between a daemon and what it talks to, whose connections can be cut half way through a message.

A link has an address of its own that stays the same while the server behind it is killed and started again, so
a daemon sees what it would see in production: refused connections, resets, and half a message.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Literal

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Direction = Literal["out", "back"]
_CHUNK = 65_536


class Link:
    """Forwards connections to wherever `reach` leads at that moment. `out` is from the client to the server."""

    def __init__(self, reach: Callable[[], Awaitable[Streams]]) -> None:
        self._reach = reach
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._cut: Direction | None = None
        self.cuts = 0

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def stop(self) -> None:
        """Take no more connections and end those that are open."""
        assert self._server is not None
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def cut(self, direction: Direction) -> None:
        """Reset the connection over which the next message goes in this direction, after half of it."""
        self._cut = direction

    def mend(self) -> None:
        """Take back a cut that no message has met."""
        self._cut = None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._carry(reader, writer)
        except asyncio.CancelledError:
            # `stop` ends connections; asyncio's own callback would log a handler that was cancelled.
            pass
        finally:
            self._connections.discard(task)
            _reset(writer)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await self._reach()
        except OSError:
            return
        ways = [
            asyncio.create_task(self._pump(reader, far_writer, "out")),
            asyncio.create_task(self._pump(far_reader, writer, "back")),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # Both at once, without waiting: `stop` may cancel the wait.
            far_writer.close()
            writer.close()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: Direction
    ) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(_CHUNK):
                if self._cut == direction and len(chunk) > 1:
                    self._cut = None
                    self.cuts += 1
                    writer.write(chunk[: len(chunk) // 2])
                    await writer.drain()
                    return
                writer.write(chunk)
                await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    if not writer.transport.is_closing():
        writer.transport.abort()


def tcp(host: str, port: Callable[[], int]) -> Callable[[], Awaitable[Streams]]:
    """The way to a port that may change between connections."""
    return lambda: asyncio.open_connection(host, port())


def unix(path: str) -> Callable[[], Awaitable[Streams]]:
    """The way to a Unix socket."""
    return lambda: asyncio.open_unix_connection(path)
