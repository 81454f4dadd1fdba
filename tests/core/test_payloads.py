from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graft.errors import PermanentError
from graft.payloads import EVENTS, Context, Ignored, reduce
from graft.triggers import Trigger, encode, needs_for

Payloads = Callable[..., dict[str, Any]]
NOW = datetime(2026, 12, 1, 12, 5, tzinfo=UTC)
CONTEXT = Context(delivery_id="d-1", received_at=NOW, app_id=4242, incident_label="Incident")
HEAD = "a" * 40


def read(event: str, payload: object) -> Trigger | Ignored:
    return reduce(event, msgspec.json.encode(payload), CONTEXT)


def taken(event: str, payload: object) -> Trigger:
    trigger = read(event, payload)
    assert isinstance(trigger, Trigger), trigger
    return trigger


def test_a_pull_request_becomes_ids_and_names(payload: Payloads) -> None:
    assert taken("pull_request", payload("pull_request")) == Trigger(
        kind="pull",
        event="pull_request",
        action="opened",
        delivery_id="d-1",
        received_at=NOW,
        installation_id=7,
        repository_id=70,
        full_name="octo/demo",
        number=12,
        head_sha=HEAD,
        base_ref="main",
        sender_id=5,
        sender_login="ann",
        event_at=datetime(2026, 12, 1, 12, tzinfo=UTC),
    )


@pytest.mark.parametrize("event", sorted(EVENTS))
def test_every_event_asks_for_something_and_takes_no_text_along(event: str, payload: Payloads) -> None:
    trigger = taken(event, payload(event))
    assert needs_for(trigger)
    assert trigger.event == event
    assert b"SECRET" not in encode(trigger)


@pytest.mark.parametrize(
    ("changes", "flags"),
    [
        ({"title": {"from": "SECRET"}}, (True, False, False)),
        ({"body": {"from": None}}, (False, True, False)),
        ({"base": {"ref": {"from": "dev"}, "sha": {"from": HEAD}}}, (False, False, True)),
        ({"title": {"from": "x"}, "body": {"from": "y"}}, (True, True, False)),
    ],
)
def test_an_edit_says_what_was_edited(
    changes: dict[str, Any], flags: tuple[bool, bool, bool], payload: Payloads
) -> None:
    trigger = taken("pull_request", payload("pull_request", action="edited", changes=changes))
    assert (trigger.title_changed, trigger.body_changed, trigger.base_changed) == flags


@pytest.mark.parametrize("changes", [{}, {"milestone": {"from": 1}}])
def test_an_edit_of_nothing_we_read_is_ignored(changes: dict[str, Any], payload: Payloads) -> None:
    edited = payload("pull_request", action="edited", changes=changes)
    assert read("pull_request", edited) == Ignored(reason="no_change")


@pytest.mark.parametrize(("name", "incident"), [("incident", True), ("INCIDENT", True), ("bug", False)])
def test_the_incident_label_counts_in_any_case(name: str, incident: bool, payload: Payloads) -> None:
    labeled = payload("pull_request", action="labeled", label={"name": name})
    assert taken("pull_request", labeled).incident is incident


def test_an_issue_without_the_incident_label_is_ignored(payload: Payloads) -> None:
    assert read("issues", payload("issues", label={"name": "bug"})) == Ignored(reason="label")
    closed = payload("issues", action="closed")
    assert taken("issues", closed).incident
    closed["issue"]["labels"] = [{"name": "bug"}]
    assert read("issues", closed) == Ignored(reason="label")


def test_a_button_brings_voter_and_check_run(payload: Payloads) -> None:
    trigger = taken("check_run", payload("check_run"))
    assert (trigger.button, trigger.check_run_id, trigger.sender_id, trigger.sender_login) == (
        "accurate",
        81,
        5,
        "ann",
    )
    assert trigger.event_at is None  # GitHub's payload has no time of the press


@pytest.mark.parametrize("event", ["check_run", "check_suite"])
@pytest.mark.parametrize("app", [None, {"id": 4243}])
def test_other_apps_checks_are_ignored(event: str, app: object, payload: Payloads) -> None:
    body = payload(event)
    body[event]["app"] = app
    assert read(event, body) == Ignored(reason="not_ours")


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("graft/intent", "intent"),
        ("graft/policy (#12)", "policy"),
        ("graft/provenance", "provenance"),
        ("graft/other", None),
        ("", None),
    ],
)
def test_a_rerequested_check_names_its_step(name: str, step: str | None, payload: Payloads) -> None:
    body = payload("check_run", action="rerequested")
    body["check_run"]["name"] = name
    assert taken("check_run", body).step == step


def test_pull_requests_of_a_check_are_named_once_and_bounded(payload: Payloads) -> None:
    body = payload("check_suite")
    body["check_suite"]["pull_requests"] = [{"number": 3}, {"number": 3}, {"number": 2}]
    assert taken("check_suite", body).pulls == (3, 2)
    body["check_suite"]["pull_requests"] = [{"number": number} for number in range(1, 100)]
    assert taken("check_suite", body).pulls == ()


