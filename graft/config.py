"""Settings: one frozen value from the environment, every variable described once, all problems at once.

`Settings.from_env(mapping)` is the only reader of environment variables. It raises ConfigError with every
problem, each naming its variable and never its value. `docs/configuration.md` is `reference()`:
`python -m graft.config > docs/configuration.md`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Final

from msgspec import Struct

from graft import values
from graft.environment import Environment, from_variable, variables
from graft.globs import Glob
from graft.values import Address, Secret
from graft.variables import (
    DatabaseUrl,
    GitHubApiUrl,
    GitHubAppId,
    GitHubAppKey,
    IncidentLabel,
    Listen,
    LogFormat,
    LogLevel,
    NatsCredentials,
    NatsPrefix,
    NatsUrl,
    PreviousWebhookSecret,
    WebhookSecret,
)

__all__ = [
    "ActorSettings",
    "Address",
    "BrokerSettings",
    "DatabaseSettings",
    "IngressSettings",
    "Secret",
    "Settings",
    "reference",
    "variables",
]


class DatabaseSettings(Environment, frozen=True, kw_only=True):
    """What `graft migrate` needs."""

    database_url: DatabaseUrl


class ReaderSettings(Environment, frozen=True, kw_only=True):
    """What `graft policy simulate` needs: a token of a person or a CI job instead of the App's key."""

    github_token: Annotated[
        Secret,
        from_variable(
            "GITHUB_TOKEN",
            values.secret,
            "A token that may read the repository and its pull requests.",
            required=True,
            secret=True,
        ),
    ]
    github_api_url: GitHubApiUrl


class BrokerSettings(Environment, frozen=True, kw_only=True):
    """What `graftctl` needs."""

    nats_url: NatsUrl
    nats_creds: NatsCredentials = None
    nats_prefix: NatsPrefix


class AppSettings(Environment, frozen=True, kw_only=True):
    """What `graft baseline` and `graft shadow` need: the App, to read, and the database, to store."""

    database_url: DatabaseUrl
    github_app_id: GitHubAppId
    github_app_private_key: GitHubAppKey
    github_api_url: GitHubApiUrl


class ImportSettings(Environment, frozen=True, kw_only=True):
    """What `graft setup --import` takes over: an App that exists."""

    github_app_id: GitHubAppId
    github_app_private_key: GitHubAppKey
    github_webhook_secret: WebhookSecret
    github_api_url: GitHubApiUrl


class PurgeSettings(Environment, frozen=True, kw_only=True):
    """What `graft purge` needs."""

    database_url: DatabaseUrl
    nats_url: NatsUrl
    nats_creds: NatsCredentials = None
    nats_prefix: NatsPrefix


class IngressSettings(Environment, frozen=True, kw_only=True):
    """What `graft ingress` needs: the broker and the webhook secret; no key of the App, no database."""

    nats_url: NatsUrl
    nats_creds: NatsCredentials = None
    nats_prefix: NatsPrefix
    github_app_id: GitHubAppId
    github_webhook_secret: WebhookSecret
    github_webhook_secret_previous: PreviousWebhookSecret = None
    listen: Listen
    incident_label: IncidentLabel
    log_level: LogLevel
    log_format: LogFormat

    def contradictions(self) -> list[str]:
        return _same_secrets(self.github_webhook_secret, self.github_webhook_secret_previous)


