"""Accounts, the App and its installations as JSON."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

from graft.simulator.state import AppRecord, Installation, User

Json = dict[str, Any]


class Urls:
    """Where this GitHub is: `api` for the REST API, `web` for pages."""

    def __init__(self, api: str, web: str) -> None:
        self.api = api
        self.web = web


def stamp(moment: datetime | None) -> str | None:
    """A time as GitHub writes it."""
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def node_id(kind: str, number: int | str) -> str:
    """An opaque id, the same for the same thing."""
    return f"{kind}_" + base64.urlsafe_b64encode(f"{kind}:{number}".encode()).decode().rstrip("=")


def user(account: User, urls: Urls) -> Json:
    api = f"{urls.api}/users/{account.login}"
    is_app = account.type == "Bot" and account.login.endswith("[bot]")
    page = (
        f"{urls.web}/apps/{account.login.removesuffix('[bot]')}" if is_app else f"{urls.web}/{account.login}"
    )
    return {
        "login": account.login,
        "id": account.id,
        "node_id": node_id("U", account.id),
        "avatar_url": f"{urls.web}/avatars/{account.id}",
        "gravatar_id": "",
        "url": api,
        "html_url": page,
        "followers_url": f"{api}/followers",
        "following_url": f"{api}/following{{/other_user}}",
        "gists_url": f"{api}/gists{{/gist_id}}",
        "starred_url": f"{api}/starred{{/owner}}{{/repo}}",
        "subscriptions_url": f"{api}/subscriptions",
        "organizations_url": f"{api}/orgs",
        "repos_url": f"{api}/repos",
        "events_url": f"{api}/events{{/privacy}}",
        "received_events_url": f"{api}/received_events",
        "type": account.type,
        "user_view_type": "public",
        "site_admin": False,
    }


def app(record: AppRecord, urls: Urls) -> Json:
    return {
        "id": record.id,
        "client_id": record.client_id,
        "slug": record.slug,
        "node_id": node_id("A", record.id),
        "owner": user(record.owner, urls),
        "name": record.name,
        "description": "",
        "external_url": urls.web,
        "html_url": f"{urls.web}/apps/{record.slug}",
        "created_at": stamp(record.created_at),
        "updated_at": stamp(record.created_at),
        "permissions": record.permissions,
        "events": record.events,
    }


def installation(record: Installation, of: AppRecord, urls: Urls) -> Json:
    return {
        "id": record.id,
        "client_id": of.client_id,
        "account": user(record.account, urls),
        "repository_selection": record.selection,
        "access_tokens_url": f"{urls.api}/app/installations/{record.id}/access_tokens",
        "repositories_url": f"{urls.api}/installation/repositories",
        "html_url": f"{urls.web}/settings/installations/{record.id}",
        "app_id": of.id,
        "app_slug": of.slug,
        "target_id": record.account.id,
        "target_type": record.account.type,
        "permissions": record.permissions,
        "events": of.events,
        "created_at": stamp(record.created_at),
        "updated_at": stamp(record.created_at),
        "single_file_name": None,
        "has_multiple_single_files": False,
        "single_file_paths": [],
        "suspended_by": None if record.suspended_by is None else user(record.suspended_by, urls),
        "suspended_at": stamp(record.suspended_at),
    }
