"""`graftctl`: what a person on call asks a running Graft, over NATS.

Exit codes: 0 done, 1 the daemon refused (or `status --check` found something), 2 the call or its settings are
wrong, 3 nobody answered.
"""

from __future__ import annotations

import asyncio
import functools
import os
import re
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Concatenate, ParamSpec

import click
import msgspec
from click.shell_completion import CompletionItem, get_completion_class

from graft import __version__, control
from graft.cli import broker
from graft.cli.asking import MISUSED, Asker, Unanswered, asking
from graft.errors import ConfigError

P = ParamSpec("P")

DRAIN_SECONDS = 60.0
PULL = re.compile(
    r"(?:https?://[^/]+/)?([A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100})(?:#|/pull/)([0-9]{1,9})/?\Z", re.ASCII
)


class PullName(click.ParamType[control.ChangeName]):
    """`OWNER/REPO#NUMBER`, or the URL of a pull request."""

    name = "pull request"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> control.ChangeName:
        if isinstance(value, control.ChangeName):
            return value
        found = PULL.match(str(value))
        if found is None or int(found[2]) == 0:
            self.fail("write it as OWNER/REPO#NUMBER, or give the pull request's URL", param, ctx)
        return control.ChangeName(repository=found[1], number=int(found[2]))


def _contexts(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in broker.names(os.environ) if name.startswith(incomplete)]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--server", "-s", metavar="URL", help="NATS server, several separated by commas.  [NATS_URL]")
@click.option("--creds", metavar="FILE", help="NATS credentials file.  [NATS_CREDS]")
@click.option(
    "--context",
    metavar="NAME",
    shell_complete=_contexts,
    help="Context of the nats tool (default: selected one).",
)
@click.option(
    "--prefix", metavar="WORD", help="Graft's subject prefix, `graft` by default.  [GRAFT_NATS_PREFIX]"
)
@click.option(
    "--timeout", type=click.FloatRange(0.1, 600), metavar="SECONDS", help="How long to wait for an answer."
)
@click.version_option(__version__, prog_name="graftctl")
@click.pass_context
def main(ctx: click.Context, /, **options: Any) -> None:
    """Ask a running Graft what it does, why, and have it do something again.

    Any replica answers. The broker is chosen by --server, --context, NATS_URL, or the selected context of the
    nats tool, in this order.
    """
    ctx.obj = options


Command = Callable[Concatenate[Asker, P], Awaitable[None]]


def asks(command: Command[P]) -> Callable[P, None]:
    """Run a command with a connection; a failure becomes a line and an exit code."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        options = dict(click.get_current_context().find_root().obj)
        seconds = options.pop("timeout")

        async def connected() -> None:
            async with asking(broker.choose(os.environ, **options), seconds=seconds) as asker:
                await command(asker, *args, **kwargs)

        _finish(connected())

    return run


def _finish(work: Coroutine[Any, Any, None]) -> None:
    try:
        asyncio.run(work)
    except Unanswered as error:
        click.echo(f"graftctl: {error}", err=True)
        sys.exit(error.code)
    except ConfigError as error:
        for problem in error.problems:
            click.echo(f"graftctl: {problem}", err=True)
        sys.exit(MISUSED)
    except KeyboardInterrupt:
        sys.exit(130)


as_json = click.option("--json", "json_", is_flag=True, help="The whole answer as JSON, for programs.")


def _print(answer: Any, json_: bool, render: str) -> None:
    """Show an answer; rich is loaded only where somebody reads."""
    if json_:
        click.echo(msgspec.json.encode(answer))
        return
    from graft.cli import tables

    tables.console().print(getattr(tables, render)(answer))


# --------------------------------------------------------------------------------------------------------- reading


@main.command()
@as_json
@click.option("--check", is_flag=True, help="Exit with 1 when something needs attention.")
@asks
async def status(asker: Asker, json_: bool, check: bool) -> None:
    """Replicas, partitions, backlog, work, and GitHub's rate limits."""
    answer = await asker.ask(control.STATUS, control.Nothing())
    _print(answer, json_, "status")
    if check:
        from graft.cli import tables

        if tables.attention(answer):
            raise Unanswered("something needs attention", 1)


