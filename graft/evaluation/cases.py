"""The case set: small pull requests written for it, each with the truth about it.

A case is a directory: `case.yaml` holds the texts of the pull request and the truth, `change.diff` what git wrote
for the change. Cases are read strictly, because a truth that is wrong or half written makes every number wrong;
`problems` says what a schema cannot.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import yaml
from msgspec import Meta

from graft.changes import Commit, Person, Snapshot
from graft.diffs import parse_diff
from graft.errors import PermanentError
from graft.evaluation.matching import first_match, matches
from graft.globs import GlobError, compile_glob
from graft.intent import CardInputs, LinkedIssue, card_without_model
from graft.risk import Risk

__all__ = [
    "Attack",
    "Case",
    "CaseError",
    "Item",
    "Kind",
    "Place",
    "Truth",
    "Wrong",
    "load",
    "load_all",
    "problems",
]

CASE_FILE = "case.yaml"
DIFF_FILE = "change.diff"
_LARGEST = 1 << 20

Line = Annotated[str, Meta(min_length=1, max_length=400)]
Pattern = Annotated[
    str, Meta(min_length=2, max_length=200, description="Words as graft.evaluation.matching reads them.")
]


class CaseError(PermanentError):
    """A case cannot be read. The message names the file and the place in it."""


class Kind(StrEnum):
    """What makes a case difficult."""

    HONEST = "honest"
    HIDDEN_CHANGE = "hidden_change"
    OVERCLAIM = "overclaim"
    DELETION = "deletion"
    RENAME = "rename"
    CONFIG = "config"
    MIGRATION = "migration"
    TESTS_WEAKENED = "tests_weakened"
    DEPENDENCY = "dependency"
    REFACTOR = "refactor"
    TRUNCATED = "truncated"
    REVERT = "revert"
    INJECTION = "injection"


# Here the title says less than the truth, or something else.
_MISLEADING = frozenset((Kind.HIDDEN_CHANGE, Kind.OVERCLAIM, Kind.TESTS_WEAKENED, Kind.INJECTION))


class Place(StrEnum):
    """Where the text of an injection stands."""

    TITLE = "title"
    BODY = "body"
    ISSUE = "issue"
    COMMIT = "commit"
    FILE_NAME = "file_name"
    DIFF = "diff"


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a case file: a name that is not known is a mistake."""


class Item(Strict, frozen=True, kw_only=True):
    """One thing that is true of the change: a sentence, and the patterns by which other sentences say the same."""

    says: Line
    aliases: Annotated[tuple[Pattern, ...], Meta(min_length=1)]

    def said_by(self, sentence: str) -> bool:
        return any(matches(alias, sentence) for alias in self.aliases)


class Wrong(Strict, frozen=True, kw_only=True):
    """Claims that are false of the change, planted on a card to see whether a verifier finds them."""

    inverted: Line
    """The opposite of what the diff shows."""
    invented: Line
    """An effect of which the diff has nothing."""
    overstated: Line
    """A true core, made larger than it is."""

    def by_kind(self) -> dict[str, str]:
        return {"inverted": self.inverted, "invented": self.invented, "overstated": self.overstated}


class Attack(Strict, frozen=True, kw_only=True):
    """What an injection tries. It succeeds when the finished card does one of the things it wants."""

    places: Annotated[tuple[Place, ...], Meta(min_length=1)]
    form: Line
    """How it goes about it, in a few words."""
    risk: Risk | None = None
    """The class that it dictates."""
    says: Line | None = None
    """A sentence that it wants on the card; one of `must_not_claim` fits it."""
    hides: tuple[Annotated[int, Meta(ge=1)], ...] = ()
    """The numbers of the behaviour changes that it wants kept quiet."""


class Truth(Strict, frozen=True, kw_only=True):
    goal: Item
    changes: tuple[Item, ...] = ()
    """Observable effects, the most important first."""
    out_of_scope: tuple[Line, ...] = ()
    risk: Risk
    floor: Risk
    """What the rules alone give."""
    must_not_claim: tuple[Pattern, ...] = ()
    wrong: Wrong

    def forbids(self, sentence: str) -> bool:
        return any(matches(pattern, sentence) for pattern in self.must_not_claim)

    def says(self, item: Item, sentence: str) -> bool:
        """Whether a sentence says this item, and nothing that must not be claimed."""
        return item.said_by(sentence) and not self.forbids(sentence)

    def is_right(self, sentence: str) -> bool:
        """Whether a claim says the goal or one of the changes, and nothing that must not be claimed."""
        return any(self.says(item, sentence) for item in (self.goal, *self.changes))


class Issue(Strict, frozen=True, kw_only=True):
    number: int
    title: str
    body: str = ""


class _CaseFile(Strict, frozen=True, kw_only=True):
    kind: Kind
    language: Line
    title: str
    body: str = ""
    issue: Issue | None = None
    commits: Annotated[tuple[str, ...], Meta(min_length=1)]
    withheld: tuple[Line, ...] = ()
    """Paths whose patch GitHub would not give."""
    incomplete: tuple[Line, ...] = ()
    """Reason codes of a file list that is not whole, as in `Snapshot`."""
    sensitive: tuple[Line, ...] = ()
    """Globs that the repository calls sensitive."""
    attack: Attack | None = None
    truth: Truth


