"""Three brokers, two replicas, and the leader of the stream dies under load: nothing is lost."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench import cluster


async def test_the_death_of_the_broker_that_leads_costs_nothing() -> None:
    with tempfile.TemporaryDirectory(prefix="graft-") as directory:
        found = await cluster.run(Path(directory), pulls=12, pace=4, durable=False)
    assert found.faults == []
    assert found.accepted >= 12
    # Nothing is accepted while nobody leads: a refusal, and not a promise, is what GitHub gets.
    assert 0 < found.election < 30
    assert found.silence > 0