class ActorSettings(Environment, frozen=True, kw_only=True):
    """What `graft actors` needs: everything but the webhook secret."""

    database_url: DatabaseUrl
    nats_url: NatsUrl
    nats_creds: NatsCredentials = None
    nats_prefix: NatsPrefix

    github_app_id: GitHubAppId
    github_app_slug: Annotated[
        str | None,
        from_variable(
            "GITHUB_APP_SLUG",
            values.slug,
            "The App's name in its URL (`https://github.com/apps/<slug>`). Comments by `<slug>[bot]` count as "
            "Graft's own where GitHub does not say which App wrote them.",
        ),
    ] = None
    github_app_private_key: GitHubAppKey
    github_api_url: GitHubApiUrl

    listen: Listen

    anthropic_api_key: Annotated[
        Secret | None,
        from_variable(
            "ANTHROPIC_API_KEY",
            values.secret,
            "Key for the Anthropic API. Without a key or token cards show the risk floor only.",
            secret=True,
        ),
    ] = None
    anthropic_auth_token: Annotated[
        Secret | None,
        from_variable(
            "ANTHROPIC_AUTH_TOKEN",
            values.secret,
            "Bearer token for the Anthropic API or a gateway, instead of a key.",
            secret=True,
        ),
    ] = None
    anthropic_base_url: Annotated[
        str | None,
        from_variable("ANTHROPIC_BASE_URL", values.http_url, "Root of the Anthropic API, for a gateway."),
    ] = None
    fast_model: Annotated[
        str,
        from_variable(
            "GRAFT_INTENT_FAST_MODEL",
            values.model_name,
            "Model that writes the card of a change whose floor is trivial.",
            default="claude-haiku-5-5",
        ),
    ]
    strong_model: Annotated[
        str,
        from_variable(
            "GRAFT_INTENT_STRONG_MODEL",
            values.model_name,
            "Model that writes every other card and verifies all of them.",
            default="claude-opus-5-5",
        ),
    ]
    diff_measure: Annotated[
        str,
        from_variable(
            "GRAFT_INTENT_TOKEN_COUNT",
            values.one_of("estimate", "api"),
            "How the part of a diff that a model reads is measured: `estimate` (two tokens for five bytes) or `api` "
            "(one more request to the model's service per card).",
            default="estimate",
        ),
    ]
    sensitive_paths: Annotated[
        tuple[Glob, ...],
        from_variable(
            "GRAFT_INTENT_SENSITIVE_PATHS",
            values.globs,
            "Globs of paths that make a change sensitive, separated by commas: `services/billing/**,*.tf`. "
            "A repository's graft.yaml can add to them.",
        ),
    ] = ()
    daily_budget_usd: Annotated[
        Decimal,
        from_variable(
            "GRAFT_INTENT_DAILY_BUDGET_USD",
            values.amount,
            "US dollars that models may cost per repository and day (UTC); 0 calls no model.",
            default="5",
        ),
    ]

    feedback_poll_cron: Annotated[
        str,
        from_variable(
            "GRAFT_FEEDBACK_POLL_CRON",
            values.cron,
            "When reactions on comments are read (cron, five fields, UTC).",
            default="*/15 * * * *",
        ),
    ]
    settle_seconds: Annotated[
        float,
        from_variable(
            "GRAFT_SETTLE_SECONDS",
            values.seconds(0, 3600),
            "How long a pull request has to go without a push before a model is asked.",
            default="15",
        ),
    ]
    settle_cap_seconds: Annotated[
        float,
        from_variable(
            "GRAFT_SETTLE_CAP_SECONDS",
            values.seconds(0, 86_400),
            "Longest wait for pushes to settle, counted from the first of them.",
            default="120",
        ),
    ]
    rollup_cron: Annotated[
        str,
        from_variable(
            "GRAFT_ROLLUP_CRON",
            values.cron,
            "When the last days' numbers are computed for `graft metrics` and the report (cron, five fields, UTC).",
            default="20 1 * * *",
        ),
    ]
    purge_after_days: Annotated[
        float,
        from_variable(
            "GRAFT_PURGE_AFTER_DAYS",
            values.days(0, 3650),
            "Days after which everything of an installation that GitHub says was deleted is removed; 0 removes it "
            "as soon as it is known.",
            default="30",
        ),
    ]
    incident_label: IncidentLabel

    partitions: Annotated[
        int,
        from_variable(
            "GRAFT_PARTITIONS",
            values.whole(1, 1024),
            "Shares that the work is dealt out in, when a database is first used; at least one per replica.",
            default="32",
        ),
    ]
    concurrency: Annotated[
        int,
        from_variable(
            "GRAFT_CONCURRENCY",
            values.whole(1, 1024),
            "Pull requests, repositories and installations that one replica works on at a time.",
            default="16",
        ),
    ]
    stream_max_bytes: Annotated[
        int,
        from_variable(
            "GRAFT_STREAM_MAX_BYTES",
            values.whole(65_536, 2**40),
            "Size of the JetStream stream; when it is full, deliveries are refused with 503.",
            default=str(256 * 1024 * 1024),
        ),
    ]
    stream_replicas: Annotated[
        int,
        from_variable(
            "GRAFT_STREAM_REPLICAS",
            values.one_of_numbers(1, 3, 5),
            "NATS servers that keep a copy of the stream.",
            default="1",
        ),
    ]
    log_level: LogLevel
    log_format: LogFormat

    def contradictions(self) -> list[str]:
        problems = []
        if self.settle_cap_seconds < self.settle_seconds:
            problems.append("GRAFT_SETTLE_CAP_SECONDS: shorter than GRAFT_SETTLE_SECONDS; raise it")
        return problems


