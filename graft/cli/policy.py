"""`graft policy`: check, explain, simulate a policy. Needs no settings; `check` and `schema` need no repository."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click
import msgspec

from graft.cli.policy_sources import named, read_directory, read_file
from graft.errors import GraftError
from graft.policy import AUTHORS, Card, Decision, LoadedPolicy, State, Status, Verdict, json_schema, why_none
from graft.risk import Risk

if TYPE_CHECKING:
    from graft.cli.policy_facts import Assumed

F = TypeVar("F", bound=Callable[..., Any])

EXIT_INVALID = 1
EXIT_UNREADABLE = 2


@click.group()
def policy() -> None:
    """Check, explain and simulate graft.yaml."""


@policy.command()
@click.argument("file", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print `valid` and `errors` as JSON.")
def check(file: str | None, as_json: bool) -> None:
    """Check FILE (`-` for standard input), or the policy file below the current directory.

    Exits with 0 if it is valid, 1 if it is not, 2 if it is missing or cannot be read.
    """
    loaded = read_directory(Path.cwd()) if file is None else read_file(file)
    if loaded.policy is None:
        _exit_without_policy(loaded, as_json=as_json)
    count = len(loaded.policy.rules)
    valid = f"{named(loaded)}: valid, {count} rule{'' if count == 1 else 's'}"
    click.echo(json.dumps({"valid": True, "errors": []}, indent=2) if as_json else valid)


@policy.command()
def schema() -> None:
    """Print the JSON Schema of graft.yaml, for editors."""
    click.echo(json.dumps(json_schema(), indent=2))


def what_if(command: F) -> F:
    """The options that stand for facts that the command cannot know, or that the user wants to vary."""
    for option in (
        click.option(
            "--risk",
            type=click.Choice([risk.value for risk in Risk]),
            help="Judge as if this were the final risk.",
        ),
        click.option("--author-kind", type=click.Choice(AUTHORS), help="Judge as if this were the author."),
        click.option(
            "--card",
            type=click.Choice([card.value for card in Card]),
            default="missing",
            help="State of the intent card.",
        ),
        click.option(
            "--label", "labels", multiple=True, help="Judge as if it had this label; may be repeated."
        ),
        click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON."),
    ):
        command = option(command)
    return command


@policy.command()
@click.argument("range_", metavar="BASE..HEAD")
@click.option("--repo", default=".", type=click.Path(path_type=Path), help="The git repository.")
@click.option("--file", type=click.Path(path_type=Path), help="Use this policy instead of the one on BASE.")
@what_if
def explain(
    range_: str,
    repo: Path,
    file: Path | None,
    risk: str | None,
    author_kind: str | None,
    card: str,
    labels: tuple[str, ...],
    as_json: bool,
) -> None:
    """Say what the policy on BASE would decide about the commits up to HEAD, and which fact decided each rule.

    No model is asked, so there is no intent card unless --card says otherwise.
    """
    from graft.cli import policy_facts

    assumed = _assumed(risk, author_kind, card, labels)
    try:
        decision = policy_facts.of_range(repo, range_, file, assumed)
    except GraftError as error:
        _fail(str(error))
    _show(decision, as_json=as_json)


@policy.command()
@click.argument("pull", metavar="OWNER/REPO#N")
@click.option("--file", type=click.Path(path_type=Path), help="Use this policy instead of the base branch's.")
@what_if
def simulate(
    pull: str,
    file: Path | None,
    risk: str | None,
    author_kind: str | None,
    card: str,
    labels: tuple[str, ...],
    as_json: bool,
) -> None:
    """Say what a policy would decide about a pull request on GitHub. Reads only.

    GITHUB_TOKEN is a token that may read the repository; GITHUB_API_URL names another GitHub.
    """
    from graft.cli import policy_simulate

    assumed = _assumed(risk, author_kind, card, labels)
    try:
        decision = asyncio.run(policy_simulate.of_pull(pull, file, assumed))
    except GraftError as error:
        _fail(str(error))
    _show(decision, as_json=as_json)


def _assumed(risk: str | None, author_kind: str | None, card: str, labels: tuple[str, ...]) -> Assumed:
    from graft.cli.policy_facts import Assumed

    return Assumed(risk=Risk(risk) if risk else None, author_kind=author_kind, card=Card(card), labels=labels)


# ------------------------------------------------------------------------------------------------- printing


def _exit_without_policy(loaded: LoadedPolicy, *, as_json: bool) -> NoReturn:
    invalid = loaded.status is Status.INVALID
    if as_json:
        errors = [msgspec.structs.asdict(problem) for problem in loaded.problems]
        if not invalid:
            errors = [{"line": None, "column": None, "path": None, "message": _why_none(loaded)}]
        click.echo(json.dumps({"valid": False, "errors": errors}, indent=2))
    elif invalid:
        for problem in loaded.problems:
            click.echo(f"{loaded.path}:{problem}")
    else:
        click.echo(_why_none(loaded), err=True)
    sys.exit(EXIT_INVALID if invalid else EXIT_UNREADABLE)


def _why_none(loaded: LoadedPolicy) -> str:
    return f"{named(loaded)} {why_none(loaded)}"


def _show(decision: Decision, *, as_json: bool) -> None:
    """Print a decision. Exits with 1 or 2, as `check`, where there is no policy to apply."""
    verdict = decision.verdict
    if verdict is None:
        _exit_without_policy(decision.loaded, as_json=as_json)
    if as_json:
        click.echo(json.dumps(_as_json(decision, verdict), indent=2))
        return
    people = ", ".join((*verdict.then.teams, *verdict.then.users))
    click.echo(f"{verdict.outcome}{f' by {verdict.then.count} of {people}' if people else ''}")
    if verdict.then.message:
        click.echo(f"  {_visible(verdict.then.message)}")
    for result in verdict.results:
        facts = "; ".join(_visible(fact.plain()) for fact in result.facts)
        click.echo(
            f"{result.index + 1:3} {_STATES[result.state]:<13} {result.name}{f': {facts}' if facts else ''}"
        )
    if verdict.rule is None:
        click.echo(
            "    default       no rule matched" if verdict.results else "    default       there are no rules"
        )
    for guard in verdict.guards:
        click.echo(f"    never approve {_visible(guard.plain())}")


_STATES = {State.MATCHED: "matched", State.NOT_MATCHED: "not matched", State.NOT_EVALUATED: "not evaluated"}


def _as_json(decision: Decision, verdict: Verdict) -> dict[str, Any]:
    return {
        "outcome": verdict.outcome,
        "chosen": verdict.chosen.outcome,
        "rule": verdict.rule,
        "users": verdict.then.users,
        "teams": verdict.then.teams,
        "count": verdict.then.count,
        "message": verdict.then.message,
        "rules": [
            {"name": r.name, "state": r.state, "facts": [fact.plain() for fact in r.facts]}
            for r in verdict.results
        ],
        "guards": [{"code": guard.code, "text": guard.plain()} for guard in verdict.guards],
        "policy_hash": decision.loaded.policy.hash if decision.loaded.policy is not None else None,
        "facts_hash": decision.facts_hash,
    }


def _visible(text: str) -> str:
    """Text from outside for a terminal: no control or format character reaches it as such."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _fail(message: str) -> NoReturn:
    click.echo(message, err=True)
    sys.exit(EXIT_UNREADABLE)
