"""The daemon as a NATS micro service: what operators ask with `graftctl`, answered by whichever replica is free.

Who may ask what is the broker's decision, by subject (graft.control). An answer goes to the inbox that the asker
names, with the daemon's own permissions, so only inboxes of operators are answered: otherwise a question could
be made to publish its answer as a trigger or as a request to JetStream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.micro.request import Request
from nats.micro.service import EndpointConfig, Service, ServiceConfig

from actors.explaining import Explaining
from actors.inspection import Inspection
from actors.presence import Presence
from actors.recovery import Attempts, Recoverer
from actors.services import Services
from graft import __version__, control
from graft.bus import Bus
from graft.control import Operation, Refused
from graft.errors import GraftError
from graft.logs import get_logger
from graft.store import dead, dossier, overview, partitions, recoveries
from graft.triggers import is_handled, partition_of, pull_address

log = get_logger("operator")

# NATS refuses larger messages unless told otherwise; an answer also has headers.
LARGEST_ANSWER = 1_000_000

Handler = Callable[[Any], Awaitable[Any]]


class Operator:
    """Serves every operation of `graft.control` while it runs."""

    def __init__(self, services: Services, presence: Presence, recoverer: Recoverer) -> None:
        self.services = services
        self.presence = presence
        self.recoverer = recoverer
        self.inspection = Inspection(services, presence)
        self.explaining = Explaining(services, self.inspection)
        self._service: Service | None = None
        self.handlers: dict[str, Handler] = {
            control.STATUS.name: self.inspection.status,
            control.ACTORS.name: self.inspection.actors,
            control.SHOW.name: self.inspection.show,
            control.WHY.name: self.explaining.why,
            control.RERUN.name: self.rerun,
            control.DEAD.name: self.inspection.dead,
            control.RETRY.name: self.retry,
            control.DROP.name: self.drop,
            control.DELIVERIES.name: self.deliveries,
            control.REDELIVER.name: self.redeliver,
            control.BUDGET.name: self.inspection.budget,
            control.DRAIN.name: self.drain,
            control.RESIZE.name: self.resize,
            control.CONFIG.name: self.inspection.config,
        }

    async def start(self) -> None:
        """Answer from now on, also `$SRV.PING`, `INFO` and `STATS`."""
        bus = self.services.bus
        service = Service(
            Answering(bus),  # type: ignore[arg-type]  # the part of a client that a service uses
            ServiceConfig(
                name=bus.prefix,
                version=__version__,
                description="Graft: see docs/graftctl.md",
                metadata={"replica": self.presence.system.holder},
            ),
        )
        await service.start()
        self._service = service
        for operation in control.OPERATIONS:
            await service.add_endpoint(
                EndpointConfig(
                    name=operation.name,
                    subject=operation.subject(bus.prefix),
                    handler=self._endpoint(operation),
                    metadata={"acts": str(operation.acts).lower()},
                )
            )

    async def stop(self) -> None:
        """Answer no more."""
        if self._service is not None:
            try:
                await self._service.stop()
            except NatsError:
                log.debug("service not stopped")

    def _endpoint(self, operation: Operation[Any, Any]) -> Callable[[Request], Awaitable[None]]:
        handler = self.handlers[operation.name]

        async def answer(request: Request) -> None:
            try:
                data = await self._answer(operation, handler, request.data)
                if len(data) > LARGEST_ANSWER:
                    raise Refused("413", f"{operation.name}: the answer is too large; ask for less (--limit)")
            except Refused as refused:
                await request.respond_error(refused.code, str(refused))
                return
            await request.respond(data)

        return answer

    async def _answer(self, operation: Operation[Any, Any], handler: Handler, data: bytes) -> bytes:
        """The encoded answer. Raises Refused for whatever stands against it, never with a text from outside."""
        try:
            async with asyncio.timeout(operation.seconds):
                question = control.decode_question(operation, data)
                return msgspec.json.encode(await handler(question))
        except Refused:
            raise
        except TimeoutError:
            raise Refused("503", f"{operation.name}: no answer in time; try again, or see /readyz") from None
        except GraftError as error:
            # Made of metadata: safe to show.
            raise Refused("503", f"{operation.name}: {error}") from None
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            raise Refused(
                "503", f"{operation.name}: the database does not answer ({type(error).__name__}); see /readyz"
            ) from None
        except Exception as error:
            # A bug in one answer; nats.micro would answer with its text.
            log.error("operation failed", need=operation.name, exc_info=error)
            raise Refused(
                "500", f"{operation.name} failed ({type(error).__name__}); the replica's log says where"
            ) from None

    # ------------------------------------------------------------------------------------------- acting

    async def rerun(self, question: control.Rerun) -> control.Asked:
        """Ask for steps to be done again whatever has changed: merged into the rows of work like any other ask."""
        async with self.services.pool.acquire() as connection:
            subject = await dossier.find(connection, question.repository, question.number)
            if subject is not None and subject.inactive:
                raise Refused(
                    "409",
                    f"{subject.name} belongs to an installation or repository that is {subject.inactive}; "
                    "nothing runs there until GitHub says otherwise",
                )
            where = (
                (subject.repository_id, subject.installation_id)
                if subject
                else await dossier.find_repository(connection, question.repository)
            )
        if where is None:
            raise Refused("404", f"no installation has a repository {question.repository}")
        repository_id, installation_id = where
        address = pull_address(repository_id, question.number)
        async with self.services.pool.acquire() as connection:
            before = await dossier.needed(connection, address)
        steps = tuple(dict.fromkeys(question.steps))
        await self.services.ask_now(
            *(
                self.services.ask(
                    address, step, installation_id=installation_id, repository_id=repository_id, forced=True
                )
                for step in steps
            )
        )
        log.info("operator asked", address=address, needs=steps)
        revived = sum(row.state == "dead" and row.need in steps for row in before)
        return control.Asked(address=address, needs=steps, revived=revived)

    async def retry(self, question: control.PickDead) -> control.Picked:
        """Revive dead work."""
        async with self.services.pool.acquire() as connection:
            rows = await dead.revive(connection, address=question.address, need=question.need)
        self._none(rows, question)
        for partition in sorted({partition for _, _, partition in rows}):
            await self.services.bus.wake(partition)
        log.info("operator revived", address=question.address, need=question.need, count=len(rows))
        return control.Picked(rows=tuple((address, need) for address, need, _ in rows))

    async def drop(self, question: control.PickDead) -> control.Picked:
        """Delete dead work."""
        async with self.services.pool.acquire() as connection:
            rows = await dead.drop(connection, address=question.address, need=question.need)
        self._none(rows, question)
        log.info("operator dropped", address=question.address, need=question.need, count=len(rows))
        return control.Picked(rows=tuple(rows))

    @staticmethod
    def _none(rows: list[Any], question: control.PickDead) -> None:
        if not rows and question.address is not None:
            raise Refused("404", f"{question.address} has no such dead work; see `graftctl dead ls`")

    async def drain(self, question: control.Drain) -> control.Obeyed:
        """Have a replica give its partitions away, or take part again."""
        async with self.services.pool.acquire() as connection:
            replicas = await overview.replicas(connection)
        names = [one.holder for one in replicas]
        if question.replica not in names:
            raise Refused("404", f"no replica {question.replica}; there is: {', '.join(names) or 'none'}")
        others = [one for one in replicas if one.holder != question.replica and not one.draining]
        if not others and not question.undo and not question.force:
            raise Refused(
                "409", f"{question.replica} is the only one that works: nothing would run (--force does it)"
            )
        log.info("operator drains", replica=question.replica, status="undo" if question.undo else "drain")
        return await self.presence.order(question.replica, control.Order(undo=question.undo))

    async def resize(self, question: control.Resize) -> control.Resized:
        """Change the number of partitions, and offer the new ones to every replica."""
        async with self.services.pool.acquire() as connection:
            replicas = await overview.replicas(connection)
            working = sum(not one.draining for one in replicas)
            if question.partitions < working:
                raise Refused(
                    "409",
                    f"{working} replicas work: fewer partitions would leave some with nothing; "
                    "drain those first or ask for more partitions",
                )
            before, moved = await partitions.resize(connection, question.partitions, partition_of)
        await self.services.bus.offer()
        log.info("operator resized", partitions=question.partitions, count=moved)
        return control.Resized(before=before, partitions=question.partitions, moved=moved)

    # --------------------------------------------------------------------------------------- deliveries

    async def deliveries(self, question: control.ListDeliveries) -> control.Deliveries:
        """GitHub's own log of deliveries beside what arrived here."""
        found = await self.recoverer.latest(limit=question.limit)
        rows = await self._compared(found)
        if question.missing:
            rows = [row for row in rows if row.is_missing]
        return control.Deliveries(rows=tuple(rows), read=sum(one.count for one in found.values()))

    async def redeliver(self, question: control.Redeliver) -> control.Redelivered:
        """Have deliveries sent again: the ones named, or every missing one."""
        found = await self.recoverer.latest(limit=question.limit)
        if question.guids:
            unknown = [guid for guid in question.guids if guid not in found]
            if unknown:
                raise Refused(
                    "404",
                    f"{unknown[0]} is not among the newest {question.limit} attempts of GitHub's log; "
                    "raise --limit (GitHub keeps deliveries for three days)",
                )
            chosen = [found[guid] for guid in question.guids]
        else:
            chosen = [found[row.guid] for row in await self._compared(found) if row.is_missing]
        for one in chosen[:100]:
            await self.recoverer.ask(one)
        log.info("operator asked for deliveries", count=len(chosen))
        return control.Redelivered(guids=tuple(one.guid for one in chosen[:100]))

    async def _compared(self, found: dict[str, Attempts]) -> list[control.DeliveryRow]:
        guids = list(found)
        async with self.services.pool.acquire() as connection:
            known = await recoveries.known(connection, guids)
            tried = await recoveries.tried(connection, guids)
        rows = []
        for one in found.values():
            last, recovery = one.newest, tried.get(one.guid)
            settled = recovery is not None and recovery.settled
            rows.append(
                control.DeliveryRow(
                    guid=one.guid,
                    event=last.event,
                    action=last.action,
                    delivered_at=last.delivered_at,
                    attempts=one.count,
                    status=last.status,
                    status_code=last.status_code,
                    arrived=known.get(one.guid, "ignored" if settled else "unknown"),
                    handled=is_handled(last.event, last.action),
                    recovery_tries=recovery.tries if recovery else 0,
                    installation_id=last.installation_id,
                )
            )
        return rows


class Answering:
    """The part of a NATS client that a micro service uses; it hears only those whose inbox is an operator's.

    The broker checks the subject a message is published to, and not the one that its answer should go to.
    """

    def __init__(self, bus: Bus) -> None:
        self._client: Client = bus.client
        # The `nats` tool's usual inboxes, and those that deploy/nats.conf gives to operators.
        self._inboxes = ("_INBOX.", f"_INBOX_{bus.prefix}_operator")
        # A service takes its id from here.
        self._nuid = bus.client._nuid

    async def subscribe(
        self, subject: str, queue: str = "", *, cb: Callable[[Msg], Awaitable[None]]
    ) -> Subscription:
        async def hear(message: Msg) -> None:
            if message.reply.startswith(self._inboxes):
                try:
                    await cb(message)
                except NatsError as error:
                    log.debug("answer lost", error=type(error).__name__)
            else:
                log.warning("question without an operator's inbox", subject=message.subject)

        return await self._client.subscribe(subject, queue=queue, cb=hear)

    async def flush(self) -> None:
        await self._client.flush()
