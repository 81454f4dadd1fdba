"""A webhook payload reduced to what may leave the ingress: who, what and when, in ids, SHAs and names.

`reduce` reads only the fields named here, strictly typed and bounded, and returns a `Trigger` that somebody
has to act on, or `Ignored` with the reason. A title, a body or a diff has no field to go to. `needs_for` is
the table of what a trigger asks of which actor; both are pure.

The event name and the delivery id come from headers that GitHub's signature does not cover, so a payload that
does not fit its event name is ignored, and whoever acts on a trigger reads the state from the API again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct

from graft import payloads
from graft.errors import PermanentError
from graft.payloads import FullName, Id, Login, Number, RefName, Sha, Time, Word

# -------------------------------------------------------------------------------------------------- what leaves

Kind: TypeAlias = Literal["pull", "repository", "installation"]
Payload: TypeAlias = bytes | bytearray


class Trigger(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something happened on GitHub that somebody has to look at.

    `received_at` is when the ingress had it, `event_at` GitHub's own time where the payload has one that means
    the event (absent for buttons and pushes). `head_sha`, `base_ref` and `number` are what the payload said:
    hints of what to read, never facts to publish. `pulls` are the pull requests a check event names, none for
    forks. `step` is the check a re-run asks for, `None` for all of them. `incident` says that the configured
    incident label is on what changed, or was just put on or taken off.
    """

    kind: Kind
    event: Word
    action: Word | None = None
    delivery_id: str
    received_at: Time
    installation_id: Id
    repository_id: Id | None = None
    full_name: FullName | None = None
    number: Number | None = None
    head_sha: Sha | None = None
    base_ref: RefName | None = None
    ref: RefName | None = None
    before_sha: Sha | None = None
    after_sha: Sha | None = None
    sender_id: Id | None = None
    sender_login: Login | None = None
    sender_is_bot: bool = False
    event_at: Time | None = None
    title_changed: bool = False
    body_changed: bool = False
    base_changed: bool = False
    incident: bool = False
    check_run_id: Id | None = None
    button: Annotated[str, Meta(max_length=20)] | None = None
    step: Literal["provenance", "intent", "policy"] | None = None
    pulls: tuple[Number, ...] = ()

    def log_context(self) -> dict[str, Any]:
        """What may be logged of it."""
        return {
            "delivery_id": self.delivery_id,
            "github_event": self.event,
            "action": self.action,
            "installation_id": self.installation_id,
            "repository_id": self.repository_id,
            "number": self.number,
        }


class Ignored(Struct, frozen=True, kw_only=True):
    """Nobody has to act. `reason` is a stable code (`event`, `action`, `not_ours`, `no_change`, `branch`,
    `label`, `mismatch`); `paths` are where a mismatching payload differs from its event, never values."""

    reason: str
    paths: tuple[str, ...] = ()


class Ask(Struct, frozen=True):
    """One need of one actor. `forced` asks for it even where nothing has changed."""

    address: str
    need: str
    forced: bool = False


def pull_address(repository_id: int, number: int) -> str:
    return f"pull.{repository_id}.{number}"


def repository_address(repository_id: int) -> str:
    return f"repository.{repository_id}"


def installation_address(installation_id: int) -> str:
    return f"installation.{installation_id}"


LEAD: Final = "lead"


def partition_of(address: str, count: int) -> int:
    """The partition of an address among `count`: the same in every process and release."""
    digest = hashlib.blake2b(address.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % count


def subject_of(trigger: Trigger, prefix: str) -> str:
    """The subject a trigger is published under: ids and the event name only."""
    key: Iterable[int | None]
    match trigger.kind:
        case "pull":
            key = (trigger.repository_id, trigger.number)
        case "repository":
            key = (trigger.repository_id,)
        case "installation":
            key = (trigger.installation_id,)
    return ".".join([prefix, "trigger", trigger.kind, *(str(part or 0) for part in key), trigger.event])


# ---------------------------------------------------------------------------------------------- what asks what

# Everything that is shown for a pull request, after its row has been brought up to date.
EVERYTHING: Final = ("state", "provenance", "intent", "policy", "records")

# (event, action) -> needs of the pull request's own actor.
PULL_NEEDS: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("pull_request", "opened"): EVERYTHING,
    ("pull_request", "reopened"): EVERYTHING,
    ("pull_request", "ready_for_review"): EVERYTHING,
    ("pull_request", "synchronize"): EVERYTHING,
    ("pull_request", "edited"): (),  # by what was edited
    ("pull_request", "labeled"): ("policy",),
    ("pull_request", "unlabeled"): ("policy",),
    ("pull_request", "converted_to_draft"): ("state", "policy"),
    ("pull_request", "closed"): ("state",),
    ("pull_request_review", "submitted"): ("reviewers",),
    ("pull_request_review", "dismissed"): ("reviewers",),
}

