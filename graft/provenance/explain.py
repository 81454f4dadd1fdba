"""Says in one sentence why the answer is what it is: counts and Graft's own words, no text from outside."""

from __future__ import annotations

from collections.abc import Sequence

from graft.provenance.facts import MAX_COMMITS, CommitFacts, Part, Reason, Source


def explain(reason: Reason, commits: Sequence[CommitFacts], deciding: Sequence[CommitFacts]) -> str:
    """The sentence for a reason, given all commits and those that decided."""
    own = sum(f.part not in (Part.MERGE, Part.SUGGESTION) for f in commits)
    agents = sum(f.part is Part.AGENT for f in deciding)
    declared = sum(f.source is Source.DECLARED for f in deciding)
    match reason:
        case Reason.DECLARED:
            signed = agents - declared
            more = f" {_count(signed, 'more')} with an agent's signature." if signed else ""
            return f"Graft-Agent declares an agent in {_share(declared, own)}.{more}"
        case Reason.DETECTED:
            return f"An agent's signature is in {_share(agents, own)}; nothing is declared."
        case Reason.OPENED_BY_AGENT:
            return "An agent's own account opened the pull request; its commits are not signed."
        case Reason.AGENT_AND_HUMAN:
            return (
                f"{_count(agents, 'commit')} by an agent, {len(deciding) - agents} without any sign of one."
            )
        case Reason.NO_SIGNATURE:
            return "No commit declares an agent or carries an agent's signature."
        case Reason.ONLY_AUTOMATION:
            return "A bot known as automation is the author; no person's or agent's commit is there."
        case Reason.UNKNOWN_BOT:
            return f"{_count(len(deciding), 'commit')} by a bot that Graft does not know; it may be an agent."
        case Reason.TOO_MANY_COMMITS:
            return f"There are more than {MAX_COMMITS} commits, and Graft reads no more than that."
        case Reason.COMMITS_TRUNCATED:
            return "Not every commit of the change could be read."
        case Reason.MESSAGE_TOO_LONG:
            return f"{_count(len(deciding), 'commit')} with more text in the message than is read."
        case Reason.NO_COMMITS:
            return "There is no commit to go by."


def _count(number: int, noun: str) -> str:
    plural = "s" if number != 1 and noun != "more" else ""
    return f"{number} {noun}{plural}"


def _share(part: int, whole: int) -> str:
    if whole == 1:
        return "the only commit"
    return f"all {whole} commits" if part == whole else f"{part} of {whole} commits"
