"""What would this repository's rules decide? Report only.

    loaded = await load(source)             # source: one commit of the base branch
    decision = decide(loaded, facts)        # pure
    render_section(decision), check_output(decision)

Runs with an empty environment: no network, no database, no settings.
"""

from graft.policy.decision import Decision, decide
from graft.policy.document import MAX_BYTES
from graft.policy.evaluate import Result, State, Verdict, evaluate
from graft.policy.facts import Card, Fact, Facts
from graft.policy.loading import (
    CANDIDATES,
    LoadedPolicy,
    PolicySource,
    Status,
    load,
    of_bytes,
    why_none,
)
from graft.policy.model import AUTHORS, Outcome, Policy, Rule, Then, When
from graft.policy.parse import ParsedPolicy, parse
from graft.policy.problems import Problem
from graft.policy.render import check_output, render_section
from graft.policy.schema import json_schema

__all__ = [
    "AUTHORS",
    "CANDIDATES",
    "MAX_BYTES",
    "Card",
    "Decision",
    "Fact",
    "Facts",
    "LoadedPolicy",
    "Outcome",
    "ParsedPolicy",
    "Policy",
    "PolicySource",
    "Problem",
    "Result",
    "Rule",
    "State",
    "Status",
    "Then",
    "Verdict",
    "When",
    "check_output",
    "decide",
    "evaluate",
    "json_schema",
    "load",
    "of_bytes",
    "parse",
    "render_section",
    "why_none",
]
