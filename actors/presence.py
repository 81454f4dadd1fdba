"""What replicas tell each other: who runs which actor now, and who should give its partitions away.

Every replica answers on `<prefix>.holder.<partition>` for the partitions it holds, on `<prefix>.replica.all`
for itself, and obeys on `<prefix>.replica.<its name>`. Nothing here is stored, and nothing waits for long: who
does not answer within `PATIENCE_SECONDS` is said to be silent, or its partition to be changing hands.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Collection

import msgspec
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from actors.inbox import Inbox
from actors.system import ActorSystem, Running
from graft.bus import Bus
from graft.control import Doing, Limited, Live, Obeyed, Order, Refused, Roll
from graft.github import GitHub
from graft.logs import get_logger

log = get_logger("presence")

PATIENCE_SECONDS = 0.3
# Of thousands of installations those are told whose limit is nearest.
MOST_LIMITS = 50


class _Question(msgspec.Struct, frozen=True):
    address: str


class Presence:
    """This replica among the others."""

    def __init__(self, *, bus: Bus, system: ActorSystem, github: GitHub, inbox: Inbox) -> None:
        self.bus = bus
        self.system = system
        self.github = github
        self.inbox = inbox
        self._subscriptions: list[Subscription] = []

    async def start(self) -> None:
        """Answer the others from now on."""
        for subject, handler in (
            ("holder.*", self._on_holder),
            ("replica.all", self._on_roll),
            (f"replica.{token(self.system.holder)}", self._on_order),
        ):
            self._subscriptions.append(
                await self.bus.client.subscribe(f"{self.bus.prefix}.{subject}", cb=self._trusted(handler))
            )

    async def stop(self) -> None:
        """Answer no more."""
        for subscription in self._subscriptions:
            try:
                await subscription.unsubscribe()
            except NatsError:
                log.debug("unsubscribe failed")
        self._subscriptions.clear()

    def _trusted(self, handler: Callable[[Msg], Awaitable[None]]) -> Callable[[Msg], Awaitable[None]]:
        """Answer only into a replica's inbox: an answer goes out with the daemon's own permissions, and whoever
        asks chooses where to."""

        async def handle(message: Msg) -> None:
            if message.reply.startswith(f"{self.bus.inbox_prefix}."):
                try:
                    await handler(message)
                except (msgspec.MsgspecError, NatsError) as error:
                    log.debug("not answered", error=type(error).__name__)

        return handle

    # ------------------------------------------------------------------------------------- answering

    async def _on_holder(self, message: Msg) -> None:
        partition = message.subject.rpartition(".")[2]
        if not partition.isdecimal() or int(partition) not in self.system.held:
            return
        question = msgspec.json.decode(message.data, type=_Question)
        await message.respond(msgspec.json.encode(self._live(question.address, int(partition))))

    async def _on_roll(self, message: Msg) -> None:
        await message.respond(msgspec.json.encode(self.own()))

    async def _on_order(self, message: Msg) -> None:
        order = msgspec.json.decode(message.data, type=Order)
        await message.respond(msgspec.json.encode(self.obey(order)))

    def own(self) -> Roll:
        """This replica, as it answers a roll call."""
        name = self.system.holder
        limits = [
            Limited(
                installation_id=installation_id,
                replica=name,
                limited_seconds=state.limited_for,
                remaining=state.remaining,
                reset_seconds=state.reset_in,
            )
            for installation_id, state in (
                (0, self.github.app.limits),
                *((known, client.limits) for known, client in list(self.github.installations.items())),
            )
            if state.limited_for > 0 or state.remaining is not None
        ]
        limits.sort(key=lambda one: (-one.limited_seconds, one.remaining or 0))
        return Roll(
            replica=name,
            held=tuple(sorted(self.system.held)),
            running=tuple(_doing(entry) for entry in list(self.system.running.values())),
            limits=tuple(limits[:MOST_LIMITS]),
            refused=self.system.refused,
            concurrency=self.system.concurrency,
            taken=self.inbox.taken,
        )

    def obey(self, order: Order) -> Obeyed:
        """Begin to give partitions away, or take part again."""
        self.system.take_part(order.undo)
        return Obeyed(
            replica=self.system.holder,
            draining=not order.undo,
            partitions=len(self.system.held),
            running=len(self.system.running),
        )

    def _live(self, address: str, partition: int) -> Live:
        entry = self.system.running.get(address)
        return Live(
            state="running" if entry else "idle",
            partition=partition,
            replica=self.system.holder,
            doing=_doing(entry) if entry else None,
        )

    # ---------------------------------------------------------------------------------------- asking

    async def live(self, address: str) -> Live:
        """What happens at an address now, from whoever holds it."""
        partition = self.system.partitioning.of(address)
        if partition in self.system.held:
            return self._live(address, partition)
        try:
            answer = await self.bus.client.request(
                f"{self.bus.prefix}.holder.{partition}",
                msgspec.json.encode(_Question(address)),
                timeout=PATIENCE_SECONDS,
            )
            return msgspec.json.decode(answer.data, type=Live)
        except (NatsError, TimeoutError, msgspec.MsgspecError):
            return Live(state="changing hands", partition=partition)

    async def roll(self, expected: Collection[str]) -> dict[str, Roll]:
        """The answers of the replicas that are expected, and of this one; a silent one is missing."""
        found = {self.system.holder: self.own()}
        waiting = set(expected) - {self.system.holder}
        if not waiting or not self.bus.connected:
            return found
        client = self.bus.client
        inbox = client.new_inbox()
        subscription = await client.subscribe(inbox)
        deadline = time.monotonic() + PATIENCE_SECONDS
        try:
            await client.publish(f"{self.bus.prefix}.replica.all", b"", reply=inbox)
            while waiting:
                answer = await subscription.next_msg(timeout=max(deadline - time.monotonic(), 0.001))
                one = msgspec.json.decode(answer.data, type=Roll)
                found[one.replica] = one
                waiting.discard(one.replica)
        except (NatsError, TimeoutError, msgspec.MsgspecError):
            log.debug("replicas silent", count=len(waiting))
        finally:
            await subscription.unsubscribe()
        return found

    async def order(self, replica: str, order: Order) -> Obeyed:
        """Have a replica obey. Raises Refused when it does not answer."""
        if replica == self.system.holder:
            return self.obey(order)
        try:
            answer = await self.bus.client.request(
                f"{self.bus.prefix}.replica.{token(replica)}",
                msgspec.json.encode(order),
                timeout=1.0,
            )
            return msgspec.json.decode(answer.data, type=Obeyed)
        except (NatsError, TimeoutError, msgspec.MsgspecError):
            raise Refused(
                "503", f"{replica} does not answer; `graftctl status` shows whether it is still there"
            ) from None


def _doing(entry: Running) -> Doing:
    run = entry.run
    if run is None:
        return Doing(address=entry.due.address, doing="starting", seconds=0.0)
    return Doing(
        address=entry.due.address,
        doing=run.doing,
        seconds=max(0.0, time.monotonic() - run.since),
        head_sha=run.head_sha,
        needs=tuple(sorted(run.needs)),
    )


def token(replica: str) -> str:
    """A replica's name as one token of a subject; host names may have dots."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", replica)
