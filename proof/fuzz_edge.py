"""Fuzz targets at Graft's outer edge: a request of GitHub, its payload, a message on the broker, a question.

What these promise: a documented refusal or a value that is bounded, that survives its own encoding, and that
makes a subject and addresses of the one form that everybody downstream relies on.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
from datetime import UTC, datetime
from typing import Any, Final, cast

import msgspec

from graft import control, payloads, triggers
from graft.bus import Bus, Published
from graft.config import IngressSettings
from graft.errors import PermanentError
from graft.ingress import Limits, Readiness, create_app, runner
from graft.metrics import Metrics
from graft.triggers import Trigger
from proof.fuzz_input import Target, fields, number

_NOW: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_IGNORED: Final = {"event", "action", "not_ours", "no_change", "branch", "label", "mismatch"}
_PATH = re.compile(r"\$[A-Za-z0-9_.\[\]]{0,200}\Z")
_SUBJECT = re.compile(
    r"graft\.trigger\.(pull\.[1-9]\d*\.[1-9]\d*|repository\.[1-9]\d*|installation\.[1-9]\d*)\.[a-z_]+\Z"
)
_ADDRESS = re.compile(r"(pull\.[1-9]\d*\.[1-9]\d*|repository\.[1-9]\d*|installation\.[1-9]\d*)\Z")
_NEED = re.compile(r"[a-z]+(:[a-z]+:([0-9a-f]{40}|[0-9a-f]{64}))?\Z")
LARGEST_TRIGGER: Final = 16 * 1024


def is_sound(trigger: Trigger) -> None:
    """What everybody downstream of a trigger relies on."""
    encoded = triggers.encode(trigger)
    assert len(encoded) <= LARGEST_TRIGGER, f"a trigger of {len(encoded)} bytes"
    assert triggers.decode(encoded) == trigger, "a trigger differs after its own encoding"
    subject = triggers.subject_of(trigger, "graft")
    assert _SUBJECT.match(subject), "a subject of another form"
    assert _ADDRESS.match(triggers.address_of(trigger)), "an address of another form"
    asks = triggers.needs_for(trigger)
    assert len(asks) <= 200, f"{len(asks)} asks of one trigger"
    for ask in asks:
        assert _ADDRESS.match(ask.address), "an address of another form"
        assert _NEED.match(ask.need), "a need of another form"
        assert 0 <= triggers.partition_of(ask.address, 32) < 32


# -------------------------------------------------------------------------------------------------------- payloads


def check_payload(data: bytes) -> None:
    """Fields: event name, payload."""
    event, payload = fields(data, 2)
    context = payloads.Context(
        delivery_id="d-1", received_at=_NOW, app_id=42, incident_label="graft:incident"
    )
    try:
        reduced = payloads.reduce(event.decode("latin-1"), payload, context)
    except PermanentError as error:
        assert error.reason == "malformed_json", error.reason
        return
    if isinstance(reduced, payloads.Ignored):
        assert reduced.reason in _IGNORED, reduced.reason
        assert len(reduced.paths) <= 2, "many paths"
        assert all(_PATH.match(path) for path in reduced.paths), "a path that is none"
        return
    is_sound(reduced)


# -------------------------------------------------------------------------------------------------------- triggers


def check_trigger(data: bytes) -> None:
    """A message as it lies in the stream, whoever put it there."""
    try:
        trigger = triggers.decode(data)
    except PermanentError as error:
        assert error.reason == "bad_trigger", error.reason
        assert len(str(error)) < 300, "a long error"
        return
    is_sound(trigger)


# ------------------------------------------------------------------------------------------------------- questions


def check_question(data: bytes) -> None:
    """Fields: which operation, the question."""
    which, question = fields(data, 2)
    operation = control.OPERATIONS[number(which, len(control.OPERATIONS))]
    try:
        asked = control.decode_question(operation, question)
    except control.Refused as error:
        assert error.code == "400", error.code
        assert len(str(error)) < 300, "a long refusal"
        return
    encoded = msgspec.json.encode(asked)
    assert len(encoded) <= 32 * 1024, f"a question of {len(encoded)} bytes"
    assert control.decode_question(operation, encoded) == asked, "a question differs after its own encoding"


# ---------------------------------------------------------------------------------------------------------- headers

_SECRET: Final = b"the secret that fuzzing signs with"
_OUTCOMES: Final = {
    202: {"accepted", "ignored"},
    400: {"broken_body", "bad_event", "bad_delivery", "malformed_json"},
    401: {"no_signature", "bad_signature"},
    408: {"too_slow"},
    413: {"too_large"},
    415: {"not_json", "encoded"},
    503: {"busy"},
}
_BODY_LIMIT: Final = 2048


class _Stream:
    """In the place of the bus: what would have been published."""

    connected = True

    def __init__(self) -> None:
        self.published: list[Trigger] = []

    async def publish(self, trigger: Trigger) -> Published:
        self.published.append(trigger)
        return Published(duplicate=False)


class _Wire(asyncio.Transport):
    """A connection without a socket: keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.answered = asyncio.Event()

    def write(self, data: Any) -> None:
        self.written += data
        self.answered.set()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        self.answered.set()

    abort = close

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        return

    def resume_reading(self) -> None:
        return

    def is_reading(self) -> bool:
        return True

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


