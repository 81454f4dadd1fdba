"""Whether a person is at the other end: a terminal, and no sign of an agent or of CI in the environment.

It is a guard against an agent that approves its own work by mistake. It is no proof: an environment can be
cleaned, and the documents say so.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

AGENT_VARIABLES = (
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CODEX_SANDBOX",
    "CODEX_THREAD_ID",
    "CURSOR_AGENT",
    "GEMINI_CLI",
    "COPILOT_AGENT_JOB_ID",
    "COPILOT_CLI",
    "OPENCODE",
    "AUGMENT_AGENT",
    "CLINE_ACTIVE",
    "GOOSE_TERMINAL",
    "REPLIT_AGENT",
    "PI_CODING_AGENT",
    "AI_AGENT",
    "AGENT",
)
CI_VARIABLES = (
    "CI",
    "CONTINUOUS_INTEGRATION",
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "BUILDKITE",
    "JENKINS_URL",
    "TEAMCITY_VERSION",
    "TF_BUILD",
    "CIRCLECI",
    "TRAVIS",
    "APPVEYOR",
    "DRONE",
)


def automation(env: Mapping[str, str]) -> str:
    """The first variable that says an agent or CI is at work, or nothing."""
    for name in AGENT_VARIABLES + CI_VARIABLES:
        if env.get(name, "").strip().lower() not in ("", "0", "false", "no"):
            return name
    return ""


def on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def ask(prompt: str) -> str:
    """A line typed at the terminal; empty at the end of input."""
    try:
        return input(prompt)
    except EOFError:
        return ""
