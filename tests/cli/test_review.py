from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from graft.cli.review import analyse, review
from graft.cli.review_document import json_schema
from graft.cli.review_text import plain
from graft.git import Repository
from graft.simulator.demo_repository import RepositoryBuilder, Special

ROOT = Path(__file__).parents[2]
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
EXAMPLE = ROOT / "docs/examples/records"
INTENT = {
    str(path.relative_to(EXAMPLE)): path.read_text(encoding="utf-8")
    for path in sorted(EXAMPLE.rglob("*"))
    if path.is_file()
}
RECORD = ".intent/records/0001-final-risk.md"
POLICY = """\
version: 1
sensitive_paths: [billing/**]
rules:
  - name: agents
    when: {author: agent}
    then: {review: {users: [ann], count: 1}}
  - name: docs
    when: {paths: {only: "docs/**"}}
    then: approve
"""


@pytest.fixture
def builder(tmp_path: Path) -> RepositoryBuilder:
    return RepositoryBuilder(path=tmp_path / "repository.git")


def run(builder: RepositoryBuilder, *arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(review, ["--repo", str(builder.path), "--json", *arguments])
    assert done.exit_code == 0, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(document, json_schema())
    return document


def facts_of(document: dict[str, Any]) -> list[list[str]]:
    """The policy's own sentences, which are its tests' business."""
    return [rule["facts"] for rule in document["policy"]["rules"]]


def test_the_whole_document(builder: RepositoryBuilder) -> None:
    base = builder.commit("main", {"graft.yaml": POLICY, "docs/a.md": "a\n"})
    head = builder.commit(
        "topic",
        {"docs/a.md": "b\n", "graft.yaml": None},
        parent=base,
        message="Say b\n\nGraft-Agent: claude-code\nGraft-Model: opus\nGraft-Task: #7\nGraft-Session: s1\n",
    )
    document = run(builder, "main..topic")
    (agents, _), guards = facts_of(document), document["policy"]["guards"]
    assert len(agents) == 1
    assert len(guards) == 2
    assert document == {
        "version": 1,
        "base": base,
        "head": head,
        "merge_base": base,
        "files": {"total": 2, "additions": 1, "deletions": 10, "incomplete": False, "incomplete_reasons": []},
        "risk": {
            "floor": "sensitive",
            "final": "sensitive",
            "reasons": [{"code": "graft_policy", "class": "sensitive", "path": "graft.yaml"}],
        },
        "provenance": {
            "author_kind": "agent",
            "source": "declared",
            "reason": "declared_agent",
            "explanation": "Graft-Agent declares an agent in the only commit.",
            "agents": ["claude-code"],
            "models": ["opus"],
            "tasks": ["#7"],
            "hints": [],
            "decided_by": [head],
            "commits": [
                {
                    "sha": head,
                    "part": "agent",
                    "agent": "claude-code",
                    "source": "declared",
                    "model": "opus",
                    "task": "#7",
                    "session": "s1",
                    "trailers": [
                        {"key": "Graft-Agent", "value": "claude-code"},
                        {"key": "Graft-Model", "value": "opus"},
                        {"key": "Graft-Task", "value": "#7"},
                        {"key": "Graft-Session", "value": "s1"},
                    ],
                }
            ],
        },
        "policy": {
            "status": "valid",
            "reason": "ok",
            "file": "graft.yaml",
            "outcome": "review",
            "rule": "agents",
            "rules": [
                {
                    "name": "agents",
                    "state": "matched",
                    "code": "matched",
                    "facts": agents,
                },
                {"name": "docs", "state": "not_evaluated", "code": "earlier_rule", "facts": []},
            ],
            "guards": guards,
            "errors": [],
        },
        "card": {"status": "unavailable", "reason": "no_model"},
        "records": {
            "status": "none",
            "clauses": [],
            "laws": [],
            "stale": [],
            "problems": [],
            "protected": [],
            "not_read": [],
        },
    }


def test_policy_and_records_hold_as_base_has_them(builder: RepositoryBuilder) -> None:
    builder.commit("main", {"a": "1\n"})
    builder.commit("main", {"graft.yaml": "version: 1\n", **INTENT})
    document = run(builder, "main~1..main")
    assert (document["policy"]["status"], document["records"]["status"]) == ("none", "none")
    assert RECORD not in document["records"]["protected"]
    builder.commit("main", {"graft.yaml": None, "a": "2\n"})
    document = run(builder, "main~1..main")
    assert (document["policy"]["status"], document["records"]["status"]) == ("valid", "fresh")
    assert document["records"]["protected"] == []
    assert document["policy"]["outcome"] == "review"
    assert document["policy"]["rule"] is None


def test_an_edit_of_an_approved_record_is_sensitive_and_stale(builder: RepositoryBuilder) -> None:
    builder.commit("main", INTENT)
    builder.commit("main", {RECORD: INTENT[RECORD].replace("never below the floor", "any class")})
    document = run(builder, "main~1..main")
    found = document["records"]
    assert (found["status"], found["protected"]) == ("stale", [RECORD])
    assert found["clauses"] == [{"name": "0001-final-risk R2", "change": "edited"}]
    assert {(item["kind"], item["name"]) for item in found["stale"]} >= {("receipt", "0001-final-risk")}
    reason = {"code": "intent_record", "class": "sensitive", "path": RECORD}
    assert (document["risk"]["floor"], document["risk"]["reasons"]) == ("sensitive", [reason])
    text = plain(analyse(Repository.open(builder.path), "main~1..main"))
    assert "Records     approved intent has stale evidence; touches 1 clause" in text
    assert f"changed evidence: {RECORD}" in text


def test_a_branch_that_lags_behind_edits_no_record(builder: RepositoryBuilder) -> None:
    start = builder.commit("main", INTENT)
    builder.commit("main", {RECORD: INTENT[RECORD].replace("Example Person", "Another Person")})
    builder.commit("topic", {"a": "1\n"}, parent=start)
    found = run(builder, "main..topic")["records"]
    assert (found["clauses"], found["protected"]) == ([], [])


def test_base_means_its_tip_and_not_the_merge_base(builder: RepositoryBuilder) -> None:
    fork = builder.commit("main", {"a": "1\n"})
    builder.commit("topic", {"b": "1\n"}, parent=fork)
    tip = builder.commit("main", {"graft.yaml": "version: 1\n"})
    document = run(builder, "main..topic")
    assert (document["base"], document["merge_base"]) == (tip, fork)
    assert document["policy"]["status"] == "valid"
    assert [document["files"]["total"], document["files"]["deletions"]] == [1, 0]


def test_a_file_called_dot_intent_is_no_record(builder: RepositoryBuilder) -> None:
    builder.commit("main", {".intent": "x\n"})
    builder.commit("main", {"a": "1\n"})
    assert run(builder, "main~1..main")["records"]["status"] == "none"


def test_sensitive_paths_of_the_base_policy_raise_the_floor(builder: RepositoryBuilder) -> None:
    builder.commit("main", {"graft.yaml": POLICY})
    builder.commit("main", {"billing/readme.txt": "x\n"})
    risk = run(builder, "main~1..main")["risk"]
    assert risk["floor"] == "sensitive"
    assert [r["path"] for r in risk["reasons"]] == ["billing/readme.txt"]


@pytest.mark.parametrize(
    ("content", "status", "reason"),
    [
        ("version: 2\n", "invalid", "invalid"),
        ("version: 1\nversion: 1\n", "invalid", "invalid"),
        (Special(mode="120000", content="x"), "unreadable", "symlink"),
        (Special(mode="160000", content="1" * 40), "unreadable", "submodule"),
        ("#" * 1_100_000, "unreadable", "too_large"),
    ],
)
def test_a_policy_that_cannot_be_applied_says_why(
    builder: RepositoryBuilder, content: str | Special, status: str, reason: str
) -> None:
    builder.commit("main", {"graft.yaml": content})
    builder.commit("main", {"a": "1\n"})
    policy = run(builder, "main~1..main")["policy"]
    assert (policy["status"], policy["reason"], policy["outcome"]) == (status, reason, "none")
    assert bool(policy["errors"]) == (status == "invalid")
    for error in policy["errors"]:
        assert error["line"] >= 1
        assert error["path"].startswith("$")


def test_without_a_card_the_risk_is_at_least_logic(builder: RepositoryBuilder) -> None:
    builder.commit("main", {"docs/a.md": "1\n"})
    builder.commit("main", {"docs/a.md": "2\n"})
    risk = run(builder, "main~1..main")["risk"]
    assert (risk["floor"], risk["final"], risk["reasons"]) == ("trivial", "logic", [])


def test_an_empty_change_needs_no_card(builder: RepositoryBuilder) -> None:
    builder.commit("main", {"docs/a.md": "1\n"})
    builder.commit("main", {})
    for range_ in ("main~1..main", "main..main"):
        document = run(builder, range_)
        assert document["risk"] == {"floor": "trivial", "final": "trivial", "reasons": []}
        assert document["card"] == {"status": "empty", "reason": None}


def test_a_first_commit_against_the_empty_tree(builder: RepositoryBuilder) -> None:
    head = builder.commit("main", {"graft.yaml": POLICY, "a": "1\n"})
    document = run(builder, f"{EMPTY_TREE}..main")
    assert (document["base"], document["head"], document["policy"]["status"]) == (EMPTY_TREE, head, "none")
    assert document["files"]["total"] == 2


def test_hostile_names_are_values_in_json_and_visible_in_text(builder: RepositoryBuilder) -> None:
    builder.commit("main", {"a": "1\n"})
    path = "docs/\x1b[2Jx\u202e.md"
    builder.commit(
        "main", {path: "1\n", "src/\x07.github/workflows/x.yml": "1\n"}, message="x\n\nGraft-Agent: \x1b[1m\n"
    )
    made = analyse(Repository.open(builder.path), "main~1..main")
    text = plain(made)
    assert text.isascii() or "\u202e" not in text
    assert "\x1b" not in text
    assert "\x07" not in text
    assert run(builder, "main~1..main")["files"]["total"] == 2


def test_bytes_that_are_no_utf8(builder: RepositoryBuilder) -> None:
    builder.commit("main", {"a": "1\n"})
    subprocess.run(
        ["git", "-C", str(builder.path), "fast-import", "--quiet"],
        input=b"commit refs/heads/main\ncommitter \xff\xfe <\xff> 1767300000 +0000\ndata 12\nx\n\nKey: \xff\xff\n\n"
        b"from refs/heads/main^0\nM 100644 inline b\xff\ndata 2\n\xff\n\n",
        check=True,
    )
    document = run(builder, "main~1..main")
    assert document["files"]["total"] == 1
    assert document["provenance"]["commits"][0]["trailers"] == [{"key": "Key", "value": "��"}]


@pytest.mark.parametrize("range_", ["main..codex/x", "main...codex/x", "main..refs/heads/codex/x"])
def test_the_name_of_the_head_branch_is_a_hint(builder: RepositoryBuilder, range_: str) -> None:
    base = builder.commit("main", {"a": "1\n"})
    builder.commit("codex/x", {"a": "2\n"}, parent=base)
    who = run(builder, range_)["provenance"]
    assert (who["author_kind"], who["source"]) == ("human", "none")
    assert who["hints"] == [{"kind": "branch", "agent": "codex", "commit": None, "key": None, "line": None}]


def test_the_policy_sees_the_base_branch_as_it_was_written(builder: RepositoryBuilder) -> None:
    policy = "version: 1\nrules:\n  - {name: main, when: {base: main}, then: block}\n"
    base = builder.commit("main", {"graft.yaml": policy})
    builder.commit("topic", {"a": "1\n"}, parent=base)
    for range_ in ("main..topic", "main...topic", "refs/heads/main..topic"):
        assert run(builder, range_)["policy"]["outcome"] == "block"
    assert run(builder, f"{base}..topic")["policy"]["outcome"] == "review"


def test_plain_text(builder: RepositoryBuilder) -> None:
    base = builder.commit("main", {"graft.yaml": POLICY})
    head = builder.commit("main", {"docs/a.md": "1\n"}, message="x\n\nGraft-Agent: codex\n\nmore\n")
    done = CliRunner().invoke(review, ["--repo", str(builder.path), "main~1..main"])
    assert done.exit_code == 0
    document = run(builder, "main~1..main")
    (no,), (yes,) = facts_of(document)
    (guard,) = document["policy"]["guards"]
    assert done.stdout == (
        f"{base[:10]}..{head[:10]}  1 file +1 -0, 1 commit\n"
        "\n"
        "Risk        logic (rules: trivial; without a checked card at least logic)\n"
        "Author      human\n"
        "            No commit declares an agent or carries an agent's signature.\n"
        f"            Graft-Agent in {head[:10]}, line 3, is outside the trailer block: git does not read it\n"
        "Policy      would ask for a review (rule docs)\n"
        f"            [ ] agents: {no}\n"
        f"            [x] docs: {yes}\n"
        f"            never approve: {guard}\n"
        "Card        unavailable: no model is used here\n"
        "Records     none\n"
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nope..main"], "no commit is called 'nope'"),
        (["main"], "BASE..HEAD"),
        (["--", "--all..main"], "BASE..HEAD"),
        (["--repo", "/nowhere", "a..b"], "--repo PATH"),
    ],
)
def test_what_cannot_be_reviewed_says_what_to_do_in_one_line(
    builder: RepositoryBuilder, arguments: list[str], says: str
) -> None:
    builder.commit("main", {"a": "1\n"})
    repo = [] if "--repo" in arguments else ["--repo", str(builder.path)]
    done = CliRunner().invoke(review, [*repo, *arguments])
    assert done.exit_code == 2
    assert done.stdout == ""
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_usage_errors_exit_with_2() -> None:
    assert CliRunner().invoke(review, []).exit_code == 2


