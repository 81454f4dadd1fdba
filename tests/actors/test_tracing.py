"""One trace per delivery, where somebody traces; nothing at all where nobody does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from graft import tracing
from graft.testing import agreeable_model

from .conftest import MakeWorld

CHANGE = {"src/app.py": "def main():\n    return 2\n"}


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    """Spans of this test process; a provider can be set once only."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> Iterator[InMemorySpanExporter]:
    exporter.clear()
    yield exporter
    exporter.clear()


def parents(spans: tuple[ReadableSpan, ...], span: ReadableSpan) -> list[str]:
    """The names of the spans above this one, the root last."""
    by_id = {one.context.span_id: one for one in spans if one.context}
    found = []
    while span.parent is not None and span.parent.span_id in by_id:
        span = by_id[span.parent.span_id]
        found.append(span.name)
    return found


async def test_a_delivery_is_one_trace_through_broker_rows_and_actor(
    make_world: MakeWorld, spans: InMemorySpanExporter
) -> None:
    async with make_world(model=agreeable_model()) as graft:
        graft.commit("feature", CHANGE)
        pull = await graft.open()
        await graft.settled()
    found = spans.get_finished_spans()
    models = [one for one in found if one.name == "model"]
    assert len(models) == 3
    for one in models:
        assert parents(found, one) == ["run pull", "store", "publish", "webhook"]
        assert one.attributes is not None
        assert one.attributes["outcome"] == "ok"
    [run] = {one.context.trace_id for one in models if one.context}
    [root] = [one for one in found if one.name == "webhook" and one.context and one.context.trace_id == run]
    assert root.attributes is not None
    assert (root.attributes["event"], root.attributes["outcome"]) == ("pull_request", "accepted")
    stages = [event.name for one in found if one.name == "run pull" for event in one.events]
    assert "asking the model" in stages
    text = "".join(one.to_json() for one in found)
    assert "octo" not in text
    assert pull.issue.title not in text


async def test_a_failed_block_is_marked_with_its_class_and_not_its_text(spans: InMemorySpanExporter) -> None:
    with pytest.raises(ValueError, match="sekret"), tracing.span("block"):
        raise ValueError("sekret")
    [one] = spans.get_finished_spans()
    assert (one.status.is_ok, one.status.description) == (False, "ValueError")
    assert "sekret" not in one.to_json()


@pytest.mark.parametrize("header", ["", "nonsense", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "x" * 10_000])
def test_a_parent_that_is_none_starts_a_trace(header: str, spans: InMemorySpanExporter) -> None:
    with tracing.span("block", parent=header, links=[header]):
        pass
    [one] = spans.get_finished_spans()
    assert one.parent is None


def test_without_a_provider_nothing_is_traced_and_no_context_travels() -> None:
    code = (
        "from graft import tracing\n"
        "assert tracing.configure({}, service='graft') is False\n"
        "with tracing.span('block', parent='00-' + 'a' * 32 + '-' + 'b' * 16 + '-01'):\n"
        "    tracing.event('begun')\n"
        "with tracing.span('block'):\n"
        "    assert tracing.current() is None\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_endpoint_without_the_extra_says_what_to_install() -> None:
    code = (
        "import sys\n"
        "sys.modules['opentelemetry.exporter'] = None\n"
        "from graft import tracing\n"
        "from graft.errors import ConfigError\n"
        "try:\n"
        "    tracing.configure({'OTEL_EXPORTER_OTLP_ENDPOINT': 'http://h:4318'}, service='graft')\n"
        "except ConfigError as error:\n"
        "    assert 'graft-review[otel]' in str(error)\n"
        "else:\n"
        "    raise SystemExit('no error')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
