"""What operators may ask of a running Graft, as typed questions and answers over NATS.

Each operation has a subject of its own, `<prefix>.ctl.read.<name>` or `<prefix>.ctl.act.<name>`, so that the
broker's permissions decide who may do what: a user who may publish to `<prefix>.ctl.read.>` only cannot change
anything. An answer holds what the database holds: SHAs, paths, numbers, logins, codes and the model's prose.

Refusals travel as micro-service errors: a code (`400`, `404`, `409`, `503`, `500`) and one line that says what
is wrong and what to do next.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from graft.control.change import (
    Because,
    Card,
    Change,
    ChangeName,
    CheckRun,
    CommitOrigin,
    Display,
    FullName,
    Live,
    Number,
    Provenance,
    Reasons,
    RuleState,
    Spend,
    Verdict,
    Vote,
    WorkRow,
)
from graft.control.replicas import Doing, Limited, Obeyed, Order, Roll
from graft.errors import GraftError
from graft.triggers import EVERYTHING, path_of

__all__ = [
    "ACTORS",
    "BUDGET",
    "CONFIG",
    "DEAD",
    "DELIVERIES",
    "DRAIN",
    "DROP",
    "OPERATIONS",
    "REDELIVER",
    "RERUN",
    "RESIZE",
    "RETRY",
    "SHOW",
    "STATUS",
    "STEPS",
    "WHY",
    "ActorRow",
    "Actors",
    "Asked",
    "Backlog",
    "Because",
    "Budget",
    "BudgetQuestion",
    "BudgetRow",
    "Card",
    "Change",
    "ChangeName",
    "CheckRun",
    "CommitOrigin",
    "Config",
    "Dead",
    "DeadRow",
    "Deliveries",
    "DeliveryRow",
    "Display",
    "Doing",
    "Drain",
    "Limited",
    "ListActors",
    "ListDead",
    "ListDeliveries",
    "Live",
    "Nothing",
    "Obeyed",
    "Operation",
    "Order",
    "PickDead",
    "Picked",
    "Provenance",
    "Reasons",
    "Redeliver",
    "Redelivered",
    "Refused",
    "Replica",
    "Rerun",
    "Resize",
    "Resized",
    "Roll",
    "RuleState",
    "Setting",
    "Spend",
    "Status",
    "Verdict",
    "Vote",
    "WorkCounts",
    "WorkRow",
    "decode_question",
]

Q = TypeVar("Q")
A = TypeVar("A")

Name = Annotated[str, Meta(min_length=1, max_length=300)]
Limit = Annotated[int, Meta(ge=1, le=1000)]

# What a re-run does unless it is told which steps.
STEPS: Final = EVERYTHING


class Refused(GraftError):
    """The daemon did not do it. `code` is fit for a program, the text for a person."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Operation(Struct, Generic[Q, A], frozen=True, kw_only=True):
    """One thing an operator can ask. `acts` where it changes something; `seconds` a caller should wait."""

    name: str
    question: type[Q]
    answer: type[A]
    acts: bool = False
    seconds: float = 3.0

    def subject(self, prefix: str) -> str:
        return f"{prefix}.ctl.{'act' if self.acts else 'read'}.{self.name}"


# ---------------------------------------------------------------------------------------------------------- status


class Nothing(Struct, frozen=True):
    """A question without parameters."""


class Replica(Struct, frozen=True, kw_only=True):
    """A replica as the database lists it, with its own answer when it gave one (`answers`)."""

    replica: str
    version: str
    started_at: datetime
    draining: bool
    partitions: tuple[int, ...]
    answers: bool
    running: int | None = None
    concurrency: int | None = None
    taken: int | None = None
    refused: str | None = None


class Backlog(Struct, frozen=True, kw_only=True):
    """What lies in the stream; `oldest_seconds` is the age of the first trigger."""

    messages: int
    unacknowledged: int
    bytes: int
    max_bytes: int
    oldest_seconds: float | None


class WorkCounts(Struct, frozen=True, kw_only=True):
    """Rows of work: due now, due later, waiting for an installation that is suspended or gone, dead."""

    due: int
    waiting: int
    parked: int
    dead: int
    oldest_due_seconds: float | None


