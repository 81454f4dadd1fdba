"""Decides what a policy would do with a change, as a value that carries every reason. Pure: facts in, verdict
out.

Rules are asked in order and the first one whose conditions all hold decides; without one, `default` does.
Four guards stand above the rules: whatever a rule says, a change that touches the policy file, whose file list
may be incomplete, whose card is not verified, or whose text seems to address AI reviewers, is never approved.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from graft.policy.conditions import answers
from graft.policy.facts import Card, Fact, Facts
from graft.policy.loading import CANDIDATES
from graft.policy.model import Outcome, Policy, Rule, Then


class State(StrEnum):
    MATCHED = "matched"
    NOT_MATCHED = "not_matched"
    NOT_EVALUATED = "not_evaluated"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one rule. `facts` decided it: all that held for a match, the first that did not for a
    mismatch, none for a rule that was not asked because an earlier one had matched."""

    index: int
    name: str
    state: State
    facts: tuple[Fact, ...] = ()

    @property
    def code(self) -> str:
        """The reason in one word, fit to be stored: a condition, `matched`, or `earlier_rule`."""
        if self.state is State.NOT_MATCHED:
            return self.facts[0].code
        return "matched" if self.state is State.MATCHED else "earlier_rule"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """`then` is what would happen, guards applied; `chosen` what the rules alone say. `rule` is the index of
    the rule that matched, `None` where the default decided. `guards` holds every guard that applies, also
    when there was nothing to prevent."""

    then: Then
    chosen: Then
    rule: int | None
    results: tuple[Result, ...]
    guards: tuple[Fact, ...] = ()

    @property
    def outcome(self) -> Outcome:
        return self.then.outcome

    @property
    def downgraded(self) -> bool:
        """Whether a guard turned an approval into a review."""
        return self.then.outcome is not self.chosen.outcome


def evaluate(policy: Policy, facts: Facts) -> Verdict:
    """The verdict. Equal arguments give equal verdicts, and no arguments make it raise."""
    results: list[Result] = []
    matched: int | None = None
    for index, rule in enumerate(policy.rules):
        if matched is not None:
            results.append(Result(index=index, name=rule.name, state=State.NOT_EVALUATED))
            continue
        result = _ask(index, rule, facts)
        results.append(result)
        if result.state is State.MATCHED:
            matched = index
    chosen = policy.default if matched is None else policy.rules[matched].then
    against = guards(facts)
    then = chosen
    if against and chosen.outcome is Outcome.APPROVE:
        by_default = policy.default.outcome is Outcome.REVIEW
        then = policy.default if by_default else Then(outcome=Outcome.REVIEW)
    return Verdict(then=then, chosen=chosen, rule=matched, results=tuple(results), guards=against)


def _ask(index: int, rule: Rule, facts: Facts) -> Result:
    held: list[Fact] = []
    for holds, fact in answers(rule.when, facts):
        if not holds:
            return Result(index=index, name=rule.name, state=State.NOT_MATCHED, facts=(fact,))
        held.append(fact)
    return Result(index=index, name=rule.name, state=State.MATCHED, facts=tuple(held))


# `.github` itself as a file of the change means it became, or was, a link or a submodule.
_POLICY_PATHS = frozenset((*CANDIDATES, ".github"))


def guards(facts: Facts) -> tuple[Fact, ...]:
    """Each reason why this change cannot be approved, whatever the rules say."""
    found: list[Fact] = []
    touched = [path for file in facts.files for path in file.paths if path.lower() in _POLICY_PATHS]
    if touched:
        text = "the change touches the policy file {}"
        found.append(Fact(code="policy_touched", text=text, subjects=(touched[0],)))
    if facts.incomplete:
        found.append(Fact(code="files_incomplete", text="the list of files may be incomplete"))
    if facts.card is not Card.VERIFIED:
        text = "there is no intent card" if facts.card is Card.MISSING else "the intent card is not verified"
        found.append(Fact(code="card_unverified", text=text))
    if facts.injection_suspected:
        text = "text of the pull request seems to address AI reviewers"
        found.append(Fact(code="injection_suspected", text=text))
    return tuple(found)
