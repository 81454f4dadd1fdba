"""Writing what was found out to GitHub, under the change's publish lease.

The lease is a token in the change's row, taken by compare-and-set and good for ten seconds. No connection and
no lock is held while a request is under way. Under the lease the pull request is read once more: it must be
open, on this head and on this base. The clock is looked at before each request, and no request is begun that
could outlast the lease. What was written is committed by compare-and-set on the token, together with the
needs it answers. Whoever wrote something and cannot commit it asks for a repair, so that the worst outcome is
a stale write that stands for seconds.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from uuid import UUID, uuid4

import msgspec

from actors.run import Busy, Run
from actors.services import Services
from graft.database import UNAVAILABLE, Connection
from graft.github import AmbiguousWrite, Installation, checks, comment, pulls
from graft.store import cards, changes, partitions, work
from graft.store.changes import PUBLISH_SECONDS, Change
from graft.store.partitions import LostPartition
from graft.triggers import pull_address

# A request may take this long (see the client's `timeout`), so none is begun later than that before the end.
REQUEST_SECONDS = 5.0
# After a create of unknown outcome GitHub's list may lag; look again when it has caught up.
VERIFY_SECONDS = 20.0


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A check run to show; with `only_update`, where this head has one of that name already."""

    name: str
    output: checks.Output
    external_id: str
    actions: tuple[checks.Action, ...] = ()
    only_update: bool = False


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """Everything to be shown of one head now.

    `sections` holds the sections that were computed (`None` removes one); others stay as they are. `thorough`
    reads comment and check runs again instead of trusting what is stored. `renew` names checks to write even
    if they have not changed. `display` is what the comment shows of the card: (card, status).
    """

    head_sha: str
    base_ref: str
    sections: Mapping[str, str | None]
    footer: str
    checks: tuple[Check, ...]
    thorough: bool = False
    renew: frozenset[str] = frozenset()
    display: tuple[UUID | None, str] | None = None
    expect_open: bool = True


class Overtaken(Busy):
    """The pull request has moved on: another head, another base, closed, or something newer was published."""

    def __init__(self) -> None:
        super().__init__("the pull request has moved on", reason="overtaken", retry_after=0.5)


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """What was published as `seq`, and what GitHub holds since: the comment and the check runs of that head. Without
    these it still tells whether publishing again would change anything."""

    seq: int
    digest: bytes
    comment: comment.Comment | None = None
    runs: tuple[checks.CheckRun, ...] | None = None


class _Sent(msgspec.Struct, kw_only=True):
    """What was written so far, and the check runs that were found and made."""

    comment: comment.Written | None = None
    runs: dict[str, changes.CheckRun] = msgspec.field(default_factory=dict)
    listed: tuple[checks.CheckRun, ...] | None = None
    writes: int = 0


class _Moved(Exception):
    """Something was published since, or is being published."""


Also = Callable[[Connection], Awaitable[None]]


