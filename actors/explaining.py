"""Why a change is shown as it is: its decisions, each with the facts that had a say.

The database holds indices and codes of a verdict, never a name or a value of graft.yaml. So the file is read
again through the API, at the commit at which it decided, and the rules are asked again with what is known of
the change. Where that gives another answer than the one stored, or GitHub does not show the file any more, the
stored codes stand alone and the answer says so.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from actors.inspection import Inspection, card_of, provenance_of, verdict_of
from actors.services import Services
from graft import control, policy, records
from graft.control import Because
from graft.errors import GraftError
from graft.github import CommitFiles, pulls, snapshot
from graft.intent import Card
from graft.policy import Decision, Facts
from graft.store import dossier
from graft.store.dossier import Subject

MOST_FACTS = 40


class Explaining:
    """Answers `why`."""

    def __init__(self, services: Services, inspection: Inspection) -> None:
        self.services = services
        self.inspection = inspection

    async def why(self, name: control.ChangeName) -> control.Reasons:
        """The decisions about a change. Raises Refused (`404`) for an unknown one."""
        subject = await self.inspection.find(name)
        async with self.services.pool.acquire() as connection:
            found = provenance_of(*await dossier.provenance(connection, subject.id))
            row, _ = await dossier.card(connection, subject.id)
            stored = await dossier.verdict(connection, subject.id)
        verdict = verdict_of(stored)
        read = "none"
        if verdict is not None and stored is not None and verdict.policy_status == "valid":
            verdict, read = await self._read_again(subject, verdict, stored, row, found)
        decisions = []
        if found is not None:
            decisions.append(why_author(found))
        card = card_of(row)
        if card is not None:
            decisions.append(why_risk(card))
        if verdict is not None:
            decisions.append(why_verdict(verdict))
        return control.Reasons(
            name=subject.name,
            head_sha=subject.head_sha,
            decisions=tuple(decisions),
            verdict=verdict,
            policy_read=read,
        )

    async def _read_again(
        self,
        subject: Subject,
        verdict: control.Verdict,
        stored: dict[str, Any],
        row: dict[str, Any] | None,
        found: control.Provenance | None,
    ) -> tuple[control.Verdict, str]:
        """The verdict with the names of its rules, and the facts where they are still the ones that decided."""
        client = self.services.github.installation(subject.installation_id)
        try:
            base = CommitFiles(client, subject.full_name, verdict.base_sha)
            loaded = await policy.load(base)
            if loaded.policy is None or loaded.policy.hash != stored["policy_hash"]:
                return verdict, "changed"
            named = _with_names(verdict, [rule.name for rule in loaded.policy.rules])
            pull = await pulls.read_pull(client, subject.full_name, subject.pr_number)
            if pull.head_sha != verdict.head_sha:
                return named, "names only: the head has moved on"
            change = await snapshot.read_snapshot(
                client,
                subject.full_name,
                base_sha=verdict.base_sha,
                head_sha=verdict.head_sha,
                number=subject.pr_number,
                expected=pull.counts,
            )
            head = CommitFiles(client, subject.full_name, verdict.head_sha)
            intent = await records.read(base, head, change, records.Memory())
        except GraftError as error:
            return verdict, f"GitHub: {getattr(error, 'reason', type(error).__name__)}"
        facts = Facts(
            files=change.files,
            incomplete=change.incomplete,
            author_kind=found.author_kind if found else "unknown",
            source=found.source if found else None,
            agents=found.agents if found else (),
            models=found.models if found else (),
            risk=None if row is None else Card.from_stored(row["card"]).risk,
            card=_policy_card(row),
            injection_suspected=bool(row and row["injection_suspected"]),
            labels=pull.labels,
            base_ref=verdict.base_ref,
            draft=pull.draft,
            task_linked=subject.task_linked,
            records=intent.status if intent else "none",
        )
        decision = policy.decide(loaded, facts)
        if decision.rule_codes() != stored["rules"] or decision.outcome != verdict.outcome:
            return named, "names only: the facts have changed since"
        return _with_facts(named, decision), "ok"


def _policy_card(row: dict[str, Any] | None) -> policy.Card:
    if row is None or row["status"] not in ("ready", "unverified"):
        return policy.Card.MISSING
    verified = row["status"] == "ready" and row["verifier_status"] == "agrees"
    return policy.Card.VERIFIED if verified else policy.Card.UNVERIFIED


def _with_names(verdict: control.Verdict, names: list[str]) -> control.Verdict:
    rules = tuple(
        replace(rule, name=names[rule.index] if rule.index < len(names) else None) for rule in verdict.rules
    )
    return replace(verdict, rules=rules)


def _with_facts(verdict: control.Verdict, decision: Decision) -> control.Verdict:
    assert decision.verdict is not None
    rules = tuple(
        replace(rule, facts=tuple(fact.plain() for fact in result.facts[:MOST_FACTS]))
        for rule, result in zip(verdict.rules, decision.verdict.results, strict=True)
    )
    guards = tuple(guard.plain() for guard in decision.verdict.guards)
    return replace(verdict, rules=rules, guards=guards)


# ------------------------------------------------------------------------------------------- decisions, in words


def why_author(found: control.Provenance) -> Because:
    """Who wrote it, and which commits say so."""
    facts = [f"reason: {found.reason}"]
    facts += [f"agent: {name}" for name in found.agents] + [f"model: {name}" for name in found.models]
    for commit in found.commits:
        if commit.decides:
            how = f" by the rule {commit.rule}" if commit.rule else ""
            who = f" {commit.agent}" if commit.agent else ""
            facts.append(f"commit {commit.sha[:10]}: {commit.author_kind}{who}, {commit.source}{how}")
    facts += [f"hint that decides nothing: {hint}" for hint in found.hints]
    return Because(decision="author", outcome=f"{found.author_kind} ({found.source})", facts=_cut(facts))


def why_risk(card: control.Card) -> Because:
    """The final risk: the highest of everything that has a say."""
    facts = [f"floor: {card.risk_floor}"]
    try:
        whole = Card.from_stored(card.card)
    except msgspec.ValidationError:
        # Written by another release; the columns still say what counted.
        pass
    else:
        for reason in whole.floor.reasons:
            where = f" in {reason.path}" if reason.path else ""
            detail = f" ({reason.detail})" if reason.detail else ""
            facts.append(f"floor rule {reason.code}: {reason.risk}{where}{detail}")
        facts += [f"addresses AI reviewers: {suspicion.text}" for suspicion in whole.suspicions]
        facts += [f"the file list may be incomplete: {code}" for code in whole.incomplete]
        facts += [f"not found in the diff: {doubt.text}" for doubt in whole.doubts]
    for who, risk in (
        ("first pass", card.risk_first_pass),
        ("writer", card.risk_writer),
        ("verifier", card.risk_verifier),
    ):
        if risk is not None:
            facts.append(f"{who}: {risk}")
    facts.append(f"verifier: {card.verifier_status}")
    facts.append(f"card: {card.status}" + (f", because {card.reason}" if card.reason else ""))
    if card.carried_from:
        facts.append(f"carried over from card {card.carried_from}")
    return Because(decision="risk", outcome=card.risk, facts=_cut(facts))


def why_verdict(verdict: control.Verdict) -> Because:
    """What the policy would do: the rules in their order, then the guards that stand above them."""
    facts = [
        f"policy: {verdict.policy_status} ({verdict.policy_path or 'no file'} at {verdict.base_sha[:10]})"
    ]
    for rule in verdict.rules:
        name = f" {rule.name}" if rule.name else ""
        because = "; ".join(rule.facts) or rule.code
        facts.append(f"rule {rule.index + 1}{name}: {rule.state.replace('_', ' ')}, {because}")
    if verdict.rule_index is None and verdict.policy_status == "valid":
        facts.append("no rule matched: the default decides")
    facts += [f"guard, never approved by a rule: {guard}" for guard in verdict.guards]
    return Because(decision="policy", outcome=verdict.outcome, facts=_cut(facts))


def _cut(facts: list[str]) -> tuple[str, ...]:
    if len(facts) <= MOST_FACTS:
        return tuple(facts)
    return (*facts[:MOST_FACTS], f"and {len(facts) - MOST_FACTS} more")
