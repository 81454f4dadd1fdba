"""What comes from outside is pinned with its hashes, listed in a bill of materials, and fits pyproject.toml."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from .conftest import DEPLOY, ROOT

LOCKS = ("build", "development", "runtime")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
# The extras that are installed with `make install`.
INSTALLED = ("embedded", "dev", "fuzz")


def pins(name: str) -> dict[str, tuple[Version, list[str]]]:
    """{package: (version, hashes)} of a lock."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text().replace("\\\n", " ")
    found: dict[str, tuple[Version, list[str]]] = {}
    for line in text.splitlines():
        match = re.fullmatch(
            r"([A-Za-z0-9._-]+)(?:\[[a-z0-9, _-]+\])?==(\S+)( ; [^-]+?)?((?:\s+--hash=sha256:[0-9a-f]{64})+)\s*",
            line,
        )
        assert match is not None, (
            f"{name}.txt has something else than a pinned package with hashes: {line[:60]}"
        )
        found[canonicalize_name(match[1])] = (Version(match[2]), re.findall(r"sha256:(\w+)", match[4]))
    return found


def wanted(name: str) -> list[Requirement]:
    project = PROJECT["project"]
    texts = {
        "build": PROJECT["build-system"]["requires"],
        "runtime": project["dependencies"],
        "development": [
            *project["dependencies"],
            *(text for extra in INSTALLED for text in project["optional-dependencies"][extra]),
        ],
    }[name]
    return [Requirement(text) for text in texts]


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_pins_everything_that_is_asked_for_with_hashes(name: str) -> None:
    pinned = pins(name)
    for requirement in wanted(name):
        assert canonicalize_name(requirement.name) in pinned, (
            f"run `make lock`: {requirement.name} is not locked"
        )
        version, hashes = pinned[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), (
            f"run `make lock`: {requirement} is locked at {version}"
        )
        assert hashes


def test_a_lock_pins_what_those_need_too() -> None:
    """As the installed packages say what they need."""
    for name in ("runtime", "development"):
        pinned = pins(name)
        missing = set()
        for package in pinned:
            try:
                needs = metadata.requires(package) or []
            except metadata.PackageNotFoundError:
                continue  # for another system
            for need in map(Requirement, needs):
                if need.marker is None or need.marker.evaluate({"extra": ""}):
                    missing |= {canonicalize_name(need.name)} - set(pinned)
        assert missing == set()


def test_what_runs_is_what_was_tested() -> None:
    development = pins("development")
    assert all(development[package] == pin for package, pin in pins("runtime").items())


def test_this_environment_is_the_locked_one() -> None:
    pinned = pins("development") | pins("build")
    installed: dict[str, str] = {
        canonicalize_name(each.metadata["Name"]): each.version for each in metadata.distributions()
    }
    for package, (version, _) in pinned.items():
        if package in installed:
            assert Version(installed[package]) == version, f"{package}: run `make install`"
    direct = {canonicalize_name(each.name) for each in wanted("runtime")}
    assert direct <= set(installed)


def test_make_and_the_image_install_nothing_without_hashes() -> None:
    makefile = (ROOT / "Makefile").read_text()
    installs = re.findall(r"^\t@?\$\(PIP\) (.*)$", makefile, re.MULTILINE)
    assert installs
    assert all("--require-hashes" in each or "--no-deps" in each for each in installs)
    assert "pip install" not in makefile.replace("PIP = $(PY) -m pip install", "")
    assert "requirements" in (DEPLOY / "Dockerfile.dockerignore").read_text()


def test_a_wrong_hash_is_refused(tmp_path: Path) -> None:
    """`pip` in hash-checking mode really looks: one digit is changed, and nothing is installed."""
    lock = (ROOT / "requirements" / "build.txt").read_text()
    # A file instead of an index: the check is the same, and nothing is fetched.
    package = tmp_path / "setuptools-99.0-py3-none-any.whl"
    package.write_bytes(b"not what was locked")
    requirement = tmp_path / "lock.txt"
    digests = re.findall(r"--hash=sha256:\w+", lock)
    requirement.write_text(f"setuptools @ {package.as_uri()} {' '.join(digests)}\n")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--require-hashes"),
            *("--target", str(tmp_path / "into"), "-r", str(requirement)),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr


def test_the_bill_of_materials_names_all_that_the_image_holds(tmp_path: Path) -> None:
    out = tmp_path / "sbom.json"
    command = re.search(r"^\t\.venv/bin/(cyclonedx-py .*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert command is not None
    program, *arguments = command[1].replace("var/sbom.cdx.json", str(out)).split()
    subprocess.run([Path(sys.executable).with_name(program), *arguments], cwd=ROOT, check=True, timeout=60)
    document = json.loads(out.read_text())
    assert document["bomFormat"] == "CycloneDX"
    assert document["metadata"]["component"]["name"] == "graft-review"
    listed: dict[str, Any] = {canonicalize_name(each["name"]): each for each in document["components"]}
    locked = pins("runtime")
    assert set(listed) == set(locked)
    for package, (version, hashes) in locked.items():
        assert listed[package]["version"] == str(version) or Version(listed[package]["version"]) == version
        given = {
            each["content"]
            for reference in listed[package]["externalReferences"]
            for each in reference.get("hashes", ())
        }
        assert given == set(hashes)


# ---------------------------------------------------------------------------------------------------- static rules

# Where a security rule is switched off at a line, which says why: each was looked at.
SWITCHED_OFF = {
    "S103": ["graft/cli/hook.py"],  # git runs only executable hooks
    "S105": ["graft/pilot/gate.py"],  # "pass" is an outcome
    "S107": ["graft/simulator/simulator.py"],  # a secret of the simulator
    "S310": ["graft/e2e/metrics.py"],  # the scheme was looked at
    "S311": ["graft/evaluation/comparing.py", "graft/pilot/bootstrap.py"],  # draws cases, guards nothing
    "S506": ["graft/evaluation/cases.py"],  # a safe loader by another name
    # SQL put together from constants of the code.
    "S608": [
        *("graft/store/cards.py", "graft/store/changes.py", "graft/store/purge.py", "graft/store/ratings.py"),
    ],
}
_NOQA = re.compile(r"#\s*noqa:\s*([A-Z0-9, ]+)")


def test_security_rules_are_on_and_switched_off_where_it_is_known() -> None:
    lint = PROJECT["tool"]["ruff"]["lint"]
    assert "S" in lint["select"]
    assert {rule for rule in lint["ignore"] if rule.startswith("S") and rule[1:].isdigit()} == {
        "S101",  # asserts
        "S603",  # a program is started; always as a list, never by a shell (S602 and S605 are on)
        "S607",  # by its name on the PATH
    }
    assert all(not path.startswith(("graft", "actors")) for path in lint["per-file-ignores"])
    found: dict[str, set[str]] = {}
    for path in [*(ROOT / "graft").rglob("*.py"), *(ROOT / "actors").rglob("*.py")]:
        for codes in _NOQA.findall(path.read_text()):
            for code in re.findall(r"S\d{3}", codes):
                found.setdefault(code, set()).add(path.relative_to(ROOT).as_posix())
    assert {code: sorted(files) for code, files in found.items()} == SWITCHED_OFF
