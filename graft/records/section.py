"""A records review as markdown: the `records` section of the comment and the text of the check run.

Everything from the repository goes through `escape_prose` and `code_span`; lists are cut with a count.
"""

from __future__ import annotations

from collections.abc import Sequence

from graft.markdown import code_span, escape_prose
from graft.records.review import RecordsReview, Stale, TouchedClause, TouchedLaw

HEADING = "### Records"
SHOWN = 15
"""Most entries of one list in the comment; the check run shows four times as many."""

_TITLES = {
    "none": "No approved intent on the base branch",
    "fresh": "Approved intent and its evidence agree",
    "stale": "Approved intent has stale evidence",
}


def render_section(review: RecordsReview) -> str:
    """The section, heading first."""
    return f"{HEADING}\n\n{_body(review, SHOWN)}"


def check_output(review: RecordsReview) -> tuple[str, str]:
    """Title (Graft's own words) and summary of the `graft/records` check run, which always concludes neutral."""
    return _title(review), _body(review, 4 * SHOWN)


def _title(review: RecordsReview) -> str:
    title = _TITLES[review.status]
    if review.clauses or review.laws:
        counts = [f"{len(items)} {name}" for items, name in _counted(review) if items]
        return f"{title}; touches {' and '.join(counts)}"
    return title


def _counted(review: RecordsReview) -> list[tuple[Sequence[object], str]]:
    return [
        (review.clauses, "clause" if len(review.clauses) == 1 else "clauses"),
        (review.laws, "law" if len(review.laws) == 1 else "laws"),
    ]


def _body(review: RecordsReview, shown: int) -> str:
    blocks = [f"**{_title(review)}.**"]
    blocks += _listed("Touched clauses", [_clause(item) for item in review.clauses], shown)
    blocks += _listed("Touched laws", [_law(item) for item in review.laws], shown)
    blocks += _listed("Stale or to be run again", [_stale(item) for item in review.stale], shown)
    blocks += _listed(
        "What does not hold", [f"- {escape_prose(item, limit=300)}" for item in review.problems], shown
    )
    blocks += _listed("Changed evidence", [f"- {code_span(path)}" for path in review.protected], shown)
    if review.protected:
        blocks.append("A change of approved intent or of its evidence is sensitive, whatever else it does.")
    if review.truncated:
        blocks.append("Not everything was looked at: " + escape_prose("; ".join(review.truncated)))
    return "\n\n".join(blocks) + "\n"


def _listed(title: str, lines: Sequence[str], shown: int) -> list[str]:
    if not lines:
        return []
    more = [f"- and {len(lines) - shown} more"] if len(lines) > shown else []
    return [f"{title}:\n" + "\n".join([*lines[:shown], *more])]


def _clause(item: TouchedClause) -> str:
    return f"- {code_span(item.record)} {code_span(item.clause)} ({item.change}): {escape_prose(item.text, limit=200)}"


def _law(item: TouchedLaw) -> str:
    return f"- {code_span(item.law)} ({item.change})"


def _stale(item: Stale) -> str:
    return f"- {item.kind} {code_span(item.name)}: {escape_prose(item.reason, limit=300)}"
