"""What went wrong between Graft and GitHub, as metadata only.

An HTTP library's errors carry requests and responses, and a response may quote a pull request. So every failure
is rebuilt here from a `Call`: method, route template (never the expanded URL), status, request id. The class
says what the caller may do, as in `graft.errors`; `reason` is fit for a metric label and a database column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from graft.errors import ConfigError, PermanentError, TransientError

_REQUEST_ID = re.compile(r"[0-9A-Za-z:._-]{1,80}", re.ASCII)
_CODE = re.compile(r"[a-z_]{1,40}", re.ASCII)


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it may be logged: which operation, and how it was answered (`status` is `None` when it
    was not)."""

    method: str
    route: str
    installation: int | None = None
    status: int | None = None
    request_id: str | None = None
    codes: tuple[str, ...] = ()

    @property
    def is_write(self) -> bool:
        return self.method not in ("GET", "HEAD")

    def answered(self, status: int, headers: Mapping[str, str], codes: tuple[str, ...] = ()) -> Call:
        """The same call with its outcome; a request id of an odd form is left out."""
        request_id = headers.get("x-github-request-id", "")
        return msgspec.structs.replace(
            self,
            status=status,
            request_id=request_id if _REQUEST_ID.fullmatch(request_id) else None,
            codes=codes,
        )

    def __str__(self) -> str:
        text = f"{self.method} {self.route}"
        if self.status is not None:
            text += f" answered {self.status}"
        if self.codes:
            text += f" ({', '.join(self.codes)})"
        if self.request_id:
            text += f" [request {self.request_id}]"
        return text


class GitHubRefused(PermanentError):
    """GitHub said no, and will say no again: `reason` is `not_found`, `gone`, `forbidden`, `unauthorized`,
    `unprocessable`, or `refused` for another status."""

    def __init__(self, call: Call, *, reason: str, hint: str) -> None:
        super().__init__(f"{call}: {hint}", reason=reason)
        self.call = call


class NotFound(GitHubRefused):
    """404: not there, not visible to the App, or not there *yet* (right after `opened`): the caller decides."""


class Forbidden(GitHubRefused):
    """403 that is no rate limit: a permission is missing or was withdrawn."""


class Unprocessable(GitHubRefused):
    """406 or 422: the request is understood and refused; `call.codes` holds GitHub's codes (`too_large`, …)."""


class InstallationUnavailable(GitHubRefused):
    """No token to be had: `reason` is `installation_suspended` or `installation_not_found`."""


class ResponseTooLarge(PermanentError):
    """The answer is larger than the caller's bound; nothing of it was kept."""

    def __init__(self, call: Call, *, limit: int) -> None:
        super().__init__(f"{call}: the answer is larger than {limit} bytes", reason="response_too_large")
        self.call = call
        self.limit = limit


class AppRefused(ConfigError):
    """GitHub refuses the App itself: its key, its id or our clock. Work cannot go on, deliveries can."""

    def __init__(self, call: Call, *, clock_skew: float | None = None) -> None:
        hint = "check GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY"
        if clock_skew is not None and abs(clock_skew) >= 30:
            direction = "ahead of" if clock_skew > 0 else "behind"
            hint += f", and the clock, which is {abs(clock_skew):.0f} s {direction} GitHub's"
        super().__init__([f"{call}: GitHub refuses the App's own token; {hint}"])
        self.call = call
        self.clock_skew = clock_skew


class GitHubUnavailable(TransientError):
    """No usable answer this time: `reason` is `unreachable`, `timeout`, `connection_lost`, `server_error` or
    `unexpected_answer`."""

    def __init__(self, call: Call, *, reason: str, hint: str, retry_after: float | None = None) -> None:
        super().__init__(f"{call}: {hint}", reason=reason, retry_after=retry_after)
        self.call = call


class AmbiguousWrite(GitHubUnavailable):
    """A write was sent and its outcome is not known: it may have been stored. Read before writing again."""


class RateLimited(TransientError):
    """The primary or secondary limit is reached, or Graft's own gate is still closed because of one."""

    def __init__(self, call: Call, *, reason: str, retry_after: float) -> None:
        super().__init__(
            f"{call}: {reason}, next try in {retry_after:.0f} s", reason=reason, retry_after=retry_after
        )
        self.call = call


class StaleRead(TransientError):
    """GitHub still shows, or already shows, another head than the one asked for."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="stale_snapshot", retry_after=2.0)


class _ErrorBody(msgspec.Struct):
    message: object = None
    errors: object = None


def read_error_body(body: bytes) -> tuple[str, tuple[str, ...]]:
    """The message, lower-cased and bounded, to look at and to forget; and GitHub's error codes, fit to keep.

    Never raises: a body that is no GitHub error gives `("", ())`.
    """
    try:
        parsed = msgspec.json.decode(body[:65_536], type=_ErrorBody)
    except (msgspec.DecodeError, RecursionError):
        return "", ()
    message = parsed.message[:1000].lower() if isinstance(parsed.message, str) else ""
    rows = parsed.errors if isinstance(parsed.errors, list) else []
    found = (row.get("code") for row in rows[:20] if isinstance(row, dict))
    codes = tuple(code for code in found if isinstance(code, str) and _CODE.fullmatch(code))
    return message, codes


def refusal(call: Call) -> GitHubRefused:
    """The error for an answered 4xx that is neither a rate limit nor about the token."""
    match call.status:
        case 404:
            return NotFound(call, reason="not_found", hint="it does not exist or the App may not see it")
        case 410 | 451:
            return GitHubRefused(call, reason="gone", hint="it was deleted or taken down")
        case 401:
            return GitHubRefused(call, reason="unauthorized", hint="a fresh installation token was refused")
        case 403:
            return Forbidden(
                call, reason="forbidden", hint="the App lacks a permission; compare with its settings"
            )
        case 406 | 422:
            return Unprocessable(call, reason="unprocessable", hint="GitHub refuses the request as it stands")
        case _:
            return GitHubRefused(call, reason="refused", hint="GitHub refuses the request")
