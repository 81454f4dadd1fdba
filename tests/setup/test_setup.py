"""`graft setup` without a browser: taking over an App, the file, and what is refused."""

from __future__ import annotations

import asyncio
import base64
import os
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft import envfile
from graft.cli.setup import Registration, register, store, take_over
from graft.errors import ConfigError
from graft.github import manifest
from graft.simulator import Simulator
from graft.values import Address

SECRET = "0123456789abcdef"


@pytest.fixture
async def simulator() -> AsyncIterator[Simulator]:
    async with Simulator(prefix="/api/v3", webhook_secret=SECRET) as made:
        yield made


def given_environment(simulator: Simulator, **variables: str) -> dict[str, str]:
    return {
        "GITHUB_APP_ID": str(simulator.app.id),
        "GITHUB_APP_PRIVATE_KEY": simulator.private_key,
        "GITHUB_WEBHOOK_SECRET": SECRET,
        "GITHUB_API_URL": simulator.base_url,
        **variables,
    }


def variables_of(path: Path) -> dict[str, str]:
    lines = (line for line in path.read_text().splitlines() if not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)


# ------------------------------------------------------------------------------------------------ taking over


def as_path(pem: str, directory: Path) -> str:
    (directory / "key.pem").write_text(pem)
    return str(directory / "key.pem")


WAYS: dict[str, Callable[[str, Path], str]] = {
    "pem": lambda pem, _: pem,
    "escaped": lambda pem, _: pem.replace("\n", "\\n"),
    "base64": lambda pem, _: base64.b64encode(pem.encode()).decode(),
    "path": as_path,
}


@pytest.mark.parametrize("way", list(WAYS))
async def test_an_app_is_taken_over_with_its_key_in_any_form(
    simulator: Simulator, tmp_path: Path, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    key = WAYS[way](simulator.private_key, tmp_path)
    output = tmp_path / "graft.env"
    await take_over(given_environment(simulator, GITHUB_APP_PRIVATE_KEY=key), output, replace=False)
    found = variables_of(output)
    assert (
        base64.b64decode(found.pop("GITHUB_APP_PRIVATE_KEY")).decode().strip()
        == simulator.private_key.strip()
    )
    assert found == {
        "GITHUB_APP_ID": str(simulator.app.id),
        "GITHUB_APP_SLUG": simulator.app.slug,
        "GITHUB_WEBHOOK_SECRET": SECRET,
        "GITHUB_API_URL": simulator.base_url,
    }
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    assert capsys.readouterr().out.count("\n") == 1


async def test_what_an_app_lacks_is_said_with_the_reason(
    simulator: Simulator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    simulator.app.permissions = {
        "metadata": "read",
        "contents": "write",
        "pull_requests": "read",
        "checks": "write",
    }
    simulator.app.events.remove("check_run")
    await take_over(given_environment(simulator), tmp_path / "graft.env", replace=False)
    said = capsys.readouterr().out
    assert "permission pull_requests: write is needed, the App has read." in said
    assert "permission issues: read is needed, the App has none." in said
    assert "event check_run: not subscribed." in said
    assert "contents" not in said


async def test_a_key_of_another_app_is_refused(
    simulator: Simulator, tmp_path: Path, app_private_key: str
) -> None:
    output = tmp_path / "graft.env"
    for variables, said in (
        ({"GITHUB_APP_PRIVATE_KEY": app_private_key}, "GITHUB_APP_PRIVATE_KEY: GitHub does not take"),
        ({"GITHUB_API_URL": "http://127.0.0.1:1"}, "GITHUB_API_URL: "),
        ({"GITHUB_WEBHOOK_SECRET": "two words"}, "GITHUB_WEBHOOK_SECRET has characters"),
        ({"GITHUB_APP_ID": "x", "GITHUB_WEBHOOK_SECRET": ""}, "GITHUB_APP_ID: "),
    ):
        with pytest.raises(ConfigError) as caught:
            await take_over(given_environment(simulator, **variables), output, replace=False)
        assert caught.value.problems[0].startswith(said)
        assert "two words" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_the_command_refuses_a_file_that_exists_before_it_asks_anybody(tmp_path: Path) -> None:
    output = tmp_path / "graft.env"
    output.write_text("GITHUB_APP_ID=7\n")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "graft",
            "setup",
            "--url",
            "https://graft.example.com",
            "--output",
            str(output),
        ],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"]},
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"graft: {output} exists; give another --output, or --replace")
    assert output.read_text() == "GITHUB_APP_ID=7\n"


