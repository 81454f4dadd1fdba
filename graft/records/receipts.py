"""Receipts: their closed shape, their seal, and what the current files make of them.

`parse` accepts exactly the fields of schema 1 or 2; `verify` computes questions, verdict, hashes and integrity
again. The checksum finds accidental edits. It is no signature and says nothing about where a judgment came from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from . import canonical, questions
from .blocks import Laws
from .modules import Module, state
from .record import Record

FOLDER = ".intent/receipts"
COMMON = ("schema", "recordId", "recordSha256", "lawsSha256", "policy", "model", "verdict", "integrity")
SUM_TOLERANCE = 0.01

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_MODEL = re.compile(r"[^\x00-\x1f\x7f]{1,200}\Z")
_DATED = re.compile(r"-[0-9]{8}\Z")


@dataclass(frozen=True)
class Choice:
    """A coverage answer."""

    choice: str
    confidence: float
    probabilities: Mapping[str, float]

    def value(self) -> dict[str, object]:
        return {
            "type": "choice",
            "choice": self.choice,
            "confidence": self.confidence,
            "probabilities": dict(self.probabilities),
        }


@dataclass(frozen=True)
class Judgment:
    """The answers about one module, or about the whole record (schema 1). `value` is the JSON they came from."""

    coverage: Mapping[str, Choice]
    fidelity: Mapping[str, float]
    value: Mapping[str, object]

    def answers(self) -> dict[str, object]:
        return {
            "coverage": {clause: answer.value() for clause, answer in self.coverage.items()},
            "fidelity": {law: {"type": "noul", "noul": noul} for law, noul in self.fidelity.items()},
        }

    def shortfalls(self, clauses: Sequence[str], laws: Sequence[str]) -> list[str]:
        flat = {
            clause: (answer.choice, answer.confidence, answer.probabilities[answer.choice])
            for clause, answer in self.coverage.items()
        }
        return questions.shortfalls(clauses, laws, flat, self.fidelity)


@dataclass(frozen=True)
class Receipt:
    """A well-formed receipt. `judgments` has the single key `""` in schema 1, module names in schema 2."""

    schema: int
    record_id: str
    record_sha256: str
    laws_sha256: str
    policy: Mapping[str, object]
    model: str
    verdict: str
    integrity: str
    judgments: Mapping[str, Judgment]
    value: Mapping[str, object]

    @property
    def choices(self) -> dict[str, str]:
        """Which law each clause was mapped to, `none` included."""
        return {
            clause: answer.choice
            for item in self.judgments.values()
            for clause, answer in item.coverage.items()
        }


class ShapeError(Exception):
    """A receipt or an answer has the wrong shape. The message starts with the place, like `$.answers.coverage.R1`."""


def _object(value: object, place: str, keys: Sequence[str] | None = None) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ShapeError(f"{place}: not an object")
    if keys is not None:
        missing = [key for key in keys if key not in value]
        extra = len(value) - (len(keys) - len(missing))
        if missing:
            raise ShapeError(f"{place}: `{missing[0]}` is missing")
        if extra:
            raise ShapeError(f"{place}: {extra} unknown field{'s' * (extra != 1)}")
    return value


def _text(value: object, place: str, pattern: re.Pattern[str] | None = None) -> str:
    if not isinstance(value, str) or (pattern and not pattern.match(value)):
        raise ShapeError(f"{place}: not a text of the expected form")
    return value


def _probability(value: object, place: str) -> float:
    # `True` is an int in Python and never a probability.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ShapeError(f"{place}: not a number from 0 to 1")
    return float(value)


def choice(value: object, place: str) -> Choice:
    """A coverage answer with exactly its four fields. Raises ShapeError."""
    fields = _object(value, place, ("type", "choice", "confidence", "probabilities"))
    if fields["type"] != "choice":
        raise ShapeError(f"{place}.type: not `choice`")
    raw = _object(fields["probabilities"], place + ".probabilities")
    probabilities = {key: _probability(item, place + ".probabilities") for key, item in raw.items()}
    chosen = _text(fields["choice"], place + ".choice")
    if chosen not in probabilities:
        raise ShapeError(f"{place}.choice: not one of the options")
    return Choice(chosen, _probability(fields["confidence"], place + ".confidence"), probabilities)


def noul(value: object, place: str) -> float:
    """A fidelity answer with exactly its two fields. Raises ShapeError."""
    fields = _object(value, place, ("type", "noul"))
    if fields["type"] != "noul":
        raise ShapeError(f"{place}.type: not `noul`")
    return _probability(fields["noul"], place + ".noul")


def _judgment(fields: Mapping[str, object], place: str) -> Judgment:
    asked = _object(fields["questions"], place + ".questions", ("coverage", "fidelity"))
    for phase in ("coverage", "fidelity"):
        _object(asked[phase], f"{place}.questions.{phase}")
    answers = _object(fields["answers"], place + ".answers", ("coverage", "fidelity"))
    coverage = _object(answers["coverage"], place + ".answers.coverage")
    fidelity = _object(answers["fidelity"], place + ".answers.fidelity")
    return Judgment(
        {key: choice(item, f"{place}.answers.coverage.{key}") for key, item in coverage.items()},
        {key: noul(item, f"{place}.answers.fidelity.{key}") for key, item in fidelity.items()},
        fields,
    )


def _module_judgment(value: object, place: str) -> Judgment:
    fields = _object(value, place, ("clauses", "laws", "stateSha256", "questions", "answers", "verdict"))
    for key in ("clauses", "laws"):
        items = fields[key]
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise ShapeError(f"{place}.{key}: not a list of texts")
    _text(fields["stateSha256"], place + ".stateSha256", _SHA256)
    _verdict(fields["verdict"], place + ".verdict")
    return _judgment(fields, place)


def _verdict(value: object, place: str) -> str:
    if value not in ("pass", "reject"):
        raise ShapeError(f"{place}: neither `pass` nor `reject`")
    return _text(value, place)


def parse(data: bytes) -> Receipt:
    """Read a receipt, canonical or pretty-printed. Raises ShapeError with the place, never a value."""
    try:
        value = canonical.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise ShapeError("$: not UTF-8") from None
    except canonical.JsonError as error:
        raise ShapeError(f"$: {error}") from None
    fields = _object(value, "$")
    schema = fields.get("schema")
    if isinstance(schema, bool) or schema not in (1, 2):
        raise ShapeError("$.schema: neither 1 nor 2")
    body = ("questions", "answers") if schema == 1 else ("modules",)
    _object(fields, "$", COMMON + body)
    if schema == 1:
        judgments = {"": _judgment(fields, "$")}
    else:
        raw = _object(fields["modules"], "$.modules")
        judgments = {name: _module_judgment(item, f"$.modules.{name}") for name, item in raw.items()}
    policy = _object(fields["policy"], "$.policy")
    _text(policy.get("version"), "$.policy.version")
    return Receipt(
        schema=int(float(str(schema))),
        record_id=_text(fields["recordId"], "$.recordId"),
        record_sha256=_text(fields["recordSha256"], "$.recordSha256", _SHA256),
        laws_sha256=_text(fields["lawsSha256"], "$.lawsSha256", _SHA256),
        policy=policy,
        model=_text(fields["model"], "$.model", _MODEL),
        verdict=_verdict(fields["verdict"], "$.verdict"),
        integrity=_text(fields["integrity"], "$.integrity", _SHA256),
        judgments=judgments,
        value=fields,
    )


def integrity(fields: Mapping[str, object]) -> str:
    """SHA-256 of the canonical JSON of every field except `integrity`."""
    return canonical.sha256(
        canonical.dumps({key: item for key, item in fields.items() if key != "integrity"})
    )


def encode(fields: Mapping[str, object]) -> bytes:
    """The stored form of a receipt without `integrity`: sealed, canonical, one newline."""
    return (canonical.dumps({**fields, "integrity": integrity(fields)}) + "\n").encode()


def is_dated(model: str) -> bool:
    """Whether a model id names one snapshot: it ends in `-YYYYMMDD`, or is a recorded human judgment."""
    return _DATED.search(model) is not None or model.startswith("human/")


def states(record: Record, laws: Laws, modules: Sequence[Module]) -> dict[str, dict[str, str]]:
    """What a judge is shown, by module name; `""` is the whole of a record without modules."""
    if not modules:
        return {"": {"record": record.text, "laws": laws.scan.text}}
    return {item.name: {"record": state(record, item), "laws": laws.state(item.laws)} for item in modules}


def verify(receipt: Receipt, record: Record, laws: Laws, modules: Sequence[Module]) -> list[tuple[str, str]]:
    """(code, message) for everything that keeps this receipt from being a passing one for these files."""
    version = receipt.policy["version"]
    if version not in questions.VERSIONS:
        return [("receipt-policy", "made under another policy version")]
    found: list[tuple[str, str]] = []
    if not canonical.same(receipt.policy, questions.policy(str(version))):
        found.append(("receipt-disagrees", "the thresholds are not those of its policy"))
    if receipt.integrity != integrity(receipt.value):
        found.append(("receipt-edited", "the integrity checksum does not fit the content"))
    if receipt.record_id != record.id:
        found.append(("receipt-disagrees", "it was made for another record"))
    stale = False
    if receipt.record_sha256 != record.sha256:
        found.append(("receipt-stale-record", "stale record: the record changed after it was judged"))
        stale = True
    if receipt.laws_sha256 != canonical.sha256(laws.scan.text):
        found.append(("receipt-stale-laws", "stale laws: LAWS.bend changed after it was judged"))
        stale = True
    if (receipt.schema == 2) != record.has_modules:
        says = "declares modules" if record.has_modules else "declares no modules"
        found.append(("receipt-disagrees", f"schema {receipt.schema}, but the record {says}"))
    elif not stale:
        found += _verify_judgments(receipt, record, laws, modules)
    if receipt.verdict == "reject":
        found.append(("receipt-rejected", "the judgment is `reject`"))
    return found


def _verify_judgments(
    receipt: Receipt, record: Record, laws: Laws, modules: Sequence[Module]
) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    whole = (Module("", record.clause_ids, laws.ids),)
    expected = {module.name: module for module in (modules if record.has_modules else whole)}
    if set(expected) != set(receipt.judgments):
        return [("receipt-disagrees", "its modules are not those of the record")]
    shown = states(record, laws, modules if record.has_modules else ())
    passed = True
    for name, module in expected.items():
        judgment = receipt.judgments[name]
        where = f"module {name}: " if name else ""
        problems, reasons = _verify_judgment(judgment, module)
        found += [(code, where + message) for code, message in problems]
        passed = passed and not reasons and not problems
        if name:
            found += _verify_module(judgment, module, canonical.sha256(canonical.dumps(shown[name])), reasons)
        if receipt.verdict == "reject":
            found += [("receipt-rejected", where + reason) for reason in reasons]
    if not found and (receipt.verdict == "pass") != passed:
        found.append(("receipt-disagrees", "the verdict is not what its answers give"))
    return found


def _verify_judgment(judgment: Judgment, module: Module) -> tuple[list[tuple[str, str]], list[str]]:
    """Problems of one set of answers, and the reasons why they do not pass."""
    if set(judgment.coverage) != set(module.clauses) or set(judgment.fidelity) != set(module.laws):
        return [("receipt-malformed", "its answers are not those of the clauses and laws that there are")], []
    options = {*module.laws, questions.NONE}
    found: list[tuple[str, str]] = []
    for clause in module.clauses:
        found += [
            (code, f"{clause}: {text}") for code, text in choice_problems(judgment.coverage[clause], options)
        ]
    if found:
        return found, []
    choices = {clause: judgment.coverage[clause].choice for clause in module.clauses}
    if not canonical.same(judgment.value["questions"], questions.both(module.clauses, module.laws, choices)):
        found.append(("receipt-disagrees", "its questions are not those of the policy"))
    return found, judgment.shortfalls(module.clauses, module.laws)


def choice_problems(answer: Choice, options: set[str]) -> list[tuple[str, str]]:
    """What keeps a well-formed coverage answer from being one for these options."""
    if set(answer.probabilities) != options:
        return [("receipt-malformed", "the probabilities do not name every option")]
    total = 0.0
    for probability in answer.probabilities.values():  # not sum(): Python 3.12 adds floats in another way
        total += probability
    if abs(total - 1) > SUM_TOLERANCE:
        return [("receipt-disagrees", f"the probabilities do not add up to 1 within {SUM_TOLERANCE}")]
    return []


def _verify_module(
    judgment: Judgment, module: Module, state_sha256: str, reasons: Sequence[str]
) -> list[tuple[str, str]]:
    found = []
    value = judgment.value
    if value["clauses"] != list(module.clauses) or value["laws"] != list(module.laws):
        found.append(
            ("receipt-disagrees", f"module {module.name}: its clauses or laws are not those of the record")
        )
    if value["stateSha256"] != state_sha256:
        found.append(("receipt-disagrees", f"module {module.name}: it was judged on another text"))
    if (value["verdict"] == "pass") == bool(reasons):
        found.append(("receipt-disagrees", f"module {module.name}: the verdict is not what its answers give"))
    return found
