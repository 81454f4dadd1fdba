"""Answers as tables for people. Text from outside (paths, logins, rule names, prose) can neither steer the terminal
nor pass for markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from graft import control

GOOD, BAD, DIM = "green", "bold red", "dim"


def plain(text: object) -> str:
    """One line without anything that a terminal would act on."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))


def duration(seconds: float | None) -> str:
    """About how long, in the unit that suits it."""
    if seconds is None:
        return "-"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if abs(seconds) >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s" if abs(seconds) < 10 else f"{seconds:.0f} s"


def since(moment: datetime | None) -> str:
    return "-" if moment is None else f"{duration((datetime.now(UTC) - moment).total_seconds())} ago"


def size(count: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count} {unit}"
        count //= 1024
    return f"{count} GiB"


def table(*columns: str, rows: Iterable[Sequence[object]], title: str | None = None) -> Table:
    """A table whose cells are plain text; a cell that is a Text keeps its style."""
    found = Table(
        title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style=DIM
    )
    for column in columns:
        right = column.endswith(">")
        found.add_column(column.rstrip(">"), justify="right" if right else "left", overflow="fold")
    for row in rows:
        found.add_row(*(cell if isinstance(cell, Text) else Text(plain(cell)) for cell in row))
    return found


def facts(rows: Iterable[tuple[str, object]]) -> Table:
    """Names and values beside each other."""
    found = Table(box=None, show_header=False, pad_edge=False)
    found.add_column(style=DIM, no_wrap=True)
    found.add_column(overflow="fold")
    for name, value in rows:
        found.add_row(name, value if isinstance(value, Text) else Text(plain(value)))
    return found


def _marked(text: str, bad: bool) -> Text:
    return Text(plain(text), style=BAD if bad else GOOD)


# ---------------------------------------------------------------------------------------------------------- status


def attention(answer: control.Status) -> list[str]:
    """What an on-call person should look at, worst first."""
    found = [f"{one.replica}: {one.refused}" for one in answer.replicas if one.refused]
    found += [f"{one.replica} does not answer" for one in answer.replicas if not one.answers]
    if answer.unheld:
        found.append(f"{len(answer.unheld)} partitions are held by nobody: their actors do not run")
    if answer.backlog is None:
        found.append("the broker does not answer for its stream: deliveries are refused")
    elif answer.backlog.oldest_seconds and answer.backlog.oldest_seconds > 60:
        found.append(f"the oldest trigger has been waiting for {duration(answer.backlog.oldest_seconds)}")
    if answer.work.oldest_due_seconds and answer.work.oldest_due_seconds > 300:
        found.append(f"the oldest due work has been waiting for {duration(answer.work.oldest_due_seconds)}")
    if answer.work.dead:
        found.append(f"{answer.work.dead} needs failed for good: `graftctl dead ls`")
    limited = sum(one.limited_seconds > 0 for one in answer.limits)
    if limited:
        found.append(f"GitHub limits {limited} installations for now")
    return found


def status(answer: control.Status) -> RenderableType:
    work, backlog = answer.work, answer.backlog
    parts: list[RenderableType] = [
        table(
            *("replica", "version", "started", "partitions>", "running>", "taken>", "state"),
            rows=[_replica(one) for one in answer.replicas],
        ),
        Text(),
        facts(
            [
                ("partitions", _partitions(answer)),
                ("backlog", _backlog(backlog)),
                (
                    "work",
                    f"{work.due} due, {work.waiting} waiting, {work.parked} parked, {work.dead} dead; "
                    f"oldest due {duration(work.oldest_due_seconds)}",
                ),
                ("changes", _counts(answer.changes) + f" in {answer.repositories} repositories"),
                ("installations", _counts(answer.installations)),
            ]
        ),
    ]
    if answer.running:
        parts += [Text(), _running(answer.running)]
    if answer.limits:
        parts += [Text(), _limits(answer.limits)]
    for problem in attention(answer):
        parts.append(Text(f"! {plain(problem)}", style=BAD))
    parts.append(Text(f"answered by {plain(answer.answered_by)}", style=DIM))
    return Group(*parts)


def _replica(one: control.Replica) -> tuple[object, ...]:
    state = "draining" if one.draining else "works"
    if not one.answers:
        state = "silent"
    if one.refused:
        state = "App refused"
    running = "-" if one.running is None else f"{one.running}/{one.concurrency}"
    taken = "-" if one.taken is None else one.taken
    return (
        *(one.replica, one.version, since(one.started_at), len(one.partitions), running, taken),
        _marked(state, state != "works"),
    )


def _partitions(answer: control.Status) -> str:
    unheld = ", ".join(map(str, answer.unheld[:20]))
    return f"{answer.partitions}, " + (f"nobody holds {unheld}" if unheld else "all held")


def _backlog(backlog: control.Backlog | None) -> str:
    if backlog is None:
        return "unknown: the broker does not answer"
    return (
        f"{backlog.messages} triggers ({size(backlog.bytes)} of {size(backlog.max_bytes)}), "
        f"{backlog.unacknowledged} being stored, oldest {duration(backlog.oldest_seconds)}"
    )


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"


