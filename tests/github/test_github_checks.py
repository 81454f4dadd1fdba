"""Check run documents within GitHub's limits, and which run a check belongs to."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graft.github.checks import (
    INTENT,
    OUTPUT_LIMIT,
    TITLE_LIMIT,
    Action,
    CheckRun,
    Output,
    Place,
    payload,
    place,
)

SHA = "a" * 40


def document(**output: Any) -> dict[str, Any]:
    shown = Output(**{"title": "t", "summary": "s", **output})
    return payload(name=INTENT, head_sha=SHA, external_id="c", output=shown)


def test_a_document_is_complete_and_neutral() -> None:
    action = Action(label="Card is accurate", description="The card says what it does", identifier="accurate")
    made = payload(
        name=INTENT,
        head_sha=SHA,
        external_id="c",
        output=Output(title="t", summary="s", text="x"),
        actions=[action],
    )
    assert made == {
        "name": "graft/intent",
        "head_sha": SHA,
        "external_id": "c",
        "status": "completed",
        "conclusion": "neutral",
        "output": {"title": "t", "summary": "s", "text": "x"},
        "actions": [
            {
                "label": "Card is accurate",
                "description": "The card says what it does",
                "identifier": "accurate",
            }
        ],
    }


def test_an_empty_text_is_left_out_and_an_empty_summary_is_not() -> None:
    assert document(summary="", text="")["output"] == {"title": "t", "summary": "-"}


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=50), st.integers(1, 5_000), st.text(max_size=400))
def test_everything_fits_in_bytes(text: str, times: int, title: str) -> None:
    output = document(summary=text * times, text=(text + "\n\n") * times, title=title)["output"]
    assert len(output["summary"].encode()) <= OUTPUT_LIMIT
    assert len(output["text"].encode()) <= OUTPUT_LIMIT
    assert 1 <= len(output["title"].encode()) <= TITLE_LIMIT
    assert "\n" not in output["title"]
    assert output["summary"]


def test_a_long_summary_is_cut_at_a_block() -> None:
    summary = document(summary="\n\n".join(["ü" * 100] * 400))["output"]["summary"]
    assert summary.endswith("_Cut here to fit; the rest is not shown._")
    assert len(summary.encode()) > OUTPUT_LIMIT - 500


def test_cutting_many_short_lines_is_no_work_to_speak_of() -> None:
    started = time.process_time()
    document(summary="🙂\n" * 100_000)
    assert time.process_time() - started < 1.0


def test_a_title_is_cut_between_characters() -> None:
    title = document(title="🙂" * 100)["output"]["title"]
    assert title == "🙂" * 63 + "…"


@pytest.mark.parametrize(
    "fields",
    [
        {"label": "x" * 21},
        {"description": "x" * 41},
        {"identifier": "x" * 21},
        {"label": "ü" * 11},
        {"label": ""},
    ],
)
def test_an_action_beyond_githubs_limits_is_a_programming_error(fields: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="action"):
        Action(**{"label": "l", "description": "d", "identifier": "i", **fields})


def test_four_actions_are_a_programming_error() -> None:
    actions = [Action(label="l", description="d", identifier=str(i)) for i in range(4)]
    with pytest.raises(ValueError, match="at most 3"):
        payload(
            name=INTENT, head_sha=SHA, external_id="c", output=Output(title="t", summary="s"), actions=actions
        )


# --- which run -------------------------------------------------------------------------------------------


def run(id: int, external_id: str, name: str = INTENT) -> CheckRun:
    return CheckRun(id=id, name=name, head_sha=SHA, status="completed", external_id=external_id)


def placed(runs: list[CheckRun], stored_id: int | None = None) -> Place:
    return place(
        runs,
        name=INTENT,
        number=42,
        belongs=lambda run: run.external_id == "mine",
        orphan=lambda run: run.external_id == "nobody's",
        stored_id=stored_id,
    )


APART = "graft/intent (#42)"


@pytest.mark.parametrize(
    ("runs", "stored_id", "id", "name"),
    [
        ([], None, None, INTENT),
        ([run(1, "mine")], None, 1, INTENT),
        ([run(2, "mine"), run(1, "mine")], None, 1, INTENT),
        ([run(2, "mine"), run(1, "mine")], 2, 2, INTENT),
        ([run(1, "other")], None, None, APART),
        ([run(1, "other")], 1, None, APART),
        ([run(1, "other"), run(2, "mine", APART)], None, 2, APART),
        ([run(1, "mine", "graft/policy")], 1, None, INTENT),
        ([run(1, "other", "graft/policy")], None, None, INTENT),
        ([run(1, "other", "graft/intent (#7)")], None, None, INTENT),
        # What a restored database knows nothing of is taken over, and what belongs to another is not.
        ([run(1, "nobody's")], None, 1, INTENT),
        ([run(1, "nobody's"), run(2, "mine", APART)], None, 2, APART),
        ([run(1, "nobody's"), run(2, "nobody's", APART)], None, 2, APART),
        ([run(1, "other"), run(2, "nobody's", APART)], None, 2, APART),
        ([run(1, "nobody's", "graft/intent (#7)")], None, None, INTENT),
    ],
)
def test_a_check_goes_to_its_own_run_or_apart(
    runs: list[CheckRun], stored_id: int | None, id: int | None, name: str
) -> None:
    found = placed(runs, stored_id)
    assert (found.run.id if found.run else None, found.name) == (id, name)
