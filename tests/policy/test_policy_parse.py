"""graft.yaml from bytes: the labelled YAML traps, the schema's errors with their places, and bounds."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from graft.policy import Outcome, Policy, Then, parse
from graft.policy.document import MAX_BYTES, MAX_DEPTH, MAX_NODES, Mapping, Scalar, Sequence, read
from graft.policy.problems import MAX_PROBLEMS, Problem, Problems

CASES: dict[str, str] = {
    case["name"]: case["text"]
    for case in json.loads((Path(__file__).parents[1] / "cases" / "yaml.json").read_text())
}


def problems(text: str | bytes) -> list[str]:
    parsed = parse(text.encode() if isinstance(text, str) else text)
    assert (parsed.policy is None) == bool(parsed.problems)
    return [str(problem) for problem in parsed.problems]


def policy(text: str) -> Policy:
    parsed = parse(text.encode())
    assert parsed.policy is not None, [str(p) for p in parsed.problems]
    return parsed.policy


def said(text: str | bytes, place: str, *words: str) -> None:
    """One of the problems stands at `place` and says all of the words."""
    found = problems(text)
    assert any(line.startswith(place + ": ") and all(word in line for word in words) for line in found), found


def rule(when: str = "{}", then: str = "approve") -> str:
    return f"version: 1\nrules:\n  - name: x\n    when: {when}\n    then: {then}\n"


# ------------------------------------------------------------------------------------------- labelled cases


def test_norway_keeps_its_spelling() -> None:
    assert problems(CASES["norway"])
    found = policy(rule("{labels: [no, NO, off, on, yes, y]}")).rules[0].when.labels
    assert found is not None
    assert found.any == ("no", "NO", "off", "on", "yes", "y")
    said(rule("{draft: no}"), "4:19: $.rules[0].when.draft", "`true` or `false`")


def test_duplicate_key_is_refused_where_it_is_repeated() -> None:
    assert problems(CASES["dup_key"]) == [
        "3:1: $.sensitive_paths: this key is given twice; the first is on line 2"
    ]


def test_merge_keys_and_anchors_are_refused() -> None:
    said(CASES["merge_dup"], "1:4: $.x", "anchor")
    said("version: 1\n<<: {rules: []}\n", '2:1: $["?"]', "merge keys")


@pytest.mark.parametrize(
    "written", ["0755", "0o755", "1e3", "1_000", "'5'", "+5", "-5", "5.0", "0x1F", "true", "~"]
)
def test_only_plain_decimal_digits_are_numbers(written: str) -> None:
    said(rule(f"{{max_lines: {written}}}"), "4:23: $.rules[0].when.max_lines", "whole number")
    assert problems(CASES["octal"])
    assert problems(CASES["exp"])


def test_a_date_is_text() -> None:
    assert problems(CASES["date"])
    assert policy(rule("{labels: 2026-01-01}")).rules[0].when.labels is not None
    said("version: 2026-01-01\n", "1:10: $.version", "number 1")


def test_alias_bomb_is_refused_at_once() -> None:
    start = time.process_time()
    said(CASES["bomb"], "1:4: $.a", "anchor")
    said(CASES["bomb"], "2:8: $.b[0]", "alias")
    assert time.process_time() - start < 0.1
    assert len(problems(CASES["bomb"])) == MAX_PROBLEMS + 1


def test_unquoted_glob_and_team_get_a_hint() -> None:
    said(CASES["star_plain"], "2:5: $.paths", "put a glob in quotes")
    said(CASES["at_plain"], "2:5: $.teams", "put the name in quotes")
    said("version: 1\nsensitive_paths: *src\n", "2:18: $.sensitive_paths", "put a glob in quotes")
    said("version: 1\nsensitive_paths: [!src/**]\n", "2:19: $.sensitive_paths", "`!`", "quotes")
    said("version: 1\nsensitive_paths: !src\n", "2:18: $.sensitive_paths", "tag", "quotes")
    said("version: 1\nsensitive_paths:\n  - {a,b}.py\n", "3:10: $.sensitive_paths", "quote")


def test_hash_sign_begins_a_comment_only_after_a_blank() -> None:
    found = policy("version: 1\n" + CASES["hash_inline"].replace("paths", "sensitive_paths"))
    assert [glob.pattern for glob in found.sensitive_paths] == ["docs/#notes", "docs"]


def test_tags_are_refused() -> None:
    said(CASES["py_tag"], "1:4: $.a", "tag")
    said(CASES["binary"], "1:4: $.a", "tag")
    said("version: !!int '1'\n", "1:10: $.version", "tag")
    said("%TAG !e! tag:x,2000:\n---\nversion: !e!x 1\n", "3:10: $.version", "tag")


def test_empty_file_and_wrong_root() -> None:
    assert problems(CASES["empty"]) == ["1:1: $: the file is empty: `version: 1` alone is a valid policy"]
    assert problems("# only a comment\n") == problems("") == problems("---\n...\n")[:0] + problems("")
    said(CASES["scalar_root"], "1:1: $", "must be a mapping")
    said("- version: 1\n", "1:1: $", "must be a mapping")
    said("---\n", "2:1: $", "is empty: it must be a mapping")


def test_a_key_without_value_is_named() -> None:
    said(CASES["null_value"], "1:7: $.rules", "is empty: it must be a list of rules")
    said(rule("", "approve"), "4:10: $.rules[0].when", "is empty", "`{}` matches every change")


def test_complex_keys_are_refused() -> None:
    said(CASES["complex_key"], '1:3: $["?"]', "key must be plain text")
    said("{{a: 1}: 2, version: 1}\n", '1:2: $["?"]', "key must be plain text")
    for key in ("~", "true", "null"):
        said(f"version: 1\n{key}: 2\n", "2:1: " + ('$["?"]' if key == "~" else f"$.{key}"), "not text")


@pytest.mark.parametrize("name", ["nul", "c1_control"])
def test_control_characters_are_refused(name: str) -> None:
    said(CASES[name], {"nul": "1:4: $.a", "c1_control": "1:4: $"}[name], "control character")
    said("version: 1\n# \x1b[31m\n", "2:3: $", "control character")
    said('version: 1\nsensitive_paths: "a\\Lb"\n', "2:18: $.sensitive_paths", "control character")


def test_other_encodings_are_refused_and_a_utf8_mark_is_not() -> None:
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        said("version: 1\n".encode(encoding), "1:1: $", "UTF-8")
    said("version: 1\n# caf\u00e9\n".encode("latin-1"), "2:6: $", "not UTF-8 from here")
    assert parse("version: 1\n".encode("utf-8-sig")).policy == Policy()


def test_a_large_file_is_refused_unread() -> None:
    said(b"a: '" + b"x" * 1_200_000, "1:1: $", "larger than 1 MB")
    assert parse(b"version: 1 #" + b"x" * (MAX_BYTES - 13) + b"\n").policy == Policy()


# ---------------------------------------------------------------------------------------------------- bounds


def test_depth_nodes_and_documents_are_bounded() -> None:
    said("a: " + "[" * 5_000, "1:1003: $.a", "levels deep")
    said("a: " + "[" * 500, f"1:{3 + MAX_DEPTH}: $.a" + "[0]" * (MAX_DEPTH - 1), "levels deep")
    said("[" + "a, " * MAX_NODES + "a]", f"1:{3 * (MAX_NODES - 1) + 2}: $", "values")
    said("version: 1\n---\nversion: 1\n", "2:1: $", "second document")


def test_many_problems_are_cut_with_a_word() -> None:
    text = "version: 1\n" + "".join(f"k{i}: 1\n" for i in range(3_900))
    start = time.process_time()
    found = problems(text)
    assert time.process_time() - start < 2
    assert len(found) == MAX_PROBLEMS + 1
    assert "only the first 50" in found[-1]


def test_globs_and_rules_are_bounded() -> None:
    one = "  - {name: n%d, when: {}, then: approve}\n"
    assert len(policy("version: 1\nrules:\n" + "".join(one % i for i in range(100))).rules) == 100
    said(
        "version: 1\nrules:\n" + "".join(one % i for i in range(101)),
        "103:5: $.rules[100]",
        "more than 100 rules",
    )
    said(
        f"version: 1\nsensitive_paths: [{'a,' * 501}]\n",
        "2:1019: $.sensitive_paths[500]",
        "more than 500 globs",
    )
    many = "".join(
        f"  - {{name: n{i}, when: {{paths: {{any: [{'a,' * 500}]}}}}, then: approve}}\n" for i in range(5)
    )
    said("version: 1\nrules:\n" + many, "7:30: $.rules[4].when.paths", "more than 2,000 globs")


# ---------------------------------------------------------------------------------------------------- schema


def test_the_smallest_policy() -> None:
    assert policy("version: 1\n") == Policy(default=Then(outcome=Outcome.REVIEW))
    assert policy("--- # with a mark\nversion: 1\n...\n") == Policy()


def test_everything_a_rule_can_say() -> None:
    found = policy(
        """
