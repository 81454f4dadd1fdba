"""How many connections are held, and what becomes of one that asks for nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from aiohttp import web

from graft.connections import Doorkeeper


@asynccontextmanager
async def served(*, most: int = 20, seconds: float = 30.0) -> AsyncIterator[tuple[str, int]]:
    async def hello(_request: web.Request) -> web.Response:
        return web.Response(text="hello")

    async def slow(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(text="read")

    app = web.Application()
    app.router.add_get("/", hello)
    app.router.add_post("/slow", slow)
    runner = web.AppRunner(app, access_log=None)
    door = Doorkeeper(runner, most=most, seconds=seconds)
    async with AsyncExitStack() as stack:
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        yield await door.open(stack, "127.0.0.1", 0)


Connect = Callable[[str, int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Opens connections that end with the test."""
    writers = []

    async def opened(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(host, port)
        writers.append(writer)
        return reader, writer

    yield opened
    for writer in writers:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    answer = await asyncio.wait_for(reader.readuntil(b"hello"), 10)
    return answer.split(b"\r\n")[0]


async def test_a_connection_that_asks_for_nothing_is_closed(connect: Connect) -> None:
    async with served(seconds=1.0) as (host, port):
        silent, _ = await connect(host, port)
        begun, writer = await connect(host, port)
        writer.write(b"GET / HTTP/1.1\r\nHost: ")
        for reader in (silent, begun):
            assert await asyncio.wait_for(reader.read(), 15) == b""


async def test_one_that_has_asked_may_be_idle(connect: Connect) -> None:
    async with served(seconds=0.5) as (host, port):
        reader, writer = await connect(host, port)
        assert await ask(reader, writer) == b"HTTP/1.1 200 OK"
        silent, _ = await connect(host, port)
        assert await asyncio.wait_for(silent.read(), 15) == b""  # two sweeps later
        assert await ask(reader, writer) == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize("begins", [b"", b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx"])
async def test_the_last_of_a_crowd_is_answered_and_the_first_makes_room(
    begins: bytes, connect: Connect
) -> None:
    async with served(most=10) as (host, port):
        crowd = []
        for _ in range(30):
            reader, writer = await connect(host, port)
            writer.write(begins)
            await writer.drain()
            crowd.append(reader)
        reader, writer = await connect(host, port)
        assert await ask(reader, writer) == b"HTTP/1.1 200 OK"
        gone = await asyncio.gather(*(one.read() for one in crowd[:20]), return_exceptions=True)
        assert all(not found or isinstance(found, OSError) for found in gone)


async def test_the_address_is_free_again_afterwards() -> None:
    async with served() as (host, port):
        pass
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, port)
