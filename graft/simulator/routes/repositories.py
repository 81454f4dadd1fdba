"""The repository itself and what its people may do."""

from __future__ import annotations

from graft.simulator.errors import not_found
from graft.simulator.http import Call, Reply, Route
from graft.simulator.payloads.accounts import user
from graft.simulator.payloads.repositories import full_repository

# The old names that `permission` still uses for the roles in between.
_LEGACY = {"maintain": "write", "triage": "read"}


async def get_repository(call: Call) -> Reply:
    return Reply(value=full_repository(call.repository, call.server.urls))


async def get_permission(call: Call) -> Reply:
    account = call.server.world.users.get(call.path["username"].lower())
    if account is None:
        raise not_found()
    repository = call.repository
    role = "admin" if account is repository.owner else repository.permissions.get(account.login.lower())
    if role is None:
        role = "none" if repository.private else "read"
    shown = {**user(account, call.server.urls), "role_name": role}
    return Reply(value={"permission": _LEGACY.get(role, role), "role_name": role, "user": shown})


ROUTES = (
    Route(method="GET", template="/repos/{owner}/{repo}", handler=get_repository, needs=("metadata:read",)),
    Route(
        method="GET",
        template="/repos/{owner}/{repo}/collaborators/{username}/permission",
        handler=get_permission,
        needs=("metadata:read",),
    ),
)
