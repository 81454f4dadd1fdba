"""The Anthropic API behind `LlmClient`; the only place where a client of its SDK is built.

The SDK is imported when the first client is built, because that takes longer than a whole `graft review`. Its
own retries are off: when to try again is the caller's decision, and a card says so. Its loggers and its
tracing are kept from recording requests, which hold diffs.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import msgspec

from graft.llm.decode import JsonError, decode_object
from graft.llm.types import LlmClient, LlmRequest, LlmResult, NoModel, Outcome, Turn, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anthropic import AsyncAnthropic
    from anthropic.types import MessageParam, OutputConfigParam, TextBlockParam

_COUNT_SECONDS = 20.0
_LONGEST_WAIT = 3_600.0

_BY_STATUS = {
    400: Outcome.INVALID_REQUEST,
    401: Outcome.UNAUTHORIZED,
    402: Outcome.BILLING,
    403: Outcome.UNAUTHORIZED,
    404: Outcome.UNKNOWN_MODEL,
    408: Outcome.TIMEOUT,
    413: Outcome.TOO_LONG,
    429: Outcome.RATE_LIMITED,
    504: Outcome.TIMEOUT,
    529: Outcome.OVERLOADED,
}


def connect(
    *,
    api_key: str | None = None,
    auth_token: str | None = None,
    base_url: str | None = None,
    from_environment: bool = False,
) -> LlmClient:
    """A client for the given credentials; the key wins over the token, as in the SDK.

    `from_environment` leaves finding credentials to the SDK, which knows workload identity federation and
    profiles. With none of the three the client answers `no_key` to everything.
    """
    if not (api_key or auth_token or from_environment):
        return NoModel()
    return AnthropicClient(_sdk_client(api_key, None if api_key else auth_token, base_url))


def _sdk_client(api_key: str | None, auth_token: str | None, base_url: str | None) -> AsyncAnthropic:
    import anthropic

    for name in ("anthropic", "httpx", "httpx2", "httpcore", "httpcore2"):
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.level, logging.WARNING))
    return anthropic.AsyncAnthropic(
        api_key=api_key,
        auth_token=auth_token,
        base_url=base_url,
        max_retries=0,
        open_telemetry=False,
    )


class AnthropicClient:
    """Implements `LlmClient`. Close it at the end of the program."""

    def __init__(self, sdk: AsyncAnthropic) -> None:
        self._sdk = sdk

    async def close(self) -> None:
        await self._sdk.close()

    async def complete(self, request: LlmRequest) -> LlmResult:
        begin = time.monotonic()
        result = await self._complete(request)
        return msgspec.structs.replace(result, seconds=time.monotonic() - begin)

    async def _complete(self, request: LlmRequest) -> LlmResult:
        import anthropic

        outcome = Outcome.BAD_RESPONSE
        try:
            # The SDK's own timeout is for one read at a time; a slow trickle is ended here.
            async with asyncio.timeout(request.timeout):
                message = await self._sdk.messages.create(
                    model=request.model,
                    max_tokens=request.max_tokens,
                    system=[_system(request)],
                    messages=[_message(turn) for turn in request.turns],
                    output_config=_output_config(request),
                    timeout=request.timeout,
                )
            return _of_message(message, request.model)
        except (TimeoutError, anthropic.APITimeoutError):
            outcome = Outcome.TIMEOUT
        except anthropic.APIConnectionError:
            outcome = Outcome.CONNECTION
        except anthropic.CredentialsError:
            outcome = Outcome.UNAUTHORIZED
        except anthropic.APIStatusError as error:
            return _of_status(error, request.model)
        except (anthropic.APIResponseValidationError, json.JSONDecodeError):
            pass  # a gateway answered 200 with something else than a message
        return LlmResult(outcome=outcome, model=request.model)

    async def count_tokens(self, model: str, text: str) -> int | None:
        import anthropic

        try:
            counted = await self._sdk.messages.count_tokens(
                model=model, messages=[_message(Turn("user", text))], timeout=_COUNT_SECONDS
            )
        except anthropic.AnthropicError:
            return None
        tokens = getattr(counted, "input_tokens", None)
        return tokens if isinstance(tokens, int) and tokens >= 0 else None


def _system(request: LlmRequest) -> TextBlockParam:
    return {"type": "text", "text": _encodable(request.system), "cache_control": {"type": "ephemeral"}}


def _message(turn: Turn) -> MessageParam:
    text = _encodable(turn.text)
    return (
        {"role": "user", "content": text} if turn.role == "user" else {"role": "assistant", "content": text}
    )


def _output_config(request: LlmRequest) -> OutputConfigParam:
    return {"format": {"type": "json_schema", "schema": request.schema}}


def _encodable(text: str) -> str:
    """Lone surrogates cannot be sent."""
    return text.encode("utf-8", "replace").decode()


def _of_status(error: Any, model: str) -> LlmResult:
    status: int = error.status_code
    outcome = _BY_STATUS.get(status, Outcome.SERVER_ERROR if status >= 500 else Outcome.INVALID_REQUEST)
    if outcome is Outcome.INVALID_REQUEST and _says_too_long(error):
        outcome = Outcome.TOO_LONG
    elif error.type == "overloaded_error":
        outcome = Outcome.OVERLOADED
    elif error.type == "billing_error":
        outcome = Outcome.BILLING
    return LlmResult(
        outcome=outcome,
        model=model,
        status=status,
        retry_after=_retry_after(error.response.headers) if outcome.is_temporary else None,
    )


def _says_too_long(error: Any) -> bool:
    """The API has no code of its own for a prompt above the context window, only this wording."""
    message = error.api_message
    return isinstance(message, str) and "prompt is too long" in message.lower()


def _of_message(message: object, model: str) -> LlmResult:
    """The SDK does not validate what arrives; every field is looked at before it is believed."""
    content = getattr(message, "content", None)
    if not isinstance(content, list):
        return LlmResult(outcome=Outcome.BAD_RESPONSE, model=model, status=200)
    texts = [getattr(block, "text", None) for block in content if getattr(block, "type", None) == "text"]
    text = "".join(text for text in texts if isinstance(text, str))
    answered = getattr(message, "model", None)
    result = LlmResult(
        outcome=Outcome.OK,
        model=answered if isinstance(answered, str) and answered else model,
        text=text,
        usage=_usage(getattr(message, "usage", None)),
        status=200,
    )
    return _judged(result, getattr(message, "stop_reason", None))


def _judged(result: LlmResult, stop_reason: object) -> LlmResult:
    if stop_reason == "refusal":
        return msgspec.structs.replace(result, outcome=Outcome.REFUSED)
    if stop_reason in ("max_tokens", "model_context_window_exceeded"):
        return msgspec.structs.replace(result, outcome=Outcome.MAX_TOKENS)
    if not result.text.strip():
        return msgspec.structs.replace(result, outcome=Outcome.EMPTY)
    try:
        return msgspec.structs.replace(result, data=decode_object(result.text))
    except JsonError:
        return msgspec.structs.replace(result, outcome=Outcome.BAD_JSON)


def _usage(usage: object) -> Usage:
    def tokens(name: str) -> int:
        value = getattr(usage, name, None)
        return value if isinstance(value, int) and value > 0 else 0

    return Usage(
        input_tokens=tokens("input_tokens"),
        output_tokens=tokens("output_tokens"),
        cache_read_tokens=tokens("cache_read_input_tokens"),
        cache_write_tokens=tokens("cache_creation_input_tokens"),
    )


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """`retry-after` in seconds or as a date (counted from the response's own `date`), within an hour."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (
                parsedate_to_datetime(value) - parsedate_to_datetime(headers.get("date", ""))
            ).total_seconds()
        except (ValueError, TypeError):
            return None
    if not math.isfinite(seconds):
        return None
    return min(max(seconds, 0.0), _LONGEST_WAIT)