@pytest.mark.parametrize(("field", "value"), [("deleted", True), ("ref", "refs/tags/v1")])
def test_only_pushes_to_branches_count(field: str, value: object, payload: Payloads) -> None:
    assert read("push", payload("push", **{field: value})) == Ignored(reason="branch")


def test_a_push_without_a_sender_counts(payload: Payloads) -> None:
    pushed = payload("push")
    del pushed["sender"]
    assert taken("push", pushed).sender_id is None


@pytest.mark.parametrize(
    ("sender", "is_bot"),
    [
        ({"id": 1, "login": "x", "type": "Bot"}, True),
        ({"id": 1, "login": "x[bot]", "type": "User"}, True),
        ({"id": 1, "login": "x", "type": "User"}, False),
        ({"id": 1, "login": "x"}, False),
    ],
)
def test_bots_are_marked(sender: object, is_bot: bool, payload: Payloads) -> None:
    assert taken("pull_request", payload("pull_request", sender=sender)).sender_is_bot is is_bot


@pytest.mark.parametrize("event", ["ping", "star", "workflow_run", "merge_group", ""])
def test_other_events_are_ignored_unread(event: str) -> None:
    assert reduce(event, b"not even JSON", CONTEXT) == Ignored(reason="event")


@pytest.mark.parametrize(
    ("event", "action"),
    [
        ("pull_request", "assigned"),
        ("pull_request", "auto_merge_enabled"),
        ("pull_request_review", "edited"),
        ("check_run", "created"),
        ("check_suite", "completed"),
        ("issues", "opened"),
        ("repository", "publicized"),
        ("installation", "renamed"),
        ("pull_request", "no such action, ever"),
    ],
)
def test_other_actions_are_ignored(event: str, action: str, payload: Payloads) -> None:
    assert read(event, payload(event, action=action)) == Ignored(reason="action")


MISSING = object()


@pytest.mark.parametrize(
    ("event", "path", "value"),
    [
        ("pull_request", "$.installation", MISSING),
        ("pull_request", "$.repository.id", "70"),
        ("pull_request", "$.repository.id", 70.5),
        ("pull_request", "$.repository.id", 0),
        ("pull_request", "$.repository.id", 2**63),
        ("pull_request", "$.repository.full_name", "no slash, but SECRET"),
        ("pull_request", "$.pull_request.head.sha", "SECRET"),
        ("pull_request", "$.pull_request.head.sha", HEAD + "\n"),
        ("pull_request", "$.pull_request.updated_at", "yesterday"),
        ("pull_request", "$.pull_request.updated_at", "2026-12-01T12:00:00"),
        ("pull_request", "$.pull_request.base.ref", ""),
        ("pull_request", "$.pull_request.base.ref", "r" * 1025),
        ("pull_request", "$.sender.login", "a b"),
        ("check_run", "$.check_run.id", True),
        ("check_run", "$.requested_action", MISSING),
        ("check_run", "$.sender", MISSING),
        ("check_run", "$.requested_action.identifier", "x" * 21),
        ("check_suite", "$.check_suite.pull_requests", {}),
        ("push", "$.after", None),
        ("installation", "$.installation.id", -1),
    ],
)
def test_a_mismatch_is_ignored_with_its_path(event: str, path: str, value: object, payload: Payloads) -> None:
    body = payload(event)
    *parents, last = path.removeprefix("$.").split(".")
    place = body
    for parent in parents:
        place = place[parent]
    if value is MISSING:
        del place[last]
    else:
        place[last] = value
    assert read(event, body) == Ignored(reason="mismatch", paths=(path,))


def test_a_payload_under_another_events_name_is_ignored(payload: Payloads) -> None:
    # The event name is not signed: whoever has one signed body can send it under any name.
    pairs = [(event, other) for event in EVENTS for other in EVENTS - {event}]
    assert [pair for pair in pairs if isinstance(read(pair[1], payload(pair[0])), Trigger)] == []


def test_two_numbers_that_differ_are_a_mismatch(payload: Payloads) -> None:
    assert read("pull_request", payload("pull_request", number=13)) == Ignored(
        reason="mismatch", paths=("$.number", "$.pull_request.number")
    )


@pytest.mark.parametrize("data", [b"", b"{", b"{}x", b"\xff\xfe"])
def test_what_is_not_json_is_refused(data: bytes) -> None:
    with pytest.raises(PermanentError) as caught:
        reduce("pull_request", data, CONTEXT)
    assert caught.value.reason == "malformed_json"


def test_nesting_without_end_is_refused() -> None:
    with pytest.raises(PermanentError):
        reduce("pull_request", b'{"x":' * 200_000, CONTEXT)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(data=st.data())
def test_no_payload_makes_it_raise(payload: Payloads, data: st.DataObject) -> None:
    event = data.draw(st.sampled_from(sorted(EVENTS)))
    body = payload(event)
    place: dict[str, Any] = body
    while True:
        key = data.draw(st.sampled_from(sorted(place)))
        if not isinstance(place[key], dict) or not place[key] or data.draw(st.booleans()):
            place[key] = data.draw(JSON)
            break
        place = place[key]
    try:
        found = read(event, body)
    except PermanentError:
        return
    if isinstance(found, Ignored):
        assert all(path.startswith("$") for path in found.paths)
    else:
        assert b"SECRET" not in encode(found)
