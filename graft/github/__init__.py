"""GitHub, as Graft uses it: the only place where a client is built, and typed reads and writes on top of it.

    async with GitHub(app_id=1, private_key=PEM) as github:
        installation = github.installation(9)
        pull = await pulls.read_pull(installation, "octo/repo", 7)
        base = await repositories.read_branch_head(installation, "octo/repo", pull.base_ref)
        change = await snapshot.read_snapshot(
            installation, "octo/repo", base_sha=base, head_sha=pull.head_sha, number=7, expected=pull.counts
        )
        await installation.write_permit(1)
        await comment.upsert(installation, "octo/repo", 7, author, sections={"intent": text}, footer="…")

Errors are `graft.errors` by what the caller may do; the classes here add which call it was, never its content.
"""

from . import checks, comment, history, hook, installations, issues, pulls, repositories, snapshot
from .client import GITHUB_API_URL, App, GitHub, Installation
from .comment_body import compose
from .contents import CommitFiles
from .errors import (
    AmbiguousWrite,
    AppRefused,
    Call,
    Forbidden,
    GitHubRefused,
    GitHubUnavailable,
    InstallationUnavailable,
    NotFound,
    RateLimited,
    ResponseTooLarge,
    StaleRead,
    Unprocessable,
)
from .given_token import with_token
from .limits import GateState
from .pacing import Pace, WritePaceExceeded
from .people import Account
from .wire import OnCall

__all__ = [
    "GITHUB_API_URL",
    "Account",
    "AmbiguousWrite",
    "App",
    "AppRefused",
    "Call",
    "CommitFiles",
    "Forbidden",
    "GateState",
    "GitHub",
    "GitHubRefused",
    "GitHubUnavailable",
    "Installation",
    "InstallationUnavailable",
    "NotFound",
    "OnCall",
    "Pace",
    "RateLimited",
    "ResponseTooLarge",
    "StaleRead",
    "Unprocessable",
    "WritePaceExceeded",
    "checks",
    "comment",
    "compose",
    "history",
    "hook",
    "installations",
    "issues",
    "pulls",
    "repositories",
    "snapshot",
    "with_token",
]