version: 1
sensitive_paths: "services/billing/**"
rules:
  - name: " everything "
    when:
      author: [agent, mixed]
      source: declared
      agents: {any: claude*, none: [aider]}
      models: {only: "*opus*"}
      max_risk: logic
      card_verified: true
      paths: {any: src/**, only: ["**"], none: ["*.lock"]}
      min_files: 1
      max_files: 10
      min_lines: 0
      max_lines: 300
      labels: {all: [a, b], none: "no"}
      base: [main, release/*]
      task_linked: True
      draft: false
      records: [none, fresh]
    then:
      review: {users: ["@octo-cat", octo-cat, "bot[bot]"], teams: "@acme/x.y", count: 3, message: "a\\nb"}
default:
  block: {message: No.}
"""
    )
    (only,) = found.rules
    assert only.name == "everything"
    assert set(only.when.conditions()) == set(only.when.__struct_fields__)
    assert only.then == Then(
        outcome=Outcome.REVIEW, users=("octo-cat", "bot[bot]"), teams=("acme/x.y",), count=3, message="a\nb"
    )
    assert found.default == Then(outcome=Outcome.BLOCK, message="No.")
    assert found.conditions == set(only.when.__struct_fields__)


@pytest.mark.parametrize(
    ("text", "place", "word"),
    [
        ("rules: []\n", "1:1: $", "needs `version`"),
        ("version: '1'\n", "1:10: $.version", "without quotes"),
        ("version: 2\n", "1:10: $.version", "no other version"),
        ("version: 1\nrulez: []\n", "2:1: $.rulez", "did you mean `rules`?"),
        ("version: 1\nzzz: []\n", "2:1: $.zzz", "known here are `version`, `sensitive_paths`"),
        ("version: 1\n'a b\u202e': []\n", '2:1: $["?"]', "not known"),
        ("version: 1\nrules: {}\n", "2:8: $.rules", "list of rules"),
        ("version: 1\nrules: [x]\n", "2:9: $.rules[0]", "must be a mapping"),
        ("version: 1\nrules: [{name: x, then: approve}]\n", "2:9: $.rules[0]", "needs `when`"),
        ("version: 1\ndefault: {}\n", "2:10: $.default", "is empty"),
        ("version: 1\ndefault: {approve: {}, block: {}}\n", "2:10: $.default", "one outcome only"),
        ("version: 1\ndefault: merge\n", "2:10: $.default", "`approve`, `review` or `block`"),
        ("version: 1\ndefault: {block: no}\n", "2:18: $.default.block", "mapping with `message`"),
        ("version: 1\ndefault: {review: }\n", "2:19: $.default.review", "is empty"),
        ("version: 1\ndefault: {approve: {count: 1}}\n", "2:21: $.default.approve.count", "not known"),
        ("version: 1\ndefault: {review: {count: 0}}\n", "2:27: $.default.review.count", "from 1 to 10"),
        (
            "version: 1\ndefault: {review: {users: [a], count: 2}}\n",
            "2:39: $.default.review.count",
            "the 1 named",
        ),
        ("version: 1\ndefault: {review: {users: ['a b']}}\n", "2:28: $.default.review.users[0]", "login"),
        ("version: 1\ndefault: {review: {users: []}}\n", "2:27: $.default.review.users", "list is empty"),
        (
            "version: 1\ndefault: {review: {teams: a/b/c}}\n",
            "2:27: $.default.review.teams",
            "organisation/team",
        ),
        (rule("{author: alice}"), "4:20: $.rules[0].when.author", "`agent`, `human`, `mixed`"),
        (rule("{author: []}"), "4:20: $.rules[0].when.author", "list is empty"),
        (rule("{max_risk: [logic]}"), "4:22: $.rules[0].when.max_risk", "`trivial`, `logic` or `sensitive`"),
        (rule("{paths: src/**}"), "4:19: $.rules[0].when.paths", "`any`, `only` or `none`"),
        (rule("{paths: {}}"), "4:19: $.rules[0].when.paths", "is empty"),
        (
            rule("{paths: {any: ['a/']}}"),
            "4:26: $.rules[0].when.paths.any[0]",
            "the glob has an empty segment",
        ),
        (rule("{base: '!main'}"), "4:18: $.rules[0].when.base", "the glob starts with `!`"),
        (rule("{labels: [true]}"), "4:21: $.rules[0].when.labels[0]", "boolean where text"),
        (rule("{labels: [{}]}"), "4:21: $.rules[0].when.labels[0]", "must be text"),
        (rule("{labels: {}}"), "4:20: $.rules[0].when.labels", "is empty"),
        (rule("{labels: ['']}"), "4:21: $.rules[0].when.labels[0]", "must not be empty"),
        (rule("{min_files: 3, max_files: 2}"), "4:37: $.rules[0].when.max_files", "never match"),
        (rule("{min_lines: 3, max_lines: 2}"), "4:37: $.rules[0].when.max_lines", "below `min_lines`"),
        (rule("{max_lines: 1000001}"), "4:23: $.rules[0].when.max_lines", "to 1,000,000"),
        (rule("[]"), "4:11: $.rules[0].when", "mapping of conditions"),
        (rule().replace("name: x", "name: ' '"), "3:11: $.rules[0].name", "must not be empty"),
        (rule().replace("name: x", 'name: "a\\nb"'), "3:11: $.rules[0].name", "on one line"),
        (rule().replace("name: x", "name: a\u202eb"), "3:11: $.rules[0].name", "printable"),
        (rule().replace("name: x", "name: " + "x" * 81), "3:11: $.rules[0].name", "longer than 80"),
        (rule() + "  - {name: x, when: {}, then: block}\n", "6:12: $.rules[1].name", "is on line 3"),
    ],
)
def test_schema_error(text: str, place: str, word: str) -> None:
    said(text, place, word)


def test_all_errors_at_once_in_the_order_of_the_file() -> None:
    text = rule("{max_lines: x, draft: maybe}", "merge") + "default: perhaps\nversoin: 1\n"
    assert [line.split(": ")[0] for line in problems(text)] == ["4:23", "4:33", "5:11", "6:10", "7:1"]


@pytest.mark.parametrize(
    ("text", "place", "word"),
    [
        ("version: 1\nrules:\n\t- a\n", "3:1: $.rules", "tab"),
        ("version: 1\nrules: `a`\n", "2:8: $.rules", "backtick"),
        ("version: 1\nrules: %a\n", "2:8: $.rules", "`%`"),
        ("version: 1: 2\n", "1:11: $", "`:`"),
        ("version: 'x\n", "1:10: $.version", "quote is not closed"),
        ("rules: [a, b\nversion: 1\n", "2:8: $.rules", "not closed"),
        ("rules:\n  - a\n b: 1\n", "3:2: $", "indentation"),
        ('version: "\\d"\n', "1:11: $.version", "escape"),
        ("version: 1\nfoo\nrules: []\n", "3:1: $", "`:`"),
        ("%YAML 9.1\n---\nversion: 1\n", "1:1: $", "not valid YAML"),
    ],
)
def test_syntax_error_says_what_to_do(text: str, place: str, word: str) -> None:
    said(text, place, word)


# -------------------------------------------------------------------------------------------- no value leaks

SECRET = "hunter2-S3CRET"


@pytest.mark.parametrize(
    "template",
    [
        "version: X\n",
        "version: 1\nsensitive_paths: ['{X}', '!X', 'X/']\n",
        "version: 1\ndefault: X\n",
        "version: 1\nrules: X\n",
        "version: &X 1\n",
        "version: *X\n",
        "version: !X 1\n",
        "version: 1\n'X X': 1\n",
        "version: 'X\n",
        "version: [X\nX: X\n",
        '"\\q X": 1\n',
        "version: 1\ndefault: {review: {users: ['X X'], teams: ['X/X/X']}}\n",
        rule("{author: X, labels: ['X', {X X: 1}], base: '!X', max_risk: X}", "X"),
        rule().replace("name: x", '"name": "X\\nX"'),
    ],
)
def test_no_problem_repeats_a_value(template: str) -> None:
    found = problems(template.replace("X", SECRET))
    assert found
    assert not any(SECRET.lower() in line.lower() for line in found)


# ----------------------------------------------------------------------------------------------- properties

PIECES = st.sampled_from(
    ["version: 1", "rules:", "- ", "  ", "\n", "name: x", "when:", "{", "}", "[", "]", "'", '"', "&a", "*a", "!t", "|",
     ">", "? ", ": ", "# c", "\\", "paths", "any", "**/x", "approve", "then: ", "---", "...", "%YAML 1.1", "\t", "~",
     "@", "\x00", "\x85", "\ufeff", "é", "<<", "\\ud800", "\\UFFFFFFFF", "1e3"]
)  # fmt: skip


