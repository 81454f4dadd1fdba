"""What replicas tell each other, and operators through them, of this moment."""

from __future__ import annotations

from msgspec import Struct


class Doing(Struct, frozen=True, kw_only=True):
    """What an actor is at: `seconds` since it began with it, `head_sha` once it has read one. `name` is that of
    its repository or pull request, where the one that answers knows it."""

    address: str
    name: str = ""
    doing: str
    seconds: float
    head_sha: str | None = None
    needs: tuple[str, ...] = ()


class Limited(Struct, frozen=True, kw_only=True):
    """What one replica knows of an installation's rate limit (installation 0 is the App itself)."""

    installation_id: int
    replica: str
    limited_seconds: float
    remaining: int | None
    reset_seconds: float | None


class Roll(Struct, frozen=True, kw_only=True):
    """One replica's answer when all are called."""

    replica: str
    held: tuple[int, ...]
    running: tuple[Doing, ...]
    limits: tuple[Limited, ...]
    refused: str | None
    concurrency: int
    taken: int


class Order(Struct, frozen=True, kw_only=True):
    """To one replica: stop taking partitions and give back the idle ones, or (`undo`) take part again."""

    undo: bool = False


class Obeyed(Struct, frozen=True, kw_only=True):
    """The replica has begun with it; it still holds `partitions` and runs `running` actors."""

    replica: str
    draining: bool
    partitions: int
    running: int
