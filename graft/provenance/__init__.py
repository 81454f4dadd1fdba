"""Who wrote this change, and how do we know?

`resolve` reads the commits of a change and answers `agent`, `human`, `mixed`, `automation` or `unknown`, with the
reason and the commits that decided. It needs no network, no database and no setting, and takes any text.
"""

from graft.provenance.facts import AuthorKind, CommitFacts, Hint, Part, Provenance, Reason, Source
from graft.provenance.render import check_output, render_section, title
from graft.provenance.resolution import resolve
from graft.provenance.tasks import Task
from graft.provenance.trailers import Trailer

__all__ = [
    "AuthorKind",
    "CommitFacts",
    "Hint",
    "Part",
    "Provenance",
    "Reason",
    "Source",
    "Task",
    "Trailer",
    "check_output",
    "render_section",
    "resolve",
    "title",
]
