"""What is posted to every receiver alike: GitHub's own webhook examples, a seeded mix of them.

Only those that Graft has to keep count, or it would be compared while it throws deliveries away. Two thirds are
about pull requests, of which every fourth has the long description that people write and examples lack. Where an
example was recorded for a webhook without an App, it gets the installation that an App's delivery has.
"""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.load import Delivery
from bench.receivers import APP_ID
from graft import payloads
from graft.triggers import Trigger

COUNT: Final = 96
LARGEST: Final = 40_000
_LONG: Final = (28_000, LARGEST)
_SENTENCE: Final = "The gateway answers 504 now and then, and it is safe to try the payment again. "


def examples(path: Path) -> list[Delivery]:
    """The examples in an index of `@octokit/webhooks-examples` that Graft keeps, as an App gets them."""
    made = [
        _delivery(str(event["name"]), example)
        for event in json.loads(path.read_bytes())
        for example in event["examples"]
    ]
    return [delivery for delivery in made if kept(delivery)]


def _delivery(event: str, example: dict[str, Any]) -> Delivery:
    whole = {"installation": {"id": 7, "node_id": "MDIzOkludGVncmF0aW9uSW5zdGFsbGF0aW9uNw=="}, **example}
    for name in ("check_run", "check_suite"):
        if isinstance(whole.get(name), dict) and isinstance(whole[name].get("app"), dict):
            # An App is sent what is asked of its own checks.
            whole[name] = {**whole[name], "app": {**whole[name]["app"], "id": APP_ID}}
    return Delivery(event=event, body=msgspec.json.encode(whole))


def kept(delivery: Delivery) -> bool:
    """Whether Graft's ingress publishes a trigger for it."""
    context = payloads.Context(delivery_id="example", received_at=datetime.now(UTC), app_id=APP_ID)
    return isinstance(payloads.reduce(delivery.event, delivery.body, context), Trigger)


def described(delivery: Delivery, size: int) -> Delivery:
    """The same pull request with a description that makes the payload about `size` bytes."""
    payload = json.loads(delivery.body)
    missing = size - len(delivery.body)
    payload["pull_request"]["body"] = _SENTENCE * max(missing // len(_SENTENCE), 1)
    return Delivery(event=delivery.event, body=msgspec.json.encode(payload))


def choose(found: Sequence[Delivery], *, seed: int, count: int = COUNT) -> list[Delivery]:
    """So many deliveries in a random order, the same ones for the same seed."""
    chance = random.Random(seed)
    pulls = [delivery for delivery in found if delivery.event.startswith("pull_request")]
    others = [delivery for delivery in found if not delivery.event.startswith("pull_request")]
    chosen = chance.choices(others, k=count // 3)
    for number, delivery in enumerate(chance.choices(pulls, k=count - count // 3)):
        chosen.append(described(delivery, chance.randint(*_LONG)) if number % 4 == 0 else delivery)
    chance.shuffle(chosen)
    return chosen


def describe(posted: Sequence[Delivery]) -> str:
    """How many, of which events, how large."""
    sizes = sorted(len(delivery.body) / 1000 for delivery in posted)
    pulls = sum(delivery.event.startswith("pull_request") for delivery in posted)
    return (
        f"{len(posted)} from `@octokit/webhooks-examples`, {pulls} of them about pull requests,"
        f" {sizes[0]:.1f} to {sizes[-1]:.1f} KB, median {statistics.median(sizes):.1f}"
    )
