"""What a run found out, as sections, check runs and rows. Pure but for `store`."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msgspec.structs import replace

from actors.carding import Findings, Shown
from actors.publish import Check, Publication
from actors.reading import Reading
from graft import intent, policy, provenance, records
from graft.database import Connection
from graft.github import checks
from graft.intent import Status
from graft.policy import Decision, Facts
from graft.store import results
from graft.store.results import CommitRow, ProvenanceRow, VerdictRow

FOOTER = "Graft reports. It never blocks and never approves."


NO_RECORDS = ("No intent records", "Neither the base branch nor this head has `.intent/`.")


def decide(reading: Reading, findings: Findings, shown: Shown) -> Decision | None:
    """What the policy would decide; `None` while it waits for the card."""
    if not shown.is_final:
        return None
    found = findings.provenance
    return policy.decide(
        findings.policy,
        Facts(
            files=findings.snapshot.files,
            incomplete=findings.snapshot.incomplete,
            author_kind=str(found.author_kind),
            source=str(found.source),
            agents=found.agents,
            models=found.models,
            risk=shown.card.risk,
            card=shown.policy_card,
            injection_suspected=bool(shown.card.suspicions),
            labels=reading.pull.labels,
            base_ref=reading.pull.base_ref,
            draft=reading.pull.draft,
            task_linked=bool(found.tasks),
            records=findings.records.status if findings.records else "none",
        ),
    )


def publication(
    reading: Reading,
    findings: Findings,
    shown: Shown,
    decision: Decision | None,
    *,
    thorough: bool,
    renew: frozenset[str],
) -> Publication:
    """The comment's sections and the check runs of this head. Checks of what is not decided yet come later."""
    change_id = str(reading.change.id)
    sections: dict[str, str | None] = {
        "intent": intent.render_section(shown.card, **_state(shown)),
        "provenance": provenance.render_section(findings.provenance),
        "policy": policy.render_section(decision) if decision else _policy_waits(reading.pull.head_sha),
        "records": records.render_section(findings.records) if findings.records else None,
    }
    found = [_check(checks.PROVENANCE, provenance.check_output(findings.provenance), change_id)]
    if findings.records is not None:
        found.append(_check(checks.RECORDS, records.check_output(findings.records), change_id))
    else:
        found.append(replace(_check(checks.RECORDS, NO_RECORDS, change_id), only_update=True))
    if decision is not None:
        output = intent.check_output(shown.card, **_state(shown))
        buttons = _buttons() if shown.card.status in (Status.READY, Status.UNVERIFIED) else ()
        found.append(_check(checks.INTENT, output, str(shown.card_id or change_id), buttons))
        found.append(_check(checks.POLICY, policy.check_output(decision), change_id))
    return Publication(
        head_sha=reading.pull.head_sha,
        base_ref=reading.pull.base_ref,
        sections=sections,
        footer=FOOTER,
        checks=tuple(found),
        thorough=thorough,
        renew=renew,
        display=(shown.card_id, shown.status),
    )


def _state(shown: Shown) -> dict[str, Any]:
    """How the card stands, in the words of `graft.intent`'s renderers."""
    return {"pending": not shown.is_final, "older": shown.older, "retry_at": shown.retry_at}


def _policy_waits(head_sha: str) -> str:
    return f"### Policy\n\nThe verdict for `{head_sha[:7]}` comes with the card."


def _check(
    name: str, output: tuple[str, str], external_id: str, actions: tuple[checks.Action, ...] = ()
) -> Check:
    title, summary = output
    return Check(
        name=name,
        output=checks.Output(title=title, summary=summary),
        external_id=external_id,
        actions=actions,
    )


def _buttons() -> tuple[checks.Action, ...]:
    return tuple(
        checks.Action(label=label, description=description, identifier=identifier)
        for identifier, label, description in intent.BUTTON_TEXTS
    )


def last_word(reading: Reading, *, thorough: bool) -> Publication:
    """The last update of a comment whose promise of a card will not be kept."""
    return Publication(
        head_sha=reading.pull.head_sha,
        base_ref=reading.pull.base_ref,
        sections={
            "intent": "### Intent\n\nThe pull request was closed before there was a card.",
            "policy": "### Policy\n\nThe pull request was closed before there was a verdict.",
        },
        footer=FOOTER,
        checks=(),
        thorough=thorough,
        display=(None, "closed"),
        expect_open=False,
    )


def last_card(reading: Reading, findings: Findings, shown: Shown) -> Publication:
    """The card of a closed pull request once more, where it is not certain that the comment shows it."""
    decision = decide(reading, findings, shown)
    found = publication(reading, findings, shown, decision, thorough=True, renew=frozenset())
    return replace(found, checks=(), expect_open=False)


async def store(
    connection: Connection, reading: Reading, findings: Findings, shown: Shown, decision: Decision | None
) -> bool:
    """Store the results of what was shown; whether the policy's verdict is a new one."""
    change_id, found = reading.change.id, findings.provenance
    await results.put_provenance(
        connection,
        change_id,
        ProvenanceRow(
            head_sha=reading.pull.head_sha,
            author_kind=str(found.author_kind),
            author_kind_reason=str(found.reason),
            source=str(found.source),
            agents=found.agents,
            models=found.models,
            deciding_commits=found.decided_by,
            hints=tuple(dict.fromkeys(f"{hint.kind}:{hint.agent or ''}" for hint in found.hints)),
        ),
        [
            CommitRow(
                commit_sha=commit.sha,
                source=str(commit.source),
                author_kind=str(commit.part),
                agent=commit.agent,
                model=commit.model,
                task=commit.task.text if commit.task else None,
                session=commit.session,
                rule=commit.rule,
            )
            for commit in found.commits
        ],
    )
    if found.tasks:
        task = found.tasks[0]
        number = task.issue_in(reading.repository.full_name)
        await results.link_task(connection, change_id, reading.repository.id, task.text, number)
    if decision is None:
        return False
    return await results.put_verdict(
        connection, change_id, verdict_row(reading, findings, decision, shown.card_id)
    )


def verdict_row(reading: Reading, findings: Findings, decision: Decision, card_id: UUID | None) -> VerdictRow:
    """The little of a decision that is stored: indices and codes, no name and no value of the file."""
    loaded = decision.loaded
    return VerdictRow(
        head_sha=reading.pull.head_sha,
        base_ref=reading.pull.base_ref,
        base_sha=findings.base_sha,
        policy_path=loaded.path,
        policy_hash=loaded.policy.hash if loaded.policy else None,
        policy_status=str(loaded.status),
        outcome=decision.outcome,
        rule_index=decision.rule_index,
        rules=decision.rule_codes(),
        guards=decision.guard_codes,
        card_id=card_id,
        facts_hash=decision.facts_hash,
    )
