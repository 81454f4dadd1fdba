"""Shows provenance in the managed comment and in the `graft/provenance` check run.

Everything that came from a commit is a code span; a section says the answer first, then what decided it, then what
did not decide it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graft.markdown import code_span
from graft.provenance.facts import AuthorKind, CommitFacts, Hint, Part, Provenance, Reason, Source

SHOWN_COMMITS = 10
SHOWN_HINTS = 10

_TITLES = {
    AuthorKind.AGENT: "Written by an agent",
    AuthorKind.HUMAN: "Written by a person, as far as the commits say",
    AuthorKind.MIXED: "Written by an agent and a person",
    AuthorKind.AUTOMATION: "Made by automation",
    AuthorKind.UNKNOWN: "Author unknown",
}
_PARTS = {
    Part.HUMAN: "no sign of an agent",
    Part.AUTOMATION: "automation",
    Part.BOT: "a bot Graft does not know",
    Part.MERGE: "merge",
    Part.SUGGESTION: "accepted suggestion",
    Part.UNREAD: "message too long",
}


def title(provenance: Provenance) -> str:
    """One line in Graft's own words: the answer and how it is known."""
    how = {
        Source.DECLARED: " (declared)",
        Source.DETECTED: " (detected)" if provenance.author_kind is not AuthorKind.AUTOMATION else "",
        Source.NONE: "",
    }
    return _TITLES[provenance.author_kind] + how[provenance.source]


def render_section(provenance: Provenance) -> str:
    """The section of the comment, from its `### ` heading on."""
    return "### Provenance\n\n" + "\n\n".join(_blocks(provenance, commits=SHOWN_COMMITS)) + "\n"


def check_output(provenance: Provenance) -> tuple[str, str]:
    """Title and summary of the check run."""
    return title(provenance), "\n\n".join(_blocks(provenance, commits=3 * SHOWN_COMMITS)) + "\n"


def _blocks(provenance: Provenance, *, commits: int) -> Iterable[str]:
    yield f"**{title(provenance)}.** {provenance.explanation}"
    facts = [
        f"{name}: {', '.join(code_span(v, limit=80) for v in values)}"
        for name, values in (
            ("Agent", provenance.agents),
            ("Model", provenance.models),
            ("Task", [t.text for t in provenance.tasks]),
        )
        if values
    ]
    if facts:
        yield " · ".join(facts)
    if provenance.author_kind in (AuthorKind.MIXED, AuthorKind.UNKNOWN) or len(provenance.agents) > 1:
        yield from _commit_list(provenance, commits)
    yield from _hint_list(provenance.hints)
    if provenance.reason is Reason.NO_SIGNATURE and not provenance.hints:
        yield "An agent that leaves no trace looks the same; a `Graft-Agent` trailer would say so."


def _commit_list(provenance: Provenance, most: int) -> Iterable[str]:
    decided = set(provenance.decided_by)
    shown = [f for f in provenance.commits if f.sha in decided]
    if shown:
        lines = [f"- {_short(f.sha)} {_what(f)}" for f in shown[:most]]
        if len(shown) > most:
            lines.append(f"- and {len(shown) - most} more")
        yield "\n".join(lines)


def _what(facts: CommitFacts) -> str:
    if facts.part is not Part.AGENT:
        return _PARTS[facts.part]
    return f"{', '.join(code_span(a, limit=80) for a in facts.agents)}, {facts.source}"


def _hint_list(hints: Sequence[Hint]) -> Iterable[str]:
    """Misplaced trailers are mistakes to mend; everything else is a sign that decides nothing."""
    mistakes = [_mistake(h) for h in hints if h.kind in ("misplaced_trailer", "unusable_trailer")]
    signs = list(
        dict.fromkeys(_sign(h) for h in hints if h.kind not in ("misplaced_trailer", "unusable_trailer"))
    )
    if mistakes:
        yield "Not read as declared:\n" + _bullets(mistakes)
    if signs:
        yield "Seen, but no evidence by itself:\n" + _bullets(signs)


def _mistake(hint: Hint) -> str:
    where = f"{_short(hint.commit or '')}" + (f", line {hint.line}" if hint.line else "")
    if hint.kind == "misplaced_trailer":
        return f"`{hint.key}` in {where}: outside the last paragraph of the message, so git does not read it"
    return f"{where}: Graft trailers without a `Graft-Agent` that names an agent"


def _sign(hint: Hint) -> str:
    where = f" in {_short(hint.commit)}" if hint.commit else ""
    agent = code_span(hint.agent or "", limit=80)
    text = {
        "branch": "name of the branch",
        "description": "footer in the description",
        "message": "phrase",
        "second_hand": "account or address that is not confirmed to be its own",
        "committer": "committer",
        "outvoted": "signature beside a declared agent",
    }[hint.kind]
    return f"{agent}: {text}{where}"


def _bullets(lines: Sequence[str]) -> str:
    rows = [f"- {line}" for line in lines[:SHOWN_HINTS]]
    if len(lines) > SHOWN_HINTS:
        rows.append(f"- and {len(lines) - SHOWN_HINTS} more")
    return "\n".join(rows)


def _short(sha: str) -> str:
    return code_span(sha[:7], limit=12)
