from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft.changes import Commit, Person
from graft.provenance import AuthorKind, Part, Provenance, Source, resolve, signatures
from graft.provenance.table import ROWS, Kind, Role
from graft.provenance.trailers import Trailer

CASES = json.loads((Path(__file__).parents[1] / "cases" / "signatures.json").read_text())
ANN = Person(name="Ann", email="ann@example.com")


def person(text: str) -> Person:
    name, _, address = text.removesuffix(">").partition(" <")
    return Person(name=name, email=address)


def resolve_case(given_: dict[str, Any]) -> Provenance:
    author = person(given_["author"]) if "author" in given_ else ANN
    account = None
    if "login" in given_:
        bot = given_["type"] == "Bot"
        account = Person(login=given_["login"], is_bot=bot)
        author = Person(name=author.name, email=author.email, login=given_["login"], is_bot=bot)
    commit = Commit(sha="c" * 40, message=given_.get("message", "feat: x\n"), author=author, committer=author)
    return resolve([commit], author=account, branch=given_.get("branch"), body=given_.get("pr_body"))


@pytest.mark.parametrize("case", CASES, ids=[c["name"] for c in CASES])
def test_labelled_signatures(case: dict[str, Any]) -> None:
    answer = resolve_case(case["in"])
    expected = case["expect"]
    hinted = {h.agent for h in answer.hints}
    match expected["role"], expected["strength"]:
        case "author", "strong":
            assert (answer.author_kind, answer.source) == (AuthorKind.AGENT, Source.DETECTED)
            assert answer.agents == (expected["agent"],)
        case "author", "weak":
            assert (answer.author_kind, answer.source) == (AuthorKind.HUMAN, Source.NONE)
            assert answer.agents == ()
            assert hinted == {expected["agent"]}
        case "reviewer", _:
            assert answer.author_kind is AuthorKind.HUMAN
            assert answer.commits[0].part is Part.SUGGESTION
            assert answer.agents == ()
        case "automation", _:
            assert answer.author_kind is AuthorKind.AUTOMATION
            assert answer.agents == ()
        case "human", _:
            assert (answer.author_kind, answer.source) == (AuthorKind.HUMAN, Source.NONE)
            assert hinted == set()
        case other:  # pragma: no cover
            raise AssertionError(other)


def of(address: str, name: str = "X") -> str | None:
    found = signatures.of_author(Person(name=name, email=address))
    return found.row.agent if found and found.row.strong else None


@pytest.mark.parametrize(
    ("name", "address", "agent"),
    [
        ("Claude Opus 4.8 (1M context)", "noreply@anthropic.com", "claude-code"),
        ("claude[bot]", "41898282+claude[bot]@users.noreply.github.com", "claude-code"),
        ("github-actions[bot]", "41898282+github-actions[bot]@users.noreply.github.com", "github-actions"),
        ("Copilot", "223556219+Copilot@users.noreply.github.com", "copilot"),
        ("Copilot", "175728472+Copilot@users.noreply.github.com", "copilot-review"),
        ("renamed", "198982749+Renamed@users.noreply.github.com", "copilot"),
        ("Codex", "noreply@openai.com", "codex"),
        ("OpenAI Release Bot", "noreply@openai.com", "openai-release"),
        ("Somebody", "noreply@openai.com", None),
        ("GPT 5.5", "codex@openai.com", "codex"),
        ("aider (gpt-5)", "aider@aider.chat", "aider"),
        ("Ann Lee", "aider@aider.chat", None),
        ("Ann", "198982749@users.noreply.github.com", None),
        ("Ann", "x198982749+Copilot@users.noreply.github.com", None),
        ("Ann", "198982749+Copilot@users.noreply.github.com.evil.example", None),
        ("Ann", "198982749+Copilot@users.noreply.github.example", None),
        ("Claude", "attacker@anthropic.com.evil.com", None),
        ("Claude", "not-noreply@anthropic.com", None),
        ("Devin Patel", "devin@example.com", None),
        ("AMP Team", "team@amp.dev", None),
        ("cursor[bot]", "206951365+cursor[bot]@users.noreply.github.com", None),
    ],
)
def test_addresses_are_matched_whole(name: str, address: str, agent: str | None) -> None:
    assert of(address, name) == agent
    assert of(address.upper(), name) == agent


def test_a_login_counts_only_when_github_says_it_is_a_bot() -> None:
    for login in ("claude[bot]", "Copilot", "devin-ai-integration[bot]"):
        assert signatures.of_author(Person(login=login, is_bot=True)) is not None
        assert signatures.of_author(Person(login=login, is_bot=False)) is None


def test_an_account_id_counts_only_for_a_bot() -> None:
    assert signatures.of_author(Person(id=198982749, is_bot=False)) is None
    found = signatures.of_author(Person(id=198982749, login="whatever", is_bot=True))
    assert found is not None
    assert found.row.agent == "copilot"


