"""The App's own token and the tokens of its installations: got once, shared, renewed before they expire.

The App's JWT is signed here (RS256; `iat` a minute back, `exp` within ten minutes, as GitHub asks) by gidgethub.
An installation's token is opaque and of any length; its lifetime is counted from the response that brought it,
not from our clock. Neither is ever part of a repr, an error or a log line.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable

from gidgethub import apps

_JWT_SECONDS = 600  # gidgethub counts from the back-dated `iat`: nine minutes from now
_JWT_REUSE_SECONDS = 300.0
_MARGIN_SECONDS = 300.0
_MAX_LIFETIME_SECONDS = 3_600.0

_generations = itertools.count(1)


class AppToken:
    """The App's JWT, signed anew every five minutes or when `fresh` is asked for."""

    def __init__(self, app_id: int, private_key: str, *, now: Callable[[], float]) -> None:
        self._app_id = str(app_id)
        self._private_key = private_key
        self._now = now
        self._value = ""
        self._reuse_until = float("-inf")

    def value(self, *, fresh: bool = False) -> str:
        if fresh or self._now() >= self._reuse_until:
            self._value = apps.get_jwt(
                app_id=self._app_id, private_key=self._private_key, expiration=_JWT_SECONDS
            )
            self._reuse_until = self._now() + _JWT_REUSE_SECONDS
        return self._value


class Token:
    """One installation token. `generation` is unique in this process; `good_until` is on the monotonic clock."""

    __slots__ = ("generation", "good_until", "value")

    def __init__(self, value: str, *, lifetime: float, now: float) -> None:
        """`lifetime` is the seconds GitHub gives it, kept to at most an hour; it is renewed five minutes
        before the end, or at three quarters of a short life."""
        self.value = value
        self.generation = next(_generations)
        lifetime = min(max(lifetime, 0.0), _MAX_LIFETIME_SECONDS)
        self.good_until = now + lifetime - min(_MARGIN_SECONDS, lifetime / 4)

    def __repr__(self) -> str:
        return f"<Token generation {self.generation}>"


class SharedToken:
    """One installation's current token. However many ask at once, one request is made, and a caller that is
    cancelled while it runs takes nothing away from the others."""

    def __init__(
        self,
        fetch: Callable[[], Awaitable[Token]],
        *,
        now: Callable[[], float],
        replaced: Callable[[Token], None],
    ) -> None:
        self._fetch = fetch
        self._now = now
        self._replaced = replaced
        self._token: Token | None = None
        self._fetching: asyncio.Task[Token] | None = None

    async def get(self) -> Token:
        """The current token; fetched when there is none or it is about to expire. Raises what `fetch` raises."""
        token = self._token
        if token is not None and self._now() < token.good_until:
            return token
        if self._fetching is None or self._fetching.done():
            self._fetching = asyncio.create_task(self._renew(), name="github-installation-token")
            self._fetching.add_done_callback(_retrieve)
        return await asyncio.shield(self._fetching)

    def refused(self, token: Token) -> None:
        """GitHub refused this token: the next `get` fetches another, unless one has come in the meantime."""
        if self._token is token:
            self._token = None
            self._replaced(token)

    def is_current(self, token: Token) -> bool:
        return self._token is token

    async def close(self) -> None:
        if self._fetching is not None and not self._fetching.done():
            self._fetching.cancel()
            await asyncio.gather(self._fetching, return_exceptions=True)

    async def _renew(self) -> Token:
        fresh = await self._fetch()
        old, self._token = self._token, fresh
        if old is not None:
            self._replaced(old)
        return fresh


def _retrieve(task: asyncio.Task[Token]) -> None:
    """Mark a failure as seen: everybody who waited may have been cancelled."""
    if not task.cancelled():
        task.exception()