# (event, action) -> needs of the repository's actor.
REPOSITORY_NEEDS: Final[dict[tuple[str, str | None], tuple[str, ...]]] = {
    ("check_run", "requested_action"): ("votes",),
    ("check_run", "rerequested"): (),  # of the pull requests, where the payload names them
    ("check_suite", "rerequested"): (),
    ("push", None): ("push",),
    ("issues", "labeled"): ("incidents",),
    ("issues", "unlabeled"): ("incidents",),
    ("issues", "closed"): ("incidents",),
    ("repository", "renamed"): ("sync",),
    ("repository", "transferred"): ("sync",),
    ("repository", "deleted"): ("sync",),
    ("repository", "archived"): ("sync",),
    ("repository", "unarchived"): ("sync",),
}

# (event, action) -> needs of the installation's actor.
INSTALLATION_NEEDS: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("installation", "created"): ("sync",),
    ("installation", "deleted"): ("sync",),
    ("installation", "suspend"): ("sync",),
    ("installation", "unsuspend"): ("sync",),
    ("installation", "new_permissions_accepted"): ("sync",),
    ("installation_repositories", "added"): ("sync",),
    ("installation_repositories", "removed"): ("sync",),
}


def needs_for(trigger: Trigger) -> tuple[Ask, ...]:
    """What the trigger asks of whom; empty for one that this version knows nothing to do about.

    A re-run of a head whose pull requests the payload does not name (forks) goes to the repository as
    `rerun:<step or all>:<head sha>`: the key is part of the need so that two heads are two rows.
    """
    match trigger.kind:
        case "pull":
            return _pull_needs(trigger)
        case "repository":
            return _repository_needs(trigger)
        case "installation":
            needs = INSTALLATION_NEEDS.get((trigger.event, trigger.action or ""), ())
            return tuple(Ask(installation_address(trigger.installation_id), need) for need in needs)


def _pull_needs(trigger: Trigger) -> tuple[Ask, ...]:
    assert trigger.repository_id is not None
    assert trigger.number is not None
    needs = PULL_NEEDS.get((trigger.event, trigger.action or ""), ())
    if trigger.action == "edited":
        needs = EVERYTHING if trigger.base_changed else ("inputs",)
    address = pull_address(trigger.repository_id, trigger.number)
    asks = [Ask(address, need) for need in needs]
    if trigger.incident:
        asks.append(Ask(repository_address(trigger.repository_id), "incidents"))
    return tuple(asks)


def _repository_needs(trigger: Trigger) -> tuple[Ask, ...]:
    assert trigger.repository_id is not None
    address = repository_address(trigger.repository_id)
    if trigger.action != "rerequested":
        needs = REPOSITORY_NEEDS.get((trigger.event, trigger.action), ())
        return tuple(Ask(address, need) for need in needs)
    if not trigger.pulls:
        return (Ask(address, f"rerun:{trigger.step or 'all'}:{trigger.head_sha}", forced=True),)
    steps = (trigger.step,) if trigger.step else EVERYTHING
    return tuple(
        Ask(pull_address(trigger.repository_id, number), step, forced=True)
        for number in trigger.pulls
        for step in steps
    )


# --------------------------------------------------------------------------------------------- reading payloads


class Context(Struct, frozen=True, kw_only=True):
    """What `reduce` has to know besides the payload: the delivery, which App is ours, which label counts."""

    delivery_id: str
    received_at: datetime
    app_id: int
    incident_label: str | None = None

    def is_incident(self, labels: Iterable[payloads.Label | None]) -> bool:
        wanted = (self.incident_label or "").casefold()
        return bool(wanted) and any(label is not None and label.name.casefold() == wanted for label in labels)


def reduce(event: str, payload: Payload, context: Context) -> Trigger | Ignored:
    """The trigger in a payload that came under this event name, or why there is none.

    Raises PermanentError (`malformed_json`) when the payload is not JSON at all. An unknown event or action is
    ignored before anything else of the payload is looked at.
    """
    reader = _READERS.get(event)
    if reader is None:
        return Ignored(reason="event")
    actions = _ACTIONS[event]
    try:
        if actions and _decode(_ACTION, payload).action not in actions:
            return Ignored(reason="action")
        return reader(payload, context)
    except msgspec.ValidationError as error:
        return Ignored(reason="mismatch", paths=(_path(error),))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise PermanentError("the payload is not JSON", reason="malformed_json") from None


_S = TypeVar("_S")


def _decode(decoder: msgspec.json.Decoder[_S], payload: Payload) -> _S:
    return decoder.decode(payload)


def _path(error: msgspec.ValidationError) -> str:
    """Where a payload does not fit, from msgspec's message; the rest of that message may hold a value."""
    found = re.search(r"at `(\$[A-Za-z0-9_.\[\]]*)`\Z", str(error))
    missing = re.search(r"missing required field `([a-z_]+)`", str(error))
    path = found[1] if found else "$"
    return f"{path}.{missing[1]}" if missing else path