def check_parse(data: bytes) -> None:
    parsed = parse(data)
    assert (parsed.policy is None) == bool(parsed.problems)
    assert len(parsed.problems) <= MAX_PROBLEMS + 1
    for problem in parsed.problems:
        assert problem.line >= 1
        assert problem.column >= 1
        assert problem.path.startswith("$")
        assert "\n" not in str(problem)
    if parsed.policy is not None:
        assert len(parsed.policy.hash) == 64


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=30).map(lambda parts: "".join(parts).encode("utf-8", "surrogatepass")))
def test_parse_never_raises_on_near_yaml(data: bytes) -> None:
    check_parse(data)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200))
def test_parse_never_raises_on_bytes(data: bytes) -> None:
    check_parse(data)


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join))
def test_what_libyaml_accepts_plain_pyyaml_reads_the_same(text: str) -> None:
    """PyYAML comes without libyaml on some platforms."""

    def tree(loader: type) -> object:
        found = Problems()
        node = read(text.encode("utf-8", "surrogatepass"), found, loader=loader)
        return None if found else plain(node)

    with_c, without = tree(yaml.CSafeLoader), tree(yaml.SafeLoader)
    if with_c is not None and without is not None:
        assert with_c == without


def plain(node: object) -> object:
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    assert isinstance(node, Mapping)
    return {key: plain(value) for key, (_, value) in node.entries.items()}


def test_hash_follows_meaning_not_layout() -> None:
    one = policy("version: 1\nsensitive_paths: ['a/**']\ndefault: {review: {}}\n")
    other = policy("# comment\ndefault: review\nsensitive_paths:\n  - a/**\nversion: 1\n")
    assert one.hash == other.hash
    assert one.hash != policy("version: 1\nsensitive_paths: ['b/**']\n").hash
    assert policy(rule("{paths: {any: a}}")).hash != policy(rule("{paths: {only: a}}")).hash


def test_problem_text() -> None:
    assert str(Problem(line=3, column=1, path="$.x", message="is wrong")) == "3:1: $.x: is wrong"
