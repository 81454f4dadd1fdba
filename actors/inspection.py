"""What operators may look at: the whole, the actors, one pull request, money and settings.

Any replica answers, from Postgres; what happens at this moment is asked of the replicas themselves. Nothing here
changes anything.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from actors.presence import Presence
from actors.services import Services
from graft import __version__, config, control
from graft.bus import BusUnavailable
from graft.control import Doing, Refused
from graft.store import dead, dossier, overview
from graft.store.dossier import Subject
from graft.triggers import pull_address

T = TypeVar("T")


class Inspection:
    """Answers the questions that only read."""

    def __init__(self, services: Services, presence: Presence) -> None:
        self.services = services
        self.presence = presence

    # ----------------------------------------------------------------------------------------- the whole

    async def status(self, _question: control.Nothing) -> control.Status:
        """Everything an on-call person looks at first."""
        async with self.services.pool.acquire() as connection:
            replicas = await overview.replicas(connection)
            unheld = await overview.unheld(connection)
            work = await overview.work_counts(connection)
            installations = await overview.installation_counts(connection)
            repositories, changes = await overview.change_counts(connection)
        rolls, backlog = await asyncio.gather(
            self.presence.roll([one.holder for one in replicas]), self._backlog()
        )
        found = []
        for row in replicas:
            roll = rolls.get(row.holder)
            found.append(
                control.Replica(
                    replica=row.holder,
                    version=row.version,
                    started_at=row.started_at,
                    draining=row.draining,
                    partitions=tuple(row.partitions),
                    answers=roll is not None,
                    running=len(roll.running) if roll else None,
                    concurrency=roll.concurrency if roll else None,
                    taken=roll.taken if roll else None,
                    refused=roll.refused if roll else None,
                )
            )
        running = sorted(
            (one for roll in rolls.values() for one in roll.running), key=lambda one: -one.seconds
        )
        async with self.services.pool.acquire() as connection:
            names = await overview.names(connection, [one.address for one in running])
        limits = [limit for roll in rolls.values() for limit in roll.limits]
        limits.sort(key=lambda one: (-one.limited_seconds, one.remaining or 0))
        return control.Status(
            answered_by=self.presence.system.holder,
            version=__version__,
            replicas=tuple(found),
            partitions=self.services.partitioning.count,
            unheld=tuple(unheld),
            backlog=backlog,
            work=_as(control.WorkCounts, work),
            running=tuple(replace(one, name=names.get(one.address, one.address)) for one in running),
            limits=tuple(limits[:50]),
            installations=installations,
            repositories=repositories,
            changes=changes,
        )

    async def _backlog(self) -> control.Backlog | None:
        try:
            async with asyncio.timeout(1.0):
                found = await self.services.bus.backlog()
        except (BusUnavailable, TimeoutError):
            return None
        return _as(control.Backlog, found)

    async def actors(self, question: control.ListActors) -> control.Actors:
        """Actors with work, and those that run."""
        async with self.services.pool.acquire() as connection:
            replicas = await overview.replicas(connection)
            rows, total = await overview.actors(
                connection,
                match=question.match,
                # Whether one runs is known to its replica alone.
                state=None if question.state == "running" else question.state,
                sort=question.sort,
                limit=1000 if question.state == "running" else question.limit,
            )
        rolls = await self.presence.roll([one.holder for one in replicas])
        running: dict[str, Doing] = {d.address: d for roll in rolls.values() for d in roll.running}
        found = [
            control.ActorRow(
                address=row.address,
                name=row.name,
                state="running" if row.address in running else row.state,
                needs=tuple(row.needs),
                partition=row.partition,
                holder=row.holder,
                due_seconds=row.due_seconds,
                age_seconds=row.age_seconds,
                attempts=row.attempts,
                doing=running[row.address].doing if row.address in running else None,
                failure=row.failure,
            )
            for row in rows
        ]
        if question.state is not None:
            found = [row for row in found if row.state == question.state]
        if question.state == "running":
            total = len(found)
        return control.Actors(actors=tuple(found[: question.limit]), total=total)

    # -------------------------------------------------------------------------------------- one change

    async def find(self, name: control.ChangeName) -> Subject:
        """The change of that name. Raises Refused (`404`), saying which part of the name is unknown."""
        async with self.services.pool.acquire() as connection:
            subject = await dossier.find(connection, name.repository, name.number)
            if subject is not None:
                return subject
            repository = await dossier.find_repository(connection, name.repository)
        if repository is None:
            raise Refused(
                "404",
                f"no installation has a repository {name.repository}; `graftctl ls` shows what there is to do, "
                "and GitHub's page of the App where it is installed",
            )
        raise Refused(
            "404",
            f"{name.repository} has no pull request {name.number} that Graft has seen; "
            f"`graftctl rerun {name.repository}#{name.number}` reads it from GitHub",
        )

    async def show(self, name: control.ChangeName) -> control.Change:
        """Everything stored of one pull request, and what happens with it now."""
        subject = await self.find(name)
        address = pull_address(subject.repository_id, subject.pr_number)
        live = asyncio.create_task(self.presence.live(address))
        async with self.services.pool.acquire() as connection:
            work = await dossier.needed(connection, address)
            answer, commits = await dossier.provenance(connection, subject.id)
            card, cards = await dossier.card(connection, subject.id)
            verdict = await dossier.verdict(connection, subject.id)
            displays = await dossier.displays(connection, subject.id)
            checks = await dossier.check_runs(connection, subject.id, subject.head_sha)
            votes = await dossier.votes(connection, subject.id)
            spend = await dossier.spend(connection, subject.id)
        return control.Change(
            name=subject.name,
            address=address,
            installation_id=subject.installation_id,
            state=subject.state,
            draft=subject.draft,
            author=subject.author_login,
            author_is_bot=subject.author_is_bot,
            head_sha=subject.head_sha,
            base_ref=subject.base_ref,
            opened_at=subject.opened_at,
            updated_at=subject.pr_updated_at,
            comment_id=subject.graft_comment_id,
            inactive=subject.inactive,
            live=await live,
            work=tuple(_as(control.WorkRow, row) for row in work),
            provenance=provenance_of(answer, commits),
            card=card_of(card),
            cards=cards,
            verdict=verdict_of(verdict),
            displays=tuple(
                control.Display(shown_at=row["shown_at"], status=row["status"], card_id=_text(row["card_id"]))
                for row in displays
            ),
            checks=tuple(control.CheckRun(**row) for row in checks),
            votes=tuple(
                control.Vote(
                    login=row["user_login"],
                    verdict=row["verdict"],
                    source=row["source"],
                    is_author=row["is_pr_author"],
                    voted_at=row["voted_at"],
                    withdrawn=row["withdrawn"],
                )
                for row in votes
            ),
            spend=tuple(control.Spend(**row) for row in spend),
        )

    # ----------------------------------------------------------------------------------- dead, money, settings

    async def dead(self, question: control.ListDead) -> control.Dead:
        """Work that failed for good."""
        async with self.services.pool.acquire() as connection:
            rows, total = await dead.listed(connection, match=question.match, limit=question.limit)
        return control.Dead(rows=tuple(_as(control.DeadRow, row) for row in rows), total=total)

    async def budget(self, question: control.BudgetQuestion) -> control.Budget:
        """What models cost today, by repository."""
        daily = float(self.services.settings.daily_budget_usd)
        async with self.services.pool.acquire() as connection:
            rows, today, month = await overview.spend_today(
                connection, match=question.match, limit=question.limit
            )
        return control.Budget(
            daily_usd=daily,
            rows=tuple(
                control.BudgetRow(
                    repository=row.repository,
                    spent_usd=float(row.spent),
                    reserved_usd=float(row.reserved),
                    left_usd=max(0.0, daily - float(row.spent + row.reserved)),
                    calls=row.calls,
                    tokens=row.tokens,
                )
                for row in rows
            ),
            spent_usd=float(today),
            last_30_days_usd=float(month),
        )

    async def config(self, _question: control.Nothing) -> control.Config:
        """The settings of the replica that answers."""
        return control.Config(
            answered_by=self.presence.system.holder,
            version=__version__,
            settings=tuple(_as(control.Setting, one) for one in config.effective(self.services.settings)),
        )


# ----------------------------------------------------------------------------------------------- rows as answers


def provenance_of(answer: dict[str, Any] | None, commits: list[dict[str, Any]]) -> control.Provenance | None:
    """The stored answer with the commits it rests on."""
    if answer is None:
        return None
    deciding = set(answer["deciding_commits"])
    return control.Provenance(
        head_sha=answer["head_sha"],
        author_kind=answer["author_kind"],
        reason=answer["author_kind_reason"],
        source=answer["source"],
        agents=tuple(answer["agents"]),
        models=tuple(answer["models"]),
        hints=tuple(answer["hints"]),
        commits=tuple(
            control.CommitOrigin(
                sha=row["commit_sha"],
                source=row["source"],
                author_kind=row["author_kind"],
                agent=row["agent"],
                model=row["model"],
                task=row["task"],
                rule=row["rule"],
                decides=row["commit_sha"] in deciding,
            )
            for row in commits
        ),
        resolved_at=answer["resolved_at"],
    )


def card_of(row: dict[str, Any] | None) -> control.Card | None:
    """The stored card."""
    if row is None:
        return None
    return control.Card(
        id=str(row["id"]),
        head_sha=row["head_sha"],
        base_sha=row["base_sha"],
        status=row["status"],
        reason=row["reason"],
        risk=row["risk_class"],
        risk_floor=row["risk_floor"],
        risk_first_pass=row["risk_first_pass"],
        risk_writer=row["risk_writer"],
        risk_verifier=row["risk_verifier"],
        verifier_status=row["verifier_status"],
        injection_suspected=row["injection_suspected"],
        writer_model=row["writer_model"],
        verifier_model=row["verifier_model"],
        carried_from=_text(row["carried_from"]),
        created_at=row["created_at"],
        published_at=row["published_at"],
        card=row["card"],
    )


def verdict_of(row: dict[str, Any] | None) -> control.Verdict | None:
    """The stored verdict: indices and codes."""
    if row is None:
        return None
    return control.Verdict(
        head_sha=row["head_sha"],
        base_ref=row["base_ref"],
        base_sha=row["base_sha"],
        policy_path=row["policy_path"],
        policy_status=row["policy_status"],
        outcome=row["outcome"],
        rule_index=row["rule_index"],
        rules=tuple(
            control.RuleState(index=rule["rule"], state=rule["state"], code=rule["code"])
            for rule in row["rules"]
        ),
        guards=tuple(row["guards"]),
        evaluated_at=row["evaluated_at"],
    )


def _as(kind: type[T], row: object) -> T:
    """A row as the answer of the same fields."""
    return msgspec.convert(row, kind, from_attributes=True)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
