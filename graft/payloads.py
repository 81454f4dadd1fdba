"""GitHub's webhook payloads: the parts that Graft reads, and their reduction to a `Trigger`.

A field that is not named here is skipped while decoding and never becomes a Python value; what is named is
strictly typed and bounded. Shapes follow the payload examples and schemas of GitHub's webhook documentation.

The event name and the delivery id come from headers that GitHub's signature does not cover, so a payload that
does not fit its event name is ignored, and whoever acts on a trigger reads the state from the API again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Annotated, Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct

from graft.errors import PermanentError
from graft.triggers import (
    INSTALLATION_NEEDS,
    MOST_PULLS,
    PULL_NEEDS,
    REPOSITORY_NEEDS,
    FullName,
    Id,
    Kind,
    Login,
    Number,
    RefName,
    Sha,
    Time,
    Trigger,
    Word,
    path_of,
)

Data: TypeAlias = bytes | bytearray


class Installation(Struct):
    id: Id


class Repository(Struct):
    id: Id
    full_name: FullName


class Sender(Struct):
    id: Id
    login: Login
    type: Annotated[str, Meta(max_length=50)] = "User"


class Head(Struct):
    sha: Sha


class Base(Struct):
    ref: RefName


class Label(Struct):
    name: Annotated[str, Meta(max_length=300)]


class Pull(Struct):
    number: Number
    head: Head
    base: Base
    updated_at: Time


class Edits(Struct):
    title: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    body: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    base: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class App(Struct):
    id: Id


class NumberOnly(Struct):
    number: Number


class CheckRun(Struct):
    id: Id
    head_sha: Sha
    name: Annotated[str, Meta(max_length=1024)]
    app: App | None
    pull_requests: list[NumberOnly] = []


class CheckSuite(Struct):
    head_sha: Sha
    app: App | None
    pull_requests: list[NumberOnly] = []


class Button(Struct):
    identifier: Annotated[str, Meta(max_length=20)]


class Issue(Struct):
    number: Number
    updated_at: Time
    labels: list[Label] = []


class Review(Struct):
    submitted_at: Time | None = None


class ReviewedPull(Struct):
    number: Number
    head: Head
    base: Base


class Payload(Struct, kw_only=True):
    """What every payload of an App has, and every other field not."""

    installation: Installation
    sender: Sender | None = None


class PullRequestEvent(Payload, kw_only=True):
    action: Word
    number: Number
    repository: Repository
    pull_request: Pull
    changes: Edits = msgspec.field(default_factory=Edits)
    label: Label | None = None


class ReviewEvent(Payload, kw_only=True):
    action: Word
    repository: Repository
    pull_request: ReviewedPull
    review: Review


class CheckRunEvent(Payload, kw_only=True):
    action: Word
    repository: Repository
    check_run: CheckRun
    requested_action: Button | None = None


class CheckSuiteEvent(Payload, kw_only=True):
    action: Word
    repository: Repository
    check_suite: CheckSuite


class PushEvent(Payload, kw_only=True):
    ref: RefName
    before: Sha
    after: Sha
    repository: Repository
    deleted: bool = False


class IssuesEvent(Payload, kw_only=True):
    action: Word
    repository: Repository
    issue: Issue
    label: Label | None = None


class RepositoryEvent(Payload, kw_only=True):
    action: Word
    repository: Repository


class InstallationEvent(Payload, kw_only=True):
    action: Word


class ActionOnly(Struct):
    action: str | None = None


# ---------------------------------------------------------------------------------------------------- reducing


class Ignored(Struct, frozen=True, kw_only=True):
    """Nobody has to act. `reason` is a stable code (`event`, `action`, `not_ours`, `no_change`, `branch`,
    `label`, `mismatch`); `paths` are where a mismatching payload differs from its event, never values."""

    reason: str
    paths: tuple[str, ...] = ()


class Context(Struct, frozen=True, kw_only=True):
    """What `reduce` has to know besides the payload: the delivery, which App is ours, which label counts."""

    delivery_id: str
    received_at: datetime
    app_id: int
    incident_label: str | None = None

    def is_incident(self, labels: Iterable[Label | None]) -> bool:
        wanted = (self.incident_label or "").casefold()
        return bool(wanted) and any(label is not None and label.name.casefold() == wanted for label in labels)


def reduce(event: str, payload: Data, context: Context) -> Trigger | Ignored:
    """The trigger in a payload that came under this event name, or why there is none.

    Raises PermanentError (`malformed_json`) when the payload is not JSON at all. The payload of an unknown
    event is not looked at; that of an action nobody acts on does not have to fit.
    """
    reader = _READERS.get(event)
    if reader is None:
        return Ignored(reason="event")
    try:
        try:
            parsed = reader.decoder.decode(payload)
        except msgspec.ValidationError as error:
            if _ACTION.decode(payload).action not in reader.actions:
                return Ignored(reason="action")
            return Ignored(reason="mismatch", paths=(path_of(error),))
        if getattr(parsed, "action", None) not in reader.actions:
            return Ignored(reason="action")
        return reader.convert(parsed, context)
    except msgspec.ValidationError as error:
        return Ignored(reason="mismatch", paths=(path_of(error),))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise PermanentError("the payload is not JSON", reason="malformed_json") from None


_P = TypeVar("_P", bound=Payload)


class _Reader(Struct, frozen=True):
    """How payloads of one event are read: which actions count (`None` for an event without actions)."""

    decoder: Any
    actions: frozenset[str | None]
    convert: Callable[[Any, Context], Trigger | Ignored]


def _trigger(event: str, kind: Kind, payload: Payload, context: Context, **fields: Any) -> Trigger:
    repository: Repository | None = getattr(payload, "repository", None)
    sender = payload.sender
    return Trigger(
        kind=kind,
        event=event,
        action=getattr(payload, "action", None),
        delivery_id=context.delivery_id,
        received_at=context.received_at,
        installation_id=payload.installation.id,
        repository_id=repository.id if repository else None,
        full_name=repository.full_name if repository else None,
        sender_id=sender.id if sender else None,
        sender_login=sender.login if sender else None,
        sender_is_bot=sender is not None and (sender.type == "Bot" or sender.login.endswith("[bot]")),
        **fields,
    )


def _pull_request(event: PullRequestEvent, context: Context) -> Trigger | Ignored:
    if event.number != event.pull_request.number:
        return Ignored(reason="mismatch", paths=("$.number", "$.pull_request.number"))
    title, body, base = (
        field is not msgspec.UNSET for field in (event.changes.title, event.changes.body, event.changes.base)
    )
    if event.action == "edited" and not (title or body or base):
        return Ignored(reason="no_change")
    return _trigger(
        "pull_request",
        "pull",
        event,
        context,
        number=event.number,
        head_sha=event.pull_request.head.sha,
        base_ref=event.pull_request.base.ref,
        event_at=event.pull_request.updated_at,
        title_changed=title,
        body_changed=body,
        base_changed=base,
        incident=event.action in ("labeled", "unlabeled") and context.is_incident([event.label]),
    )


def _review(event: ReviewEvent, context: Context) -> Trigger | Ignored:
    return _trigger(
        "pull_request_review",
        "pull",
        event,
        context,
        number=event.pull_request.number,
        head_sha=event.pull_request.head.sha,
        base_ref=event.pull_request.base.ref,
        event_at=event.review.submitted_at,
    )


def _check_run(event: CheckRunEvent, context: Context) -> Trigger | Ignored:
    run = event.check_run
    if run.app is None or run.app.id != context.app_id:
        return Ignored(reason="not_ours")
    if event.action == "requested_action":
        missing = [name for name in ("requested_action", "sender") if getattr(event, name) is None]
        if missing:
            return Ignored(reason="mismatch", paths=tuple(f"$.{name}" for name in missing))
        return _trigger(
            "check_run",
            "repository",
            event,
            context,
            head_sha=run.head_sha,
            check_run_id=run.id,
            button=event.requested_action.identifier if event.requested_action else None,
        )
    return _trigger(
        "check_run",
        "repository",
        event,
        context,
        head_sha=run.head_sha,
        check_run_id=run.id,
        step=_step(run.name),
        pulls=_numbers(run.pull_requests),
    )


def _check_suite(event: CheckSuiteEvent, context: Context) -> Trigger | Ignored:
    suite = event.check_suite
    if suite.app is None or suite.app.id != context.app_id:
        return Ignored(reason="not_ours")
    pulls = _numbers(suite.pull_requests)
    return _trigger("check_suite", "repository", event, context, head_sha=suite.head_sha, pulls=pulls)


def _step(name: str) -> str | None:
    """The step of one of our check runs; a suffix sets runs of one head apart (`graft/intent (#7)`)."""
    words = name.split()
    step = words[0].removeprefix("graft/") if words else ""
    return step if step in ("provenance", "intent", "policy") else None


def _numbers(pulls: list[NumberOnly]) -> tuple[int, ...]:
    numbers = dict.fromkeys(pull.number for pull in pulls)
    return tuple(numbers) if len(numbers) <= MOST_PULLS else ()


def _push(event: PushEvent, context: Context) -> Trigger | Ignored:
    if event.deleted or not event.ref.startswith("refs/heads/"):
        return Ignored(reason="branch")
    return _trigger(
        "push", "repository", event, context, ref=event.ref, before_sha=event.before, after_sha=event.after
    )


def _issues(event: IssuesEvent, context: Context) -> Trigger | Ignored:
    labels = event.issue.labels if event.action == "closed" else [event.label]
    if not context.is_incident(labels):
        return Ignored(reason="label")
    return _trigger(
        "issues",
        "repository",
        event,
        context,
        number=event.issue.number,
        event_at=event.issue.updated_at,
        incident=True,
    )


def _repository(event: RepositoryEvent, context: Context) -> Trigger | Ignored:
    return _trigger("repository", "repository", event, context)


def _installation(event: InstallationEvent, context: Context) -> Trigger | Ignored:
    return _trigger("installation", "installation", event, context)


def _installation_repositories(event: InstallationEvent, context: Context) -> Trigger | Ignored:
    return _trigger("installation_repositories", "installation", event, context)


_ACTION = msgspec.json.Decoder(ActionOnly)
_TABLES = (PULL_NEEDS, REPOSITORY_NEEDS, INSTALLATION_NEEDS)


def _reader(
    event: str, payload: type[_P], convert: Callable[[_P, Context], Trigger | Ignored]
) -> tuple[str, _Reader]:
    actions = frozenset(action for table in _TABLES for name, action in table if name == event)
    return event, _Reader(msgspec.json.Decoder(payload), actions, convert)


_READERS: Final[dict[str, _Reader]] = dict(
    (
        _reader("pull_request", PullRequestEvent, _pull_request),
        _reader("pull_request_review", ReviewEvent, _review),
        _reader("check_run", CheckRunEvent, _check_run),
        _reader("check_suite", CheckSuiteEvent, _check_suite),
        _reader("push", PushEvent, _push),
        _reader("issues", IssuesEvent, _issues),
        _reader("repository", RepositoryEvent, _repository),
        _reader("installation", InstallationEvent, _installation),
        _reader("installation_repositories", InstallationEvent, _installation_repositories),
    )
)

EVENTS: Final = frozenset(_READERS)
