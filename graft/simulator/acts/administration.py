"""Installing the App and looking after repositories."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from graft.simulator.acts.stage import Stage
from graft.simulator.payloads import events
from graft.simulator.repository_git import GitRepository
from graft.simulator.state import Installation, Repository


class AdministrationActs(Stage):
    """Acts of owners and administrators."""

    def add_repository(
        self,
        full_name: str,
        path: str | Path,
        *,
        installation: Installation | None = None,
        default_branch: str | None = None,
        id: int | None = None,
        private: bool = False,
        installed: bool = True,
    ) -> Repository:
        """Serve a local git repository, bare or not, under this name; sends nothing.

        Without an installation, the one of the owner is used, or made; `installed=False` leaves the App out.
        The default branch is git's own HEAD unless given. Raises `ValueError` when there is no repository.
        """
        owner, _, name = full_name.partition("/")
        account = self.world.user(owner)
        branches, head = _read_branches(Path(path))
        if installation is None and installed:
            installation = self._installation_of(owner) or self.add_installation(owner)
        now = self.world.time()
        made = Repository(
            id=id if id is not None else self.world.next_id(),
            owner=account,
            name=name,
            git=GitRepository(path),
            default_branch=default_branch or head,
            created_at=now,
            updated_at=now,
            pushed_at=now,
            branches=branches,
            installation=installation,
            private=private,
        )
        self.world.repositories[made.id] = made
        self.world.add_name(made)
        return made

    def add_installation(
        self, account: str, *, id: int | None = None, hourly_limit: int = 5000
    ) -> Installation:
        """The App on an account, as if it had been there before; sends nothing."""
        made = Installation(
            id=id if id is not None else self.world.next_id(),
            account=self.world.user(account),
            created_at=self.world.time(),
            permissions=dict(self.server.app.permissions),
            hourly_limit=hourly_limit,
        )
        self.world.installations[made.id] = made
        return made

    def install(
        self,
        account: str,
        repositories: Sequence[Repository],
        *,
        id: int | None = None,
        sender: str = "octocat",
    ) -> Installation:
        """Install the App on some repositories of an account."""
        made = self.add_installation(account, id=id)
        for repository in repositories:
            repository.installation = made
        self._tell_installation("created", made, sender, list(repositories))
        return made

    def uninstall(self, installation: Installation, *, sender: str = "octocat") -> None:
        """Remove the App: its tokens end, its installation answers 404."""
        repositories = self.world.repositories_of(installation)
        installation.deleted = True
        self._tell_installation("deleted", installation, sender, repositories)

    def suspend(self, installation: Installation, *, sender: str = "octocat") -> None:
        installation.suspended_at = self.world.time()
        installation.suspended_by = self.world.user(sender)
        self._tell_installation("suspend", installation, sender, self.world.repositories_of(installation))

    def unsuspend(self, installation: Installation, *, sender: str = "octocat") -> None:
        installation.suspended_at = installation.suspended_by = None
        self._tell_installation("unsuspend", installation, sender, self.world.repositories_of(installation))

    def grant_repositories(
        self, installation: Installation, repositories: Sequence[Repository], *, sender: str = "octocat"
    ) -> None:
        """Give the App more repositories."""
        for repository in repositories:
            repository.installation = installation
        self._tell_selection(installation, sender, added=list(repositories), removed=[])

    def withdraw_repositories(
        self, installation: Installation, repositories: Sequence[Repository], *, sender: str = "octocat"
    ) -> None:
        """Take repositories away from the App."""
        for repository in repositories:
            repository.installation = None
        self._tell_selection(installation, sender, added=[], removed=list(repositories))

    def expire_tokens(self, installation: Installation | None = None) -> None:
        """End every token at once, or those of one installation; new ones can be had."""
        self.server.tokens.revoke(installation)

    def set_permission(self, repository: Repository, login: str, role: str) -> None:
        """What a person may do: `admin`, `maintain`, `write`, `triage`, `read` or `none`."""
        self.world.user(login)
        repository.permissions[login.lower()] = role

    def rename(self, repository: Repository, name: str, *, sender: str = "octocat") -> None:
        """Give another name; the former one leads on."""
        former, repository.name = repository.name, name
        self.world.add_name(repository)
        changes = {"repository": {"name": {"from": former}}}
        self._tell_repository("renamed", repository, sender, changes=changes)

    def transfer(
        self,
        repository: Repository,
        owner: str,
        *,
        installation: Installation | None,
        sender: str = "octocat",
    ) -> None:
        """Give to another account. Both installations, where there are any, hear of it."""
        before, was = repository.owner, repository.installation
        repository.owner = self.world.user(owner)
        self.world.add_name(repository)
        kind = "organization" if before.type == "Organization" else "user"
        shown = {"login": before.login, "id": before.id, "type": before.type}
        changes = {"owner": {"from": {kind: shown}}}
        for each in {each.id: each for each in (was, installation) if each is not None}.values():
            repository.installation = each
            self._tell_repository("transferred", repository, sender, changes=changes)
        repository.installation = installation

    def archive(self, repository: Repository, *, sender: str = "octocat") -> None:
        """Make read-only: every write answers 403."""
        repository.archived = True
        self._tell_repository("archived", repository, sender)

    def unarchive(self, repository: Repository, *, sender: str = "octocat") -> None:
        repository.archived = False
        self._tell_repository("unarchived", repository, sender)

    def delete_repository(self, repository: Repository, *, sender: str = "octocat") -> None:
        repository.deleted = True
        self._tell_repository("deleted", repository, sender)

    def _installation_of(self, account: str) -> Installation | None:
        owner = self.world.user(account)
        living = (each for each in self.world.installations.values() if not each.deleted)
        return next((each for each in living if each.account is owner), None)

    def _tell_repository(self, action: str, repository: Repository, sender: str, **members: object) -> None:
        self.tell("repository", self.envelope(sender, repository).wrap(action, **members), repository)

    def _tell_installation(
        self, action: str, of: Installation, sender: str, repositories: list[Repository]
    ) -> None:
        payload = events.installation_event(self.envelope(sender), action, of, self.server.app, repositories)
        self.server.webhooks.emit("installation", payload, of, None)

    def _tell_selection(
        self, of: Installation, sender: str, *, added: list[Repository], removed: list[Repository]
    ) -> None:
        payload = events.installation_repositories_event(
            self.envelope(sender), of, self.server.app, added=added, removed=removed
        )
        self.server.webhooks.emit("installation_repositories", payload, of, None)


def _read_branches(path: Path) -> tuple[dict[str, str], str]:
    """The branches of a repository and the one its HEAD names. Read at once, before anything runs."""
    git = ["git", "-c", "safe.directory=*", "-C", str(path)]
    listing = subprocess.run(
        [*git, "for-each-ref", "--format=%(refname:strip=2) %(objectname)", "refs/heads"],
        capture_output=True,
        check=False,
    )
    if listing.returncode != 0:
        raise ValueError(f"{path} is no git repository")
    rows = (line.rpartition(" ") for line in listing.stdout.decode("utf-8", "replace").splitlines())
    branches = {name: sha for name, _, sha in rows}
    head = subprocess.run([*git, "symbolic-ref", "--short", "-q", "HEAD"], capture_output=True, check=False)
    name = head.stdout.decode("utf-8", "replace").strip()
    return branches, name or ("main" if "main" in branches else next(iter(branches), "main"))
