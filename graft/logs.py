"""Structured logs that are safe by construction: only fields on a list get out, and no free text with them.

An event is a constant phrase; what varies goes into fields named in `FIELDS`. A field that is not on the list
is dropped and counted. Strings are cut and cleared of tokens. Exceptions are logged as class, reason and
positions in the code, never with their message; messages of libraries, which may quote anything, not at all.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, MutableMapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TextIO

import structlog

FIELDS: Final = frozenset(
    {
        # structlog's own
        *("event", "level", "logger", "timestamp"),
        # GitHub
        *("action", "check_run_id", "delivery_id", "github_event", "head_sha", "installation_id", "number"),
        *(
            "base_ref",
            "login",
            "permission",
            "remaining",
            "repository",
            "repository_id",
            "request_id",
            "route",
        ),
        *("method", "sha", "base_sha", "comment_id", "calls", "api_url"),
        # the running system
        *(
            "address",
            "ask_seq",
            "attempts",
            "backlog",
            "count",
            "epoch",
            "holder",
            "need",
            "needs",
            "partition",
        ),
        *(
            "partitions",
            "replica",
            "queued",
            "held",
            "version",
            "listen",
            "setting",
            "port",
            "signal",
            "path",
        ),
        # outcomes
        *("code", "duration_ms", "error", "frames", "outcome", "paths", "reason", "retry_after", "status"),
        *("where", "warning", "problem", "size", "due_at", "stream", "subject"),
        # models
        *("cache_read_tokens", "cache_write_tokens", "cost_usd", "input_tokens", "model", "output_tokens"),
        *("prompt_version", "purpose", "stop_reason", "risk", "cards"),
    }
)

_LONGEST: Final = 300
_MOST_ITEMS: Final = 50

# GitHub's tokens have no fixed length (installation tokens grow past 40 characters), so any length is cut out.
_TOKENS: Final = re.compile(
    r"gh[a-z]_[A-Za-z0-9._-]+"
    r"|github_pat_[A-Za-z0-9_]+"
    r"|sk-ant-[A-Za-z0-9_-]+"
    r"|eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)*"
    r"|-----BEGIN[^\n]*"
    r"|(?<=://)[^/@\s]+(?=@)"
    r"|(?i:(?<=bearer )|(?<=basic ))[A-Za-z0-9+/=._-]+"
)


def redact(text: str) -> str:
    """The text without anything that looks like a credential."""
    return _TOKENS.sub("***", text)


EventDict = MutableMapping[str, Any]


class AllowList:
    """A processor: what is not on the list is dropped, and `dropped` is told how many fields that were."""

    def __init__(self) -> None:
        self.dropped: Callable[[int], object] = lambda count: None

    def __call__(self, _logger: object, _method: str, event_dict: EventDict) -> EventDict:
        kept: EventDict = {}
        lost = 0
        for name, value in event_dict.items():
            if name in _INTERNAL:
                kept[name] = value
                continue
            safe = _safe(value) if name in FIELDS else _UNSAFE
            if safe is _UNSAFE:
                lost += 1
            else:
                kept[name] = safe
        if lost:
            self.dropped(lost)
        return kept


# What structlog passes from one processor to the next and takes out before rendering.
_INTERNAL: Final = frozenset({"_record", "_from_structlog"})
_UNSAFE: Final = object()


def _safe(value: object) -> object:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        # One line each: a line break in a value must not look like a second record.
        text = redact(value[: _LONGEST * 2])
        text = "".join(
            character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
        )
        return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [_safe(item) for item in list(value)[:_MOST_ITEMS]]
        return _UNSAFE if _UNSAFE in items else items
    return _UNSAFE


def _describe_exception(_logger: object, _method: str, event_dict: EventDict) -> EventDict:
    """`exc_info` becomes the class, our reason code and the positions it passed, innermost last."""
    given = event_dict.pop("exc_info", None)
    if given is True:
        given = sys.exc_info()[1]
    elif isinstance(given, tuple):
        given = given[1]
    if isinstance(given, BaseException):
        event_dict["error"] = type(given).__name__
        reason = getattr(given, "reason", None)
        if isinstance(reason, str):
            event_dict.setdefault("reason", reason)
        event_dict["frames"] = _frames(given.__traceback__)
    return event_dict


def _frames(traceback: TracebackType | None) -> list[str]:
    frames = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.append(f"{Path(code.co_filename).name}:{traceback.tb_lineno} {code.co_name}")
        traceback = traceback.tb_next
    return frames[-10:]


def _hide_message(_logger: object, _method: str, event_dict: EventDict) -> EventDict:
    """A record of a library: where it was written, not what it says."""
    record: logging.LogRecord = event_dict["_record"]
    event_dict["event"] = "library log"
    event_dict["logger"] = record.name
    event_dict["where"] = f"{record.module}:{record.lineno}"
    return event_dict


_allow_list: Final = AllowList()
_shared: Final[list[structlog.typing.Processor]] = [
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    _describe_exception,
]

# A program that configures no logging hears nothing of Graft's.
logging.getLogger("graft").addHandler(logging.NullHandler())
structlog.configure(
    processors=[
        structlog.stdlib.filter_by_level,
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        *_shared,
        _allow_list,
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
    ],
    wrapper_class=structlog.stdlib.BoundLogger,
    logger_factory=structlog.stdlib.LoggerFactory(),
    cache_logger_on_first_use=True,
)


def configure(
    *,
    level: str = "info",
    form: str = "json",
    stream: TextIO | None = None,
    dropped: Callable[[int], object] = lambda count: None,
) -> None:
    """Send all logs of the process to `stream` (standard error) as `json` lines or for a `console`.

    Libraries are heard from `warning` on. Calling it again replaces what was set before.
    """
    out = stream or sys.stderr
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=out.isatty())
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_shared, _hide_message, _allow_list],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    _allow_list.dropped = dropped
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("graft").setLevel(level.upper())


def bind(**fields: object) -> None:
    """Put these fields on every line that the current task, and tasks started by it, log from now on."""
    structlog.contextvars.bind_contextvars(**fields)


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """A logger below `graft`; the name is the module's idea, such as `ingress`."""
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(f"graft.{name}")
    return logger