class Status(Struct, frozen=True, kw_only=True):
    """The state of the whole. `backlog` is absent while the broker does not answer for its stream."""

    answered_by: str
    version: str
    replicas: tuple[Replica, ...]
    partitions: int
    unheld: tuple[int, ...]
    backlog: Backlog | None
    work: WorkCounts
    running: tuple[Doing, ...]
    limits: tuple[Limited, ...]
    installations: dict[str, int]
    repositories: int
    changes: dict[str, int]


# -------------------------------------------------------------------------------------------------------------- ls


class ListActors(Struct, frozen=True, kw_only=True):
    """`match` is part of a name or an address; an actor is listed while it has work or runs."""

    match: Annotated[str, Meta(max_length=200)] | None = None
    state: Literal["running", "due", "waiting", "parked", "dead"] | None = None
    sort: Literal["due", "name", "attempts", "age"] = "due"
    limit: Limit = 100


class ActorRow(Struct, frozen=True, kw_only=True):
    """An actor with work. `due_seconds` is below zero for what is overdue, `age_seconds` since the first ask."""

    address: str
    name: str
    state: str
    needs: tuple[str, ...]
    partition: int
    holder: str | None
    due_seconds: float
    age_seconds: float
    attempts: int
    doing: str | None = None
    failure: str | None = None


class Actors(Struct, frozen=True, kw_only=True):
    """The first actors of the order asked for; `total` is how many there are."""

    actors: tuple[ActorRow, ...]
    total: int


class Rerun(Struct, frozen=True, kw_only=True):
    """Do these steps of a change again, whether or not anything has changed."""

    repository: FullName
    number: Number
    steps: Annotated[
        tuple[Literal["state", "provenance", "intent", "policy", "records"], ...], Meta(min_length=1)
    ]


class Asked(Struct, frozen=True, kw_only=True):
    """Merged into the rows of work; the holder has been woken. `revived` rows were dead before."""

    address: str
    needs: tuple[str, ...]
    revived: int


# ------------------------------------------------------------------------------------------------------------ dead


class ListDead(Struct, frozen=True, kw_only=True):
    match: Annotated[str, Meta(max_length=200)] | None = None
    limit: Limit = 100


class DeadRow(Struct, frozen=True, kw_only=True):
    """Work that failed for good, with its metadata."""

    address: str
    name: str
    need: str
    dead_at: datetime
    attempts: int
    failure: dict[str, Any] | None
    head_sha: str | None
    installation_id: int
    repository_id: int | None
    first_asked_at: datetime
    forced: bool


class Dead(Struct, frozen=True, kw_only=True):
    rows: tuple[DeadRow, ...]
    total: int


class PickDead(Struct, frozen=True, kw_only=True):
    """Dead rows of one address, or of all (`address` absent); of one need, or of all of them."""

    address: Name | None = None
    need: Name | None = None


class Picked(Struct, frozen=True, kw_only=True):
    """The rows that were revived or dropped, as (address, need)."""

    rows: tuple[tuple[str, str], ...]


# ------------------------------------------------------------------------------------------------------ deliveries


class ListDeliveries(Struct, frozen=True, kw_only=True):
    """The newest `limit` attempts of GitHub's own log; `missing` for those only that no row knows."""

    limit: Limit = 100
    missing: bool = False


class DeliveryRow(Struct, frozen=True, kw_only=True):
    """One delivery: GitHub's word for its last attempt, and ours for what arrived. `arrived` is `accepted`,
    `ignored`, `dead`, or `unknown` when no row knows it; `handled` where Graft acts on such an event."""

    guid: str
    event: str
    action: str | None
    delivered_at: datetime
    attempts: int
    status: str
    status_code: int
    arrived: str
    handled: bool
    recovery_tries: int
    installation_id: int | None

    @property
    def is_missing(self) -> bool:
        return self.handled and self.arrived == "unknown"


class Deliveries(Struct, frozen=True, kw_only=True):
    rows: tuple[DeliveryRow, ...]
    read: int


