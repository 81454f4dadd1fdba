"""One policy, as loaded, and one change, as it is: what is shown, and the little of it that is stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import msgspec

from graft.policy.evaluate import Verdict, evaluate, guards
from graft.policy.facts import Facts
from graft.policy.loading import LoadedPolicy


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """`verdict` is there exactly when the policy is valid. `facts_hash` changes with everything that this value
    depends on, and with nothing else."""

    loaded: LoadedPolicy
    verdict: Verdict | None
    base_ref: str
    facts_hash: str

    @property
    def outcome(self) -> str:
        """`approve`, `review`, `block`, or `none` where no policy could be applied."""
        return str(self.verdict.outcome) if self.verdict is not None else "none"

    @property
    def rule_index(self) -> int | None:
        return self.verdict.rule if self.verdict is not None else None

    @property
    def guard_codes(self) -> tuple[str, ...]:
        return tuple(guard.code for guard in self.verdict.guards) if self.verdict is not None else ()

    def rule_codes(self) -> list[dict[str, Any]]:
        """For each rule its index, state and reason code: no name and no value of the file."""
        if self.verdict is None:
            return []
        return [{"rule": r.index, "state": str(r.state), "code": r.code} for r in self.verdict.results]


def decide(loaded: LoadedPolicy, facts: Facts) -> Decision:
    """Apply what was loaded. Pure, and never raises."""
    verdict = evaluate(loaded.policy, facts) if loaded.policy is not None else None
    return Decision(
        loaded=loaded, verdict=verdict, base_ref=facts.base_ref, facts_hash=facts_hash(loaded, facts)
    )


def facts_hash(loaded: LoadedPolicy, facts: Facts) -> str:
    """SHA-256, in hex, over the facts that a rule of this policy or a guard looks at, how loading went, and
    the base branch. A fact that nothing looks at, a label for example, does not change it."""
    seen: dict[str, Any] = {
        "base": facts.base_ref,
        "loading": [loaded.reason, loaded.paths, [str(problem) for problem in loaded.problems]],
    }
    if loaded.policy is not None:
        seen["policy"] = loaded.policy.hash
        seen["guards"] = [(guard.code, guard.subjects) for guard in guards(facts)]
        seen["incomplete"] = bool(facts.incomplete)
        for condition in sorted(loaded.policy.conditions):
            seen[condition] = _SEEN_BY[condition](facts)
    # ASCII output: a path may hold lone surrogates, which UTF-8 cannot.
    return hashlib.sha256(json.dumps(seen, sort_keys=True).encode("ascii")).hexdigest()


_SEEN_BY: dict[str, Callable[[Facts], Any]] = {
    "author": lambda facts: facts.author_kind,
    "source": lambda facts: facts.source,
    "agents": lambda facts: facts.agents,
    "models": lambda facts: facts.models,
    "max_risk": lambda facts: facts.risk,
    "card_verified": lambda facts: facts.card,
    "paths": lambda facts: [file.paths for file in facts.files],
    **dict.fromkeys(("min_files", "max_files"), lambda facts: len(facts.files)),
    **dict.fromkeys(("min_lines", "max_lines"), lambda facts: facts.lines),
    "labels": lambda facts: sorted({label.casefold() for label in facts.labels}),
    "base": lambda facts: facts.base_ref,
    "task_linked": lambda facts: facts.task_linked,
    "draft": lambda facts: facts.draft,
    "records": lambda facts: facts.records,
}
