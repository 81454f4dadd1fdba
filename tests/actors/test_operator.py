"""What operators ask, answered by either of two replicas; and what no question can do."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.micro.service import ServiceVerb, control_subject

from actors.daemon import Daemon, running
from actors.presence import token
from graft import control, streams
from graft.cli.asking import REFUSED, Asker, Unanswered, asking
from graft.cli.broker import Broker
from graft.config import Settings
from graft.control import Operation, Refused
from graft.testing import agreeable_model
from graft.triggers import EVERYTHING, partition_of

from .conftest import MakeWorld
from .world import World

CHANGE = {"src/app.py": "def main():\n    return 2\n"}
POLICY = """\
version: 1
rules:
  - name: docs only
    when: {paths: {only: ["**/*.md"]}}
    then: approve
  - name: agents need two
    when: {author: [agent]}
    then: {review: {count: 2}}
default: review
"""


def broker_of(graft: World) -> Broker:
    settings = graft.daemon.services.settings
    return Broker(url=settings.nats_url.value, prefix=settings.nats_prefix, origin="test")


@asynccontextmanager
async def second(graft: World) -> AsyncIterator[Daemon]:
    """Another replica, once both hold their share."""
    settings = graft.daemon.services.settings
    assert isinstance(settings, Settings)
    async with running(settings) as other:
        async with asyncio.timeout(20):
            while len(graft.daemon.system.held) != 16 or len(other.system.held) != 16:
                await asyncio.sleep(0.05)
        yield other


@pytest.fixture
async def asker(graft: World) -> AsyncIterator[Asker]:
    async with asking(broker_of(graft)) as made:
        yield made


async def shown(graft: World) -> control.ChangeName:
    """A pull request that Graft has shown."""
    graft.commit("feature", CHANGE, message="Return two\n\nGraft-Agent: claude-code\n")
    pull = await graft.open()
    await graft.settled()
    return control.ChangeName(repository="Octo/Demo", number=pull.number)


async def bury(graft: World, *, need: str = "intent", number: int = 1) -> str:
    """A row of work that failed for good."""
    address = f"pull.{graft.repository.id}.{number}"
    await graft.pool.execute(
        """
        INSERT INTO work (address, need, partition, installation_id, repository_id, asked_at, attempts, dead_at,
                          last_failure)
        VALUES ($1, $2, $3, $4, $5, now(), 8, now(), '{"error": "NotFound", "reason": "not_found"}')
        """,
        address,
        need,
        graft.daemon.services.partitioning.of(address),
        graft.repository.installation.id if graft.repository.installation else 0,
        graft.repository.id,
    )
    return address


# ------------------------------------------------------------------------------------------------ the micro service


async def test_the_service_is_found_by_the_nats_tool(graft: World, asker: Asker) -> None:
    prefix = asker.broker.prefix
    found = await asker.client.request(control_subject(ServiceVerb.INFO, name=prefix), timeout=2)
    info = json.loads(found.data)
    assert info["name"] == prefix
    assert info["metadata"] == {"replica": graft.daemon.system.holder}
    subjects = {one["subject"]: one["metadata"]["acts"] for one in info["endpoints"]}
    assert subjects == {o.subject(prefix): str(o.acts).lower() for o in control.OPERATIONS}
    acting = {subject for subject, acts in subjects.items() if acts == "true"}
    assert acting == {
        f"{prefix}.ctl.act.{n}" for n in ("rerun", "retry", "drop", "redeliver", "drain", "resize")
    }


async def test_an_answer_goes_nowhere_but_to_an_operator(graft: World, asker: Asker) -> None:
    prefix, client = asker.broker.prefix, asker.client
    stream = streams.stream_name(prefix)
    heard: list[bytes] = []

    async def hear(message: object) -> None:
        heard.append(message.data)  # type: ignore[attr-defined]

    places = [
        f"$JS.API.STREAM.DELETE.{stream}",
        f"{prefix}.trigger.pull.1.2.pull_request",
        f"{prefix}.wake.guess",
        f"_INBOX_{prefix}_ingress.guess",
        f"_INBOX_{prefix}_daemon.guess",
    ]
    for place in places[1:]:
        await client.subscribe(place, cb=hear)
    questions = [operation.subject(prefix) for operation in control.OPERATIONS]
    questions += [control_subject(verb, name=prefix) for verb in ServiceVerb]
    between = [f"{prefix}.replica.all", f"{prefix}.holder.1"]
    between += [f"{prefix}.replica.{token(graft.daemon.system.holder)}"]
    for place in places:
        # Replicas do answer each other; the broker keeps operators from asking in their name.
        for question in questions if place == places[-1] else questions + between:
            await client.publish(question, b"{}", reply=place)
    await asker.ask(control.STATUS, control.Nothing())
    assert heard == []
    backlog = await graft.daemon.services.bus.backlog()
    assert backlog.messages == 0
    assert await graft.pool.fetchval("SELECT count(*) FROM webhook_deliveries") == 0


async def test_odd_questions_are_refused_without_an_echo(asker: Asker) -> None:
    for operation in control.OPERATIONS:
        for data in (
            b"\xff\xfe",
            b"[",
            b"[" * 100_000,
            b'{"limit": "sekret"}',
            b'{"number": "sekret"}',
            b"null",
        ):
            message = await asker.client.request(operation.subject(asker.broker.prefix), data, timeout=30)
            headers = message.headers or {}
            if operation.question is control.Nothing and data.startswith(b"{"):
                continue
            if headers.get("Nats-Service-Error-Code") is not None:
                assert headers["Nats-Service-Error-Code"] in ("400", "404", "409")
            assert "sekret" not in str(headers)


@given(st.binary(max_size=300))
def test_no_bytes_make_reading_a_question_fail_otherwise(data: bytes) -> None:
    for operation in control.OPERATIONS:
        with contextlib.suppress(Refused):
            control.decode_question(operation, data)


def test_the_steps_of_a_rerun_are_everything_that_is_shown() -> None:
    question = control.Rerun(repository="o/r", number=1, steps=EVERYTHING)
    data = msgspec.json.encode(question)
    assert control.decode_question(control.RERUN, data) == question
    with pytest.raises(Refused, match=r"\$\.steps"):
        control.decode_question(control.RERUN, data.replace(b"intent", b"votes"))


# ----------------------------------------------------------------------------------------------------- looking


async def test_status_tells_of_both_replicas_whoever_answers(graft: World, asker: Asker) -> None:
    async with second(graft) as other:
        answered: set[str] = set()
        async with asyncio.timeout(20):
            while len(answered) < 2:
                status = await asker.ask(control.STATUS, control.Nothing())
                answered.add(status.answered_by)
                assert {one.replica for one in status.replicas} == {
                    graft.daemon.system.holder,
                    other.system.holder,
                }
                assert all(one.answers for one in status.replicas)
                held = [p for one in status.replicas for p in one.partitions]
                assert sorted(held) == list(range(32))
                assert status.unheld == ()
        assert status.backlog is not None
        assert status.backlog.messages == 0
        assert (status.work.due, status.work.dead) == (0, 0)


async def test_what_an_actor_does_is_asked_of_its_holder(make_world: MakeWorld) -> None:
    model = agreeable_model().hold()
    async with make_world(model=model) as graft, asking(broker_of(graft)) as asker, second(graft) as other:
        graft.commit("feature", CHANGE)
        pull = await graft.open()
        # Only the first replica has a model; where the other holds the change there is nothing to wait for.
        address = f"pull.{graft.repository.id}.{pull.number}"
        held_by_first = partition_of(address, 32) in graft.daemon.system.held
        if held_by_first:
            await asyncio.wait_for(model.started.wait(), 20)
        holder = (graft.daemon if held_by_first else other).system.holder
        for _ in range(12):
            live = (await asker.ask(control.SHOW, name_of(graft, pull.number))).live
            assert live.replica == holder
            if held_by_first:
                assert live.doing is not None
                assert live.doing.doing == "asking the model"
                assert live.doing.head_sha == pull.head_sha
        status = await asker.ask(control.STATUS, control.Nothing())
        if held_by_first:
            assert [(one.name, one.doing) for one in status.running] == [("octo/demo#1", "asking the model")]
        model.release()
        await graft.settled()


def name_of(graft: World, number: int) -> control.ChangeName:
    return control.ChangeName(repository=graft.repository.full_name, number=number)


async def test_a_partition_that_nobody_holds_is_changing_hands(graft: World, asker: Asker) -> None:
    name = await shown(graft)
    assert (await asker.ask(control.SHOW, name)).live.state == "idle"
    await asker.ask(control.DRAIN, control.Drain(replica=graft.daemon.system.holder, force=True))
    async with asyncio.timeout(20):
        while graft.daemon.system.held:
            await asyncio.sleep(0.05)
    live = (await asker.ask(control.SHOW, name)).live
    assert (live.state, live.replica) == ("changing hands", None)


async def test_show_and_why_tell_what_was_decided_and_of_what(graft: World, asker: Asker) -> None:
    graft.builder.commit("main", {"graft.yaml": POLICY})
    await graft.simulator.push(graft.repository, "main")
    name = await shown(graft)
    change = await asker.ask(control.SHOW, name)
    assert (change.name, change.state, change.work) == ("octo/demo#1", "open", ())
    assert change.provenance is not None
    assert (change.provenance.author_kind, change.provenance.agents) == ("agent", ("claude-code",))
    assert [commit.decides for commit in change.provenance.commits] == [True]
    assert change.card is not None
    assert (change.card.status, change.card.reason) == ("unavailable", "no_model")
    assert {one.name for one in change.checks} == {"graft/intent", "graft/policy", "graft/provenance"}
    assert [one.status for one in change.displays] == ["unavailable"]
    assert change.verdict is not None
    assert [rule.name for rule in change.verdict.rules] == [None, None], "names are not stored"

    reasons = await asker.ask(control.WHY, name)
    assert reasons.policy_read == "ok"
    assert reasons.verdict is not None
    first, other = reasons.verdict.rules
    assert (first.name, first.state, first.code) == ("docs only", "not_matched", "paths_only")
    assert "src/app.py" in first.facts[0]
    assert (other.name, other.state) == ("agents need two", "matched")
    author, risk, policy = reasons.decisions
    assert author.outcome == "agent (declared)"
    assert any("claude-code" in fact for fact in author.facts)
    assert risk.decision == "risk"
    assert "verifier: not_run" in risk.facts
    assert policy.outcome == "review"
    assert any("rule 2 agents need two: matched" in fact for fact in policy.facts)


async def test_why_says_so_when_github_does_not_answer_or_the_head_has_moved_on(
    graft: World, asker: Asker
) -> None:
    graft.builder.commit("main", {"graft.yaml": POLICY})
    await graft.simulator.push(graft.repository, "main")
    graft.commit("feature", CHANGE)
    pull = await graft.open()
    await graft.settled()
    name = name_of(graft, pull.number)
    graft.daemon.system.take_part(False)
    head = graft.commit("feature", {"src/app.py": "def main():\n    return 3\n"})
    await graft.simulator.synchronize(pull, head)
    reasons = await asker.ask(control.WHY, name)
    assert reasons.policy_read.startswith("names only")
    assert reasons.verdict is not None
    assert reasons.verdict.rules[0].name == "docs only"
    # Not the trees: those are named by their content, and this daemon has them in memory.
    graft.simulator.faults.fail("GET /repos/{owner}/{repo}/pulls/{number}", status=500, times=None)
    reasons = await asker.ask(control.WHY, name)
    assert reasons.policy_read == "GitHub: server_error"
    assert reasons.verdict is not None
    assert [rule.code for rule in reasons.verdict.rules] == ["paths_only", "author"]


async def test_an_unknown_name_says_which_part_is_unknown(graft: World, asker: Asker) -> None:
    await shown(graft)
    with pytest.raises(Unanswered, match="no pull request 99 that Graft has seen") as caught:
        await asker.ask(control.SHOW, control.ChangeName(repository="octo/demo", number=99))
    assert caught.value.code == REFUSED
    with pytest.raises(Unanswered, match="no installation has a repository octo/other"):
        await asker.ask(control.WHY, control.ChangeName(repository="octo/other", number=1))


async def test_actors_are_listed_by_what_they_wait_for(graft: World, asker: Asker) -> None:
    await shown(graft)
    address = await bury(graft, number=5)
    actors = await asker.ask(control.ACTORS, control.ListActors(match="octo"))
    assert [(one.name, one.state, one.failure) for one in actors.actors] == [
        ("octo/demo#5", "dead", "not_found")
    ]
    waiting = await asker.ask(control.ACTORS, control.ListActors(state="waiting"))
    assert [one.address for one in waiting.actors] == ["lead"]
    assert (await asker.ask(control.ACTORS, control.ListActors(match=address))).total == 1
    assert (await asker.ask(control.ACTORS, control.ListActors(state="running"))).actors == ()


async def test_settings_are_shown_without_a_secret(graft: World, asker: Asker) -> None:
    answer = await asker.ask(control.CONFIG, control.Nothing())
    text = msgspec.json.encode(answer).decode()
    settings = graft.daemon.services.settings
    assert isinstance(settings, Settings)
    for secret in (
        settings.github_webhook_secret.value,
        settings.database_url.value,
        settings.nats_url.value,
        settings.github_app_private_key.value.splitlines()[1],
    ):
        assert secret not in text
    origins = {one.name: (one.value, one.origin) for one in answer.settings}
    assert origins["GRAFT_SETTLE_SECONDS"] == ("0.0", "environment")
    assert origins["GRAFT_CONCURRENCY"] == ("16", "default")
    assert origins["ANTHROPIC_API_KEY"] == ("", "unset")
    assert origins["GITHUB_WEBHOOK_SECRET"] == ("***", "environment")


async def test_the_budget_counts_what_was_spent_and_promised(make_world: MakeWorld) -> None:
    async with make_world(model=agreeable_model()) as graft, asking(broker_of(graft)) as asker:
        await shown(graft)
        answer = await asker.ask(control.BUDGET, control.BudgetQuestion())
        [row] = answer.rows
        assert (row.repository, row.calls, row.reserved_usd) == ("octo/demo", 3, 0)
        assert answer.daily_usd == 5
        assert 0 < row.spent_usd == pytest.approx(answer.spent_usd)
        assert row.left_usd == pytest.approx(5 - row.spent_usd)
        spend = (await asker.ask(control.SHOW, name_of(graft, 1))).spend
        assert sum(one.cost_usd for one in spend) == pytest.approx(row.spent_usd)
        assert (await asker.ask(control.BUDGET, control.BudgetQuestion(match="nobody"))).rows == ()


# ------------------------------------------------------------------------------------------------------ acting


async def test_a_rerun_does_everything_again_and_revives_what_was_dead(make_world: MakeWorld) -> None:
    model = agreeable_model()
    async with make_world(model=model) as graft, asking(broker_of(graft)) as asker:
        name = await shown(graft)
        calls = len(model.requests)
        await bury(graft)
        answer = await asker.ask(
            control.RERUN, control.Rerun(repository=name.repository, number=name.number, steps=EVERYTHING)
        )
        assert (answer.needs, answer.revived) == (EVERYTHING, 1)
        await graft.settled()
        assert len(model.requests) == 2 * calls, "the model is asked again although nothing has changed"
        assert await graft.pool.fetchval("SELECT count(*) FROM work WHERE address = $1", answer.address) == 0


async def test_a_rerun_reads_a_pull_request_that_no_event_told_of(graft: World, asker: Asker) -> None:
    await shown(graft)
    graft.simulator.app.webhook_url = None
    graft.commit("quiet", {"src/app.py": "def main():\n    return 4\n"})
    pull = await graft.open("quiet")
    await asker.ask(
        control.RERUN, control.Rerun(repository="octo/demo", number=pull.number, steps=EVERYTHING)
    )
    async with asyncio.timeout(20):
        while not graft.comments(pull):
            await asyncio.sleep(0.05)
    await graft.settled()


async def test_a_suspended_installation_refuses_a_rerun(graft: World, asker: Asker) -> None:
    name = await shown(graft)
    await graft.pool.execute("UPDATE installations SET suspended_at = now()")
    with pytest.raises(Unanswered, match="suspended"):
        await asker.ask(control.RERUN, control.Rerun(repository=name.repository, number=1, steps=("intent",)))
    assert (await asker.ask(control.SHOW, name)).inactive == "suspended"


async def test_dead_work_is_shown_revived_and_dropped(graft: World, asker: Asker) -> None:
    await shown(graft)
    one, other = await bury(graft, number=1), await bury(graft, number=2, need="policy")
    found = await asker.ask(control.DEAD, control.ListDead())
    assert {(row.address, row.name, row.need) for row in found.rows} == {
        (one, "octo/demo#1", "intent"),
        (other, "octo/demo#2", "policy"),
    }
    assert found.rows[0].failure == {"error": "NotFound", "reason": "not_found"}
    with pytest.raises(Unanswered, match="no such dead work"):
        await asker.ask(control.RETRY, control.PickDead(address=one, need="policy"))
    dropped = await asker.ask(control.DROP, control.PickDead(address=other))
    assert dropped.rows == ((other, "policy"),)
    revived = await asker.ask(control.RETRY, control.PickDead())
    assert revived.rows == ((one, "intent"),)
    await graft.settled()
    assert (await asker.ask(control.DEAD, control.ListDead())).total == 0


async def test_a_drained_replica_hands_everything_over_and_may_come_back(graft: World, asker: Asker) -> None:
    with pytest.raises(Unanswered, match="the only one that works"):
        await asker.ask(control.DRAIN, control.Drain(replica=graft.daemon.system.holder))
    with pytest.raises(Unanswered, match="no replica nobody"):
        await asker.ask(control.DRAIN, control.Drain(replica="nobody"))
    async with second(graft) as other:
        mine = graft.daemon.system
        obeyed = await asker.ask(control.DRAIN, control.Drain(replica=mine.holder))
        assert (obeyed.replica, obeyed.draining) == (mine.holder, True)
        async with asyncio.timeout(20):
            while mine.held or len(other.system.held) < 32:
                await asyncio.sleep(0.05)
        await shown(graft)
        status = await asker.ask(control.STATUS, control.Nothing())
        assert [one.draining for one in status.replicas if one.replica == mine.holder] == [True]
        back = await asker.ask(control.DRAIN, control.Drain(replica=mine.holder, undo=True))
        assert not back.draining
        async with asyncio.timeout(20):
            while len(mine.held) != 16:
                await asyncio.sleep(0.05)


async def test_deliveries_are_compared_with_github_and_sent_again(graft: World, asker: Asker) -> None:
    await shown(graft)
    graft.simulator.faults.swallow_deliveries = 1
    graft.commit("other", {"src/app.py": "def main():\n    return 5\n"})
    lost = await graft.open("other")
    await graft.simulator.drain()
    graft.simulator.send("star", {"action": "created"})
    await graft.simulator.drain()
    answer = await asker.ask(control.DELIVERIES, control.ListDeliveries())
    by_event = {(row.event, row.arrived): row for row in answer.rows if row.event != "check_run"}
    assert set(by_event) == {
        ("pull_request", "accepted"),
        ("pull_request", "unknown"),
        ("star", "unknown"),
    }
    missing = await asker.ask(control.DELIVERIES, control.ListDeliveries(missing=True))
    assert [row.guid for row in missing.rows] == [by_event["pull_request", "unknown"].guid]
    with pytest.raises(Unanswered, match="not among the newest"):
        await asker.ask(control.REDELIVER, control.Redeliver(guids=("nonsense",)))
    sent = await asker.ask(control.REDELIVER, control.Redeliver())
    assert sent.guids == (missing.rows[0].guid,)
    await graft.settled()
    async with asyncio.timeout(20):
        while not graft.comments(lost):
            await asyncio.sleep(0.05)
    assert (await asker.ask(control.DELIVERIES, control.ListDeliveries(missing=True))).rows == ()


async def test_a_database_that_is_away_is_said_and_not_waited_for(graft: World, asker: Asker) -> None:
    await graft.pool.execute("ALTER TABLE work RENAME TO gone")
    try:
        with pytest.raises(Unanswered, match="the database does not answer"):
            await asker.ask(control.STATUS, control.Nothing())
    finally:
        await graft.pool.execute("ALTER TABLE gone RENAME TO work")


def test_every_operation_has_a_subject_of_its_own() -> None:
    subjects = [operation.subject("graft") for operation in control.OPERATIONS]
    assert len(set(subjects)) == len(subjects)
    assert all(subject.startswith(("graft.ctl.read.", "graft.ctl.act.")) for subject in subjects)


def test_a_replica_is_one_token_whatever_its_host_is_called() -> None:
    assert token("web-1.eu.example.org-77-ab12cd") == "web-1_eu_example_org-77-ab12cd"
    check: Callable[[str], str] = token
    assert "." not in check("..>*.")
    assert (
        Operation(name="x", question=control.Nothing, answer=control.Nothing).subject("p") == "p.ctl.read.x"
    )
