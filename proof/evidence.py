"""What is known of a trial: gathered from the simulated GitHub and from the database, for the judge."""

from __future__ import annotations

from collections.abc import Sequence

from graft.simulator import Delivery
from proof.ground import Ground
from proof.judge import Check, Evidence, Seen, Sent, Stored, Vote
from proof.load import HOLD, Load, Opened, ours

# Work that is there for good: the sweeps' rows, and reviewers that are read once an hour.
STANDING = "address <> 'lead' AND NOT (need = 'reviewers' AND due_at > now() + interval '1 minute')"

_CHANGES = """
SELECT c.id, c.repository_id, c.state, c.head_sha, c.base_ref, c.graft_comment_id AS comment_id,
       (SELECT head_sha FROM change_provenance p WHERE p.change_id = c.id) AS provenance_head,
       (SELECT jsonb_object_agg(name, check_run_id) FROM check_runs r
         WHERE r.change_id = c.id AND r.head_sha = c.head_sha) AS checks,
       k.goal, k.status AS card_status, v.outcome, v.base_ref AS verdict_base
  FROM changes c
  LEFT JOIN LATERAL (SELECT status, card -> 'goal' ->> 'text' AS goal FROM intent_cards
                      WHERE change_id = c.id AND head_sha = c.head_sha ORDER BY created_at DESC LIMIT 1) k ON true
  LEFT JOIN LATERAL (SELECT outcome, base_ref FROM policy_verdicts
                      WHERE change_id = c.id AND head_sha = c.head_sha ORDER BY evaluated_at DESC LIMIT 1) v ON true
 WHERE c.repository_id = ANY($1::bigint[])
"""


async def gather(
    ground: Ground, load: Load, deliveries: Sequence[Delivery], poison: Sequence[str], *, model_calls: int
) -> Evidence:
    """Everything of one trial, as it is now."""
    repositories = load.repositories
    sent = attempts(deliveries)
    rows = await ground.fetch(
        "SELECT delivery_id, status FROM webhook_deliveries WHERE delivery_id = ANY($1::text[])",
        [*(one.guid for one in sent), *poison],
    )
    changes = await ground.fetch(_CHANGES, repositories)
    votes = await ground.fetch(
        "SELECT f.user_login AS login, f.verdict FROM intent_feedback f JOIN changes c ON c.id = f.change_id"
        " WHERE c.repository_id = ANY($1::bigint[]) AND f.source = 'button' AND f.withdrawn_at IS NULL",
        repositories,
    )
    [ledger] = await ground.fetch(
        "SELECT (SELECT count(*) FROM intent_spend WHERE repository_id = ANY($1::bigint[]))"
        " + (SELECT count(*) FROM spend_reservations WHERE repository_id = ANY($1::bigint[])) AS held",
        repositories,
    )
    work = await ground.fetch(
        "SELECT address || ' ' || need AS name, dead_at IS NOT NULL AS dead, last_failure FROM work"
        f" WHERE (repository_id = ANY($1::bigint[]) OR dead_at IS NOT NULL) AND {STANDING}",
        repositories,
    )
    [pending] = await ground.fetch(
        "SELECT count(*) AS votes FROM pending_votes WHERE repository_id = ANY($1::bigint[])", repositories
    )
    stored = {row["repository_id"]: _stored(row) for row in changes}
    return Evidence(
        sent=sent,
        rows={row["delivery_id"]: row["status"] for row in rows},
        poison=tuple(poison),
        pulls=tuple(_seen(load, opened, stored.get(opened.pull.repository.id)) for opened in load.opened),
        pressed=tuple(Vote(login=press.login, verdict=press.verdict) for press in load.presses),
        votes=tuple(Vote(login=row["login"], verdict=row["verdict"]) for row in votes),
        model_calls=model_calls,
        ledger=ledger["held"],
        work=tuple(row["name"] for row in work if not row["dead"]),
        dead=tuple(f"{row['name']} {row['last_failure']}" for row in work if row["dead"]),
        pending_votes=pending["votes"],
        in_stream=(await ground.bus.backlog()).messages,
    )


def attempts(deliveries: Sequence[Delivery]) -> tuple[Sent, ...]:
    """The attempts of a log as deliveries."""
    found: dict[str, Sent] = {}
    for one in deliveries:
        before = found.get(one.guid)
        taken = one.status_code == 202
        found[one.guid] = Sent(
            guid=one.guid,
            event=f"{one.event}.{one.action}" if one.action else one.event,
            accepted=taken or (before is not None and before.accepted),
            ignored=(taken and '"ignored"' in (one.answer or "")) or (before is not None and before.ignored),
        )
    return tuple(found.values())


def _stored(row: dict[str, object]) -> Stored:
    fields = {name: row[name] for name in Stored.__struct_fields__ if name != "checks"}
    return Stored(checks=row["checks"] or {}, **fields)  # type: ignore[arg-type]  # as the columns are


def _seen(load: Load, opened: Opened, stored: Stored | None) -> Seen:
    pull = opened.pull
    return Seen(
        name=f"{pull.repository.full_name}#{pull.number} (pull.{pull.repository.id}.{pull.number})",
        open=pull.issue.state == "open",
        head_sha=pull.head_sha,
        base_ref=pull.base_ref,
        mark=load.material.mark(opened.slot, pull.head_sha),
        held=any(label.name == HOLD for label in pull.issue.labels),
        comments={comment.id: comment.body for comment in ours(pull)},
        checks=tuple(
            Check(id=run.id, name=run.name, head_sha=run.suite.head_sha, status=run.status)
            for run in pull.repository.runs.values()
        ),
        stored=stored,
    )
