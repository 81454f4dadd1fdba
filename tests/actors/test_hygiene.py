"""Nothing kept, nothing told: unique words in every untrusted field, and then a search everywhere else."""

from __future__ import annotations

import io
import logging
from pathlib import Path

import asyncpg

from graft import logs
from graft.llm import LlmRequest
from graft.testing import FakeModel, verifier_answer, writer_answer

from .conftest import MakeWorld

FIELDS = ("title", "body", "issuetitle", "issuebody", "diff", "message", "rawanswer", "label", "edited")
CANARY = {field: f"canary{field}q7x9" for field in FIELDS}


def seen_by_model(request: LlmRequest) -> str:
    return "".join(turn.text for turn in request.turns)


async def test_no_text_of_a_pull_request_is_stored_logged_or_queued(
    make_world: MakeWorld, tmp_path: Path, servers_directory: Path, database_url: str
) -> None:
    answers = FakeModel()
    # First an answer that is no JSON and holds a canary, so that raw output takes the repair's way.
    answers.says("writer", f"I would rather say {CANARY['rawanswer']}")
    answers.says("writer_repair", writer_answer("Returns two.", ["main returns two."], "logic"))
    answers.says("writer", writer_answer("Returns two.", ["main returns two."], "logic"))
    answers.says("verifier", verifier_answer(1))
    stream = io.StringIO()
    before = list(logging.getLogger().handlers)
    logs.configure(level="debug", form="json", stream=stream)
    try:
        async with make_world(model=answers) as graft:
            issue = graft.simulator.open_issue(
                graft.repository, title=CANARY["issuetitle"], body=CANARY["issuebody"]
            )
            graft.commit(
                "feature",
                {"src/app.py": f"def main():\n    return '{CANARY['diff']}'\n"},
                message=f"Say {CANARY['message']}",
            )
            pull = await graft.open(
                title=CANARY["title"],
                body=f"{CANARY['body']}\n\nFixes #{issue.number}",
                labels=[CANARY["label"]],
            )
            await graft.settled()
            await graft.simulator.edit(pull, body=CANARY["edited"])
            await graft.settled()
            # A failure on the way, whose error must not carry the body that was sent.
            graft.simulator.faults.fail(
                "PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}", status=422
            )
            head = graft.commit("feature", {"src/app.py": f"# {CANARY['diff']} again\n"})
            await graft.simulator.synchronize(pull, head)
            await graft.simulator.drain()
            await graft.pool.execute("SELECT pg_sleep(0.5)")
            prompts = "".join(seen_by_model(request) for request in answers.requests)
            for field in ("title", "body", "issuetitle", "issuebody", "diff"):
                assert CANARY[field] in prompts, f"the model must have read the {field}"
            shown = graft.comment(pull)
    finally:
        logging.getLogger().handlers[:] = before

    places = {
        "logs": stream.getvalue(),
        "database": await dump(database_url),
        "broker": "".join(
            path.read_bytes().decode("latin-1")
            for path in (servers_directory / "nats").rglob("*")
            if path.is_file()
        ),
        "comment": shown,
    }
    assert len(places["logs"]) > 100, "logs must have been captured"
    found = {
        (place, field) for place, text in places.items() for field, word in CANARY.items() if word in text
    }
    assert found == set()


async def dump(database_url: str) -> str:
    """Every row of every table as text."""
    connection = await asyncpg.connect(database_url)
    try:
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        texts = []
        for table in tables:
            rows = await connection.fetch(f'SELECT t::text AS row FROM "{table["tablename"]}" t')
            texts += [row["row"] for row in rows]
        assert any("Returns two." in text for text in texts), "the model's own prose is there"
        return "\n".join(texts)
    finally:
        await connection.close()


async def test_a_failed_call_is_told_by_metadata_alone(make_world: MakeWorld) -> None:
    async with make_world() as graft:
        graft.simulator.faults.fail("POST /repos/{owner}/{repo}/issues/{number}/comments", status=422)
        graft.commit("feature", {"src/app.py": "x = 1\n"})
        await graft.open(title=CANARY["title"])
        await graft.settled()
        rows = await graft.pool.fetch("SELECT last_failure FROM work WHERE dead_at IS NOT NULL")
        assert {row["last_failure"]["reason"] for row in rows} == {"unprocessable"}
        assert CANARY["title"] not in str(rows)
