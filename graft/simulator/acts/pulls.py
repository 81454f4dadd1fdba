"""Opening, pushing to and changing pull requests."""

from __future__ import annotations

from collections.abc import Sequence

from graft.simulator.acts.stage import Stage
from graft.simulator.payloads import checks, events, pulls
from graft.simulator.repository_git import FULL_SHA
from graft.simulator.routes.checks import suite_at
from graft.simulator.routes.pulls import pull_json
from graft.simulator.state import Issue, Label, Pull, Repository


class PullActs(Stage):
    """Acts on pull requests and branches. None of them writes to the git repository."""

    async def open_pull(
        self,
        repository: Repository,
        *,
        head: str,
        base: str | None = None,
        title: str = "A change",
        body: str | None = None,
        author: str = "octocat",
        draft: bool = False,
        labels: Sequence[str] = (),
        fork: str | None = None,
        head_ref: str | None = None,
    ) -> Pull:
        """Open a pull request.

        `head` is a branch, any revision, or a range `BASE..HEAD`; a range moves the simulated base branch to
        BASE. `fork` is the owner of the fork the head comes from. Raises `ValueError` for a revision that
        the git repository does not have.
        """
        base_ref = base or repository.default_branch
        before, dots, after = head.partition("..")
        if dots:
            repository.branches[base_ref] = await self._resolve(repository, before)
            head = after.removeprefix(".")
        head_sha = await self._resolve(repository, head)
        number = repository.next_number()
        named = not dots and not FULL_SHA.fullmatch(head)
        ref = head_ref or (head.removeprefix("refs/heads/") if named else f"pull-{number}")
        home = repository if fork is None else self._fork(repository, fork)
        home.branches[ref] = head_sha
        now = self.world.time()
        issue = Issue(
            id=self.world.next_id(),
            number=number,
            repository=repository,
            user=self.world.user(author),
            title=title,
            body=body,
            created_at=now,
            updated_at=now,
            labels=[self._label(repository, name) for name in labels],
        )
        if base_ref not in repository.branches:
            raise ValueError(f"the repository has no branch named {base_ref!r}")
        pull = Pull(
            id=self.world.next_id(),
            issue=issue,
            base_ref=base_ref,
            base_sha=repository.branches[base_ref],
            head_ref=ref,
            head_sha=head_sha,
            head_repository=home,
            draft=draft,
        )
        issue.pull = pull
        repository.add_issue(issue)
        self.world.pulls_from.setdefault((home.id, ref), []).append(pull)
        await self._tell_pull("opened", pull, author)
        return pull

    async def push(
        self, repository: Repository, branch: str, revision: str | None = None, *, sender: str = "octocat"
    ) -> str:
        """Move a branch to a revision, by default to where git has it now; returns the new tip.

        Pull requests from that branch are synchronized.
        """
        after = await self._resolve(repository, revision or f"refs/heads/{branch}")
        before = repository.branches.get(branch)
        repository.branches[branch] = after
        repository.pushed_at = repository.updated_at = self.world.time()
        await self._tell_push(repository, branch, before, after, sender)
        for pull in list(self.world.pulls_from.get((repository.id, branch), ())):
            if pull.issue.state == "open" and pull.head_sha != after:
                await self._synchronize(pull, after, sender)
        return after

    async def synchronize(self, pull: Pull, new_head: str, *, sender: str | None = None) -> str:
        """Push to the branch of a pull request."""
        home = pull.head_repository
        if home is None:
            raise ValueError("the fork of this pull request is gone")
        return await self.push(home, pull.head_ref, new_head, sender=sender or pull.issue.user.login)

    async def edit(
        self, pull: Pull, *, title: str | None = None, body: str | None = None, sender: str | None = None
    ) -> None:
        """Change title or body."""
        changes: dict[str, object] = {}
        if title is not None:
            changes["title"] = {"from": pull.issue.title}
            pull.issue.title = title
        if body is not None:
            changes["body"] = {"from": pull.issue.body or ""}
            pull.issue.body = body
        self._touch(pull)
        await self._tell_pull("edited", pull, sender, changes=changes)

    async def retarget(self, pull: Pull, base: str, *, sender: str | None = None) -> None:
        """Choose another base branch."""
        if base not in pull.repository.branches:
            raise ValueError(f"the repository has no branch named {base!r}")
        changes = {"base": {"ref": {"from": pull.base_ref}, "sha": {"from": pull.base_sha}}}
        pull.base_ref, pull.base_sha = base, pull.repository.branches[base]
        self._touch(pull)
        await self._tell_pull("edited", pull, sender, changes=changes)

    async def close(self, pull: Pull, *, merged: bool = False, sender: str | None = None) -> None:
        """Close, or merge by moving the base branch to the head."""
        issue, now = pull.issue, self.world.time()
        pull.base_sha = pull.repository.branches.get(pull.base_ref, pull.base_sha)
        issue.state, issue.closed_at = "closed", now
        pull.repository.open_issues -= 1
        if merged:
            pull.merged_at, pull.merge_sha = now, pull.head_sha
            pull.merged_by = self.world.user(sender or issue.user.login)
        self._touch(pull)
        await self._tell_pull("closed", pull, sender)
        if merged:
            await self.push(pull.repository, pull.base_ref, pull.head_sha, sender=sender or "octocat")

    async def reopen(self, pull: Pull, *, sender: str | None = None) -> None:
        pull.issue.state, pull.issue.closed_at = "open", None
        pull.repository.open_issues += 1
        self._touch(pull)
        await self._tell_pull("reopened", pull, sender)

    async def set_draft(self, pull: Pull, draft: bool, *, sender: str | None = None) -> None:
        """Convert to a draft, or declare ready for review."""
        pull.draft = draft
        pull.drafted.append((self.world.time(), draft))
        self._touch(pull)
        await self._tell_pull("converted_to_draft" if draft else "ready_for_review", pull, sender)

    async def label(self, subject: Pull | Issue, name: str, *, sender: str | None = None) -> None:
        """Put a label on a pull request or an issue."""
        issue = subject.issue if isinstance(subject, Pull) else subject
        label = self._label(issue.repository, name)
        if label not in issue.labels:
            issue.labels.append(label)
            await self._tell_labels("labeled", issue, label, sender)

    async def unlabel(self, subject: Pull | Issue, name: str, *, sender: str | None = None) -> None:
        """Take a label off again."""
        issue = subject.issue if isinstance(subject, Pull) else subject
        label = self._label(issue.repository, name)
        if label in issue.labels:
            issue.labels.remove(label)
            await self._tell_labels("unlabeled", issue, label, sender)

    def delete_fork(self, pull: Pull) -> None:
        """The fork's owner deletes it; the pull request stays, without a head repository."""
        if pull.head_repository is None or not pull.is_fork:
            raise ValueError("this pull request comes from no fork")
        pull.head_repository.deleted = True
        pull.head_repository = None

    async def _synchronize(self, pull: Pull, after: str, sender: str) -> None:
        before = pull.head_sha
        pull.repository.move_head(pull, after)
        pull.base_sha = pull.repository.branches.get(pull.base_ref, pull.base_sha)
        self._touch(pull)
        await self._tell_pull("synchronize", pull, sender, before=before, after=after)

    async def _tell_pull(self, action: str, pull: Pull, sender: str | None, **members: object) -> None:
        shown = await pull_json(self.server, pull, pull.head_sha)
        envelope = self.envelope(sender or pull.issue.user.login, pull.repository)
        payload = envelope.wrap(action, number=pull.number, pull_request=shown, **members)
        self.tell("pull_request", payload, pull.repository)

    async def _tell_labels(self, action: str, issue: Issue, label: Label, sender: str | None) -> None:
        issue.updated_at = self.world.time()
        shown = pulls.label(label, issue.repository, self.server.urls)
        if issue.pull is not None:
            await self._tell_pull(action, issue.pull, sender, label=shown)
            return
        envelope = self.envelope(sender or issue.user.login, issue.repository)
        payload = envelope.wrap(action, issue=pulls.issue(issue, self.server.urls), label=shown)
        self.tell("issues", payload, issue.repository)

    async def _tell_push(
        self, repository: Repository, branch: str, before: str | None, after: str, sender: str
    ) -> None:
        if repository.installation is None:
            return
        git = repository.git
        base = None if before is None else await git.merge_base(before, after)
        shas = () if before is None else await git.commits_between(before, after)
        commits = [await git.commit(sha) for sha in shas[-20:]]
        forced = before is not None and base != before
        envelope = self.envelope(sender, repository)
        self.tell("push", events.push(envelope, branch, before, after, commits, forced), repository)
        suite = suite_at(self.world, repository, after)
        head = await git.commit(after)
        shown = checks.check_suite(suite, head, self.server.app, self.server.urls)
        self.tell("check_suite", envelope.wrap("requested", check_suite=shown), repository)

    async def _resolve(self, repository: Repository, revision: str) -> str:
        sha = await repository.git.resolve(revision)
        sha = sha or repository.branches.get(revision)
        if sha is None:
            raise ValueError(f"{revision!r} names no commit in {repository.full_name}")
        return sha

    def _fork(self, repository: Repository, owner: str) -> Repository:
        found = self.world.repository_named(owner, repository.name)
        if found is not None:
            return found
        fork = Repository(
            id=self.world.next_id(),
            owner=self.world.user(owner),
            name=repository.name,
            git=repository.git,
            default_branch=repository.default_branch,
            created_at=self.world.time(),
            updated_at=self.world.time(),
            pushed_at=self.world.time(),
            fork_of=repository,
        )
        self.world.repositories[fork.id] = fork
        self.world.add_name(fork)
        return fork

    def _label(self, repository: Repository, name: str) -> Label:
        return repository.labels.setdefault(name, Label(id=self.world.next_id(), name=name))

    def _touch(self, pull: Pull) -> None:
        pull.issue.updated_at = self.world.time()
