"""Section and check: what they say, that they notify nobody, and that they fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cmarkgfm
import pytest

from graft.changes import ChangedFile
from graft.globs import GlobSet, compile_glob
from graft.policy import (
    Card,
    Decision,
    LoadedPolicy,
    Policy,
    Rule,
    Status,
    Then,
    When,
    check_output,
    decide,
    of_bytes,
    render_section,
)
from graft.policy.model import Matcher, Outcome

Make = Callable[..., Any]
HOSTILE = "@acme/all <!-- graft:section --> | `x` [a](http://x) #1 **b**"


def decided(text: str | bytes, facts: Any) -> Decision:
    data = text.encode() if isinstance(text, str) else text
    return decide(of_bytes(data, "graft.yaml"), facts)


def html(markdown: str) -> str:
    return str(cmarkgfm.github_flavored_markdown_to_html(markdown))


def test_a_match_is_explained(facts: Make) -> None:
    text = """
version: 1
rules:
  - {name: big, when: {min_lines: 100}, then: block}
  - {name: docs, when: {paths: {only: "*.md"}}, then: approve}
  - {name: rest, when: {}, then: review}
"""
    decision = decided(text, facts("a.md"))
    section = render_section(decision)
    assert section.startswith("### Policy\n\n**Would approve.**\n\nRule 2, `docs`, decides.\n")
    assert "| 1 | `big` | not matched | 3 changed lines, at least 100 are needed |" in section
    assert "| 2 | `docs` | matched | every file matches (1) |" in section
    assert "| 3 | `rest` | not evaluated | rule 2 decided |" in section
    assert check_output(decision)[0] == "Would approve"
    assert check_output(decision)[1] in section
    assert "<table>" in html(section)
    assert decision.outcome == "approve"
    assert decision.rule_index == 1
    assert decision.guard_codes == ()
    assert decision.rule_codes() == [
        {"rule": 0, "state": "not_matched", "code": "min_lines"},
        {"rule": 1, "state": "matched", "code": "matched"},
        {"rule": 2, "state": "not_evaluated", "code": "earlier_rule"},
    ]


@pytest.mark.parametrize(
    ("then", "headline", "title"),
    [
        ("approve", "**Would approve.**", "Would approve"),
        ("block", "**Would block.**", "Would block"),
        ("review", "**Would ask for a review.**", "Would ask for a review"),
        ("{review: {count: 2}}", "**Would ask for 2 reviews.**", "Would ask for reviews"),
        (
            "{review: {teams: '@acme/x', users: [bob]}}",
            "**Would ask for a review from `acme/x`, `bob`.**",
            "Would ask for a review",
        ),
    ],
)
def test_headline(facts: Make, then: str, headline: str, title: str) -> None:
    decision = decided(f"version: 1\ndefault: {then}\n", facts("a"))
    assert headline in render_section(decision)
    assert "The default decides." in render_section(decision)
    assert check_output(decision)[0] == title


def test_a_long_list_of_people_is_cut(facts: Make) -> None:
    people = ", ".join(f"user{i}" for i in range(50))
    section = render_section(decided(f"version: 1\ndefault: {{review: {{users: [{people}]}}}}\n", facts("a")))
    assert "`user19` or 30 more.**" in section


def test_a_downgrade_says_why(facts: Make) -> None:
    text = "version: 1\nrules: [{name: all, when: {}, then: approve}]\n"
    section = render_section(decided(text, facts("graft.yaml", card=Card.UNVERIFIED)))
    assert "**Would ask for a review.**" in section
    assert "Rule 1, `all`, decides: it says approve, which is ruled out here." in section
    assert "because the change touches the policy file `graft.yaml`." in section
    assert "because the intent card is not verified." in section
    assert "| 1 | `all` | matched | it has no conditions |" in section


def test_an_edit_of_the_policy_is_flagged_even_where_nothing_would_be_approved(facts: Make) -> None:
    section = render_section(decided("version: 1\n", facts("graft.yml", card=Card.MISSING)))
    assert "touches the policy file `graft.yml`" in section
    assert "intent card" not in section


@pytest.mark.parametrize(
    ("loaded", "words", "title"),
    [
        (
            LoadedPolicy(status=Status.NONE, reason="missing"),
            "No `graft.yaml` on `main`, so there are no rules to report on.",
            "No policy",
        ),
        (
            LoadedPolicy(status=Status.UNREADABLE, reason="symlink", paths=("graft.yml",)),
            "`graft.yml` on `main` is a symbolic link, which is not followed: put the file itself there.",
            "The policy cannot be read",
        ),
        (
            LoadedPolicy(
                status=Status.UNREADABLE, reason="two_candidates", paths=("graft.yaml", "graft.yml")
            ),
            "`graft.yaml` and `graft.yml` on `main` stand beside each other: keep one of them.",
            "The policy cannot be read",
        ),
        (
            LoadedPolicy(status=Status.UNREADABLE, reason="unreadable"),
            "The policy on `main` cannot be read",
            "The policy cannot be read",
        ),
    ],
)
def test_without_a_policy(facts: Make, loaded: LoadedPolicy, words: str, title: str) -> None:
    decision = decide(loaded, facts("a"))
    assert words in render_section(decision)
    assert check_output(decision)[0] == title
    assert (decision.outcome, decision.rule_index, decision.rule_codes()) == ("none", None, [])
    assert decision.guard_codes == ()


def test_an_invalid_file_is_published_with_every_problem(facts: Make) -> None:
    decision = decided("version: 2\nfoo: 1\n", facts("a"))
    title, summary = check_output(decision)
    assert title == "The policy is not valid: 2 problems"
    for problem in decision.loaded.problems:
        assert f"\ngraft.yaml:{problem}\n" in summary
    assert "<code>" in html(summary)


def test_nothing_from_outside_is_live(facts: Make) -> None:
    rule = Rule(
        name=HOSTILE, when=When(), then=Then(outcome=Outcome.BLOCK, message=HOSTILE, users=(HOSTILE,))
    )
    loaded = LoadedPolicy(
        status=Status.VALID, reason="ok", paths=("graft.yaml",), policy=Policy(rules=(rule,))
    )
    hostile = facts(HOSTILE, base_ref=HOSTILE, labels=(HOSTILE,), agents=(HOSTILE,), author_kind=HOSTILE)
    for section in (
        render_section(decide(loaded, hostile)),
        render_section(decide(LoadedPolicy(status=Status.NONE, reason="missing"), hostile)),
        render_section(
            decided(
                "version: 1\nrules:\n"
                "  - {name: a, when: {author: human}, then: block}\n"
                "  - {name: b, when: {paths: {only: x}}, then: block}\n"
                f"  - {{name: c, when: {{labels: {{all: ['{HOSTILE}x']}}}}, then: block}}\n",
                hostile,
            )
        ),
    ):
        rendered = html(section)
        assert "<!-- graft:" not in section
        assert "<a " not in rendered
        assert "<b>" not in rendered
        outside_code = "".join(part.split("</code>")[-1] for part in rendered.split("<code>"))
        assert "@acme" not in outside_code
        assert "#1" not in outside_code


def test_braces_in_names_are_only_text(facts: Make) -> None:
    section = render_section(
        decided(
            "version: 1\nrules: [{name: '{0}', when: {paths: {only: x}}, then: block}]\n", facts("{0}{a.b}")
        )
    )
    assert "the file `{0}{a.b}` matches nothing" in section


def test_the_largest_policy_fits(facts: Make) -> None:
    other = Matcher(only=GlobSet([compile_glob("x")]))
    rules = tuple(
        Rule(name=f"{i:02}" + "|" * 78, when=When(paths=other), then=Then(outcome=Outcome.BLOCK))
        for i in range(100)
    )
    then = Then(outcome=Outcome.REVIEW, users=("u" * 100,) * 500, message="*" * 500)
    policy = Policy(rules=rules, default=then)
    loaded = LoadedPolicy(status=Status.VALID, reason="ok", paths=("graft.yaml",), policy=policy)
    section = render_section(decide(loaded, facts("p" * 300, "graft.yaml")))
    assert len(section) < 20_000
    assert "more rules are not shown" in section
    worst = decided("version: 1\nrules:\n" + "  - {name: a, when: {x: 1}, then: b}\n" * 60, facts("a"))
    assert len(render_section(worst)) < 20_000


# ------------------------------------------------------------------------------------------------ facts_hash


def test_facts_hash_follows_only_what_is_looked_at(facts: Make) -> None:
    plain = of_bytes(b"version: 1\n", "graft.yaml")
    labels = of_bytes(b"version: 1\nrules: [{name: a, when: {labels: x}, then: block}]\n", "graft.yaml")
    some, more = facts("a"), facts("a", labels=("x",))
    assert decide(plain, some).facts_hash == decide(plain, more).facts_hash
    assert decide(labels, some).facts_hash != decide(labels, more).facts_hash
    assert decide(plain, some).facts_hash != decide(labels, some).facts_hash


@pytest.mark.parametrize(
    ("when", "change"),
    [
        ("author: agent", {"author_kind": "agent"}),
        ("source: declared", {"source": "declared"}),
        ("agents: {any: x}", {"agents": ("x",)}),
        ("models: {any: x}", {"models": ("x",)}),
        ("max_risk: trivial", {"risk": None}),
        ("card_verified: true", {"card": Card.MISSING}),
        ("paths: {any: x}", {"files": (ChangedFile(path="b", status="added"),)}),
        ("max_files: 1", {"files": ()}),
        ("min_lines: 1", {"files": (ChangedFile(path="a", status="added"),)}),
        ("labels: x", {"labels": ("x",)}),
        ("base: main", {"base_ref": "dev"}),
        ("task_linked: true", {"task_linked": True}),
        ("draft: true", {"draft": True}),
        ("records: stale", {"records": "stale"}),
        ("draft: true", {"card": Card.UNVERIFIED}),
        ("draft: true", {"injection_suspected": True}),
        ("draft: true", {"incomplete": ("x",)}),
    ],
)
def test_facts_hash_sees_what_a_condition_or_guard_sees(
    facts: Make, when: str, change: dict[str, Any]
) -> None:
    loaded = of_bytes(
        f"version: 1\nrules: [{{name: a, when: {{{when}}}, then: block}}]\n".encode(), "graft.yaml"
    )
    assert decide(loaded, facts("a")).facts_hash != decide(loaded, facts("a", **change)).facts_hash


def test_facts_hash_without_a_policy(facts: Make) -> None:
    missing = LoadedPolicy(status=Status.NONE, reason="missing")
    hashes = {
        decide(missing, facts("a")).facts_hash,
        decide(missing, facts("b", draft=True)).facts_hash,
        decide(missing, facts("a", base_ref="dev")).facts_hash,
        decide(of_bytes(b"version: 2", "graft.yaml"), facts("a")).facts_hash,
        decide(of_bytes(b"version: 3\nx: 1", "graft.yaml"), facts("a")).facts_hash,
    }
    assert len(hashes) == 4


def test_facts_hash_takes_any_path(facts: Make) -> None:
    loaded = of_bytes(b"version: 1\nrules: [{name: a, when: {paths: {any: x}}, then: block}]\n", "graft.yaml")
    assert len(decide(loaded, facts("\udcff\ud800")).facts_hash) == 64