def test_schema_needs_no_repository_and_is_a_schema() -> None:
    done = CliRunner().invoke(review, ["--schema"])
    assert done.exit_code == 0
    jsonschema.Draft202012Validator.check_schema(json.loads(done.stdout))


def test_the_published_schema_is_the_one_that_is_printed() -> None:
    """After a change: `graft review --schema > graft/cli/review.schema.json`."""
    published = (ROOT / "graft/cli/review.schema.json").read_text(encoding="utf-8")
    assert published == CliRunner().invoke(review, ["--schema"]).stdout


def test_an_empty_environment_and_no_library_of_the_daemon(builder: RepositoryBuilder) -> None:
    builder.commit("main", {"graft.yaml": POLICY, "a": "1\n"})
    builder.commit("main", {"a": "2\n"})
    code = (
        "import sys\n"
        "from graft.cli.main import main\n"
        f"main(['review', '--repo', {str(builder.path)!r}, '--json', 'main~1..main'], standalone_mode=False)\n"
        "unwanted = {'aiohttp', 'anthropic', 'asyncpg', 'nats', 'rich', 'structlog', 'jwt', 'gidgethub',\n"
        "            'prometheus_client', 'uvloop', 'graft.config', 'graft.github'}\n"
        "sys.exit(f'loaded {sorted(unwanted & set(sys.modules))}' if unwanted & set(sys.modules) else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={}, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["head"]


def test_few_git_processes(builder: RepositoryBuilder) -> None:
    builder.commit("main", {"graft.yaml": POLICY, "a": "1\n"})
    builder.commit("main", {"a": "2\n"})
    repository = Repository.open(builder.path)
    analyse(repository, "main~1..main")
    assert repository.meter.processes <= 6
