"""The signatures that coding agents, reviewer bots and automation leave, as data: one row each, with its source.

A row decides only when it is strong: an exact address, the numeric id of a bot account, a bot's login as GitHub
reports it, or a trailer only the tool writes. Whatever anybody can produce without meaning it (a branch name, a
footer, a phrase) and whatever was only read second-hand is weak: shown as a hint, never an answer.

`docs/provenance.md` explains the columns. To add a tool, add a row; nothing else knows their names.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

READ = "2026-11"  # when the sources below were read


class Role(StrEnum):
    """Who leaves the signature: the change's author, a bot that comments on it, or a robot that is no AI."""

    AUTHOR = "author"
    REVIEWER = "reviewer"
    AUTOMATION = "automation"


class Kind(StrEnum):
    """Where a row's literal is looked for."""

    ADDRESS = "address"  # an e-mail address, whole and in lower case: author or Co-authored-by
    BOT_ID = "bot_id"  # GitHub's id of an account: from the API, or in front of a noreply address
    LOGIN = "login"  # a login that GitHub says is a bot's
    AUTHOR_NAME = "author_name"  # the end of the author's name
    TRAILER = "trailer"  # a trailer of the tool's own; `value` is its value, or how a URL there starts
    TOOL = "tool"  # the tool's name in Assisted-by or Generated-by
    BRANCH = "branch"  # the head branch, as a regular expression from its start
    FOOTER = "footer"  # in a commit message or a description
    SUBJECT = "subject"  # how a commit's first line starts


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One signature. `agent` is a slug (for a reviewer or automation, of the bot). `name` narrows an address to
    author names that start so. `source` says where it was seen, `date` when that was read."""

    agent: str
    role: Role
    strong: bool
    kind: Kind
    literal: str
    source: str
    value: str = ""
    name: str = ""
    date: str = READ

    @property
    def code(self) -> str:
        """A short stable name for the database: `claude-code/address`."""
        return f"{self.agent}/{self.kind}"


def _strong(agent: str, kind: Kind, literal: str, source: str, *, value: str = "", name: str = "") -> Row:
    return Row(
        agent=agent,
        role=Role.AUTHOR,
        strong=True,
        kind=kind,
        literal=literal,
        source=source,
        value=value,
        name=name,
    )


def _weak(agent: str, kind: Kind, literal: str, source: str) -> Row:
    return Row(agent=agent, role=Role.AUTHOR, strong=False, kind=kind, literal=literal, source=source)


def _bot(role: Role, agent: str, kind: Kind, literal: str, source: str, *, name: str = "") -> Row:
    return Row(agent=agent, role=role, strong=True, kind=kind, literal=literal, source=source, name=name)


_A, _I, _L, _T, _N = Kind.ADDRESS, Kind.BOT_ID, Kind.LOGIN, Kind.TRAILER, Kind.TOOL
_B, _F = Kind.BRANCH, Kind.FOOTER
_SECOND_HAND = "tables of other detectors; not confirmed"
_KERNEL = "Linux Documentation/process/coding-assistants.rst: AGENT_NAME"
_GIT_LOG = "git log of public repositories"

ROWS: tuple[Row, ...] = (
    # Claude Code. Its action's default bot id is that of github-actions, hence the exact address.
    _strong("claude-code", _A, "noreply@anthropic.com", "git-ai, procrastinate, claude-code-action commits"),
    _strong("claude-code", _A, "41898282+claude[bot]@users.noreply.github.com", "claude-code-action"),
    _strong("claude-code", _I, "209825114", "claude-code-action"),
    _strong("claude-code", _L, "claude[bot]", "claude-code-action"),
    _strong(
        "claude-code",
        _T,
        "Claude-Session",
        "anthropics/claude-code#77830",
        value="https://claude.ai/code/session_",
    ),
    _weak("claude-code", _I, "215619710", _SECOND_HAND),
    _weak("claude-code", _I, "208546643", _SECOND_HAND),
    _weak(
        "claude-code", _F, "Generated with [Claude Code](https://claude.com/claude-code)", "commit footers"
    ),
    _weak("claude-code", _F, "Generated with [Claude Code](https://claude.ai/code)", "older commit footers"),
    _weak("claude-code", _B, r"claude/", "claude-code-action"),
    # GitHub Copilot. The coding agent puts the person who asked into Co-authored-by.
    _strong("copilot", _I, "198982749", "git-ai commits"),
    _strong("copilot", _I, "223556219", "hivecommons/hive#6606"),
    _strong("copilot", _A, "copilot@github.com", "hivecommons/hive#6606"),
    _strong("copilot", _L, "copilot", "git-ai commits; the REST login has no [bot]"),
    _strong("copilot", _L, "copilot-swe-agent[bot]", "git-ai commits"),
    _strong("copilot", _T, "Agent-Logs-Url", "git-ai commits", value="https://"),
    _weak("copilot", _B, r"copilot/", "PRarena queries"),
    _bot(Role.REVIEWER, "copilot-review", _I, "175728472", "git-ai, gemini-cli commits"),
    # Cursor
    _strong("cursor", _A, "cursoragent@cursor.com", "git-ai agent_detection.rs"),
    _strong("cursor", _T, "Made-with", "git-ai agent_detection.rs", value="Cursor"),
    _weak("cursor", _I, "206951365", _SECOND_HAND),
    _weak("cursor", _I, "201670782", _SECOND_HAND),
    _weak("cursor", _L, "cursor[bot]", _SECOND_HAND),
    _weak("cursor", _L, "cursoragent[bot]", _SECOND_HAND),
    _weak("cursor", _B, r"cursor/[^/]+-[0-9a-f]{4}$", "pull requests opened by Cursor"),
    _weak("cursor", _F, "<!-- CURSOR_AGENT_PR_BODY_BEGIN -->", "pull requests opened by Cursor"),
    # Codex. Other senders share noreply@openai.com, and the command line signs nothing (openai/codex#9449).
    _strong("codex", _A, "codex@openai.com", "git-ai attribution_recovery.rs"),
    _strong("codex", _A, "noreply@openai.com", "git-ai attribution_recovery.rs", name="codex"),
    _weak("codex", _B, r"codex/", "pull requests opened by Codex"),
    _weak(
        "codex", _F, "[Codex Task](https://chatgpt.com/codex/tasks/task_e_", "pull requests opened by Codex"
    ),
    _bot(Role.REVIEWER, "codex-connector", _I, "199175422", _GIT_LOG),
    _bot(Role.REVIEWER, "codex-connector", _L, "chatgpt-codex-connector[bot]", _GIT_LOG),
    _bot(Role.AUTOMATION, "openai-release", _A, "noreply@openai.com", _GIT_LOG, name="openai release bot"),
    # Devin
    _strong("devin", _I, "158243242", "git-ai commits"),
    _strong("devin", _L, "devin-ai-integration[bot]", "git-ai commits"),
    _weak("devin", _F, "Generated with [Devin](https://devin.ai)", "commit footers"),
    _weak("devin", _F, "Link to Devin run: https://app.devin.ai/sessions/", "pull requests opened by Devin"),
    _weak("devin", _B, r"devin/\d+-", "pull requests opened by Devin"),
    # Jules
    _strong("jules", _I, "161369871", _GIT_LOG),
    _strong("jules", _L, "google-labs-jules[bot]", _GIT_LOG),
    _weak("jules", _F, "PR created automatically by Jules for task [", "pull requests opened by Jules"),
    # Aider. Its addresses are matched with its name: people have addresses that begin with "aider".
    _strong("aider", Kind.AUTHOR_NAME, " (aider)", "aider/repo.py"),
    _strong("aider", _A, "aider@aider.chat", "aider/repo.py", name="aider"),
    _strong("aider", _A, "noreply@aider.chat", "aider/repo.py", name="aider"),
    _strong("aider", _A, "noreply@aider.dev", "aider/repo.py", name="aider"),
    _weak("aider", Kind.SUBJECT, "aider: ", "aider/repo.py"),
    # OpenHands
    _strong("openhands", _A, "openhands@all-hands.dev", "openhands system_prompt.j2"),
    _strong("openhands", _A, "opendevin@all-hands.dev", "older OpenHands commits"),
    _weak("openhands", _B, r"openhands-fix-issue-\d+", "openhands resolver"),
    _weak("openhands", _F, "Automatic fix generated by [OpenHands](", "openhands resolver"),
    # Amp
    _strong("amp", _A, "amp@ampcode.com", "commits made with Amp"),
    _strong("amp", _T, "Amp-Thread-ID", "commits made with Amp", value="https://ampcode.com/threads/T-"),
    # Gemini
    _strong("gemini-cli", _I, "218195315", "gemini-cli"),
    _bot(Role.REVIEWER, "gemini-code-assist", _I, "176961590", "gemini-cli commits"),
    _bot(Role.REVIEWER, "gemini-code-assist", _L, "gemini-code-assist[bot]", "gemini-cli commits"),
    _bot(Role.AUTOMATION, "gemini-cli-robot", _A, "gemini-cli-robot@google.com", _GIT_LOG),
    # Factory, Replit, Windsurf, opencode and others
    _strong("factory-droid", _I, "138933559", "git-ai"),
    _strong("factory-droid", _L, "factory-droid[bot]", "git-ai"),
    _strong("replit", _T, "Replit-Commit-Author", "chaoss/disclosure", value="Agent"),
    _strong("replit", _T, "Replit-Commit-Author", "chaoss/disclosure", value="Assistant"),
    _weak("windsurf", _A, "windsurf@codeium.com", "git-ai list"),
    _weak("windsurf", _A, "noreply@codeium.com", "git-ai list"),
    _weak("windsurf", _A, "noreply@windsurf.com", "git-ai list"),
    _weak("opencode", _A, "noreply@opencode.ai", _SECOND_HAND),
    _weak("opencode", _L, "opencode-agent[bot]", _SECOND_HAND),
    _weak("cline", _I, "205137888", _SECOND_HAND),
    _weak("continue", _I, "230936708", _SECOND_HAND),
    _weak("amazon-q", _I, "208079219", _SECOND_HAND),
    _weak("jetbrains-ai", _I, "220155983", _SECOND_HAND),
    _weak("cody", _I, "201248094", _SECOND_HAND),
    _weak("codegen", _L, "codegen-sh[bot]", _SECOND_HAND),
    _weak("kiro", _L, "kiro-agent[bot]", _SECOND_HAND),
    _weak("roo-code", _A, "roomote@roocode.com", _SECOND_HAND),
    _weak("firebender", _F, "Generated with [Firebender](https://firebender.com)", _SECOND_HAND),
    # Reviewers and automation that write no code of their own accord
    _bot(Role.REVIEWER, "coderabbit", _I, "136622811", _GIT_LOG),
    _bot(Role.REVIEWER, "coderabbit", _L, "coderabbitai[bot]", _GIT_LOG),
    _bot(Role.AUTOMATION, "dependabot", _I, "49699333", _GIT_LOG),
    _bot(Role.AUTOMATION, "dependabot", _L, "dependabot[bot]", _GIT_LOG),
    _bot(Role.AUTOMATION, "renovate", _I, "29139614", _GIT_LOG),
    _bot(Role.AUTOMATION, "renovate", _L, "renovate[bot]", _GIT_LOG),
    _bot(Role.AUTOMATION, "github-actions", _I, "41898282", _GIT_LOG),
    _bot(Role.AUTOMATION, "github-actions", _L, "github-actions[bot]", _GIT_LOG),
    _bot(Role.AUTOMATION, "pre-commit-ci", _I, "66853113", _GIT_LOG),
    _bot(Role.AUTOMATION, "pre-commit-ci", _L, "pre-commit-ci[bot]", _GIT_LOG),
    # What stands in Assisted-by (Linux, Fedora, LLVM) and Generated-by (Apache, OpenInfra). People stand there
    # too, so a name counts only when it is exactly one of these, and never beside an address; Devin is left out,
    # being a first name.
    _strong("claude", _N, "claude", _KERNEL),
    _strong("claude-code", _N, "claude code", "Assisted-by in public repositories"),
    _strong("claude-code", _N, "claude-code", "Assisted-by in public repositories"),
    _strong("copilot", _N, "copilot", "Assisted-by in public repositories"),
    _strong("copilot", _N, "github copilot", "Assisted-by in public repositories"),
    _strong("pi", _N, "pi", "openssl/tools#245"),
    _strong("codex", _N, "codex", _KERNEL),
    _strong("cursor", _N, "cursor", _KERNEL),
    _strong("aider", _N, "aider", _KERNEL),
    _strong("amp", _N, "amp", _KERNEL),
    _strong("openhands", _N, "openhands", _KERNEL),
    _strong("gemini-cli", _N, "gemini-cli", _KERNEL),
    _strong("opencode", _N, "opencode", _KERNEL),
)