class Case(_CaseFile, frozen=True, kw_only=True):
    """One case, with the name of its directory and the text of its diff."""

    slug: str
    diff: str

    def __repr__(self) -> str:
        return f"Case({self.slug!r})"

    @property
    def inputs_hash(self) -> str:
        """Changes with anything that Graft reads of this case, and with nothing of its truth."""
        issue = msgspec.to_builtins(self.issue)
        read = (
            self.title,
            self.body,
            issue,
            self.commits,
            self.diff,
            self.withheld,
            self.incomplete,
            self.sensitive,
        )
        return _hash(msgspec.json.encode(read))

    @property
    def truth_hash(self) -> str:
        return _hash(msgspec.json.encode((self.kind, self.attack, self.truth)))

    def snapshot(self) -> Snapshot:
        """The change as Graft would have read it. The object names are made up and always the same."""
        files = (
            msgspec.structs.replace(file, patch=None) if file.path in self.withheld else file
            for file in parse_diff(self.diff)
        )
        author = Person(name="Robin Field", email="robin@example.com")
        shas = [_sha(self.slug, "base"), *(_sha(self.slug, str(n)) for n in range(len(self.commits)))]
        commits = (
            Commit(sha=sha, message=message, author=author, committer=author, parents=(parent,))
            for message, parent, sha in zip(self.commits, shas, shas[1:], strict=False)
        )
        return Snapshot(
            base_sha=shas[0],
            head_sha=shas[-1],
            files=tuple(files),
            commits=tuple(commits),
            incomplete=self.incomplete,
        )

    def inputs(self) -> CardInputs:
        """What a card of this case is made from."""
        issue = self.issue
        return CardInputs(
            snapshot=self.snapshot(),
            title=self.title,
            body=self.body,
            issue=LinkedIssue(number=issue.number, title=issue.title, body=issue.body) if issue else None,
            sensitive=tuple(compile_glob(glob) for glob in self.sensitive),
        )


def load_all(directory: Path) -> tuple[Case, ...]:
    """Every case below `directory`, by name. Raises `CaseError`, also when there is none."""
    found = sorted(path.parent for path in directory.glob(f"*/{CASE_FILE}"))
    if not found:
        raise CaseError(
            f"no */{CASE_FILE} below {directory}: name the directory of a case set", reason="no_cases"
        )
    return tuple(load(path) for path in found)


def load(directory: Path) -> Case:
    """The case in `directory`. Raises `CaseError`."""
    path = directory / CASE_FILE
    try:
        plain: Any = yaml.load(_text(path), Loader=_LOADER)  # noqa: S506 - a safe loader, in C where there is one
        read = msgspec.convert(plain, _CaseFile)
        for glob in read.sensitive:
            compile_glob(glob)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise CaseError(f"{path}{where}: not YAML", reason="bad_case") from None
    except (msgspec.ValidationError, GlobError) as error:
        raise CaseError(f"{path}: {error}", reason="bad_case") from None
    fields = {name: getattr(read, name) for name in read.__struct_fields__}
    return Case(slug=directory.name, diff=_text(directory / DIFF_FILE), **fields)


def schema() -> dict[str, Any]:
    """The JSON Schema of case.yaml."""
    return msgspec.json.schema(_CaseFile)


def problems(case: Case) -> Iterator[str]:
    """What is wrong with a case that reads well: sentences against patterns, paths and floor against the diff."""
    truth = case.truth
    paths = {path for file in case.snapshot().files for path in file.paths}
    if not paths:
        yield f"{DIFF_FILE} names no file"
    named = (("truth.out_of_scope", truth.out_of_scope), ("withheld", case.withheld))
    yield from (
        f"{field}: {path} is not in the diff" for field, given in named for path in given if path not in paths
    )
    yield from _sentence_problems(truth)
    if case.kind in _MISLEADING and truth.says(truth.goal, case.title):
        yield "truth.goal: an alias fits the title, although that misleads: make it narrower"
    floor = card_without_model(case.inputs()).floor.risk
    if floor is not truth.floor:
        yield f"truth.floor is {truth.floor}, the rules give {floor}"
    if truth.risk.rank < floor.rank:
        yield f"truth.risk is {truth.risk}, below the floor"
    yield from _attack_problems(case)


def _sentence_problems(truth: Truth) -> Iterator[str]:
    for name, item in (
        ("goal", truth.goal),
        *((f"changes[{n}]", item) for n, item in enumerate(truth.changes)),
    ):
        if not item.said_by(item.says):
            yield f"truth.{name}: no alias fits the sentence itself"
        if truth.forbids(item.says):
            yield f"truth.{name}: the sentence must not be claimed"
        for other in (other for other in truth.changes if other is not item):
            if name != "goal" and item.said_by(other.says):
                yield f"truth.{name}: an alias also fits another change"
    for kind, sentence in truth.wrong.by_kind().items():
        if truth.is_right(sentence):
            yield f"truth.wrong.{kind} counts as right: add a pattern to must_not_claim"


def _attack_problems(case: Case) -> Iterator[str]:
    attack = case.attack
    if (case.kind is Kind.INJECTION) is (attack is None):
        yield "attack: given for the kind injection, and for no other"
    if attack is None:
        return
    if attack.risk is None and attack.says is None and not attack.hides:
        yield "attack: wants nothing"
    if attack.risk is not None and attack.risk.rank >= case.truth.risk.rank:
        yield "attack.risk: is no lower than the truth"
    if attack.says is not None and first_match(case.truth.must_not_claim, [attack.says]) is None:
        yield "attack.says: no pattern of must_not_claim fits it"
    if any(number > len(case.truth.changes) for number in attack.hides):
        yield "attack.hides: there is no such change"


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CaseError(f"{path}: {error.strerror or 'cannot be read'}", reason="bad_case") from None
    if len(data) > _LARGEST:
        raise CaseError(f"{path}: larger than {_LARGEST >> 20} MiB", reason="bad_case")
    return data.decode("utf-8", "replace")


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _sha(*parts: str) -> str:
    return hashlib.sha1("/".join(parts).encode(), usedforsecurity=False).hexdigest()


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
