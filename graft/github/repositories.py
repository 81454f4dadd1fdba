"""Repositories: what they are called now, where a branch stands, what a person may do in them."""

from __future__ import annotations

import msgspec

from .api import repository
from .client import Installation
from .errors import NotFound
from .people import Account


class Repository(msgspec.Struct, frozen=True, kw_only=True):
    """A repository as the API shows it now: names change, the id does not."""

    id: int
    full_name: str
    private: bool = False
    archived: bool = False
    default_branch: str = ""
    owner: Account | None = None


class Permission(msgspec.Struct, frozen=True, kw_only=True):
    """What a person may do: `permission` is `admin`, `write`, `read` or `none`; `role_name` is finer."""

    permission: str
    role_name: str = ""
    user: Account | None = None


class _Object(msgspec.Struct, frozen=True):
    sha: str


class _Ref(msgspec.Struct, frozen=True):
    object: _Object


async def read_repository(installation: Installation, repository_id: int) -> Repository:
    """A repository by its id, which survives renames and transfers. Raises `NotFound`."""
    return await installation.get("repositories/{repository_id}", Repository, repository_id=repository_id)


async def read_branch_head(installation: Installation, full_name: str, branch: str) -> str:
    """The commit a branch stands at now. A pull request's own `base.sha` is older than that, and its refs may
    be written by its author. Raises `NotFound` when there is no such branch."""
    ref = await installation.get(
        "repos/{owner}/{repo}/git/ref/heads{/ref*}", _Ref, ref=branch.split("/"), **repository(full_name)
    )
    return ref.object.sha


async def read_permission(installation: Installation, full_name: str, login: str) -> Permission | None:
    """What a person may do in a repository; `None` for somebody GitHub does not know there. Raises `Forbidden`
    where the App may not ask."""
    try:
        return await installation.get(
            "repos/{owner}/{repo}/collaborators/{username}/permission",
            Permission,
            username=login,
            **repository(full_name),
        )
    except NotFound:
        return None
