"""`graft eval`: measure intent cards on cases with a known truth, compare runs, look at real histories.

Exits with 0 when all is well, 1 when a threshold is passed or a case is wrong, 2 when the command could not be done.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from graft import evaluation, llm
from graft.errors import GraftError
from graft.git import Repository
from graft.intent import Models

F = TypeVar("F", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)
EXIT_BEYOND = 1
EXIT_FAILED = 2


@contextmanager
def _reported() -> Iterator[None]:
    """A failure becomes one line and a status."""
    try:
        yield
    except GraftError as error:
        click.echo(f"graft eval: {error}", err=True)
        sys.exit(EXIT_FAILED)


def _progress() -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def _model_options(function: F) -> F:
    for option in reversed(
        (
            click.option("--cases", "directory", type=PATH, default="eval/cases", show_default=True),
            click.option(
                "--only", multiple=True, help="Only cases of this name or kind; may be given several times."
            ),
            click.option(
                "--fast", default=llm.FAST_MODEL, show_default=True, help="Model for trivial floors."
            ),
            click.option("--strong", default=llm.STRONG_MODEL, show_default=True, help="Model for all else."),
            click.option(
                "--budget", type=float, default=10.0, show_default=True, help="Most dollars for this run."
            ),
            click.option("--at-once", type=click.IntRange(1, 64), default=4, show_default=True),
        )
    ):
        function = option(function)
    return function


@click.group("eval")
def eval_() -> None:
    """Measure intent cards on cases with a known truth."""


@eval_.command()
@click.option(
    "--model",
    default="scripted",
    show_default=True,
    help="scripted[:WRITER[+VERIFIER]], replay:FILE, anthropic or none.",
)
@_model_options
@click.option("--judge", metavar="MODEL", help="Ask this model about claims that no keyword fits.")
@click.option("--out", type=PATH, help="Save the run.")
@click.option("--thresholds", type=PATH, help="Exit with 1 where a limit of this file is passed.")
@click.option("--explain", is_flag=True, help="Say for each case which claims fitted, and by which words.")
def run(
    model: str, directory: Path, only: tuple[str, ...], fast: str, strong: str, budget: float, at_once: int,
    judge: str | None, out: Path | None, thresholds: Path | None, explain: bool,
) -> None:  # fmt: skip
    """Evaluate a model on the case set and print its scores."""
    with _reported():
        limits = evaluation.load_thresholds(thresholds) if thresholds else None
        subjects = evaluation.subjects(model, models=Models(fast=fast, strong=strong), connect=_connect)
        if out is not None and len(subjects) != 1:
            raise click.UsageError(f"--out holds one run: name one of {', '.join(s.name for s in subjects)}")
        asked = evaluation.Judge(_connect(), judge) if judge else None
        made = _made(subjects, _chosen(directory, only), budget, at_once, asked)
    for each in made:
        if out is not None:
            evaluation.save_run(out, each.run)
        if explain:
            for case in each.run.cases:
                click.echo("\n  ".join([f"{each.run.subject} {case.case}", *case.explained]))
    click.echo(evaluation.score_table({_column(each): each.run.totals for each in made}))
    for each in made:
        _say_what_was_missing(each)
    broken = [
        f"{_column(each)}: {text}" for each in made for text in (limits.of_run(each.run) if limits else ())
    ]
    _exit_beyond(broken)


@eval_.command()
@click.option("--model", required=True, help="scripted:WRITER[+VERIFIER] or anthropic.")
@_model_options
@click.argument("out", type=PATH)
def record(
    model: str,
    directory: Path,
    only: tuple[str, ...],
    fast: str,
    strong: str,
    budget: float,
    at_once: int,
    out: Path,
) -> None:
    """Evaluate a model and save its answers to OUT, to be replayed with --model replay:OUT."""
    with _reported():
        subjects = evaluation.subjects(model, models=Models(fast=fast, strong=strong), connect=_connect)
        if len(subjects) != 1:
            raise click.UsageError(
                f"a recording holds one model: name one of {', '.join(s.name for s in subjects)}"
            )
        (made,) = _made(subjects, _chosen(directory, only), budget, at_once, None)
        evaluation.save_recording(out, made.header, made.recorded)
    click.echo(evaluation.score_table({_column(made): made.run.totals}))
    _say_what_was_missing(made)


@eval_.command()
@click.argument("a", type=PATH)
@click.argument("b", type=PATH)
@click.option("--thresholds", type=PATH, default="eval/thresholds.yaml", show_default=True)
def compare(a: Path, b: Path, thresholds: Path) -> None:
    """Print how run B differs from run A. Exits with 1 where B is worse than the thresholds allow."""
    with _reported():
        limits = evaluation.load_thresholds(thresholds)
        second = evaluation.load_run(b)
        found = evaluation.compare(evaluation.load_run(a), second)
    click.echo(evaluation.comparison_text(found))
    _exit_beyond([*limits.of_run(second), *limits.of_comparison(found)])


@eval_.command()
@click.option("--cases", "directory", type=PATH, default="eval/cases", show_default=True)
@click.option("--add", metavar="SLUG", help="Start a new case from --from.")
@click.option("--from", "range_", metavar="BASE..HEAD", help="The change that the new case is about.")
@click.option("--repo", type=PATH, default=".", show_default=True, help="The repository that holds it.")
def cases(directory: Path, add: str | None, range_: str | None, repo: Path) -> None:
    """List the cases and check them; exits with 1 where one is wrong. Or start a new one."""
    with _reported():
        if add is not None:
            if range_ is None:
                raise click.UsageError("--add needs --from BASE..HEAD")
            evaluation.write_draft(directory / add, repo, range_)
            click.echo(f"{directory / add}: fill in case.yaml, then run graft eval cases")
            return
        found = evaluation.load_cases(directory)
    wrong = [f"{case.slug}: {problem}" for case in found for problem in evaluation.problems(case)]
    click.echo(evaluation.case_table(found))
    click.echo(f"\n{len(found)} cases")
    _exit_beyond(wrong)


@eval_.command()
@click.argument("repo", type=PATH)
@click.option("--revision", default="HEAD", show_default=True, help="The branch whose history is read.")
@click.option(
    "--most", type=click.IntRange(1), default=2_000, show_default=True, help="The newest changes, at most."
)
@click.option("--out", type=PATH, help="Where the findings go; a file that is there is continued.")
def mine(repo: Path, revision: str, most: int, out: Path | None) -> None:
    """Say of every change that landed in a local repository what the rules would have said.

    The file has SHAs, numbers, codes and paths, no message and no content. A run that was stopped goes on where it
    ended; a change that cannot be read is counted and does not stop it.
    """
    path = out or Path("var/eval") / f"{repo.resolve().name}.jsonl"
    with _reported():
        repository = Repository.open(repo)
        with _progress() as progress:
            task = progress.add_task("reading history", total=None)
            evaluation.mine(
                repository,
                path,
                revision=revision,
                most=most,
                workers=os.cpu_count() or 2,
                started=lambda done, of: progress.update(task, completed=done, total=of),
                done=lambda _: progress.advance(task),
            )
        report = evaluation.report(evaluation.read_mined(path))
    click.echo(evaluation.mined_text(report))
    click.echo(f"\n{path}")


def _chosen(directory: Path, only: tuple[str, ...]) -> list[evaluation.Case]:
    found = [c for c in evaluation.load_cases(directory) if not only or c.slug in only or c.kind in only]
    if not found:
        raise evaluation.CaseError("--only fits no case: graft eval cases lists the kinds", reason="no_cases")
    return found


def _made(
    subjects: Sequence[evaluation.Subject],
    chosen: Sequence[evaluation.Case],
    budget: float,
    at_once: int,
    judge: evaluation.Judge | None,
) -> list[evaluation.Made]:
    async def all_of_them(progress: Progress) -> list[evaluation.Made]:
        made = []
        for subject in subjects:
            task = progress.add_task(subject.name, total=len(chosen))

            def advance(_: evaluation.Case, task: TaskID = task) -> None:
                progress.advance(task)

            is_live = subject.is_paid and not isinstance(subject, evaluation.Replay)
            money = evaluation.Budget(Decimal(str(budget)) if is_live else None)
            made.append(
                await evaluation.run(
                    chosen, subject, at_once=at_once, budget=money, judge=judge, done=advance
                )
            )
        return made

    with _progress() as progress:
        return asyncio.run(all_of_them(progress))


def _connect() -> llm.LlmClient:
    keys = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
    if not any(os.environ.get(key) for key in keys):
        click.echo(f"graft eval: no key: set {' or '.join(keys)}", err=True)
        sys.exit(EXIT_FAILED)
    return llm.connect(from_environment=True)


def _column(made: evaluation.Made) -> str:
    return made.run.subject.removeprefix("scripted:").removesuffix("+honest")


def _say_what_was_missing(made: evaluation.Made) -> None:
    if made.spent_usd:
        click.echo(f"\nspent ${made.spent_usd:.2f}")
    replayed = made.run.replayed
    if replayed is not None and (replayed.stale or replayed.missing):
        click.echo(
            f"\nof {replayed.asked} answers {replayed.stale} were given to another prompt and {replayed.missing} are "
            "not recorded: record again to measure the prompt itself"
        )


def _exit_beyond(broken: list[str]) -> None:
    if broken:
        click.echo("\n" + "\n".join(broken), err=True)
        sys.exit(EXIT_BEYOND)
