"""Reads `Graft-Task`: the piece of work a commit says it belongs to.

It may be an issue of this repository (`#12`), of another one (`owner/repo#12`), an issue's address, or whatever a
tracker calls it (`PAY-311`). Only an issue of this repository has a number Graft may look up.
"""

from __future__ import annotations

import re

import msgspec

from graft.provenance.values import bounded

_ISSUE = re.compile(r"(?:(?P<repository>[\w.-]{1,100}/[\w.-]{1,100}))?#(?P<number>[1-9][0-9]{0,9})", re.ASCII)
_ADDRESS = re.compile(
    r"https://(?P<host>[\w.-]{1,200}(?::[0-9]{1,5})?)/(?P<repository>[\w.-]{1,100}/[\w.-]{1,100})"
    r"/issues/(?P<number>[1-9][0-9]{0,9})/?(?:[?#]\S*)?",
    re.ASCII,
)
_LARGEST = 2**31 - 1  # of a database's int


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """`text` is what to call it: short, one line, the same for the same task. `repository` is `owner/name` in
    lower case where it was given, `host` where an address was; `issue` is the number."""

    text: str
    issue: int | None = None
    repository: str | None = None
    host: str | None = None

    def issue_in(self, repository: str, host: str = "github.com") -> int | None:
        """The issue's number if it is one of this repository (`owner/name`)."""
        if self.repository is not None and self.repository != repository.lower():
            return None
        if self.host is not None and self.host != host.lower():
            return None
        return self.issue


def parse(value: str) -> Task | None:
    """The task a value names, `None` for an empty one."""
    text = bounded(value)
    if not text:
        return None
    found = _ISSUE.fullmatch(text) or _ADDRESS.fullmatch(text)
    if found is None or int(found["number"]) > _LARGEST:
        return Task(text=text)
    repository = (found["repository"] or "").lower() or None
    host = found.groupdict().get("host")
    name = f"{repository or ''}#{found['number']}" if host is None else text
    return Task(
        text=name, issue=int(found["number"]), repository=repository, host=host.lower() if host else None
    )
