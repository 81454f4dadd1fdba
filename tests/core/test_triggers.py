from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft import triggers
from graft.errors import PermanentError
from graft.triggers import EVERYTHING, Ask, Trigger, needs_for, partition_of, subject_of

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)


def pull(event: str = "pull_request", action: str = "opened", **fields: Any) -> Trigger:
    return Trigger(
        kind="pull",
        event=event,
        action=action,
        delivery_id="d-1",
        received_at=NOW,
        installation_id=7,
        repository_id=70,
        number=12,
        **fields,
    )


def repository(event: str, action: str | None = None, **fields: Any) -> Trigger:
    return Trigger(
        kind="repository",
        event=event,
        action=action,
        delivery_id="d-1",
        received_at=NOW,
        installation_id=7,
        repository_id=70,
        **fields,
    )


def asked(trigger: Trigger) -> list[tuple[str, str, bool]]:
    return [(ask.address, ask.need, ask.forced) for ask in needs_for(trigger)]


@pytest.mark.parametrize("action", ["opened", "reopened", "ready_for_review", "synchronize"])
def test_a_pull_request_that_is_new_or_moved_needs_everything(action: str) -> None:
    assert asked(pull(action=action)) == [("pull.70.12", need, False) for need in EVERYTHING]


@pytest.mark.parametrize(
    ("trigger", "needs"),
    [
        (pull(action="edited", base_changed=True), list(EVERYTHING)),
        (pull(action="edited", base_changed=True, title_changed=True), list(EVERYTHING)),
        (pull(action="edited", title_changed=True), ["inputs"]),
        (pull(action="edited", body_changed=True), ["inputs"]),
        (pull(action="labeled"), ["policy"]),
        (pull(action="unlabeled"), ["policy"]),
        (pull(action="converted_to_draft"), ["state", "policy"]),
        (pull(action="closed"), ["state"]),
        (pull("pull_request_review", "submitted"), ["reviewers"]),
        (pull("pull_request_review", "dismissed"), ["reviewers"]),
        (pull(action="assigned"), []),
        (repository("push"), ["push"]),
        (repository("check_run", "requested_action"), ["votes"]),
        (repository("issues", "closed"), ["incidents"]),
        (repository("repository", "transferred"), ["sync"]),
        (repository("repository", "starred"), []),
    ],
)
def test_the_table(trigger: Trigger, needs: list[str]) -> None:
    address = "pull.70.12" if trigger.kind == "pull" else "repository.70"
    assert asked(trigger) == [(address, need, False) for need in needs]


def test_the_incident_label_asks_the_repository_as_well() -> None:
    assert asked(pull(action="labeled", incident=True)) == [
        ("pull.70.12", "policy", False),
        ("repository.70", "incidents", False),
    ]


@pytest.mark.parametrize("event", ["installation", "installation_repositories"])
def test_an_installation_is_read_again(event: str) -> None:
    action = "deleted" if event == "installation" else "removed"
    trigger = Trigger(
        kind="installation", event=event, action=action, delivery_id="d", received_at=NOW, installation_id=7
    )
    assert needs_for(trigger) == (Ask("installation.7", "sync"),)


def test_a_rerun_of_one_check_forces_that_step_of_each_pull_request_named() -> None:
    trigger = repository("check_run", "rerequested", step="intent", head_sha="a" * 40, pulls=(12, 13))
    assert asked(trigger) == [("pull.70.12", "intent", True), ("pull.70.13", "intent", True)]


def test_a_rerun_of_all_checks_forces_everything() -> None:
    trigger = repository("check_suite", "rerequested", head_sha="a" * 40, pulls=(12,))
    assert asked(trigger) == [("pull.70.12", need, True) for need in EVERYTHING]


def test_a_rerun_in_a_fork_goes_to_the_repository_one_row_a_head() -> None:
    one = repository("check_run", "rerequested", step="policy", head_sha="a" * 40)
    other = repository("check_suite", "rerequested", head_sha="b" * 40)
    assert asked(one) == [("repository.70", f"rerun:policy:{'a' * 40}", True)]
    assert asked(other) == [("repository.70", f"rerun:all:{'b' * 40}", True)]


