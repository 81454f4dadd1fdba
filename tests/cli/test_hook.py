from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from graft.cli.hook import AGENTS, MARK, hook, script
from graft.git import Repository
from graft.provenance import Source, resolve, trailers
from graft.provenance.table import ROWS

VARIABLES = {name for name, _, _ in AGENTS} | {
    "GRAFT_AGENT", "GRAFT_MODEL", "GRAFT_TASK", "GRAFT_SESSION", "CLAUDE_CODE_SESSION_ID",
}  # fmt: skip


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with a working tree and one commit."""
    path = tmp_path / "work tree"
    git(None, "init", "-q", "-b", "main", str(path))
    git(path, "commit", "-q", "--allow-empty", "-m", "root")
    return path


def git(where: Path | None, *arguments: str, **variables: str) -> str:
    kept = {k: v for k, v in os.environ.items() if k not in VARIABLES and not k.startswith("GIT_")}
    identity = {
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@x.io",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@x.io",
    }
    done = subprocess.run(
        ["git", *(["-C", str(where)] if where else []), *arguments],
        env={**kept, **identity, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def graft_hook(*arguments: str) -> Result:
    return CliRunner().invoke(hook, arguments)


def commit(work: Path, message: str = "Do it", **variables: str) -> list[str]:
    """The trailers of a commit made with these variables."""
    git(work, "commit", "-q", "--allow-empty", "-m", message, **variables)
    return git(work, "log", "-1", "--format=%(trailers:unfold)").split("\n")[:-2]


def test_install_makes_agents_sign_and_leaves_people_alone(work: Path) -> None:
    done = graft_hook("install", "--repo", str(work))
    assert done.exit_code == 0, done.output
    path = work / ".git/hooks/prepare-commit-msg"
    assert str(path) in done.stdout
    assert path.stat().st_mode & stat.S_IXUSR
    assert commit(work) == []
    assert commit(work, GRAFT_AGENT="my-agent", GRAFT_MODEL="m 1", GRAFT_TASK="#12", GRAFT_SESSION="s") == [
        "Graft-Agent: my-agent", "Graft-Model: m 1", "Graft-Task: #12", "Graft-Session: s",
    ]  # fmt: skip
    repository = Repository.open(work)
    answer = resolve(repository.snapshot(repository.resolve("main~1..main")).commits)
    assert (answer.agents, answer.source) == (("my-agent",), Source.DECLARED)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"CLAUDECODE": "1"}, ["Graft-Agent: claude-code"]),
        (
            {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "u-1"},
            ["Graft-Agent: claude-code", "Graft-Session: u-1"],
        ),
        ({"CLAUDECODE": "1", "AGENT": "amp"}, ["Graft-Agent: amp"]),
        ({"AGENT": "mail"}, []),
        ({"CODEX_THREAD_ID": "t"}, ["Graft-Agent: codex", "Graft-Session: t"]),
        ({"CODEX_SANDBOX": "seatbelt"}, ["Graft-Agent: codex"]),
        ({"CURSOR_AGENT": "1"}, ["Graft-Agent: cursor"]),
        ({"GEMINI_CLI": "1"}, ["Graft-Agent: gemini-cli"]),
        ({"COPILOT_CLI": "1"}, ["Graft-Agent: copilot"]),
        ({"OPENCODE": "1"}, ["Graft-Agent: opencode"]),
        ({"CLAUDECODE": "1", "GRAFT_AGENT": "mine"}, ["Graft-Agent: mine"]),
        ({"CLAUDECODE": "1", "GRAFT_AGENT": "none"}, []),
        ({"GRAFT_MODEL": "m", "GRAFT_TASK": "#1"}, []),
        ({"GRAFT_AGENT": "a\nSigned-off-by: x"}, ["Graft-Agent: aSigned-off-by: x"]),
        ({"GRAFT_AGENT": "$(touch pwned)`id`"}, ["Graft-Agent: $(touch pwned)`id`"]),
    ],
)
def test_what_the_environment_says(work: Path, variables: dict[str, str], expected: list[str]) -> None:
    graft_hook("install", "--repo", str(work))
    assert commit(work, **variables) == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("x\n\nGraft-Agent: other", ["Graft-Agent: other"]),
        ("x\n\nSigned-off-by: A <a@x.io>", ["Signed-off-by: A <a@x.io>", "Graft-Agent: codex"]),
        (
            "x\n\n🤖 footer\n\nCo-Authored-By: C <c@x.io>",
            ["Co-Authored-By: C <c@x.io>", "Graft-Agent: codex"],
        ),
        ("x\n\nGraft-Agent: lost\n\nprose", ["Graft-Agent: codex"]),
        ("x\n---\nmore", ["Graft-Agent: codex"]),
    ],
)
def test_messages_that_have_trailers_already(work: Path, message: str, expected: list[str]) -> None:
    graft_hook("install", "--repo", str(work))
    assert commit(work, message, GRAFT_AGENT="codex") == expected


def test_amending_does_not_repeat(work: Path) -> None:
    graft_hook("install", "--repo", str(work))
    commit(work, GRAFT_AGENT="codex")
    git(work, "commit", "-q", "--amend", "--no-edit", "--allow-empty", GRAFT_AGENT="codex", GRAFT_MODEL="m")
    assert git(work, "log", "-1", "--format=%(trailers)").split("\n")[:2] == [
        "Graft-Agent: codex",
        "Graft-Model: m",
    ]


def test_no_verify_does_not_skip_the_hook(work: Path) -> None:
    """Aider commits with it."""
    graft_hook("install", "--repo", str(work))
    git(work, "commit", "-q", "--no-verify", "--allow-empty", "-m", "x", GRAFT_AGENT="aider")
    assert git(work, "log", "-1", "--format=%(trailers)").strip() == "Graft-Agent: aider"


def test_an_empty_message_still_stops_the_commit(work: Path) -> None:
    graft_hook("install", "--repo", str(work))
    with pytest.raises(subprocess.CalledProcessError):
        git(work, "commit", "-q", "--allow-empty", "-v", GRAFT_AGENT="codex", GIT_EDITOR="true")


def test_merges_are_not_signed(work: Path) -> None:
    graft_hook("install", "--repo", str(work))
    git(work, "checkout", "-q", "-b", "topic")
    commit(work)
    git(work, "checkout", "-q", "main")
    git(work, "merge", "-q", "--no-ff", "--no-edit", "topic", GRAFT_AGENT="codex")
    assert trailers.parse(git(work, "log", "-1", "--format=%B")) == ()


def test_hooks_path_is_respected(work: Path, tmp_path: Path) -> None:
    git(work, "config", "core.hooksPath", "my hooks")
    assert graft_hook("install", "--repo", str(work / ".")).exit_code == 0
    assert (work / "my hooks/prepare-commit-msg").exists()
    assert commit(work, GRAFT_AGENT="codex") == ["Graft-Agent: codex"]
    git(work, "config", "core.hooksPath", str(tmp_path / "shared"))
    assert graft_hook("install", "--repo", str(work)).exit_code == 0
    assert (tmp_path / "shared/prepare-commit-msg").exists()


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_a_foreign_hook_stays_as_it_is(work: Path, command: str) -> None:
    path = work / ".git/hooks/prepare-commit-msg"
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\necho mine\n")
    done = graft_hook(command, "--repo", str(work))
    assert done.exit_code == 1
    assert "not Graft's and stays as it is" in done.stderr
    assert done.stderr.count("\n") == 1
    assert path.read_text() == "#!/bin/sh\necho mine\n"


def test_a_link_is_never_grafts(work: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text(script())
    path = work / ".git/hooks/prepare-commit-msg"
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(target)
    assert graft_hook("install", "--repo", str(work)).exit_code == 1
    assert graft_hook("uninstall", "--repo", str(work)).exit_code == 1
    assert path.is_symlink()


def test_installing_again_renews_and_uninstall_removes(work: Path) -> None:
    path = work / ".git/hooks/prepare-commit-msg"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{MARK} 0\nold\n")
    assert graft_hook("install", "--repo", str(work)).exit_code == 0
    assert path.read_text() == script()
    assert list(path.parent.glob(".prepare*")) == []
    assert graft_hook("uninstall", "--repo", str(work)).exit_code == 0
    assert not path.exists()
    again = graft_hook("uninstall", "--repo", str(work))
    assert (again.exit_code, "there is no" in again.stdout) == (0, True)


def test_the_shown_script_can_be_called_from_another_hook(work: Path, tmp_path: Path) -> None:
    shown = tmp_path / "graft-trailers"
    shown.write_text(graft_hook("show").stdout)
    shown.chmod(0o755)
    path = work / ".git/hooks/prepare-commit-msg"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\n"{shown}" "$@"\n')
    path.chmod(0o755)
    assert commit(work, GRAFT_AGENT="codex") == ["Graft-Agent: codex"]


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_no_repository(tmp_path: Path, command: str) -> None:
    done = graft_hook(command, "--repo", str(tmp_path / "nowhere"))
    assert done.exit_code == 2
    assert "--repo PATH" in done.stderr


def test_a_place_that_cannot_be_written(work: Path) -> None:
    git(work, "config", "core.hooksPath", str(work / "file" / "hooks"))
    (work / "file").write_text("x")
    done = graft_hook("install", "--repo", str(work))
    assert done.exit_code == 1
    assert "cannot be written" in done.stderr


def test_agents_go_by_the_names_of_the_signature_table() -> None:
    assert {agent for _, _, agent in AGENTS} <= {row.agent for row in ROWS}
