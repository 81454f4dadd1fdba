"""What all acts share: the server they act on, and telling the App about it."""

from __future__ import annotations

from typing import Any

from graft.simulator.payloads.events import Envelope
from graft.simulator.server import GitHubServer
from graft.simulator.state import Installation, Repository, User
from graft.simulator.webhooks import Delivery


class Stage:
    """Holds the server. Acts take logins for people, and make up the accounts they do not know."""

    def __init__(self, server: GitHubServer) -> None:
        self.server = server
        self.world = server.world

    def user(self, login: str, *, type: str | None = None, emails: tuple[str, ...] = ()) -> User:
        """The account of this login, whose commits are those of these addresses."""
        account = self.world.user(login, type=type)
        self.world.emails.update(dict.fromkeys(emails, account))
        return account

    def envelope(self, sender: str, repository: Repository | None = None) -> Envelope:
        installation = None if repository is None else repository.installation
        return Envelope(
            sender=self.world.user(sender),
            urls=self.server.urls,
            repository=repository,
            installation=installation,
        )

    def tell(self, event: str, payload: dict[str, Any], repository: Repository) -> Delivery | None:
        """Send an event about a repository, if the App is installed, active and subscribed."""
        installation = repository.installation
        if event not in self.server.app.events or not _listens(installation):
            return None
        return self.server.webhooks.emit(event, payload, installation, repository.id)


def _listens(installation: Installation | None) -> bool:
    return installation is not None and not installation.deleted and installation.suspended_at is None
