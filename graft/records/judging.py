"""Produces a receipt: asks a judge the questions, keeps only typed answers, and computes the verdict in code.

A judge is any object with `evaluate(Request)`; what it returns is untrusted. Extra fields, extra answers, a verdict
or a policy in a response are dropped, a wrong type or another echo of the model id ends the run. Every request is
measured against the budget before the first one is sent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from . import canonical, questions, receipts
from .blocks import Laws
from .modules import Module
from .receipts import Choice, Receipt, ShapeError
from .record import Record

MAX_QUESTIONS = 128
"""Most questions of one request; a phase is split when it has more."""

MAX_BYTES = 96_000
MAX_TOKENS = 30_000
"""Jev refuses requests above about 32,000 input tokens; a token is estimated as three characters."""

_CHOICE_FIELDS = ("type", "choice", "confidence", "probabilities")
_NOUL_FIELDS = ("type", "noul")
_DATE = re.compile(r"-[0-9]{8}\Z")


class JudgeError(Exception):
    """The run cannot be finished. `code` is a key of `report.REPAIRS`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Request:
    """One call of a judge. `module` and `phase` are for people; only the other three are sent."""

    model: str
    state: Mapping[str, str]
    questions: Mapping[str, object]
    module: str
    phase: str

    @property
    def text(self) -> str:
        return canonical.dumps({"model": self.model, "state": self.state, "questions": self.questions})

    @property
    def size(self) -> int:
        """Bytes of the request as JSON."""
        return len(self.text.encode("utf-8", "replace"))

    @property
    def tokens(self) -> int:
        """Estimated input tokens."""
        return math.ceil(len(self.text) / 3)


class Evaluator(Protocol):
    """A judge."""

    def evaluate(self, request: Request) -> object:
        """A mapping with `model` (the id it echoes) and `answers` by question id. Raises JudgeError."""
        ...


@dataclass(frozen=True)
class _Weight:
    """Bytes and characters of a piece of a request."""

    size: int
    characters: int

    @classmethod
    def of(cls, text: str) -> _Weight:
        return cls(len(text.encode("utf-8", "replace")), len(text))

    def __add__(self, other: _Weight) -> _Weight:
        return _Weight(self.size + other.size, self.characters + other.characters)

    @property
    def fits(self) -> bool:
        return self.size <= MAX_BYTES and math.ceil(self.characters / 3) <= MAX_TOKENS


def split(
    model: str, state: Mapping[str, str], asked: Mapping[str, object], module: str, phase: str
) -> Iterator[Request]:
    """The requests of one phase, each within the budget. Raises JudgeError when a single question is too large."""
    empty = _Weight.of(Request(model, state, {}, module, phase).text)
    batch: dict[str, object] = {}
    weight = empty
    for name, question in asked.items():
        piece = _Weight.of(canonical.string(name) + ":" + canonical.dumps(question) + ",")
        if not (empty + piece).fits:
            where = f"module {module}" if module else "the record with all laws"
            needed = (
                f"about {math.ceil((empty + piece).characters / 3)} tokens and {(empty + piece).size} bytes"
            )
            message = f"{where} needs {needed} a request; the bounds are {MAX_TOKENS} and {MAX_BYTES}"
            raise JudgeError("judge-budget", message)
        if batch and not ((weight + piece).fits and len(batch) < MAX_QUESTIONS):
            yield Request(model, state, batch, module, phase)
            batch, weight = {}, empty
        batch[name] = question
        weight = weight + piece
    if batch:
        yield Request(model, state, batch, module, phase)


def units(record: Record, laws: Laws, modules: Sequence[Module]) -> list[Module]:
    """What is judged one by one: the modules, or everything at once under the empty name."""
    return list(modules) if record.has_modules else [Module("", record.clause_ids, laws.ids)]


def plan(record: Record, laws: Laws, modules: Sequence[Module], model: str) -> list[Request]:
    """All requests a run would make. Fidelity questions are planned at their longest: every clause chose the law.

    Raises JudgeError when one would not fit.
    """
    shown = receipts.states(record, laws, modules)
    planned: list[Request] = []
    for unit in units(record, laws, modules):
        state = shown[unit.name]
        planned += split(model, state, questions.coverage(unit.clauses, unit.laws), unit.name, "coverage")
        longest: dict[str, object] = {}
        for law in unit.laws:
            longest.update(questions.fidelity([law], dict.fromkeys(unit.clauses, law)))
        planned += split(model, state, longest, unit.name, "fidelity")
    return planned


class _Session:
    """Sends requests and holds the judge to one model id."""

    def __init__(self, evaluator: Evaluator, requested: str) -> None:
        self.evaluator = evaluator
        self.requested = requested
        self.model = ""

    def ask(
        self, state: Mapping[str, str], asked: Mapping[str, object], unit: str, phase: str
    ) -> dict[str, object]:
        answers: dict[str, object] = {}
        for request in split(self.requested, state, asked, unit, phase):
            response = self.evaluator.evaluate(request)
            if not isinstance(response, Mapping) or not isinstance(response.get("answers"), Mapping):
                raise JudgeError("judge-answer", "the response has no answers")
            self._hold(response.get("model"))
            given = response["answers"]
            for name in request.questions:
                if name not in given:
                    raise JudgeError("judge-answer", f"there is no answer to {phase} question {name}")
                answers[name] = given[name]
        return answers

    def _hold(self, echoed: object) -> None:
        if not self.model:
            resolves = isinstance(echoed, str) and matches(self.requested, echoed)
            self.model = echoed if isinstance(echoed, str) and resolves else ""
        if not self.model or echoed != self.model:
            raise JudgeError(
                "judge-answer", "the judge answered as another model than the one that was asked"
            )


