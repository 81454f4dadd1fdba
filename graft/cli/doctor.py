"""`graft doctor`: looks at everything Graft stands on and says what is wrong, why, and what to do next."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from itertools import islice
from typing import Final
from urllib.parse import urlsplit

import asyncpg
import click
import msgspec
import nats.errors
import nats.js.errors
import uvloop

from graft import __version__, config, database, streams
from graft.bus import Bus
from graft.config import Settings
from graft.errors import ConfigError, GraftError
from graft.github import AppRefused, GitHub, NotFound, hook, installations
from graft.llm import model_access
from graft.pilot import doctor as checks
from graft.pilot.doctor import Check, Severity
from graft.store import pilot

_MARKS: Final = {Severity.OK: "ok", Severity.WARNING: "WARNING", Severity.ERROR: "ERROR"}
_LAST_DELIVERIES: Final = 20
_MOST_INSTALLATIONS: Final = 50
_CONNECT_SECONDS: Final = 5.0


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--offline", is_flag=True, help="Leave out GitHub and the model's API.")
def doctor(as_json: bool, offline: bool) -> None:
    """Check settings, servers, the App's permissions, webhooks, the clock and the models.

    Exits with 0 when all is well, 1 with warnings only, 2 when something does not work.
    """
    found = uvloop.run(examine(os.environ, offline=offline))
    worst = checks.worst(found)
    if as_json:
        document = {"severity": worst, "checks": found}
        click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2))
    else:
        for check in found:
            _print(check)
    sys.exit(checks.EXIT_CODES[worst])


def _print(check: Check) -> None:
    click.echo(f"{_MARKS[check.severity]:<8} {check.name}: {check.finding}")
    if check.severity is not Severity.OK:
        click.echo(f"         why:  {check.cause}")
        click.echo(f"         next: {check.remedy}")


async def examine(environment: Mapping[str, str], *, offline: bool = False) -> list[Check]:
    """Look at everything that the settings allow to look at. Nothing is changed anywhere."""
    try:
        settings = Settings.from_env(environment)
    except ConfigError as error:
        return checks.settings(error.problems, ())
    found = checks.settings((), config.warnings(environment, settings))
    parts = [_database(settings), _broker(settings)]
    if not offline:
        parts += [_github(settings), _models(settings)]
    for part in await asyncio.gather(*parts):
        found += part
    return found


async def _database(settings: Settings) -> list[Check]:
    try:
        pool = await database.open_pool(settings.database_url.value, size=1)
    except ConfigError as error:
        return [checks.unreachable_database(error.problems[0])]
    try:
        async with pool.acquire() as connection:
            version = await database.installed_version(connection)
            try:
                await database.check_schema(connection)
            except ConfigError as error:
                return [
                    checks.database(
                        problem=error.problems[0], version=version, needed=database.SCHEMA_VERSION
                    )
                ]
            dead = await pilot.dead_work(connection)
        return [checks.database(problem=None, version=version), checks.dead_work(dead)]
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        return [checks.unreachable_database(f"DATABASE_URL: failed ({type(error).__name__})")]
    finally:
        await pool.close()


async def _broker(settings: Settings) -> list[Check]:
    try:
        bus = await Bus.connect(
            settings.nats_url.value, creds=settings.nats_creds, prefix=settings.nats_prefix, role="daemon"
        )
    except ConfigError as error:
        return [checks.broker(problem=error.problems[0])]
    try:
        try:
            await bus.client.jetstream(timeout=_CONNECT_SECONDS).stream_info(
                streams.stream_name(settings.nats_prefix)
            )
        except nats.js.errors.NotFoundError:
            return [checks.missing_stream()]
        backlog = await bus.backlog()
    except (GraftError, nats.errors.Error, TimeoutError, OSError) as error:
        return [checks.broker(problem=f"NATS_URL: JetStream did not answer ({type(error).__name__})")]
    finally:
        await bus.close()
    return [
        checks.broker(
            problem=None,
            messages=backlog.messages,
            size=backlog.bytes,
            most=backlog.max_bytes,
            waiting=backlog.waiting,
        )
    ]


async def _github(settings: Settings) -> list[Check]:
    async with GitHub(
        app_id=settings.github_app_id,
        private_key=settings.github_app_private_key.value,
        api_url=settings.github_api_url,
        user_agent=f"graft/{__version__}",
    ) as github:
        try:
            skew = await hook.clock_skew(github.app, now=time.time())
            record = await installations.read_app(github.app)
            found = [
                checks.app(
                    problem=None, name=record.name, slug=record.slug, expected_slug=settings.github_app_slug
                ),
                checks.clock(skew),
                *checks.permissions("the App", record.permissions),
                *checks.events(record.events),
            ]
            found += await _installations(github)
            found += await _webhook(github)
        except AppRefused as error:
            refused = [checks.app(problem=error.problems[0])]
            return refused if error.clock_skew is None else [*refused, checks.clock(error.clock_skew)]
        except GraftError as error:
            return [checks.unreachable_github(str(error))]
    return found


async def _installations(github: GitHub) -> list[Check]:
    listed = await installations.list_installations(github.app)
    names = {each.id: each.account.login if each.account else str(each.id) for each in listed}
    found = [
        checks.installations(
            len(listed), suspended=[names[each.id] for each in listed if each.suspended_at is not None]
        )
    ]
    for each in islice(listed, _MOST_INSTALLATIONS):
        found += checks.permissions(names[each.id], each.permissions)
    return found


async def _webhook(github: GitHub) -> list[Check]:
    try:
        hooked = await hook.read_hook_config(github.app)
    except NotFound:
        return [checks.webhook("")]
    found = [checks.webhook(hooked.url, insecure=not hooked.verifies)]
    statuses: list[int] = []
    async for delivery in installations.list_deliveries(github.app):
        statuses.append(delivery.status_code)
        if len(statuses) >= _LAST_DELIVERIES:
            break
    found.append(checks.deliveries(statuses))
    if hooked.url:
        found.append(await _reach(hooked.url))
    return found


async def _reach(url: str) -> Check:
    """Connect to the webhook's host, as far as TLS, and send nothing."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return checks.reachable("webhook URL", "not a URL")
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host, port, ssl=parts.scheme == "https" or None)
            writer.close()
    except (OSError, TimeoutError, ValueError) as error:
        return checks.reachable(host, f"no connection ({type(error).__name__})")
    return checks.reachable(host, None)


async def _models(settings: Settings) -> list[Check]:
    key, token = settings.anthropic_api_key, settings.anthropic_auth_token
    if key is None and token is None:
        return [checks.no_model()]
    names = dict.fromkeys((settings.fast_model, settings.strong_model))
    return [
        checks.model(
            name,
            await model_access(
                name,
                api_key=key.value if key else None,
                auth_token=token.value if token else None,
                base_url=settings.anthropic_base_url,
            ),
        )
        for name in names
    ]
