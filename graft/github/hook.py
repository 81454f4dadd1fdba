"""The App's webhook as it is set on GitHub, and GitHub's clock."""

from __future__ import annotations

import msgspec

from . import limits
from .client import App


class HookConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Where deliveries go. `insecure_ssl` is `1` where GitHub does not verify the certificate; the API gives it as
    text or as a number."""

    url: str = ""
    insecure_ssl: str | float = "0"

    @property
    def verifies(self) -> bool:
        return str(self.insecure_ssl) in ("0", "0.0")


async def read_hook_config(app: App) -> HookConfig:
    """How the App's webhook is set. Raises `NotFound` for an App without one."""
    return await app.get("app/hook/config", HookConfig, cached=False)


async def clock_skew(app: App, *, now: float) -> float | None:
    """Seconds by which `now` (since 1970) is ahead of GitHub's clock, as its answer's `Date` tells it; `None` where
    it told none."""
    reply = await app.fetch("app")
    sent_at = limits.http_date(reply.headers.get("date"))
    return None if sent_at is None else now - sent_at
