"""Send signed webhooks and keep GitHub's log of deliveries.

Each event is sent once, with ten seconds to answer; nothing is sent again unless it is asked for, and then
under the same GUID. Sends run side by side, at most `concurrency` at a time; `drain()` waits for all of them.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
import uuid
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import aiohttp
import msgspec

from graft.simulator.faults import Faults
from graft.simulator.state import AppRecord, Installation, World

TIMEOUT = 10.0
MAX_PAYLOAD = 25 * 1024 * 1024
LOG_SIZE = 50_000


@dataclass(kw_only=True, eq=False)
class Delivery:
    """One attempt. `status` is GitHub's word (`OK`, `Invalid HTTP Response: 500`, `timed out`, …); it is
    `pending` until the attempt has ended and `inactive` when the App has no webhook URL."""

    id: int
    guid: str
    event: str
    action: str | None
    installation_id: int | None
    repository_id: int | None
    body: bytes
    delivered_at: datetime
    redelivery: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    url: str | None = None
    status: str = "pending"
    status_code: int = 0
    duration: float = 0.0
    answer_headers: dict[str, str] = field(default_factory=dict)
    answer: str | None = None

    @property
    def payload(self) -> dict[str, Any]:
        """The JSON that was sent."""
        decoded: dict[str, Any] = msgspec.json.decode(self.body)
        return decoded


def sign(secret: str, body: bytes) -> str:
    """The value of `X-Hub-Signature-256`."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


class Webhooks:
    """The App's webhook: its log, newest last, and what is on the way. Of a very long log the oldest go."""

    def __init__(self, world: World, app: AppRecord, faults: Faults, *, concurrency: int = 16) -> None:
        self.log: list[Delivery] = []
        self._world = world
        self._app = app
        self._faults = faults
        self._gate = asyncio.Semaphore(concurrency)
        self._tasks: set[asyncio.Task[None]] = set()
        self._session: aiohttp.ClientSession | None = None
        self._hook_id = world.next_id()

    def emit(
        self,
        event: str,
        payload: dict[str, Any],
        installation: Installation | None,
        repository_id: int | None,
    ) -> Delivery:
        """Start sending an event to the App; returns at once."""
        body = msgspec.json.encode(payload)
        if len(body) > MAX_PAYLOAD:
            raise ValueError("GitHub does not deliver payloads of more than 25 MB")
        action = payload.get("action")
        delivery = Delivery(
            id=self._world.next_id(),
            guid=str(uuid.uuid1()),
            event=event,
            action=action if isinstance(action, str) else None,
            installation_id=None if installation is None else installation.id,
            repository_id=repository_id,
            body=body,
            delivered_at=self._world.time(),
        )
        return self._start(delivery)

    def redeliver(self, delivery: Delivery) -> Delivery:
        """Send the same body under the same GUID as a new attempt."""
        again = Delivery(
            id=self._world.next_id(),
            guid=delivery.guid,
            event=delivery.event,
            action=delivery.action,
            installation_id=delivery.installation_id,
            repository_id=delivery.repository_id,
            body=delivery.body,
            delivered_at=self._world.time(),
            redelivery=True,
        )
        return self._start(again)

    async def drain(self) -> None:
        """Wait until nothing is on the way."""
        while self._tasks:
            await asyncio.gather(*self._tasks)

    async def close(self) -> None:
        """Give up what is on the way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _start(self, delivery: Delivery) -> Delivery:
        self.log.append(delivery)
        if len(self.log) > LOG_SIZE:
            del self.log[: LOG_SIZE // 10]
        delivery.url = self._app.webhook_url
        delivery.headers = self._headers(delivery)
        if delivery.url is None:
            delivery.status = "inactive"
        elif self._faults.swallow_deliveries > 0:
            self._faults.swallow_deliveries -= 1
            delivery.status, delivery.status_code = "OK", 202
        else:
            task = asyncio.ensure_future(self._send(delivery, delivery.url))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return delivery

    def _headers(self, delivery: Delivery) -> dict[str, str]:
        secret = self._app.webhook_secret
        sha1 = hmac.new(secret.encode(), delivery.body, hashlib.sha1).hexdigest()
        return {
            "Accept": "*/*",
            "Content-Type": "application/json",
            "User-Agent": "GitHub-Hookshot/5a1f0e7",
            "X-GitHub-Delivery": delivery.guid,
            "X-GitHub-Event": delivery.event,
            "X-GitHub-Hook-ID": str(self._hook_id),
            "X-GitHub-Hook-Installation-Target-ID": str(self._app.id),
            "X-GitHub-Hook-Installation-Target-Type": "integration",
            "X-Hub-Signature": f"sha1={sha1}",
            "X-Hub-Signature-256": sign(secret, delivery.body),
        }

    async def _send(self, delivery: Delivery, url: str) -> None:
        async with self._gate:
            if self._session is None:
                self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT))
            began = time.perf_counter()
            try:
                async with self._session.post(
                    url, data=delivery.body, headers=delivery.headers, allow_redirects=False
                ) as answer:
                    content = await answer.content.read(65_536)
            except TimeoutError:
                delivery.status = "timed out"
            except aiohttp.ClientError:
                delivery.status = "failed to connect to host"
            else:
                delivery.status_code = answer.status
                delivery.status = "OK" if answer.ok else f"Invalid HTTP Response: {answer.status}"
                delivery.answer_headers = dict(answer.headers)
                delivery.answer = content.decode("utf-8", "replace")
            delivery.duration = round(time.perf_counter() - began, 3)