@main.command()
@click.argument("match", required=False)
@click.option("--state", type=click.Choice(["running", "due", "waiting", "parked", "dead"]))
@click.option(
    "--sort", type=click.Choice(["due", "name", "attempts", "age"]), default="due", show_default=True
)
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True)
@as_json
@asks
async def ls(asker: Asker, match: str | None, state: Any, sort: Any, limit: int, json_: bool) -> None:
    """Actors that have work or run. MATCH is part of a repository's name or of an address."""
    question = control.ListActors(match=match, state=state, sort=sort, limit=limit)
    _print(await asker.ask(control.ACTORS, question), json_, "actors")


@main.command()
@click.argument("pull", type=PullName(), metavar="OWNER/REPO#NUMBER")
@as_json
@asks
async def show(asker: Asker, pull: control.ChangeName, json_: bool) -> None:
    """Everything known of a pull request, and what happens with it now."""
    _print(await asker.ask(control.SHOW, pull), json_, "change")


@main.command()
@click.argument("pull", type=PullName(), metavar="OWNER/REPO#NUMBER")
@as_json
@asks
async def why(asker: Asker, pull: control.ChangeName, json_: bool) -> None:
    """The decisions about a pull request, with the facts behind them.

    graft.yaml is read again from GitHub for the names of its rules.
    """
    _print(await asker.ask(control.WHY, pull), json_, "reasons")


@main.command()
@click.option("--match", metavar="TEXT", help="Only signals in which this stands.")
@click.option("--count", "-n", type=click.IntRange(1), help="End after so many.")
@as_json
@asks
async def watch(asker: Asker, match: str | None, count: int | None, json_: bool) -> None:
    """Live events, one a line, until Ctrl-C: what was published, decided, voted."""
    from graft.cli import tables

    enough = asyncio.Event()
    seen = 0

    def hear(name: str, facts: dict[str, Any]) -> None:
        nonlocal seen
        text = " ".join(f"{key}={tables.plain(value)}" for key, value in facts.items())
        if match and match not in f"{name} {text}":
            return
        if json_:
            click.echo(msgspec.json.encode({"signal": name, **facts}))
        else:
            click.echo(f"{tables.plain(name)}  {text}")
        seen += 1
        if count is not None and seen >= count:
            enough.set()

    await asker.hear(hear)
    waiting = [asyncio.ensure_future(enough.wait()), asyncio.ensure_future(asker.gone())]
    done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    for task in done:
        task.result()