def _trigger(event: str, kind: Kind, payload: payloads.Payload, context: Context, **fields: Any) -> Trigger:
    repository = getattr(payload, "repository", None)
    return Trigger(
        kind=kind,
        event=event,
        action=getattr(payload, "action", None),
        delivery_id=context.delivery_id,
        received_at=context.received_at,
        installation_id=payload.installation.id,
        repository_id=repository.id if repository else None,
        full_name=repository.full_name if repository else None,
        sender_id=payload.sender.id,
        sender_login=payload.sender.login,
        sender_is_bot=payload.sender.type == "Bot" or payload.sender.login.endswith("[bot]"),
        **fields,
    )


def _pull_request(payload: Payload, context: Context) -> Trigger | Ignored:
    event = _decode(_PULL_REQUEST, payload)
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


def _review(payload: Payload, context: Context) -> Trigger | Ignored:
    event = _decode(_REVIEW, payload)
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


# More pull requests on one head than this are left to the repository's actor, which finds them all.
_MOST_PULLS = 20


def _check_run(payload: Payload, context: Context) -> Trigger | Ignored:
    event = _decode(_CHECK_RUN, payload)
    run = event.check_run
    if run.app is None or run.app.id != context.app_id:
        return Ignored(reason="not_ours")
    if event.action == "requested_action":
        if event.requested_action is None:
            return Ignored(reason="mismatch", paths=("$.requested_action",))
        return _trigger(
            "check_run",
            "repository",
            event,
            context,
            head_sha=run.head_sha,
            check_run_id=run.id,
            button=event.requested_action.identifier,
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


def _check_suite(payload: Payload, context: Context) -> Trigger | Ignored:
    event = _decode(_CHECK_SUITE, payload)
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


def _numbers(pulls: list[payloads.NumberOnly]) -> tuple[int, ...]:
    numbers = dict.fromkeys(pull.number for pull in pulls)
    return tuple(numbers) if len(numbers) <= _MOST_PULLS else ()


def _push(payload: Payload, context: Context) -> Trigger | Ignored:
    event = _decode(_PUSH, payload)
    if event.deleted or not event.ref.startswith("refs/heads/"):
        return Ignored(reason="branch")
    return _trigger(
        "push", "repository", event, context, ref=event.ref, before_sha=event.before, after_sha=event.after
    )


def _issues(payload: Payload, context: Context) -> Trigger | Ignored:
    event = _decode(_ISSUES, payload)
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


def _repository(payload: Payload, context: Context) -> Trigger | Ignored:
    return _trigger("repository", "repository", _decode(_REPOSITORY, payload), context)


def _installation(payload: Payload, context: Context) -> Trigger | Ignored:
    return _trigger("installation", "installation", _decode(_INSTALLATION, payload), context)


def _installation_repositories(payload: Payload, context: Context) -> Trigger | Ignored:
    return _trigger("installation_repositories", "installation", _decode(_INSTALLATION, payload), context)


_ACTION = msgspec.json.Decoder(payloads.ActionOnly)
_PULL_REQUEST = msgspec.json.Decoder(payloads.PullRequestEvent)
_REVIEW = msgspec.json.Decoder(payloads.ReviewEvent)
_CHECK_RUN = msgspec.json.Decoder(payloads.CheckRunEvent)
_CHECK_SUITE = msgspec.json.Decoder(payloads.CheckSuiteEvent)
_PUSH = msgspec.json.Decoder(payloads.PushEvent)
_ISSUES = msgspec.json.Decoder(payloads.IssuesEvent)
_REPOSITORY = msgspec.json.Decoder(payloads.RepositoryEvent)
_INSTALLATION = msgspec.json.Decoder(payloads.InstallationEvent)

_READERS = {
    "pull_request": _pull_request,
    "pull_request_review": _review,
    "check_run": _check_run,
    "check_suite": _check_suite,
    "push": _push,
    "issues": _issues,
    "repository": _repository,
    "installation": _installation,
    "installation_repositories": _installation_repositories,
}

EVENTS: Final = frozenset(_READERS)

_ACTIONS: dict[str, frozenset[str]] = {
    event: frozenset(
        action
        for table in (PULL_NEEDS, REPOSITORY_NEEDS, INSTALLATION_NEEDS)
        for name, action in table
        if name == event and action is not None
    )
    for event in _READERS
}

# ------------------------------------------------------------------------------------------------ on the wire

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Trigger)


def encode(trigger: Trigger) -> bytes:
    return _ENCODER.encode(trigger)


def decode(data: bytes) -> Trigger:
    """Raises PermanentError (`bad_trigger`) naming the path for a message that is no trigger."""
    try:
        return _DECODER.decode(data)
    except msgspec.ValidationError as error:
        raise PermanentError(f"not a trigger: {_path(error)}", reason="bad_trigger") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise PermanentError("not a trigger: not JSON", reason="bad_trigger") from None