def _running(running: Sequence[control.Doing]) -> Table:
    return table(
        *("running", "doing", "for", "head", "needs"),
        rows=[
            (one.name, one.doing, duration(one.seconds), (one.head_sha or "-")[:10], " ".join(one.needs))
            for one in running
        ],
    )


def _limits(limits: Sequence[control.Limited]) -> Table:
    return table(
        *("installation", "replica", "left>", "resets in", "limited for"),
        rows=[
            (
                one.installation_id or "the App",
                one.replica,
                "-" if one.remaining is None else one.remaining,
                duration(one.reset_seconds),
                _marked(duration(one.limited_seconds), True) if one.limited_seconds else "-",
            )
            for one in limits[:15]
        ],
    )


def actors(answer: control.Actors) -> RenderableType:
    if not answer.actors:
        return Text("nothing to do", style=DIM)
    rows = [
        (
            row.name,
            _marked(row.state, row.state in ("dead", "parked")),
            row.doing or " ".join(row.needs),
            _due(row.state, row.due_seconds),
            duration(row.age_seconds),
            row.attempts,
            row.failure or "",
            row.holder or "nobody",
        )
        for row in answer.actors
    ]
    found = table("actor", "state", "needs", "due", "age", "tries>", "last failure", "replica", rows=rows)
    left = answer.total - len(answer.actors)
    return Group(found, Text(f"and {left} more (--limit)", style=DIM)) if left > 0 else found


def _due(state: str, seconds: float) -> str:
    if state == "dead":
        return "never"
    return f"in {duration(seconds)}" if seconds > 0 else f"{duration(-seconds)} ago"


# ------------------------------------------------------------------------------------------------------ one change


def change(answer: control.Change) -> RenderableType:
    parts: list[RenderableType] = [
        facts(
            [
                ("pull request", Text(plain(answer.name), style="bold")),
                ("state", _state(answer)),
                ("author", (answer.author or "-") + (" (bot)" if answer.author_is_bot else "")),
                ("head", f"{answer.head_sha} into {answer.base_ref}"),
                ("updated", since(answer.updated_at)),
                ("comment", answer.comment_id or "-"),
                ("now", _now(answer.live)),
                ("waits for", _waits(answer.work)),
                ("address", f"{answer.address}, installation {answer.installation_id}"),
            ]
        )
    ]
    if answer.provenance is not None:
        parts += [Text(), _provenance(answer.provenance)]
    if answer.card is not None:
        parts += [Text(), _card(answer.card, answer.cards)]
    if answer.verdict is not None:
        parts += [Text(), _verdict(answer.verdict)]
    if answer.checks:
        rows = [(one.name, one.check_run_id, since(one.published_at)) for one in answer.checks]
        parts += [Text(), table("check run", "id>", "published", rows=rows)]
    if answer.displays:
        shown = [(one.shown_at.isoformat(), one.status, one.card_id or "-") for one in answer.displays]
        parts += [Text(), table("shown since", "status", "card", rows=shown)]
    if answer.votes:
        votes = [
            (
                one.login + (" (author)" if one.is_author else ""),
                one.verdict + (", withdrawn" if one.withdrawn else ""),
                one.source,
                since(one.voted_at),
            )
            for one in answer.votes
        ]
        parts += [Text(), table("vote by", "verdict", "source", "when", rows=votes)]
    if answer.spend:
        spend = [
            (one.purpose, one.model, one.outcome, one.calls, one.tokens, f"{one.cost_usd:.4f}")
            for one in answer.spend
        ]
        parts += [Text(), table("spent on", "model", "outcome", "calls>", "tokens>", "USD>", rows=spend)]
    return Group(*parts)


def _state(answer: control.Change) -> str:
    state = answer.state + (", draft" if answer.draft else "")
    return state + (f"; the installation or repository is {answer.inactive}" if answer.inactive else "")


def _now(live: control.Live) -> str:
    if live.doing is None:
        return live.state + (f" at {live.replica}" if live.replica else "")
    doing = live.doing
    return f"{doing.doing} for {duration(doing.seconds)} at {live.replica}"


def _waits(rows: Sequence[control.WorkRow]) -> str:
    found = []
    for row in rows:
        text = f"{row.need} ({row.state}"
        if row.state == "waiting":
            text += f", in {duration(row.due_seconds)}"
        if row.attempts:
            reason = (row.failure or {}).get("reason") or (row.failure or {}).get("error")
            text += f", {row.attempts} tries failed: {reason}"
        found.append(text + ")")
    return ", ".join(found) or "nothing"


def _provenance(found: control.Provenance) -> Table:
    return facts(
        [
            ("written by", f"{found.author_kind} ({found.source}; {found.reason})"),
            ("agents", ", ".join(found.agents) or "-"),
            ("models", ", ".join(found.models) or "-"),
            ("decided by", ", ".join(c.sha[:10] for c in found.commits if c.decides) or "-"),
        ]
    )


