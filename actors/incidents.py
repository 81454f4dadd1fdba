"""Incidents that a label stands for: read from the API as they are now, reduced to numbers, stored.

Titles and bodies are looked at for references (“Caused by #12”) and forgotten.
"""

from __future__ import annotations

from actors.run import Run
from actors.services import Services
from graft.database import Connection
from graft.github import Installation, history
from graft.github.issues import Issue
from graft.logs import get_logger
from graft.pilot import incidents as rules
from graft.pilot.incidents import Labelled
from graft.store import incidents
from graft.store.installations import Repository

log = get_logger("incidents")

# Labelled items read at a time; with more, none is taken for unlabelled because it was not seen.
MOST_LABELLED = 1_000
# Issues whose timeline is read for the pull request that closes them.
MOST_TIMELINES = 100


async def sync(services: Services, run: Run, client: Installation, repository: Repository) -> None:
    """Do `incidents`."""
    run.say("reading incidents")
    listed = await history.labelled(
        client, repository.full_name, services.settings.incident_label, limit=MOST_LABELLED
    )
    items = [_reduce(issue, repository.full_name) for issue in listed]
    looked_at = 0
    for place, item in enumerate(items):
        if not item.is_pull and not item.fixes and looked_at < MOST_TIMELINES:
            looked_at += 1
            items[place] = await _with_fix(client, repository.full_name, item)
    found = rules.interpret(items)
    changed = 0

    async def store(connection: Connection) -> None:
        nonlocal changed
        changed = await incidents.put_labelled(connection, repository.id, found, complete=listed.complete)

    await run.finish("incidents", also=store)
    log.info("incidents read", repository_id=repository.id, count=changed)


def _reduce(issue: Issue, full_name: str) -> Labelled:
    culprits, fixes, closes = rules.references(f"{issue.title}\n{issue.body}", repository=full_name)
    return Labelled(
        number=issue.number,
        is_pull=issue.is_pull,
        opened_at=issue.created_at,
        culprits=culprits,
        fixes=() if issue.is_pull else fixes,
        closes=closes if issue.is_pull else (),
    )


async def _with_fix(client: Installation, full_name: str, item: Labelled) -> Labelled:
    """The same issue with the first pull request of this repository whose text says that it closes it."""
    for event in await history.timeline(client, full_name, item.number):
        source = event.source
        if event.kind != "cross-referenced" or source is None or not source.is_pull:
            continue
        if source.repository not in ("", full_name.lower()):
            continue
        _, _, closes = rules.references(f"{source.title}\n{source.body}", repository=full_name)
        if item.number in closes:
            return Labelled(
                number=item.number,
                is_pull=False,
                opened_at=item.opened_at,
                culprits=item.culprits,
                fixes=(source.number,),
            )
    return item
