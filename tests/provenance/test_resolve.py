from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft.changes import Commit, Person
from graft.provenance import AuthorKind, Hint, Part, Provenance, Reason, Source, resolve

ANN = Person(name="Ann", email="ann@example.com")
GITHUB = Person(name="GitHub", email="noreply@github.com")
CLAUDE = "\n\nCo-Authored-By: Claude <noreply@anthropic.com>\n"
DECLARED = "\n\nGraft-Agent: claude-code\n"
REVIEWER = "\n\nCo-authored-by: gemini-code-assist[bot] <176961590+gemini-code-assist[bot]@users.noreply.github.com>\n"

_count = iter(range(1, 1 << 30))


def commit(
    message: str = "feat: x\n", author: Person = ANN, committer: Person | None = None, parents: int = 1
) -> Commit:
    number = next(_count)
    return Commit(
        sha=f"{number:040x}",
        message=message,
        author=author,
        committer=committer or author,
        parents=tuple(f"{number:x}{i}".rjust(40, "f") for i in range(parents)),
    )


def bot(login: str, number: int) -> Person:
    return Person(name=login, email=f"{number}+{login}@users.noreply.github.com")


RENOVATE = bot("renovate[bot]", 29139614)
PRE_COMMIT = bot("pre-commit-ci[bot]", 66853113)
STRANGER = bot("acme-release[bot]", 1234)


def human() -> Commit:
    return commit()


def detected() -> Commit:
    return commit("feat: y" + CLAUDE)


def declared() -> Commit:
    return commit("feat: z" + DECLARED)


def update() -> Commit:
    return commit("Merge branch 'main' into topic\n", committer=GITHUB, parents=2)


def suggestion() -> Commit:
    return commit("Apply suggestions from code review" + REVIEWER, committer=GITHUB)


def robot() -> Commit:
    return commit("[pre-commit.ci] auto fixes\n", author=PRE_COMMIT)


def kinds(*commits: Commit) -> tuple[str, str, str]:
    answer = resolve(commits)
    return str(answer.author_kind), str(answer.source), str(answer.reason)


@pytest.mark.parametrize(
    ("commits", "expected"),
    [
        ([human()], ("human", "none", "no_signature")),
        ([detected()], ("agent", "detected", "detected_agent")),
        ([declared()], ("agent", "declared", "declared_agent")),
        ([declared(), detected()], ("agent", "declared", "declared_agent")),
        ([human(), detected()], ("mixed", "detected", "agent_and_human")),
        ([human(), declared()], ("mixed", "declared", "agent_and_human")),
        ([commit(author=RENOVATE)], ("automation", "detected", "only_automation")),
        ([commit(author=RENOVATE), human()], ("human", "none", "no_signature")),
        ([human(), robot()], ("human", "none", "no_signature")),
        ([detected(), robot()], ("agent", "detected", "detected_agent")),
        ([commit(author=STRANGER)], ("unknown", "none", "unknown_bot")),
        ([commit(author=STRANGER), human()], ("unknown", "none", "unknown_bot")),
        ([commit(author=STRANGER), detected()], ("agent", "detected", "detected_agent")),
        ([], ("unknown", "none", "no_commits")),
        ([update()], ("human", "none", "no_signature")),
        ([suggestion()], ("human", "none", "no_signature")),
        (
            [commit("Update", author=bot("coderabbitai[bot]", 136622811))],
            ("automation", "detected", "only_automation"),
        ),
        ([commit("Merge branch 'main'\n", author=STRANGER, parents=2)], ("unknown", "none", "unknown_bot")),
    ],
)
def test_answers(commits: list[Commit], expected: tuple[str, str, str]) -> None:
    for order in permutations(commits):
        assert kinds(*order) == expected


@pytest.mark.parametrize("neutral", [update, suggestion])
@pytest.mark.parametrize(
    "own", [[human], [detected], [declared], [human, declared], [robot], [lambda: commit(author=STRANGER)]]
)
def test_merges_and_accepted_suggestions_change_no_answer(neutral: object, own: list[object]) -> None:
    commits = [make() for make in own]  # type: ignore[operator]
    assert kinds(*commits, neutral()) == kinds(*commits)  # type: ignore[operator]


def test_a_merge_by_an_agent_brings_no_agent_in() -> None:
    merge = commit("Merge branch 'main' into topic" + CLAUDE, parents=2)
    assert kinds(human(), merge) == ("human", "none", "no_signature")


def test_a_merge_counts_where_its_message_says_that_an_agent_did_more_than_merge() -> None:
    resolved = commit("Resolve the conflicts with main" + CLAUDE, parents=2)
    assert kinds(human(), resolved)[0] == "mixed"
    says_so = commit("Merge branch 'main' into topic" + DECLARED, parents=2)
    assert kinds(human(), says_so) == ("mixed", "declared", "agent_and_human")