def test_an_id_comes_before_a_login_that_two_accounts_share() -> None:
    reviewer = signatures.of_author(Person(id=175728472, login="Copilot", is_bot=True))
    assert reviewer is not None
    assert reviewer.row.agent == "copilot-review"
    elsewhere = signatures.of_author(Person(id=12, login="Copilot", is_bot=True))
    assert elsewhere is not None
    assert elsewhere.row.agent == "copilot"


@pytest.mark.parametrize(
    ("key", "value", "agent", "model"),
    [
        ("Co-authored-by", "Claude <noreply@anthropic.com>", "claude-code", None),
        ("Co-Authored-By", "Claude Opus 4.6 <noreply@anthropic.com>", "claude-code", "Claude Opus 4.6"),
        ("co-authored-by", "Claude Code <noreply@anthropic.com>", "claude-code", None),
        ("Co-authored-by", "aider (claude-sonnet-4) <aider@aider.chat>", "aider", "claude-sonnet-4"),
        ("Co-authored-by", "Claude", None, None),
        ("Co-authored-by", "Claude <noreply@anthropic.com", None, None),
        ("Co-authored-by", "noreply@anthropic.com", None, None),
        ("Co-authored-by", "A <noreply@anthropic.com> <b@example.com>", None, None),
        ("Signed-off-by", "Claude <noreply@anthropic.com>", None, None),
        ("Reviewed-by", "Claude <noreply@anthropic.com>", None, None),
        ("Assisted-by", "Claude:claude-3-opus coccinelle sparse", "claude", "claude-3-opus"),
        ("Assisted-by", "Claude Code / claude-opus-4.6", "claude-code", "claude-opus-4.6"),
        ("Assisted-by", "Copilot (GPT-5.4)", "copilot", "GPT-5.4"),
        ("Assisted-by", "Pi:z-ai/glm-5.2", "pi", "z-ai/glm-5.2"),
        ("Assisted-by", "Ann Example", None, None),
        ("Assisted-by", "Claude Smith <claude@example.com>", None, None),
        ("Assisted-by", "Claude Monet", None, None),
        ("Generated-by", "Claude Code", "claude-code", None),
        ("Made-with", "Cursor", "cursor", None),
        ("Made-with", "Cursor and love", None, None),
        ("Replit-Commit-Author", "Agent", "replit", None),
        ("Replit-Commit-Author", "Ann", None, None),
        ("Claude-Session", "https://claude.ai/code/session_01", "claude-code", None),
        ("Claude-Session", "https://claude.ai.evil.example/code/session_01", None, None),
        ("Amp-Thread-ID", "https://ampcode.com/threads/T-1", "amp", None),
        ("Amp-Thread-ID", "T-1", None, None),
    ],
)
def test_trailers(key: str, value: str, agent: str | None, model: str | None) -> None:
    found = signatures.of_trailer(Trailer(key=key, value=value))
    assert (found.row.agent if found else None, found.model if found else None) == (agent, model)


@pytest.mark.parametrize(
    ("branch", "agent"),
    [
        ("claude/issue-12-20261101-0900", "claude-code"),
        ("codex/add-index", "codex"),
        ("feature/codex/index", None),
        ("cursor/fix-3f2a", "cursor"),
        ("cursor/fix-cursor", None),
        ("devin/1760000000-fix", "devin"),
        ("devin/fix", None),
        ("copilot", None),
    ],
)
def test_branches(branch: str, agent: str | None) -> None:
    assert [r.agent for r in signatures.in_branch(branch)] == ([agent] if agent else [])


def test_the_table_is_sound() -> None:
    assert len({(r.kind, r.literal, r.value, r.name) for r in ROWS}) == len(ROWS)
    for row in ROWS:
        assert re.fullmatch(r"[a-z][a-z0-9-]*", row.agent)
        assert row.source
        assert re.fullmatch(r"\d{4}-\d{2}", row.date)
        if row.kind in (Kind.ADDRESS, Kind.LOGIN, Kind.TOOL):
            assert row.literal == row.literal.lower()
        if row.kind in (Kind.BRANCH, Kind.FOOTER, Kind.SUBJECT):
            assert not row.strong
        if row.role is not Role.AUTHOR:
            assert row.strong
        if "not confirmed" in row.source:
            assert not row.strong


@given(st.text(), st.text(), st.text())
def test_any_text_is_taken(name: str, address: str, value: str) -> None:
    signatures.of_author(Person(name=name, email=address, login=name, is_bot=True))
    signatures.of_trailer(Trailer(key="Assisted-by", value=value))
    signatures.of_trailer(Trailer(key="Co-authored-by", value=value))
    list(signatures.in_branch(value))
    list(signatures.in_message(value))


STRONG_ADDRESSES = [r for r in ROWS if r.kind is Kind.ADDRESS and r.strong and r.role is Role.AUTHOR]


@given(st.sampled_from(STRONG_ADDRESSES), st.text(min_size=1, max_size=5), st.booleans())
def test_nothing_matches_by_likeness(row: Any, extra: str, before: bool) -> None:
    address = extra + row.literal if before else row.literal + extra
    found = signatures.of_author(Person(name=row.name or "X", email=address))
    same_address = address.strip().lower() in {r.literal for r in ROWS}
    assert found is None or same_address
