"""How many connections a server holds, and how long one may take to say what it wants.

aiohttp waits an hour for the end of a request's headers and holds as many connections as the system gives it, so a
sender of a byte now and then could take every descriptor of the process. Here a connection that has not asked for
anything in time is closed, and where there are too many the one that has kept others waiting longest makes room:
a delivery that arrives as the last of a crowd is still answered. What a request may hold is `graft.ingress`'s part.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Final

from aiohttp import web

from graft.logs import get_logger

log = get_logger("connections")

# With files, broker and database this stays below the 1,024 descriptors that a process usually gets.
MOST: Final = 600
SECONDS: Final = 10.0
RECEIVE_BYTES: Final = 64 * 1024
# Longer than an honest request takes when nothing is wrong.
_HONEST_SECONDS: Final = 2.0
_SWEEP_SECONDS: Final = 1.0
_ACCEPTED_AT_ONCE: Final = 32

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Doorkeeper:
    """Watches the connections of one runner. Create it before the runner is set up."""

    def __init__(self, served: web.AppRunner, *, most: int = MOST, seconds: float = SECONDS) -> None:
        self._served = served
        self._most = most
        self._seconds = seconds
        # Since when, oldest first: connections that have not asked yet, and requests under way.
        self._silent: dict[web.RequestHandler, float] = {}
        self._busy: dict[web.RequestHandler, float] = {}
        self._dropped = 0

        @web.middleware
        async def watch(request: web.Request, handler: Handler) -> web.StreamResponse:
            self._silent.pop(request.protocol, None)
            self._busy[request.protocol] = asyncio.get_running_loop().time()
            try:
                return await handler(request)
            finally:
                self._busy.pop(request.protocol, None)

        served.app.middlewares.append(watch)

    async def open(self, stack: AsyncExitStack, host: str, port: int) -> tuple[str, int]:
        """Accept connections until the stack unwinds; returns the address. Raises OSError."""
        loop = asyncio.get_running_loop()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=self._most)
        stack.callback(listening.close)
        listening.setblocking(False)
        # Inherited by every connection: a turn of the loop takes this much from each, before anybody can say stop.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        # asyncio accepts as many in one turn as it thinks may wait; whoever was accepted has to be heard in between.
        server = await loop.create_server(self._accept, sock=listening, backlog=_ACCEPTED_AT_ONCE)
        stack.callback(server.close)
        listening.listen(self._most)
        sweeping = asyncio.create_task(self._sweep(), name="connections")
        stack.callback(sweeping.cancel)
        found: tuple[str, int] = listening.getsockname()[:2]
        return found

    def _accept(self) -> web.RequestHandler:
        server = self._served.server
        assert server is not None
        if len(server.connections) >= self._most:
            self._make_room(server.connections)
        handler = server()
        self._silent[handler] = asyncio.get_running_loop().time()
        return handler

    def _make_room(self, connections: list[web.RequestHandler]) -> None:
        """Close one connection: whoever takes too long to ask, or for one request, else who came first."""
        honest = asyncio.get_running_loop().time() - _HONEST_SECONDS
        silent = (handler for handler, since in self._silent.items() if since < honest and handler.transport)
        slow = (handler for handler, since in self._busy.items() if since < honest and handler.transport)
        oldest = (handler for handler in connections if handler.transport)
        victim = next(silent, None) or next(slow, None) or next(oldest, None)
        if victim is not None:
            self._drop(victim)

    def _drop(self, handler: web.RequestHandler) -> None:
        self._silent.pop(handler, None)
        self._busy.pop(handler, None)
        handler.force_close()
        self._dropped += 1

    async def _sweep(self) -> None:
        """Every second: close what has been silent too long, forget what has gone."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            now = loop.time()
            for handler, since in list(self._silent.items()):
                if since > now - _SWEEP_SECONDS:
                    break
                if handler.transport is None:
                    del self._silent[handler]
                elif since <= now - self._seconds:
                    self._drop(handler)
            if self._dropped:
                log.warning("connections dropped", count=self._dropped)
                self._dropped = 0