@main.command()
@click.option("--interval", type=click.FloatRange(0.2, 60), default=1.0, show_default=True, metavar="SECONDS")
@click.option("--count", "-n", type=click.IntRange(1), help="End after so many pictures.")
@asks
async def top(asker: Asker, interval: float, count: int | None) -> None:
    """A live view of status and actors, until Ctrl-C."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from graft.cli import tables

    shown = 0
    with Live(console=tables.console(), auto_refresh=False, transient=False) as live:
        while True:
            answer = await asker.ask(control.STATUS, control.Nothing())
            actors = await asker.ask(control.ACTORS, control.ListActors(limit=20))
            live.update(Group(tables.status(answer), Text(), tables.actors(actors)), refresh=True)
            shown += 1
            if count is not None and shown >= count:
                return
            await asyncio.sleep(interval)


@main.command()
@click.argument("match", required=False)
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True)
@as_json
@asks
async def budget(asker: Asker, match: str | None, limit: int, json_: bool) -> None:
    """What models cost today, by repository."""
    question = control.BudgetQuestion(match=match, limit=limit)
    _print(await asker.ask(control.BUDGET, question), json_, "budget")


@main.command()
@as_json
@asks
async def config(asker: Asker, json_: bool) -> None:
    """The settings in force and where they come from; secrets are shown as stars."""
    _print(await asker.ask(control.CONFIG, control.Nothing()), json_, "settings")


# ---------------------------------------------------------------------------------------------------------- acting


@main.command()
@click.argument("pull", type=PullName(), metavar="OWNER/REPO#NUMBER")
@click.option(
    "--step",
    "steps",
    multiple=True,
    type=click.Choice(control.STEPS),
    help="Only this step; may be given several times.",
)
@as_json
@asks
async def rerun(asker: Asker, pull: control.ChangeName, steps: tuple[Any, ...], json_: bool) -> None:
    """Have a pull request looked at again, whether or not anything has changed.

    A step is forced to run again once a minute at most.
    """
    question = control.Rerun(repository=pull.repository, number=pull.number, steps=steps or control.STEPS)
    answer = await asker.ask(control.RERUN, question)
    if json_:
        click.echo(msgspec.json.encode(answer))
        return
    revived = f"; {answer.revived} of them had failed for good" if answer.revived else ""
    click.echo(f"asked {answer.address} for {', '.join(answer.needs)}{revived}")
    click.echo(f"follow it with: graftctl show '{pull.repository}#{pull.number}'")


@main.group()
def dead() -> None:
    """Work that failed for good."""


@dead.command("ls")
@click.argument("match", required=False)
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True)
@as_json
@asks
async def dead_ls(asker: Asker, match: str | None, limit: int, json_: bool) -> None:
    """List it, the latest first."""
    _print(await asker.ask(control.DEAD, control.ListDead(match=match, limit=limit)), json_, "dead")


@dead.command("show")
@click.argument("actor")
@as_json
@asks
async def dead_show(asker: Asker, actor: str, json_: bool) -> None:
    """What failed at an ACTOR (an address, or OWNER/REPO#NUMBER), with its metadata."""
    rows = await _dead_at(asker, actor)
    _print(rows, json_, "dead_one")


async def _dead_at(asker: Asker, actor: str) -> tuple[control.DeadRow, ...]:
    answer = await asker.ask(control.DEAD, control.ListDead(match=actor, limit=1000))
    wanted = actor.lower()
    rows = tuple(row for row in answer.rows if wanted in (row.address, row.name.lower()))
    if not rows:
        raise Unanswered(f"{actor} has no dead work; see `graftctl dead ls`", 1)
    return rows


async def _picked(asker: Asker, actor: str | None, need: str | None, every: bool) -> control.PickDead:
    if (actor is None) is not every:
        raise click.UsageError("give an ACTOR or --all")
    if actor is None:
        return control.PickDead()
    rows = await _dead_at(asker, actor)
    return control.PickDead(address=rows[0].address, need=need)


def _show_picked(answer: control.Picked, what: str, json_: bool) -> None:
    if json_:
        click.echo(msgspec.json.encode(answer))
        return
    for address, need in answer.rows:
        click.echo(f"{what} {address} {need}")
    if not answer.rows:
        click.echo("nothing failed for good")


@dead.command("retry")
@click.argument("actor", required=False)
@click.argument("need", required=False)
@click.option("--all", "every", is_flag=True, help="Everything that failed for good.")
@as_json
@asks
async def dead_retry(asker: Asker, actor: str | None, need: str | None, every: bool, json_: bool) -> None:
    """Try it again, its failed tries forgotten."""
    question = await _picked(asker, actor, need, every)
    _show_picked(await asker.ask(control.RETRY, question), "due again:", json_)


@dead.command("drop")
@click.argument("actor", required=False)
@click.argument("need", required=False)
@click.option("--all", "every", is_flag=True, help="Everything that failed for good.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@as_json
@asks
async def dead_drop(
    asker: Asker, actor: str | None, need: str | None, every: bool, yes: bool, json_: bool
) -> None:
    """Forget it; only a new event or a re-run asks for it again."""
    question = await _picked(asker, actor, need, every)
    if not yes:
        click.confirm(
            f"Drop {question.need or 'all dead work'} of {question.address or 'all actors'}?", abort=True
        )
    _show_picked(await asker.ask(control.DROP, question), "dropped", json_)


@main.command()
@click.argument("guids", nargs=-1)
@click.option("--missing", is_flag=True, help="Only those that never arrived.")
@click.option("--redeliver", is_flag=True, help="Have GitHub send the missing ones, or GUIDS, again.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="Attempts to read."
)
@as_json
@asks
async def deliveries(
    asker: Asker, guids: tuple[str, ...], missing: bool, redeliver: bool, limit: int, json_: bool
) -> None:
    """GitHub's own log of webhook deliveries, compared with what arrived here."""
    if guids and not redeliver:
        raise click.UsageError("GUIDS go with --redeliver")
    if not redeliver:
        question = control.ListDeliveries(limit=limit, missing=missing)
        _print(await asker.ask(control.DELIVERIES, question), json_, "deliveries")
        return
    answer = await asker.ask(control.REDELIVER, control.Redeliver(guids=guids, limit=limit))
    if json_:
        click.echo(msgspec.json.encode(answer))
        return
    for guid in answer.guids:
        click.echo(f"asked for {guid}")
    if not answer.guids:
        click.echo("nothing is missing")


def _replicas(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ask for the replicas' names; no answer completes nothing."""
    options = {name: ctx.find_root().params.get(name) for name in ("server", "creds", "context", "prefix")}

    async def names() -> list[str]:
        async with asking(broker.choose(os.environ, **options), seconds=1.0) as asker:
            answer = await asker.ask(control.STATUS, control.Nothing())
            return [one.replica for one in answer.replicas]

    try:
        return [CompletionItem(name) for name in asyncio.run(names()) if name.startswith(incomplete)]
    except (Unanswered, ConfigError):
        return []


@main.command()
@click.argument("replica", shell_complete=_replicas)
@click.option("--undo", is_flag=True, help="Have it take part again.")
@click.option("--force", is_flag=True, help="Also when nobody else is there to take over.")
@click.option("--no-wait", is_flag=True, help="Do not wait until it holds nothing any more.")
@as_json
@asks
async def drain(asker: Asker, replica: str, undo: bool, force: bool, no_wait: bool, json_: bool) -> None:
    """Have a REPLICA hand its work to the others; it goes on taking webhooks.

    Ends with 0 when the replica holds nothing any more and may be stopped.
    """
    answer = await asker.ask(control.DRAIN, control.Drain(replica=replica, undo=undo, force=force))
    deadline = time.monotonic() + (0 if undo or no_wait else DRAIN_SECONDS)
    while (answer.partitions or answer.running) and time.monotonic() < deadline:
        await asyncio.sleep(0.25)
        answer = await asker.ask(control.DRAIN, control.Drain(replica=replica, force=True))
    if json_:
        click.echo(msgspec.json.encode(answer))
    elif undo:
        click.echo(f"{replica} takes part again")
    else:
        click.echo(f"{replica} holds {answer.partitions} partitions and runs {answer.running} actors")
    if not (undo or no_wait) and (answer.partitions or answer.running):
        raise Unanswered(f"{replica} still has work after {DRAIN_SECONDS:g} s; ask again, or look at `ls`", 1)


@main.command()
@click.argument("count", type=click.IntRange(1, 1024))
@as_json
@asks
async def partitions(asker: Asker, count: int, json_: bool) -> None:
    """Deal the work out in COUNT partitions, while everything runs.

    At least one per replica; some more even out the load. What runs at this moment is interrupted and done again.
    """
    answer = await asker.ask(control.RESIZE, control.Resize(partitions=count))
    if json_:
        click.echo(msgspec.json.encode(answer))
    else:
        click.echo(
            f"{answer.partitions} partitions (before: {answer.before}); the work of {answer.moved} actors moved"
        )


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a SHELL's completion script: `eval "$(graftctl completion bash)"`."""
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(main, {}, "graftctl", "_GRAFTCTL_COMPLETE").source())
