"""The stage on a simulated GitHub: people act through the simulator, which sends the webhooks."""

from __future__ import annotations

from collections.abc import Mapping

from graft.e2e.metrics import read_votes
from graft.e2e.stage import BRANCH_PREFIX, Change, Check, Shown
from graft.simulator import Pull, Repository, Simulator
from graft.simulator.demo_repository import RepositoryBuilder

REVIEWER = "e2e-reviewer"


class SimulatedStage:
    """A repository of the simulator, and the daemon's metrics."""

    abilities = frozenset({"fork", "button", "uninstall", "votes"})

    def __init__(
        self, simulator: Simulator, builder: RepositoryBuilder, repository: Repository, metrics_url: str
    ) -> None:
        self._simulator = simulator
        self._builder = builder
        self._repository = repository
        self._metrics_url = metrics_url

    @property
    def name(self) -> str:
        return self._repository.full_name

    async def clear(self) -> None:
        for pull in self._repository.pulls:
            if pull.head_ref.startswith(BRANCH_PREFIX) and pull.issue.state == "open":
                await self._simulator.close(pull)

    async def branch(self, name: str, files: Mapping[str, str], *, start: str | None = None) -> str:
        sha = self._builder.commit(
            name, files, message=f"Commit for {name}", parent=self._builder.tip(start or "main")
        )
        # A branch that a pull request is to have as its base has to be known.
        self._repository.branches[name] = sha
        return sha

    async def open(self, branch: str, *, base: str | None = None, fork: bool = False) -> Change:
        pull = await self._simulator.open_pull(
            self._repository,
            head=self._repository.branches[branch],
            head_ref=branch,
            base=base,
            title=f"Play {branch}",
            fork="e2e-forker" if fork else None,
        )
        return Change(number=pull.number, branch=branch, base=pull.base_ref, head_sha=pull.head_sha)

    async def push(self, change: Change, files: Mapping[str, str], *, force: bool = False) -> None:
        parent = self._builder.tip("main") if force else None
        sha = self._builder.commit(change.branch, files, message="Another commit", parent=parent)
        change.head_sha = await self._simulator.synchronize(self._pull(change), sha)

    async def retarget(self, change: Change, base: str) -> None:
        await self._simulator.retarget(self._pull(change), base)

    async def rename(self, name: str) -> None:
        self._simulator.rename(self._repository, name)

    async def shown(self, change: Change) -> Shown:
        pull, slug = self._pull(change), self._simulator.app.slug
        return Shown(
            comments=tuple((c.id, c.body) for c in pull.issue.comments if c.user.login == f"{slug}[bot]"),
            checks={
                run.name: Check(
                    id=run.id,
                    conclusion=run.conclusion,
                    title=str(run.output.get("title", "")),
                    stamp=f"{run.id} {run.completed_at}",
                    buttons=tuple(action["identifier"] for action in run.actions),
                )
                for run in self._repository.runs_at(pull.head_sha)
            },
        )

    async def react(self, comment_id: int, content: str) -> None:
        self._simulator.react(comment_id, content, user=REVIEWER)

    async def press(self, check_id: int, button: str) -> None:
        self._simulator.press_button(check_id, button, user=REVIEWER)

    async def rerun(self, check_id: int) -> None:
        self._simulator.rerequest_run(check_id, user=REVIEWER)

    async def uninstall(self) -> None:
        installation = self._repository.installation
        if installation is not None:
            self._simulator.uninstall(installation)
            self._repository.installation = None

    async def install(self) -> None:
        self._simulator.install(self._repository.owner.login, [self._repository])

    async def votes(self) -> dict[tuple[str, str], int]:
        return await read_votes(self._metrics_url)

    async def close(self, change: Change) -> None:
        await self._simulator.close(self._pull(change))
        await self.delete_branch(change.branch)

    async def delete_branch(self, branch: str) -> None:
        self._repository.branches.pop(branch, None)

    def _pull(self, change: Change) -> Pull:
        pull = self._repository.issues[change.number].pull
        if pull is None:
            raise KeyError(change.number)
        return pull
