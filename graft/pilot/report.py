"""The report: is Graft right, what does it say and cost, does it save time, what slipped by, what went wrong."""

from __future__ import annotations

from graft.pilot import costs, outcomes, rightness
from graft.pilot.document import Material, Report


def build(material: Material) -> Report:
    """The report of this material."""
    return Report(
        generated_at=material.generated_at,
        since=material.since,
        until=material.until,
        repositories=material.repositories,
        gate=material.gate,
        sections=(
            rightness.accuracy(material),
            rightness.risk(material),
            costs.section(material),
            outcomes.review_times(material.before, material.after),
            outcomes.escapes(material),
            outcomes.troubles(material),
        ),
    )
