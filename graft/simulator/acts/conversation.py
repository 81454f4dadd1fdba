"""Talking about changes: comments, reactions, reviews, issues, and the buttons of check runs."""

from __future__ import annotations

from graft.simulator.acts.stage import Stage
from graft.simulator.payloads import checks, pulls
from graft.simulator.routes.issues import add_comment, add_reaction, remove_comment
from graft.simulator.routes.pulls import pull_json
from graft.simulator.state import CheckRun, CheckSuite, Comment, Issue, Pull, Reaction, Repository, Review


class ConversationActs(Stage):
    """Acts of reviewers. Comments and reactions send nothing: the App is not subscribed to comments, and
    reactions have no event at all."""

    def comment(self, subject: Pull | Issue, body: str, *, user: str = "octocat") -> Comment:
        """A person comments."""
        issue = subject.issue if isinstance(subject, Pull) else subject
        return add_comment(self.world, issue, self.world.user(user), body, via_app=False)

    def delete_comment(self, comment: Comment) -> None:
        """A person deletes a comment, the App's own ones included."""
        remove_comment(self.world, comment)

    def react(self, comment: Comment | int, content: str, *, user: str = "octocat") -> Reaction:
        """Put a reaction (`+1`, `-1`, `eyes`, …) on a comment."""
        if content not in pulls.REACTIONS:
            raise ValueError(f"{content!r} is no reaction")
        found = self.world.comments[comment] if isinstance(comment, int) else comment
        return add_reaction(self.world, found, self.world.user(user), content)[0]

    def unreact(self, comment: Comment | int, content: str, *, user: str = "octocat") -> None:
        """Take it away again."""
        found = self.world.comments[comment] if isinstance(comment, int) else comment
        account = self.world.user(user)
        found.reactions = [r for r in found.reactions if r.user is not account or r.content != content]

    async def review(self, pull: Pull, *, user: str, state: str = "APPROVED", body: str = "") -> Review:
        """Submit a review: `APPROVED`, `CHANGES_REQUESTED` or `COMMENTED`."""
        made = Review(
            id=self.world.next_id(),
            user=self.world.user(user),
            state=state,
            body=body,
            commit_id=pull.head_sha,
            submitted_at=self.world.time(),
        )
        pull.reviews.append(made)
        pull.issue.updated_at = self.world.time()
        await self._tell_review("submitted", pull, made, user)
        return made

    async def dismiss_review(self, pull: Pull, review: Review, *, sender: str = "octocat") -> None:
        review.state = "DISMISSED"
        pull.issue.updated_at = self.world.time()
        await self._tell_review("dismissed", pull, review, sender)

    def open_issue(
        self,
        repository: Repository,
        *,
        title: str = "A problem",
        body: str | None = None,
        author: str = "octocat",
    ) -> Issue:
        """A plain issue; it sends `issues.opened`."""
        now = self.world.time()
        made = Issue(
            id=self.world.next_id(),
            number=repository.next_number(),
            repository=repository,
            user=self.world.user(author),
            title=title,
            body=body,
            created_at=now,
            updated_at=now,
        )
        repository.add_issue(made)
        self._tell_issue("opened", made, author)
        return made

    def close_issue(self, issue: Issue, *, sender: str | None = None) -> None:
        issue.state, issue.closed_at = "closed", self.world.time()
        issue.updated_at = issue.closed_at
        issue.repository.open_issues -= 1
        self._tell_issue("closed", issue, sender or issue.user.login)

    def press_button(self, check_run_id: int, identifier: str, *, user: str = "octocat") -> None:
        """Press a button of a completed run. Raises `ValueError` for a button that is not shown."""
        run = self.check_run(check_run_id)
        shown = [action["identifier"] for action in run.actions] if run.status == "completed" else []
        if identifier not in shown:
            raise ValueError(f"check run {check_run_id} shows no button {identifier!r}")
        self._tell_run("requested_action", run, user, requested_action={"identifier": identifier})

    def rerequest_run(self, check_run_id: int, *, user: str = "octocat") -> None:
        """Press “Re-run” on one run."""
        run = self.check_run(check_run_id)
        run.suite.requeued = True
        self._tell_run("rerequested", run, user)

    async def rerequest_suite(self, suite: CheckSuite, *, user: str = "octocat") -> None:
        """Press “Re-run all checks”: one event for the suite, none for its runs."""
        suite.requeued = True
        head = await suite.repository.git.commit(suite.head_sha)
        shown = checks.check_suite(suite, head, self.server.app, self.server.urls)
        payload = self.envelope(user, suite.repository).wrap("rerequested", check_suite=shown)
        self.tell("check_suite", payload, suite.repository)

    def check_run(self, check_run_id: int) -> CheckRun:
        """The run of this id. Raises `KeyError` when there is none."""
        for repository in self.world.repositories.values():
            if check_run_id in repository.runs:
                return repository.runs[check_run_id]
        raise KeyError(check_run_id)

    def _tell_run(self, action: str, run: CheckRun, sender: str, **members: object) -> None:
        repository = run.suite.repository
        shown = checks.check_run_in_event(run, self.server.app, self.server.urls)
        payload = self.envelope(sender, repository).wrap(action, check_run=shown, **members)
        self.tell("check_run", payload, repository)

    async def _tell_review(self, action: str, pull: Pull, review: Review, sender: str) -> None:
        shown = pulls.review(review, pull, self.server.urls, in_event=True)
        whole = await pull_json(self.server, pull, pull.head_sha)
        payload = self.envelope(sender, pull.repository).wrap(action, review=shown, pull_request=whole)
        self.tell("pull_request_review", payload, pull.repository)

    def _tell_issue(self, action: str, issue: Issue, sender: str) -> None:
        shown = pulls.issue(issue, self.server.urls)
        self.tell(
            "issues", self.envelope(sender, issue.repository).wrap(action, issue=shown), issue.repository
        )
