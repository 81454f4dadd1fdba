from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from graft import logs
from graft.errors import PermanentError

SECRET = "the title of a pull request"


class Output:
    """What was logged, as JSON records, and the counts of dropped fields."""

    def __init__(self) -> None:
        self.stream = io.StringIO()
        self.dropped: list[int] = []

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]

    @property
    def last(self) -> dict[str, Any]:
        return self.records[-1]


@pytest.fixture
def output() -> Iterator[Output]:
    root, graft = logging.getLogger(), logging.getLogger("graft")
    handlers, levels = root.handlers[:], (root.level, graft.level)
    made = Output()
    logs.configure(level="debug", stream=made.stream, dropped=made.dropped.append)
    yield made
    logs.configure(stream=io.StringIO())
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    graft.setLevel(levels[1])


@pytest.fixture
def log() -> structlog.stdlib.BoundLogger:
    return logs.get_logger("test")


def test_listed_fields_get_out_and_others_are_counted(
    output: Output, log: structlog.stdlib.BoundLogger
) -> None:
    log.info("something", number=12, repository="octo/demo", title=SECRET, body=SECRET)
    record = output.last
    assert record.pop("timestamp").endswith("Z")
    assert record == {
        "event": "something",
        "level": "info",
        "logger": "graft.test",
        "number": 12,
        "repository": "octo/demo",
    }
    assert output.dropped == [2]


def test_a_value_of_another_kind_is_dropped(output: Output, log: structlog.stdlib.BoundLogger) -> None:
    log.info(
        "something", paths={"$.a": SECRET}, reason=object(), error=ValueError(SECRET), needs=[{"x": SECRET}]
    )
    assert SECRET not in output.stream.getvalue()
    assert output.dropped == [4]


def test_lists_of_plain_values_are_kept_and_bounded(
    output: Output, log: structlog.stdlib.BoundLogger
) -> None:
    log.info("something", paths=("$.a", "$.b"), needs=list(range(1_000)))
    assert output.last["paths"] == ["$.a", "$.b"]
    assert len(output.last["needs"]) == 50


@pytest.mark.parametrize(
    "token",
    [
        "ghs_" + "a" * 36,
        "ghs_12345_eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxIn0.c2lnbmF0dXJl-_" + "x" * 400,
        "ghp_0123456789",
        "gho_x",
        "github_pat_11AAAA_bbbb",
        "sk-ant-api03-abc_def-ghi",
        "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxIn0.sig",
        "Bearer abc.def.ghi",
        "basic dXNlcjpwYXNz",
        "-----BEGIN RSA PRIVATE KEY-----",
    ],
)
def test_tokens_are_cut_out_wherever_they_are(
    token: str, output: Output, log: structlog.stdlib.BoundLogger
) -> None:
    log.info("something", route=f"before {token} after", paths=[token])
    text = output.stream.getvalue()
    assert token not in text
    assert token.split()[-1] not in text
    assert output.last["route"].startswith("before ")


def test_passwords_in_urls_are_cut_out() -> None:
    assert logs.redact("postgresql://graft:hunter2@db/graft") == "postgresql://***@db/graft"


def test_values_are_one_line_and_bounded(output: Output, log: structlog.stdlib.BoundLogger) -> None:
    log.info("something", reason="a\nb\x1b[31m" + "x" * 10_000)
    assert len(output.last["reason"]) == 300
    assert output.last["reason"].startswith("a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}")


def raise_permanent() -> None:
    raise PermanentError(SECRET, reason="gone")


def test_an_exception_is_class_reason_and_place(output: Output, log: structlog.stdlib.BoundLogger) -> None:
    try:
        raise_permanent()
    except PermanentError:
        log.exception("failed")
    assert output.last["error"] == "PermanentError"
    assert output.last["reason"] == "gone"
    assert output.last["frames"][-1].startswith("test_logs.py:")
    assert output.last["frames"][-1].endswith(" raise_permanent")
    assert SECRET not in output.stream.getvalue()


@pytest.mark.parametrize("exc_info", [True, ValueError(SECRET), (ValueError, ValueError(SECRET), None), None])
def test_exceptions_may_be_given_in_any_way(
    exc_info: object, output: Output, log: structlog.stdlib.BoundLogger
) -> None:
    log.error("failed", exc_info=exc_info)
    assert SECRET not in output.stream.getvalue()
    assert output.dropped == []


def test_libraries_are_heard_without_their_words(output: Output) -> None:
    library = logging.getLogger("some.library")
    library.info("not heard")
    library.warning("body was %s", SECRET)
    try:
        raise ValueError(SECRET)
    except ValueError:
        library.exception(SECRET)
    assert [record["logger"] for record in output.records] == ["some.library", "some.library"]
    assert output.last["error"] == "ValueError"
    assert output.last["where"].startswith("test_logs:")
    assert SECRET not in output.stream.getvalue()


def test_levels_are_kept(output: Output, log: structlog.stdlib.BoundLogger) -> None:
    logs.configure(level="warning", stream=output.stream)
    log.info("quiet")
    log.warning("loud")
    assert [record["event"] for record in output.records] == ["loud"]


def test_the_console_form_is_for_people(output: Output, log: structlog.stdlib.BoundLogger) -> None:
    stream = io.StringIO()
    logs.configure(form="console", stream=stream)
    log.warning("something", number=12, title=SECRET)
    assert "something" in stream.getvalue()
    assert "number=12" in stream.getvalue()
    assert SECRET not in stream.getvalue()


def test_a_handler_of_somebody_else_sees_only_what_is_safe(
    output: Output, log: structlog.stdlib.BoundLogger, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger().addHandler(caplog.handler)
    log.warning("something", title=SECRET)
    assert caplog.records
    assert all(SECRET not in str(record.__dict__) for record in caplog.records)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["title", "number", "reason", "paths", "error", "x"]), VALUES))
def test_no_fields_make_it_fail(fields: dict[str, Any]) -> None:
    counted: list[int] = []
    allow = logs.AllowList()
    allow.dropped = counted.append
    kept = allow(None, "info", {"event": "e", **fields})
    assert set(kept) <= logs.FIELDS
    assert sum(counted) == len(fields) + 1 - len(kept)
    json.dumps(kept)


def test_nothing_is_printed_before_logging_is_configured(run_python: Callable[[str], str]) -> None:
    printed = run_python("from graft.logs import get_logger; get_logger('x').error('e', number=1)")
    assert printed == ""
