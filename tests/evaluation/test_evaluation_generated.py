"""Schemas and tables that a program writes are those that it would write now."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

from graft.evaluation import METRICS
from graft.evaluation.generated import DOCUMENT, files


def test_generated_files_are_up_to_date(root: Path) -> None:
    stale = [
        str(path.relative_to(root)) for path, text in files(root).items() if path.read_text("utf-8") != text
    ]
    assert stale == [], "run python -m graft.evaluation"


def test_runs_and_recordings_fit_their_schemas(root: Path) -> None:
    schemas = {
        name: json.loads((root / f"eval/schema/{name}.schema.json").read_text())
        for name in ("run", "recording")
    }
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    for path in (root / "eval/baseline").glob("*.json"):
        run = json.loads(path.read_text())
        jsonschema.validate(run | {"cases": run["cases"][:8]}, schemas["run"])
    for path in (root / "eval/recorded").glob("*.jsonl"):
        for line in path.read_text().splitlines()[:8]:
            jsonschema.validate(json.loads(line), schemas["recording"])


def test_every_metric_is_defined_in_the_document(root: Path) -> None:
    text = (root / DOCUMENT).read_text("utf-8")
    assert [metric.name for metric in METRICS if f"`{metric.name}`" not in text] == []


def test_the_package_loads_without_network_libraries(root: Path) -> None:
    import subprocess
    import sys

    code = (
        "import graft.evaluation, sys;"
        "heavy = {'aiohttp', 'anthropic', 'asyncpg', 'nats'} & set(sys.modules);"
        "sys.exit(f'loaded {sorted(heavy)}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={}, cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
