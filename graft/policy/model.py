"""What a valid graft.yaml says, as values.

A condition that is absent says nothing. Lists keep the order of the file; `Policy.hash` covers all of it and is
the only thing of a policy that is ever stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal

import msgspec

from graft.globs import Glob, GlobSet
from graft.risk import Risk

AUTHORS = ("agent", "human", "mixed", "automation", "unknown")
SOURCES = ("declared", "detected")
RECORDS = ("none", "fresh", "stale")


class Outcome(StrEnum):
    """What the policy would do. Graft only reports it."""

    APPROVE = "approve"
    REVIEW = "review"
    BLOCK = "block"


class Matcher(msgspec.Struct, frozen=True, kw_only=True):
    """Globs over paths, agents or models: `any` matches at least one; `only` all of them, and there is one;
    `none` not one."""

    any: GlobSet | None = None
    only: GlobSet | None = None
    none: GlobSet | None = None


class Labels(msgspec.Struct, frozen=True, kw_only=True):
    """Label names, upper and lower case alike: the change has one of `any`, each of `all`, not one of `none`."""

    any: tuple[str, ...] | None = None
    all: tuple[str, ...] | None = None
    none: tuple[str, ...] | None = None


class When(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions, all of which must hold. With none of them a rule matches everything."""

    author: tuple[str, ...] | None = None
    source: tuple[str, ...] | None = None
    agents: Matcher | None = None
    models: Matcher | None = None
    max_risk: Risk | None = None
    card_verified: bool | None = None
    paths: Matcher | None = None
    min_files: int | None = None
    max_files: int | None = None
    min_lines: int | None = None
    max_lines: int | None = None
    labels: Labels | None = None
    base: GlobSet | None = None
    task_linked: bool | None = None
    draft: bool | None = None
    records: tuple[str, ...] | None = None

    def conditions(self) -> Iterator[str]:
        """The names of the conditions that are set, in the order above."""
        return (name for name in self.__struct_fields__ if getattr(self, name) is not None)


class Then(msgspec.Struct, frozen=True, kw_only=True):
    """An outcome. `users`, `teams` (both without `@`) and `count` say who reviews, for `review` only."""

    outcome: Outcome
    users: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()
    count: int = 1
    message: str | None = None


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    when: When
    then: Then


class Policy(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    version: Literal[1] = 1
    sensitive_paths: tuple[Glob, ...] = ()
    rules: tuple[Rule, ...] = ()
    default: Then = Then(outcome=Outcome.REVIEW)

    @cached_property
    def hash(self) -> str:
        """SHA-256, in hex, of what the file says; comments, quoting and layout do not change it."""
        return hashlib.sha256(msgspec.json.encode(self, enc_hook=_plain)).hexdigest()

    @cached_property
    def conditions(self) -> frozenset[str]:
        """The names of the conditions that any rule uses (`labels`, `paths`, …)."""
        return frozenset(name for rule in self.rules for name in rule.when.conditions())


def _plain(value: Any) -> Any:
    if isinstance(value, Glob):
        return value.pattern
    if isinstance(value, GlobSet):
        return [glob.pattern for glob in value.globs]
    raise TypeError(f"no plain form for {type(value).__name__}")
