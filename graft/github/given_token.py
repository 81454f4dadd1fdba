"""The client with a token that somebody gave: of a person or of a CI job, for reading from the command line.

Everything that reads with an installation's token works with it. It is never renewed.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from .client import GITHUB_API_URL, Installation
from .pacing import Pace
from .tokens import Token
from .transport import Transport
from .wire import Wire

_TIMEOUT = 30.0
_MAX_BYTES = 32 * 2**20


@asynccontextmanager
async def with_token(value: str, *, api_url: str = GITHUB_API_URL) -> AsyncIterator[Installation]:
    """A client that sends this token; its `installation_id` is 0. A refused token is `GitHubRefused`."""
    wire = Wire(
        Transport(api_url, http=None, timeout=_TIMEOUT, max_bytes=_MAX_BYTES),
        user_agent="graft",
        on_call=None,
        now=time.monotonic,
        wall=time.time,
    )

    async def given() -> Token:
        return Token(value, lifetime=float("inf"), now=time.monotonic())

    client = Installation(wire, given, 0, Pace())
    try:
        yield client
    finally:
        await client.close()
        await wire.transport.close()
