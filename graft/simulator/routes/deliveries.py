"""The log of the App's webhook deliveries, newest first, and asking for one again."""

from __future__ import annotations

from typing import Any

import msgspec

from graft.simulator.errors import not_found
from graft.simulator.http import Call, Reply, Route, page_size
from graft.simulator.payloads.accounts import stamp
from graft.simulator.webhooks import Delivery


async def get_hook_config(call: Call) -> Reply:
    config = {
        "url": call.server.app.webhook_url or "",
        "content_type": "json",
        "insecure_ssl": "0",
        "secret": "********",
    }
    return Reply(value=config)


async def list_deliveries(call: Call) -> Reply:
    """Pages are reached by cursor only; `status` picks the failed or the successful ones."""
    found = [
        each for each in reversed(call.server.webhooks.log) if each.status not in ("pending", "inactive")
    ]
    wanted = call.query.get("status")
    if wanted is not None:
        found = [each for each in found if (200 <= each.status_code < 400) == (wanted == "success")]
    cursor = call.query.get("cursor", "")
    if cursor:
        last = cursor.removeprefix("v1_")
        before = int(last) if last.isascii() and last.isdigit() else 0
        found = [each for each in found if each.id < before]
    size = page_size(call.query)
    page = found[:size]
    headers = {}
    if len(found) > size:
        url = call.url.update_query(cursor=f"v1_{page[-1].id}")
        headers["Link"] = f'<{url}>; rel="next"'
    return Reply(value=[_item(each) for each in page], headers=headers)


async def get_delivery(call: Call) -> Reply:
    found = _delivery(call)
    value = {
        **_item(found),
        "url": found.url or "",
        "request": {"headers": found.headers, "payload": msgspec.Raw(found.body)},
        "response": {"headers": found.answer_headers, "payload": found.answer},
    }
    return Reply(value=value)


async def redeliver(call: Call) -> Reply:
    call.server.webhooks.redeliver(_delivery(call))
    return Reply(value={}, status=202)


def _delivery(call: Call) -> Delivery:
    wanted = call.number("delivery_id")
    found = next((each for each in call.server.webhooks.log if each.id == wanted), None)
    if found is None:
        raise not_found()
    return found


def _item(delivery: Delivery) -> dict[str, Any]:
    return {
        "id": delivery.id,
        "guid": delivery.guid,
        "delivered_at": stamp(delivery.delivered_at),
        "redelivery": delivery.redelivery,
        "duration": delivery.duration,
        "status": delivery.status,
        "status_code": delivery.status_code,
        "event": delivery.event,
        "action": delivery.action,
        "installation_id": delivery.installation_id,
        "repository_id": delivery.repository_id,
        "throttled_at": None,
    }


ROUTES = (
    Route(method="GET", template="/app/hook/config", handler=get_hook_config, caller="app"),
    Route(method="GET", template="/app/hook/deliveries", handler=list_deliveries, caller="app"),
    Route(method="GET", template="/app/hook/deliveries/{delivery_id}", handler=get_delivery, caller="app"),
    Route(
        method="POST",
        template="/app/hook/deliveries/{delivery_id}/attempts",
        handler=redeliver,
        caller="app",
    ),
)
