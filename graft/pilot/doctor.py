"""What is wrong with an installation of Graft, as values: for each thing looked at what was found, why that is, and
the next command. Looking is done elsewhere; deciding here needs nothing but what was seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

import msgspec

from graft.grants import EVENTS, LEVELS, PERMISSIONS


class Severity(StrEnum):
    """`error`: Graft does not work. `warning`: part of it does not, or soon will not."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


EXIT_CODES: Final = {Severity.OK: 0, Severity.WARNING: 1, Severity.ERROR: 2}
_ORDER: Final = list(Severity)


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at. `cause` and `remedy` are empty where all is well."""

    name: str
    severity: Severity
    finding: str
    cause: str = ""
    remedy: str = ""


def worst(checks: Sequence[Check]) -> Severity:
    """The most severe of them."""
    return max((check.severity for check in checks), key=_ORDER.index, default=Severity.OK)


def _ok(name: str, finding: str) -> Check:
    return Check(name=name, severity=Severity.OK, finding=finding)


def _bad(name: str, finding: str, cause: str, remedy: str, *, warning: bool = False) -> Check:
    severity = Severity.WARNING if warning else Severity.ERROR
    return Check(name=name, severity=severity, finding=finding, cause=cause, remedy=remedy)


# ---------------------------------------------------------------------------------------- settings and servers


def settings(problems: Sequence[str], warnings: Sequence[str]) -> list[Check]:
    """What the environment says; problems name variables and never values."""
    found = [
        _bad(
            "settings",
            problem,
            "a required variable is missing or cannot be used",
            "set it (docs/configuration.md)",
        )
        for problem in problems
    ]
    found += [
        _bad(
            "settings",
            warning,
            "the environment holds something that Graft does not use as meant",
            "correct it",
            warning=True,
        )
        for warning in warnings
    ]
    return found or [_ok("settings", "complete")]


def database(*, problem: str | None, version: int | None = None, needed: int = 0) -> Check:
    """Whether Postgres answers and holds the schema that this code needs."""
    if problem is None:
        return _ok("database", f"schema version {version}")
    if version is None or version < needed:
        return _bad(
            "database", problem, "the schema was never made, or is older than this code", "graft migrate"
        )
    return _bad("database", problem, "an older replica runs on a newer schema", "upgrade this replica")


def unreachable_database(problem: str) -> Check:
    return _bad(
        "database",
        problem,
        "Postgres is not running there, or refuses these credentials",
        "psql \"$DATABASE_URL\" -c 'select 1'",
    )


def broker(
    *, problem: str | None, messages: int = 0, size: int = 0, most: int = 0, waiting: int = 0
) -> Check:
    """Whether NATS answers, has the stream, and how full it is."""
    if problem is not None:
        return _bad(
            "broker", problem, "NATS is not running there, or JetStream is off", "nats server check jetstream"
        )
    if most and size >= 0.8 * most:
        return _bad(
            "broker",
            f"the stream holds {messages:,} messages and is {size * 100 // most} % full",
            "no daemon takes deliveries, or they come faster than they are taken",
            "graftctl status, then raise GRAFT_STREAM_MAX_BYTES if the daemons are healthy",
            warning=True,
        )
    return _ok("broker", f"stream present, {messages:,} messages, {waiting:,} waiting")


def missing_stream() -> Check:
    return _bad(
        "broker",
        "connected, but there is no stream",
        "no daemon has started on this broker yet",
        "graft serve",
    )


# ---------------------------------------------------------------------------------------------------- the App

_LARGEST_SKEW: Final = 30.0


def app(*, problem: str | None, name: str = "", slug: str = "", expected_slug: str | None = None) -> Check:
    """Whether GitHub takes the App's credentials, and the App is the one that the settings name."""
    if problem is not None:
        return _bad(
            "app",
            problem,
            "GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY do not belong together, the key was revoked, or the clock is off",
            "make a new key in the App's settings, then graft doctor",
        )
    if expected_slug is not None and slug and slug != expected_slug:
        return _bad(
            "app",
            f"the App is called {slug}, GITHUB_APP_SLUG says otherwise",
            "the App was renamed, or the setting is of another App",
            f"set GITHUB_APP_SLUG={slug}",
            warning=True,
        )
    return _ok("app", f"credentials accepted ({name or slug})")


def unreachable_github(problem: str) -> Check:
    return _bad(
        "app",
        problem,
        "no way to GitHub from here, or GITHUB_API_URL is wrong",
        'curl -sS "$GITHUB_API_URL/zen"',
    )


def clock(skew: float | None) -> Check:
    """How far this machine's clock is from GitHub's; `skew` is positive where ours is ahead."""
    if skew is None:
        return _bad("clock", "not compared", "GitHub did not say its time", "timedatectl", warning=True)
    said = f"{abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} GitHub's"
    if abs(skew) < _LARGEST_SKEW:
        return _ok("clock", f"{said}")
    return _bad(
        "clock",
        said,
        "the clock is not synchronised; GitHub refuses tokens that are off",
        "timedatectl set-ntp true",
    )


def permissions(where: str, granted: Mapping[str, str]) -> list[Check]:
    """What one installation (or the App itself) may do, against what Graft needs."""
    name = f"permissions of {where}"
    found = [
        _bad(
            name,
            f"{permission}: {grant.level} is needed, {granted.get(permission) or 'nothing'} is granted",
            f"without it: {grant.without}",
            "grant it in the App's settings, then have the owner of each installation accept it",
        )
        for permission, grant in PERMISSIONS.items()
        if LEVELS.get(granted.get(permission, ""), 0) < LEVELS[grant.level]
    ]
    return found or [_ok(name, "all that Graft needs")]


