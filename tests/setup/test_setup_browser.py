"""`graft setup` from its command to the file, with the simulated GitHub and a real browser between them."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from pathlib import Path

import pytest

from graft.config import Settings
from graft.simulator import Simulator

from .browser import CHROMIUM, browser

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


class Running:
    """The command, and the address of its page."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self.process = process
        self.url = url

    async def end(self) -> tuple[int, str]:
        async with asyncio.timeout(30):
            output, _ = await self.process.communicate()
            return self.process.returncode or 0, output.decode()


async def begin(*arguments: str | Path) -> Running:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "graft", "setup", "--no-browser", *map(str, arguments)),
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), 30)
    assert line.startswith(b"Open http://127.0.0.1:"), line
    return Running(process, line.decode().split()[1])


@pytest.mark.parametrize("organization", [None, "octo"])
async def test_an_app_is_registered_on_an_enterprise_server(tmp_path: Path, organization: str | None) -> None:
    output = tmp_path / "graft.env"
    async with Simulator(prefix="/api/v3", webhook_secret="0123456789abcdef") as simulator:
        simulator.app.permissions, simulator.app.events = {}, []
        web = simulator.base_url.removesuffix("/api/v3")
        running = await begin(
            *(
                "--github",
                web,
                "--url",
                "https://graft.example.com",
                "--output",
                output,
                "--name",
                "Graft <b>",
            ),
            *(("--organization", organization) if organization else ()),
        )
        async with browser(tmp_path / "profile") as page:
            await page.open(running.url)
            text = await page.until("document.querySelector('#create') && document.body.innerText")
            assert "pull_requests\twrite\tWrites one comment" in text
            assert "https://graft.example.com/webhooks/github" in text
            assert "Graft <b>" in text
            assert not output.exists()
            await page.press("#create")
            done = await page.until("document.querySelector('#done')?.innerText")
            assert str(output) in done
            link = await page.evaluate("document.querySelector('a').href")
            assert link == f"{web}/apps/graft/installations/new"
            code, said = await running.end()
        assert code == 0, said
        assert "credentials in" in said
        posted = (
            "/settings/apps/new"
            if organization is None
            else f"/organizations/{organization}/settings/apps/new"
        )
        assert any(request.path.startswith(posted) for request in simulator.requests)
        assert simulator.app.name == "Graft <b>"
        assert simulator.app.webhook_url == "https://graft.example.com/webhooks/github"
        assert simulator.app.permissions == {
            "metadata": "read",
            "contents": "read",
            "pull_requests": "write",
            "checks": "write",
            "issues": "read",
        }
        assert stat.S_IMODE(output.stat().st_mode) == 0o600
        lines = [line for line in output.read_text().splitlines() if not line.startswith("#")]
        settings = Settings.from_env(
            {
                **dict(line.split("=", 1) for line in lines),
                "DATABASE_URL": "postgresql://h/d",
                "NATS_URL": "nats://h",
            }
        )
        assert settings.github_app_id == simulator.app.id
        assert settings.github_app_private_key.value.strip() == simulator.private_key.strip()
        assert settings.github_webhook_secret.value == simulator.app.webhook_secret
        assert settings.github_api_url == simulator.base_url


async def test_an_answer_with_another_state_or_a_used_code_registers_nothing(tmp_path: Path) -> None:
    output = tmp_path / "graft.env"
    async with Simulator(prefix="/api/v3") as simulator:
        web = simulator.base_url.removesuffix("/api/v3")
        running = await begin("--github", web, "--url", "https://graft.example.com", "--output", output)
        own = running.url.rpartition("/")[0]
        try:
            async with browser(tmp_path / "profile") as page:
                await page.open(f"{own}/created?code=abc&state=forged")
                assert "no set-up that was begun here" in await page.until(
                    "document.querySelector('#problem')?.innerText"
                )
                await page.open(running.url)
                action = await page.until("document.querySelector('form')?.action")
                await page.open(f"{own}/created?code=unknown&state={action.rpartition('state=')[2]}")
                assert "does not know this code" in await page.until(
                    "document.querySelector('#problem')?.innerText.includes('code')"
                    " && document.querySelector('#problem').innerText"
                )
        finally:
            running.process.terminate()
            await running.end()
        assert not output.exists()
        # The forged answer did not even reach GitHub.
        assert simulator.requests.count(route="/app-manifests/{code}/conversions") == 1