class Settings(ActorSettings, frozen=True, kw_only=True):
    """Everything that `graft serve` needs."""

    github_webhook_secret: WebhookSecret
    github_webhook_secret_previous: PreviousWebhookSecret = None

    def contradictions(self) -> list[str]:
        return ActorSettings.contradictions(self) + _same_secrets(
            self.github_webhook_secret, self.github_webhook_secret_previous
        )


def _same_secrets(secret: Secret, previous: Secret | None) -> list[str]:
    if previous != secret:
        return []
    return ["GITHUB_WEBHOOK_SECRET_PREVIOUS: the same as GITHUB_WEBHOOK_SECRET; unset it or set the new one"]


class Effective(Struct, frozen=True, kw_only=True):
    """A setting in force; `origin` is `environment`, `default` or `unset`. A secret prints as stars."""

    name: str
    value: str
    origin: str


def effective(settings: ActorSettings) -> tuple[Effective, ...]:
    """Every setting as it is in force. A value that was set to the default counts as the default."""
    found = []
    for field, variable in variables(type(settings)).items():
        value = getattr(settings, field)
        if value is None:
            found.append(Effective(name=variable.name, value="", origin="unset"))
            continue
        default = None if variable.default is None else variable.parse(variable.default)
        empty = value == () and variable.default is None
        origin = "unset" if empty else "default" if value == default else "environment"
        text = ",".join(glob.pattern for glob in value) if isinstance(value, tuple) else str(value)
        found.append(Effective(name=variable.name, value=text, origin=origin))
    return tuple(found)


# Variables with these beginnings are Graft's: an unknown one is probably misspelt.
_OWN: Final = ("GRAFT_", "GITHUB_APP_", "GITHUB_WEBHOOK_")
_NOT_SETTINGS: Final = ("GRAFT_TEST_",)


def warnings(environment: Mapping[str, str], settings: ActorSettings | IngressSettings) -> tuple[str, ...]:
    """What an operator should look at although the start goes on: names and reasons, never values."""
    known = {variable.name for variable in variables(Settings).values()}
    found = []
    for name in sorted(environment):
        if name not in known and name.startswith(_OWN) and not name.startswith(_NOT_SETTINGS):
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
            found.append(f"{name}: not a setting of Graft" + (f"; did you mean {near[0]}?" if near else ""))
    if isinstance(settings, IngressSettings):
        return tuple(found)
    if any(not glob.pattern.isascii() for glob in settings.sensitive_paths):
        found.append("GRAFT_INTENT_SENSITIVE_PATHS: holds a glob with characters outside ASCII")
    if settings.github_api_url.startswith("http://"):
        found.append("GITHUB_API_URL: not https, tokens travel unencrypted")
    return tuple(found)


def reference() -> str:
    """`docs/configuration.md`."""
    lines = [
        "# Configuration",
        "",
        "Written by `python -m graft.config`; change `graft/config.py`, not this page.",
        "",
        "All settings are environment variables. An empty one counts as unset. `graft serve` reports every",
        "problem at once, by name, and never shows a value. Secrets are shown as stars wherever they appear.",
        "",
        "| variable | default | meaning |",
        "| --- | --- | --- |",
    ]
    # Required ones first.
    for variable in sorted(variables(Settings).values(), key=lambda variable: not variable.required):
        marks = [mark for mark, on in (("required", variable.required), ("secret", variable.secret)) if on]
        default = f"`{variable.default}`" if variable.default is not None else ", ".join(marks)
        lines.append(f"| `{variable.name}` | {default} | {variable.doc} |")
    lines += [
        "",
        "`graft setup --import` reads the App's id and key, the webhook secret and `GITHUB_API_URL`.",
        "`graft actors` reads all but the webhook secrets; `graft ingress` only NATS, `GITHUB_APP_ID`, the webhook",
        "secrets, `GRAFT_LISTEN`, `GRAFT_INCIDENT_LABEL` and the two of the log.",
        "",
        "`graft migrate`, `gate`, `incident`, `metrics` and `report` read `DATABASE_URL` only; `baseline` and",
        "`shadow` that, `GITHUB_API_URL` and the App's id and key; `purge` that and what `graftctl` reads:",
        "`NATS_URL`, `NATS_CREDS` and `GRAFT_NATS_PREFIX`. `doctor` reads all. `graft policy simulate` reads",
        "`GITHUB_TOKEN` (a token that may read the repository) and `GITHUB_API_URL`. `graft review` reads none.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(reference(), end="")
