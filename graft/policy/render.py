"""A decision as the `### Policy` section of the comment and as the `graft/policy` check run.

Text from outside (rule names, messages, paths, globs, labels, branches, people) goes through `graft.markdown`;
users and teams are code spans, so that nobody is notified by a report.
"""

from __future__ import annotations

from graft.markdown import code_span, escape_prose
from graft.policy.decision import Decision
from graft.policy.evaluate import State, Verdict
from graft.policy.facts import Fact
from graft.policy.loading import CANDIDATES, Status, why_none
from graft.policy.model import Outcome, Then

# Below the comment writer's 20,000 for a section, so that a table is never cut in the middle of a row.
MAX_TABLE = 14_000
MAX_FACTS_SHOWN = 6

_REPORT_ONLY = "<sub>Graft reports what the policy would do; it neither approves nor blocks.</sub>"
_SAYS = {State.MATCHED: "matched", State.NOT_MATCHED: "not matched", State.NOT_EVALUATED: "not evaluated"}


def render_section(decision: Decision) -> str:
    """Markdown that starts with `### Policy`; below 20,000 characters whatever the policy holds."""
    return f"### Policy\n\n{_body(decision)}\n"


def check_output(decision: Decision) -> tuple[str, str]:
    """Title (plain text of Graft's own words) and summary (the section without its heading) of the check run,
    which always concludes neutral."""
    return _title(decision), _body(decision)


def _title(decision: Decision) -> str:
    loaded, verdict = decision.loaded, decision.verdict
    if verdict is not None:
        return {
            Outcome.APPROVE: "Would approve",
            Outcome.REVIEW: "Would ask for a review" if verdict.then.count == 1 else "Would ask for reviews",
            Outcome.BLOCK: "Would block",
        }[verdict.outcome]
    if loaded.status is Status.NONE:
        return "No policy"
    if loaded.status is Status.INVALID:
        count = len(loaded.problems)
        return f"The policy is not valid: {count} problem{'s' if count > 1 else ''}"
    return "The policy cannot be read"


def _body(decision: Decision) -> str:
    verdict = decision.verdict
    if verdict is None:
        return _without_policy(decision)
    blocks = [_headline(verdict), _who_decided(verdict)]
    if verdict.then.message:
        blocks.append(f"> {escape_prose(verdict.then.message)}")
    shown = [guard for guard in verdict.guards if verdict.downgraded or guard.code == "policy_touched"]
    if shown:
        blocks.append("\n".join(f"- {_guard(guard)}" for guard in shown))
    if verdict.results:
        blocks.append(_table(verdict))
    blocks.append(_REPORT_ONLY)
    return "\n\n".join(blocks)


def _without_policy(decision: Decision) -> str:
    loaded, branch = decision.loaded, code_span(decision.base_ref)
    if loaded.status is Status.NONE:
        return f"No {code_span(CANDIDATES[0])} on {branch}, so there are no rules to report on."
    names = " and ".join(code_span(path) for path in loaded.paths) or "The policy"
    if loaded.status is Status.INVALID:
        problems = "\n".join(f"{loaded.path}:{problem}" for problem in loaded.problems)
        return f"{names} on {branch} is not valid, so no rule was asked.\n\n```text\n{problems}\n```"
    return f"{names} on {branch} {why_none(loaded)}. No rule was asked."


def _headline(verdict: Verdict) -> str:
    if verdict.outcome is Outcome.REVIEW:
        return f"**Would ask for {_reviews(verdict.then)}.**"
    return "**Would approve.**" if verdict.outcome is Outcome.APPROVE else "**Would block.**"


def _reviews(then: Then) -> str:
    reviews = "a review" if then.count == 1 else f"{then.count} reviews"
    people = [code_span(name, limit=100) for name in (*then.teams, *then.users)]
    if not people:
        return reviews
    shown, more = people[:20], len(people) - 20
    return f"{reviews} from {', '.join(shown)}{f' or {more} more' if more > 0 else ''}"


def _who_decided(verdict: Verdict) -> str:
    if verdict.rule is None:
        who = "No rule matched, so the default decides" if verdict.results else "The default decides"
    else:
        who = f"Rule {verdict.rule + 1}, {code_span(verdict.results[verdict.rule].name)}, decides"
    if verdict.downgraded:
        return f"{who}: it says approve, which is ruled out here."
    return f"{who}."


def _guard(guard: Fact) -> str:
    return f"Never approved by a rule, because {sentence(guard)}."


def _table(verdict: Verdict) -> str:
    rows = ["| | rule | | because |", "| --: | --- | --- | --- |"]
    size = 0
    for result in verdict.results:
        if result.state is State.NOT_EVALUATED:
            because = f"rule {(verdict.rule or 0) + 1} decided"
        else:
            shown = [sentence(fact) for fact in result.facts[:MAX_FACTS_SHOWN]]
            left = len(result.facts) - len(shown)
            because = "; ".join(shown) + (f"; and {left} more" if left else "") or "it has no conditions"
        row = f"| {result.index + 1} | {code_span(result.name)} | {_SAYS[result.state]} | {because} |"
        size += len(row) + 1
        if size > MAX_TABLE:
            rows.append(f"| | | | {len(verdict.results) - result.index} more rules are not shown |")
            break
        rows.append(row)
    return "\n".join(rows)


def sentence(fact: Fact) -> str:
    """A fact in markdown, its subjects as code."""
    return fact.text.format(*(code_span(subject, limit=100) for subject in fact.subjects))
