"""What came in, reduced to what may leave the ingress: who, what and when, in ids, SHAs and names.

A title, a body or a diff has no field to go to. `needs_for` is the table of what a trigger asks of which
actor. Everything here is pure; `graft.payloads` reads GitHub's JSON.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from graft.errors import PermanentError

# -------------------------------------------------------------------------------------------------- what leaves

Kind: TypeAlias = Literal["pull", "repository", "installation"]


Id = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Number = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Sha = Annotated[str, Meta(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?\Z")]
FullName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}\Z")]
Login = Annotated[str, Meta(pattern=r"^[!-~]{1,100}\Z")]
RefName = Annotated[str, Meta(min_length=1, max_length=1024)]
Word = Annotated[str, Meta(pattern=r"^[a-z_]{1,50}\Z")]
Time = Annotated[datetime, Meta(tz=True)]
DeliveryId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")]

# More pull requests on one head than this are left to the repository's actor, which finds them all.
MOST_PULLS: Final = 20


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
    delivery_id: DeliveryId
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
    pulls: Annotated[tuple[Number, ...], Meta(max_length=MOST_PULLS)] = ()

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


def subjects_of(installation_id: int, repositories: Iterable[int]) -> list[str]:
    """Every subject, below the prefix, that triggers of an installation and its repositories lie under."""
    found = [f"trigger.installation.{installation_id}.>"]
    for repository_id in repositories:
        found += [f"trigger.repository.{repository_id}.>", f"trigger.pull.{repository_id}.>"]
    return found


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


def address_of(trigger: Trigger) -> str:
    """The actor that the trigger is about."""
    match trigger.kind:
        case "pull":
            return pull_address(trigger.repository_id or 0, trigger.number or 0)
        case "repository":
            return repository_address(trigger.repository_id or 0)
        case "installation":
            return installation_address(trigger.installation_id)


def is_handled(event: str, action: str | None) -> bool:
    """Whether such an event can ask anybody for anything; a delivery of another one may get lost."""
    return (
        (event, action) in REPOSITORY_NEEDS
        or (event, action or "") in PULL_NEEDS
        or (event, action or "") in INSTALLATION_NEEDS
    )


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


# ------------------------------------------------------------------------------------------------ on the wire


def path_of(error: msgspec.ValidationError) -> str:
    """Where a payload does not fit, from msgspec's message; the rest of that message may hold a value."""
    found = re.search(r"at `(\$[A-Za-z0-9_.\[\]]*)`\Z", str(error))
    missing = re.search(r"missing required field `([a-z_]+)`", str(error))
    path = found[1] if found else "$"
    return f"{path}.{missing[1]}" if missing else path


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Trigger)


def encode(trigger: Trigger) -> bytes:
    return _ENCODER.encode(trigger)


def decode(data: bytes) -> Trigger:
    """Raises PermanentError (`bad_trigger`) naming the path for a message that is no trigger."""
    try:
        trigger = _DECODER.decode(data)
    except msgspec.ValidationError as error:
        raise PermanentError(f"not a trigger: {path_of(error)}", reason="bad_trigger") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise PermanentError("not a trigger: not JSON", reason="bad_trigger") from None
    if missing := [name for name in _needed(trigger) if getattr(trigger, name) is None]:
        raise PermanentError(f"not a trigger: $.{missing[0]} is missing", reason="bad_trigger")
    return trigger


def _needed(trigger: Trigger) -> tuple[str, ...]:
    """The fields that make the addresses and needs of such a trigger: a part of a key that is not there would be
    read as another actor's."""
    match trigger.kind:
        case "pull":
            return ("repository_id", "number")
        case "repository" if trigger.action == "rerequested" and not trigger.pulls:
            return ("repository_id", "head_sha")
        case "repository":
            return ("repository_id",)
        case "installation":
            return ()