def test_an_accepted_suggestion_of_an_agent_that_reviewed() -> None:
    accepted = commit("Apply suggestions from code review" + CLAUDE, committer=GITHUB)
    assert accepted.sha == resolve([human(), accepted]).commits[1].sha
    assert kinds(human(), accepted) == ("human", "none", "no_signature")
    not_from_github = commit("Apply suggestions from code review" + CLAUDE)
    assert kinds(human(), not_from_github)[0] == "mixed"


def test_a_reviewer_beside_an_agent_leaves_the_agent() -> None:
    both = commit("feat: x\n\nCo-Authored-By: Claude <noreply@anthropic.com>\n" + REVIEWER.strip() + "\n")
    assert resolve([both]).agents == ("claude-code",)


def test_a_declaration_comes_before_a_signature_of_the_same_commit() -> None:
    answer = resolve([commit("x\n\nGraft-Agent: codex\nCo-Authored-By: Claude <noreply@anthropic.com>\n")])
    assert (answer.agents, answer.source) == (("codex",), Source.DECLARED)
    assert [(h.kind, h.agent) for h in answer.hints] == [("outvoted", "claude-code")]
    assert answer.commits[0].rule == "Graft-Agent"


def test_facts_of_a_commit() -> None:
    message = (
        "x\n\nGraft-Agent: Claude Code\nGraft-Model: claude-opus-4-5\nGraft-Task: o/R#7\n"
        "Graft-Session: s-1\nSigned-off-by: Ann <ann@example.com>\n"
    )
    (facts,) = resolve([commit(message)]).commits
    assert (facts.agent, facts.model, facts.session) == ("claude-code", "claude-opus-4-5", "s-1")
    assert facts.task is not None
    assert (facts.task.text, facts.task.issue) == ("o/r#7", 7)
    assert [t.key for t in facts.trailers] == [
        "Graft-Agent", "Graft-Model", "Graft-Task", "Graft-Session", "Signed-off-by",
    ]  # fmt: skip


def test_model_and_session_of_a_signature() -> None:
    message = (
        "x\n\nClaude-Session: https://claude.ai/code/session_01\n"
        "Co-Authored-By: Claude Opus 4.6 <noreply@anthropic.com>\n"
    )
    answer = resolve([commit(message)])
    assert answer.models == ("Claude Opus 4.6",)
    assert answer.commits[0].session == "https://claude.ai/code/session_01"
    assert answer.commits[0].rule == "claude-code/trailer"


@pytest.mark.parametrize("value", ["none", "Human", "", "ünïcode", "a" * 64, "-x", "a/b", "@ann", "<b>"])
def test_a_graft_agent_that_names_no_agent_declares_nothing(value: str) -> None:
    answer = resolve([commit(f"x\n\nGraft-Agent: {value}\n")])
    assert answer.author_kind is AuthorKind.HUMAN
    assert [h.kind for h in answer.hints] == ["unusable_trailer"]


def test_graft_model_alone_declares_nothing_and_is_pointed_out() -> None:
    answer = resolve([commit("x\n\nGraft-Model: m\n")])
    assert (answer.author_kind, answer.models) == (AuthorKind.HUMAN, ())
    assert [h.kind for h in answer.hints] == ["unusable_trailer"]


def test_a_graft_task_alone_is_no_sign_of_an_agent() -> None:
    answer = resolve([commit("x\n\nGraft-Task: #12\n")])
    assert (answer.author_kind, answer.hints) == (AuthorKind.HUMAN, ())
    assert [t.issue for t in answer.tasks] == [12]


def test_misplaced_trailers_are_pointed_out_with_commit_and_line() -> None:
    split = commit(
        "x\n\nGraft-Agent: claude-code\n\n🤖 Generated with [Claude Code](https://claude.com/claude-code)\n"
        "\nCo-Authored-By: Claude <noreply@anthropic.com>\n"
    )
    answer = resolve([split])
    assert (answer.author_kind, answer.source) == (AuthorKind.AGENT, Source.DETECTED)
    assert answer.hints == (
        Hint(kind="misplaced_trailer", agent="claude-code", commit=split.sha, key="Graft-Agent", line=3),
    )


@pytest.mark.parametrize("line", ["graft-agent: a", "  Graft-Agent : a", "Graft-Agent=a"])
def test_spellings_of_a_misplaced_line(line: str) -> None:
    answer = resolve([commit(f"x\n\n{line}\nand prose\n")])
    assert [(h.kind, h.agent) for h in answer.hints] == [("misplaced_trailer", "a")]
    assert answer.author_kind is AuthorKind.HUMAN


