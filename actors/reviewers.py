"""Who could have rated a card: reviewers, people asked for a review, and voters, with what GitHub says they may
do. Read at most once an hour per change; what GitHub confirmed or refused is remembered and not asked again."""

from __future__ import annotations

from actors.run import Run
from actors.services import Services
from graft.database import Connection
from graft.github import Account, Forbidden, Installation, pulls, repositories
from graft.store import reviewers
from graft.store.changes import Change
from graft.store.installations import Repository
from graft.store.reviewers import Reviewer

EVERY_SECONDS = 3600.0
MAY_WRITE = frozenset({"admin", "write", "maintain"})


async def sync(services: Services, run: Run, repository: Repository, change: Change | None) -> None:
    """Do `reviewers`."""
    if change is None:
        await run.finish("reviewers")
        return
    async with services.pool.acquire() as connection:
        wait = await reviewers.wait(connection, change.id, every_seconds=EVERY_SECONDS)
        voters = await reviewers.voters(connection, change.id)
        answered = await reviewers.denied(connection, change.id) | await reviewers.verified(
            connection, change.id
        )
    if wait > 0:
        # Whoever voted in the meantime is not forgotten, only read with the next hour's others.
        await run.postpone("reviewers", wait)
        return
    run.say("reading reviewers")
    client = services.github.installation(repository.installation_id)
    found = await _candidates(client, repository, change)
    for user_id, login in voters.items():
        found.setdefault(user_id, (login, "vote"))
    confirmed: list[Reviewer] = []
    refused: dict[int, int] = {}
    for user_id, (login, reason) in found.items():
        if user_id in answered or user_id == change.author_id:
            continue
        try:
            permission = await repositories.read_permission(client, repository.full_name, login)
        except Forbidden:
            refused[user_id] = 403
            continue
        if permission is None:
            refused[user_id] = 404
            continue
        verified = permission.permission in MAY_WRITE
        confirmed.append(Reviewer(user_id=user_id, user_login=login, reason=reason, verified=verified))

    async def store(connection: Connection) -> None:
        # Noted with the answers, not before: a failure on the way must not cost the hour.
        await reviewers.synced(connection, change.id)
        await reviewers.put(connection, change.id, confirmed)
        for user_id, status in refused.items():
            await reviewers.deny(connection, change.id, user_id, status)

    await run.finish("reviewers", also=store)


async def _candidates(
    client: Installation, repository: Repository, change: Change
) -> dict[int, tuple[str, str]]:
    """{user id: (login, reason)} of reviewers and of those asked for a review; bots left out."""
    found: dict[int, tuple[str, str]] = {}

    def add(account: Account | None, reason: str) -> None:
        if account is not None and account.id is not None and not account.is_bot:
            found.setdefault(account.id, (account.login, reason))

    for review in await pulls.list_reviews(client, repository.full_name, change.pr_number):
        add(review.user, "review")
    requested = await pulls.read_requested_reviewers(client, repository.full_name, change.pr_number)
    for account in requested.users:
        add(account, "request")
    return found
