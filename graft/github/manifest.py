"""Registering the App from a manifest: what it asks for and why, where the form goes, and the credentials that
GitHub gives out once for the code that the browser brings back.

Source: docs.github.com, "Registering a GitHub App from a manifest".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
import msgspec

from graft.errors import ConfigError, PermanentError, TransientError
from graft.grants import EVENTS, LEVELS, PERMISSIONS

LONGEST_NAME: Final = 34
_CODE: Final = re.compile(r"[A-Za-z0-9_-]{1,200}\Z")
_SECONDS: Final = 20
_LARGEST_ANSWER: Final = 256 * 1024


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """What GitHub gives out once. Prints without its secrets."""

    id: int
    slug: str
    pem: str
    webhook_secret: str
    html_url: str = ""

    def __repr__(self) -> str:
        return f"Credentials(id={self.id}, slug={self.slug!r})"


def api_of(web_url: str) -> str:
    """The REST API that belongs to a GitHub's web address: github.com, a ghe.com tenant, or Enterprise Server."""
    parts = urlsplit(web_url)
    host = parts.hostname or ""
    if host == "github.com" or host.endswith(".ghe.com"):
        return f"https://api.{host}"
    return f"{web_url.rstrip('/')}/api/v3"


def manifest(*, name: str, public_url: str, redirect_url: str) -> dict[str, Any]:
    """The App as GitHub shall make it: private, with webhooks to `public_url`."""
    return {
        "name": name,
        "url": public_url,
        "description": "Says what a pull request really does, who wrote it, and what your rules would decide.",
        "public": False,
        "hook_attributes": {"url": f"{public_url}/webhooks/github", "active": True},
        "redirect_url": redirect_url,
        "default_permissions": {name: grant.level for name, grant in PERMISSIONS.items()},
        "default_events": list(EVENTS),
    }


def form_url(web_url: str, *, organization: str | None, state: str) -> str:
    """Where the form with the manifest is posted to: a person's settings or an organization's."""
    where = "/settings/apps/new"
    if organization is not None:
        where = f"/organizations/{quote(organization, safe='')}{where}"
    return f"{web_url.rstrip('/')}{where}?{urlencode({'state': state})}"


def missing(permissions: Mapping[str, str], events: Sequence[str]) -> list[str]:
    """What an App that exists lacks, a line each."""
    lines = [
        f"permission {name}: {grant.level} is needed, the App has {permissions.get(name, 'none')}. {grant.why}"
        for name, grant in PERMISSIONS.items()
        if LEVELS.get(permissions.get(name, ""), 0) < LEVELS[grant.level]
    ]
    return lines + [
        f"event {name}: not subscribed. It says that {grant.why}."
        for name, grant in EVENTS.items()
        if name not in events
    ]


async def convert(api_url: str, code: str) -> Credentials:
    """The credentials for a code, which is good once and for an hour.

    Raises PermanentError (`expired`) for a code that is not known or was used, ConfigError for one that no GitHub
    gives out, TransientError when there was no usable answer: the code may be used up by then.
    """
    if not _CODE.match(code):
        raise ConfigError(["the code in the address is not one of GitHub's"])
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_SECONDS)) as http,
            http.post(
                f"{api_url}/app-manifests/{code}/conversions",
                headers={"Accept": "application/vnd.github+json", "User-Agent": "graft-setup"},
                allow_redirects=False,
            ) as response,
        ):
            status, body = response.status, await response.content.read(_LARGEST_ANSWER)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise TransientError(
            f"GitHub did not answer ({type(error).__name__}) at {api_url}", reason="no_answer"
        ) from None
    if status in (404, 422):
        raise PermanentError("GitHub does not know this code: it is good once, for an hour", reason="expired")
    if status != 201:
        raise TransientError(f"GitHub answered {status} to the conversion of the code", reason="refused")
    try:
        return msgspec.json.decode(body, type=Credentials)
    except msgspec.MsgspecError:
        raise TransientError(
            "GitHub's answer to the conversion is not the credentials of an App", reason="bad_answer"
        ) from None
