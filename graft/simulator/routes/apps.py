"""The App, its installations and their tokens, and registering the App from a manifest."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import parse_qs

import msgspec
from yarl import URL

from graft.simulator.errors import ApiError, invalid, not_found
from graft.simulator.http import Call, Reply, Route, paginate
from graft.simulator.payloads import accounts
from graft.simulator.payloads.repositories import repository
from graft.simulator.state import Installation, Repository

_LEVELS = {"read": 1, "write": 2, "admin": 3}
MAX_NARROWED = 500


async def get_app(call: Call) -> Reply:
    app = call.server.app
    living = [each for each in call.server.world.installations.values() if not each.deleted]
    return Reply(value={**accounts.app(app, call.server.urls), "installations_count": len(living)})


async def list_installations(call: Call) -> Reply:
    living = [each for each in call.server.world.installations.values() if not each.deleted]
    page, headers = paginate(call, living)
    shown = [accounts.installation(each, call.server.app, call.server.urls) for each in page]
    return Reply(value=shown, headers=headers)


async def get_installation(call: Call) -> Reply:
    return Reply(value=accounts.installation(_installation(call), call.server.app, call.server.urls))


async def get_repository_installation(call: Call) -> Reply:
    found = call.repository.installation
    if found is None or found.deleted:
        raise not_found()
    return Reply(value=accounts.installation(found, call.server.app, call.server.urls))


async def create_token(call: Call) -> Reply:
    installation = _installation(call)
    if installation.suspended_at is not None:
        raise ApiError(403, "This installation has been suspended")
    document = call.document()
    permissions = _narrowed(document.get("permissions"), installation.permissions)
    repositories = _chosen(call, document, installation)
    server = call.server
    grant = server.tokens.issue(
        server.app,
        installation,
        permissions=permissions,
        repository_ids=None if repositories is None else frozenset(each.id for each in repositories),
        now=server.world.now(),
    )
    expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(grant.expires_at))
    value: dict[str, Any] = {
        "token": grant.token,
        "expires_at": expires,
        "permissions": permissions,
        "repository_selection": installation.selection if repositories is None else "selected",
    }
    if repositories is not None:
        value["repositories"] = [repository(each, server.urls) for each in repositories]
    return Reply(value=value, status=201)


async def list_repositories(call: Call) -> Reply:
    found = call.server.world.repositories_of(call.installation)
    allowed = None if call.grant is None else call.grant.repository_ids
    found = [each for each in found if allowed is None or each.id in allowed]
    page, headers = paginate(call, found)
    value = {
        "total_count": len(found),
        "repository_selection": call.installation.selection,
        "repositories": [repository(each, call.server.urls) for each in page],
    }
    return Reply(value=value, headers=headers)


async def get_rate_limit(call: Call) -> Reply:
    installation = call.installation
    if installation.used > 0:
        installation.used -= 1  # asking is free
    core = {
        "limit": installation.hourly_limit,
        "used": installation.used,
        "remaining": installation.hourly_limit - installation.used,
        "reset": int(installation.reset_at),
    }
    search = {"limit": 30, "used": 0, "remaining": 30, "reset": int(call.server.world.now()) + 60}
    return Reply(value={"resources": {"core": core, "search": search}, "rate": core})


async def register_manifest(call: Call) -> Reply:
    """The page behind the form: the App takes what the manifest says, the browser goes back with a code."""
    text = parse_qs(call.content.decode("ascii", "replace")).get("manifest", [""])[0]
    try:
        manifest = msgspec.json.decode(text)
    except msgspec.DecodeError:
        raise invalid("IntegrationManifest", "manifest", "invalid") from None
    if not isinstance(manifest, dict) or "redirect_url" not in manifest:
        raise invalid("IntegrationManifest", "redirect_url", "missing_field")
    server = call.server
    hook = manifest.get("hook_attributes") or {}
    server.app.name = str(manifest.get("name") or server.app.name)
    server.app.webhook_url = hook.get("url")
    server.app.permissions = dict(manifest.get("default_permissions") or {})
    server.app.events = list(manifest.get("default_events") or [])
    refused = {"installation", "installation_repositories"} & set(server.app.events)
    if refused:
        raise invalid(
            "IntegrationManifest", "default_events", "invalid", f"unsupported: {sorted(refused)[0]}"
        )
    code = f"{server.world.next_id():040x}"
    server.manifest_codes.add(code)
    back = URL(str(manifest["redirect_url"])).update_query(code=code)
    if "state" in call.query:
        back = back.update_query(state=call.query["state"])
    return Reply(content=b"", content_type="text/html", status=302, headers={"Location": str(back)})


async def convert_manifest(call: Call) -> Reply:
    """The App's credentials, once for each code."""
    server = call.server
    if call.path["code"] not in server.manifest_codes:
        raise not_found()
    server.manifest_codes.discard(call.path["code"])
    value = {
        **accounts.app(server.app, server.urls),
        "client_secret": "simulated-client-secret",
        "webhook_secret": server.app.webhook_secret,
        "pem": server.private_key,
    }
    return Reply(value=value, status=201)


def _installation(call: Call) -> Installation:
    found = call.server.world.installations.get(call.number("installation_id"))
    if found is None or found.deleted:
        raise not_found()
    return found


def _narrowed(asked: object, held: dict[str, str]) -> dict[str, str]:
    if asked is None:
        return dict(held)
    if not isinstance(asked, dict):
        raise invalid("InstallationToken", "permissions", "invalid")
    for name, level in asked.items():
        if _LEVELS.get(str(level), 9) > _LEVELS.get(held.get(str(name), ""), 0):
            raise ApiError(422, "The permissions requested are not granted to this installation.")
    return {**{str(name): str(level) for name, level in asked.items()}, "metadata": "read"}


def _chosen(call: Call, document: dict[str, Any], installation: Installation) -> list[Repository] | None:
    names, ids = document.get("repositories"), document.get("repository_ids")
    if not names and not ids:
        return None
    wanted = [*(names or []), *(ids or [])]
    if len(wanted) > MAX_NARROWED:
        raise ApiError(422, "There is at least one repository too many for one token.")
    held = call.server.world.repositories_of(installation)
    chosen = [each for each in held if each.name in wanted or each.id in wanted]
    if len(chosen) != len(wanted):
        raise ApiError(
            422,
            "There is at least one repository that does not exist or is not accessible to the parent "
            "installation.",
        )
    return chosen


ROUTES = (
    Route(method="GET", template="/app", handler=get_app, caller="app"),
    Route(method="GET", template="/app/installations", handler=list_installations, caller="app"),
    Route(
        method="GET", template="/app/installations/{installation_id}", handler=get_installation, caller="app"
    ),
    Route(
        method="POST",
        template="/app/installations/{installation_id}/access_tokens",
        handler=create_token,
        caller="app",
    ),
    Route(
        method="GET",
        template="/repos/{owner}/{repo}/installation",
        handler=get_repository_installation,
        caller="app",
    ),
    Route(method="GET", template="/installation/repositories", handler=list_repositories),
    Route(method="GET", template="/rate_limit", handler=get_rate_limit),
    Route(
        method="POST", template="/settings/apps/new", handler=register_manifest, caller="anyone", page=True
    ),
    Route(
        method="POST",
        template="/organizations/{organization}/settings/apps/new",
        handler=register_manifest,
        caller="anyone",
        page=True,
    ),
    Route(
        method="POST",
        template="/app-manifests/{code}/conversions",
        handler=convert_manifest,
        caller="anyone",
    ),
)
