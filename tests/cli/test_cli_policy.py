"""`graft policy`: exit codes, texts, JSON, and what reaches a terminal."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from graft.cli.main import main
from graft.github import GitHub
from graft.policy import CANDIDATES, Facts, decide, json_schema, of_bytes, render_section
from graft.simulator import Simulator
from graft.simulator.demo_repository import RepositoryBuilder

ROOT = Path(__file__).parents[2]
INVALID = "version: 1\nrules:\n  - {name: a, when: {max_risk: high, draft: no}, then: merge}\nfoo: 1\n"
POLICY = """
version: 1
sensitive_paths: ["billing/**"]
rules:
  - {name: documentation, when: {paths: {only: "*.md"}, card_verified: true}, then: approve}
  - {name: agents, when: {author: agent}, then: {review: {teams: "@acme/core", count: 2, message: Take care.}}}
  - {name: careful, when: {max_risk: logic}, then: review}
default: {block: {message: Too risky.}}
"""


def run(*args: str, cwd: Path | None = None, env: dict[str, str] | None = None, **more: Any) -> Result:
    before = Path.cwd()
    os.chdir(cwd or before)
    try:
        return CliRunner().invoke(main, ["policy", *args], env=env or {}, **more)
    finally:
        os.chdir(before)


# ---------------------------------------------------------------------------------------------------- check


def test_a_valid_file_is_found_wherever_it_may_be(tmp_path: Path) -> None:
    for name in CANDIDATES:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(POLICY)
        result = run("check", cwd=tmp_path)
        assert (result.exit_code, result.stdout) == (0, f"{name}: valid, 3 rules\n")
        path.unlink()


def test_an_invalid_file_gives_every_problem(tmp_path: Path) -> None:
    (tmp_path / "graft.yaml").write_text(INVALID)
    result = run("check", cwd=tmp_path)
    assert result.exit_code == 1
    assert [line.split(" ")[0] for line in result.stdout.splitlines()] == [
        "graft.yaml:3:32:",
        "graft.yaml:3:45:",
        "graft.yaml:3:56:",
        "graft.yaml:4:1:",
    ]


def test_the_text_is_the_same_as_on_the_pull_request(tmp_path: Path) -> None:
    (tmp_path / "graft.yaml").write_text(INVALID)
    section = render_section(
        decide(of_bytes(INVALID.encode(), "graft.yaml"), Facts(files=(), base_ref="main"))
    )
    printed = run("check", cwd=tmp_path).stdout
    assert f"```text\n{printed}```" in section


def test_json_of_a_check(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(INVALID)
    (tmp_path / "ok.yaml").write_text("version: 1")
    result = run("check", "x.yaml", "--json", cwd=tmp_path)
    answer = json.loads(result.stdout)
    assert result.exit_code == 1
    assert answer["valid"] is False
    assert answer["errors"][0] == {
        "line": 3,
        "column": 32,
        "path": "$.rules[0].when.max_risk",
        "message": "must be `trivial`, `logic` or `sensitive`",
    }
    result = run("check", "ok.yaml", "--json", cwd=tmp_path)
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"valid": True, "errors": []})
    result = run("check", "--json", cwd=tmp_path)
    assert result.exit_code == 2
    assert "does not exist" in json.loads(result.stdout)["errors"][0]["message"]


def test_missing_or_unreadable_is_2(tmp_path: Path) -> None:
    result = run("check", cwd=tmp_path)
    assert result.exit_code == 2
    assert result.stderr == "graft.yaml does not exist: `version: 1` alone makes a policy\n"
    assert run("check", "no\x00where", cwd=tmp_path).exit_code == 2
    (tmp_path / "graft.yml").mkdir()
    assert "graft.yml is a directory" in run("check", cwd=tmp_path).stderr
    assert run("check", "graft.yml", cwd=tmp_path).exit_code == 2
    (tmp_path / "real.yaml").write_text("version: 1")
    (tmp_path / "graft.yaml").symlink_to("real.yaml")
    assert "graft.yaml and graft.yml stand beside each other" in run("check", cwd=tmp_path).stderr
    (tmp_path / "graft.yml").rmdir()
    result = run("check", cwd=tmp_path)
    assert (result.exit_code, "symbolic link" in result.stderr) == (2, True)
    assert run("check", "graft.yaml", cwd=tmp_path).exit_code == 0
    (tmp_path / "big.yaml").write_bytes(b"#" * 1_000_001)
    assert "big.yaml is larger than 1 MB" in run("check", "big.yaml", cwd=tmp_path).stderr


def test_standard_input() -> None:
    assert run("check", "-", input="version: 1\n").exit_code == 0
    assert run("check", "-", input="version: 2\n").stdout.startswith("-:1:10: $.version:")


def test_check_needs_no_environment_and_loads_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "graft.yaml").write_text(POLICY)
    code = (
        "import sys; sys.argv = ['graft', 'policy', 'check']\n"
        "from graft.cli.main import main\n"
        "try: main()\n"
        "finally: print([m for m in ('aiohttp', 'asyncpg', 'nats', 'anthropic') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env={}, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "graft.yaml: valid, 3 rules\n[]\n", "")


def test_schema() -> None:
    assert json.loads(run("schema").stdout) == json_schema()


def test_the_pre_commit_hook_runs_this_command() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["entry"].split()[:3] == ["graft", "policy", "check"]
    assert hook["pass_filenames"] is False


# -------------------------------------------------------------------------------------------------- explain


@pytest.fixture
def repository(tmp_path: Path) -> RepositoryBuilder:
    built = RepositoryBuilder(path=tmp_path / "repository.git")
    base = built.commit("main", {"graft.yaml": POLICY, "README.md": "a\n", "src/a.py": "a = 1\n"})
    built.commit("docs", {"README.md": "b\n"}, parent=base)
    built.commit("agent", {"src/a.py": "a = 2\n"}, parent=base, message="Fix\n\nGraft-Agent: claude-code\n")
    built.commit("money", {"billing/x.py": "x = 1\n"}, parent=base)
    built.commit("loosen", {"graft.yaml": "version: 1\ndefault: approve\n"}, parent=base)
    built.commit("odd", {"\x1b[31m/a b.py": "a\n"}, parent=base)
    return built


def explained(repository: RepositoryBuilder, head: str, *args: str) -> dict[str, Any]:
    result = run("explain", f"main..{head}", "--repo", str(repository.path), "--json", *args)
    assert result.exit_code == 0, result.output
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_explain_uses_the_policy_of_the_base(repository: RepositoryBuilder) -> None:
    loosened = explained(repository, "loosen", "--card", "verified")
    assert loosened["outcome"] == "block"
    assert loosened["message"] == "Too risky."
    assert [guard["code"] for guard in loosened["guards"]] == ["policy_touched"]


def test_explain_names_the_fact_that_decided(repository: RepositoryBuilder) -> None:
    answer = explained(repository, "agent")
    assert (answer["outcome"], answer["rule"], answer["teams"], answer["count"]) == (
        "review",
        1,
        ["acme/core"],
        2,
    )
    assert [rule["state"] for rule in answer["rules"]] == ["not_matched", "matched", "not_evaluated"]
    assert answer["rules"][1]["facts"] == ["the author is agent"]
    result = run("explain", "main..agent", "--repo", str(repository.path))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "review by 2 of acme/core"
    assert "  2 matched       agents: the author is agent" in lines
    assert "  3 not evaluated careful" in lines
    assert any("never approve there is no intent card" in line for line in lines)


def test_explain_what_if(repository: RepositoryBuilder) -> None:
    assert explained(repository, "docs")["outcome"] == "review"
    assert explained(repository, "docs")["rules"][2]["facts"] == ["the risk is logic, the limit logic"]
    assert explained(repository, "docs", "--card", "verified")["outcome"] == "approve"
    assert explained(repository, "docs", "--author-kind", "agent")["rule"] == 1
    assert explained(repository, "docs", "--risk", "sensitive")["outcome"] == "block"


def test_explain_counts_the_sensitive_paths_of_the_policy(
    repository: RepositoryBuilder, tmp_path: Path
) -> None:
    assert explained(repository, "money")["outcome"] == "block"
    lax = tmp_path / "lax.yaml"
    lax.write_text(POLICY.replace("billing", "nothing"))
    assert explained(repository, "money", "--file", str(lax))["outcome"] == "review"


def test_explain_with_labels_and_base(repository: RepositoryBuilder, tmp_path: Path) -> None:
    file = tmp_path / "labels.yaml"
    file.write_text("version: 1\nrules: [{name: a, when: {labels: Hold, base: main}, then: block}]\n")
    assert explained(repository, "docs", "--file", str(file))["outcome"] == "review"
    assert explained(repository, "docs", "--file", str(file), "--label", "hold")["outcome"] == "block"


def test_explain_is_safe_for_a_terminal(repository: RepositoryBuilder) -> None:
    result = run("explain", "main..odd", "--repo", str(repository.path), "--card", "verified")
    assert "\x1b" not in result.output
    assert "\\x1b[31m/a b.py" in result.output


def test_explain_says_what_is_wrong(repository: RepositoryBuilder, tmp_path: Path) -> None:
    result = run("explain", "main..nowhere", "--repo", str(repository.path))
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    result = run("explain", "main..docs", "--repo", str(tmp_path))
    assert (result.exit_code, "not a git repository" in result.stderr) == (2, True)
    result = run("explain", "main..docs", "--repo", str(repository.path), "--file", "/nowhere.yaml")
    assert (result.exit_code, "/nowhere.yaml does not exist" in result.stderr) == (2, True)
    invalid = tmp_path / "invalid.yaml"
    invalid.write_text("version: 2")
    result = run("explain", "main..docs", "--repo", str(repository.path), "--file", str(invalid))
    assert (result.exit_code, result.stdout.endswith("no other version is known\n")) == (1, True)


def test_explain_without_a_policy_on_the_base(tmp_path: Path) -> None:
    built = RepositoryBuilder(path=tmp_path / "bare.git")
    base = built.commit("main", {"a": "1"})
    built.commit("topic", {"a": "2"}, parent=base)
    result = run("explain", "main..topic", "--repo", str(built.path), "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["valid"] is False


INTENT_EXAMPLE = Path(__file__).parents[2] / "docs/examples/records"
RECORD = ".intent/records/0001-final-risk.md"
BY_RECORDS = """\
version: 1
rules:
  - {name: fresh, when: {records: fresh}, then: review}
  - {name: stale, when: {records: stale, max_risk: logic}, then: approve}
  - {name: edited, when: {records: stale, max_risk: sensitive}, then: block}
