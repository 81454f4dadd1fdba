"""What this program writes and the repository keeps: baselines, JSON Schemas, the tables of docs/evaluation.md.

`python -m graft.evaluation` writes them again; tests say when that is due.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path

from graft.evaluation import cases, runs, thresholds
from graft.evaluation.recording import Replay
from graft.evaluation.recording import save as save_recording
from graft.evaluation.recording import schema as recording_schema
from graft.evaluation.running import run
from graft.evaluation.scripted import Scripted
from graft.evaluation.tables import case_table, definition_table, score_table

__all__ = ["files", "renew"]

DOCUMENT = Path("docs/evaluation.md")
SCHEMAS = Path("eval/schema")
CASES = Path("eval/cases")
RECORDED = Path("eval/recorded")
BASELINES = Path("eval/baseline")

_MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_TESTED = (
    ("good", "honest"), ("lazy", "honest"), ("optimistic", "honest"), ("gullible", "honest"), ("broken", "honest"),
)  # fmt: skip
_UNCHECKED = (
    ("good", "suspicious"),
    ("lazy", "trusting"),
    ("optimistic", "trusting"),
    ("gullible", "trusting"),
)


def renew(root: Path) -> list[Path]:
    """Make each baseline anew by replaying its recording. A recording of a scripted model is made anew first, so that
    it fits the prompts of today; one of a real model needs a key, and is left as it is."""
    all_cases = cases.load_all(root / CASES)
    written = []
    for path in sorted((root / RECORDED).glob("*.jsonl")):
        replay = Replay.load(path)
        kind, _, pair = replay.name.partition(":")
        if kind == "scripted":
            made = asyncio.run(run(all_cases, Scripted(*pair.split("+"))))
            save_recording(path, made.header, made.recorded)
            replay = Replay.load(path)
        written += [path, root / BASELINES / f"{path.stem}.json"]
        runs.save(written[-1], asyncio.run(run(all_cases, replay)).run)
    return written


def files(root: Path) -> Mapping[Path, str]:
    """Each generated file below `root` with the text that it should have."""
    schemas = {
        "case": cases.schema(),
        "recording": recording_schema(),
        "run": runs.schema(),
        "thresholds": thresholds.schema(),
    }
    made = {
        root / SCHEMAS / f"{name}.schema.json": json.dumps(
            _titled(schema, name), indent=2, ensure_ascii=False
        )
        + "\n"
        for name, schema in schemas.items()
    }
    path = root / DOCUMENT
    made[path] = _filled(path.read_text(encoding="utf-8"), _tables(root))
    return made


def _titled(schema: dict[str, object], name: str) -> dict[str, object]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Graft evaluation: {name}",
        **schema,
    }


def _tables(root: Path) -> dict[str, str]:
    all_cases = cases.load_all(root / CASES)

    def scripted(pairs: tuple[tuple[str, str], ...], title: str) -> str:
        made = {pair: asyncio.run(run(all_cases, Scripted(*pair))).run.totals for pair in pairs}
        return score_table({title.format(*pair): totals for pair, totals in made.items()})

    recorded = {path.stem: runs.load(path).totals for path in sorted((root / BASELINES).glob("*.json"))}
    return {
        "cases": case_table(all_cases),
        "metrics": definition_table(),
        "scripted": scripted(_TESTED, "{0}"),
        "verifiers": scripted(_UNCHECKED, "{0}, {1}"),
        "recorded": score_table(recorded),
    }


def _filled(text: str, tables: Mapping[str, str]) -> str:
    """The document with each table between its two markers."""

    def fill(match: re.Match[str]) -> str:
        return f"{match[1]}\n{tables[match[2]]}\n\n{match[3]}"

    return _MARKED.sub(fill, text)
