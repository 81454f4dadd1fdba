"""The App itself, where it is installed, and what GitHub says of the deliveries it sent."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from .api import Listing
from .client import App, Installation
from .people import Account
from .repositories import Repository


class AppRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The App as GitHub knows it, with what it asks for."""

    id: int
    slug: str = ""
    name: str = ""
    permissions: dict[str, str] = {}
    events: tuple[str, ...] = ()


class InstallationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One installation of the App now, with what was granted."""

    id: int
    account: Account | None = None
    repository_selection: str = "selected"
    suspended_at: datetime.datetime | None = None
    permissions: dict[str, str] = {}
    events: tuple[str, ...] = ()


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to deliver a webhook. `id` is the attempt's, `guid` the delivery's (`X-GitHub-Delivery`)."""

    id: int
    guid: str
    delivered_at: datetime.datetime
    status: str
    status_code: int
    event: str
    redelivery: bool = False
    action: str | None = None
    installation_id: int | None = None
    repository_id: int | None = None


class _Response(msgspec.Struct, frozen=True):
    # GitHub keeps a text, and has documented an object.
    payload: str | dict[str, Any] | None = None


class _DeliveryDetail(msgspec.Struct, frozen=True):
    response: _Response | None = None


class _Repositories(msgspec.Struct, frozen=True):
    repositories: list[Repository]


async def read_app(app: App) -> AppRecord:
    """The App; the cheapest proof that key, id and clock are accepted. Raises `AppRefused`."""
    return await app.get("app", AppRecord)


async def read_installation(app: App, installation_id: int) -> InstallationRecord:
    """One installation. Raises `NotFound` for one that was removed."""
    return await app.get(
        "app/installations/{installation_id}", InstallationRecord, installation_id=installation_id
    )


async def list_installations(app: App) -> Listing[InstallationRecord]:
    """Every installation, suspended ones included."""
    return await app.get_all("app/installations", InstallationRecord, limit=100_000)


async def list_installation_repositories(
    installation: Installation, *, limit: int = 20_000
) -> Listing[Repository]:
    """The repositories that the installation may see."""
    found: Listing[Repository] = Listing()
    async for page in installation.pages("installation/repositories", _Repositories):
        found.extend(page.repositories)
        if len(found) > limit:
            del found[limit:]
            found.complete = False
            break
    return found


async def list_deliveries(app: App) -> AsyncIterator[Delivery]:
    """Delivery attempts, newest first, page by page: the caller stops when it has gone back far enough.
    GitHub keeps them for three days (GitHub Enterprise: seven)."""
    async for page in app.pages("app/hook/deliveries", list[Delivery], cached=False):
        for delivery in page:
            yield delivery


async def redeliver(app: App, delivery_id: int) -> None:
    """Ask GitHub to send a delivery once more; it keeps its `X-GitHub-Delivery`."""
    await app.write("POST", "app/hook/deliveries/{delivery_id}/attempts", None, delivery_id=delivery_id)


async def read_delivery_answer(app: App, delivery_id: int) -> str | None:
    """The text that an attempt was answered with, as far as GitHub kept it; of the rest nothing is decoded."""
    detail = await app.get(
        "app/hook/deliveries/{delivery_id}", _DeliveryDetail, cached=False, delivery_id=delivery_id
    )
    payload = detail.response.payload if detail.response else None
    return payload if isinstance(payload, str | None) else msgspec.json.encode(payload).decode()
