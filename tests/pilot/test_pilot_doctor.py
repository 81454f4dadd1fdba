"""The doctor's judgements: for each thing that can be wrong a cause and a next command, and how severe it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from graft.cli.graftctl import main as graftctl
from graft.cli.main import COMMANDS
from graft.grants import EVENTS, PERMISSIONS
from graft.pilot import doctor
from graft.pilot.doctor import EXIT_CODES, Check, Severity, worst
from graft.simulator.state import DEFAULT_EVENTS, DEFAULT_PERMISSIONS
from graft.triggers import INSTALLATION_NEEDS, PULL_NEEDS, REPOSITORY_NEEDS

ROOT = Path(__file__).parents[2]
GRANTED = {name: grant.level for name, grant in PERMISSIONS.items()}

PROBLEMS: list[Check] = [
    *doctor.settings(["GITHUB_APP_ID: not set"], ()),
    *doctor.settings((), ["GRAFT_X: not a setting"]),
    doctor.database(problem="no schema", version=None, needed=1),
    doctor.database(problem="too new", version=9, needed=1),
    doctor.unreachable_database("cannot connect"),
    doctor.broker(problem="no answer"),
    doctor.broker(problem=None, messages=5, size=90, most=100),
    doctor.missing_stream(),
    doctor.app(problem="refused"),
    doctor.app(problem=None, slug="graft-two", expected_slug="graft"),
    doctor.unreachable_github("timeout"),
    doctor.clock(None),
    doctor.clock(-600.0),
    *doctor.permissions("octo", {}),
    *doctor.events(()),
    doctor.installations(0, suspended=()),
    doctor.installations(2, suspended=("octo",)),
    doctor.webhook(""),
    doctor.webhook("https://graft.example/hook"),
    doctor.webhook("http://graft.example/webhooks/github"),
    doctor.deliveries(()),
    doctor.deliveries((500, 202)),
    doctor.deliveries((202, 401)),
    doctor.reachable("graft.example", "no connection"),
    doctor.dead_work({"intent": 3}),
    doctor.no_model(),
    doctor.model("m", "unauthorized"),
    doctor.model("m", "something_new"),
]
GOOD: list[Check] = [
    *doctor.settings((), ()),
    doctor.database(problem=None, version=1),
    doctor.broker(problem=None, messages=0, size=0, most=100),
    doctor.app(problem=None, name="Graft", slug="graft", expected_slug="graft"),
    doctor.app(problem=None, name="Graft", slug="graft", expected_slug=None),
    doctor.clock(2.0),
    *doctor.permissions("octo", GRANTED),
    *doctor.events(tuple(EVENTS)),
    doctor.installations(1, suspended=()),
    doctor.webhook("https://graft.example/webhooks/github"),
    doctor.deliveries((202, 202)),
    doctor.reachable("graft.example", None),
    doctor.dead_work({}),
    doctor.model("m", "ok"),
]


@pytest.mark.parametrize("check", PROBLEMS, ids=lambda check: f"{check.name}: {check.finding}"[:60])
def test_every_problem_has_a_cause_and_a_next_step(check: Check) -> None:
    assert check.severity is not Severity.OK
    assert check.finding
    assert check.cause
    assert check.remedy


@pytest.mark.parametrize("check", GOOD, ids=lambda check: check.name)
def test_what_is_well_says_so(check: Check) -> None:
    assert check.severity is Severity.OK
    assert check.finding
    assert not check.cause
    assert not check.remedy


@pytest.mark.parametrize(
    ("severities", "code"),
    [
        ((), 0),
        ((Severity.OK,), 0),
        ((Severity.OK, Severity.WARNING), 1),
        ((Severity.ERROR, Severity.WARNING, Severity.OK), 2),
    ],
)
def test_the_exit_code_is_the_worst(severities: Sequence[Severity], code: int) -> None:
    checks = [Check(name="x", severity=each, finding="y") for each in severities]
    assert EXIT_CODES[worst(checks)] == code


def test_a_missing_permission_is_named_with_what_it_breaks() -> None:
    [check] = doctor.permissions("octo", {**GRANTED, "checks": "read"})
    assert "checks: write is needed, read is granted" in check.finding
    assert "check runs" in check.cause
    [check] = doctor.permissions("octo", {name: level for name, level in GRANTED.items() if name != "issues"})
    assert "issues: read is needed, nothing is granted" in check.finding


def test_more_than_needed_is_fine() -> None:
    assert doctor.permissions("octo", dict.fromkeys(GRANTED, "admin"))[0].severity is Severity.OK


def test_a_missing_event_is_named_and_only_pull_requests_are_vital() -> None:
    [push] = doctor.events([event for event in EVENTS if event != "push"])
    assert "push" in push.finding
    assert push.severity is Severity.WARNING
    [pulls] = doctor.events([event for event in EVENTS if event != "pull_request"])
    assert pulls.severity is Severity.ERROR


def test_wanted_is_what_the_code_handles_and_the_simulator_grants() -> None:
    handled = {event for event, _ in (*PULL_NEEDS, *REPOSITORY_NEEDS)}
    assert set(EVENTS) == handled
    assert set(EVENTS).isdisjoint(event for event, _ in INSTALLATION_NEEDS), "those always come"
    assert set(EVENTS) == set(DEFAULT_EVENTS)
    assert GRANTED == DEFAULT_PERMISSIONS


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        (0, "could not connect"),
        (401, "signature"),
        (404, "ingress"),
        (502, "proxy"),
        (503, "stream"),
        (418, "418"),
    ],
)
def test_the_cause_of_a_failed_delivery_is_read_from_its_status(status: int, cause: str) -> None:
    check = doctor.deliveries((status, 202, 202))
    assert cause in check.cause
    assert "1 of the last 3 failed" in check.finding
    assert check.severity is Severity.ERROR
    assert doctor.deliveries((202, status)).severity is Severity.WARNING


def test_the_webhook_path_is_that_of_the_ingress() -> None:
    source = (ROOT / "graft" / "ingress.py").read_text(encoding="utf-8")
    assert re.search(rf'"{doctor.WEBHOOK_PATH}"', source)


def test_every_command_that_is_recommended_exists() -> None:
    said = " ".join(
        [check.remedy for check in PROBLEMS] + [remedy for _, remedy in doctor._DELIVERY_CAUSES.values()]
    )
    for program, known in (("graftctl", set(graftctl.commands)), ("graft", set(COMMANDS))):
        named = set(re.findall(rf"\b{program} ([a-z]+)", said)) - {"runs"}
        assert named
        assert named <= known
