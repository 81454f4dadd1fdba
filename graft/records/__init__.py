"""Intent records: what a person wants, a formal model of it, and the evidence that the two and the code agree.

The modules of the core import nothing but each other and the standard library, because `graft records vendor`
copies them into other repositories. This face of the package is for the pull request: `read` takes `.intent/` of both
sides from whatever holds them, `review` is the pure comparison, and the rest is its rendering. The commands are in
`graft.cli.records`.
"""

from graft.records.review import (
    RecordsReview,
    Stale,
    TouchedClause,
    TouchedLaw,
    is_protected,
    relevant,
    review,
)
from graft.records.section import check_output, render_section
from graft.records.sides import Memory, Source, read

__all__ = [
    "Memory",
    "RecordsReview",
    "Source",
    "Stale",
    "TouchedClause",
    "TouchedLaw",
    "check_output",
    "is_protected",
    "read",
    "relevant",
    "render_section",
    "review",
]