class Redeliver(Struct, frozen=True, kw_only=True):
    """Have GitHub send these deliveries again; without any, every missing one of the newest `limit`."""

    guids: Annotated[tuple[Annotated[str, Meta(max_length=100)], ...], Meta(max_length=100)] = ()
    limit: Limit = 100


class Redelivered(Struct, frozen=True, kw_only=True):
    guids: tuple[str, ...]


# ------------------------------------------------------------------------------------------- budget, drain, config


class BudgetQuestion(Struct, frozen=True, kw_only=True):
    match: Annotated[str, Meta(max_length=200)] | None = None
    limit: Limit = 100


class BudgetRow(Struct, frozen=True, kw_only=True):
    """What models cost one repository today (UTC)."""

    repository: str
    spent_usd: float
    reserved_usd: float
    left_usd: float
    calls: int
    tokens: int


class Budget(Struct, frozen=True, kw_only=True):
    daily_usd: float
    rows: tuple[BudgetRow, ...]
    spent_usd: float
    last_30_days_usd: float


class Drain(Struct, frozen=True, kw_only=True):
    """Have a replica give its partitions to the others. `force` where nobody else is there to take them."""

    replica: Name
    undo: bool = False
    force: bool = False


class Resize(Struct, frozen=True, kw_only=True):
    """Deal the work out anew in so many partitions, while everything runs."""

    partitions: Annotated[int, Meta(ge=1, le=1024)]


class Resized(Struct, frozen=True, kw_only=True):
    """There were `before`, there are `partitions`; the work of `moved` actors changed its partition."""

    before: int
    partitions: int
    moved: int


class Setting(Struct, frozen=True, kw_only=True):
    """One setting in force. `origin` is `environment`, `default` or `unset`; a secret is shown as stars."""

    name: str
    value: str
    origin: str


class Config(Struct, frozen=True, kw_only=True):
    answered_by: str
    version: str
    settings: tuple[Setting, ...]


# ------------------------------------------------------------------------------------------------------ operations

STATUS: Final = Operation(name="status", question=Nothing, answer=Status)
ACTORS: Final = Operation(name="actors", question=ListActors, answer=Actors)
SHOW: Final = Operation(name="show", question=ChangeName, answer=Change)
WHY: Final = Operation(name="why", question=ChangeName, answer=Reasons, seconds=20.0)
RERUN: Final = Operation(name="rerun", question=Rerun, answer=Asked, acts=True)
DEAD: Final = Operation(name="dead", question=ListDead, answer=Dead)
RETRY: Final = Operation(name="retry", question=PickDead, answer=Picked, acts=True)
DROP: Final = Operation(name="drop", question=PickDead, answer=Picked, acts=True)
DELIVERIES: Final = Operation(name="deliveries", question=ListDeliveries, answer=Deliveries, seconds=30.0)
REDELIVER: Final = Operation(
    name="redeliver", question=Redeliver, answer=Redelivered, acts=True, seconds=60.0
)
BUDGET: Final = Operation(name="budget", question=BudgetQuestion, answer=Budget)
DRAIN: Final = Operation(name="drain", question=Drain, answer=Obeyed, acts=True)
RESIZE: Final = Operation(name="resize", question=Resize, answer=Resized, acts=True, seconds=60.0)
CONFIG: Final = Operation(name="config", question=Nothing, answer=Config)

OPERATIONS: Final[Sequence[Operation[Any, Any]]] = (
    *(
        STATUS,
        ACTORS,
        SHOW,
        WHY,
        RERUN,
        DEAD,
        RETRY,
        DROP,
        DELIVERIES,
        REDELIVER,
        BUDGET,
        DRAIN,
        RESIZE,
        CONFIG,
    ),
)


def decode_question(operation: Operation[Q, A], data: bytes) -> Q:
    """The question in a message; an empty message asks with the defaults.

    Raises Refused (`400`) naming the path, never a value.
    """
    try:
        return msgspec.json.decode(data or b"{}", type=operation.question)
    except msgspec.ValidationError as error:
        raise Refused("400", f"{operation.name}: the question does not fit at {path_of(error)}") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise Refused("400", f"{operation.name}: the question is not JSON") from None
