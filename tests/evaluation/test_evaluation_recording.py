"""Recorded answers: a replay gives the same run, and says when the questions have changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest

from graft.errors import PermanentError
from graft.evaluation import Case, Made, Replay, Scripted, load_run, run, save_recording, save_run
from graft.evaluation.calls import Calls, Probe, fingerprint
from graft.intent import Status, write_card
from graft.llm import LlmRequest, Outcome, Turn
from graft.testing.model import FakeModel


def without_replay(made: Made) -> object:
    return msgspec.structs.replace(made.run, replayed=None)


def test_a_replay_gives_the_run_again(
    tmp_path: Path, all_cases: tuple[Case, ...], scripted: Callable[[str], Made]
) -> None:
    made = scripted("broken")  # with its repairs and failures
    save_recording(tmp_path / "a.jsonl", made.header, made.recorded)
    again = asyncio.run(run(all_cases, Replay.load(tmp_path / "a.jsonl")))
    assert without_replay(again) == without_replay(made)
    replayed = again.run.replayed
    assert replayed is not None
    assert (replayed.stale, replayed.missing) == (0, 0)
    assert replayed.asked == sum(len(case.calls) for case in made.recorded)
    assert again.recorded == made.recorded


def test_a_run_file_is_read_back_as_it_was(tmp_path: Path, scripted: Callable[[str], Made]) -> None:
    made = scripted("gullible+trusting")
    save_run(tmp_path / "run.json", made.run)
    assert load_run(tmp_path / "run.json") == made.run
    first = (tmp_path / "run.json").read_bytes()
    save_run(tmp_path / "run.json", load_run(tmp_path / "run.json"))
    assert (tmp_path / "run.json").read_bytes() == first


async def test_answers_to_another_prompt_are_used_and_counted(
    tmp_path: Path, case_of: Mapping[str, Case]
) -> None:
    case = case_of["upload-retries"]
    made = await run([case], Scripted())
    save_recording(tmp_path / "a.jsonl", made.header, made.recorded)
    fields = {name: getattr(case, name) for name in case.__struct_fields__}
    other = Case(**fields | {"title": "Another title"})
    again = await run([other], Replay.load(tmp_path / "a.jsonl"))
    replayed = again.run.replayed
    assert replayed is not None
    assert replayed.stale == 2, "the two passes of the writer; the verifier is not shown a title"
    assert again.run.cases[0].card.status is Status.READY


async def test_a_question_that_was_not_recorded_is_missing_and_fails(
    tmp_path: Path, case_of: Mapping[str, Case]
) -> None:
    made = await run([case_of["upload-retries"]], Scripted())
    save_recording(tmp_path / "a.jsonl", made.header, made.recorded)
    again = await run([case_of["csv-quoted-newlines"]], Replay.load(tmp_path / "a.jsonl"))
    replayed = again.run.replayed
    assert replayed is not None
    assert replayed.missing == replayed.asked > 0
    assert again.run.totals["failures"] == (1, 1)


async def test_failures_are_recorded_as_they_ended(tmp_path: Path, case_of: Mapping[str, Case]) -> None:
    case = case_of["upload-retries"]
    calls = Calls(FakeModel().fails("writer", Outcome.RATE_LIMITED), Probe.CARD)
    card = await write_card(case.inputs(), calls, Scripted.models)
    assert card.reason == "rate_limited"
    assert [call.outcome for call in calls.made] == [Outcome.RATE_LIMITED]


def request(nonce: str, text: str = "x") -> LlmRequest:
    told = f"The valid nonce is {nonce}. <graft-data-{nonce}>{text}</graft-data-{nonce}>"
    return LlmRequest(
        purpose="writer",
        model="m",
        system="s",
        turns=(Turn("user", told),),
        schema={},
        max_tokens=1,
        timeout=1,
    )


def test_the_fingerprint_leaves_the_nonce_out_and_nothing_else() -> None:
    assert fingerprint(request("0" * 32)) == fingerprint(request("f" * 32))
    assert fingerprint(request("0" * 32)) != fingerprint(request("0" * 32, "y"))
    assert fingerprint(request("0" * 32, "a" * 40)) != fingerprint(request("0" * 32, "b" * 40))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "line 1"),
        (b"{}\n", "line 1"),
        (
            b'{"format":9,"subject":"","models":{"fast":"","strong":""},"is_paid":false,"prompt_version":""}\n',
            "format 9",
        ),
        (
            b'{"format":1,"subject":"","models":{"fast":"","strong":""},"is_paid":false,"prompt_version":""}\n{"case":1}\n',
            "line 2",
        ),
    ],
)
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(PermanentError, match=says):
        Replay.load(path)
    with pytest.raises(PermanentError, match="No such file"):
        Replay.load(tmp_path / "none.jsonl")


@pytest.mark.parametrize("content", [b"", b"[]", b'{"format": 1}'])
def test_a_file_that_is_no_run_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(content)
    with pytest.raises(PermanentError, match=r"run\.json"):
        load_run(path)
