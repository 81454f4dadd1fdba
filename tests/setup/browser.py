"""A real headless Chromium, driven over its DevTools protocol: open, press, read."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))),
    None,
)


class Page:
    """One tab."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = itertools.count(1)

    async def _call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._ids)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            answer = await self._socket.receive_json(timeout=30)
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result

    async def open(self, url: str) -> None:
        found = await self._call("Page.navigate", url=url)
        assert "errorText" not in found, found["errorText"]

    async def evaluate(self, expression: str) -> Any:
        found = await self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        return found["result"].get("value")

    async def until(self, expression: str, *, seconds: float = 30) -> Any:
        """The value of an expression as soon as it has one that is true."""
        async with asyncio.timeout(seconds):
            while not (value := await self.evaluate(expression)):
                await asyncio.sleep(0.05)
            return value

    async def press(self, selector: str) -> None:
        """Press what a person would press, once it is there."""
        await self.until(f"document.querySelector({selector!r}) !== null")
        await self.evaluate(f"document.querySelector({selector!r}).click()")


@asynccontextmanager
async def browser(directory: Path) -> AsyncIterator[Page]:
    """A fresh browser with an empty tab."""
    assert CHROMIUM is not None
    process = await asyncio.create_subprocess_exec(
        CHROMIUM,
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
        *("--disable-background-networking", "--disable-extensions", "--remote-debugging-port=0"),
        *(f"--user-data-dir={directory}", "about:blank"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        port = await _port(directory / "DevToolsActivePort", process)
        async with aiohttp.ClientSession() as http:
            async with http.get(f"http://127.0.0.1:{port}/json/list") as response:
                [tab] = [each for each in await response.json() if each["type"] == "page"]
            async with http.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                yield Page(socket)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _port(file: Path, process: asyncio.subprocess.Process) -> int:
    async with asyncio.timeout(60):
        while not file.exists() or "\n" not in file.read_text():
            assert process.returncode is None, "Chromium ended at once"
            await asyncio.sleep(0.05)
    return int(file.read_text().splitlines()[0])
