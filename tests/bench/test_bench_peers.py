"""What is pure of the receivers' bench, and that what it installs is locked."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench import receivers, tables
from bench.load import CONNECTIONS, Delivery
from bench.peers import deliveries, figures, node

SHA = "a" * 40


def pull(action: str = "opened", **more: object) -> dict[str, object]:
    return {
        "action": action,
        "number": 2,
        "pull_request": {
            "number": 2,
            "body": "short",
            "head": {"sha": SHA},
            "base": {"ref": "main"},
            "updated_at": "2026-12-01T12:00:00Z",
        },
        "repository": {"id": 7, "full_name": "octo/demo"},
        **more,
    }


RERUN = {
    "action": "rerequested",
    "check_run": {"id": 3, "head_sha": SHA, "name": "graft/intent", "app": {"id": 999}},
    "repository": {"id": 7, "full_name": "octo/demo"},
}


@pytest.fixture
def index(tmp_path: Path) -> Path:
    path = tmp_path / "index.json"
    path.write_text(
        json.dumps(
            [
                {"name": "pull_request", "examples": [pull(), pull("locked"), pull(installation={"id": 44})]},
                {"name": "check_run", "examples": [RERUN]},
                {"name": "star", "examples": [{"action": "created"}]},
            ]
        )
    )
    return path


def test_examples_are_those_graft_keeps_with_an_installation(index: Path) -> None:
    found = deliveries.examples(index)
    bodies = [json.loads(delivery.body) for delivery in found]
    assert [delivery.event for delivery in found] == ["pull_request", "pull_request", "check_run"]
    assert [body["installation"]["id"] for body in bodies] == [7, 44, 7]
    assert bodies[2]["check_run"]["app"]["id"] == receivers.APP_ID


def test_the_mix_depends_on_the_seed_only_and_stays_within_its_bounds(index: Path) -> None:
    found = deliveries.examples(index)
    mixes = [deliveries.choose(found, seed=seed) for seed in (1, 1, 2)]
    assert mixes[0] == mixes[1] != mixes[2]
    assert len(mixes[0]) == deliveries.COUNT
    assert sum(delivery.event == "pull_request" for delivery in mixes[0]) == deliveries.COUNT * 2 // 3
    sizes = [len(delivery.body) for delivery in mixes[0]]
    assert 28_000 * 0.9 < max(sizes) <= deliveries.LARGEST
    assert all(deliveries.kept(delivery) for delivery in mixes[0])


def test_a_described_pull_request_is_about_as_large_as_asked(index: Path) -> None:
    whole = deliveries.described(deliveries.examples(index)[0], 30_000)
    assert 29_000 < len(whole.body) <= 30_000


def test_a_mix_is_described_by_numbers() -> None:
    posted = [Delivery(event="push", body=b"x" * 2000), Delivery(event="pull_request", body=b"x" * 4000)]
    assert deliveries.describe(posted).endswith("1 of them about pull requests, 2.0 to 4.0 KB, median 3.0")


def run(rate: float, **more: float) -> figures.Run:
    return figures.Run(**{"rate": rate, "p50": 1, "p99": 1, "receiver": 1, "store": 1, "posting": 1, **more})


def runs(**changed: list[figures.Run]) -> figures.Runs:
    """One delivery a second everywhere, in three rounds, but where it is said otherwise."""
    return {
        (name, connections): changed.get(name.replace("-", "_"), [run(1)] * 3)
        for name in figures.NAMES
        for connections in CONNECTIONS
    }


def row(found: figures.Runs, graft: str, peer: str, connections: int) -> dict[str, str]:
    for cells in figures.ratios(found):
        cell = dict(zip(figures.RATIOS, cells, strict=True))
        if cell["Graft"] in figures.NAMES[graft] and (cell["against"], cell["Connections"]) == (
            figures.NAMES[peer],
            str(connections),
        ):
            return cell
    raise LookupError(graft, peer)


def test_ratios_are_taken_within_a_round() -> None:
    # The machine was ten times slower in the second round, for both.
    found = runs(durable=[run(40), run(4), run(50)], pgboss=[run(10), run(1), run(10)])
    assert row(found, "durable", "pgboss", 1)["Rate"] == "4.00×"


def test_processor_time_is_that_of_receiver_and_store() -> None:
    found = runs(durable=[run(1, receiver=0.5, store=0.5)] * 3, probot=[run(1, store=0)] * 3)
    assert row(found, "durable", "pgboss", 16)["CPU in all"] == "0.50×"
    assert row(found, "default", "probot", 16)["CPU in all"] == "2.00×"


@pytest.mark.parametrize(
    ("rate", "p99", "verdict"),
    [
        (4, 0.2, "met"),
        (3.99, 0.2, "missed: rate"),
        (4, 0.21, "missed: p99"),
        (3.99, 0.21, "missed: rate and p99"),
    ],
)
def test_an_aim_is_met_or_says_what_was_missed(rate: float, p99: float, verdict: str) -> None:
    assert row(runs(durable=[run(rate, p99=p99)] * 3), "durable", "pgboss", 64)["Verdict"] == verdict


def test_one_connection_has_no_aim() -> None:
    assert row(runs(), "durable", "pgboss", 1)["Verdict"] == ""


def test_figures_are_medians_and_probot_has_no_store() -> None:
    found = runs(durable=[run(9, p50=0.002), run(7, p50=0.5), run(1000, p50=0.001)], probot=[run(1, store=0)])
    rows = figures.receivers(found)
    assert rows[0] == [figures.NAMES["durable"], "1", "9", "2.00", "1000.00", "1.00", "1.00", "1.00"]
    assert {cells[6] for cells in rows if cells[0] == figures.NAMES["probot"]} == {"none"}
    assert {len(cells) for cells in rows} == {len(figures.FIGURES)}


def test_the_documents_keep_a_place_for_both_tables() -> None:
    text = (tables.ROOT / "docs" / "performance.md").read_text()
    assert all(tables.place(name).search(text) for name in ("peers", "peers-figures"))


def test_every_locked_package_has_an_integrity_hash_and_comes_from_npm() -> None:
    lock = json.loads((node.HERE / "package-lock.json").read_bytes())
    packages = {path: package for path, package in lock["packages"].items() if path}
    assert len(packages) > 100
    for path, package in packages.items():
        kind, _, value = package["integrity"].partition("-")
        assert (kind, len(base64.b64decode(value))) == ("sha512", 64), path
        assert package.get("resolved", "https://registry.npmjs.org/").startswith(
            "https://registry.npmjs.org/"
        ), path


def test_what_is_asked_for_is_what_is_locked() -> None:
    asked = json.loads((node.HERE / "package.json").read_bytes())
    locked = json.loads((node.HERE / "package-lock.json").read_bytes())["packages"]
    for kind in ("dependencies", "devDependencies", "optionalDependencies"):
        assert locked[""][kind] == asked[kind]
        for name, version in asked[kind].items():
            assert locked[f"node_modules/{name}"]["version"] == version


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
@pytest.mark.parametrize("script", sorted(path.name for path in node.HERE.glob("*.js")))
def test_the_servers_are_javascript(script: str) -> None:
    done = subprocess.run(["node", "--check", node.HERE / script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_server_that_does_not_start_says_what_it_printed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('no port here'); raise SystemExit(3)"]
    with (
        pytest.raises(RuntimeError, match="no port here"),
        receivers.started(command, {}, r"^(\d+)$", tmp_path / "log"),
    ):
        pass


def test_a_started_server_ends_with_its_block(tmp_path: Path) -> None:
    command = [sys.executable, "-uc", "import time; print(1234); time.sleep(60)"]
    with receivers.started(command, {}, r"^(\d+)$", tmp_path / "log") as (port, pid):
        assert port == 1234
        assert receivers.processor_seconds(pid) > 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_no_process_takes_no_time() -> None:
    assert receivers.processor_seconds(None) == 0