class _Door:
    """The application as it is served, without a network below it; one event loop for all inputs."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.stream = _Stream()
        settings = IngressSettings.from_env(
            {
                "NATS_URL": "nats://127.0.0.1:1",
                "GITHUB_APP_ID": "42",
                "GITHUB_WEBHOOK_SECRET": _SECRET.decode(),
            }
        )
        app = create_app(
            settings,
            cast(Bus, self.stream),
            Readiness(),
            Metrics(),
            limits=Limits(body=_BODY_LIMIT, buffer=2 * _BODY_LIMIT, seconds=5.0),
        )
        self.served = runner(app)
        self.loop.run_until_complete(self.served.setup())

    async def say(self, request: bytes) -> bytes:
        server = self.served.server
        assert server is not None
        protocol = server()
        wire = _Wire()
        protocol.connection_made(wire)
        protocol.data_received(request)
        # A request that is complete is answered within a few turns of the loop; of another one the rest never comes.
        for _ in range(30):
            if wire.answered.is_set():
                break
            await asyncio.sleep(0)
        said = bytes(wire.written)
        protocol.connection_lost(None)
        for _ in range(5):
            await asyncio.sleep(0)
        return said


_door: _Door | None = None


def check_request(data: bytes) -> None:
    """Fields: header lines, body. `%S` in a header stands for the right signature, `%L` for the length."""
    global _door
    if _door is None:
        _door = _Door()
    head, body = fields(data, 2)
    signature = hmac.new(_SECRET, body, hashlib.sha256).hexdigest().encode()
    lines = head.replace(b"%S", signature).replace(b"%L", str(len(body)).encode())
    request = b"POST /webhooks/github HTTP/1.1\r\nHost: graft\r\n" + lines.replace(b"\n", b"\r\n")
    _door.stream.published.clear()
    said = _door.loop.run_until_complete(_door.say(request + b"\r\n\r\n" + body))
    said = said.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
    published = list(_door.stream.published)
    for trigger in published:
        is_sound(trigger)
    # A header may end the request early and begin others, which are answered too.
    first = re.match(rb"HTTP/1\.[01] (\d{3}) .*?\r\n\r\n(\{[^}]*\})", said, re.DOTALL)
    if first is None:
        assert not published, "a delivery was taken and not answered"
        assert not said or re.match(rb"HTTP/1\.[01] (100|400|404|405|417|413|500) ", said), said[:40]
        assert not re.match(rb"HTTP/1\.[01] 500 ", said), "an exception of the ingress"
        return
    status, outcome = int(first[1]), json.loads(first[2])["status"]
    assert outcome in _OUTCOMES.get(status, ()), f"{status} {outcome}"
    if b"%S" not in head:
        assert not published, "a delivery was taken without its signature"


# ------------------------------------------------------------------------------------------------------------ words

_EVENTS = tuple(event.encode() for event in sorted(payloads.EVENTS))
_JSON = (b"{", b"}", b"[", b"]", b'":', b",", b"null", b"true", b"1", b"0", b"-1", b"1e999", b'"\\ud800"')
_NAMES = tuple(
    b'"%s":' % name
    for name in (
        *(b"action", b"number", b"installation", b"id", b"repository", b"full_name", b"sender", b"login"),
        *(b"type", b"pull_request", b"head", b"sha", b"base", b"ref", b"updated_at", b"changes", b"label"),
        *(b"check_run", b"check_suite", b"head_sha", b"app", b"pull_requests", b"requested_action"),
        *(b"identifier", b"before", b"after", b"deleted", b"issue", b"labels", b"review", b"submitted_at"),
    )
)
_TRIGGER = tuple(b'"%s":' % name.encode() for name in Trigger.__struct_fields__)
_VALUES = (
    *(b'"opened"', b'"edited"', b'"requested_action"', b'"rerequested"', b'"2026-01-02T03:04:05Z"'),
    *(b'"pull"', b'"repository"', b'"installation"', b'"octo/demo"', b'"' + b"a" * 40 + b'"'),
)
_HEADERS = (
    *(b"Content-Type: application/json\n", b"Content-Length: %L\n", b"X-GitHub-Event: push\n"),
    *(b"X-GitHub-Delivery: d-1\n", b"X-Hub-Signature-256: sha256=%S\n", b"Transfer-Encoding: chunked\n"),
    *(b"Content-Encoding: gzip\n", b"Expect: 100-continue\n", b"Connection: close\n", b"\n\n", b"0\r\n\r\n"),
)

TARGETS: Final = (
    Target(name="headers", check=check_request, words=(*_HEADERS, *_EVENTS), longest=3072),
    Target(name="payloads", check=check_payload, json=True, words=(*_EVENTS, *_JSON, *_NAMES, *_VALUES)),
    Target(name="trigger", check=check_trigger, json=True, words=(*_EVENTS, *_JSON, *_TRIGGER, *_VALUES)),
    Target(
        name="control",
        check=check_question,
        json=True,
        words=(
            *_JSON,
            *(b'"repository":', b'"number":', b'"steps":', b'"limit":', b'"match":', b'"state":', b'"sort":'),
            *(
                b'"address":',
                b'"need":',
                b'"guids":',
                b'"missing":',
                b'"replica":',
                b'"undo":',
                b'"octo/demo"',
            ),
        ),
    ),
)
