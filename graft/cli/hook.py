"""`graft hook`: the git hook that writes down which agent makes a commit.

The hook is a short shell script that needs git and nothing else, so it keeps working without Graft. It takes what
`GRAFT_AGENT`, `GRAFT_MODEL`, `GRAFT_TASK` and `GRAFT_SESSION` say, or else knows an agent by the variables that
agent sets for the commands it runs, and adds trailers that are not there yet. A commit by a person stays as it is.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

import click

from graft.errors import GraftError
from graft.git import hooks_directory

NAME = "prepare-commit-msg"
MARK = "# graft prepare-commit-msg"

# Variable, the value it must have (any where empty), agent. Some agents also set another's variable, so the order
# counts: Amp sets CLAUDECODE too. Seen in the documentation and detectors of several tools in November 2026.
AGENTS = (
    ("AGENT", "amp", "amp"),
    ("CURSOR_AGENT", "", "cursor"),
    ("GEMINI_CLI", "", "gemini-cli"),
    ("CODEX_THREAD_ID", "", "codex"),
    ("CODEX_SANDBOX", "", "codex"),
    ("COPILOT_CLI", "", "copilot"),
    ("OPENCODE", "", "opencode"),
    ("CLAUDECODE", "", "claude-code"),
)
SESSIONS = {"codex": "CODEX_THREAD_ID", "claude-code": "CLAUDE_CODE_SESSION_ID"}

_SCRIPT = """\
#!/bin/sh
{mark} 1
# Adds Graft-Agent, Graft-Model, Graft-Task and Graft-Session to the message of a commit that an agent makes.
# Installed by `graft hook install`, removed by `graft hook uninstall`. GRAFT_AGENT=none switches it off.

file=$1
[ "${{2-}}" != merge ] || exit 0

agent=${{GRAFT_AGENT-}}
if [ -n "$agent" ]; then :
{agents}
fi
[ -n "$agent" ] && [ "$agent" != none ] || exit 0

session=${{GRAFT_SESSION-}}
if [ -z "$session" ]; then
    case $agent in
{sessions}
    esac
fi

# An editor that is left with an empty message must still stop the commit.
sed '/^# -* >8 -*$/,$d' "$file" | grep -q '^[^#[:space:]]' || exit 0

line() {{ printf '%s' "$1" | LC_ALL=C tr -d '\\000-\\037\\177' | cut -c 1-200; }}
set -- --trailer "Graft-Agent: $(line "$agent")"
[ -z "${{GRAFT_MODEL-}}" ] || set -- "$@" --trailer "Graft-Model: $(line "$GRAFT_MODEL")"
[ -z "${{GRAFT_TASK-}}" ] || set -- "$@" --trailer "Graft-Task: $(line "$GRAFT_TASK")"
[ -z "$session" ] || set -- "$@" --trailer "Graft-Session: $(line "$session")"
git interpret-trailers --in-place --no-divider --if-exists doNothing --if-missing add "$@" "$file" || :
"""


def script() -> str:
    """The hook's text."""
    return _SCRIPT.format(
        mark=MARK,
        agents="\n".join(
            f'elif [ "${{{variable}-}}" = {value} ]; then agent={agent}'
            if value
            else f'elif [ -n "${{{variable}-}}" ]; then agent={agent}'
            for variable, value, agent in AGENTS
        ),
        sessions="\n".join(
            f"        {agent}) session=${{{variable}-}} ;;" for agent, variable in SESSIONS.items()
        ),
    )


@click.group()
def hook() -> None:
    """Install the git hook that writes Graft trailers."""


_repo = click.option(
    "--repo", default=".", type=click.Path(path_type=Path), help="The git repository; else this directory."
)


@hook.command()
@_repo
def install(repo: Path) -> None:
    """Install the prepare-commit-msg hook. A hook that is not Graft's is left alone."""
    path = _path(repo)
    if _is_taken(path):
        _fail(
            f"{_shown(path)} is not Graft's and stays as it is: run `graft hook show` to save the script as another "
            f'executable file, and call that from there with "$@"'
        )
    try:
        _write(path)
    except OSError as error:
        _fail(f"{_shown(path)} cannot be written ({error.strerror}): check the permissions of its directory")
    click.echo(f"installed {_shown(path)}")


@hook.command()
@_repo
def uninstall(repo: Path) -> None:
    """Remove the hook. A hook that is not Graft's is left alone."""
    path = _path(repo)
    if not os.path.lexists(path):
        click.echo(f"there is no {_shown(path)}")
        return
    if _is_taken(path):
        _fail(
            f"{_shown(path)} is not Graft's and stays as it is: remove the call to Graft's script there by hand"
        )
    try:
        path.unlink()
    except OSError as error:
        _fail(f"{_shown(path)} cannot be removed ({error.strerror}): check the permissions of its directory")
    click.echo(f"removed {_shown(path)}")


@hook.command()
def show() -> None:
    """Print the script, to be called from a hook of your own."""
    click.echo(script(), nl=False)


def _path(repo: Path) -> Path:
    try:
        return hooks_directory(os.fspath(repo)) / NAME
    except GraftError as error:
        click.echo(f"graft hook: {error}", err=True)
        sys.exit(2)


def _is_taken(path: Path) -> bool:
    """Whether something that is not Graft's script stands there; a link is never Graft's."""
    if not os.path.lexists(path):
        return False
    if path.is_symlink() or not path.is_file():
        return True
    try:
        with path.open("rb") as file:
            return MARK.encode() not in file.read(200)
    except OSError:
        return True


def _write(path: Path) -> None:
    """All or nothing: git may run the hook at any moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{NAME}.")
    try:
        with os.fdopen(handle, "w", encoding="ascii", newline="\n") as file:
            file.write(script())
        os.chmod(temporary, 0o755)  # noqa: S103  # git runs only executable hooks, as whoever commits
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _shown(path: Path) -> str:
    return os.fsencode(path).decode("utf-8", "replace")


def _fail(message: str) -> NoReturn:
    click.echo(f"graft hook: {message}", err=True)
    sys.exit(1)
