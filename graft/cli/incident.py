"""`graft incident`: escaped defects that the label does not know of, or knows too little about."""

from __future__ import annotations

from datetime import date
from uuid import UUID

import click
import msgspec

from graft.cli.daemon import fail
from graft.cli.scope import find_repository, find_scope, on_database, scope_options
from graft.database import Connection
from graft.errors import ConfigError
from graft.pilot.figures import as_text
from graft.pilot.incidents import Incident, MergedChange, distinct, escape_rates, incident_counts
from graft.store import incidents
from graft.store.ratings import Scope

_NUMBER = click.IntRange(1, 2**31 - 1)


@click.group()
def incident() -> None:
    """Add, list and remove escaped defects."""


@incident.command()
@click.argument("repo", metavar="OWNER/NAME")
@click.option("--culprit", type=_NUMBER, help="Pull request that let the defect in.")
@click.option("--issue", type=_NUMBER, help="Issue that reports it.")
@click.option("--fix", type=_NUMBER, help="Pull request that fixes it.")
def add(repo: str, culprit: int | None, issue: int | None, fix: int | None) -> None:
    """Enter an incident, or complete the one that is there already.

    What you give wins over what the label and the issue's text say; an incident is never counted twice.
    """
    if culprit is None and issue is None:
        raise click.UsageError("give --culprit, --issue, or both")
    if culprit is not None and culprit == fix:
        raise click.UsageError("--fix: the same pull request as --culprit")

    async def store(connection: Connection) -> UUID:
        repository_id, _ = await find_repository(connection, repo)
        async with connection.transaction():
            return await incidents.add(connection, repository_id, issue=issue, culprit=culprit, fix=fix)

    try:
        click.echo(str(on_database(store)))
    except ConfigError as error:
        fail(error)


@incident.command()
@click.argument("incident_id", metavar="ID", type=click.UUID)
def remove(incident_id: UUID) -> None:
    """Remove an incident for good: its label does not bring it back."""

    async def store(connection: Connection) -> bool:
        return await incidents.remove(connection, incident_id)

    try:
        removed = on_database(store)
    except ConfigError as error:
        fail(error)
    if not removed:
        raise click.ClickException("no such incident; `graft incident list` shows their ids")
    click.echo("removed")


@incident.command("list")
@scope_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(repos: tuple[str, ...], first: date | None, last: date | None, as_json: bool) -> None:
    """Show the incidents of a period, and how often each risk class let one through."""

    async def read(connection: Connection) -> tuple[Scope, list[Incident], list[MergedChange]]:
        scope = await find_scope(connection, repos, first, last)
        known = await incidents.find(connection, scope.until_now())
        return scope, known, await incidents.merged(connection, scope)

    try:
        scope, known, merged = on_database(read)
    except ConfigError as error:
        fail(error)
    found = [each for each in known if each.occurred_at < scope.until]
    figures = [*incident_counts(found), *escape_rates(merged, known)]
    if as_json:
        document = {"incidents": found, "figures": figures}
        click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2))
        return
    once = {each.id for each in distinct(found)}
    for each in found:
        again = "" if each.id in once else "  (the same defect as an earlier one)"
        click.echo(
            f"{each.id}  {each.occurred_at:%Y-%m-%d}  {each.repository}  issue {_shown(each.issue_number)}  "
            f"culprit {_shown(each.culprit)} ({each.culprit_risk or 'class unknown'})  fix {_shown(each.fix)}  "
            f"{each.source}{again}"
        )
    for figure in figures:
        click.echo(f"{figure.name}: {as_text(figure)}")


def _shown(number: int | None) -> str:
    return "–" if number is None else f"#{number}"
