"""Intent records on a pull request: the fourth section, its check, the floor, the card's pointers and the policy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from graft.simulator import Pull
from graft.testing import FakeModel, agreeable_model, verifier_answer, writer_answer

from .conftest import MakeWorld
from .world import World

EXAMPLE = Path(__file__).parents[2] / "docs/examples/records"
INTENT = {
    str(path.relative_to(EXAMPLE)): path.read_text(encoding="utf-8")
    for path in sorted(EXAMPLE.rglob("*"))
    if path.is_file()
}
RECORD = ".intent/records/0001-final-risk.md"
EDITED = INTENT[RECORD].replace("never below the floor", "as low as the model says")
CODE = {"src/app.py": "def main():\n    return 2\n"}
SECTION = "<!-- graft:section:records:start"
POLICY = """\
version: 1
rules:
  - {name: outdated, when: {records: stale}, then: block}
  - {name: no records, when: {records: none}, then: {review: {users: [ann], count: 1}}}
  - {name: backed, when: {records: fresh}, then: approve}
"""


async def keep(graft: World, files: Mapping[str, str | None]) -> None:
    """Files on the base branch."""
    graft.builder.commit("main", files)
    await graft.simulator.push(graft.repository, "main")
    await graft.settled()


async def opened(graft: World, files: Mapping[str, str | None], *, fork: str | None = None) -> Pull:
    graft.commit("feature", files)
    pull = await graft.open(fork=fork)
    await graft.settled()
    return pull


def trees_and_blobs(graft: World) -> list[str]:
    return [r.route for r in graft.simulator.requests if "/git/trees/" in r.route or "/git/blobs/" in r.route]


async def card(graft: World) -> dict[str, str]:
    row = await graft.pool.fetchrow(
        "SELECT risk_floor, input_hash, card FROM intent_cards ORDER BY created_at DESC LIMIT 1"
    )
    assert row is not None
    return dict(row)


async def decided(graft: World) -> str:
    """What the policy was told of the records, by the rule that matched."""
    index = await graft.pool.fetchval(
        "SELECT rule_index FROM policy_verdicts ORDER BY evaluated_at DESC LIMIT 1"
    )
    return ("stale", "none", "fresh")[index]


async def test_fresh_records_get_a_section_and_a_neutral_check(graft: World) -> None:
    await keep(graft, INTENT | {"graft.yaml": POLICY})
    pull = await opened(graft, CODE)
    body = graft.comment(pull)
    assert body.index("graft:section:policy:start") < body.index(SECTION)
    assert "### Records\n\n**Approved intent and its evidence agree.**" in body
    assert graft.checks(pull)["graft/records"] == "Approved intent and its evidence agree"
    assert {run.conclusion for run in graft.repository.runs_at(pull.head_sha)} == {"neutral"}
    assert (await card(graft))["risk_floor"] == "trivial"
    assert await decided(graft) == "fresh"


async def test_an_edit_of_an_approved_record_is_stale_and_sensitive(graft: World) -> None:
    await keep(graft, INTENT | {"graft.yaml": POLICY})
    pull = await opened(graft, {RECORD: EDITED})
    body = graft.comment(pull)
    assert "**Approved intent has stale evidence; touches 1 clause.**" in body
    assert "`0001-final-risk` `R2` (edited)" in body
    assert "never below the floor" in body, "the approved wording"
    assert "receipt `0001-final-risk`" in body
    assert f"an approved intent record or its evidence (`{RECORD}`)" in body
    assert (await card(graft))["risk_floor"] == "sensitive"
    assert await decided(graft) == "stale"


async def test_a_head_without_a_receipt_is_stale(graft: World) -> None:
    await keep(graft, INTENT)
    receipt = ".intent/receipts/0001-final-risk.json"
    pull = await opened(graft, {receipt: None})
    assert graft.checks(pull)["graft/records"] == "Approved intent has stale evidence"
    assert (await card(graft))["risk_floor"] == "sensitive"


async def test_a_fork_is_reviewed_like_any_other(graft: World) -> None:
    await keep(graft, INTENT)
    pull = await opened(graft, {RECORD: EDITED}, fork="ann")
    assert "`0001-final-risk` `R2` (edited)" in graft.comment(pull)
    assert "touches 1 clause" in graft.checks(pull)["graft/records"]


async def test_without_records_nothing_more_is_read(graft: World) -> None:
    pull = await opened(graft, CODE)
    assert len(trees_and_blobs(graft)) == 1, "the root of the base, where the policy is looked for"
    assert SECTION not in graft.comment(pull)
    assert "graft/records" not in graft.checks(pull)


async def test_a_second_pull_request_reads_no_blob_again(graft: World) -> None:
    await keep(graft, INTENT)
    await opened(graft, CODE)
    before = len(trees_and_blobs(graft))
    graft.commit("other", {"README.md": "# Other\n"})
    other = await graft.open("other")
    await graft.settled()
    read = trees_and_blobs(graft)[before:]
    assert [route for route in read if "blobs" in route] == []
    assert "graft/records" in graft.checks(other)


async def test_a_record_that_is_too_large_to_be_read_is_stale_and_said(graft: World) -> None:
    await keep(graft, INTENT)
    pull = await opened(graft, {RECORD: INTENT[RECORD] + "x" * (2 * 2**20)})
    body = graft.comment(pull)
    assert "**Approved intent has stale evidence" in body
    assert "was not read: it is too large" in body
    assert (await card(graft))["risk_floor"] == "sensitive"


async def test_records_that_come_and_go_on_the_base(graft: World) -> None:
    await keep(graft, {"graft.yaml": POLICY})
    pull = await opened(graft, CODE)
    assert await decided(graft) == "none"
    await keep(graft, INTENT)
    assert "agree" in graft.checks(pull)["graft/records"]
    assert await decided(graft) == "fresh"
    await keep(graft, dict.fromkeys(INTENT))
    assert SECTION not in graft.comment(pull)
    assert graft.checks(pull)["graft/records"] == "No intent records"
    assert await decided(graft) == "none"


async def test_records_of_the_head_approve_nothing(graft: World) -> None:
    await keep(graft, {"graft.yaml": POLICY})
    pull = await opened(graft, INTENT)
    assert graft.checks(pull)["graft/records"] == "No approved intent on the base branch"
    assert await decided(graft) == "none"


async def test_the_writer_points_to_an_approved_clause(make_world: MakeWorld) -> None:
    touches = [{"change": 1, "clause": "0001-final-risk R2"}, {"change": 1, "clause": "0009-made-up R1"}]
    model = (
        FakeModel()
        .says("writer", writer_answer("Doubles.", ["Returns two."], "logic") | {"touches": touches})
        .says("verifier", verifier_answer(1))
    )
    async with make_world(model=model) as graft:
        await keep(graft, INTENT)
        pull = await opened(graft, CODE)
        [writer] = model.asked("writer")[-1].turns
        assert "0001-final-risk R2: The final risk is never below the floor." in writer.text
        [verifier] = model.asked("verifier")[-1].turns
        assert "0001-final-risk" not in verifier.text
        body = graft.comment(pull)
        assert "- change 1: `0001-final-risk R2`\n" in body
        assert "0009-made-up" not in body


async def test_a_new_wording_on_the_base_is_shown_to_the_writer_again(make_world: MakeWorld) -> None:
    model = agreeable_model()
    async with make_world(model=model) as graft:
        await keep(graft, INTENT)
        await opened(graft, CODE)
        first, calls = await card(graft), len(model.asked("writer"))
        await keep(graft, {".intent/model/neg/one_of_the_two.bend": "# other\n"})
        assert len(model.asked("writer")) == calls, "evidence is not what the writer reads"
        await keep(graft, {RECORD: EDITED})
        assert len(model.asked("writer")) > calls
        assert "as low as the model says" in model.asked("writer")[-1].turns[0].text
        assert (await card(graft))["input_hash"] != first["input_hash"]
