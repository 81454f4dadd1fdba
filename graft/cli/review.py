"""`graft review`: what Graft says about a pull request, for any range of a local git repository.

Runs with an empty environment and reaches nothing: no server, database, network or key. `graft.yaml` and `.intent/` are
read as for a pull request: BASE says what holds, HEAD only what becomes of it. There is no model, so there is no intent
card, and the final risk is at least `logic`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import click
import msgspec

from graft import intent, policy, provenance, records
from graft.changes import Snapshot
from graft.cli.policy_sources import LocalCommit
from graft.errors import GraftError
from graft.git import Entry, Range, Repository

RECORDS = ".intent"
EXIT_FAILED = 2


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """Everything found out about a range. The card holds the floor and the final risk."""

    range: Range
    snapshot: Snapshot
    provenance: provenance.Provenance
    card: intent.Card
    decision: policy.Decision
    records: records.RecordsReview | None


def analyse(repository: Repository, text: str) -> Review:
    """Review `BASE..HEAD`. Raises `GitError`."""
    range_ = repository.resolve(text)
    snapshot = repository.snapshot(range_)
    base, head = _Commit(repository, range_.base), _Commit(repository, range_.head)
    loaded, intents = asyncio.run(_rules(base, head, snapshot))
    sensitive = loaded.policy.sensitive_paths if loaded.policy is not None else ()
    card = intent.card_without_model(
        intent.CardInputs(
            snapshot=snapshot, sensitive=sensitive, records=intents.protected if intents else ()
        ),
        reason="no_model",
    )
    base_branch, head_branch = _branches(text)
    who = provenance.resolve(snapshot.commits, truncated=snapshot.commits_truncated, branch=head_branch)
    facts = policy.Facts(
        files=snapshot.files,
        incomplete=snapshot.incomplete,
        author_kind=who.author_kind,
        source=who.source,
        agents=who.agents,
        models=who.models,
        risk=card.risk,
        card=policy.Card.MISSING,
        injection_suspected=bool(card.suspicions),
        base_ref=base_branch,
        task_linked=bool(who.tasks),
        records=intents.status if intents else "none",
    )
    return Review(
        range=range_,
        snapshot=snapshot,
        provenance=who,
        card=card,
        decision=policy.decide(loaded, facts),
        records=intents,
    )


async def _rules(
    base: _Commit, head: _Commit, snapshot: Snapshot
) -> tuple[policy.LoadedPolicy, records.RecordsReview | None]:
    return await policy.load(base), await records.read(base, head, snapshot, records.Memory())


class _Commit(LocalCommit):
    """A commit of which all that is looked for at the root is asked of git at once."""

    def __init__(self, repository: Repository, commit: str) -> None:
        super().__init__(repository, commit)
        self._known: dict[str, Entry] = {}

    async def entries(self, paths: Iterable[str]) -> Mapping[str, Entry]:
        if not self._known:
            self._known = dict(await super().entries((*policy.CANDIDATES, RECORDS)))
        return {path: self._known[path] for path in paths}


def _branches(text: str) -> tuple[str, str]:
    """What stands for the base and the head branch: the two names as written, without that of a remote."""
    base, _, head = text.partition("..")
    names = (base, head.removeprefix("."))
    base, head = (n.removeprefix("refs/heads/").removeprefix("origin/") or "HEAD" for n in names)
    return base, head


def _print_schema(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted:
        from graft.cli.review_document import json_schema

        click.echo(json.dumps(json_schema(), indent=2))
        context.exit()


@click.command()
@click.argument("range_", metavar="BASE..HEAD")
@click.option(
    "--repo", default=".", type=click.Path(path_type=Path), help="The git repository; else this directory."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON Schema of that document.",
)
def review(range_: str, repo: Path, as_json: bool) -> None:
    """Analyse the commits that HEAD has and BASE has not, as a pull request from HEAD into BASE.

    What graft.yaml and .intent/ say at BASE holds. Exits with 0 when the review was made, 2 when it could not be.
    """
    try:
        made = analyse(Repository.open(repo), range_)
    except GraftError as error:
        click.echo(f"graft review: {error}", err=True)
        sys.exit(EXIT_FAILED)
    if as_json:
        from graft.cli.review_document import document

        click.echo(msgspec.json.format(msgspec.json.encode(document(made)), indent=2))
    else:
        from graft.cli.review_text import plain

        click.echo(plain(made).encode(), nl=False)  # as bytes: whatever the terminal's encoding
