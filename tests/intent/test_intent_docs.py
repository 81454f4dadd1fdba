"""docs/intent-cards.md holds tables and an example that come from the code; this test keeps them the same.

After a change of the code: `GRAFT_WRITE_DOCS=1 pytest tests/intent/test_intent_docs.py` writes them anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from graft.changes import ChangedFile, Snapshot
from graft.intent import (
    Card,
    CardInputs,
    Models,
    card_without_model,
    check_output,
    render_section,
    write_card,
)
from graft.intent.floor import CHANGE_RULES, FILE_RULES, INTENT_RECORD, PATH_ROWS
from graft.intent.injection import MARKERS
from graft.llm import FAST_MODEL, STRONG_MODEL, Outcome
from graft.testing.model import FakeModel

PAGE = Path(__file__).parents[2] / "docs" / "intent-cards.md"
MODELS = Models(fast=FAST_MODEL, strong=STRONG_MODEL)
RETRY = datetime(2026, 12, 1, 14, 5, tzinfo=UTC)

SNAPSHOT = Snapshot(
    base_sha="4f1c2e9a7b6d5c4e3f2a1b0c9d8e7f6a5b4c3d2e",
    head_sha="c0ffee1234567890abcdef1234567890abcdef12",
    files=(
        ChangedFile(
            path="src/upload/client.py",
            status="modified",
            additions=18,
            deletions=4,
            patch="@@ -40 +40,2 @@\n-    send(part)\n+    for attempt in range(3):\n+        send(part)",
        ),
        ChangedFile(
            path="package-lock.json", status="modified", additions=9, deletions=9, patch="@@ -1 +1 @@\n-1\n+2"
        ),
    ),
    commits=(),
)
WRITER = {
    "goal": "Retries a failed upload part instead of failing the whole upload.",
    "behavior_changes": [
        "A part that fails is sent again up to five times.",
        "An upload fails only after its last attempt.",
    ],
    "out_of_scope": [{"path": "package-lock.json", "reason": "Retrying needs no new dependency."}],
    "risk": "logic",
    "risk_reason": "Uploads behave differently on errors.",
}
VERIFIER = {
    "claims": [
        {"id": "goal", "verdict": "supported", "reason": "The loop in client.py."},
        {"id": "change-1", "verdict": "contradicted", "reason": "The loop in client.py runs three times."},
        {"id": "change-2", "verdict": "supported", "reason": ""},
        {"id": "scope-1", "verdict": "supported", "reason": ""},
    ],
    "missed_changes": ["The 30 second time-out of a part is no longer set."],
    "out_of_scope": [],
    "risk": "logic",
    "risk_reason": "Error handling changed.",
}
AGREED = VERIFIER | {
    "claims": [claim | {"verdict": "supported"} for claim in VERIFIER["claims"]],  # type: ignore[attr-defined]
    "missed_changes": [],
}


async def card(verifier: object = VERIFIER) -> Card:
    model = FakeModel().says("writer", WRITER)
    if isinstance(verifier, dict):
        model.says("verifier", verifier)
    else:
        model.fails("verifier", Outcome.TIMEOUT)
    return await write_card(CardInputs(snapshot=SNAPSHOT, title="Retry uploads"), model, MODELS)


def _line(section: str, *starts: str) -> str:
    found = [line for line in section.split("\n") if line.startswith(starts)]
    return "<br>".join(line.replace("|", "\\|") for line in found)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


async def outcomes() -> str:
    inputs = CardInputs(snapshot=SNAPSHOT)
    empty = CardInputs(snapshot=Snapshot(base_sha="b", head_sha="h", files=(), commits=()))
    agreed, disagreed, unverified = await card(AGREED), await card(), await card(None)
    failed = card_without_model(inputs, reason="overloaded")
    rows: list[tuple[str, str, str]] = []
    for what, made, options in (
        ("checked, the verifier agrees", agreed, {}),
        ("checked, the verifier disagrees", disagreed, {}),
        ("written, the check failed for good", unverified, {}),
        ("written, the check is tried again", unverified, {"retry_at": RETRY}),
        ("a model is being asked", card_without_model(inputs), {"pending": True}),
        ("no key", card_without_model(inputs, reason="no_model"), {}),
        ("the budget is used up", card_without_model(inputs, reason="budget"), {}),
        ("the model refused", card_without_model(inputs, reason="refused"), {}),
        ("a passing failure of the service", failed, {"retry_at": RETRY}),
        ("a failure that stays", card_without_model(inputs, reason="unauthorized"), {}),
        ("an empty change", card_without_model(empty), {}),
    ):
        section = render_section(made, **options)
        shown = _line(section, "**Risk", "⚠️", "⏳", "This pull request")
        rows.append((what, shown, check_output(made, **options)[0]))
    return table(("outcome", "on the card", "title of the check"), rows)


def floor() -> str:
    rows = [("sensitive", code, says) for code, says in (*PATH_ROWS, INTENT_RECORD)]
    rows += [(str(rule.risk), rule.code, rule.says) for rule in FILE_RULES]
    rows += [(str(rule.risk), rule.code, rule.says) for rule in CHANGE_RULES]
    rows.append(
        ("sensitive", "incomplete", "the list of files is incomplete, or the change is too large to list")
    )
    rows.append(("logic", "not_shown", "part of the diff was not shown to the model"))
    rows.append(("logic", "injection", "text that looks meant for a model"))
    rows.sort(key=lambda row: row[0], reverse=True)
    return table(("class", "code", "rule"), [(risk, f"`{code}`", says) for risk, code, says in rows])


def markers() -> str:
    return table(("sign", "meaning"), [(f"`{name}`", says) for name, says in MARKERS.items()])


async def example() -> str:
    return f"```markdown\n{render_section(await card())}\n```"


async def test_the_page_says_what_the_code_does() -> None:
    page = PAGE.read_text()
    for name, text in (
        ("outcomes", await outcomes()),
        ("floor", floor()),
        ("markers", markers()),
        ("example", await example()),
    ):
        inside = re.compile(rf"(<!-- {name} -->\n).*?(\n\n)(?=[A-Z#\-])", re.DOTALL)
        if name == "example":
            inside = re.compile(rf"(<!-- {name} -->\n).*?(\n\n)(?=## What is stored)", re.DOTALL)
        page = inside.sub(lambda match, text=text: f"{match[1]}{text}{match[2]}", page, count=1)  # type: ignore[misc]
    if os.environ.get("GRAFT_WRITE_DOCS"):
        PAGE.write_text(page)
    assert PAGE.read_text() == page