# ------------------------------------------------------------------------------------------------ the pages


async def test_pages_answer_only_to_who_was_given_their_address(simulator: Simulator, tmp_path: Path) -> None:
    registration = Registration(
        web_url=simulator.base_url.removesuffix("/api/v3"),
        organization=None,
        public_url="https://graft.example.com",
        name="graft-test",
        output=tmp_path / "graft.env",
        replace=False,
    )
    serving = asyncio.create_task(register(registration, Address("127.0.0.1", 0), browser=False))
    while not registration.own_url:
        await asyncio.sleep(0.01)
    async with aiohttp.ClientSession() as http:
        for path, host, status in (
            ("/", None, 404),
            ("/wrong-token", None, 404),
            (f"/{registration.token}", "evil.example.com", 403),
            (f"/{registration.token}", None, 200),
            (f"/created?state={registration.state}&code=../../app", None, 400),
        ):
            headers = {"Host": host} if host else {}
            async with http.get(registration.own_url + path, headers=headers) as response:
                assert response.status == status, path
                if status == 200:
                    assert "default-src 'none'" in response.headers["Content-Security-Policy"]
                    assert registration.state in await response.text()
        simulator.server.manifest_codes.add("a1b2")
        url = f"{registration.own_url}/created?state={registration.state}&code=a1b2"
        async with http.get(url) as response:
            assert response.status == 200
    await asyncio.wait_for(serving, 10)
    assert variables_of(tmp_path / "graft.env")["GITHUB_APP_ID"] == str(simulator.app.id)


async def test_credentials_that_are_given_out_once_are_not_lost(simulator: Simulator, tmp_path: Path) -> None:
    simulator.server.manifest_codes.add("a1b2")
    found = await manifest.convert(simulator.base_url, "a1b2")
    assert simulator.private_key not in repr(found)
    output = tmp_path / "graft.env"
    output.write_text("somebody was faster")
    where = store(found, output, api_url=simulator.base_url, replace=False)
    assert where == tmp_path / f"graft.env.{found.id}"
    assert output.read_text() == "somebody was faster"
    assert store(found, output, api_url=simulator.base_url, replace=True) == output
    assert (tmp_path / "graft.env.old").read_text() == "somebody was faster"


def test_the_manifest_names_no_event_that_github_refuses_there() -> None:
    asked = manifest.manifest(name="x", public_url="https://x.example", redirect_url="http://127.0.0.1/")
    assert not {"installation", "installation_repositories"} & set(asked["default_events"])


@pytest.mark.parametrize(
    ("web", "api"),
    [
        ("https://github.com", "https://api.github.com"),
        ("https://acme.ghe.com", "https://api.acme.ghe.com"),
        ("https://github.acme.com", "https://github.acme.com/api/v3"),
        ("https://notgithub.com", "https://notgithub.com/api/v3"),
    ],
)
def test_each_github_has_its_api(web: str, api: str) -> None:
    assert manifest.api_of(web) == api


# ------------------------------------------------------------------------------------------------- the file


@given(value=st.text(max_size=40))
def test_a_value_is_read_back_by_a_shell_as_it_is_or_refused(value: str) -> None:
    plain = envfile.is_plain(value)
    assert plain or any(not (c.isascii() and c.isalnum()) for c in value)
    assert not (plain and any(c in value for c in "\n\r'\"$`\\#; \t&|<>()"))


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("old")
    with pytest.raises(FileExistsError):
        envfile.write(tmp_path / "there", {"A": "1"}, comment="x")
    with pytest.raises(ValueError, match=r"^A has"):
        envfile.write(tmp_path / "new", {"A": "1 2"}, comment="x")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert (tmp_path / "there").read_text() == "old"
