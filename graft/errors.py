"""What a caller may do about a failure, as the class of the exception.

An error holds metadata that may be logged and stored: status codes, route templates, ids, paths, positions.
It never holds a request, a response, a diff, a prompt or text from a pull request.
"""

from __future__ import annotations


class GraftError(Exception):
    """Base of every error that Graft raises on purpose."""


class PermanentError(GraftError):
    """Trying again cannot help: the pull request is gone, access was withdrawn, ids do not match.

    `reason` is a short stable code, fit for a metric label and a database column.
    """

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class TransientError(GraftError):
    """The same call may succeed later; `retry_after` is the shortest sensible wait in seconds, if known."""

    def __init__(self, message: str, *, reason: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after = retry_after


class ConfigError(GraftError):
    """The operator has to change something. `problems` names each variable or file and what to do, never a value."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)
