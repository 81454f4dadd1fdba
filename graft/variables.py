"""The variables that more than one program reads: name, meaning and form of each, described once."""

from __future__ import annotations

from typing import Annotated

from graft import values
from graft.environment import from_variable
from graft.values import Address, Secret

DatabaseUrl = Annotated[
    Secret,
    from_variable(
        "DATABASE_URL",
        values.database_url,
        "Postgres 17 or newer: `postgresql://user:password@host/database`.",
        required=True,
        secret=True,
    ),
]
NatsUrl = Annotated[
    Secret,
    from_variable(
        "NATS_URL",
        values.nats_url,
        "NATS 2.11 or newer with JetStream: `nats://host:4222`, several separated by commas; `tls://` for TLS.",
        required=True,
        secret=True,
    ),
]
NatsCredentials = Annotated[
    str | None,
    from_variable("NATS_CREDS", values.readable_file, "Path of a NATS credentials file (`.creds`)."),
]
NatsPrefix = Annotated[
    str,
    from_variable(
        "GRAFT_NATS_PREFIX",
        values.prefix,
        "First token of every NATS subject and, in capitals, the stream's name; another one lets two "
        "installations share a broker.",
        default="graft",
    ),
]

GitHubApiUrl = Annotated[
    str,
    from_variable(
        "GITHUB_API_URL",
        values.http_url,
        "Root of the REST API; `https://HOST/api/v3` for GitHub Enterprise Server.",
        default="https://api.github.com",
    ),
]

GitHubAppId = Annotated[
    int,
    from_variable("GITHUB_APP_ID", values.whole(1), "The GitHub App's numeric id.", required=True),
]
GitHubAppKey = Annotated[
    Secret,
    from_variable(
        "GITHUB_APP_PRIVATE_KEY",
        values.private_key,
        "The App's private key: PEM, PEM with `\\n` escapes, base64 of the PEM, or the path of a PEM file.",
        required=True,
        secret=True,
    ),
]

WebhookSecret = Annotated[
    Secret,
    from_variable(
        "GITHUB_WEBHOOK_SECRET",
        values.secret,
        "The App's webhook secret.",
        required=True,
        secret=True,
    ),
]
PreviousWebhookSecret = Annotated[
    Secret | None,
    from_variable(
        "GITHUB_WEBHOOK_SECRET_PREVIOUS",
        values.secret,
        "The webhook secret before this one, accepted as well while the secret is being changed.",
        secret=True,
    ),
]
Listen = Annotated[
    Address,
    from_variable(
        "GRAFT_LISTEN",
        values.address,
        "`host:port` that webhooks, health and metrics are served on; `0.0.0.0:8080` for all interfaces.",
        default="127.0.0.1:8080",
    ),
]
IncidentLabel = Annotated[
    str,
    from_variable(
        "GRAFT_INCIDENT_LABEL",
        values.label,
        "Label that marks an issue or pull request as an incident; upper and lower case are the same.",
        default="incident",
    ),
]
LogLevel = Annotated[
    str,
    from_variable(
        "GRAFT_LOG_LEVEL",
        values.one_of("debug", "info", "warning", "error"),
        "Least severe level that is logged: `debug`, `info`, `warning`, `error`.",
        default="info",
    ),
]
LogFormat = Annotated[
    str,
    from_variable(
        "GRAFT_LOG_FORMAT",
        values.one_of("json", "console"),
        "`json` (a line each) or `console`.",
        default="json",
    ),
]
