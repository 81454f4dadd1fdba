"""A link carries bytes both ways, cuts in the middle of a message, and outlives the server behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from proof.links import Link, tcp


@asynccontextmanager
async def echo(port: int = 0) -> AsyncIterator[int]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            writer.write(data.upper())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port)
    yield server.sockets[0].getsockname()[1]
    server.close()


@asynccontextmanager
async def linked(port: int) -> AsyncIterator[Link]:
    link = Link(tcp("127.0.0.1", lambda: port))
    await link.start()
    yield link
    await link.stop()


async def ask(link: Link, message: bytes) -> bytes:
    """What comes back until the connection ends or a whole answer is there."""
    reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
    try:
        async with asyncio.timeout(5):
            writer.write(message)
            found = b""
            while len(found) < len(message) and (more := await reader.read(1000)):
                found += more
            return found
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def test_bytes_go_both_ways() -> None:
    async with echo() as port, linked(port) as link:
        assert await ask(link, b"hello") == b"HELLO"


async def test_an_answer_is_cut_in_the_middle_once() -> None:
    async with echo() as port, linked(port) as link:
        link.cut("back")
        assert await ask(link, b"hello!") == b"HEL"
        assert link.cuts == 1
        assert await ask(link, b"hello!") == b"HELLO!"


async def test_a_question_is_cut_in_the_middle() -> None:
    async with echo() as port, linked(port) as link:
        link.cut("out")
        assert await ask(link, b"hello!") in (b"", b"HEL")
        assert link.cuts == 1


async def test_a_cut_that_was_taken_back_does_not_happen() -> None:
    async with echo() as port, linked(port) as link:
        link.cut("out")
        link.mend()
        assert await ask(link, b"hello") == b"HELLO"


async def test_a_server_that_comes_back_is_reached_again() -> None:
    async with echo() as port:
        pass
    async with linked(port) as link:
        assert await ask(link, b"hello") == b""
        async with echo(port):
            assert await ask(link, b"hello") == b"HELLO"