def matches(requested: str, echoed: str) -> bool:
    """Whether an echo is the requested id or a dated snapshot of it."""
    dated = _DATE.search(echoed)
    return echoed == requested or (dated is not None and echoed[: dated.start()] == requested)


def _picked(answer: object, fields: Sequence[str]) -> dict[str, object]:
    """Only the named fields of an answer; whatever else a judge says is not stored."""
    if not isinstance(answer, Mapping):
        return {}
    return {name: answer[name] for name in fields if name in answer}


def _choices(answers: Mapping[str, object], unit: Module) -> dict[str, Choice]:
    found = {}
    options = {*unit.laws, questions.NONE}
    for clause in unit.clauses:
        found[clause] = receipts.choice(_picked(answers[clause], _CHOICE_FIELDS), f"the answer to {clause}")
        for _, message in receipts.choice_problems(found[clause], options):
            raise JudgeError("judge-answer", f"the answer to {clause}: {message}")
    return found


def _judge(session: _Session, state: Mapping[str, str], unit: Module) -> dict[str, object]:
    """Both phases for one unit: `questions`, `answers` and `verdict` of a receipt."""
    try:
        asked = questions.coverage(unit.clauses, unit.laws)
        coverage = _choices(session.ask(state, asked, unit.name, "coverage"), unit)
        chosen = {clause: answer.choice for clause, answer in coverage.items()}
        replies = session.ask(state, questions.fidelity(unit.laws, chosen), unit.name, "fidelity")
        fidelity = {
            law: receipts.noul(_picked(replies[law], _NOUL_FIELDS), f"the answer to law {law}")
            for law in unit.laws
        }
    except ShapeError as error:
        raise JudgeError("judge-answer", str(error)) from None
    judgment = receipts.Judgment(coverage, fidelity, {})
    return {
        "questions": questions.both(unit.clauses, unit.laws, chosen),
        "answers": judgment.answers(),
        "verdict": "reject" if judgment.shortfalls(unit.clauses, unit.laws) else "pass",
    }


def produce(
    record: Record,
    laws: Laws,
    modules: Sequence[Module],
    model: str,
    evaluator: Evaluator,
    *,
    reuse: Receipt | None = None,
) -> dict[str, object]:
    """The fields of a receipt, without `integrity`, for an approved record. Raises JudgeError.

    With `reuse`, a module whose state and questions are the same keeps its judgment when the same dated snapshot
    answers now; the policy version says so.
    """
    plan(record, laws, modules, model)
    shown = receipts.states(record, laws, modules)
    session = _Session(evaluator, model)
    kept = _reusable(reuse, record, laws, modules, model) if reuse else {}
    results: dict[str, dict[str, object]] = {}
    todo = [unit for unit in units(record, laws, modules) if unit.name not in kept]
    for unit in todo:
        results[unit.name] = _judge(session, shown[unit.name], unit)
    if kept and reuse and session.model not in ("", reuse.model):
        for unit in units(record, laws, modules):
            if unit.name in kept:
                results[unit.name] = _judge(session, shown[unit.name], unit)
        kept = {}
    results.update(kept)
    fields: dict[str, object] = {
        "recordId": record.id,
        "recordSha256": record.sha256,
        "lawsSha256": canonical.sha256(laws.scan.text),
        "policy": questions.policy(questions.REUSE_VERSION if kept else questions.VERSION),
        "model": session.model or (reuse.model if reuse else model),
        "verdict": "pass" if all(item["verdict"] == "pass" for item in results.values()) else "reject",
    }
    if not record.has_modules:
        return {
            **fields,
            "schema": 1,
            "questions": results[""]["questions"],
            "answers": results[""]["answers"],
        }
    entries = {}
    for unit in units(record, laws, modules):
        state_sha256 = canonical.sha256(canonical.dumps(shown[unit.name]))
        place = {"clauses": list(unit.clauses), "laws": list(unit.laws), "stateSha256": state_sha256}
        entries[unit.name] = {**place, **results[unit.name]}
    return {**fields, "schema": 2, "modules": entries}


def _reusable(
    old: Receipt, record: Record, laws: Laws, modules: Sequence[Module], model: str
) -> dict[str, dict[str, object]]:
    """Judgments of unchanged modules, from a sealed receipt of our policy and one dated snapshot."""
    ours = canonical.same(old.policy, questions.policy(str(old.policy["version"])))
    sealed = old.integrity == receipts.integrity(old.value)
    if not (ours and old.policy["version"] in questions.VERSIONS and sealed and receipts.is_dated(old.model)):
        return {}
    if not record.has_modules or not (matches(model, old.model)):
        return {}
    shown = receipts.states(record, laws, modules)
    kept: dict[str, dict[str, object]] = {}
    for unit in modules:
        before = old.judgments.get(unit.name)
        if before is None:
            continue
        value = before.value
        same_state = value.get("stateSha256") == canonical.sha256(canonical.dumps(shown[unit.name]))
        complete = set(before.coverage) == set(unit.clauses) and set(before.fidelity) == set(unit.laws)
        if not same_state or not complete:
            continue
        chosen = {clause: before.coverage[clause].choice for clause in unit.clauses}
        asked = questions.both(unit.clauses, unit.laws, chosen)
        options = {*unit.laws, questions.NONE}
        typed = not any(receipts.choice_problems(answer, options) for answer in before.coverage.values())
        if typed and canonical.same(value.get("questions"), asked):
            verdict = "reject" if before.shortfalls(unit.clauses, unit.laws) else "pass"
            kept[unit.name] = {"questions": asked, "answers": before.answers(), "verdict": verdict}
    return kept
