"""What a model call is asked and what comes of it, without saying who answers.

`LlmClient.complete` returns a result for every outcome and raises only on a programming error, so that every
failure can be shown on a card and tested. Requests and results hold prompts and answers; their `repr` and
`log_context` never do.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal, Protocol

import msgspec


class Outcome(StrEnum):
    """How a call ended. The values are stored, logged and used as metric labels."""

    OK = "ok"
    NO_KEY = "no_key"
    BUDGET = "budget"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    SERVER_ERROR = "server_error"
    UNAUTHORIZED = "unauthorized"
    BILLING = "billing"
    UNKNOWN_MODEL = "unknown_model"
    INVALID_REQUEST = "invalid_request"
    TOO_LONG = "too_long"
    REFUSED = "refused"
    MAX_TOKENS = "max_tokens"
    EMPTY = "empty"
    BAD_JSON = "bad_json"
    BAD_RESPONSE = "bad_response"

    @property
    def is_temporary(self) -> bool:
        """The same call may succeed a little later, without anybody changing anything."""
        return self in _TEMPORARY


_TEMPORARY = frozenset(
    (
        Outcome.TIMEOUT,
        Outcome.CONNECTION,
        Outcome.RATE_LIMITED,
        Outcome.OVERLOADED,
        Outcome.SERVER_ERROR,
        Outcome.BAD_RESPONSE,
    )
)


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens as the API counts them. `input_tokens` leaves out what the cache read or wrote."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
        )

    @property
    def prompt_tokens(self) -> int:
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def total(self) -> int:
        return self.prompt_tokens + self.output_tokens


class Turn(msgspec.Struct, frozen=True):
    """One message of the conversation."""

    role: Literal["user", "assistant"]
    text: str

    def __repr__(self) -> str:
        return f"Turn({self.role!r}, {len(self.text)} characters)"


class LlmRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One call. `system` is the same for every call of one purpose and prompt version, so that it can be
    cached; what changes comes in `turns`. The answer is one JSON object that fits `schema`."""

    purpose: str
    model: str
    system: str
    turns: tuple[Turn, ...]
    schema: dict[str, Any]
    max_tokens: int
    timeout: float
    """Seconds for the whole call."""

    def __repr__(self) -> str:
        return f"LlmRequest(purpose={self.purpose!r}, model={self.model!r}, turns={self.turns!r})"


class LlmResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one call. `data` is the decoded JSON value of an `ok` result, `text` the raw answer."""

    outcome: Outcome
    model: str
    data: Any = None
    text: str = ""
    usage: Usage = Usage()
    seconds: float = 0.0
    status: int | None = None
    retry_after: float | None = None
    """Seconds after which the service asks to be called again."""

    def __repr__(self) -> str:
        return f"LlmResult(outcome={self.outcome!s}, model={self.model!r}, tokens={self.usage.total})"

    def log_context(self) -> dict[str, Any]:
        """All that may be logged about a call."""
        return {
            "model": self.model,
            "outcome": str(self.outcome),
            "input_tokens": self.usage.input_tokens,
            "output_tokens": self.usage.output_tokens,
            "cache_read_tokens": self.usage.cache_read_tokens,
            "cache_write_tokens": self.usage.cache_write_tokens,
            "duration_ms": round(self.seconds * 1000),
            "status": self.status,
        }


class LlmClient(Protocol):
    """Whoever answers: the Anthropic API, a fake, or nobody."""

    async def complete(self, request: LlmRequest) -> LlmResult:
        """Ask once, without retrying. Cancelling the task abandons the call."""

    async def count_tokens(self, model: str, text: str) -> int | None:
        """How many tokens `text` is for `model`, or `None` where nobody can say."""


class NoModel:
    """The client of an installation without a key: every call ends with `no_key`."""

    async def complete(self, request: LlmRequest) -> LlmResult:
        return LlmResult(outcome=Outcome.NO_KEY, model=request.model)

    async def count_tokens(self, model: str, text: str) -> int | None:
        return None


def estimate_tokens(text: str) -> int:
    """Tokens of `text` without asking anybody: two for every five bytes of UTF-8, rounded up.

    Source code runs at three to four bytes a token, and tokenizers since Claude 4.7 give about 30 % more, so
    this errs towards too many: a budget kept by it holds.
    """
    return len(text.encode("utf-8", "replace")) * 2 // 5 + 1
