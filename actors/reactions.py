"""Votes that reviewers give by reacting to the comment: read by polling, because GitHub sends no webhook.

A reaction belongs to the card that the comment showed when it was made. One that was taken back is simply not
in the list any more, and its vote is withdrawn.
"""

from __future__ import annotations

from uuid import UUID

from actors.run import Run
from actors.services import Services
from graft.database import Connection
from graft.github import NotFound, issues
from graft.store import cards, votes
from graft.store.changes import Change
from graft.store.installations import Repository
from graft.triggers import pull_address

VERDICTS = {"+1": "accurate", "-1": "wrong"}


async def poll(services: Services, run: Run, repository: Repository, change: Change | None) -> None:
    """Do `reactions`: store what stands on the comment now."""
    run.say("reading reactions")
    if change is None or change.graft_comment_id is None:
        await run.finish("reactions")
        return
    client = services.github.installation(repository.installation_id)
    reactions: list[issues.Reaction] = []
    try:
        listed = await issues.list_comment_reactions(client, repository.full_name, change.graft_comment_id)
    except NotFound:  # somebody deleted the comment, and the votes on it with it
        pass
    else:
        reactions = listed
        if not listed.complete:
            await run.finish("reactions")
            return

    recorded = 0

    async def store(connection: Connection) -> None:
        nonlocal recorded
        standing: list[tuple[UUID, int]] = []
        for reaction in sorted(reactions, key=lambda r: (r.created_at, r.id)):
            vote = await _vote(connection, change, reaction)
            if vote is not None:
                standing.append((vote.card_id, vote.user_id))
                recorded += await votes.record(connection, vote)
        recorded += await votes.withdraw_missing(connection, change.id, standing)
        if recorded:
            ask = services.ask(
                pull_address(change.repository_id, change.pr_number),
                "reviewers",
                installation_id=repository.installation_id,
                repository_id=repository.id,
            )
            await services.ask_now(ask, connection=connection)

    await run.finish("reactions", also=store)
    if recorded:
        await services.bus.signal(
            "vote recorded", {"repository_id": change.repository_id, "number": change.pr_number}
        )


async def _vote(connection: Connection, change: Change, reaction: issues.Reaction) -> votes.Vote | None:
    verdict, user = VERDICTS.get(reaction.content), reaction.user
    if verdict is None or user is None or user.id is None or user.is_bot:
        return None
    card_id = await cards.displayed_at(connection, change.id, reaction.created_at)
    if card_id is None:
        return None
    return votes.Vote(
        card_id=card_id,
        change_id=change.id,
        user_id=user.id,
        user_login=user.login,
        verdict=verdict,
        source="reaction",
        is_pr_author=user.id == change.author_id,
        voted_at=reaction.created_at,
    )
