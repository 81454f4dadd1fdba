"""`graft gate`: are the cards right often enough? Exit code 0 passes, 1 fails, 2 not enough data, 3 not answered."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import date
from typing import Any

import click
import msgspec

from graft.cli.scope import find_scope, on_database, scope_options
from graft.database import Connection
from graft.errors import ConfigError
from graft.pilot import feedback
from graft.pilot import gate as gates
from graft.pilot.feedback import CardFacts, Rating, Vote
from graft.pilot.figures import Figure, as_text
from graft.store import ratings

NOT_ANSWERED = 3
_TITLES = {
    gates.Outcome.PASS: "PASS",
    gates.Outcome.FAIL: "FAIL",
    gates.Outcome.NOT_ENOUGH_DATA: "NOT ENOUGH DATA",
}


class _NotAnswered(click.UsageError):
    exit_code = NOT_ANSWERED


class _Command(click.Command):
    """A wrong option must not look like “not enough data” to a script."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise _NotAnswered(error.message, ctx=error.ctx) from None


@click.command(cls=_Command)
@scope_options
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=gates.THRESHOLD,
    show_default=True,
    help="What the lower end of the interval has to reach.",
)
@click.option(
    "--minimum",
    type=click.IntRange(1),
    default=gates.MINIMUM,
    show_default=True,
    help="Rated cards below which nothing is decided.",
)
@click.option(
    "--by", "splits", type=click.Choice(list(feedback.SPLITS)), multiple=True, help="Split as well."
)
@click.option("--include-authors", is_flag=True, help="Count the votes of pull request authors, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def gate(
    repos: tuple[str, ...],
    first: date | None,
    last: date | None,
    threshold: float,
    minimum: int,
    splits: tuple[str, ...],
    include_authors: bool,
    as_json: bool,
) -> None:
    """Decide whether intent cards are accurate enough, over cards shown in a period.

    Exits with 0 when the gate passes, 1 when it fails, 2 when there is not enough data, and 3 when the question
    could not be answered.
    """

    async def read(connection: Connection) -> tuple[list[CardFacts], list[Vote]]:
        scope = await find_scope(connection, repos, first, last)
        return await ratings.cards(connection, scope), await ratings.votes(connection, scope)

    try:
        cards, votes = on_database(read)
    except ConfigError as error:
        for problem in error.problems:
            click.echo(f"graft: {problem}", err=True)
        sys.exit(NOT_ANSWERED)
    rated = feedback.rate(cards, votes, include_authors=include_authors)
    decided = gates.decide(rated, threshold=threshold, minimum=minimum, include_authors=include_authors)
    groups = {by: _split(rated, by, include_authors=include_authors) for by in splits}
    if as_json:
        document: dict[str, Any] = {"gate": decided, "splits": groups}
        click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2))
    else:
        _print(decided, groups)
    sys.exit(gates.EXIT_CODES[decided.outcome])


def _split(rated: Sequence[Rating], by: str, *, include_authors: bool) -> dict[str, Figure]:
    return {
        name: feedback.accuracy(group, key=f"accuracy.{by}.{name}", include_authors=include_authors)
        for name, group in feedback.split(rated, by).items()
    }


def _print(decided: gates.Gate, groups: dict[str, dict[str, Figure]]) -> None:
    click.echo(f"{_TITLES[decided.outcome]}: {decided.reason}")
    click.echo(f"accuracy  {as_text(decided.accuracy)}")
    click.echo(f"gate      {decided.threshold * 100:g} % with at least {decided.needed} rated cards")
    for by, figures in groups.items():
        click.echo(f"\nby {by}")
        for name, figure in figures.items():
            click.echo(f"  {name}: {as_text(figure)}")
    click.echo(f"\n{decided.accuracy.definition}")
