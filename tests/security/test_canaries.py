"""Nothing kept, nothing told: words that occur nowhere else, and where they are not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from graft.cli import broker
from graft.errors import ConfigError
from graft.testing import agreeable_model
from proof.canaries import SECRETS, WORDS, search
from tests.actors.conftest import MakeWorld, make_world  # noqa: F401 - a fixture

SHOWN = {"title", "body", "issue title", "issue body", "diff", "file on the head", "file on the base"}


@pytest.mark.timeout(300)
async def test_no_text_and_no_secret_is_found_anywhere() -> None:
    found = await search(every=4)  # `python -m proof canaries` takes them all
    assert found.hits == ()
    assert found.shown >= SHOWN, "the daemon must have read it all"
    sizes = {place.name: len(place.data) for place in found.places}
    for name in ("files of the broker", "files of the database", "rows of the database", "the comment"):
        assert sizes[name] > 100
    assert sum(place.name == "`graft` with wrong settings" for place in found.places) > 10


def test_every_word_is_one_of_its_own() -> None:
    words = [*WORDS.values(), *SECRETS.values()]
    assert not any(word in other for word in words for other in words if word is not other)


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """The spans of this test; a process has one provider for good."""
    exporter = InMemorySpanExporter()
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield exporter
    exporter.shutdown()


async def test_no_text_is_in_a_trace(make_world: MakeWorld, spans: InMemorySpanExporter) -> None:  # noqa: F811
    async with make_world(model=agreeable_model()) as graft:
        graft.commit("feature", {"src/app.py": f"# {WORDS['diff']}\n"}, message=WORDS["commit message"])
        graft.simulator.faults.fail("POST /repos/{owner}/{repo}/issues/{number}/comments", status=500)
        await graft.open(title=WORDS["title"], body=WORDS["body"], labels=[WORDS["label"]])
        await graft.settled()
    told = "".join(span.to_json() for span in spans.get_finished_spans())
    assert len(told) > 1_000
    assert [name for name, word in WORDS.items() if word in told] == []
    assert graft.simulator.app.webhook_secret not in told


@pytest.mark.parametrize("field", ["creds", "nkey", "ca", "cert", "key"])
def test_credentials_pasted_where_a_path_belongs_are_not_repeated(field: str) -> None:
    pasted = f"-----BEGIN NATS USER JWT-----\n{SECRETS['broker password']}" * 100
    context = {"cert": __file__} if field == "key" else {}
    chosen = broker.Broker(
        url="nats://localhost",
        prefix="graft",
        origin="x",
        context=broker.Context(**{**context, field: pasted}),
    )
    with pytest.raises(ConfigError) as caught:
        chosen.arguments()
    assert SECRETS["broker password"] not in str(caught.value)