def events(subscribed: Sequence[str]) -> list[Check]:
    """What GitHub tells the App, against what Graft listens to."""
    found = [
        _bad(
            "events",
            f"{event} is not subscribed",
            f"without it: {grant.without}",
            "tick it in the App's settings",
            warning=event != "pull_request",
        )
        for event, grant in EVENTS.items()
        if event not in subscribed
    ]
    return found or [_ok("events", "all that Graft listens to")]


def installations(count: int, *, suspended: Sequence[str]) -> Check:
    """Where the App is installed."""
    if count == 0:
        return _bad(
            "installations",
            "the App is installed nowhere",
            "nobody installed it yet",
            "install it on a repository",
            warning=True,
        )
    if suspended:
        names = ", ".join(suspended[:5])
        return _bad(
            "installations",
            f"suspended: {names}",
            "its owner or GitHub suspended it",
            "ask its owner to unsuspend it",
            warning=True,
        )
    return _ok("installations", f"{count}")


# ------------------------------------------------------------------------------------------------- deliveries

WEBHOOK_PATH: Final = "/webhooks/github"

# How GitHub's log says that a delivery ended -> (cause, remedy).
_DELIVERY_CAUSES: Final[Mapping[int, tuple[str, str]]] = {
    0: (
        "GitHub could not connect: DNS, firewall, TLS, or nothing listens",
        "open the URL from outside: curl -i",
    ),
    401: (
        "the signature does not match: GITHUB_WEBHOOK_SECRET is not the App's",
        "set the same secret on both sides",
    ),
    404: ("the URL does not lead to Graft's ingress", f"let the webhook URL end in {WEBHOOK_PATH}"),
    413: ("a proxy in front refuses large bodies", "let it pass 25 MB"),
    502: ("a proxy in front cannot reach Graft", "check that graft serve runs and listens there"),
    503: ("Graft could not store it: NATS is away or the stream is full", "graftctl status"),
    504: ("a proxy in front waited too long for Graft", "check that graft serve runs and listens there"),
}


def webhook(url: str, *, insecure: bool = False) -> Check:
    """What the App's webhook is set to."""
    parts = urlsplit(url)
    if not url:
        return _bad("webhook", "no URL is set", "the App has no webhook", "set it in the App's settings")
    if not parts.path.rstrip("/").endswith(WEBHOOK_PATH):
        return _bad(
            "webhook",
            "the URL leads elsewhere",
            f"it does not end in {WEBHOOK_PATH}",
            "correct it in the App's settings",
            warning=True,
        )
    if parts.scheme != "https" or insecure:
        return _bad(
            "webhook",
            "not over verified TLS",
            "the URL is http, or verification is off",
            "use https and switch verification on",
            warning=True,
        )
    return _ok("webhook", f"set to {parts.hostname}")


def deliveries(statuses: Sequence[int]) -> Check:
    """The last deliveries by GitHub's own log, newest first; 0 stands for no answer."""
    if not statuses:
        return _bad(
            "deliveries",
            "GitHub has sent nothing lately",
            "nothing happened, or the App is installed nowhere",
            "open a pull request",
            warning=True,
        )
    failed = [status for status in statuses if not 200 <= status < 300]
    if not failed:
        return _ok("deliveries", f"the last {len(statuses)} were taken")
    cause, remedy = _DELIVERY_CAUSES.get(failed[0], (f"answered {failed[0]}", "graftctl deliveries"))
    newest_failed = not 200 <= statuses[0] < 300
    which = "the newest too" if newest_failed else "not the newest"
    finding = f"{len(failed)} of the last {len(statuses)} failed, {which}"
    return _bad("deliveries", finding, cause, remedy, warning=not newest_failed)


def reachable(host: str, problem: str | None) -> Check:
    """Whether the webhook's host takes connections from here. From outside it may be otherwise, both ways."""
    if problem is None:
        return _ok("webhook host", f"{host} takes connections")
    return _bad(
        "webhook host",
        f"{host}: {problem}",
        "nothing listens there, or it cannot be reached from this machine",
        "graft serve, and check proxy and firewall",
        warning=True,
    )


def dead_work(counts: Mapping[str, int]) -> Check:
    """Work that was given up."""
    if not counts:
        return _ok("dead work", "none")
    listed = ", ".join(f"{need} ×{count}" for need, count in counts.items())
    return _bad("dead work", listed, "it failed for good, or too often", "graftctl dead", warning=True)


# ------------------------------------------------------------------------------------------------------ models

_MODEL_CAUSES: Final[Mapping[str, tuple[str, str]]] = {
    "unauthorized": ("the key or token is refused", "set another ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"),
    "billing": ("the account has no credit", "add credit at the provider"),
    "unknown_model": (
        "the account or gateway does not know this model",
        "set GRAFT_INTENT_FAST_MODEL and GRAFT_INTENT_STRONG_MODEL",
    ),
    "rate_limited": ("the account's rate limit is reached", "try again later"),
    "connection": ("no way to the model's API from here", "check ANTHROPIC_BASE_URL, proxy and firewall"),
    "timeout": ("the model's API does not answer in time", "try again later"),
}


def no_model() -> Check:
    return _bad(
        "models",
        "no key and no token is set",
        "cards show the rules' floor only",
        "set ANTHROPIC_API_KEY",
        warning=True,
    )


def model(name: str, outcome: str) -> Check:
    """Whether a model can be used; `outcome` is `ok` or how asking for it ended."""
    if outcome == "ok":
        return _ok(f"model {name}", "may be used")
    cause, remedy = _MODEL_CAUSES.get(outcome, ("the model's API failed", "try again later"))
    passing = outcome in ("rate_limited", "timeout", "overloaded", "server_error")
    return _bad(f"model {name}", outcome.replace("_", " "), cause, remedy, warning=passing)