def test_aider_as_committer_alone_is_a_person() -> None:
    answer = resolve([commit(committer=Person(name="Ann (aider)", email="ann@example.com"))])
    assert (answer.author_kind, answer.hints) == (AuthorKind.HUMAN, ())


def test_an_agent_as_committer_is_a_hint() -> None:
    answer = resolve([commit(committer=Person(name="Claude", email="noreply@anthropic.com"))])
    assert answer.author_kind is AuthorKind.HUMAN
    assert [(h.kind, h.agent) for h in answer.hints] == [("committer", "claude-code")]


def test_the_account_that_opened_decides_only_where_no_commit_does() -> None:
    devin = Person(login="devin-ai-integration[bot]", is_bot=True)
    assert resolve([human()], author=devin).reason is Reason.OPENED_BY_AGENT
    assert resolve([human()], author=devin).agents == ("devin",)
    assert resolve([human(), detected()], author=devin).reason is Reason.AGENT_AND_HUMAN
    assert (
        resolve([human()], author=Person(login="renovate[bot]", is_bot=True)).author_kind is AuthorKind.HUMAN
    )
    second_hand = resolve([human()], author=Person(login="kiro-agent[bot]", is_bot=True))
    assert second_hand.author_kind is AuthorKind.HUMAN
    assert [h.agent for h in second_hand.hints] == ["kiro"]


def test_more_commits_than_are_listed_give_no_answer() -> None:
    many = [declared()] * 250
    assert resolve(many).author_kind is AuthorKind.AGENT
    over = resolve([*many, declared()])
    assert (over.author_kind, over.reason) == (AuthorKind.UNKNOWN, Reason.TOO_MANY_COMMITS)
    cut = resolve([declared()], truncated=True)
    assert (cut.author_kind, cut.reason, cut.agents) == (AuthorKind.UNKNOWN, Reason.COMMITS_TRUNCATED, ())


def test_a_message_too_long_to_read_gives_no_answer() -> None:
    answer = resolve([human(), commit("x" * (1 << 16) + DECLARED)])
    assert (answer.author_kind, answer.reason) == (AuthorKind.UNKNOWN, Reason.MESSAGE_TOO_LONG)
    assert answer.commits[1].part is Part.UNREAD


def test_messages_that_are_too_long_together_give_no_answer() -> None:
    long = "x\n\n" + "prose\n" * 10_000
    assert resolve([commit(long)] * 17).author_kind is AuthorKind.HUMAN
    answer = resolve([commit(long)] * 18)
    assert (answer.author_kind, answer.reason) == (AuthorKind.UNKNOWN, Reason.MESSAGE_TOO_LONG)


MAKERS = st.sampled_from(
    [human, detected, declared, update, suggestion, robot, lambda: commit(author=STRANGER)]
)


@given(st.lists(MAKERS, max_size=6), st.text(), st.text())
def test_weak_signs_never_decide(makers: list[object], branch: str, body: str) -> None:
    commits = [make() for make in makers]  # type: ignore[operator]
    plain = resolve(commits)
    footer = "🤖 Generated with [Claude Code](https://claude.com/claude-code)"
    hinted = resolve(commits, branch="claude/" + branch, body=body + footer)
    assert {h.kind for h in hinted.hints} >= {"branch", "description"}
    assert decision(hinted) == decision(plain)


def decision(answer: Provenance) -> tuple[object, ...]:
    return answer.author_kind, answer.source, answer.reason, answer.agents, answer.decided_by


@given(st.lists(st.text(max_size=200), max_size=4), st.text(max_size=20))
def test_any_text_is_taken_and_what_is_kept_is_bounded(messages: list[str], name: str) -> None:
    stranger = Person(name=name, email=name)
    answer = resolve(
        [commit("x\n\nGraft-Model: \x00\x1b\ud800\u202e" + m, author=stranger) for m in messages]
    )
    for facts in answer.commits:
        for trailer in facts.trailers:
            assert len(trailer.key) <= 80
            assert len(trailer.value) <= 200
            assert (trailer.key + trailer.value).isprintable()


def test_a_hostile_commit_keeps_its_facts_small() -> None:
    lines = "".join(
        f"Graft-Agent: a{i}\nGraft-Model: {'m' * 150}{i}\nGraft-Task: T-{i}\n" for i in range(300)
    )
    misplaced = "Graft-Agent: x\n" * 200
    (facts,) = resolve([commit(f"x\n\n{misplaced}\n{lines}")]).commits
    assert len(facts.agents) == len(facts.tasks) == 10
    assert len(facts.hints) == 10
    assert len(facts.trailers) == 50
    assert len(facts.models) == 10