def _card(card: control.Card, count: int) -> Table:
    goal = (card.card.get("goal") or {}).get("text", "-")
    rows: list[tuple[str, object]] = [
        ("card", f"{card.status}{f' ({card.reason})' if card.reason else ''}, {count} so far; {card.id}"),
        ("risk", f"{card.risk} (floor {card.risk_floor}, verifier {card.verifier_status})"),
        ("for head", card.head_sha),
        ("goal", goal),
    ]
    rows += [("change", one.get("text", "")) for one in card.card.get("changes", ())]
    if card.carried_from:
        rows.append(("carried from", card.carried_from))
    rows.append(("models", f"{card.writer_model or '-'}, checked by {card.verifier_model or '-'}"))
    rows.append(("published", since(card.published_at)))
    return facts(rows)


def _verdict(verdict: control.Verdict) -> Table:
    rule = "the default" if verdict.rule_index is None else f"rule {verdict.rule_index + 1}"
    return facts(
        [
            ("policy", f"{verdict.policy_status}, {verdict.policy_path or 'no file'}"),
            ("would", f"{verdict.outcome}" + (f" by {rule}" if verdict.policy_status == "valid" else "")),
            ("guards", ", ".join(verdict.guards) or "-"),
            ("decided", since(verdict.evaluated_at)),
        ]
    )


def reasons(answer: control.Reasons) -> RenderableType:
    parts: list[RenderableType] = [Text(f"{plain(answer.name)} at {answer.head_sha}", style="bold")]
    for one in answer.decisions:
        parts.append(Text(f"\n{one.decision}: {plain(one.outcome)}", style="bold"))
        parts += [Text(f"  - {plain(fact)}") for fact in one.facts]
    if not answer.decisions:
        parts.append(Text("nothing is decided yet", style=DIM))
    if answer.policy_read not in ("ok", "none"):
        parts.append(Text(f"\ngraft.yaml, read again: {plain(answer.policy_read)}", style=DIM))
    return Group(*parts)


# ---------------------------------------------------------------------------------------------------------- others


def dead(answer: control.Dead) -> RenderableType:
    if not answer.rows:
        return Text("nothing failed for good", style=DIM)
    rows = [
        (row.name, row.need, since(row.dead_at), row.attempts, _failure(row.failure), row.address)
        for row in answer.rows
    ]
    found = table("actor", "need", "dead for", "tries>", "failure", "address", rows=rows)
    left = answer.total - len(answer.rows)
    return Group(found, Text(f"and {left} more (--limit)", style=DIM)) if left > 0 else found


def dead_one(rows: Sequence[control.DeadRow]) -> RenderableType:
    return Group(
        *(
            facts(
                [
                    ("actor", f"{row.name} ({row.address})"),
                    ("need", row.need + (" (forced)" if row.forced else "")),
                    ("dead", f"{row.dead_at.isoformat()} after {row.attempts} tries"),
                    ("first asked", row.first_asked_at.isoformat()),
                    ("failure", _failure(row.failure)),
                    ("head", row.head_sha or "-"),
                    ("installation", row.installation_id),
                ]
            )
            for row in rows
        )
    )


def _failure(failure: dict[str, Any] | None) -> str:
    if not failure:
        return "-"
    return ", ".join(str(failure[key]) for key in ("error", "reason") if failure.get(key))


def deliveries(answer: control.Deliveries) -> RenderableType:
    rows = [
        (
            row.guid,
            row.event + (f".{row.action}" if row.action else ""),
            since(row.delivered_at),
            row.attempts,
            f"{row.status_code} {row.status}" if row.status_code else row.status,
            _marked(row.arrived if row.handled or row.arrived != "unknown" else "not needed", row.is_missing),
            row.recovery_tries,
        )
        for row in answer.rows
    ]
    found = table(
        "delivery", "event", "sent", "attempts>", "GitHub's word", "arrived", "asked again>", rows=rows
    )
    missing = sum(row.is_missing for row in answer.rows)
    return Group(
        found,
        Text(f"{answer.read} attempts read, {missing} deliveries missing", style=BAD if missing else DIM),
    )


def budget(answer: control.Budget) -> RenderableType:
    rows = [
        (
            row.repository,
            f"{row.spent_usd:.4f}",
            f"{row.reserved_usd:.4f}",
            f"{row.left_usd:.4f}",
            row.calls,
            row.tokens,
        )
        for row in answer.rows
    ]
    return Group(
        table("repository", "spent>", "reserved>", "left>", "calls>", "tokens>", rows=rows),
        Text(
            f"US dollars since midnight UTC, {answer.daily_usd:g} a day and repository; "
            f"all together {answer.spent_usd:.4f} today, {answer.last_30_days_usd:.4f} in 30 days",
            style=DIM,
        ),
    )


def settings(answer: control.Config) -> RenderableType:
    rows = [(one.name, one.value or "-", one.origin) for one in answer.settings]
    return Group(
        table("setting", "value", "origin", rows=rows),
        Text(f"answered by {plain(answer.answered_by)}, {answer.version}", style=DIM),
    )


def console(*, wide: int = 120) -> Console:
    """The terminal; output that goes somewhere else is not cut to eighty columns."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=wide)