@pytest.mark.parametrize(
    ("trigger", "subject"),
    [
        (pull(), "graft.trigger.pull.70.12.pull_request"),
        (repository("push"), "graft.trigger.repository.70.push"),
        (
            Trigger(
                kind="installation", event="installation", delivery_id="d", received_at=NOW, installation_id=7
            ),
            "graft.trigger.installation.7.installation",
        ),
    ],
)
def test_subjects_hold_ids_only(trigger: Trigger, subject: str) -> None:
    assert subject_of(trigger, "graft") == subject


def test_partitions_never_change() -> None:
    # Written down: a release that computes them differently would give one actor to two replicas.
    addresses = ("lead", "pull.70.12", "repository.70", "installation.7")
    assert [partition_of(address, 32) for address in addresses] == [2, 7, 0, 31]


@given(st.text(), st.integers(1, 1024))
def test_a_partition_is_within_the_count(address: str, count: int) -> None:
    assert 0 <= partition_of(address, count) < count


def test_partitions_share_addresses_evenly() -> None:
    shares = [0] * 16
    for number in range(4_000):
        shares[partition_of(triggers.pull_address(70, number), 16)] += 1
    assert min(shares) > 180
    assert max(shares) < 320


def test_a_trigger_survives_the_wire() -> None:
    trigger = repository(
        "check_run",
        "rerequested",
        step="intent",
        pulls=(1, 2),
        sender_id=5,
        sender_login="ann",
        event_at=NOW,
        base_ref="verzweigung/ü",
    )
    assert triggers.decode(triggers.encode(trigger)) == trigger


def test_an_unknown_field_of_a_newer_release_is_skipped() -> None:
    data = triggers.encode(pull()).replace(b'{"kind"', b'{"newer":[{}],"kind"', 1)
    assert triggers.decode(data) == pull()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "$"),
        (b"{}", "$.kind"),
        (b'{"kind":"planet"}', "$.kind"),
    ],
)
def test_a_message_that_is_no_trigger_is_permanent_and_quotes_nothing(data: bytes, said: str) -> None:
    with pytest.raises(PermanentError) as caught:
        triggers.decode(data)
    assert caught.value.reason == "bad_trigger"
    assert said in str(caught.value)
    assert "planet" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "left_out", "said"),
    [
        ("pull", "repository_id", "$.repository_id is missing"),
        ("pull", "number", "$.number is missing"),
        ("repository", "repository_id", "$.repository_id is missing"),
        ("repository", "head_sha", "$.head_sha is missing"),
    ],
)
def test_a_trigger_without_a_part_of_its_key_is_none(kind: str, left_out: str, said: str) -> None:
    whole = {
        "kind": kind,
        "event": "check_run",
        "action": "rerequested",
        "delivery_id": "d-1",
        "received_at": "2026-01-02T03:04:05Z",
        "installation_id": 7,
        "repository_id": 70,
        "number": 1,
        "head_sha": "a" * 40,
    }
    assert triggers.decode(msgspec.json.encode(whole)).repository_id == 70
    del whole[left_out]
    with pytest.raises(PermanentError, match=re.escape(said)) as caught:
        triggers.decode(msgspec.json.encode(whole))
    assert caught.value.reason == "bad_trigger"


@pytest.mark.parametrize(
    ("field", "value"), [("delivery_id", "a b"), ("delivery_id", "x" * 65), ("pulls", list(range(1, 22)))]
)
def test_a_trigger_is_as_bounded_as_what_the_ingress_makes(field: str, value: object) -> None:
    whole = msgspec.to_builtins(pull()) | {field: value}
    with pytest.raises(PermanentError, match=re.escape(f"$.{field}")):
        triggers.decode(msgspec.json.encode(whole))


def test_what_is_logged_of_a_trigger_names_no_person() -> None:
    assert pull(sender_login="ann").log_context() == {
        "delivery_id": "d-1",
        "github_event": "pull_request",
        "action": "opened",
        "installation_id": 7,
        "repository_id": 70,
        "number": 12,
    }
