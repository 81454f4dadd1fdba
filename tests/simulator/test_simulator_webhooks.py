"""Webhooks: accepted by a typed parser made from GitHub's own schemas, signed, logged, and sent again on request."""

from __future__ import annotations

import asyncio
import hashlib
import hmac

import pytest
from githubkit.webhooks import parse, verify

from graft.simulator import Pull, Repository, Simulator, sign
from graft.simulator.demo_repository import DemoRepository

from .conftest import Api, Receiver


async def test_every_event_is_accepted_by_the_typed_parser(
    sim: Simulator,
    receiver: Receiver,
    repo: Repository,
    pull: Pull,
    api: Api,
    token: str,
    demo: DemoRepository,
) -> None:
    installation = repo.installation
    assert installation is not None
    await sim.edit(pull, title="Better", body="Longer")
    await sim.label(pull, "needs care")
    await sim.unlabel(pull, "needs care")
    await sim.set_draft(pull, True)
    await sim.set_draft(pull, False)
    await sim.synchronize(pull, f"{demo.head}~1")
    await sim.push(repo, "release", demo.base)
    await sim.retarget(pull, "release")
    run = await api.call(
        "POST",
        "/repos/octo/shop/check-runs",
        token=token,
        json={
            "name": "graft/intent",
            "head_sha": pull.head_sha,
            "conclusion": "neutral",
            "actions": [{"label": "Wrong", "description": "It is wrong", "identifier": "wrong"}],
        },
    )
    sim.press_button(run.json["id"], "wrong", user="mona")
    sim.rerequest_run(run.json["id"])
    await sim.rerequest_suite(repo.suites[pull.head_sha])
    review = await sim.review(pull, user="hubot", state="CHANGES_REQUESTED", body="Hm")
    await sim.dismiss_review(pull, review)
    issue = sim.open_issue(repo, title="Broken")
    await sim.label(issue, "incident")
    await sim.unlabel(issue, "incident")
    sim.close_issue(issue)
    await sim.close(pull, merged=True)
    await sim.reopen(pull)
    sim.archive(repo)
    sim.unarchive(repo)
    sim.rename(repo, "store")
    sim.suspend(installation)
    sim.unsuspend(installation)
    sim.withdraw_repositories(installation, [repo])
    sim.grant_repositories(installation, [repo])
    other = sim.install("acme", [])
    sim.transfer(repo, "acme", installation=other)
    sim.delete_repository(repo)
    sim.uninstall(installation)
    await sim.drain()

    assert {each.status for each in sim.deliveries} == {"OK"}
    seen = [(each.event, each.action) for each in sim.deliveries]
    assert set(seen) == {
        *(
            ("pull_request", action)
            for action in (
                "opened",
                "edited",
                "labeled",
                "unlabeled",
                "converted_to_draft",
                "ready_for_review",
                "synchronize",
                "closed",
                "reopened",
            )
        ),
        ("push", None),
        ("check_run", "created"),
        ("check_run", "completed"),
        ("check_run", "requested_action"),
        ("check_run", "rerequested"),
        ("check_suite", "requested"),
        ("check_suite", "rerequested"),
        ("pull_request_review", "submitted"),
        ("pull_request_review", "dismissed"),
        *(("issues", action) for action in ("opened", "labeled", "unlabeled", "closed")),
        *(
            ("repository", action)
            for action in ("archived", "unarchived", "renamed", "transferred", "deleted")
        ),
        *(("installation", action) for action in ("created", "suspend", "unsuspend", "deleted")),
        ("installation_repositories", "added"),
        ("installation_repositories", "removed"),
    }
    assert len(receiver.got) == len(sim.deliveries)
    for received in receiver.got:
        assert verify(sim.app.webhook_secret, received.body, received.headers["X-Hub-Signature-256"])
        parse(received.event, received.body)  # raises what does not fit GitHub's schemas


async def test_headers_are_those_of_github(sim: Simulator, receiver: Receiver, pull: Pull) -> None:
    await sim.drain()
    (got,) = receiver.got
    digest = hmac.new(sim.app.webhook_secret.encode(), got.body, hashlib.sha256).hexdigest()
    assert got.headers["X-Hub-Signature-256"] == f"sha256={digest}" == sign(sim.app.webhook_secret, got.body)
    assert got.headers["X-GitHub-Delivery"] == sim.deliveries[0].guid
    assert got.headers["X-GitHub-Hook-Installation-Target-ID"] == str(sim.app.id)
    assert got.headers["X-GitHub-Hook-Installation-Target-Type"] == "integration"
    assert got.headers["Content-Type"] == "application/json"
    assert got.headers["User-Agent"].startswith("GitHub-Hookshot/")


