"""`receipt`: has a judge compare an approved record with the laws, and writes what it said.

Nothing is judged before the record and the laws are approved and fresh. A rejecting receipt is written as well,
for review, and never passes `check`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import arguments, judges, judging, persons, receipts
from .blocks import Laws
from .files import DiskTree, replace_file
from .judging import Evaluator, JudgeError, Request
from .modules import Module
from .record import Record
from .report import Report
from .repository import LAWS, Intent, load, receipt_path, selected

SUMMARY = "Have a judge compare an approved record with the laws, and store the judgment."


def prepare(intent: Intent, record_id: str, report: Report) -> tuple[Record, Laws, tuple[Module, ...]] | None:
    """The record, the laws and the modules when everything is approved and fresh; otherwise problems."""
    chosen = selected(intent, record_id, report)
    if not chosen:
        return None
    record = chosen[0]
    report.problems += record.problems
    if not record.approved:
        report.add(
            "draft",
            "the record is not approved; only approved records are judged",
            record.path,
            None,
            record.id,
        )
    report.problems += intent.laws_problems + intent.approval_problems
    if intent.laws is None:
        return None
    if not intent.laws.ids:
        report.add("laws-empty", "declares no law", LAWS)
    resolution = intent.resolution(record)
    report.problems += resolution.problems
    return None if report.exit else (record, intent.laws, resolution.modules)


def _describe(planned: list[Request], model: str, report: Report) -> None:
    """The questions, sizes and estimated cost of a run that is not made."""
    tokens = sum(request.tokens for request in planned)
    price = judges.PRICES.get(judges.route(model))
    report.data["requests"] = [
        {
            "module": request.module,
            "phase": request.phase,
            "questions": dict(request.questions),
            "bytes": request.size,
            "tokens": request.tokens,
        }
        for request in planned
    ]
    report.data["tokens"] = tokens
    report.data["costUsd"] = None if price is None else round(tokens * price / 1_000_000, 6)
    for request in planned:
        where = f" of module {request.module}" if request.module else ""
        report.lines.append(
            f"{request.phase}{where}: {len(request.questions)} questions, "
            f"{request.size} bytes, about {request.tokens} tokens"
        )
        for name, question in request.questions.items():
            text = question["instructions"] if isinstance(question, Mapping) else ""
            report.lines.append(f"  {name}: {text}")
    cost = "is not known for this judge" if price is None else f"about ${tokens * price / 1_000_000:.6f}"
    report.lines.append(
        f"{len(planned)} requests at most, about {tokens} tokens; cost {cost}; nothing was sent"
    )


def _evaluator(model: str, script: str, tree: DiskTree, routes: judges.Routes) -> Evaluator:
    name = judges.route(model)
    if name == judges.SCRIPTED:
        if not script:
            raise JudgeError("judge-unavailable", "a scripted judge needs `--answers FILE`")
        return judges.ScriptedJudge.read(tree, script)
    if name == judges.HUMAN:
        sign = persons.automation(os.environ)
        if sign or not persons.on_terminal():
            why = f"{sign} is set" if sign else "this is no terminal"
            raise JudgeError(
                "judge-unavailable", f"a human judgment is given by a person on a terminal, and {why}"
            )
        return judges.HumanJudge(ask=persons.ask, show=lambda text: print(text, end="", file=sys.stdout))
    return judges.networked(model, name, routes, os.environ)


def run(
    root: Path, record_id: str, model: str, *, answers: str, dry_run: bool, reuse: bool, routes: judges.Routes
) -> Report:
    """Judge one record and write its receipt."""
    report = Report("receipt")
    tree = DiskTree(root)
    intent = load(tree)
    report.problems += intent.folder_problems
    ready = prepare(intent, record_id, report)
    if ready is None:
        return report
    record, laws, modules = ready
    path = receipt_path(record.id)
    try:
        if judges.route(model) == judges.HUMAN:
            model = judges.human_model(model, time.strftime("%Y-%m-%d", time.gmtime()))
        if dry_run:
            _describe(judging.plan(record, laws, modules, model), model, report)
            return report
        old = intent.receipts.get(record.id) if reuse else None
        judge = _evaluator(model, answers, tree, routes)
        fields = judging.produce(record, laws, modules, model, judge, reuse=old)
    except JudgeError as error:
        report.add(error.code, str(error), path, None, record.id)
        return report
    if tree.kind(path) not in ("file", "missing") or tree.kind(receipts.FOLDER) not in ("dir", "missing"):
        report.add("symlink", "is not a plain file; nothing is written through it", path, None, record.id)
        return report
    (root / receipts.FOLDER).mkdir(parents=True, exist_ok=True)
    replace_file(root / path, receipts.encode(fields))
    report.data.update({"receipt": path, "verdict": fields["verdict"], "model": fields["model"]})
    report.lines.append(f"wrote {path}: {fields['verdict']}, judged by {fields['model']}")
    if judges.route(model) == judges.SCRIPTED:
        report.lines.append("this receipt is a fixture: its answers were scripted")
    written = receipts.parse(receipts.encode(fields))
    for code, message in receipts.verify(written, record, laws, modules):
        report.add(code, message, path, None, record.id)
    return report


def main(argv: Sequence[str], routes: judges.Routes | None = None) -> int:
    made = arguments.parser("receipt", SUMMARY, record=False, repo=False)
    made.add_argument(
        "words", nargs="+", metavar="[REPO] RECORD-ID MODEL", help="MODEL: human/NAME, jev-…, claude-…, …"
    )
    made.add_argument(
        "--answers", metavar="FILE", default="", help="answers of a scripted judge, below the repository"
    )
    made.add_argument(
        "--dry-run", action="store_true", help="print questions, sizes and estimated cost, send nothing"
    )
    made.add_argument("--reuse", action="store_true", help="keep the judgment of modules that did not change")
    options = arguments.parse(made, argv)
    if not 2 <= len(options.words) <= 3:
        made.error("expected [REPO] RECORD-ID MODEL")
    root = Path(options.words[0] if len(options.words) == 3 else ".")
    record_id, model = options.words[-2:]
    report = run(
        root,
        record_id,
        model,
        answers=options.answers,
        dry_run=options.dry_run,
        reuse=options.reuse,
        routes=routes or {},
    )
    return arguments.finish(report, options)