default: {review: {count: 3}}
"""


@pytest.fixture
def recorded(tmp_path: Path) -> RepositoryBuilder:
    """`main` with a policy and approved intent; `code` changes code, `intent` the wording of an approved clause."""
    built = RepositoryBuilder(path=tmp_path / "recorded.git")
    intent = {
        str(path.relative_to(INTENT_EXAMPLE)): path.read_text(encoding="utf-8")
        for path in sorted(INTENT_EXAMPLE.rglob("*"))
        if path.is_file()
    }
    before = built.commit("old", {"graft.yaml": BY_RECORDS})
    base = built.commit("main", intent, parent=before)
    built.commit("code", {"a.py": "1\n"}, parent=base)
    built.commit("intent", {RECORD: intent[RECORD].replace("never below", "always below")}, parent=base)
    return built


@pytest.mark.parametrize(("span", "rule"), [("main..code", 0), ("main..intent", 2), ("old..main", None)])
def test_explain_looks_at_intent_records(recorded: RepositoryBuilder, span: str, rule: int | None) -> None:
    result = run("explain", span, "--repo", str(recorded.path), "--json")
    assert json.loads(result.stdout)["rule"] == rule


# ------------------------------------------------------------------------------------------------- simulate


async def test_simulate_looks_at_intent_records(recorded: RepositoryBuilder) -> None:
    async with Simulator() as simulator:
        installation = simulator.add_installation("acme")
        hosted = simulator.add_repository("acme/shop", recorded.path, installation=installation)
        pull = await simulator.open_pull(hosted, base="main", head="intent")
        async with GitHub(
            app_id=simulator.app.id, private_key=simulator.private_key, api_url=simulator.base_url
        ) as github:
            token = await github.app.installation_token(installation.id)
        env = {"GITHUB_TOKEN": token.value, "GITHUB_API_URL": simulator.base_url}
        result = await asyncio.to_thread(run, "simulate", f"acme/shop#{pull.number}", "--json", env=env)
        assert json.loads(result.stdout)["rule"] == 2


async def test_simulate_on_the_simulated_github(repository: RepositoryBuilder, tmp_path: Path) -> None:
    local = tmp_path / "local.yaml"
    local.write_text(
        "version: 1\nrules: [{name: held, when: {labels: hold}, then: block}]\ndefault: approve\n"
    )
    async with Simulator() as simulator:
        installation = simulator.add_installation("acme")
        hosted = simulator.add_repository("acme/shop", repository.path, installation=installation)
        pull = await simulator.open_pull(
            hosted, base="main", head="agent", title="Fix", body="", labels=["hold"]
        )
        async with GitHub(
            app_id=simulator.app.id, private_key=simulator.private_key, api_url=simulator.base_url
        ) as github:
            token = await github.app.installation_token(installation.id)
        env = {"GITHUB_TOKEN": token.value, "GITHUB_API_URL": simulator.base_url}

        async def simulated(*args: str, **more: str) -> Result:
            name = f"acme/shop#{pull.number}"
            return await asyncio.to_thread(run, "simulate", name, "--json", *args, env={**env, **more})

        answer = json.loads((await simulated()).stdout)
        assert (answer["outcome"], answer["rule"]) == ("review", 1)
        answer = json.loads((await simulated("--file", str(local))).stdout)
        assert (answer["outcome"], answer["rule"]) == ("block", 0)
        answer = json.loads((await simulated("--author-kind", "human", "--risk", "sensitive")).stdout)
        assert answer["outcome"] == "block"
        refused = await simulated(GITHUB_TOKEN="ghp_wrong")
        assert (refused.exit_code, "401" in refused.stderr) == (2, True)
        assert "ghp_wrong" not in refused.output
        assert {seen.method for seen in simulator.requests if "access_tokens" not in seen.path} == {"GET"}


def test_simulate_says_what_is_missing() -> None:
    result = run("simulate", "octo/repo", env={"GITHUB_TOKEN": "x"})
    assert (result.exit_code, "OWNER/REPO#N" in result.stderr) == (2, True)
    result = run("simulate", "octo/repo#1", env={"GITHUB_TOKEN": ""})
    assert (result.exit_code, "GITHUB_TOKEN" in result.stderr) == (2, True)
