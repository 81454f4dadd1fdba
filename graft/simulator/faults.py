"""Switches that make the simulated GitHub misbehave the way the real one does.

A rule names what it hits as `METHOD TEMPLATE` (`POST /repos/{owner}/{repo}/check-runs`), or `*` for everything,
and how often; an operation that does not exist is refused with `ValueError`. Rules set later come first.
Whatever is not switched on does not happen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

from graft.simulator.state import Comment, Installation, Issue, Pull


@dataclass(kw_only=True, eq=False)
class Rule:
    """One failure in waiting.

    `stage` says when: `before` the request has any effect, or `after` it was carried out. What happens is an
    answer with `status`, a `hang` (no answer until the simulator stops), or a `drop` of the connection.
    """

    target: str
    times: int | None
    stage: Literal["before", "after"]
    outcome: Literal["status", "hang", "drop"]
    status: int = 502
    message: str = "Server Error"
    headers: dict[str, str] = field(default_factory=dict)
    installation: Installation | None = None

    def hits(self, target: str, installation: Installation | None) -> bool:
        return (
            self.times != 0
            and self.target in ("*", target)
            and (self.installation is None or self.installation is installation)
        )

    def use(self) -> None:
        if self.times is not None:
            self.times -= 1


class Faults:
    """All switches of one simulator. `targets` are the operations it has; `waiting` requests hang now."""

    def __init__(self, targets: Collection[str]) -> None:
        self._targets = targets
        self.latency = 0.0
        self.route_latency: dict[str, float] = {}
        self.installation_latency: dict[int, float] = {}
        self.refuse_app_key = False
        self.swallow_deliveries = 0
        self.waiting = 0
        self._rules: list[Rule] = []
        self._old_heads: dict[int, tuple[str, int | None]] = {}
        self._hidden: dict[int, int] = {}
        self._lag: dict[int, int] = {}
        self._released = asyncio.Event()

    def fail(
        self,
        target: str = "*",
        *,
        status: int = 502,
        times: int | None = 1,
        message: str = "Server Error",
        headers: dict[str, str] | None = None,
        installation: Installation | None = None,
    ) -> Rule:
        """Answer with an error and do nothing."""
        return self._add(
            Rule(
                target=target,
                times=times,
                stage="before",
                outcome="status",
                status=status,
                message=message,
                headers=headers or {},
                installation=installation,
            )
        )

    def fail_after(self, target: str, *, status: int = 504, times: int | None = 1) -> Rule:
        """Do what was asked, then answer as if it had failed."""
        message = "We couldn't respond to your request in time."
        return self._add(
            Rule(target=target, times=times, stage="after", outcome="status", status=status, message=message)
        )

    def hang(self, target: str, *, times: int | None = 1, after: bool = False) -> Rule:
        """Never answer; with `after`, do what was asked first. `release()` ends the wait with a 504."""
        return self._add(
            Rule(target=target, times=times, stage="after" if after else "before", outcome="hang", status=504)
        )

    def drop(self, target: str, *, times: int | None = 1, after: bool = False) -> Rule:
        """Close the connection instead of answering; with `after`, do what was asked first."""
        return self._add(
            Rule(target=target, times=times, stage="after" if after else "before", outcome="drop")
        )

    def secondary_limit(
        self,
        installation: Installation,
        *,
        times: int | None = 1,
        retry_after: str | None = "60",
        status: int = 403,
        target: str = "*",
    ) -> Rule:
        """The limit against abuse. `retry_after` goes out as given, however odd; `None` leaves it out."""
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        message = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
        return self.fail(
            target, status=status, times=times, message=message, headers=headers, installation=installation
        )

    def primary_limit(self, installation: Installation, *, reset_at: float) -> None:
        """Use up the hour's requests of an installation until the given time."""
        installation.used = installation.hourly_limit
        installation.reset_at = reset_at

    def serve_old_head(self, pull: Pull, *, times: int | None = 1, sha: str | None = None) -> None:
        """Show an older head (by default the one before the last push) for the next reads of the pull request."""
        old = sha or pull.previous_head_sha
        if old is None:
            raise ValueError("the pull request has had one head only; name the SHA to show")
        self._old_heads[pull.id] = (old, times)

    def lag_comments(self, issue: Issue, *, reads: int) -> None:
        """Leave every comment made from now on out of the next `reads` lists of comments."""
        self._lag[issue.id] = reads

    def release(self) -> None:
        """End every hanging request."""
        self._released.set()
        self._released = asyncio.Event()

    def clear(self) -> None:
        """Switch everything off again; hanging requests are ended."""
        self.latency = 0.0
        self.route_latency.clear()
        self.installation_latency.clear()
        self.refuse_app_key = False
        self.swallow_deliveries = 0
        self._rules.clear()
        self._old_heads.clear()
        self._hidden.clear()
        self._lag.clear()
        self.release()

    # What the server asks.

    def take(self, target: str, installation: Installation | None, stage: str) -> Rule | None:
        """The rule that strikes here, counted as used."""
        for rule in reversed(self._rules):
            if rule.stage == stage and rule.hits(target, installation):
                rule.use()
                return rule
        return None

    async def delay(self, target: str, installation: Installation | None) -> None:
        seconds = self.route_latency.get(target, self.latency)
        if installation is not None:
            seconds = self.installation_latency.get(installation.id, seconds)
        if seconds > 0:
            await asyncio.sleep(seconds)

    async def wait(self) -> None:
        """Hang until `release()`."""
        self.waiting += 1
        try:
            await self._released.wait()
        finally:
            self.waiting -= 1

    def head_shown(self, pull: Pull, *, count: bool) -> str:
        """The head to show now; `count` says that this read is one of those the switch allows."""
        old = self._old_heads.get(pull.id)
        if old is None or old[1] == 0:
            return pull.head_sha
        sha, times = old
        if count and times is not None:
            self._old_heads[pull.id] = (sha, times - 1)
        return sha

    def comment_made(self, comment: Comment) -> None:
        reads = self._lag.get(comment.issue.id, 0)
        if reads:
            self._hidden[comment.id] = reads

    def comments_shown(self, issue: Issue) -> list[Comment]:
        """What a list of comments shows now; counts as one read."""
        shown = [comment for comment in issue.comments if not self._hidden.get(comment.id)]
        for comment in issue.comments:
            left = self._hidden.get(comment.id)
            if left:
                self._hidden[comment.id] = left - 1
        return shown

    def _add(self, rule: Rule) -> Rule:
        if rule.target != "*" and rule.target not in self._targets:
            raise ValueError(f"this GitHub has no operation {rule.target!r}")
        self._rules.append(rule)
        return rule