async def publish(
    services: Services,
    run: Run,
    change: Change,
    installation: Installation,
    full_name: str,
    publication: Publication,
    *,
    done: tuple[str, ...],
    also: Also | None = None,
    earlier: Published | None = None,
) -> Published:
    """Show `publication`, and mark the needs `done` in the commit of what was shown.

    `earlier` is what this process published of the change last. Where that is the same and still the last one, nothing
    is asked of GitHub; where it was published by this same run, what it left is not read again.

    Raises Overtaken when this state is not the newest any more, Busy while another publisher is at it,
    LostPartition when the partition has changed hands, and the client's errors.
    """
    digest = _digest(publication)
    if earlier is not None and earlier.digest == digest and not (publication.thorough or publication.renew):
        try:
            return await _confirm(run, change, earlier, done, also)
        except _Moved:
            pass
    async with services.pool.acquire() as connection:
        stored = await changes.check_runs(connection, change.id, publication.head_sha)
        mine = await cards.ids(connection, change.id) | {str(change.id)}
    shown = [c for c in publication.checks if not c.only_update or c.name in stored]
    wanted = [c for c in shown if _differs(c, stored.get(c.name), publication)]
    run.say("waiting for a write permit", waits=True)
    await installation.write_permit(1 + len(wanted))

    token = uuid4()
    clock = asyncio.get_running_loop().time
    began = clock()
    async with services.pool.acquire() as connection, connection.transaction():
        leased = await changes.acquire(connection, change, token, section_seq=run.seq, lease=run.lease)
    if leased is None:
        raise await _refusal(services, run, change)
    if leased.abandoned:
        publication = msgspec.structs.replace(publication, thorough=True)
        wanted = shown
    known = earlier if earlier is not None and earlier.seq == run.seq == leased.change.section_seq else None
    if known is not None and (publication.thorough or publication.renew):
        known = None

    def guard() -> None:
        if clock() > began + PUBLISH_SECONDS - REQUEST_SECONDS:
            raise Busy("the publish lease is running out", reason="lease_running_out", retry_after=1.0)

    run.say("publishing")
    sent = _Sent(listed=known.runs if known else None)
    failure: Exception | None = None
    async with _looked_after(services, run, change):
        try:
            guard()
            _check_live(await pulls.read_pull(installation, full_name, change.pr_number), publication)
            sent.comment = await comment.upsert(
                installation,
                full_name,
                change.pr_number,
                services.author,
                sections=publication.sections,
                footer=publication.footer,
                stored_id=leased.change.graft_comment_id,
                thorough=publication.thorough,
                last=known.comment if known else None,
                guard=guard,
            )
            if sent.comment is not None:
                sent.writes += sent.comment.written
                await comment.delete_duplicates(installation, full_name, sent.comment.duplicates, guard=guard)
                sent.writes += len(sent.comment.duplicates)
            if wanted:
                await _write_checks(
                    services, installation, full_name, change, publication, wanted, stored, mine, guard, sent
                )
        except Exception as error:  # noqa: BLE001 - committed or repaired below, then raised
            failure = error
        await _settle(services, run, leased, token, publication, sent, failure, done, also)
    return Published(
        seq=run.seq,
        digest=digest,
        comment=sent.comment.comment if sent.comment else None,
        runs=sent.listed,
    )


@asynccontextmanager
async def _looked_after(services: Services, run: Run, change: Change) -> AsyncIterator[None]:
    """Ask for a repair where the run is ended on the way: a replica that was stopped until it had lost its partition
    may have sent something just before it found out."""
    try:
        yield
    except asyncio.CancelledError:
        with suppress(*UNAVAILABLE):
            await services.ask_now(_repair(services, run, change, delay=REQUEST_SECONDS))
        raise


def _digest(publication: Publication) -> bytes:
    """The same for publications that show the same."""
    shown = msgspec.structs.replace(publication, thorough=False, renew=frozenset())
    return hashlib.blake2b(msgspec.json.encode(shown, order="deterministic"), digest_size=16).digest()


async def _confirm(
    run: Run, change: Change, earlier: Published, done: tuple[str, ...], also: Also | None
) -> Published:
    """Mark the needs as done without publishing. Raises _Moved where that is not enough, LostPartition."""

    async def stands(connection: Connection) -> None:
        if not await changes.confirm(connection, change.id, shown_seq=earlier.seq, section_seq=run.seq):
            raise _Moved
        if also is not None:
            await also(connection)

    await run.finish(*done, also=stands)
    return msgspec.structs.replace(earlier, seq=run.seq)


def _differs(check: Check, stored: changes.CheckRun | None, publication: Publication) -> bool:
    if stored is None or publication.thorough or check.name in publication.renew:
        return True
    return (stored.external_id, stored.content_hash) != (check.external_id, _content_hash(check))


def _content_hash(check: Check) -> str:
    return hashlib.sha256(msgspec.json.encode([check.output, check.actions])).hexdigest()


def _check_live(pull: pulls.Pull, publication: Publication) -> None:
    now = (pull.is_open, pull.head_sha, pull.base_ref)
    if now != (publication.expect_open, publication.head_sha, publication.base_ref):
        raise Overtaken


