"""graft.yaml from bytes to a `Policy`, or to every problem at once, with line, column and `$.path`.

The actor, the risk floor and the command line all read the file here, so that they cannot disagree about it.
"""

from __future__ import annotations

import re
from functools import partial

import msgspec

from graft.globs import Glob
from graft.policy import document
from graft.policy.document import Mapping, Node, Scalar
from graft.policy.fields import Fields
from graft.policy.model import AUTHORS, RECORDS, SOURCES, Labels, Matcher, Outcome, Policy, Rule, Then, When
from graft.policy.problems import Problem, Problems
from graft.risk import Risk

MAX_RULES = 100
MAX_GLOBS = 2_000
MAX_NAME = 80
MAX_MESSAGE = 500
MAX_COUNT = 10

# GitHub: logins have letters, digits and hyphens, an underscore for managed users, `[bot]` for apps; team
# slugs also dots.
_USER = re.compile(r"@?[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9])?(?:\[bot\])?\Z")
_TEAM = re.compile(r"@?(?:[A-Za-z0-9][A-Za-z0-9_-]{0,99}/)?[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")

_WHEN_HINT = " of conditions: `{}` matches every change"
_MATCHER_HINT = " with `any`, `only` or `none`, and the globs below it"


class ParsedPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Either a policy, or at least one problem, in the order of the file."""

    policy: Policy | None
    problems: tuple[Problem, ...] = ()


def parse(data: bytes) -> ParsedPolicy:
    """Parse a policy file. Never raises; takes time proportional to the size, which is bounded."""
    problems = Problems()
    root = document.read(data, problems)
    policy = None if root is None else _Parser(Fields(problems)).policy(root)
    if policy is None or problems:
        return ParsedPolicy(policy=None, problems=problems.found())
    return ParsedPolicy(policy=policy)


class _Parser:
    """One method for each kind of mapping. Results are partial once a problem was added; `parse` drops them."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._globs = 0

    def policy(self, node: Node) -> Policy | None:
        fields = self._fields
        keys = ("version", "sensitive_paths", "rules", "default")
        values = fields.mapping(
            node, keys, required=("version",), hint=": `version: 1` alone is a valid policy"
        )
        if values is None:
            return None
        if "version" in values:
            self._version(values["version"])
        sensitive: tuple[Glob, ...] | None = ()
        if "sensitive_paths" in values and not _is_empty_list(values["sensitive_paths"]):
            sensitive = fields.several(values["sensitive_paths"], fields.glob, "globs")
            self._count_globs(values["sensitive_paths"], len(sensitive or ()))
        rules = self._rules(values["rules"]) if "rules" in values else ()
        default = self._then(values["default"]) if "default" in values else Then(outcome=Outcome.REVIEW)
        if sensitive is None or default is None:
            return None
        return Policy(sensitive_paths=sensitive, rules=rules, default=default)

    def _version(self, node: Node) -> None:
        if not (isinstance(node, Scalar) and node.plain and node.text == "1"):
            self._fields.refuse(node, "must be the number 1, without quotes: no other version is known")

    def _rules(self, node: Node) -> tuple[Rule, ...]:
        rules: list[Rule] = []
        names: dict[str, Node] = {}
        for item in self._fields.sequence(node, "rules", MAX_RULES) or ():
            values = self._fields.mapping(item, ("name", "when", "then"), required=("name", "when", "then"))
            if values is None:
                continue
            name = self._name(values["name"], names) if "name" in values else None
            when = self._when(values["when"]) if "when" in values else None
            then = self._then(values["then"]) if "then" in values else None
            if name is not None and when is not None and then is not None:
                rules.append(Rule(name=name, when=when, then=then))
        return tuple(rules)

    def _name(self, node: Node, seen: dict[str, Node]) -> str | None:
        name = self._fields.text(node, limit=MAX_NAME)
        if name is None:
            return None
        name = name.strip()
        if name in seen:
            self._fields.refuse(node, f"another rule has this name; it is on line {seen[name].line}")
            return None
        seen[name] = node
        return name

    def _when(self, node: Node) -> When | None:
        fields = self._fields
        values = fields.mapping(node, When.__struct_fields__, hint=_WHEN_HINT)
        if values is None:
            return None
        readers = {
            "author": partial(self._choices, choices=AUTHORS),
            "source": partial(self._choices, choices=SOURCES),
            "records": partial(self._choices, choices=RECORDS),
            "agents": partial(self._matcher, anchored=True),
            "models": partial(self._matcher, anchored=True),
            "paths": partial(self._matcher, anchored=False),
            "labels": self._labels,
            "base": self._base,
            "max_risk": self._risk,
            **dict.fromkeys(("card_verified", "task_linked", "draft"), fields.boolean),
            **dict.fromkeys(("min_files", "max_files", "min_lines", "max_lines"), fields.number),
        }
        when = When(**{name: readers[name](value) for name, value in values.items()})  # type: ignore[operator]
        for low, high, what in (
            (when.min_files, when.max_files, "max_files"),
            (when.min_lines, when.max_lines, "max_lines"),
        ):
            if low is not None and high is not None and low > high:
                fields.refuse(values[what], f"is below `min_{what[4:]}`, so the rule could never match")
        return when

    def _choices(self, node: Node, choices: tuple[str, ...]) -> tuple[str, ...] | None:
        return self._fields.several(node, lambda item: self._fields.choice(item, choices), "values")

    def _risk(self, node: Node) -> Risk | None:
        found = self._fields.choice(node, tuple(Risk))
        return None if found is None else Risk(found)

    def _base(self, node: Node) -> object:
        found = self._fields.globs(node, anchored=True)
        self._count_globs(node, len(found.globs) if found else 0)
        return found

    def _matcher(self, node: Node, *, anchored: bool) -> Matcher | None:
        values = self._fields.mapping(node, Matcher.__struct_fields__, hint=_MATCHER_HINT)
        if values is None or self._says_nothing(node, Matcher.__struct_fields__):
            return None
        found = {key: self._fields.globs(value, anchored=anchored) for key, value in values.items()}
        self._count_globs(node, sum(len(globs.globs) for globs in found.values() if globs is not None))
        return Matcher(**found)

    def _labels(self, node: Node) -> Labels | None:
        fields = self._fields
        if not isinstance(node, Mapping):
            return Labels(any=fields.several(node, self._label, "labels"))
        values = fields.mapping(node, Labels.__struct_fields__) or {}
        if self._says_nothing(node, Labels.__struct_fields__):
            return None
        return Labels(**{key: fields.several(value, self._label, "labels") for key, value in values.items()})

    def _label(self, node: Node) -> str | None:
        # Emoji in labels may carry invisible joiners, so only controls are refused here.
        return self._fields.text(node, limit=100, lines=True)

    def _says_nothing(self, node: Node, known: tuple[str, ...]) -> bool:
        if isinstance(node, Mapping) and not node.entries:
            self._fields.refuse(
                node, f"is empty: name {', '.join(f'`{key}`' for key in known)}, or remove the key"
            )
            return True
        return False

    def _then(self, node: Node) -> Then | None:
        outcomes = tuple(Outcome)
        if not isinstance(node, Mapping):
            found = self._fields.choice(node, outcomes)
            return None if found is None else Then(outcome=Outcome(found))
        values = self._fields.mapping(node, outcomes)
        if not values:
            self._says_nothing(node, outcomes)
            return None
        if len(values) > 1:
            self._fields.refuse(node, "must name one outcome only")
            return None
        outcome, details = next(iter(values.items()))
        return self._details(Outcome(outcome), details)

    def _details(self, outcome: Outcome, node: Node) -> Then | None:
        fields = self._fields
        known = ("users", "teams", "count", "message") if outcome is Outcome.REVIEW else ("message",)
        values = fields.mapping(node, known, hint=f" with {', '.join(f'`{key}`' for key in known)}")
        if values is None:
            return None
        users = self._reviewers(values["users"], _USER, "a GitHub login") if "users" in values else ()
        teams = self._reviewers(values["teams"], _TEAM, "`organisation/team`") if "teams" in values else ()
        count = fields.number(values["count"], low=1, high=MAX_COUNT) if "count" in values else 1
        message = (
            fields.text(values["message"], limit=MAX_MESSAGE, lines=True) if "message" in values else None
        )
        if users and not teams and "teams" not in values and count is not None and count > len(users):
            fields.refuse(values["count"], f"asks for more reviewers than the {len(users)} named")
        if users is None or teams is None or count is None:
            return None
        return Then(outcome=outcome, users=users, teams=teams, count=count, message=message)

    def _reviewers(self, node: Node, form: re.Pattern[str], what: str) -> tuple[str, ...] | None:
        def read(item: Node) -> str | None:
            text = self._fields.text(item, limit=250)
            if text is not None and not form.match(text):
                self._fields.refuse(item, f"must be {what}")
                return None
            return None if text is None else text.removeprefix("@")

        found = self._fields.several(node, read, "reviewers")
        return None if found is None else tuple(dict.fromkeys(found))

    def _count_globs(self, node: Node, count: int) -> None:
        before, self._globs = self._globs, self._globs + count
        if before <= MAX_GLOBS < self._globs:
            self._fields.refuse(node, f"the file has more than {MAX_GLOBS:,} globs from here on")


def _is_empty_list(node: Node) -> bool:
    return isinstance(node, document.Sequence) and not node.items