async def test_a_failed_delivery_is_logged_and_sent_again_under_its_guid(
    sim: Simulator, receiver: Receiver, pull: Pull, api: Api
) -> None:
    receiver.answers = [503]
    await sim.drain()
    failed = await api.call("GET", "/app/hook/deliveries?status=failure", token=api.app_token())
    (item,) = failed.json
    assert (item["status"], item["status_code"]) == ("Invalid HTTP Response: 503", 503)
    again = await api.call("POST", f"/app/hook/deliveries/{item['id']}/attempts", token=api.app_token())
    assert again.status == 202
    await sim.drain()
    sim.redeliver(item["guid"])
    await sim.drain()
    assert [each.guid for each in sim.deliveries] == [item["guid"]] * 3
    assert [each.redelivery for each in sim.deliveries] == [False, True, True]
    assert len({each.body for each in receiver.got}) == 1
    assert len({each.id for each in sim.deliveries}) == 3
    assert (await api.call("GET", "/app/hook/deliveries/77", token=api.app_token())).status == 404
    with pytest.raises(KeyError):
        sim.redeliver("no such guid")


async def test_the_log_is_paged_by_cursor(
    sim: Simulator, receiver: Receiver, repo: Repository, api: Api
) -> None:
    for number in range(5):
        sim.send("ping", {"zen": str(number)}, repository_id=repo.id)
    await sim.drain()
    seen: list[int] = []
    path = "/app/hook/deliveries?per_page=2"
    while path:
        page = await api.call("GET", path, token=api.app_token())
        seen += [each["id"] for each in page.json]
        link = page.headers.get("Link", "")
        path = link.partition("<")[2].partition(">")[0]
    assert seen == [each.id for each in reversed(sim.deliveries)]


async def test_a_closed_door_is_logged(sim: Simulator, repo: Repository) -> None:
    sim.app.webhook_url = "http://127.0.0.1:9/closed"
    delivery = sim.send("ping", {})
    await sim.drain()
    assert (delivery.status, delivery.status_code) == ("failed to connect to host", 0)


async def test_sends_are_bounded_in_number(sim: Simulator, receiver: Receiver) -> None:
    receiver.gate = asyncio.Event()
    for _ in range(40):
        sim.send("ping", {})
    while receiver.waiting < 16:
        await asyncio.sleep(0)
    receiver.gate.set()
    await sim.drain()
    assert len(receiver.got) == 40
    assert receiver.most_waiting == 16


async def test_a_swallowed_delivery_looks_delivered(sim: Simulator, receiver: Receiver, pull: Pull) -> None:
    await sim.drain()
    sim.faults.swallow_deliveries = 1
    await sim.set_draft(pull, True)
    await sim.drain()
    assert len(receiver.got) == 1
    assert [(each.status, each.status_code) for each in sim.deliveries] == [("OK", 202)] * 2


async def test_without_a_webhook_url_nothing_is_sent_or_listed(sim: Simulator, pull: Pull, api: Api) -> None:
    await sim.drain()
    assert [each.status for each in sim.deliveries] == ["inactive"]
    assert (await api.call("GET", "/app/hook/deliveries", token=api.app_token())).json == []


async def test_only_a_listening_installation_hears(
    sim: Simulator, receiver: Receiver, repo: Repository, demo: DemoRepository
) -> None:
    assert repo.installation is not None
    sim.suspend(repo.installation)
    await sim.open_pull(repo, head="feature")
    sim.unsuspend(repo.installation)
    sim.app.events.remove("push")
    await sim.push(repo, "other", demo.base)
    await sim.drain()
    assert [each.event for each in receiver.got] == ["installation", "installation", "check_suite"]


async def test_a_fork_names_no_pull_request_in_its_checks(
    sim: Simulator, receiver: Receiver, repo: Repository, api: Api, token: str
) -> None:
    pull = await sim.open_pull(repo, head="feature", fork="stranger")
    del repo.branches["feature"]
    run = await api.call(
        "POST",
        "/repos/octo/shop/check-runs",
        token=token,
        json={
            "name": "graft/intent",
            "head_sha": pull.head_sha,
            "conclusion": "neutral",
            "actions": [{"label": "Wrong", "description": "It is wrong", "identifier": "wrong"}],
        },
    )
    assert run.json["pull_requests"] == []
    sim.press_button(run.json["id"], "wrong")
    with pytest.raises(ValueError, match="no button"):
        sim.press_button(run.json["id"], "accurate")
    await sim.drain()
    pressed = sim.deliveries[-1].payload
    assert pressed["requested_action"] == {"identifier": "wrong"}
    assert pressed["check_run"]["pull_requests"] == []
    assert pressed["check_run"]["check_suite"]["head_branch"] is None


async def test_a_push_moves_only_the_pull_requests_of_its_branch(
    sim: Simulator, receiver: Receiver, repo: Repository, pull: Pull, demo: DemoRepository
) -> None:
    from_fork = await sim.open_pull(repo, head="feature", fork="stranger")
    await sim.drain()
    receiver.got.clear()
    await sim.push(repo, "feature", f"{demo.head}~1")
    await sim.drain()
    (synchronized,) = receiver.of("pull_request")
    event = parse("pull_request", synchronized.body)
    assert getattr(event, "action", None) == "synchronize"
    assert pull.previous_head_sha == demo.head
    assert from_fork.head_sha == demo.head
    pushed = next(each for each in sim.deliveries if each.event == "push").payload
    assert (pushed["before"], pushed["after"], pushed["forced"]) == (demo.head, pull.head_sha, True)