async def _write_checks(
    services: Services,
    installation: Installation,
    full_name: str,
    change: Change,
    publication: Publication,
    wanted: list[Check],
    stored: Mapping[str, changes.CheckRun],
    mine: set[str],
    guard: Callable[[], None],
    sent: _Sent,
) -> None:
    if sent.listed is None:
        guard()
        sent.listed = await checks.list_ours(
            installation, full_name, publication.head_sha, app_id=services.settings.github_app_id
        )
    runs = sent.listed

    def belongs(found: checks.CheckRun) -> bool:
        return found.external_id in mine

    # Rare: pull requests that share this head, or runs that a restored database does not know.
    strange = {run.external_id or "" for run in runs if not belongs(run)}
    if strange:
        async with services.pool.acquire() as connection:
            strange -= await cards.known(connection, strange)

    def orphan(found: checks.CheckRun) -> bool:
        return (found.external_id or "") in strange

    for check in wanted:
        known = stored.get(check.name)
        place = checks.place(
            runs,
            name=check.name,
            number=change.pr_number,
            belongs=belongs,
            orphan=orphan,
            stored_id=known.check_run_id if known else None,
        )
        document = checks.payload(
            name=place.name,
            head_sha=publication.head_sha,
            external_id=check.external_id,
            output=check.output,
            actions=check.actions,
        )
        published = await checks.upsert(installation, full_name, document, run=place.run, guard=guard)
        sent.writes += published.written
        sent.listed = (*(one for one in sent.listed if one.id != published.run.id), published.run)
        sent.runs[check.name] = changes.CheckRun(
            check_run_id=published.run.id,
            external_id=check.external_id,
            content_hash=_content_hash(check),
        )


async def _refusal(services: Services, run: Run, change: Change) -> Busy | LostPartition:
    """Why the lease was not given."""
    async with services.pool.acquire() as connection:
        try:
            await partitions.guard_once(connection, run.lease)
        except LostPartition as lost:
            return lost
        now = await changes.get(connection, change.repository_id, change.pr_number)
    if now is None or now.section_seq > run.seq:
        return Overtaken()
    return Busy("another publisher is at it", reason="publishing", retry_after=1.0)


async def _settle(
    services: Services,
    run: Run,
    leased: changes.Leased,
    token: UUID,
    publication: Publication,
    sent: _Sent,
    failure: Exception | None,
    done: tuple[str, ...],
    also: Also | None,
) -> None:
    """Commit what was written; where that cannot be done, ask for a repair."""
    change = leased.change
    comment_id = sent.comment.id if sent.comment is not None else change.graft_comment_id
    created = sent.comment is not None and sent.comment.id != change.graft_comment_id
    # The list of comments may lag: there may be an older one of ours that was not shown. And whoever gives up what
    # somebody else had abandoned does not know what that one wrote.
    uncertain = (
        isinstance(failure, AmbiguousWrite)
        or (publication.thorough and created)
        or (leased.abandoned and failure is not None)
    )

    # A part of it may stand: what was published before is then not the last that GitHub was told.
    told = failure is None or sent.writes > 0 or isinstance(failure, AmbiguousWrite)

    async def commit(connection: Connection) -> None:
        stands = await changes.commit_publication(
            connection,
            change.id,
            token,
            section_seq=run.seq if told else change.section_seq,
            comment_id=comment_id,
        )
        if not stands:
            raise Busy("published after the lease had run out", reason="lease_lost", retry_after=1.0)
        await changes.put_check_runs(connection, change.id, publication.head_sha, sent.runs)
        # Also where the rest failed: the comment shows it, and may promise what nobody keeps.
        if sent.comment is not None and publication.display is not None:
            card_id, status = publication.display
            await cards.shown(connection, change.id, card_id, status, sent.comment.updated_at)
        if also is not None and failure is None:
            await also(connection)
        if uncertain:
            # A repair that is being done is over: merged with it, the next one would be due at once.
            await work.finish(connection, [row for need, row in run.rows.items() if need == "repair"])
            await services.ask_now(
                _repair(services, run, change, delay=VERIFY_SECONDS), connection=connection
            )

    try:
        await run.finish(*(done if failure is None else ()), also=commit)
    except (LostPartition, Busy):
        if sent.writes or isinstance(failure, AmbiguousWrite):
            await services.ask_now(_repair(services, run, change, delay=0.0))
        raise
    if failure is not None:
        raise failure


def _repair(services: Services, run: Run, change: Change, *, delay: float) -> work.Ask:
    """An ask to read comment and checks again and put them right."""
    return services.ask(
        pull_address(change.repository_id, change.pr_number),
        "repair",
        installation_id=run.installation_id,
        repository_id=change.repository_id,
        delay=delay,
    )
