"""One trace per delivery: from the ingress through the broker and the rows of work to the runs of actors.

Without the `otel` extra, or without an endpoint to send to, every span is a no-op. Where spans go is set by
OpenTelemetry's own variables (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER, …). The
context travels as a W3C `traceparent`: a header of the message, a column of the row. Attributes are ids, codes
and names of needs, never anything from a pull request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from graft import __version__
from graft.errors import ConfigError

__all__ = ["configure", "current", "event", "span", "start"]

Attribute = str | int | bool

_NOBODY_TRACES: Final[AbstractContextManager[Span]] = nullcontext(trace.INVALID_SPAN)

_tracer: Final = trace.get_tracer("graft", __version__)
_wire: Final = TraceContextTextMapPropagator()
_KINDS: Final = {
    "server": SpanKind.SERVER,
    "producer": SpanKind.PRODUCER,
    "consumer": SpanKind.CONSUMER,
    "client": SpanKind.CLIENT,
    "internal": SpanKind.INTERNAL,
}


def configure(environment: Mapping[str, str], *, service: str) -> bool:
    """Send spans of this process where the environment says; whether it says so.

    Raises ConfigError when it does and the extra is not installed.
    """
    if not any(
        environment.get(name)
        for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    ):
        return False
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise ConfigError(
            ["OTEL_EXPORTER_OTLP_ENDPOINT: traces need the extra, run `pip install 'graft-review[otel]'`"]
        ) from None
    provider = TracerProvider(
        resource=Resource.create({"service.name": environment.get("OTEL_SERVICE_NAME") or service})
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return True


def start(name: str, *, kind: str = "internal", parent: str | None = None, **attributes: Attribute) -> Span:
    """A span that its caller ends; `parent` is a `traceparent`."""
    return _tracer.start_span(name, context=_context(parent), kind=_KINDS[kind], attributes=attributes)


def span(
    name: str,
    *,
    kind: str = "internal",
    parent: str | None = None,
    links: Iterable[str] = (),
    **attributes: Attribute,
) -> AbstractContextManager[Span]:
    """A span around a block, a child of `parent` or else of the block's own. An exception marks it as failed with
    its class, never its text."""
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return _NOBODY_TRACES  # a delivery costs so little that two spans of nothing show
    return _span(name, kind, parent, links, attributes)


@contextmanager
def _span(
    name: str, kind: str, parent: str | None, links: Iterable[str], attributes: Mapping[str, Attribute]
) -> Iterator[Span]:
    found = _tracer.start_span(
        name,
        context=_context(parent),
        kind=_KINDS[kind],
        attributes=attributes,
        links=[Link(trace.get_current_span(_context(one)).get_span_context()) for one in links],
    )
    with trace.use_span(found, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        try:
            yield found
        except BaseException as error:
            found.set_status(Status(StatusCode.ERROR, type(error).__name__))
            raise


def event(name: str) -> None:
    """Note in the current span that something began."""
    trace.get_current_span().add_event(name)


def current(of: Span | None = None) -> str | None:
    """The `traceparent` of a span, by default the current one; `None` while nobody traces."""
    carrier: dict[str, str] = {}
    _wire.inject(carrier, context=None if of is None else trace.set_span_in_context(of))
    return carrier.get("traceparent")


def _context(parent: str | None) -> Context | None:
    return None if parent is None else _wire.extract({"traceparent": parent})
