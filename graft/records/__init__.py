"""Intent records: what a person wants, a formal model of it, and the evidence that the two and the code agree.

The modules of the core import nothing but each other and the standard library, because `graft records vendor`
copies them into other repositories. This face of the package is for the pull request: a pure review of the files
of both sides, and its rendering. The commands are in `graft.cli.records`.
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

__all__ = [
    "RecordsReview",
    "Stale",
    "TouchedClause",
    "TouchedLaw",
    "check_output",
    "is_protected",
    "relevant",
    "render_section",
    "review",
]
